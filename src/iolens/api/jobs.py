"""Jobs of a store: listed, searched, by application, and two groups of like ones compared."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final
from zoneinfo import ZoneInfo

import narwhals as nw
import pyarrow as pa

from iolens.analyses.attribution.job_sums import disk_seconds_of
from iolens.analyses.blame import WhoShare
from iolens.analyses.calibration.applied import AppliedCalibration, applied_calibrations
from iolens.analyses.calibration.state import RestsOnCalibration, together
from iolens.analyses.job_applications import MOST_SHOWN as JOB_APPLICATIONS_MOST_SHOWN
from iolens.analyses.job_applications import Applications, By, JobKey, LoggedSums, job_applications, logged_sums
from iolens.analyses.job_compare import SIGNIFICANT, JobComparison, JobsLeftOut, job_compare
from iolens.analyses.job_list import MOST_SHOWN as JOB_LIST_MOST_SHOWN
from iolens.analyses.job_list import JobList, job_list
from iolens.analyses.job_list_reported import ReportedJobs
from iolens.analyses.job_search import JobSearch, MergedJob
from iolens.analyses.job_totals import JobTotals, KnownJob, job_totals
from iolens.analyses.runs.matching import SLACK_US
from iolens.api.blame import BESIDE_US
from iolens.api.job_totals import JobsOfWindow, jobs_of_window
from iolens.api.job_use import job_shares
from iolens.api.page_parts import Piece, check_filesystems, page_window
from iolens.api.store_analyses import StoreAnalyses
from iolens.api.stored_job import report_of_opened_job
from iolens.errors import OptionError, UsageError
from iolens.nearest_names import not_among
from iolens.sources.schedulers.node_lists import expand_nodes
from iolens.store.jobs import (
    ORDERS,
    RUNS,
    SHARES,
    TOTALS,
    JobFilter,
    JobLayers,
    MergedCondition,
    record_columns,
    recorded_jobs,
    records_of,
)
from iolens.store.scope import Scope
from iolens.store.selection import StoreSelection
from iolens.units import epoch_us, from_epoch_us, iso
from iolens.visible_text import some_names

# What each layer of a store knows of jobs, as the tables that `store.merged_jobs` puts together -----------------------

Row = Mapping[str, Any]


def runs_table(rows: Sequence[Row]) -> pa.Table:
    """Rows of `runs`, with times in microseconds since 1970; the first that names a program names the job."""
    times = {"start_us": "start", "epoch_us": "time"}
    own = [name for name in RUNS.names if name != "place"]
    values = [{**{name: row[times.get(name, name)] for name in own}, "place": place} for place, row in enumerate(rows)]
    return pa.Table.from_pylist(values, RUNS)


def shares_table(lines: Iterable[tuple[str, bool, WhoShare]]) -> pa.Table:
    """Lines of blame by job, each with its file system and whether its bytes were counted by job_stats."""
    values = [
        {
            "job_id": line.name, "filesystem": filesystem, "disk_seconds": line.disk_seconds,
            "share_pct": line.share_pct, "read_bytes": line.read_bytes, "write_bytes": line.write_bytes,
            "user": line.user, "executable": line.executable, "is_counted": is_counted,
        }
        for filesystem, is_counted, line in lines
    ]  # fmt: skip
    return pa.Table.from_pylist(values, SHARES)


def totals_table(lines: Iterable[tuple[str, JobTotals]]) -> pa.Table:
    """Totals by counters of nodes, each with its file system."""
    values = [
        {
            "job_id": line.job.job_id, "cluster": line.job.cluster, "filesystem": filesystem,
            "read_bytes": line.read_bytes, "write_bytes": line.write_bytes,
        }
        for filesystem, line in lines
    ]  # fmt: skip
    return pa.Table.from_pylist(values, TOTALS)


# Jobs of a store's window, those that did most first ------------------------------------------------------------------

LISTED: Final = 10  # jobs in a report
REPORTED: Final = 2  # of them in full


def listed_jobs(
    opened: StoreAnalyses, scope: Scope, like: JobFilter, sorted_by: str = "bytes", top: int = JOB_LIST_MOST_SHOWN
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


# All jobs of a window that the store knows anything of, a page at a time ----------------------------------------------

MOST_SHOWN: Final = 50
CLIENT_IO: Final = "client_io"
BY_BYTES: Final = ("bytes", "read", "written")  # orders for which the bytes of every job must be known


@dataclass(frozen=True, slots=True)
class JobSearchOptions:
    """What is looked for; empty parts mean anything.

    `text` is the begin of an id, or a part of a user, project, program or job name, in any case; with `*` or `?` it is
    the whole of one of these. Users, projects, clusters and states are as they are stored; in names `*` and `?` stand
    for anything. `sort` is one of `SORTS`: the most or the newest first, with `reverse` last.
    """

    text: str = ""
    users: Sequence[str] = ()
    projects: Sequence[str] = ()
    names: Sequence[str] = ()
    clusters: Sequence[str] = ()
    states: Sequence[str] = ()
    sort: str = "start"
    reverse: bool = False
    top: int = MOST_SHOWN
    skip: int = 0


SORTS: Final = tuple(ORDERS)


def search_jobs(opened: StoreAnalyses, scope: Scope, wanted: JobSearchOptions | None = None) -> JobSearch:
    """Jobs that ran in the scope's window, or the last seven days of data; with a file system, those that used it."""
    asked = wanted or JobSearchOptions()
    _check(scope, asked)
    known = opened.store.targets_by_filesystem()
    if scope.filesystem is not None and scope.filesystem not in known:
        check_filesystems(opened, [scope.filesystem])
    window = page_window(opened, scope, sorted(known), ZoneInfo("UTC"))

    def answer(everything: StoreSelection) -> JobSearch:
        names = [name for name in sorted(known) if scope.filesystem in (None, name)]
        telemetry = [everything.of_filesystem(name, known[name]) for name in names]
        return _Search(opened, window, scope.filesystem, telemetry, asked).answer()

    return opened.ask_all(answer, Scope(None, *window))


