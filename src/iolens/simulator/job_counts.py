"""Whose counts are whose: the background dealt out to the streams of jobs by weight, planted counts to their jobs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from iolens.simulator.activity import Activity, TickBlock, without
from iolens.simulator.jobs import Job, dealt_out, job_of_planted, job_of_stream
from iolens.simulator.planted_counts import Counts, PlantedCounts
from iolens.simulator.workload import SimulatedWorkload


class JobPart(NamedTuple):
    """What one job did from `first_tick` on; the last two dimensions of `counts` are ticks and targets.

    `number` is that of its stream; planted jobs are numbered after the streams.
    """

    job: Job
    number: int
    first_tick: int
    counts: Counts

    @property
    def end_tick(self) -> int:
        """The tick after its last."""
        return self.first_tick + int(self.counts.shape[-2])


def by_job(workload: SimulatedWorkload, block: TickBlock) -> Iterator[JobPart]:
    """Disk I/Os of each job in a block, direction × size × tick × OST; over all jobs they add up to the block's."""
    turn = block.first_tick + np.arange(block.ticks)[:, None] + np.arange(block.counts.shape[-1])
    yield from parts_of_jobs(workload, workload.tick_s, block.first_tick, block.background, turn, block.planted)


def operations_by_job(activity: Activity, first_tick: int, ticks: int, mdts: int) -> Iterator[JobPart]:
    """Metadata operations of each job, operation × tick × MDT."""
    done = activity.metadata_of(first_tick, ticks, mdts)
    planted = activity.planted_metadata(first_tick, ticks, mdts)
    turn = first_tick + np.arange(ticks)[:, None]
    background = without(done, first_tick, planted)
    yield from parts_of_jobs(activity.workload, activity.tick_s, first_tick, background, turn, planted)


def parts_of_jobs(
    workload: SimulatedWorkload,
    tick_s: int,
    first_tick: int,
    background: Counts,
    turn: Counts,
    planted: tuple[PlantedCounts, ...],
) -> Iterator[JobPart]:
    """Counts of ticks of `tick_s` by job. `turn` varies which stream gets the odd one."""
    dealt = dealt_out(background, workload, turn)
    end_tick = first_tick + background.shape[-2]
    for number in range(len(workload.jobs)):
        tick = first_tick
        while tick < end_tick:
            job = job_of_stream(workload, number, tick * tick_s)
            stop = min(end_tick, job.end_s // tick_s)
            yield JobPart(job, number, tick, dealt[number][..., tick - first_tick : stop - first_tick, :])
            tick = stop
    numbers = {job.job_id: len(workload.jobs) + place for place, job in enumerate(workload.planted)}
    for part in planted:
        yield JobPart(job_of_planted(part.job), numbers[part.job.job_id], part.first_tick, part.counts)
