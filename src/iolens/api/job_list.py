"""Jobs of a store's window, those that did most first."""

from __future__ import annotations

from typing import Final

from iolens.analyses.attribution.by_job import disk_seconds_of
from iolens.analyses.calibration.applied import AppliedCalibration, applied_calibrations
from iolens.analyses.job_list.analysis import MOST_SHOWN, JobList, job_list
from iolens.analyses.job_list.reported import ReportedJobs
from iolens.api.access.store_analyses import StoreAnalyses
from iolens.api.job_totals import jobs_of_window
from iolens.api.stored_job_report import report_of_opened_job
from iolens.store.jobs import JobFilter
from iolens.store.scope import Scope
from iolens.store.selection import StoreSelection

LISTED: Final = 10  # jobs in a report
REPORTED: Final = 2  # of them in full


def listed_jobs(
    opened: StoreAnalyses, scope: Scope, like: JobFilter, sorted_by: str = "bytes", top: int = MOST_SHOWN
) -> JobList:
    """Jobs that ran in the scope's window and are as `like` says."""
    chosen = jobs_of_window(opened, scope, like)
    jobs = [line.job for line in chosen.jobs]
    disk = opened.ask(lambda selection: disk_seconds_of(selection, jobs, own_calibrations(opened, selection)), scope)
    return job_list(
        chosen.filesystem,
        chosen.jobs,
        (scope.since, scope.until),
        sorted_by,
        top,
        without_counters=len(chosen.without_counters),
        running=chosen.running,
        disk=disk,
    )


def own_calibrations(opened: StoreAnalyses, selection: StoreSelection) -> list[AppliedCalibration]:
    """Calibrations of the file system's own, stored or configured; a published one would price another's disks."""
    configured = opened.config.filesystem(selection.filesystem).calibration
    stored = opened.store.calibrations()
    if configured is None and all(row["filesystem"] != selection.filesystem for row in stored):
        return []
    name, extent_us = selection.filesystem, selection.extent_us("job_io")
    return applied_calibrations(stored, opened.config, configured, name, extent_us, selection.known_targets())[0]


def reported_jobs(opened: StoreAnalyses, scope: Scope, reported: int = REPORTED) -> ReportedJobs:
    """The jobs of a window as a report shows them: a list, and the first of them in full."""
    listed = listed_jobs(opened, scope, JobFilter(), top=LISTED)
    reports = [report_of_opened_job(opened.store, job.jobid, job.cluster) for job in listed.jobs[:reported]]
    return ReportedJobs(listed.filesystem, listed.window_start, listed.window_end, listed, reports)