def _calibrated(calibrations: Sequence[RestsOnCalibration]) -> dict[str, Any]:
    """Of the disk time of all file systems; a band is of one of them."""
    held = [item for item in calibrations if item.calibration_state is not None]
    return together(held, has_mean=len(held) == 1)


def _check(scope: Scope, asked: JobSearchOptions) -> None:
    if asked.sort not in ORDERS:
        raise UsageError(f"no order is called {asked.sort!r}{not_among(asked.sort, ORDERS)}")
    if scope.targets or scope.source or scope.rollup:
        raise OptionError("jobs are of all targets, sources and times: leave --target, --source and --resolution out")


@dataclass(frozen=True, slots=True)
class _Search:
    """One question: its window, the file system that it is about, and those whose servers are observed."""

    opened: StoreAnalyses
    window: Piece
    filesystem: str | None
    telemetry: Sequence[StoreSelection]
    asked: JobSearchOptions

    def answer(self) -> JobSearch:
        shares = [job_shares(self.opened, selection) for selection in self.telemetry]
        lines = [(known.filesystem, True, line) for known in shares for line in known.lines]
        with_counters = [selection for selection in self.telemetry if selection.holds(CLIENT_IO)]
        is_for_all = self.filesystem is not None or self.asked.sort in BY_BYTES
        totals = self._totals(with_counters, JobFilter()) if is_for_all else []
        layers = JobLayers(self._records(), self._runs(), shares_table(lines), totals_table(totals))
        rows, matched = self._page(layers)
        if not is_for_all and rows and with_counters:  # they change neither which jobs these are nor their order
            totals = self._totals(with_counters, JobFilter(job_ids=sorted({row["job_id"] for row in rows})))
            rows, _ = self._page(replace(layers, totals=totals_table(totals)))
        has_share = self.filesystem is not None
        jobs = [MergedJob.of_row(row, has_share=has_share) for row in rows]
        missing = {known.filesystem: known.why_not for known in shares if known.why_not}
        asked = self.asked
        return JobSearch(
            self.filesystem, *self.window, asked.text, asked.sort, asked.reverse, asked.skip, matched, jobs, missing,
            **_calibrated([known.calibration for known in shares]),
        )  # fmt: skip

    def _page(self, layers: JobLayers) -> tuple[list[dict[str, Any]], int]:
        asked = self.asked
        condition = MergedCondition(
            asked.text, asked.users, asked.projects, asked.names, asked.clusters, asked.states,
            did_io=self.filesystem is not None,
        )  # fmt: skip
        return layers.jobs(condition, asked.sort, reverse=asked.reverse, top=asked.top, skip=asked.skip)

    def _records(self) -> Any:
        """As the engine has them; what samples of nodes made is put together here, which few stores need."""
        recorded = recorded_jobs(self.opened.store.tables, *self.window)
        if recorded is None:
            return records_of(())
        if recorded.is_sampled:
            return records_of(self.opened.store.jobs(*self.window))
        return recorded.rows.project(record_columns())

    def _runs(self) -> pa.Table:
        """Those that ended in the window or later; they may have begun a while before it."""
        since, until = self.window
        earlier = from_epoch_us(max(epoch_us(since) - BESIDE_US, 0))
        selection = self.opened.store.select_all(Scope(self.filesystem, earlier, until))
        if not selection.holds("runs"):
            return RUNS.empty_table()
        frame = selection.frame("runs").filter(nw.col("epoch_us") >= epoch_us(since))
        names = [name for name in RUNS.names if name != "place"]
        rows: pa.Table = frame.select(*names).sort("start_us", "run_id").collect(backend="pyarrow").to_native()
        return rows.append_column("place", pa.array(range(len(rows)), pa.int64()))

    def _totals(self, with_counters: Sequence[StoreSelection], like: JobFilter) -> list[tuple[str, JobTotals]]:
        """By counters of nodes, of ended jobs that ran while there are any."""
        totals: list[tuple[str, JobTotals]] = []
        for selection in with_counters:
            if (extent_us := selection.extent_us(CLIENT_IO)) is None:
                continue
            first, last = map(from_epoch_us, extent_us)
            rows = self.opened.store.jobs(first, last, like=like)
            jobs = [KnownJob.of_row(row, expand_nodes) for row in rows if row["ended"] is not False]
            totals += [(selection.filesystem, line) for line in job_totals(selection, jobs)]
        return totals


