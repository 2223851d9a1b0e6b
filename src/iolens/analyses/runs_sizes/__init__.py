"""Sizes of accesses over all runs, and which projects dominate a size."""
