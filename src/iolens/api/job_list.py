"""Jobs of a store's window, those that did most first."""

from __future__ import annotations

from typing import Final

from iolens.analyses.job_list.analysis import MOST_SHOWN, JobList, job_list
from iolens.analyses.job_list.reported import ReportedJobs
from iolens.api.access.store_analyses import StoreAnalyses
from iolens.api.job_totals import jobs_of_window
from iolens.api.stored_job_report import report_of_opened_job
from iolens.store.jobs import JobFilter
from iolens.store.scope import Scope

LISTED: Final = 10  # jobs in a report
REPORTED: Final = 2  # of them in full


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


def reported_jobs(opened: StoreAnalyses, scope: Scope, reported: int = REPORTED) -> ReportedJobs:
    """The jobs of a window as a report shows them: a list, and the first of them in full."""
    listed = listed_jobs(opened, scope, JobFilter(), top=LISTED)
    reports = [report_of_opened_job(opened.store, job.jobid, job.cluster) for job in listed.jobs[:reported]]
    return ReportedJobs(listed.filesystem, listed.window_start, listed.window_end, listed, reports)