# Applications of a store beside each other, or one across core counts -------------------------------------------------


def applications_of(
    opened: StoreAnalyses, scope: Scope, like: JobFilter, by: By = "name", top: int = JOB_APPLICATIONS_MOST_SHOWN
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


# Two groups of like jobs out of a store, and their comparison ---------------------------------------------------------

NAMED = 5

Group = tuple[str, list[JobTotals]]


def compare_at(
    opened: StoreAnalyses,
    scope: Scope,
    like: JobFilter,
    before: datetime | None,
    after: datetime | None,
    *,
    exclusive: bool = False,
    significance: float = SIGNIFICANT,
) -> JobComparison:
    """Jobs that ended by `before` and jobs that started at `after` or later; one of the two dates is enough."""
    first_date, second_date = before or after, after or before
    if first_date is None or second_date is None:
        raise OptionError("name a date (--before, --after, or both) or two lists of jobs (--jobs and --against)")
    if first_date > second_date:
        raise OptionError(f"--before {iso(first_date)} is later than --after {iso(second_date)}")
    chosen = jobs_of_window(opened, scope, like)
    early = [line for line in chosen.jobs if line.job.end_us <= epoch_us(first_date)]
    late = [line for line in chosen.jobs if line.job.start_us >= epoch_us(second_date)]
    left_out = replace(_left_out(chosen), in_between=len(chosen.jobs) - len(early) - len(late))
    sides, dates = (("before", early), ("after", late)), (first_date, second_date)
    return _compared(chosen, sides, dates, left_out, exclusive, significance)


def compare_lists(
    opened: StoreAnalyses,
    scope: Scope,
    like: JobFilter,
    jobs: Sequence[str],
    against: Sequence[str],
    *,
    exclusive: bool = False,
    significance: float = SIGNIFICANT,
) -> JobComparison:
    """Two lists of job ids; what differs in `jobs` is said with `against` as the reference."""
    if not jobs or not against:
        raise OptionError("--jobs and --against go together: two lists of job ids")
    if both := sorted({*jobs} & {*against}):
        raise OptionError(f"in both lists: job {some_names(both, NAMED)}")
    chosen = jobs_of_window(opened, scope, replace(like, job_ids=(*jobs, *against)))
    known = {line.job.job_id for line in chosen.jobs}
    if absent := [job_id for job_id in (*jobs, *against) if job_id not in known]:
        raise UsageError(f"{chosen.filesystem} has no counters of job {some_names(absent, NAMED)}")
    groups = [[line for line in chosen.jobs if line.job.job_id in listed] for listed in ({*against}, {*jobs})]
    sides = (("against", groups[0]), ("jobs", groups[1]))
    return _compared(chosen, sides, (None, None), _left_out(chosen), exclusive, significance)


def _left_out(chosen: JobsOfWindow) -> JobsLeftOut:
    return JobsLeftOut(running=chosen.running, without_counters=len(chosen.without_counters))


def _compared(
    chosen: JobsOfWindow,
    sides: tuple[Group, Group],
    dates: tuple[datetime | None, datetime | None],
    left_out: JobsLeftOut,
    exclusive: bool,
    significance: float,
) -> JobComparison:
    first, second = (
        (label, [line for line in lines if not exclusive or line.shares_nodes is False]) for label, lines in sides
    )
    kept = len(first[1]) + len(second[1])
    left_out = replace(left_out, sharing_nodes=sum(len(lines) for _, lines in sides) - kept)
    for label, lines in (first, second):
        if not lines:
            raise UsageError(_nothing(chosen.filesystem, label, left_out))
    return job_compare(chosen.filesystem, first, second, dates, left_out, significance)


def _nothing(filesystem: str, label: str, left_out: JobsLeftOut) -> str:
    """Which side is empty, and where its jobs went."""
    reasons = {
        "without counters": left_out.without_counters, "still running": left_out.running,
        "in between": left_out.in_between, "not alone on their nodes": left_out.sharing_nodes,
    }  # fmt: skip
    words = ", ".join(f"{count} {reason}" for reason, count in reasons.items() if count)
    return f"no such job on {filesystem} on the side {label!r}" + (f"; left out: {words}" if words else "")
