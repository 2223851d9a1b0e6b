"""Who made a file system busy, in the report."""
