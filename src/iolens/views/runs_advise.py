"""Advice as a table, for CSV, Parquet and markdown."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Final

import numpy as np

from iolens.views.brief_page import hours
from iolens.views.render import tables as t
from iolens.views.render.figures import WRITE, Axis, Bars, Figure, Panel
from iolens.views.runs_summary.text import not_evaluated_lines, wrapped
from iolens.views.runs_summary.words import gain_words
from iolens.visible_text import counted, shown_name

if TYPE_CHECKING:
    from iolens.analyses.runs.advise import AdviceLine, RunAdvice
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


# Advice as text of at most 100 columns, the most expensive first ------------------------------------------------------

MOST_CASES: Final = 5


def run_advice_text(advice: RunAdvice) -> str:
    """All of it."""
    lines = [*_head(advice)]
    for number, line in enumerate(advice.lines, 1):
        lines += ["", *_line(number, line)]
    if not advice.lines:
        lines += ["", "Nothing found that needs attention."]
    lines += not_evaluated_lines(advice.not_evaluated)
    return "".join(f"{line.rstrip()}\n" for line in lines)


def _head(advice: RunAdvice) -> Iterator[str]:
    spent = "" if advice.core_hours is None else f", {hours(advice.core_hours)} in I/O"
    yield from wrapped(f"{counted(advice.runs, 'run')}{spent}; without a finding: {advice.runs_without_findings:,}")
    if advice.left_out:
        yield from wrapped(f"{counted(advice.left_out, 'run')} with less I/O time not examined (--most)")


def _line(number: int, line: AdviceLine) -> Iterator[str]:
    program = " of ".join(shown_name(name) for name in (line.executable, line.user) if name)
    who = ", ".join(name for name in (shown_name(line.subject) if line.subject else "", program) if name) or "runs"
    spent = "" if line.core_hours is None else f", {hours(line.core_hours)} in the I/O it is about{_shared(line)}"
    yield from wrapped(f"{number}. {line.severity.upper()} {line.code}: {who}, {counted(line.runs, 'run')}{spent}")
    shown = f"job {line.jobid}: " if line.jobid and line.runs > 1 else ""
    yield from wrapped(f"   {shown}{line.message}.", "   ")
    yield from _other_cases(line)
    yield from wrapped(f"   What to do: {line.remedy}", "     ")
    if gain := gain_words(line.estimated_gain, line.gain_from):
        lost = "" if line.core_hours_lost is None else f"; {hours(line.core_hours_lost)} lost"
        yield from wrapped(f"   Gain: {gain}{lost}.", "     ")


def _shared(line: AdviceLine) -> str:
    """Which other findings are about the same time, so that nobody adds them up."""
    return f", in part the same as that of {', '.join(line.shares_time_with)}" if line.shares_time_with else ""


def _other_cases(line: AdviceLine) -> Iterator[str]:
    """Other runs that show the same, such as a slow OST, each with its own evidence."""
    others = [case for case in line.cases if case.run_id != line.run_id]
    for case in others[:MOST_CASES]:
        name = " of ".join(shown_name(name) for name in (case.executable, case.user) if name)
        yield from wrapped(f"   Also {name or 'a run'}, job {shown_name(case.jobid or '?')}: {case.message}.", "     ")
    if len(others) > MOST_CASES:
        yield f"   And {counted(len(others) - MOST_CASES, 'more run')}."


# The figure of advice: core-hours by finding --------------------------------------------------------------------------

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
