"""How much the I/O time of like runs varies."""
