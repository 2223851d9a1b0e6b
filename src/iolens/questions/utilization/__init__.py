"""How busy a file system is."""
