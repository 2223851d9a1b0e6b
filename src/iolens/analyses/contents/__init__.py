"""Sizes, ages, owners and number of inodes."""
