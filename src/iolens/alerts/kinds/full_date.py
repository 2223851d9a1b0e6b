"""A file system that will soon be full: the day on which the line through its readings reaches a fullness."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import date, datetime
from typing import TYPE_CHECKING

from iolens.alerts.kinds.fullness import BYTES, INODES
from iolens.alerts.results import duration_text
from iolens.alerts.rule import (
    AlertRule,
    Answers,
    CheckedWindow,
    Condition,
    EvidenceQuestion,
    KindOption,
    RuleKind,
    unknown,
)
from iolens.units import DAY_S

if TYPE_CHECKING:
    from iolens.analyses.capacity.analysis import Capacity, InodeUsage

REACHED, UNKNOWN = "reached", "unknown"


def questions(rule: AlertRule) -> Sequence[EvidenceQuestion]:
    """The projection to the fullness that the rule names."""
    return (EvidenceQuestion("capacity", rule.window_s, (("threshold_pct", rule.number("full")),)),)


def conditions(rule: AlertRule, answers: Answers, window: CheckedWindow) -> Iterator[Condition]:
    """Of bytes and of inodes; nothing where the analysis has too little data for a date."""
    result: Capacity = answers["capacity"]
    if not result.samples:
        yield unknown(f"No reading of the capacity of {window.filesystem} is in the window.")
        return
    if BYTES in rule.words("of"):
        yield _condition(rule, window, BYTES, result)
    if INODES in rule.words("of") and result.inodes is not None:
        yield _condition(rule, window, INODES, result.inodes)


def _condition(rule: AlertRule, window: CheckedWindow, subject: str, usage: Capacity | InodeUsage) -> Condition:
    full, what = f"{rule.number('full'):g} %", f"The {subject} of {window.filesystem}"
    state, day = usage.threshold_state, usage.threshold_date
    if usage.too_little_data is not None and state != REACHED:
        return unknown(f"{what}: {usage.too_little_data}.", subject)
    if state == UNKNOWN:
        return unknown(f"{what}: the total is not known.", subject)
    if day is None and state != REACHED:
        return Condition(subject, "clear", f"{what} do not reach {full} at the present pace: {state}.")
    left_s = 0.0 if state == REACHED else max(_until(day, window.end), 0.0)
    when = f"have reached {full}" if state == REACHED else f"will reach {full} on {day}, in {duration_text(left_s)}"
    why = f"{what} {when}; the threshold is {rule.text(rule.threshold)}."
    return Condition(subject, rule.level(left_s), why, left_s, stretch=(window.start, window.end))


def _until(day: date | None, now: datetime) -> float:
    """Seconds until a day begins."""
    return float((day - now.date()).days * DAY_S) if day is not None else 0.0


KIND = RuleKind(
    summary="a file system will soon be full",
    measure="time until the projection reaches the fullness",
    unit="s",
    threshold=14.0 * DAY_S,
    clear=21.0 * DAY_S,
    window_s=30.0 * DAY_S,
    is_below=True,
    forecasts=True,
    questions=questions,
    conditions=conditions,
    verb=("capacity",),
    page="contents",
    options={"of": KindOption((BYTES, INODES), "words", (BYTES, INODES)), "full": KindOption(90.0, "%")},
)
