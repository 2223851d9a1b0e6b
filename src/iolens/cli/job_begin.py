"""Sample this node, or all nodes, at the begin of a job."""

from __future__ import annotations

from typing import TYPE_CHECKING

from iolens.cli.lazy_verbs import verb
from iolens.cli.shared_job_options import sampling_options

if TYPE_CHECKING:
    from iolens.agent.jobs.requests import SamplingRequest


@verb(
    "job begin",
    "Sample this node, or all nodes, at the begin of a job",
    epilog="""\b
Examples:
  iolens job begin                     in a prolog, which runs on every node
  iolens job begin --via srun          in a batch script, for all nodes of the job
  iolens job begin --job-id 17 --folder /shared/jobs
  iolens job begin --spool /var/spool/iolens     nodes share no folder: the agent ships it
""",
)
@sampling_options
def job_begin(request: SamplingRequest) -> None:
    """Sample the Lustre clients of this node for the job that begins.

    The job is taken from the environment (Slurm, PBS). Its samples are written to FOLDER/JOB/NODE.job, or with
    --spool into the spool of the agent on this node, which ships them to the store when the job has ended.
    """
    request.begin(request.job())
