"""Plans from a store and from options: capacity, endurance, metadata, performance, and the rationale of all four."""
