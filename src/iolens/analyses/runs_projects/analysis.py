"""Projects beside each other (SPEC D6, D10): top ten by bytes (Fig. 4), MiB/s/CN (Fig. 11), Table VI, Fig. 12.

Means are unweighted over the runs that pass the filters, and a run counts in a mean where its value is known. Bytes of
the top ten are those of all runs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import narwhals as nw

from iolens.analyses.runs.access_sizes import COLUMNS, AccessBin, access_bins
from iolens.analyses.runs.asked import (
    JoinedRuns,
    Line,
    OverRuns,
    asked_runs,
    counted_where,
    joined_counts,
    joined_of,
    known_sum,
    lines_of,
    moved,
    sums,
    window_of,
)
from iolens.analyses.runs.measures import MEASURES
from iolens.analyses.runs.run_filter import RunFilter
from iolens.store.selection import StoreSelection
from iolens.units import MIB

MIN_PROCESSES, MIN_BYTES = 1024, 500 * MIB  # the study's filters
TOP: Final = 10
MOST_LISTED: Final = 20
BOXES: Final = ("mib_per_s_per_node", "mib_per_s")
QUARTILES: Final = {"q1": 0.25, "median": 0.5, "q3": 0.75}


@dataclass(frozen=True, slots=True)
class FiveNumbers:
    """What a box plot shows; quartiles by linear interpolation."""

    min: float
    q1: float
    median: float
    q3: float
    max: float


@dataclass(frozen=True, slots=True)
class ProjectVolume:
    """Bytes of all runs of a project, whatever their size; None: not known."""

    project: str | None
    runs: int
    read_bytes: int | None
    write_bytes: int | None


@dataclass(frozen=True, slots=True)
class ProjectCharacter:
    """A line of Table VI: means over the runs of a project that pass the filters.

    `io_time_pct` is I/O time summed over ranks ÷ (processes × run time), `slowest_rank_io_time_pct` that of the slowest
    rank ÷ run time.
    """

    project: str | None
    runs: int
    runs_with_nodes: int  # whose node count is known: those of mib_per_s_per_node
    read_bytes: int | None
    write_bytes: int | None
    mib_per_s_per_node: float | None
    mib_per_s: float | None
    io_time_pct: float | None
    slowest_rank_io_time_pct: float | None
    metadata_time_pct: float | None
    files_per_proc: float | None
    creates_per_proc: float | None
    sequential_pct: float | None
    aligned_pct: float | None
    mib_per_proc: float | None
    mib_per_s_per_node_box: FiveNumbers | None
    mib_per_s_box: FiveNumbers | None
    access_sizes: list[AccessBin]


@dataclass(frozen=True, slots=True)
class RunAboveCeiling:
    """A run that seems faster than the system: its slowest rank's I/O time says little."""

    run_id: str
    job_id: str | None
    project: str | None
    user: str | None
    executable: str | None
    processes: int | None
    nodes: int | None
    mib_per_s_per_node: float


@dataclass(frozen=True, slots=True, kw_only=True)
class RunProjects(OverRuns):
    """Projects of a window, those that moved most first."""

    min_processes: int
    min_bytes: int
    ceiling_mib_per_s_per_node: float | None
    runs_filtered: int  # that pass the filters
    runs_above_ceiling: int  # of them, left out of all statistics
    runs_incomplete: int  # logs from which something is missing
    runs_with_overlap: int  # shared files in use at the same time: MiB/s is too low
    joined: JoinedRuns
    top_projects: list[ProjectVolume]
    other_projects: int  # that moved less
    projects: list[ProjectCharacter]
    above_ceiling: list[RunAboveCeiling]


