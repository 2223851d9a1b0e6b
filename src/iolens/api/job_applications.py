"""Applications of a store beside each other, or one across core counts."""

from __future__ import annotations

from iolens.analyses.job_applications.analysis import MOST_SHOWN, Applications, By, job_applications
from iolens.api.access.store_analyses import StoreAnalyses
from iolens.api.job_totals import jobs_of_window
from iolens.errors import UsageError
from iolens.store.jobs import JobFilter
from iolens.store.scope import Scope


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
        chosen.filesystem, chosen.jobs, by, top, without_counters=len(chosen.without_counters), running=chosen.running
    )
