"""How results of `workload` are shown."""
