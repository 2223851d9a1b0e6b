"""Files of runs against their processes."""
