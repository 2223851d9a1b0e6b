"""What is true of each simulated job over a window: disk-seconds, bytes and operations, as its servers counted them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

import numpy as np

from iolens.arrays import Floats
from iolens.simulator.jobs import Job
from iolens.simulator.planted_counts import Counts
from iolens.simulator.workload import SIZES

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
