"""How results of `capacity` are shown."""
