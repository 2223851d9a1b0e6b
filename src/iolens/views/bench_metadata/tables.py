"""Rates of a metadata study for people."""

from __future__ import annotations

from typing import TYPE_CHECKING

from iolens.views.render import tables as t
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
