"""How results of `scan_summary` are shown."""