def runs_projects(
    selection: StoreSelection,
    like: RunFilter | None = None,
    *,
    min_processes: int = MIN_PROCESSES,
    min_bytes: int = MIN_BYTES,
    ceiling_mib_per_s_per_node: float | None = None,
) -> RunProjects:
    """Group runs by project; runs above the ceiling are listed and left out of the statistics."""
    runs = asked_runs(selection, like or RunFilter())
    volumes = sorted(lines_of(_volumes(runs)), key=lambda line: (-moved(line), str(line["project"])))
    large = runs.filter(RunFilter(min_processes=min_processes, min_bytes=min_bytes).is_large())
    above = _above(large, ceiling_mib_per_s_per_node)
    characters = lines_of(_characters(large, ceiling_mib_per_s_per_node))
    characters.sort(key=lambda line: (-moved(line), str(line["project"])))
    kept = sum(line["runs"] for line in characters)
    return RunProjects(
        **window_of(selection),
        runs=sum(line["runs"] for line in volumes),
        min_processes=min_processes,
        min_bytes=min_bytes,
        ceiling_mib_per_s_per_node=ceiling_mib_per_s_per_node,
        runs_filtered=kept + len(above),
        runs_above_ceiling=len(above),
        runs_incomplete=sum(line["_incomplete"] for line in volumes),
        runs_with_overlap=sum(line["_overlap"] for line in volumes),
        joined=joined_of(volumes),
        top_projects=[_volume(line) for line in volumes[:TOP]],
        other_projects=max(len(volumes) - TOP, 0),
        projects=[_character(line) for line in characters],
        above_ceiling=above[:MOST_LISTED],
    )


def _volumes(runs: nw.LazyFrame[Any]) -> nw.LazyFrame[Any]:
    return runs.group_by("project").agg(
        nw.len().alias("runs"),
        *sums(("read_bytes", "write_bytes")),
        counted_where(nw.col("partial"), "_incomplete"),
        counted_where(nw.col("shared_files_overlap"), "_overlap"),
        *joined_counts(),
    )


def _characters(large: nw.LazyFrame[Any], ceiling: float | None) -> nw.LazyFrame[Any]:
    if ceiling is not None:
        large = large.filter(nw.coalesce("mib_per_s_per_node", nw.lit(0.0)) <= ceiling)
    return large.group_by("project").agg(
        nw.len().alias("runs"),
        nw.col("mib_per_s_per_node").count().alias("runs_with_nodes"),
        *sums(("read_bytes", "write_bytes")),
        *(nw.col(name).mean() for name in MEASURES),
        *(
            expression
            for name in BOXES
            for expression in (
                nw.col(name).min().alias(f"{name}_min"),
                nw.col(name).max().alias(f"{name}_max"),
                *(nw.col(name).quantile(at, "linear").alias(f"{name}_{end}") for end, at in QUARTILES.items()),
            )
        ),
        *(nw.col(name).sum().cast(nw.Int64) for name in COLUMNS),
    )


def _above(large: nw.LazyFrame[Any], ceiling: float | None) -> list[RunAboveCeiling]:
    """The fastest first."""
    if ceiling is None:
        return []
    names = ("run_id", "job_id", "project", "user", "executable", "processes", "nodes", "mib_per_s_per_node")
    lines = lines_of(large.filter(nw.col("mib_per_s_per_node") > ceiling).select(*names))
    lines.sort(key=lambda line: (-line["mib_per_s_per_node"], line["run_id"]))
    return [RunAboveCeiling(**line) for line in lines]


def _volume(line: Line) -> ProjectVolume:
    moved_bytes = (known_sum(line, name) for name in ("read_bytes", "write_bytes"))
    return ProjectVolume(line["project"], line["runs"], *moved_bytes)


def _character(line: Line) -> ProjectCharacter:
    return ProjectCharacter(
        project=line["project"],
        runs=line["runs"],
        runs_with_nodes=line["runs_with_nodes"],
        read_bytes=known_sum(line, "read_bytes"),
        write_bytes=known_sum(line, "write_bytes"),
        **{name: line[name] for name in MEASURES},
        mib_per_s_per_node_box=_box(line, "mib_per_s_per_node"),
        mib_per_s_box=_box(line, "mib_per_s"),
        access_sizes=access_bins(line),
    )


def _box(line: Line, name: str) -> FiveNumbers | None:
    ends = {end: line[f"{name}_{end}"] for end in ("min", "q1", "median", "q3", "max")}
    return None if ends["median"] is None else FiveNumbers(**ends)
