"""The next system: capacity, endurance, metadata, performance, and the rationale of all four."""
