"""Figures 10 and 11 of paper N: mean latency of every system call of a small write and of a small read, by place."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

import numpy as np

from iolens.views.bench_latency.words import NO_DATA, one_operation, series_name
from iolens.views.render.figures import KINDS, Axis, Figure, Panel, side_by_side
from iolens.views.render.log_scales import log_axis

if TYPE_CHECKING:
    from iolens.analyses.bench_latency import BenchLatency, CallLatency
    from iolens.arrays import Floats

FIGURES: Final = ("write", "read")
LOG_FROM: Final = 10.0  # times the shortest: on a linear axis nothing would be seen of it
_CALLS: Final = "system call (getppid asks no file system: what measuring costs)"
_LABEL: Final = "mean time of a call (µs)"


def figures(result: BenchLatency) -> dict[str, Callable[[], Figure]]:
    """One per direction."""
    return {"write": lambda: calls_figure(result, "write"), "read": lambda: calls_figure(result, "read")}


def calls_figure(result: BenchLatency, direction: str) -> Figure:
    """Bars of the means, place beside place."""
    measured = [item for item in result.calls if item.direction == direction]
    return Figure(direction, f"System calls of {one_operation(result, direction)}", (_panel(result, measured),))


def _panel(result: BenchLatency, measured: list[CallLatency]) -> Panel:
    if not measured:
        return Panel("", Axis(_CALLS), Axis(_LABEL), message=NO_DATA)
    names = tuple(dict.fromkeys(item.call for item in measured))
    groups: dict[str, Floats] = {}
    for item in measured:
        heights = groups.setdefault(series_name(result, item), np.full(len(names), np.nan))
        heights[names.index(item.call)] = item.mean_s * 1e6
    bars = side_by_side(
        [(name, KINDS[i % len(KINDS)], heights) for i, (name, heights) in enumerate(groups.items())], names
    )
    x = Axis(_CALLS, low=-0.6, high=len(names) - 0.4, ticks=tuple((float(i), label) for i, label in enumerate(names)))
    return Panel("", x, _time_axis(np.concatenate(list(groups.values()))), bars)


def _time_axis(values: Floats) -> Axis:
    """Logarithmic where values differ much."""
    positive = values[np.isfinite(values) & (values > 0.0)]
    if positive.size and positive.max() >= LOG_FROM * positive.min():
        return log_axis(f"{_LABEL}, log scale", positive)
    return Axis(_LABEL, low=0, high=1.1 * float(positive.max()) if positive.size else None)
