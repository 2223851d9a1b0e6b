"""What a file system is used for."""
