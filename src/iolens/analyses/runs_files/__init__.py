"""Files of runs against their processes, and how many of the written ones are new."""
