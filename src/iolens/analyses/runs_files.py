"""Files of runs against their processes (SPEC D6, Fig. 5), and how many of the files they wrote are new (D12, §4.3)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import narwhals as nw

from iolens.analyses.results import pct
from iolens.analyses.runs.asked import (
    Line,
    OverRuns,
    RunConditions,
    asked_runs,
    known_sum,
    lines_of,
    moved,
    sums,
    window_of,
)
from iolens.store.selection import StoreSelection

CATEGORIES: Final = ("no files", "serial", "N:N", "N:1", "N:M", "unknown")
TOP: Final = 10
MOST_POINTS: Final = 5000


@dataclass(frozen=True, slots=True)
class FileCategory:
    """Runs that use files in one manner.

    `no files`: none; `serial`: one process; `N:N`: most files are unique to a rank, and there are at least as many as
    processes; `N:1`: most files are shared by all ranks, or one rank does all I/O; `N:M`: any other, as files of a
    subset of ranks; `unknown`: the log does not tell.
    """

    category: str
    runs: int
    runs_pct: float | None


@dataclass(frozen=True, slots=True)
class ProjectFiles:
    """Runs of a project by what they do with files. `new_files` is an estimate (DEFINITIONS, New files)."""

    project: str | None
    runs: int
    runs_without_files: int
    files: int | None
    files_per_proc_max: float | None
    written_files: int | None
    new_files: int | None
    new_files_pct: float | None
    categories: dict[str, int]


@dataclass(frozen=True, slots=True)
class FilePoint:
    """Runs of a project with so many processes and files."""

    project: str | None
    processes: int
    files: int
    runs: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFileCounts(OverRuns):
    """All runs, then those of each project, by bytes; points are of the ten projects that moved most."""

    runs_without_files: int
    runs_without_files_pct: float | None
    written_files: int | None
    new_files: int | None
    new_files_pct: float | None
    categories: list[FileCategory]
    projects: list[ProjectFiles]
    points: list[FilePoint]
    points_left_out: int  # with fewer runs than those listed


def runs_files(selection: StoreSelection, like: RunConditions | None = None) -> RunFileCounts:
    """Count files of runs, and sort runs by their use of files."""
    runs = asked_runs(selection, like or RunConditions()).with_columns(_category().alias("category"))
    counts = ("files", "written_files", "new_files", "read_bytes", "write_bytes")
    lines = lines_of(
        runs.group_by("project", "category").agg(
            nw.len().alias("runs"), nw.col("files_per_proc").max().alias("files_per_proc_max"), *sums(counts)
        )
    )
    by_project: dict[str | None, list[Line]] = {}
    for line in lines:
        by_project.setdefault(line["project"], []).append(line)
    ranked = sorted(by_project, key=lambda name: (-sum(map(moved, by_project[name])), str(name)))
    points = _points(runs, ranked[:TOP])
    total = sum(line["runs"] for line in lines)
    without = _runs(lines, CATEGORIES[0])
    written, new = (_total(lines, name) for name in ("written_files", "new_files"))
    return RunFileCounts(
        **window_of(selection),
        runs=total,
        runs_without_files=without,
        runs_without_files_pct=pct(without, total),
        written_files=written,
        new_files=new,
        new_files_pct=pct(new, written),
        categories=[FileCategory(name, _runs(lines, name), pct(_runs(lines, name), total)) for name in CATEGORIES],
        projects=[_project(name, by_project[name]) for name in ranked],
        points=points[:MOST_POINTS],
        points_left_out=max(len(points) - MOST_POINTS, 0),
    )


def _category() -> nw.Expr:
    none, serial, unique, shared, subset, unknown = (nw.lit(name) for name in CATEGORIES)
    of_ranks = nw.col("unique_files") * 2 > nw.col("files")
    of_all = (nw.col("shared_files") * 2 > nw.col("files")) | (nw.coalesce("io_ranks", nw.lit(0)) == 1)
    by_pattern = (
        nw.when(of_all)
        .then(shared)
        .otherwise(nw.when(of_ranks & (nw.col("unique_files") >= nw.col("processes"))).then(unique).otherwise(subset))
    )
    patterns_known = nw.col("unique_files").is_null() | nw.col("shared_files").is_null()
    several = nw.when(patterns_known).then(unknown).otherwise(by_pattern)
    with_files = nw.when(nw.col("processes") == 1).then(serial).otherwise(several)
    known = nw.when(nw.col("files") == 0).then(none).otherwise(with_files)
    is_unknown = nw.col("files").is_null() | nw.col("processes").is_null()
    return nw.when(is_unknown).then(unknown).otherwise(known)


def _project(name: str | None, lines: Sequence[Line]) -> ProjectFiles:
    most = [line["files_per_proc_max"] for line in lines if line["files_per_proc_max"] is not None]
    written, new = (_total(lines, column) for column in ("written_files", "new_files"))
    return ProjectFiles(
        project=name,
        runs=sum(line["runs"] for line in lines),
        runs_without_files=_runs(lines, CATEGORIES[0]),
        files=_total(lines, "files"),
        files_per_proc_max=max(most, default=None),
        written_files=written,
        new_files=new,
        new_files_pct=pct(new, written),
        categories={category: _runs(lines, category) for category in CATEGORIES},
    )


def _runs(lines: Sequence[Line], category: str) -> int:
    return sum(line["runs"] for line in lines if line["category"] == category)


def _total(lines: Sequence[Line], name: str) -> int | None:
    known = [value for line in lines if (value := known_sum(line, name)) is not None]
    return sum(known) if known else None


def _points(runs: nw.LazyFrame[Any], projects: Sequence[str | None]) -> list[FilePoint]:
    """Those of most runs first."""
    names = [name for name in projects if name is not None]
    wanted = nw.coalesce(nw.col("project").is_in(names), nw.lit(False)) if names else nw.lit(False)
    if None in projects:
        wanted = wanted | nw.col("project").is_null()
    known = runs.filter(wanted, ~nw.col("processes").is_null(), ~nw.col("files").is_null())
    lines = lines_of(known.group_by("project", "processes", "files").agg(nw.len().alias("runs")))
    lines.sort(key=lambda line: (-line["runs"], str(line["project"]), line["processes"], line["files"]))
    return [FilePoint(line["project"], line["processes"], line["files"], line["runs"]) for line in lines]
