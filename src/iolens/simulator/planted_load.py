"""What else loads the OSTs of a planted job while it does its I/O, and how much that slows it down.

I/O time of an application = its own disk time × (1 + SLOWDOWN × load of others ÷ 100). The load of others is their FSU
on its OSTs, percent, each tick and OST weighted with the job's own disk time there.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from iolens.simulator.activity import Activity, TickBlock
from iolens.simulator.planted_counts import PlantedCounts
from iolens.simulator.planted_jobs import PlantedJob

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
