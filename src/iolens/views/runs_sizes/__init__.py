"""Sizes of accesses of all runs."""
