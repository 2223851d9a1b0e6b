"""How results of `metadata` are shown."""
