"""Darshan logs, read through libdarshan-util of the `darshan` wheel: records as arrays, in processes that may die."""
