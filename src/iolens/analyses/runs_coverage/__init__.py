"""How many jobs and core-hours have a Darshan log, by project, and which interfaces projects use."""
