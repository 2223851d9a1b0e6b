"""Two studies side by side: change of every case."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

import numpy as np

from iolens.units import format_bytes
from iolens.views.render.figures import KINDS, READ, WRITE, Axis, Bars, Figure, Panel, Rule
from iolens.visible_text import counted

if TYPE_CHECKING:
    from iolens.analyses.bench_compare import MeasureChange, StudyComparison

FIGURES: Final = ("changes",)
MOST: Final = 40  # bars that can still be distinguished


def figures(result: StudyComparison) -> dict[str, Callable[[], Figure]]:
    """The only one."""
    return {"changes": lambda: changes(result)}


def changes(result: StudyComparison) -> Figure:
    """A bar for each case, a panel for each direction; the largest changes where there are many."""
    panels = []
    for direction in dict.fromkeys(line.direction for line in result.changes):
        mine = [line for line in result.changes if line.direction == direction]
        shown = sorted(mine, key=lambda line: -abs(line.change_pct))[:MOST]
        lines = [line for line in mine if line in shown]
        places = np.arange(len(lines), dtype=float)
        names = tuple(_name(line) for line in lines)
        heights = np.array([line.change_pct for line in lines])
        colour = {"write": WRITE, "read": READ}.get(direction, KINDS[1])
        bars = Bars(places - 0.4, places + 0.4, heights, direction, colour, names)
        ticks = tuple(zip(places.tolist(), names, strict=True))
        x = Axis("case", low=-0.6, high=len(lines) - 0.4, ticks=ticks, slanted=True)
        panels.append(Panel(direction, x, Axis("change (%)"), (bars, Rule(0.0, "horizontal", ""))))
    return Figure("changes", f"From {result.before} to {result.after}", tuple(panels))


def _name(line: MeasureChange) -> str:
    parts = [
        line.place or "",
        line.call or "",
        format_bytes(line.transfer_bytes) if line.transfer_bytes else "",
        counted(line.stripe_count, "stripe") if line.stripe_count else "",
        f"{line.tasks} tasks" if line.tasks and line.tasks > 1 else "",
    ]
    return " ".join(filter(None, parts)) or line.direction
