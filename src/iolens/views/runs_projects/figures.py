"""Figures of projects: bytes (Fig. 4 of the study on Intrepid), MiB/s per node (Fig. 11), access sizes (Fig. 12)."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from iolens.views.render.figures import (
    FSU,
    READ,
    RULE,
    WRITE,
    WRITE_SHADES,
    Axis,
    Bars,
    Figure,
    LineMark,
    Panel,
    side_by_side,
    stacked,
)
from iolens.views.render.log_scales import bytes_unit
from iolens.views.runs.words import (
    EMPTY,
    MOST_NAMES,
    SHADES_OF_SIZE,
    bin_name,
    first_of,
    height_axis,
    names_axis,
    project_name,
    titled,
)

if TYPE_CHECKING:
    from iolens.analyses.runs_projects import RunProjects
    from iolens.arrays import Floats

FIGURES: Final = ("bytes", "performance", "sizes")
BOX, WHISKER, MEDIAN = WRITE_SHADES[0], RULE, FSU


def figures(result: RunProjects) -> dict[str, Callable[[], Figure]]:
    """Bytes of the top projects, box plot of their runs, and sizes of their accesses."""
    return {
        "bytes": lambda: volumes(result),
        "performance": lambda: performance(result),
        "sizes": lambda: sizes(result),
    }


def volumes(result: RunProjects) -> Figure:
    """Bytes read and written by the projects that moved most, over all runs."""
    lines = result.top_projects
    title = titled(result, "bytes of the projects that moved most")
    names = tuple(project_name(line.project) for line in lines)
    values = np.array([[float(line.read_bytes or 0), float(line.write_bytes or 0)] for line in lines]).reshape(-1, 2)
    x = names_axis(names)
    if not values.any():
        return Figure("bytes", title, (Panel("", x, Axis("bytes"), message=EMPTY),))
    factor, unit = bytes_unit(float(values.max()))
    y = height_axis(unit, values.ravel() / factor)
    groups = [
        (word, colour, _drawn(values[:, place] / factor, y))
        for place, (word, colour) in enumerate((("read", READ), ("written", WRITE)))
    ]
    return Figure("bytes", title, (Panel("all runs", x, y, side_by_side(groups, names), height=1.2),))


def performance(result: RunProjects) -> Figure:
    """A box for each project: quartiles and median, and lines to the slowest and the fastest run."""
    has_nodes = any(line.mib_per_s_per_node_box for line in result.projects)
    field, words = ("mib_per_s_per_node_box", "MiB/s per node") if has_nodes else ("mib_per_s_box", "MiB/s")
    known = [line for line in result.projects if getattr(line, field) is not None]
    lines = known[:MOST_NAMES]
    names = tuple(project_name(line.project) for line in lines)
    title = titled(result, f"{words} of large runs by project{first_of(len(lines), len(known))}")
    x = names_axis(names)
    if not lines:
        return Figure("performance", title, (Panel("", x, Axis(words), message=EMPTY),))
    ends = np.array([[getattr(getattr(line, field), end) for end in ("min", "q1", "median", "q3", "max")]
                     for line in lines])  # fmt: skip
    y = height_axis(words, ends.ravel())
    return Figure("performance", title, (Panel("", x, y, _boxes(ends, names, y), height=1.3),))


def _boxes(ends: Floats, names: tuple[str, ...], axis: Axis) -> tuple[Any, ...]:
    places, thin = np.arange(len(names), dtype=float), 0.003 * len(names)
    least = axis.low if axis.scale == "log" and axis.low is not None else 0.0  # nothing has no place on a log scale
    low, q1, median, q3, high = np.maximum(ends.T, least)
    gaps = np.full(len(names), np.nan)
    across = np.stack([places - 0.3, places + 0.3, gaps]).T.ravel()
    return (
        Bars(places - thin, places + thin, high - low, "slowest to fastest run", WHISKER, names, low),
        Bars(places - 0.3, places + 0.3, q3 - q1, "middle half of the runs", BOX, names, q1),
        LineMark(across, np.stack([median, median, gaps]).T.ravel(), "median", MEDIAN),
    )


def sizes(result: RunProjects) -> Figure:
    """Reads above writes: shares of accesses by size, stacked."""
    lines = result.projects[:MOST_NAMES]
    title = titled(result, f"accesses by size{first_of(len(lines), len(result.projects))}")
    return Figure("sizes", title, tuple(_sizes_panel(lines, direction) for direction in ("read", "write")))


def _sizes_panel(lines: Any, direction: str) -> Panel:
    names = tuple(project_name(line.project) for line in lines)
    x, y = names_axis(names), Axis(f"% of {direction}s", low=0.0, high=100.0)
    shares = np.array([[getattr(item, f"{direction}_pct") or 0.0 for item in line.access_sizes] for line in lines])
    if not shares.size or not shares.any():
        return Panel(f"{direction}s", x, y, message=EMPTY)
    groups = [
        (
            f"≤ {bin_name(item.to_bytes)}" if item.to_bytes else f"> {bin_name(item.from_bytes)}",
            colour,
            shares[:, place],
        )
        for place, (item, colour) in enumerate(zip(lines[0].access_sizes, SHADES_OF_SIZE, strict=True))
    ]
    return Panel(f"{direction}s", x, y, stacked(groups, names), height=1.3)


def _drawn(values: Floats, axis: Axis) -> Floats:
    """What is nothing has no bar on a logarithmic scale."""
    return np.where(values > 0, values, np.nan) if axis.scale == "log" else values
