"""Figures of one run: accesses by size."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

import numpy as np

from iolens.views.render.figures import READ, WRITE, Axis, Figure, Panel, side_by_side
from iolens.views.runs_summary.words import size_names

if TYPE_CHECKING:
    from iolens.analyses.runs.summary import RunSummary

FIGURES: Final = ("sizes",)


def figures(run: RunSummary) -> dict[str, Callable[[], Figure]]:
    """By name."""
    return {"sizes": lambda: sizes(run)}


def sizes(run: RunSummary) -> Figure:
    """Reads and writes through POSIX by size."""
    names = size_names(run)
    x = Axis("size of an access, up to", low=-0.6, high=len(names) - 0.4, ticks=tuple(enumerate(names)))
    title = f"{run.executable or 'run'}: accesses by size"
    counts = run.access_sizes
    if counts is None or not any((*counts.read, *counts.write)):
        return Figure("sizes", title, (Panel("POSIX", x, Axis("accesses"), message="none"),))
    bars = side_by_side(
        [
            (f"reads ({sum(counts.read):,})", READ, np.array(counts.read, dtype=float)),
            (f"writes ({sum(counts.write):,})", WRITE, np.array(counts.write, dtype=float)),
        ],
        names,
    )
    return Figure("sizes", title, (Panel("POSIX", x, Axis("accesses", low=0.0), bars),))
