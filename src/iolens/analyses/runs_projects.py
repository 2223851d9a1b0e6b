"""Projects beside each other (SPEC D6, D10): top ten by bytes (Fig. 4), MiB/s/CN (Fig. 11), Table VI, Fig. 12.

Means are unweighted over the runs that pass the filters, and a run counts in a mean where its value is known. Bytes of
the top ten are those of all runs.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Final

import narwhals as nw

from iolens.analyses.runs.asked import (
    JoinedRuns,
    Line,
    OverRuns,
    RunConditions,
    asked_runs,
    counted_where,
    joined_counts,
    joined_of,
    known_sum,
    lines_of,
    moved,
    rate_counts,
    sums,
    window_of,
)
from iolens.analyses.runs.measures import ACCESS_COLUMNS, MEASURES, AccessBin, access_bins
from iolens.run_tables import RateMethod
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
    mib_per_s_posix: float | None  # by POSIX and STDIO alone, as the study had it
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
    method: RateMethod  # of MiB/s
    ceiling_mib_per_s_per_node: float | None
    runs_filtered: int  # that pass the filters
    runs_above_ceiling: int  # of them, left out of all statistics
    runs_incomplete: int  # logs from which something is missing
    runs_with_overlap: int  # shared files in use at the same time: MiB/s is too low
    runs_short: int  # so little I/O time that their MiB/s say little
    runs_without_rate: int  # loaded by an iolens that kept no times of MPI-IO and DFS
    joined: JoinedRuns
    top_projects: list[ProjectVolume]
    other_projects: int  # that moved less
    projects: list[ProjectCharacter]
    above_ceiling: list[RunAboveCeiling]


def runs_projects(
    selection: StoreSelection,
    like: RunConditions | None = None,
    *,
    min_processes: int = MIN_PROCESSES,
    min_bytes: int = MIN_BYTES,
    method: RateMethod = "layers",
    ceiling_mib_per_s_per_node: float | None = None,
) -> RunProjects:
    """Group runs by project; runs above the ceiling are listed and left out of the statistics."""
    runs = asked_runs(selection, like or RunConditions(), method)
    is_large = RunConditions(min_processes=min_processes, min_bytes=min_bytes).is_large()
    ceiling = nw.lit(math.inf if ceiling_mib_per_s_per_node is None else ceiling_mib_per_s_per_node)
    is_above = is_large & (nw.coalesce("mib_per_s_per_node", nw.lit(0.0)) > ceiling)
    lines = lines_of(_by_project(runs.with_columns(_is_large=is_large & ~is_above, _is_above=is_above)))
    lines.sort(key=lambda line: (-moved(line), str(line["project"])))
    large = sorted((line for line in lines if line["large_runs"]), key=_large_order)
    above = sum(line["above"] for line in lines)
    return RunProjects(
        **window_of(selection),
        runs=sum(line["runs"] for line in lines),
        min_processes=min_processes,
        min_bytes=min_bytes,
        method=method,
        ceiling_mib_per_s_per_node=ceiling_mib_per_s_per_node,
        runs_filtered=sum(line["large_runs"] for line in large) + above,
        runs_above_ceiling=above,
        runs_incomplete=sum(line["_incomplete"] for line in lines),
        runs_with_overlap=sum(line["_overlap"] for line in lines),
        runs_short=sum(line["runs_short"] for line in lines),
        runs_without_rate=sum(line["runs_without_rate"] for line in lines),
        joined=joined_of(lines),
        top_projects=[_volume(line) for line in lines[:TOP]],
        other_projects=max(len(lines) - TOP, 0),
        projects=[_character(line) for line in large],
        above_ceiling=_listed(runs.filter(is_above)) if above else [],
    )


def _by_project(runs: nw.LazyFrame[Any]) -> nw.LazyFrame[Any]:
    """One line for each project, in one pass: sums over all runs, and over those that pass the filters (`large_…`)."""
    volumes = ("read_bytes", "write_bytes")
    kept = (*volumes, *MEASURES, *ACCESS_COLUMNS)
    large = [nw.when(nw.col("_is_large")).then(nw.col(name)).alias(f"large_{name}") for name in kept]
    return runs.with_columns(*large).group_by("project").agg(
        nw.len().alias("runs"),
        *sums(volumes),
        counted_where(nw.col("partial"), "_incomplete"),
        counted_where(nw.col("rate_files_overlap"), "_overlap"),
        *rate_counts(),
        *joined_counts(),
        counted_where(nw.col("_is_above"), "above"),
        counted_where(nw.col("_is_large"), "large_runs"),
        nw.col("large_mib_per_s_per_node").count().alias("runs_with_nodes"),
        *sums(f"large_{name}" for name in volumes),
        *(nw.col(f"large_{name}").mean() for name in MEASURES),
        *(
            expression
            for name in BOXES
            for expression in (
                nw.col(f"large_{name}").min().alias(f"{name}_min"),
                nw.col(f"large_{name}").max().alias(f"{name}_max"),
                *(nw.col(f"large_{name}").quantile(at, "linear").alias(f"{name}_{end}")
                  for end, at in QUARTILES.items()),
            )
        ),
        *(nw.col(f"large_{name}").sum().cast(nw.Int64).alias(name) for name in ACCESS_COLUMNS),
    )  # fmt: skip


def _large_order(line: Line) -> tuple[int, str]:
    return -(line["large_read_bytes"] or 0) - (line["large_write_bytes"] or 0), str(line["project"])


def _listed(above: nw.LazyFrame[Any]) -> list[RunAboveCeiling]:
    """The fastest first."""
    names = ("run_id", "job_id", "project", "user", "executable", "processes", "nodes", "mib_per_s_per_node")
    lines = lines_of(above.select(*names))
    lines.sort(key=lambda line: (-line["mib_per_s_per_node"], line["run_id"]))
    return [RunAboveCeiling(**line) for line in lines[:MOST_LISTED]]


def _volume(line: Line) -> ProjectVolume:
    moved_bytes = (known_sum(line, name) for name in ("read_bytes", "write_bytes"))
    return ProjectVolume(line["project"], line["runs"], *moved_bytes)


def _character(line: Line) -> ProjectCharacter:
    return ProjectCharacter(
        project=line["project"],
        runs=line["large_runs"],
        runs_with_nodes=line["runs_with_nodes"],
        read_bytes=known_sum(line, "large_read_bytes"),
        write_bytes=known_sum(line, "large_write_bytes"),
        **{name: line[f"large_{name}"] for name in MEASURES},
        mib_per_s_per_node_box=_box(line, "mib_per_s_per_node"),
        mib_per_s_box=_box(line, "mib_per_s"),
        access_sizes=access_bins(line),
    )


def _box(line: Line, name: str) -> FiveNumbers | None:
    ends = {end: line[f"{name}_{end}"] for end in ("min", "q1", "median", "q3", "max")}
    return None if ends["median"] is None else FiveNumbers(**ends)
