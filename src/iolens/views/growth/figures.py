"""Figure 1 of paper P for any file system: how the days of growth are distributed."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

import numpy as np

from iolens.analyses.capacity.readings import LEAST_DAYS
from iolens.units import format_bytes_si
from iolens.views.render.figures import WRITE, Axis, Bars, Figure, Panel, Rule
from iolens.views.render.window_axes import window_title
from iolens.visible_text import counted

if TYPE_CHECKING:
    from iolens.analyses.growth import Growth

BINS: Final = 40
UNITS: Final = ((1e18, "EB"), (1e15, "PB"), (1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB"), (1.0, "B"))


def figures(result: Growth) -> dict[str, Callable[[], Figure]]:
    """Fig. 1."""
    return {"growth": lambda: distribution(result)}


def byte_unit(top: float) -> tuple[float, str]:
    """The power of ten that shows `top` as a number from one to a thousand."""
    return next((unit for unit in UNITS if top >= unit[0]), UNITS[-1])


def distribution(result: Growth) -> Figure:
    """Days by growth in equal bins, with mean and median."""
    heading, name = "Distribution of daily growth", "growth"
    kept = np.array(result.kept)
    if result.too_little_data is not None or kept.size < LEAST_DAYS:
        days = f"{counted(kept.size, 'day')} of growth: a distribution needs {LEAST_DAYS}"
        words = result.too_little_data or (days if kept.size else "no day of growth is known")
        return Figure(name, heading, (Panel(result.filesystem, Axis("daily growth"), Axis("days"), message=words),))
    mean, median = float(kept.mean()), float(np.median(kept))
    factor, unit = byte_unit(mean)
    counts, edges = np.histogram(kept / factor, BINS, (0.0, float(kept.max()) / factor or 1.0))
    names = tuple(f"{low:.3g} to {high:.3g} {unit}" for low, high in itertools.pairwise(edges))
    label = f"{counted(kept.size, 'day')} of growth, method {result.method}"
    bars = Bars(edges[:-1], edges[1:], counts.astype(float), label, WRITE, names)
    words = f"median {format_bytes_si(median)}, mean {format_bytes_si(mean)} a day"
    rules = (Rule(median / factor, "vertical", ""), Rule(mean / factor, "vertical", words))
    x = Axis(f"daily growth ({unit})", low=0, high=float(edges[-1]))
    y = Axis("days", low=0, high=1.15 * float(counts.max()))
    return Figure(name, heading, (Panel(window_title(result), x, y, (bars, *rules)),))
