"""Runs of one project or program by their size."""
