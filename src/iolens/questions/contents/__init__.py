"""What a file system holds."""
