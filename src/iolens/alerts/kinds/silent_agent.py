"""An agent that sends nothing, or a file system of which nothing new is stored."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime

from iolens.alerts.changes import NewestRows
from iolens.alerts.rule import AlertRule, Answers, CheckedWindow, Condition, EvidenceQuestion, RuleKind
from iolens.units import DAY_S, iso


def questions(rule: AlertRule) -> Sequence[EvidenceQuestion]:
    """The newest rows of agents and targets."""
    return (EvidenceQuestion("newest", rule.window_s),)


def conditions(rule: AlertRule, answers: Answers, window: CheckedWindow) -> Iterator[Condition]:
    """Every agent of the window, and every file system of the store."""
    newest: NewestRows = answers["newest"]
    for host, time in sorted(newest.agents.items()):
        yield _condition(rule, f"The agent on {host}", host, time, window.end, None)
    for filesystem, targets in sorted(newest.targets.items()):
        if rule.concerns(filesystem):
            last = max(targets.values(), default=None)
            yield _condition(rule, f"No row of {filesystem}", filesystem, last, window.end, filesystem)


def _condition(
    rule: AlertRule, what: str, subject: str, last: datetime | None, now: datetime, filesystem: str | None
) -> Condition:
    verb = "is stored" if filesystem is not None else "has sent nothing"
    if last is None:
        why = f"{what} {verb} within {rule.text(rule.window_s)}."
        return Condition(subject, "reached", why, filesystem=filesystem)
    age_s = (now - last).total_seconds()
    why = f"{what} {verb} since {iso(last)}, {rule.text(age_s)} ago; the threshold is {rule.text(rule.threshold)}."
    return Condition(subject, rule.level(age_s), why, age_s, since=last, filesystem=filesystem)


KIND = RuleKind(
    summary="an agent, or everything of a file system, is silent",
    measure="time since the newest row",
    unit="s",
    threshold=1800.0,
    clear=1200.0,
    window_s=7.0 * DAY_S,
    questions=questions,
    conditions=conditions,
    verb=("store", "info"),
    page="data",
    of_store=True,
    absent="clear",
    absent_why="It has no row in the whole window: it is taken as removed.",
)
