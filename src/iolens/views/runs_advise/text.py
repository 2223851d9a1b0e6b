"""Advice as text of at most 100 columns, the most expensive first."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from iolens.views.brief_page.numbers import hours
from iolens.views.runs_summary.text import not_evaluated_lines, wrapped
from iolens.views.runs_summary.words import gain_words
from iolens.visible_text import counted, shown_name

if TYPE_CHECKING:
    from iolens.analyses.runs.advise import AdviceLine, RunAdvice


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
    who = " of ".join(shown_name(name) for name in (line.executable, line.user) if name) or "runs"
    spent = "" if line.core_hours is None else f", {hours(line.core_hours)} in the I/O it is about"
    yield from wrapped(f"{number}. {line.severity.upper()} {line.code}: {who}, {counted(line.runs, 'run')}{spent}")
    shown = f"job {line.jobid}: " if line.jobid and line.runs > 1 else ""
    yield from wrapped(f"   {shown}{line.message}.", "   ")
    yield from wrapped(f"   What to do: {line.remedy}", "     ")
    if gain := gain_words(line.estimated_gain, line.gain_from):
        lost = "" if line.core_hours_lost is None else f"; {hours(line.core_hours_lost)} lost"
        yield from wrapped(f"   Gain: {gain}{lost}.", "     ")
