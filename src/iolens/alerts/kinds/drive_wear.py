"""A drive that is worn: the wear that it reports itself."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from iolens.alerts.rule import AlertRule, Answers, CheckedWindow, Condition, EvidenceQuestion, RuleKind, unknown
from iolens.units import DAY_S

if TYPE_CHECKING:
    from iolens.analyses.drives.analysis import Drives


def questions(rule: AlertRule) -> Sequence[EvidenceQuestion]:
    """The last readings of drives."""
    return (EvidenceQuestion("drives", rule.window_s),)


def conditions(rule: AlertRule, answers: Answers, window: CheckedWindow) -> Iterator[Condition]:
    """Each drive that reports its wear."""
    result: Drives = answers["drives"]
    worn = [(life, life.wear_pct) for life in result.per_drive if life.wear_pct is not None]
    if not worn:
        yield unknown(f"No drive of {window.filesystem} reports its wear in the window.")
    for life, wear in worn:
        where = f" in {life.host}" if life.host is not None else ""
        why = (
            f"Drive {life.serial} ({life.model or 'model not known'}){where} reports {rule.text(wear)} wear; "
            f"the threshold is {rule.text(rule.threshold)}."
        )
        yield Condition(life.serial, rule.level(wear), why, wear)


KIND = RuleKind(
    summary="a drive is worn",
    measure="wear that the drive reports",
    unit="%",
    threshold=80.0,
    clear=80.0,
    window_s=7.0 * DAY_S,
    questions=questions,
    conditions=conditions,
    verb=("drives",),
    page="filesystem",
)
