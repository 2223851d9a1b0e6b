"""A workload's distributions and the Pareto models of them (Figs. 5, 11 and 13 of paper S), with their tails."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from iolens.views.render.figures import (
    FIT,
    FSU,
    READ,
    READ_SHADES,
    SECOND_FIT,
    WRITE,
    WRITE_SHADES,
    Axis,
    Figure,
    LineMark,
    Mark,
    Panel,
    PointsMark,
)
from iolens.views.render.log_scales import MOST_POINTS, bytes_unit, curve_points, decades, middle, powers
from iolens.views.render.window_axes import EMPTY, window_title
from iolens.views.workload.tables import named

if TYPE_CHECKING:
    from iolens.analyses.workload.analysis import Workload
    from iolens.arrays import Floats
    from iolens.models.heavy_tail import HeavyTail
    from iolens.models.tails import TailSample


COLOURS: Final = {"read": READ, "write": WRITE}
PALE: Final = {"read": READ_SHADES, "write": WRITE_SHADES}  # 95, 99, 100 %
PAPER, QUANTISED, LIKELY = FIT, SECOND_FIT, FSU  # Pareto curves by method
NOT_COUNTED: Final = "requests are not counted here"


def tail_samples(result: Workload, what: str) -> dict[str, TailSample]:
    """By direction, where there is any value."""
    samples = result.distributions or {}
    return {
        direction: samples[name]
        for direction in COLOURS
        if (name := f"{direction}_{what}") in samples and samples[name].size
    }


def model_figure(result: Workload, what: str, name: str, title: str) -> Figure:
    """Reads and writes as cumulative shares, and both tails on logarithmic scales."""
    samples = tail_samples(result, what)
    scale, unit = _model_unit(what, samples)
    if not samples:
        message = NOT_COUNTED if what == "interarrival" else EMPTY
        panel = Panel(window_title(result), Axis(unit), Axis("share (%)"), message=message)
        return Figure(name, title, (panel,))
    low, high = decades(samples.values(), scale)
    x = Axis(f"{unit}, log scale", "log", 10.0**low, 10.0**high, powers(low, high))
    panels = [
        _cumulative(result, f"{direction}_{what}", sample, scale, x, (low, high))
        for direction, sample in samples.items()
    ]
    return Figure(name, title, (*panels, _tails(result, what, samples, scale, x)))


def _model_unit(what: str, samples: dict[str, TailSample]) -> tuple[float, str]:
    if what != "bandwidth":
        return (1e3, "time between requests (ms)") if what == "interarrival" else (1.0, "idle time (s)")
    middles = [middle(sample.smallest, sample.largest) for sample in samples.values()]
    factor, unit = bytes_unit(max(middles, default=1.0))
    return 1.0 / factor, f"bandwidth ({unit}/s)"


def _cumulative(
    result: Workload, model: str, sample: TailSample, scale: float, x: Axis, decades: tuple[int, int]
) -> Panel:
    values, shares = observed(sample)
    shown = curve_points(values.size)
    direction = model.partition("_")[0]
    marks: list[Mark] = [PointsMark(scale * values[shown], 100.0 * shares[shown], "observed", COLOURS[direction])]
    grid = np.logspace(*decades, MOST_POINTS)
    for label, colour, start, left, alpha in _curves(result.models[model], sample.size):
        inside = grid / scale >= start
        above = left * (start / (grid[inside] / scale)) ** alpha
        marks.append(LineMark(grid[inside], 100.0 * (1.0 - above), label, colour))
    y = Axis("samples up to this (%)", low=0, high=103)
    return Panel(f"{window_title(result)}: {named(model)}", x, y, tuple(marks))


def _tails(result: Workload, what: str, samples: dict[str, TailSample], scale: float, x: Axis) -> Panel:
    """Share above a value, where a Pareto distribution is a straight line."""
    marks: list[Mark] = []
    smallest = 1.0
    for direction, sample in samples.items():
        values, shares = observed(sample)
        above = 1.0 - shares
        some = np.flatnonzero(above > 0.5 / sample.size)
        smallest = min(smallest, float(above[some].min(initial=1.0)))
        kept = some[curve_points(some.size)]
        marks.append(PointsMark(scale * values[kept], 100.0 * above[kept], f"{direction}s", COLOURS[direction]))
        for label, _, start, left, alpha in _curves(result.models[f"{direction}_{what}"], sample.size):
            if label.startswith("likelihood"):
                ends = np.array([start, sample.largest])
                label = f"{direction}s: Pareto, alpha {alpha:.3g}"
                marks.append(LineMark(scale * ends, 100.0 * left * (start / ends) ** alpha, label, PALE[direction][1]))
    low = int(np.floor(np.log10(100.0 * smallest)))
    y = Axis("samples above this (%), log scale", "log", 10.0**low, 150.0, powers(low, 2))
    return Panel("The tails", x, y, tuple(marks))


def observed(sample: TailSample) -> tuple[Floats, Floats]:
    """Ends of bins (or values) and the share of positive values up to them."""
    known = np.isfinite(sample.upper)
    shares = np.cumsum(sample.counts) / sample.counts.sum()
    return sample.upper[known], shares[known]


def _curves(tail: HeavyTail, size: int) -> list[tuple[str, str, float, float, float]]:
    """Label, colour, x_m, share of the values above it, and alpha of each Pareto fit."""
    curves = []
    if tail.paper is not None:
        label = f"paper: alpha {tail.paper.alpha:.3g}, R² {tail.paper.r2:.3f}"
        curves.append((label, PAPER, tail.paper.xm, 1.0, tail.paper.alpha))
    if tail.quantised is not None:
        label = f"quantised: alpha {tail.quantised.alpha:.3g}, R² {tail.quantised.r2:.3f}"
        curves.append((label, QUANTISED, tail.quantised.xm, 1.0, tail.quantised.alpha))
    if tail.mle is not None:
        label = f"likelihood: alpha {tail.mle.alpha:.3g} above x_m"
        curves.append((label, LIKELY, tail.mle.xm, tail.mle.n_tail / size, tail.mle.alpha))
    return curves
