"""Figures of runs by their size: performance, and total bytes beside what strong and weak scaling would have."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

import numpy as np

from iolens.views.render.figures import FSU, READ, RULE, WRITE, Axis, Figure, LineMark, Mark, Panel, PointsMark
from iolens.views.render.log_scales import bytes_unit, log_axis
from iolens.views.runs.words import EMPTY, titled, window_words
from iolens.views.runs_scaling.tables import subject

if TYPE_CHECKING:
    from iolens.analyses.runs_scaling import RunScaling
    from iolens.arrays import Floats

FIGURES: Final = ("performance", "bytes")


def figures(result: RunScaling) -> dict[str, Callable[[], Figure]]:
    """MiB/s per node (or MiB/s), and bytes, by nodes or processes."""
    return {"performance": lambda: performance(result), "bytes": lambda: volumes(result)}


def performance(result: RunScaling) -> Figure:
    """Medians by size."""
    has_nodes = any(step.mib_per_s_per_node is not None for step in result.steps)
    field, words = ("mib_per_s_per_node", "MiB/s per node") if has_nodes else ("mib_per_s", "MiB/s")
    values = np.array([getattr(step, field) for step in result.steps], dtype=float)
    title = titled(result, f"{words} of {subject(result)} by {result.by}")
    return Figure("performance", title, (_panel(result, values, f"median {words}", READ),))


def volumes(result: RunScaling) -> Figure:
    """Total bytes; level is strong scaling, along the diagonal weak."""
    values = np.array([step.bytes for step in result.steps], dtype=float)
    known = values[np.isfinite(values) & (values > 0)]
    factor, unit = bytes_unit(float(known.max()) if known.size else 1.0)
    title = titled(result, f"bytes of {subject(result)} by {result.by}")
    return Figure("bytes", title, (_panel(result, values / factor, f"median {unit} moved", WRITE, guides=True),))


def _panel(result: RunScaling, values: Floats, label: str, colour: str, *, guides: bool = False) -> Panel:
    counts = np.array([float(step.count) for step in result.steps])
    drawn = np.isfinite(values) & (values > 0)
    if not drawn.any():
        return Panel(window_words(result), Axis(result.by), Axis(label), message=EMPTY)
    x, y = counts[drawn], values[drawn]
    marks: list[Mark] = [LineMark(x, y, label, colour), PointsMark(x, y, label, colour, weight=2.0)]
    every = y
    if guides and x.size > 1:
        weak = y[0] * x / x[0]
        every = np.concatenate([y, weak])
        level = np.full(x.size, y[0])
        marks += [LineMark(x, level, "strong scaling", FSU), LineMark(x, weak, "weak scaling", RULE)]
    return Panel(window_words(result), log_axis(result.by, x), log_axis(label, every), tuple(marks), height=1.2)
