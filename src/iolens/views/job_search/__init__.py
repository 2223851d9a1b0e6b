"""How results of `job_search` are shown."""
