"""What each of many jobs did to a file system: bytes, RPCs by size, metadata operations; one sum per job."""
