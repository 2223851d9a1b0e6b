"""Jobs that match, a page of them, with what all layers together know of each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Self

from iolens.analyses.calibration.state import HoldsDiskTime
from iolens.units import from_epoch_us


@dataclass(frozen=True, slots=True)
class MergedJob:
    """One job; None is not known.

    Bytes are those of its logs, else of job_stats, else of its nodes' counters; disk time is by job_stats. Where one
    file system is asked about, bytes and disk time are those on it, else on all.
    """

    job_id: str
    cluster: str | None
    user: str | None
    project: str | None
    name: str | None  # its program, else what the scheduler calls it
    job_name: str | None  # what the scheduler calls it
    start: datetime | None
    end: datetime | None  # None also of a running job
    duration_s: float | None
    nodes: int | None
    cores: int | None
    core_hours: float | None
    read_bytes: int | None
    write_bytes: int | None
    disk_seconds: float | None
    disk_share_pct: float | None  # of the file system that is asked about
    runs: int  # with a log
    state: str | None
    filesystems: Sequence[str]  # that it is known to have used
    known_by: Sequence[str]  # record, log, job_stats, nodes

    @classmethod
    def of_row(cls, row: Mapping[str, Any], *, has_share: bool = False) -> Self:
        """From a row of `store.merged_jobs`; `has_share`: its shares are of one file system."""
        own = dict(row)
        start_us, end_us, share_pct = (own.pop(name) for name in ("start_us", "end_us", "share_pct"))
        return cls(start=_time(start_us), end=_time(end_us), disk_share_pct=share_pct if has_share else None, **own)


@dataclass(frozen=True, slots=True)
class JobSearch(HoldsDiskTime):
    """The jobs after the first `skip` of `jobs_known` that match, by `sorted_by`.

    `disk_missing` says why disk time is not known, by file system. The calibration is that of disk time: of several
    file systems the weakest, and without a band.
    """

    filesystem: str | None
    window_start: datetime
    window_end: datetime
    text: str
    sorted_by: str
    reverse: bool
    skip: int
    jobs_known: int
    jobs: Sequence[MergedJob]
    disk_missing: Mapping[str, str]


def _time(time_us: int | None) -> datetime | None:
    return None if time_us is None else from_epoch_us(time_us)
