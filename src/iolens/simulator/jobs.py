"""Who did it: the jobs that run at one time, and the share of the disk I/Os that is each one's."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from iolens.simulator.workload import JobClass, SimulatedWorkload

GOLDEN = 0.6180339887498949


class Job(NamedTuple):
    """One job of a user's stream; the next follows when it ends."""

    job_id: str
    user: str
    project: str
    start_s: int
    end_s: int


def running_jobs(workload: SimulatedWorkload, second: int) -> list[Job]:
    """The job of each stream at that time, in the order of the workload."""
    return [_job(workload, number, job, second) for number, job in enumerate(workload.jobs)]


def jobs_between(workload: SimulatedWorkload, start_s: int, end_s: int) -> Iterator[Job]:
    """Every job that ends in (start, end]."""
    for number, stream in enumerate(workload.jobs):
        job = _job(workload, number, stream, start_s)
        while job.end_s <= end_s:
            yield job
            job = _job(workload, number, stream, job.end_s)


def dealt_out(
    counts: NDArray[np.int64], workload: SimulatedWorkload, turn: NDArray[np.int64] | int
) -> NDArray[np.int64]:
    """Counts divided between the jobs by weight, jobs first; they add up. `turn` varies who gets the odd one."""
    weights = np.array([job.weight for job in workload.jobs])
    cumulative = np.cumsum(weights) / weights.sum()
    cumulative[-1] = 1.0
    offset = (np.asarray(turn) * GOLDEN) % 1.0
    upto = np.stack([np.floor(counts * share + offset) for share in cumulative])
    np.minimum(upto, counts, out=upto)
    return np.diff(upto, axis=0, prepend=0.0).astype(np.int64)


def _job(workload: SimulatedWorkload, number: int, stream: JobClass, second: int) -> Job:
    length = int(stream.length_s)
    turn = second // length
    return Job(str(turn * len(workload.jobs) + number), stream.user, stream.project, turn * length, (turn + 1) * length)
