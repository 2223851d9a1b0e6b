"""How long targets take for an I/O."""
