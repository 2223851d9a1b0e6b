"""Who did it: the jobs that run at one time, and the share of the disk I/Os that is each one's."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from iolens.simulator.planted_jobs import PlantedJob
from iolens.simulator.workload import SimulatedWorkload

GOLDEN = 0.6180339887498949


class Job(NamedTuple):
    """One job of a user's stream, where the next follows when it ends, or a planted one, which has a name and nodes."""

    job_id: str
    user: str
    project: str
    start_s: int
    end_s: int
    name: str | None = None
    nodes: int | None = None


def running_jobs(workload: SimulatedWorkload, second: int) -> list[Job]:
    """The job of each stream at that time, in the order of the workload."""
    return [job_of_stream(workload, number, second) for number in range(len(workload.jobs))]


def jobs_between(workload: SimulatedWorkload, start_s: int, end_s: int) -> Iterator[Job]:
    """Every job that ends in (start, end], planted ones last."""
    for number in range(len(workload.jobs)):
        job = job_of_stream(workload, number, start_s)
        while job.end_s <= end_s:
            yield job
            job = job_of_stream(workload, number, job.end_s)
    yield from (job_of_planted(job) for job in workload.planted if start_s < job.end_s <= end_s)


def job_of_stream(workload: SimulatedWorkload, number: int, second: int) -> Job:
    """The job that a stream runs at that time."""
    stream = workload.jobs[number]
    length = int(stream.length_s)
    turn = second // length
    return Job(str(turn * len(workload.jobs) + number), stream.user, stream.project, turn * length, (turn + 1) * length)


def job_of_planted(job: PlantedJob) -> Job:
    """A planted job as the scheduler knows it."""
    return Job(job.job_id, job.user, job.project, job.start_s, job.end_s, job.executable, job.nodes)


def planted_at(workload: SimulatedWorkload, second: int) -> list[tuple[int, Job]]:
    """The planted jobs that run at that time, with their numbers, which follow those of the streams."""
    first = len(workload.jobs)
    running = ((first + place, job) for place, job in enumerate(workload.planted) if job.start_s <= second < job.end_s)
    return [(number, job_of_planted(job)) for number, job in running]


def dealt_out(
    counts: NDArray[np.int64], workload: SimulatedWorkload, turn: NDArray[np.int64] | int
) -> NDArray[np.int64]:
    """Counts divided between the jobs by weight, jobs first; they add up. `turn` varies who gets the odd one."""
    return divided(counts, [job.weight for job in workload.jobs], turn)


def divided(counts: NDArray[np.int64], weights: Sequence[float], turn: NDArray[np.int64] | int) -> NDArray[np.int64]:
    """Counts divided by weight, parts first; they add up. `turn` varies which part gets the odd one."""
    offset = (np.asarray(turn) * GOLDEN) % 1.0
    shares = _cumulative(tuple(weights)).reshape(-1, *(1 for _ in counts.shape))
    upto = np.floor(counts * shares + offset)
    parts = np.minimum(upto, counts, out=upto).astype(np.int64)
    parts[1:] -= parts[:-1].copy()
    return parts


@cache
def _cumulative(weights: tuple[float, ...]) -> NDArray[np.float64]:
    """Shares of the first part, of the first two and so on; of all parts exactly 1."""
    cumulative: NDArray[np.float64] = np.cumsum(weights) / np.sum(weights)
    cumulative[-1] = 1.0
    return cumulative
