"""Rates of metadata operations by number of tasks."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

import numpy as np

from iolens.views.render.figures import KINDS, Axis, Figure, Panel, side_by_side

if TYPE_CHECKING:
    from iolens.analyses.bench_metadata.results import MetadataStudy

FIGURES: Final = ("rates",)


def figures(result: MetadataStudy) -> dict[str, Callable[[], Figure]]:
    """The only one."""
    return {"rates": lambda: rates(result)}


def rates(result: MetadataStudy) -> Figure:
    """A group of bars for each operation, a bar for each number of tasks; a panel for each place."""
    panels = []
    for place in dict.fromkeys(line.place for line in result.rates):
        mine = [line for line in result.rates if line.place == place]
        names = tuple(dict.fromkeys(line.operation for line in mine))
        groups = []
        for number, tasks in enumerate(dict.fromkeys(line.tasks for line in mine)):
            best = {line.operation: line.best_ops_per_s for line in mine if line.tasks == tasks}
            label = "" if tasks is None else f"{tasks} task{'s' if tasks != 1 else ''}"
            groups.append((label, KINDS[number % len(KINDS)], np.array([best.get(name, np.nan) for name in names])))
        ticks = tuple((float(at), name.replace("_", " ")) for at, name in enumerate(names))
        x = Axis("operation", low=-0.6, high=len(names) - 0.4, ticks=ticks, slanted=True)
        panels.append(Panel(place or "", x, Axis("operations per second", low=0), side_by_side(groups, names)))
    return Figure("rates", "Metadata operations", tuple(panels))
