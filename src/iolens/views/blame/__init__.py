"""Who made a file system busy, for people."""
