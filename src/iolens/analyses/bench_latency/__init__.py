"""Latency of the system calls behind a small write and read."""
