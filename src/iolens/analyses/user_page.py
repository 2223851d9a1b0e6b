"""Jobs of a user: those to show first, and sums over what is known."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from iolens.analyses.job_page import DiskCost, MissingPart
from iolens.analyses.job_search import MergedJob
from iolens.analyses.runs.advise import AdviceLine
from iolens.run_tables import rate_of

if TYPE_CHECKING:
    from iolens.analyses.explain.analysis import RunExplanation


# What the page of a user says. It has no name of anybody else ---------------------------------------------------------


@dataclass(frozen=True, slots=True)
class UserJob:
    """One job of the user; None is not known. Disk time is summed over file systems."""

    job_id: str
    name: str | None  # its program, else what the scheduler calls it
    start: datetime | None
    duration_s: float | None
    core_hours: float | None
    read_bytes: int | None
    write_bytes: int | None
    disk_seconds: float | None
    runs: int  # with a log

    @property
    def moved_bytes(self) -> int | None:
        """Read and written; None: neither is known."""
        known = [value for value in (self.read_bytes, self.write_bytes) if value is not None]
        return sum(known) if known else None


@dataclass(frozen=True, slots=True)
class UserDay:
    """A day or week on one file system; the file system is None where bytes are those of logs alone."""

    day: date
    filesystem: str | None
    share_pct: float | None  # of the disk time
    disk_seconds: float | None
    moved_bytes: int | None


@dataclass(frozen=True, slots=True)
class UserUse:
    """What the user cost one file system."""

    filesystem: str
    cost: DiskCost


@dataclass(frozen=True, slots=True)
class UserPage:
    """One user in a window; None is not known."""

    user: str
    window_start: datetime
    window_end: datetime
    jobs: int
    runs: int  # with a log
    core_hours: float | None
    io_core_hours: float | None  # in I/O calls, by the logs
    read_bytes: int | None
    write_bytes: int | None
    uses: Sequence[UserUse]
    top_jobs: Sequence[UserJob]  # first by disk time, bytes or core-hours
    days: Sequence[UserDay]
    days_each: int  # 7: they are weeks
    advice: Sequence[AdviceLine]
    is_judged: bool
    slow_runs: Sequence[RunExplanation]
    missing: Sequence[MissingPart]


FIRST: Final = 5  # by each of disk time, bytes and core-hours


def user_job(job: MergedJob) -> UserJob:
    """What the page says of it."""
    return UserJob(
        job.job_id,
        job.name,
        job.start,
        job.duration_s,
        job.core_hours,
        job.read_bytes,
        job.write_bytes,
        job.disk_seconds,
        job.runs,
    )


def first_jobs(jobs: Sequence[UserJob], most: int = FIRST) -> list[UserJob]:
    """Those that are first by disk time, by bytes or by core-hours."""
    chosen: dict[str, UserJob] = {}
    for name in ("disk_seconds", "moved_bytes", "core_hours"):
        known = [job for job in jobs if getattr(job, name)]
        chosen |= {job.job_id: job for job in sorted(known, key=lambda job: -getattr(job, name))[:most]}
    order = sorted(chosen.values(), key=lambda job: (-(job.disk_seconds or 0.0), -(job.moved_bytes or 0)))
    return sorted(order, key=lambda job: job.disk_seconds is None)


def total(values: Iterable[float | None]) -> float | None:
    """The sum of what is known; None: nothing is."""
    known = [value for value in values if value is not None]
    return sum(known) if known else None


# Which runs of a user may have been slow ------------------------------------------------------------------------------
# Below the first quartile of the same program on as many processes.

FEWEST: Final = 6  # a run and five to compare it with

Row = Mapping[str, Any]


def slow_candidates(rows: Sequence[Row], most: int) -> list[Row]:
    """Those with most I/O time first; `rows` have bytes and the I/O time of the slowest rank."""
    groups: dict[tuple[Any, Any], list[tuple[float, Row]]] = {}
    for row in rows:
        if (rate := rate_of(row).mib_per_s) is not None:
            groups.setdefault((row["executable"], row["processes"]), []).append((rate, row))
    slow = [row for members in groups.values() for row in _slow(members)]
    return sorted(slow, key=lambda row: -(rate_of(row).seconds or 0.0) * (row["processes"] or 1))[:most]


def _slow(members: Sequence[tuple[float, Row]]) -> list[Row]:
    if len(members) < FEWEST:
        return []
    quartile = float(np.percentile([rate for rate, _ in members], 25))
    return [row for rate, row in members if rate < quartile]
