"""I/O interfaces by the size of runs."""
