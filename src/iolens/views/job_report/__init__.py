"""How the report of a job looks in a terminal and at the end of a batch job's output."""
