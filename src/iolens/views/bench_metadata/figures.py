"""Rates of metadata operations by number of tasks."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

import numpy as np

from iolens.views.render.figures import KINDS, Axis, Figure, Panel, PointsMark

if TYPE_CHECKING:
    from iolens.analyses.bench_metadata import MetadataStudy

FIGURES: Final = ("rates",)
_WEIGHT: Final = 3.0


def figures(result: MetadataStudy) -> dict[str, Callable[[], Figure]]:
    """The only one."""
    return {"rates": lambda: rates(result)}


def rates(result: MetadataStudy) -> Figure:
    """A dot for each operation and number of tasks; a panel for each place. Rates differ by orders of magnitude."""
    panels = []
    for place in dict.fromkeys(line.place for line in result.rates):
        mine = [line for line in result.rates if line.place == place]
        names = list(dict.fromkeys(line.operation for line in mine))
        marks = []
        for number, tasks in enumerate(dict.fromkeys(line.tasks for line in mine)):
            best = [(names.index(line.operation), line.best_ops_per_s) for line in mine if line.tasks == tasks]
            x, y = (np.array(values, float) for values in zip(*best, strict=True))
            label = "" if tasks is None else f"{tasks} task{'s' if tasks != 1 else ''}"
            marks.append(PointsMark(x, y, label, KINDS[number % len(KINDS)], weight=_WEIGHT))
        ticks = tuple((float(at), name.replace("_", " ")) for at, name in enumerate(names))
        axis = Axis("operation", low=-0.6, high=len(names) - 0.4, ticks=ticks, slanted=True)
        panels.append(Panel(place or "", axis, Axis("operations per second", "log"), tuple(marks)))
    return Figure("rates", "Metadata operations", tuple(panels))
