"""Schedulers' records of jobs: Slurm's `sacct`, PBS accounting logs, and tables of jobs in CSV."""
