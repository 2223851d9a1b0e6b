"""What memory does for reads and writes of files that fit into it and files that do not (N7)."""
