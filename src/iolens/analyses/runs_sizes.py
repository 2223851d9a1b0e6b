"""Sizes of reads and writes over all runs (SPEC D9, Fig. 10), and which project dominates a size (§4.4)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import narwhals as nw

from iolens.analyses.results import pct
from iolens.analyses.runs.asked import Line, OverRuns, RunConditions, asked_runs, lines_of, window_of
from iolens.analyses.runs.measures import ACCESS_COLUMNS, DIRECTIONS, ENDS, STARTS, access_bins, summed
from iolens.run_tables import access_column
from iolens.store.selection import StoreSelection


@dataclass(frozen=True, slots=True)
class SizeOfAccesses:
    """Accesses of more than `from_bytes` and at most `to_bytes`; `cumulative_pct` are at most `to_bytes`.

    `top_project` made most of them, `top_project_pct` is its share.
    """

    direction: str
    from_bytes: int
    to_bytes: int | None
    accesses: int
    pct: float | None
    cumulative_pct: float | None
    top_project: str | None
    top_project_pct: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSizes(OverRuns):
    """POSIX accesses by size. The most popular size of a direction is the one with most accesses."""

    without_projects: list[str]
    reads: int
    writes: int
    most_popular_read_to_bytes: int | None
    most_popular_write_to_bytes: int | None
    sizes: list[SizeOfAccesses]


def runs_sizes(
    selection: StoreSelection, like: RunConditions | None = None, without_projects: Sequence[str] = ()
) -> RunSizes:
    """Add up the histograms of all runs; projects in `without_projects` are left out."""
    asked = replace(like or RunConditions(), without_projects=tuple(without_projects))
    runs = asked_runs(selection, asked).group_by("project")
    lines = lines_of(runs.agg(nw.len().alias("runs"), *(nw.col(name).sum().cast(nw.Int64) for name in ACCESS_COLUMNS)))
    lines.sort(key=lambda line: str(line["project"]))
    totals = summed(lines)
    bins = access_bins(totals)
    sizes = [_size(direction, place, lines, totals) for direction in DIRECTIONS for place in range(len(ENDS))]
    return RunSizes(
        **window_of(selection),
        runs=sum(line["runs"] for line in lines),
        without_projects=list(without_projects),
        reads=sum(item.reads for item in bins),
        writes=sum(item.writes for item in bins),
        most_popular_read_to_bytes=_popular(sizes, "read"),
        most_popular_write_to_bytes=_popular(sizes, "write"),
        sizes=sizes,
    )


def _size(direction: str, place: int, lines: Sequence[Line], totals: dict[str, int]) -> SizeOfAccesses:
    names = [access_column(direction, upper) for upper in ENDS]
    whole = sum(totals[name] for name in names)
    up_to = sum(totals[name] for name in names[: place + 1])
    count = totals[names[place]]
    top: Any = max(lines, key=lambda line: line[names[place]] or 0, default=None) if count else None
    return SizeOfAccesses(
        direction=direction,
        from_bytes=STARTS[place],
        to_bytes=ENDS[place],
        accesses=count,
        pct=pct(count, whole),
        cumulative_pct=pct(up_to, whole),
        top_project=top["project"] if top else None,
        top_project_pct=pct(top[names[place]], count) if top else None,
    )


def _popular(sizes: Sequence[SizeOfAccesses], direction: str) -> int | None:
    """The upper end of the bin with most accesses; None: no accesses, or the last bin, which has none."""
    own = [size for size in sizes if size.direction == direction and size.accesses]
    return max(own, key=lambda size: size.accesses).to_bytes if own else None
