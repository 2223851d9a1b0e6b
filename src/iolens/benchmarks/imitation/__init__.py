"""Which runs of IOR do what a job did (SPEC N5): from a Darshan log, or from the counters of a job's nodes."""
