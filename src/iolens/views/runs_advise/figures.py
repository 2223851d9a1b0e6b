"""The figure of advice: core-hours by finding."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

import numpy as np

from iolens.views.render.figures import WRITE, Axis, Bars, Figure, Panel

if TYPE_CHECKING:
    from iolens.analyses.runs.advise import RunAdvice

FIGURES: Final = ("core-hours",)
MOST_SHOWN: Final = 8


def figures(advice: RunAdvice) -> dict[str, Callable[[], Figure]]:
    """By name."""
    return {"core-hours": lambda: core_hours(advice)}


def core_hours(advice: RunAdvice) -> Figure:
    """The lines with most core-hours."""
    lines = [line for line in advice.lines if line.core_hours is not None][:MOST_SHOWN]
    names = tuple(f"{line.code} {line.executable or ''}".strip() for line in lines)
    x = Axis("finding and program", low=-0.6, high=max(len(lines), 1) - 0.4, ticks=tuple(enumerate(names)))
    y = Axis("core-hours in the I/O it is about", low=0.0)
    if not lines:
        return Figure("core-hours", "What to change first", (Panel("findings", x, y, message="no finding"),))
    places = np.arange(len(lines), dtype=float)
    bars = Bars(places - 0.4, places + 0.4, np.array([line.core_hours for line in lines]), "core-hours", WRITE, names)
    return Figure("core-hours", "What to change first", (Panel("findings", x, y, (bars,)),))
