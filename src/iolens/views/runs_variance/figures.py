"""Figure of like runs: shortest, mean and longest I/O time of the groups that vary most."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

import numpy as np

from iolens.views.render.figures import (
    READ,
    WRITE_SHADES,
    Axis,
    Bars,
    Figure,
    Panel,
    PointsMark,
)
from iolens.views.runs.words import EMPTY, MOST_NAMES, first_of, height_axis, names_axis, titled
from iolens.views.runs_variance.tables import label_of

if TYPE_CHECKING:
    from iolens.analyses.runs_variance import RunVariance

FIGURES: Final = ("times",)
RANGE: Final = WRITE_SHADES[0]


def figures(result: RunVariance) -> dict[str, Callable[[], Figure]]:
    """I/O times by group."""
    return {"times": lambda: times(result)}


def times(result: RunVariance) -> Figure:
    """A bar from the shortest to the longest, a dot for the mean."""
    lines = [group for group in result.groups if group.max_s > 0][:MOST_NAMES]
    title = titled(result, f"I/O time of like runs{first_of(len(lines), result.groups_known)}")
    names = tuple(label_of(line) for line in lines)
    x = names_axis(names)
    if not lines:
        return Figure("times", title, (Panel("", x, Axis("s"), message=EMPTY),))
    low, mean, high = (np.array([getattr(line, name) for line in lines]) for name in ("min_s", "mean_s", "max_s"))
    y = height_axis("I/O time of the slowest rank (s)", np.concatenate([low, high]))
    places = np.arange(float(len(lines)))
    low = np.maximum(low, y.low if y.scale == "log" and y.low is not None else 0.0)
    marks = (
        Bars(places - 0.25, places + 0.25, high - low, "shortest to longest", RANGE, names, low),
        PointsMark(places, mean, "mean", READ, weight=2.0),
    )
    return Figure("times", title, (Panel("project and processes, largest variation first", x, y, marks, height=1.3),))
