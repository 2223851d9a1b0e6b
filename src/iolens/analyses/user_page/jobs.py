"""Jobs of a user: those to show first, and sums over what is known."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from iolens.analyses.job_search.results import MergedJob
from iolens.analyses.user_page.results import UserJob

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
