"""Sample this node, or all nodes, at the begin of a job."""

from __future__ import annotations

import click

from iolens.cli.shared_job_options import Sampling, sampling_options


@click.command(
    "begin",
    epilog="""\b
Examples:
  iolens job begin                     in a prolog, which runs on every node
  iolens job begin --via srun          in a batch script, for all nodes of the job
  iolens job begin --job-id 17 --folder /shared/jobs
""",
)
@sampling_options
def COMMAND(sampling: Sampling) -> None:
    """Sample the Lustre clients of this node for the job that begins.

    The job is the one of the environment (Slurm, PBS). Its samples go to FOLDER/JOB/NODE.job.
    """
    from iolens.sources.job_files import BEGIN

    sampling.sample(BEGIN, sampling.job())
