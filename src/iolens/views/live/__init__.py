"""How results of `live` are shown."""
