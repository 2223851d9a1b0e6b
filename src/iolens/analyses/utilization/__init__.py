"""File System Utilization (paper U): how busy targets and file systems are."""
