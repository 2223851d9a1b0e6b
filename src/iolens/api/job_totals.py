"""Jobs of a window with what they did to a file system, and when they moved their bytes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import narwhals as nw
import pyarrow as pa

from iolens.analyses.attribution.job_sums import MovedBytes
from iolens.analyses.job_totals import JobTotals, KnownJob, job_totals, sampled_jobs, sharing_jobs
from iolens.api.store_analyses import StoreAnalyses
from iolens.columns import DIRECTIONS
from iolens.errors import OptionError
from iolens.sources.schedulers.node_lists import expand_nodes
from iolens.store.jobs import JobFilter
from iolens.store.scope import Scope
from iolens.store.selection import StoreSelection
from iolens.units import DAY_US, epoch_us, from_epoch_us

# Jobs of a window with what they did to a file system -----------------------------------------------------------------
# Records of the scheduler, and counters of their nodes.

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


# When jobs moved their bytes, where no server counted by job ----------------------------------------------------------
# By Darshan logs, else by counters of nodes (B1).

HEAT_MAP_MODULES: Final = ("POSIX", "STDIO", "DFS")  # what MPI-IO moves is in POSIX, too
LONGEST_RUN_US: Final = 7 * DAY_US  # runs that began up to a week before a window may reach into it
RUN_COLUMNS: Final = ("run_id", "job_id", "start_us", "epoch_us", "read_bytes", "write_bytes")
Row = Mapping[str, Any]


def moved_by_jobs(opened: StoreAnalyses, scope: Scope) -> list[MovedBytes]:
    """Of each run its heat map, else its bytes from its first open to its last close; of jobs without a log their
    nodes' counters over the whole job.
    """
    window = Scope(scope.filesystem, scope.since, scope.until)
    since_us = 0 if scope.since is None else epoch_us(scope.since)
    earlier = None if scope.since is None else from_epoch_us(max(since_us - LONGEST_RUN_US, 0))
    logged = opened.ask_all(lambda runs: _of_runs(runs, since_us), Scope(scope.filesystem, earlier, scope.until))
    with_log = {stretch.job_id for stretch in logged}
    totals = jobs_of_window(opened, window).jobs
    counted = [
        MovedBytes(line.job.job_id, line.job.start_us, line.job.end_us, line.read_bytes or 0, line.write_bytes or 0)
        for line in totals
        if line.job.job_id not in with_log
    ]
    return [*logged, *counted]


def _of_runs(selection: StoreSelection, since_us: int) -> list[MovedBytes]:
    """Of runs that ended after `since_us`, those that began before among them."""
    if selection.window[1] is None or not selection.holds("runs"):
        return []
    runs = _rows(selection.frame("runs").select(*RUN_COLUMNS).filter(nw.col("epoch_us") > since_us))
    ids = pa.table({"run_id": pa.array([run["run_id"] for run in runs], pa.string())})
    series = _series(selection, ids) if runs and selection.holds("run_series") else {}
    opens = _opens(selection, ids) if runs and selection.holds("run_files") else {}
    return [stretch for run in runs if run["job_id"] for stretch in _stretches(run, series, opens)]


def _stretches(run: Row, series: Mapping[str, list[Row]], opens: Mapping[str, Row]) -> Iterator[MovedBytes]:
    """Of one run; where its open and close times are not known, from its start to its end."""
    if run["run_id"] in series:
        for row in series[run["run_id"]]:
            start_us = run["start_us"] + round(row["bin"] * row["bin_s"] * 1e6)
            end_us = start_us + round(row["bin_s"] * 1e6)
            yield MovedBytes(run["job_id"], start_us, end_us, row["read_bytes"] or 0, row["write_bytes"] or 0)
        return
    times = opens.get(run["run_id"])
    first_s, last_s = (times["first_s"], times["last_s"]) if times else (None, None)
    start_us = run["start_us"] if first_s is None else run["start_us"] + round(first_s * 1e6)
    end_us = run["epoch_us"] if last_s is None else run["start_us"] + round(last_s * 1e6)
    yield MovedBytes(run["job_id"], start_us, end_us, run["read_bytes"] or 0, run["write_bytes"] or 0)


def _series(selection: StoreSelection, ids: pa.Table) -> dict[str, list[Row]]:
    rows = _of(selection, "run_series", ids).filter(nw.col("module").is_in(list(HEAT_MAP_MODULES)))
    moved = [nw.col(f"{direction}_bytes").sum().cast(nw.Int64) for direction in DIRECTIONS]  # DuckDB sums to decimals
    sums = rows.group_by("run_id", "bin", "bin_s").agg(*moved)
    by_run: dict[str, list[Row]] = {}
    for row in _rows(sums):
        by_run.setdefault(row["run_id"], []).append(row)
    return by_run


def _opens(selection: StoreSelection, ids: pa.Table) -> dict[str, Row]:
    times = _of(selection, "run_files", ids).group_by("run_id")
    rows = times.agg(nw.col("open_start_s").min().alias("first_s"), nw.col("close_end_s").max().alias("last_s"))
    return {row["run_id"]: row for row in _rows(rows)}


def _of(selection: StoreSelection, table: str, ids: pa.Table) -> nw.LazyFrame[Any]:
    return selection.frame(table).join(selection.beside(ids), on="run_id", how="semi")


def _rows(frame: nw.LazyFrame[Any]) -> list[Row]:
    rows: list[Row] = frame.collect(backend="pyarrow").to_native().to_pylist()
    return rows
