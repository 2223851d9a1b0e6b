"""The runs of one project or program by their size (SPEC D6, D13): Tables VII and VIII, strong or weak scaling.

Total bytes that stay the same while processes grow are strong scaling, bytes per process that stay the same are weak.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

import numpy as np

from iolens.analyses.runs.asked import Line, OverRuns, RunConditions, asked_runs, lines_of, window_of
from iolens.analyses.runs.measures import is_short
from iolens.run_tables import RateMethod
from iolens.store.selection import StoreSelection

SLOPE_TOLERANCE: Final = 0.25  # of the slope of log(bytes) over log(processes): 0 is strong, 1 is weak
LEAST_RANGE: Final = 2.0  # largest over smallest number of processes; below, nothing is said
MOST_LISTED: Final = 20
_COLUMNS: Final = (
    "run_id", "job_id", "user", "project", "executable", "start_us", "processes", "nodes", "read_bytes", "write_bytes",
    "mib_per_s_per_node", "mib_per_s", "mib_per_s_posix", "metadata_time_pct", "io_time_pct", "key_access_bytes",
    "key_access_direction", "is_rate_lost",
)  # fmt: skip

Verdict = Literal["strong", "weak", "neither", "undecided"]


@dataclass(frozen=True, slots=True)
class ScalingRun:
    """A line of Table VII: one run with its most frequent access size; `key_access_direction` is r, w or r+w."""

    run_id: str
    job_id: str | None
    user: str | None
    project: str | None
    executable: str | None
    processes: int | None
    nodes: int | None
    mib_per_s_per_node: float | None
    mib_per_s: float | None
    mib_per_s_posix: float | None  # by POSIX and STDIO alone, as the study had it
    metadata_time_pct: float | None
    key_access_bytes: int | None
    key_access_direction: str | None


@dataclass(frozen=True, slots=True)
class ScalingStep:
    """A line of Table VIII: all runs on so many nodes (or of so many processes); medians."""

    count: int
    runs: int
    mib_per_s_per_node: float | None
    mib_per_s: float | None
    mib_per_s_posix: float | None
    metadata_time_pct: float | None
    io_time_pct: float | None
    bytes: float | None
    bytes_per_process: float | None


@dataclass(frozen=True, slots=True)
class ScalingVerdict:
    """Whether bytes grow with processes, and what that rests on.

    `slope` is that of log(median total bytes) over log(processes), one point for each number of processes, by least
    squares; `r2` its share of the variance explained (None: bytes do not vary).
    """

    scaling: Verdict
    slope: float | None
    r2: float | None
    process_counts: int
    processes_min: int | None
    processes_max: int | None
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RunScaling(OverRuns):
    """Runs by size, from small to large; `listed` are runs from the fastest to the slowest."""

    projects: list[str]
    executables: list[str]
    by: Literal["nodes", "processes"]
    method: RateMethod  # of MiB/s
    runs_short: int  # so little I/O time that their MiB/s say little
    runs_without_rate: int  # loaded by an iolens that kept no times of MPI-IO and DFS
    verdict: ScalingVerdict
    steps: list[ScalingStep]
    listed: list[ScalingRun]
    runs_not_listed: int  # between those listed, in speed


def runs_scaling(
    selection: StoreSelection, like: RunConditions, *, method: RateMethod = "layers", top: int = MOST_LISTED
) -> RunScaling:
    """Runs of the projects and executables of `like`; `top` of them are listed, evenly spread over their speed."""
    lines = lines_of(asked_runs(selection, like, method).select(*_COLUMNS, is_short().alias("is_short")))
    lines.sort(key=lambda line: (-(line["mib_per_s_per_node"] or line["mib_per_s"] or 0.0), line["run_id"]))
    has_nodes = bool(lines) and all(line["nodes"] for line in lines)
    by: Literal["nodes", "processes"] = "nodes" if has_nodes else "processes"
    listed = [lines[place] for place in _spread(len(lines), top)]
    names = ScalingRun.__dataclass_fields__
    return RunScaling(
        **window_of(selection),
        runs=len(lines),
        projects=list(like.projects),
        executables=list(like.executables),
        by=by,
        method=method,
        runs_short=sum(bool(line["is_short"]) for line in lines),
        runs_without_rate=sum(line["is_rate_lost"] for line in lines),
        verdict=scaling_of([line["processes"] for line in lines], [_bytes(line) for line in lines]),
        steps=[_step(count, members) for count, members in sorted(_grouped(lines, by).items())],
        listed=[ScalingRun(**{name: line[name] for name in names}) for line in listed],
        runs_not_listed=len(lines) - len(listed),
    )


def scaling_of(processes: Sequence[int | None], moved: Sequence[int | None]) -> ScalingVerdict:
    """Strong, weak or neither, by the total bytes of runs of several sizes."""
    by_size: dict[int, list[int]] = {}
    for count, total in zip(processes, moved, strict=True):
        if count and total:
            by_size.setdefault(count, []).append(total)
    sizes = sorted(by_size)
    low, high = (sizes[0], sizes[-1]) if sizes else (None, None)
    if not sizes or sizes[-1] < LEAST_RANGE * sizes[0]:
        reason = f"runs that moved bytes need process counts a factor of {LEAST_RANGE:g} apart"
        return ScalingVerdict("undecided", None, None, len(sizes), low, high, reason)
    x = np.log(np.array(sizes, dtype=float))
    y = np.log(np.array([float(np.median(by_size[size])) for size in sizes]))
    slope, offset = (float(value) for value in np.polyfit(x, y, 1))
    spread = float(((y - y.mean()) ** 2).sum())
    r2 = 1.0 - float(((y - slope * x - offset) ** 2).sum()) / spread if spread > 0 else None
    verdict: Verdict = (
        "strong" if abs(slope) < SLOPE_TOLERANCE else "weak" if abs(slope - 1.0) < SLOPE_TOLERANCE else "neither"
    )
    return ScalingVerdict(verdict, slope, r2, len(sizes), low, high, _reason(verdict, slope))


def _reason(verdict: Verdict, slope: float) -> str:
    words = {
        "strong": "total bytes stay about the same while processes grow",
        "weak": "bytes per process stay about the same while processes grow",
        "neither": "bytes neither stay the same nor grow in proportion to processes",
    }
    rule = f"strong within {SLOPE_TOLERANCE:g} of 0, weak within {SLOPE_TOLERANCE:g} of 1"
    return f"{words[verdict]}: total bytes grow as processes to the power of {slope:.2f} ({rule})"


def _bytes(line: Line) -> int | None:
    parts = line["read_bytes"], line["write_bytes"]
    return None if None in parts else sum(parts)


def _grouped(lines: Sequence[Line], by: str) -> dict[int, list[Line]]:
    groups: dict[int, list[Line]] = {}
    for line in lines:
        if line[by]:
            groups.setdefault(line[by], []).append(line)
    return groups


def _step(count: int, members: Sequence[Line]) -> ScalingStep:
    totals = [total for line in members if (total := _bytes(line)) is not None]
    per_process = [total / line["processes"] for line in members
                   if line["processes"] and (total := _bytes(line)) is not None]  # fmt: skip
    return ScalingStep(
        count=count,
        runs=len(members),
        mib_per_s_per_node=_median_of(members, "mib_per_s_per_node"),
        mib_per_s=_median_of(members, "mib_per_s"),
        mib_per_s_posix=_median_of(members, "mib_per_s_posix"),
        metadata_time_pct=_median_of(members, "metadata_time_pct"),
        io_time_pct=_median_of(members, "io_time_pct"),
        bytes=_median(totals),
        bytes_per_process=_median(per_process),
    )


def _median_of(members: Sequence[Line], name: str) -> float | None:
    return _median([line[name] for line in members if line[name] is not None])


def _median(values: Sequence[Any]) -> float | None:
    return float(np.median(values)) if values else None


def _spread(count: int, most: int) -> list[int]:
    """At most so many places, the first and the last among them."""
    if count <= most:
        return list(range(count))
    return sorted({round(place) for place in np.linspace(0, count - 1, most)})
