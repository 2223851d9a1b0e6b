"""What lies in a file system: inode lists, Robinhood, size histograms."""
