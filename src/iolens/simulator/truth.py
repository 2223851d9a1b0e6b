"""What is true of a simulated window: utilization, and of each job its disk-seconds, bytes and operations."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from iolens.arrays import Floats
from iolens.errors import UsageError
from iolens.simulator.activity import Counts, Job, TickBlock
from iolens.simulator.workload import SIZES
from iolens.units import MIB, epoch_us, parse_time

# What is true of each simulated job over a window ---------------------------------------------------------------------
# Disk-seconds, bytes and operations, as its servers counted them.

MOST_JOBS: Final = 10_000  # of which a file tells


@dataclass(slots=True)
class JobTruth:
    """One job: disk-seconds of its I/Os by the workload's disk model, bytes, disk I/Os and metadata operations."""

    job: Job
    disk_s: float = 0.0
    read_bytes: int = 0
    write_bytes: int = 0
    operations: int = 0
    metadata_operations: int = 0

    def merge(self, other: JobTruth) -> None:
        """Take more of the same job in."""
        self.disk_s += other.disk_s
        self.read_bytes += other.read_bytes
        self.write_bytes += other.write_bytes
        self.operations += other.operations
        self.metadata_operations += other.metadata_operations

    def summary(self) -> dict[str, Any]:
        """As JSON writes it."""
        return {
            "job_id": self.job.job_id,
            "user": self.job.user,
            "project": self.job.project,
            "name": self.job.name,
            "disk_s": self.disk_s,
            "read_bytes": self.read_bytes,
            "write_bytes": self.write_bytes,
            "operations": self.operations,
            "metadata_operations": self.metadata_operations,
        }


@dataclass(slots=True)
class JobTruths:
    """All jobs of a window, by id."""

    by_id: dict[str, JobTruth] = field(default_factory=dict)

    def add_ios(self, job: Job, counts: Counts, seconds: Floats) -> None:
        """Disk I/Os of a job by direction and size; `seconds` is what each takes."""
        moved = counts @ np.array(SIZES)
        disk_s = float((counts * seconds).sum())
        self._add(JobTruth(job, disk_s, int(moved[0]), int(moved[1]), int(counts.sum())))

    def add_metadata(self, job: Job, operations: int) -> None:
        """Metadata operations of a job."""
        self._add(JobTruth(job, metadata_operations=operations))

    def merge(self, other: JobTruths) -> None:
        """Take another window in."""
        for truth in other.by_id.values():
            self._add(truth)

    def disk_s(self) -> dict[str, float]:
        """Disk-seconds by job."""
        return {job_id: truth.disk_s for job_id, truth in self.by_id.items()}

    def metadata_operations(self) -> dict[str, int]:
        """Metadata operations by job."""
        return {job_id: truth.metadata_operations for job_id, truth in self.by_id.items()}

    def summary(self) -> list[Mapping[str, Any]]:
        """The jobs that took most disk time, as JSON writes them."""
        largest = sorted(self.by_id.values(), key=lambda truth: (-truth.disk_s, truth.job.job_id))
        return [truth.summary() for truth in largest[:MOST_JOBS]]

    def _add(self, truth: JobTruth) -> None:
        if truth.job.job_id in self.by_id:
            self.by_id[truth.job.job_id].merge(truth)
        elif truth.operations or truth.metadata_operations:
            self.by_id[truth.job.job_id] = replace(truth)


# What is true of a simulated window -----------------------------------------------------------------------------------
# The numbers `iolens utilization` must find again.

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
