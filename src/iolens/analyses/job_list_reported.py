"""The jobs of a report: a list of those that moved most, and the whole reports of the first few."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from iolens.analyses.job_list import JobList
from iolens.analyses.job_report import JobReport


@dataclass(frozen=True, slots=True)
class ReportedJobs:
    """Jobs of one file system in the report of a centre."""

    filesystem: str
    window_start: datetime | None
    window_end: datetime | None
    listed: JobList
    reports: Sequence[JobReport]  # of the first jobs of the list
