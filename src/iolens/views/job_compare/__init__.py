"""How results of `job_compare` are shown."""
