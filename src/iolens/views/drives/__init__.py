"""How results of `drives` are shown."""
