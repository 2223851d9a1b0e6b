"""One run against its history and the state of the file system."""
