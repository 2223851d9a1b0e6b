"""Rates of a metadata study for people."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

import numpy as np

from iolens.views.render import tables as t
from iolens.views.render.figures import KINDS, Axis, Figure, Panel, PointsMark
from iolens.visible_text import counted

if TYPE_CHECKING:
    from iolens.analyses.bench_metadata import MetadataStudy
    from iolens.views.render.tables import Row, TableView


def headline(result: MetadataStudy) -> str:
    """`File creation 14,684 per second at best, with 1 task.`"""
    words = []
    for operation in ("file_creation", "file_stat", "file_removal"):
        mine = [line for line in result.rates if line.operation == operation]
        if mine:
            best = max(mine, key=lambda line: line.best_ops_per_s)
            tasks = f", with {counted(best.tasks, 'task')}" if best.tasks else ""
            words.append(f"{_shown(operation).capitalize()} {best.best_ops_per_s:,.0f} per second at best{tasks}.")
    return " ".join(words) or f"{counted(len(result.rates), 'rate')} of metadata operations."


def _shown(operation: str) -> str:
    return operation.replace("_", " ")


def tables(result: MetadataStudy) -> list[TableView]:
    """A line for each operation and number of tasks."""
    columns = (
        t.text("place", "Place"), t.text("operation", "Operation"), t.count("tasks", "Tasks"),
        t.number("best_ops_per_s", "Best", "1/s", ",.0f"), t.number("median_ops_per_s", "Median", "1/s", ",.0f"),
        t.percent("spread_pct", "Spread"), t.count("runs", "Runs"),
    )  # fmt: skip
    rows: list[Row] = [
        (
            line.place, _shown(line.operation), line.tasks, line.best_ops_per_s, line.median_ops_per_s,
            line.spread_pct, line.runs,
        )
        for line in result.rates
    ]  # fmt: skip
    note = "Spread: from the slowest run to the best, of the median."
    return [
        t.TableView(
            "Metadata operations", columns, rows, note, warnings=tuple(result.warnings), name="rates",
            keep=("operation", "best_ops_per_s"),
        )
    ]  # fmt: skip


# Rates of metadata operations by number of tasks ----------------------------------------------------------------------

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
