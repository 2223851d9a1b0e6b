"""How results of `growth` are shown."""
