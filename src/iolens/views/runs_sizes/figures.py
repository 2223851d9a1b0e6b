"""Figure of access sizes: cumulative shares of reads and writes (Fig. 10), and who dominates each size."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

import numpy as np

from iolens.views.render.figures import READ, WRITE, Axis, Figure, LineMark, Mark, Panel, PointsMark, side_by_side
from iolens.views.runs.words import EMPTY, bin_name, names_axis, titled, window_words

if TYPE_CHECKING:
    from iolens.analyses.runs_sizes import RunSizes

FIGURES: Final = ("cdf", "counts")
SIDES: Final = (("read", "reads", READ), ("write", "writes", WRITE))


def figures(result: RunSizes) -> dict[str, Callable[[], Figure]]:
    """Cumulative shares, and the share of each size."""
    return {"cdf": lambda: cumulative(result), "counts": lambda: counts(result)}


def _names(result: RunSizes) -> tuple[str, ...]:
    return tuple(bin_name(line.to_bytes) for line in result.sizes if line.direction == "read")


def _title(result: RunSizes, what: str) -> str:
    without = f", without {', '.join(result.without_projects)}" if result.without_projects else ""
    return titled(result, f"{what}{without}")


def cumulative(result: RunSizes) -> Figure:
    """Per cent of reads and writes of at most each size."""
    x, y = names_axis(_names(result), "size of access, up to"), Axis("% of accesses", low=0.0, high=102.0)
    marks: list[Mark] = []
    for direction, label, colour in SIDES:
        shares = np.array([line.cumulative_pct for line in result.sizes if line.direction == direction], dtype=float)
        if np.isfinite(shares).any():
            places = np.arange(float(shares.size))
            marks += [LineMark(places, shares, label, colour), PointsMark(places, shares, label, colour, weight=1.6)]
    panel = Panel(window_words(result), x, y, tuple(marks), message="" if marks else EMPTY)
    return Figure("cdf", _title(result, "access sizes, cumulative"), (panel,))


def counts(result: RunSizes) -> Figure:
    """Per cent of reads and writes of each size."""
    names = _names(result)
    x, y = names_axis(names, "size of access, up to"), Axis("% of accesses", low=0.0)
    groups = [
        (label, colour, np.array([line.pct or 0.0 for line in result.sizes if line.direction == direction]))
        for direction, label, colour in SIDES
    ]
    has_any = any(heights.any() for _, _, heights in groups)
    bars = side_by_side(groups, names) if has_any else ()
    panel = Panel(window_words(result), x, y, bars, message="" if has_any else EMPTY)
    return Figure("counts", _title(result, "accesses by size"), (panel,))
