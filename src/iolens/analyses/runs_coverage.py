"""Which jobs and core-hours have a Darshan log (SPEC D3, Table II), and which bytes of the devices runs explain (D1).

A job with at least one log counts once, with all its core-hours (DEFINITIONS, Like jobs). Jobs are those that started
in the window and have ended.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

import narwhals as nw

from iolens.analyses.demand import RANKED, UNKNOWN
from iolens.analyses.results import pct
from iolens.analyses.runs.asked import (
    JoinedRuns,
    Line,
    OverRuns,
    RunConditions,
    counted_where,
    joined_counts,
    joined_of,
    lines_of,
    sums,
    window_of,
)
from iolens.analyses.runs.matching import SLACK_US, joined_runs
from iolens.schema import LATEST_US
from iolens.store.selection import StoreSelection
from iolens.units import epoch_us

LETTERS: Final = {"posix": "P", "stdio": "S", "mpiio": "M", "hdf5": "H", "pnetcdf": "N", "dfs": "D"}
"""Interfaces as Table II writes them; one counts for files that the application opened through it directly."""
_COUNTS: Final = ("jobs", "with_log", "hours", "hours_with_log", "running", "without_cores", "of_arrays")


@dataclass(frozen=True, slots=True)
class ProjectCoverage:
    """A line of Table II. Core-hours are those of jobs whose cores are known."""

    project: str | None
    jobs: int
    jobs_with_log: int
    jobs_pct: float | None
    core_hours: float
    core_hours_with_log: float
    core_hours_pct: float | None
    runs: int  # logs of its jobs, and logs without a job that name it
    apis: list[str]


@dataclass(frozen=True, slots=True)
class ExplainedBytes:
    """Bytes of runs on a file system beside those that its targets counted; None: not known."""

    filesystem: str
    run_bytes: int | None
    device_bytes: int | None
    explained_pct: float | None
    target_kind: str | None  # whose counters device_bytes are


@dataclass(frozen=True, slots=True, kw_only=True)
class RunCoverage(OverRuns):
    """Jobs of a window, and those that left a log; projects with most core-hours first."""

    jobs: int
    jobs_with_log: int
    jobs_pct: float | None
    core_hours: float
    core_hours_with_log: float
    core_hours_pct: float | None
    jobs_running: int  # left out: a log is written at the end
    jobs_without_cores: int  # in no sum of core-hours
    jobs_of_arrays: int  # recorded as 123_4, which no run names: matched by user, executable and time only
    joined: JoinedRuns
    projects_with_log: int
    projects: list[ProjectCoverage]
    explained: list[ExplainedBytes]


def runs_coverage(selection: StoreSelection, like: RunConditions | None = None) -> RunCoverage:
    """Jobs of the window beside their runs, by project.

    A filter of users and projects holds for jobs and runs, one of executables for runs only.
    """
    asked = (like or RunConditions()).of_any_size()
    runs = asked.kept(joined_runs(selection))
    used = {line["project"]: line for line in lines_of(_uses(runs))}
    jobs = {line["project"]: line for line in lines_of(_jobs(selection, asked))}
    lines = [_project(name, jobs.get(name), used.get(name)) for name in {**jobs, **used}]
    lines.sort(key=lambda line: (-line.core_hours, -line.jobs, str(line.project)))
    totals = {name: sum(line[name] for line in jobs.values()) for name in _COUNTS}
    return RunCoverage(
        **window_of(selection),
        runs=sum(line["runs"] for line in used.values()),
        jobs=totals["jobs"],
        jobs_with_log=totals["with_log"],
        jobs_pct=pct(totals["with_log"], totals["jobs"]),
        core_hours=totals["hours"],
        core_hours_with_log=totals["hours_with_log"],
        core_hours_pct=pct(totals["hours_with_log"], totals["hours"]),
        jobs_running=totals["running"],
        jobs_without_cores=totals["without_cores"],
        jobs_of_arrays=totals["of_arrays"],
        joined=joined_of(used.values()),
        projects_with_log=sum(line.runs > 0 for line in lines if line.project is not None),
        projects=lines,
        explained=_explained(selection, runs),
    )


def _uses(runs: nw.LazyFrame[Any]) -> nw.LazyFrame[Any]:
    direct = (counted_where(nw.col(f"{name}_files") > 0, name) for name in LETTERS)
    return runs.group_by("project").agg(nw.len().alias("runs"), *direct, *joined_counts())


def _jobs(selection: StoreSelection, like: RunConditions) -> nw.LazyFrame[Any]:
    """Jobs that started in the window, by project, and which of them any run was matched with."""
    everywhere = selection.another(filesystem="", source=None)
    jobs = replace(like, executables=()).kept(everywhere.frame("jobs"))
    logged = _logged(selection, like)
    marked = jobs.with_columns(nw.coalesce("cluster", nw.lit("")).alias("_cluster")).join(
        logged, left_on=["job_id", "_cluster", "start_us"], right_on=["_id", "_of", "_start_us"], how="left"
    )
    is_running = nw.coalesce((~nw.col("ended")).cast(nw.Int64), nw.lit(0)) == 1
    hours = nw.coalesce(nw.col("cores").cast(nw.Float64) * nw.col("duration_s") / 3600.0, nw.lit(0.0))
    counted = nw.when(is_running).then(nw.lit(0)).otherwise(nw.lit(1))
    has_log = nw.coalesce("_has_log", nw.lit(0))
    table = marked.with_columns(
        counted.alias("_jobs"), has_log.alias("_with_log"), hours.alias("_hours"), is_running.alias("_running")
    )
    table = table.with_columns(
        (nw.col("_jobs") * nw.col("_with_log")).alias("_with_log"),
        (nw.col("_jobs").cast(nw.Float64) * nw.col("_hours")).alias("_hours"),
    )
    return table.group_by("project").agg(
        nw.col("_jobs").sum().cast(nw.Int64).alias("jobs"),
        nw.col("_with_log").sum().cast(nw.Int64).alias("with_log"),
        nw.col("_hours").sum().alias("hours"),
        (nw.col("_hours") * nw.col("_with_log").cast(nw.Float64)).sum().alias("hours_with_log"),
        counted_where(nw.col("_running"), "running"),
        counted_where(nw.col("cores").is_null() & ~nw.col("_running"), "without_cores"),
        counted_where(nw.col("job_id").str.contains("_", literal=True) & ~nw.col("_running"), "of_arrays"),
    )


def _logged(selection: StoreSelection, like: RunConditions) -> nw.LazyFrame[Any]:
    """Each job that has a log, once; its runs may have started after the end of the window."""
    since, until = selection.window
    jobs = selection.another(filesystem="", source=None).snapshot("jobs")
    last = max((end for end in (until, jobs.extreme("time", "max")) if end is not None), default=None)
    first_us = 0 if since is None else epoch_us(since) - SLACK_US
    last_us = LATEST_US if until is None or last is None else epoch_us(last) + SLACK_US
    selection = selection.between(first_us, last_us)
    runs = like.kept(joined_runs(selection)).filter(~nw.col("matched_start_us").is_null())
    keys = runs.select(
        nw.col("matched_job_id").alias("_id"),
        nw.coalesce("matched_cluster", nw.lit("")).alias("_of"),
        nw.col("matched_start_us").alias("_start_us"),
    )
    return keys.unique().with_columns(_has_log=nw.lit(1))


def _project(name: str | None, jobs: Line | None, used: Line | None) -> ProjectCoverage:
    known: Mapping[str, Any] = jobs or dict.fromkeys(("jobs", "with_log", "hours", "hours_with_log"), 0)
    return ProjectCoverage(
        project=name,
        jobs=known["jobs"],
        jobs_with_log=known["with_log"],
        jobs_pct=pct(known["with_log"], known["jobs"]),
        core_hours=float(known["hours"]),
        core_hours_with_log=float(known["hours_with_log"]),
        core_hours_pct=pct(known["hours_with_log"], known["hours"]),
        runs=used["runs"] if used else 0,
        apis=[letter for interface, letter in LETTERS.items() if used and used[interface]],
    )


def _explained(selection: StoreSelection, runs: nw.LazyFrame[Any]) -> list[ExplainedBytes]:
    """Every file system that runs name or whose targets reported in the window."""
    named = runs.filter(~nw.col("filesystem").is_null()).group_by("filesystem")
    by_runs = {line["filesystem"]: line["read_bytes"] + line["write_bytes"]
               for line in lines_of(named.agg(*sums(("read_bytes", "write_bytes"))))
               if line["read_bytes_known"] and line["write_bytes_known"]}  # fmt: skip
    by_targets = _device_bytes(selection)
    result = []
    for name in sorted({*by_runs, *by_targets}):
        kind, device_bytes = by_targets.get(name, (None, None))
        share = pct(by_runs.get(name), device_bytes)
        result.append(ExplainedBytes(name, by_runs.get(name), device_bytes, share, kind))
    return result


def _device_bytes(selection: StoreSelection) -> dict[str, tuple[str, int]]:
    """By file system: bytes of the first kind of targets there is, from the outside in."""
    extent = selection.extent_us("runs")
    if extent is None:
        return {}
    first_us, last_us = (
        known if end is None else epoch_us(end) for end, known in zip(selection.window, extent, strict=True)
    )
    names = [selection.filesystem] if selection.filesystem else _filesystems(selection, first_us, last_us)
    everywhere = replace(selection, source=None).between(first_us, last_us)
    result: dict[str, tuple[str, int]] = {}
    for name in names:
        own = everywhere.another(filesystem=name)
        frame = own.frame("target_io").with_columns(nw.coalesce("target_kind", nw.lit(UNKNOWN)).alias("kind"))
        by_kind = frame.group_by("kind").agg(*sums(("read_bytes", "write_bytes")))
        lines = {line["kind"]: line for line in lines_of(by_kind)}
        chosen = next((kind for kind in RANKED if kind in lines), None)
        if chosen is not None and lines[chosen]["read_bytes_known"] and lines[chosen]["write_bytes_known"]:
            result[name] = chosen, lines[chosen]["read_bytes"] + lines[chosen]["write_bytes"]
    return result


def _filesystems(selection: StoreSelection, first_us: int, last_us: int) -> list[str]:
    frame = selection.records_between("target_io", first_us, last_us).select("filesystem").unique()
    return sorted(line["filesystem"] for line in lines_of(frame) if line["filesystem"] is not None)
