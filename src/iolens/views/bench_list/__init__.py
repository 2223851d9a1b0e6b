"""Studies of a store."""
