"""How full a file system is, and when it will be."""
