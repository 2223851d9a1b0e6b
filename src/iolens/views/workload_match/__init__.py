"""How results of `workload_match` are shown."""
