"""Who made a file system busy."""
