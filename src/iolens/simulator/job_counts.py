"""Whose counts are whose: the background dealt out to jobs, and what else loads the OSTs of planted ones."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

import numpy as np

from iolens.simulator.activity import (
    Activity,
    Counts,
    Job,
    PlantedCounts,
    TickBlock,
    dealt_out,
    job_of_planted,
    job_of_stream,
    without,
)
from iolens.simulator.workload import PlantedJob, SimulatedWorkload

# Whose counts are whose -----------------------------------------------------------------------------------------------
# The background dealt out to the streams of jobs by weight, planted counts to their jobs.


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


# What else loads the OSTs of a planted job while it does its I/O, and how much that slows it down ---------------------
# I/O time of an application = its own disk time × (1 + SLOWDOWN × load of others ÷ 100). The load of others is their
# FSU on its OSTs, percent, each tick and OST weighted with the job's own disk time there.

SLOWDOWN: Final = 1.5  # beside a disk that others keep busy all the time an I/O takes 2.5 times as long


def load_of_others_pct(activity: Activity, job: PlantedJob) -> float:
    """Load of others over the job's time; 0 where it does no I/O."""
    first, end = job.start_s // activity.tick_s, job.end_s // activity.tick_s
    sums = np.zeros(2)
    for block in activity.blocks(first, end - first, activity.ticks_per_hour):
        for part in block.planted:
            if part.job.job_id == job.job_id:
                sums += weighted_load(activity, block, part)
    return float(sums[1] / sums[0]) if sums[0] else 0.0


def weighted_load(activity: Activity, block: TickBlock, part: PlantedCounts) -> tuple[float, float]:
    """Disk-seconds of a job in a block, and their product with the load of others in per cent, summed."""
    own_s = activity.disk_s(part.counts)
    here = slice(part.first_tick - block.first_tick, part.end_tick - block.first_tick)
    others_pct = block.fsu_pct[here] - own_s * (100.0 / activity.tick_s)
    return float(own_s.sum()), float((own_s * others_pct).sum())
