"""How results of `validation` are shown."""
