"""How results of `utilization` are shown."""
