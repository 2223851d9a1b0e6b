"""What the page of a user says. It has no name of anybody else."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import TYPE_CHECKING

from iolens.analyses.job_page.results import DiskCost, MissingPart
from iolens.analyses.runs.advise import AdviceLine

if TYPE_CHECKING:
    from iolens.analyses.explain.analysis import RunExplanation


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
