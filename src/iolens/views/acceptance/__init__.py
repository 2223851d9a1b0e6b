"""How results of `acceptance` are shown."""
