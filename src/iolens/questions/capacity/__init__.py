"""How full a file system is."""
