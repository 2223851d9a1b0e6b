"""Who made the file system busy (B1)."""
