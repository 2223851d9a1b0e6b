"""Jobs of a store's window, those that did most first."""

from __future__ import annotations

from iolens.analyses.job_list.analysis import MOST_SHOWN, JobList, job_list
from iolens.api.access.store_analyses import StoreAnalyses
from iolens.api.job_totals import jobs_of_window
from iolens.store.jobs import JobFilter
from iolens.store.scope import Scope


def listed_jobs(
    opened: StoreAnalyses, scope: Scope, like: JobFilter, sorted_by: str = "bytes", top: int = MOST_SHOWN
) -> JobList:
    """Jobs that ran in the scope's window and are as `like` says."""
    chosen = jobs_of_window(opened, scope, like)
    return job_list(
        chosen.filesystem,
        chosen.jobs,
        (scope.since, scope.until),
        sorted_by,
        top,
        without_counters=len(chosen.without_counters),
        running=chosen.running,
    )
