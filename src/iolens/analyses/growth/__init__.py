"""How many bytes a file system gains from day to day."""
