"""How results of `job_applications` are shown."""
