"""Whose disk time it was: the disk time of targets, shared among the jobs that asked for it (B1)."""
