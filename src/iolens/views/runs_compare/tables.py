"""Two runs, or groups of runs, side by side for people."""

from __future__ import annotations

from typing import TYPE_CHECKING

from iolens.views.render import tables as t
from iolens.views.runs.words import rate_warnings
from iolens.views.runs_compare.words import MEASURES, factor_text, verdict

if TYPE_CHECKING:
    from iolens.analyses.runs.compare import ComparedRuns, RunComparison
    from iolens.views.render.tables import TableView


def tables(result: RunComparison) -> list[TableView]:
    """The numbers first, then what is compared and the findings."""
    return [measures(result), sides(result), findings(result)]


def measures(result: RunComparison) -> TableView:
    """Every measure that one side has."""
    columns = (
        t.text("name", "Measure"), t.text("before", "Before"), t.text("after", "After"),
        t.TableColumn("factor", "After ÷ before", "number", factor_text),
    )  # fmt: skip
    rows: list[t.Row] = []
    for line in result.measures:
        heading, unit, form = MEASURES[line.name]
        shown = [None if value is None else format(value / unit, form) for value in (line.before, line.after)]
        if any(shown):
            rows.append((heading, *shown, line.factor))
    notes = [verdict(result)]
    if result.before.runs > 1 or result.after.runs > 1:
        notes.append("Medians over the runs of each side.")
    title = f"{_names(result.after)}: after beside before"
    doubts = tuple(rate_warnings(result.before.runs_short + result.after.runs_short))
    return t.TableView(title, columns, rows, "\n".join(notes), warnings=doubts, name="measures")


def _names(side: ComparedRuns) -> str:
    return ", ".join(dict.fromkeys(name or "run" for name in side.executables))


def sides(result: RunComparison) -> TableView:
    """Which runs, and their strategies."""
    columns = (
        t.text("label", "Side"), t.count("runs", "Runs"), t.text("jobids", "Jobs"), t.text("executables", "Programs"),
        t.text("strategies", "Strategies"),
    )  # fmt: skip
    rows = [t.row_of(side, columns, _lists(side)) for side in (result.before, result.after)]
    return t.TableView("Runs", columns, rows, name="sides")


def _lists(side: ComparedRuns) -> dict[str, object]:
    lists = {name: getattr(side, name) for name in ("jobids", "executables", "strategies")}
    return {name: [value or "not known" for value in dict.fromkeys(values)] for name, values in lists.items()}


def findings(result: RunComparison) -> TableView:
    """What is gone, new, or still there."""
    columns = (
        t.text("change", "Change"), t.text("code", "Finding"), t.text("message", "What was seen"),
        t.text("remedy", "What to do"),
    )  # fmt: skip
    kinds = (("gone", result.findings_gone), ("new", result.findings_new), ("still there", result.findings_kept))
    rows: list[t.Row] = [
        (change, item.code, item.message, None if change == "gone" else item.remedy)
        for change, items in kinds
        for item in items
    ]
    return t.TableView("Findings", columns, rows, "" if rows else "No finding on either side.", name="findings")
