"""Applications of a store beside each other, or one across core counts."""

from __future__ import annotations

from collections.abc import Sequence

from iolens.analyses.job_applications.analysis import (
    MOST_SHOWN,
    Applications,
    By,
    JobKey,
    LoggedSums,
    job_applications,
    logged_sums,
)
from iolens.analyses.job_totals.results import JobTotals
from iolens.analyses.runs.matching import SLACK_US
from iolens.api.access.store_analyses import StoreAnalyses
from iolens.api.job_totals import jobs_of_window
from iolens.errors import UsageError
from iolens.store.jobs import JobFilter
from iolens.store.scope import Scope
from iolens.units import from_epoch_us


def applications_of(
    opened: StoreAnalyses, scope: Scope, like: JobFilter, by: By = "name", top: int = MOST_SHOWN
) -> Applications:
    """Jobs that ran in the scope's window and are as `like` says, grouped by name, or by name and core count."""
    chosen = jobs_of_window(opened, scope, like)
    if not chosen.jobs:
        silent = len(chosen.without_counters)
        words = f"; of {silent} such jobs it has no counters" if silent else ""
        raise UsageError(f"{chosen.filesystem} has no job of that kind{words}")
    return job_applications(
        chosen.filesystem,
        chosen.jobs,
        by,
        top,
        without_counters=len(chosen.without_counters),
        running=chosen.running,
        logged=_logged(opened, chosen.jobs),
    )


def _logged(opened: StoreAnalyses, jobs: Sequence[JobTotals]) -> dict[JobKey, LoggedSums]:
    """Of runs around the jobs, whichever file system they used."""
    since = from_epoch_us(min(line.job.start_us for line in jobs) - SLACK_US)
    until = from_epoch_us(max(line.job.end_us for line in jobs) + SLACK_US)
    selection = opened.store.select_all(Scope(None, since, until))
    return logged_sums(selection) if selection.holds("runs") else {}
