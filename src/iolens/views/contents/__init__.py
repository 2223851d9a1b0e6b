"""How results of `contents` are shown."""
