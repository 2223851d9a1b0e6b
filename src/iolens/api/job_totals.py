"""Jobs of a window with what they did to a file system: records of the scheduler, and counters of their nodes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from iolens.analyses.job_totals.results import JobTotals, KnownJob
from iolens.analyses.job_totals.sharing import sharing_jobs
from iolens.analyses.job_totals.sums import job_totals, sampled_jobs
from iolens.api.access.store_analyses import StoreAnalyses
from iolens.errors import OptionError
from iolens.sources.schedulers.node_lists import expand_nodes
from iolens.store.jobs import JobFilter
from iolens.store.scope import Scope
from iolens.store.selection import StoreSelection
from iolens.units import from_epoch_us

MOST_LOOKED_THROUGH: Final = 200_000  # jobs of the window among which company is looked for


@dataclass(frozen=True, slots=True)
class JobsOfWindow:
    """The jobs that were asked for, in the order of their start, as far as counters tell what they did."""

    filesystem: str
    jobs: Sequence[JobTotals]
    without_counters: Sequence[KnownJob]
    running: int  # left out: they have not ended


def jobs_of_window(opened: StoreAnalyses, scope: Scope, like: JobFilter | None = None) -> JobsOfWindow:
    """Jobs that ran in the scope's window and are as `like` says, each with its totals on the scope's file system.

    Jobs that were sampled at begin and end count even where no record of the scheduler is stored, unless `like` asks
    for what only a record knows.
    """
    if scope.targets:
        raise OptionError("--target does not go with jobs: a node's counters are summed over all targets")
    return opened.ask(lambda selection: _jobs(opened, selection, scope, like or JobFilter()), scope)


def _jobs(opened: StoreAnalyses, selection: StoreSelection, scope: Scope, like: JobFilter) -> JobsOfWindow:
    rows = opened.store.jobs(scope.since, scope.until, like=like)
    known = [KnownJob.of_row(row, expand_nodes) for row in rows]
    ended = [job for job in known if not job.is_running]
    if like == JobFilter(job_ids=like.job_ids):
        recorded = {job.job_id for job in known}
        ended += [job for job in sampled_jobs(selection, like.job_ids) if job.job_id not in recorded]
    totals = job_totals(selection, ended, _sharing(opened, ended))
    counted = {id(line.job) for line in totals}
    silent = [job for job in ended if id(job) not in counted]
    in_order = sorted(totals, key=lambda line: (line.job.start_us, line.job.job_id))
    return JobsOfWindow(selection.filesystem, in_order, silent, len(known) - sum(not job.is_running for job in known))


def _sharing(opened: StoreAnalyses, jobs: Sequence[KnownJob]) -> list[bool | None]:
    """Whether other jobs, whoever's, were on a job's nodes; None where its nodes or all the others are not known."""
    if not jobs:
        return []
    since = from_epoch_us(min(job.start_us for job in jobs))
    until = from_epoch_us(max(job.end_us for job in jobs) + 1)
    rows = opened.store.jobs(since, until)
    if len(rows) > MOST_LOOKED_THROUGH:
        return [None] * len(jobs)
    everyone = [KnownJob.of_row(row, expand_nodes) for row in rows]
    shares = {_key(job): bool(flag) for job, flag in zip(everyone, sharing_jobs(everyone), strict=True)}
    return [shares.get(_key(job)) if job.hosts else None for job in jobs]


def _key(job: KnownJob) -> tuple[str | None, str, int]:
    return job.cluster, job.job_id, job.start_us
