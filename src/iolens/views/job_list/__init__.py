"""The list of jobs of a window."""
