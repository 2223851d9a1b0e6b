"""Advice as text of at most 100 columns, the most expensive first."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from iolens.views.brief_page.numbers import hours
from iolens.views.runs_summary.text import not_evaluated_lines, wrapped
from iolens.views.runs_summary.words import gain_words
from iolens.visible_text import counted, shown_name

if TYPE_CHECKING:
    from iolens.analyses.runs.advise import AdviceLine, RunAdvice

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
