"""Advice as a table, for CSV, Parquet and markdown."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from iolens.views.render import tables as t

if TYPE_CHECKING:
    from iolens.analyses.runs.advise import RunAdvice
    from iolens.views.render.tables import TableView


NOTE: Final = "Findings of the same runs may be about the same time: their core-hours do not add up."


def tables(advice: RunAdvice) -> list[TableView]:
    """A line for each finding of a user's program."""
    columns = (
        t.text("code", "Finding"), t.text("severity", "Severity"), t.text("executable", "Program"),
        t.text("user", "User"), t.count("runs", "Runs"), t.number("core_hours", "In this I/O", "core-hours", ",.3g"),
        t.number("core_hours_lost", "Lost", "core-hours", ",.3g"), t.number("estimated_gain", "Gain", "×", ",.3g"),
        t.text("gain_from", "Gain from"), t.text("jobid", "Job"), t.text("message", "What was seen"),
        t.text("remedy", "What to do"), t.text("reference", "Reference"),
        t.text("shares_time_with", "Time shared with"), t.text("subject", "About"),
    )  # fmt: skip
    return [
        t.TableView(
            "What to change first",
            columns,
            [
                t.row_of(line, columns, {"shares_time_with": ", ".join(line.shares_time_with) or None})
                for line in advice.lines
            ],
            NOTE if any(line.shares_time_with for line in advice.lines) else "",
            name="advice",
            keep=("core_hours", "remedy"),
        )
    ]
