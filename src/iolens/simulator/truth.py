"""What is true of a simulated window: the numbers `iolens utilization` must find again."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from iolens.errors import UsageError
from iolens.simulator.activity import TickBlock
from iolens.simulator.job_truth import JobTruths
from iolens.simulator.workload import SIZES
from iolens.units import MIB, epoch_us, parse_time

CATEGORIES: Final = ("idle", "moderate", "busy")
IDLE_BELOW_PCT: Final = 2.0
BUSY_ABOVE_PCT: Final = 30.0
_FIRST_OPTIMAL: Final = SIZES.index(MIB)


def _three() -> NDArray[np.int64]:
    return np.zeros(3, np.int64)


@dataclass(slots=True)
class Truth:
    """Sums over ticks; each tick is the mean over targets. `jobs` has what is true of each job."""

    ticks: int = 0
    target_ticks: int = 0
    fsu_sum_pct: float = 0.0
    most_pct: float = 0.0
    observations: NDArray[np.int64] = field(default_factory=_three)
    optimal: NDArray[np.int64] = field(default_factory=_three)
    suboptimal: NDArray[np.int64] = field(default_factory=_three)
    jobs: JobTruths = field(default_factory=JobTruths)

    @property
    def job_disk_s(self) -> dict[str, float]:
        """Disk-seconds of each job's I/Os, by the workload's disk model."""
        return self.jobs.disk_s()

    def add(self, block: TickBlock) -> None:
        """Take a block in."""
        mean = block.fsu_pct.mean(axis=1)
        category = np.where(mean < IDLE_BELOW_PCT, 0, np.where(mean <= BUSY_ABOVE_PCT, 1, 2))
        by_size = block.counts.sum(axis=(0, 3))
        self.ticks += block.ticks
        self.target_ticks += block.fsu_pct.size
        self.fsu_sum_pct += float(mean.sum())
        self.most_pct = max(self.most_pct, float(block.fsu_pct.max(initial=0.0)))
        for number in range(3):
            of_category = by_size[:, category == number]
            self.observations[number] += of_category.shape[1]
            self.optimal[number] += of_category[_FIRST_OPTIMAL:].sum()
            self.suboptimal[number] += of_category[:_FIRST_OPTIMAL].sum()

    def merge(self, other: Truth) -> None:
        """Take another window in."""
        self.ticks += other.ticks
        self.target_ticks += other.target_ticks
        self.fsu_sum_pct += other.fsu_sum_pct
        self.most_pct = max(self.most_pct, other.most_pct)
        self.observations += other.observations
        self.optimal += other.optimal
        self.suboptimal += other.suboptimal
        self.jobs.merge(other.jobs)

    def summary(self) -> dict[str, Any]:
        """The result as JSON writes it."""
        return {
            "samples": self.ticks,
            "target_samples": self.target_ticks,
            "mean_fsu_pct": _share(self.fsu_sum_pct, self.ticks),
            "busy_time_pct": _share(100.0 * int(self.observations[2]), self.ticks),
            "largest_target_fsu_pct": self.most_pct,
            "categories": [
                {
                    "name": name,
                    "observations_pct": _share(100.0 * int(self.observations[n]), self.ticks),
                    "optimal_pct": _share(100.0 * int(self.optimal[n]), int(self.optimal[n] + self.suboptimal[n])),
                    "suboptimal_pct": _share(
                        100.0 * int(self.suboptimal[n]), int(self.optimal[n] + self.suboptimal[n])
                    ),
                }
                for n, name in enumerate(CATEGORIES)
            ],
        }


def _share(part: float, whole: int) -> float | None:
    return part / whole if whole else None


def refuse_overlap(truth: Path, identity: str, start_us: int, end_us: int) -> None:
    """Two simulations of the same hours would be added up; the very same one again is harmless."""
    if not truth.is_file():
        return
    known = json.loads(truth.read_text())
    known_start, known_end = (epoch_us(parse_time(known[name])) for name in ("from", "to"))
    same = known["identity"] == identity and (known_start, known_end) == (start_us, end_us)
    if not same and known_start < end_us and start_us < known_end:
        targets = f"{known['osts']} OSTs" if "osts" in known else f"{known['targets']} targets"
        raise UsageError(
            f"{truth.parent} holds another simulation of {known['filesystem']}, {known['from']} to {known['to']}"
            f" (seed {known['seed']}, {targets}): take another store or other days"
        )
