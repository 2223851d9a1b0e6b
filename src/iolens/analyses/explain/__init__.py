"""Was it me or the system: one run against its own history and the state of the file system (B9)."""
