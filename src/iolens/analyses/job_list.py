"""Jobs of a window, those that moved or did most first (N2)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from iolens.analyses.attribution.job_sums import NOT_ATTRIBUTED, DiskSeconds
from iolens.analyses.calibration.state import HoldsDiskTime
from iolens.analyses.job_totals import JobTotals
from iolens.units import from_epoch_us

MOST_SHOWN: Final = 20


@dataclass(frozen=True, slots=True)
class ListedJob:
    """One job and what it did to the file system; None is not known."""

    jobid: str
    cluster: str | None
    user: str | None
    name: str | None
    start: datetime
    duration_s: float
    nodes: int | None
    read_bytes: int | None
    write_bytes: int | None
    opens: int | None
    metadata_operations: int | None  # of every kind, opens among them
    rpcs: int | None
    disk_s: float | None  # time it kept the disks of OSTs busy, by job_stats and the calibration
    shares_nodes: bool | None  # with other jobs, whose I/O is in the counters
    observed_pct: float | None  # how much of its nodes' time the counters cover


@dataclass(frozen=True, slots=True)
class JobList(HoldsDiskTime):
    """The first `jobs` of `jobs_known`, by `sorted_by`. The calibration is that of `disk_s`; null: there is none."""

    filesystem: str
    window_start: datetime | None
    window_end: datetime | None
    sorted_by: str
    jobs_known: int
    jobs_without_counters: int
    jobs_running: int
    disk_calibrations: list[str]  # whose coefficients `disk_s` is of; empty: none is stored or configured
    disk_assumed_pct: float | None  # share of it for which disk I/Os per RPC are not known, and 1 is taken
    jobs: list[ListedJob]


ORDERS: Final[Mapping[str, Callable[[ListedJob], float]]] = {
    "bytes": lambda job: (job.read_bytes or 0) + (job.write_bytes or 0),
    "read": lambda job: job.read_bytes or 0,
    "written": lambda job: job.write_bytes or 0,
    "operations": lambda job: job.metadata_operations or 0,
    "opens": lambda job: job.opens or 0,
    "rpcs": lambda job: job.rpcs or 0,
    "disk": lambda job: job.disk_s or 0.0,
    "start": lambda job: -job.start.timestamp(),
}
"""What comes first: the most of it; by start, the earliest."""


def job_list(
    filesystem: str,
    totals: Sequence[JobTotals],
    window: tuple[datetime | None, datetime | None],
    sorted_by: str,
    top: int,
    without_counters: int = 0,
    running: int = 0,
    disk: DiskSeconds = NOT_ATTRIBUTED,
) -> JobList:
    """The list, cut after `top` jobs; `disk` has the disk-seconds by place in `totals`."""
    listed = (_listed(line, disk.by_job.get(number)) for number, line in enumerate(totals))
    jobs = sorted(listed, key=ORDERS[sorted_by], reverse=True)
    return JobList(
        filesystem,
        *window,
        sorted_by,
        len(jobs),
        without_counters,
        running,
        list(disk.calibrations),
        disk.assumed_pct,
        jobs[:top],
        **disk.calibrated,
    )


def _listed(line: JobTotals, disk_s: float | None) -> ListedJob:
    job = line.job
    return ListedJob(
        job.job_id,
        job.cluster,
        job.user,
        job.name,
        from_epoch_us(job.start_us),
        job.duration_s,
        job.nodes,
        line.read_bytes,
        line.write_bytes,
        line.opens,
        None if line.metadata is None else sum(line.metadata.values()),
        None if line.rpc_sizes is None else sum(size.reads + size.writes for size in line.rpc_sizes),
        disk_s,
        line.shares_nodes,
        line.observed_pct,
    )
