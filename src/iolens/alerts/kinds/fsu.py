"""A file system that is busy: its mean FSU over the window."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

from iolens.alerts.results import duration_text
from iolens.alerts.rule import AlertRule, Answers, CheckedWindow, Condition, EvidenceQuestion, RuleKind, unknown

if TYPE_CHECKING:
    from iolens.analyses.calibration.state import RestsOnCalibration
    from iolens.analyses.utilization.analysis import Utilization

LEAST_COVERED: Final = 0.5  # of the window: a mean over less may be of a few ticks


def questions(rule: AlertRule) -> Sequence[EvidenceQuestion]:
    """FSU over the window."""
    return (EvidenceQuestion("utilization", rule.window_s),)


def conditions(rule: AlertRule, answers: Answers, window: CheckedWindow) -> Iterator[Condition]:
    """Of the file system as a whole."""
    result: Utilization = answers["utilization"]
    value, lack = result.mean_pct, without_level(result) or too_little(result, rule.window_s)
    if value is None or lack is not None:
        yield unknown(lack or "FSU is not known in the window.", window.filesystem)
        return
    why = (
        f"The mean FSU of {window.filesystem} over the last {duration_text(rule.window_s)} is {rule.text(value)} "
        f"({result.calibration_words}); the threshold is {rule.text(rule.threshold)}."
    )
    yield Condition(window.filesystem, rule.level(value), why, value, stretch=(window.start, window.end))


def without_level(result: RestsOnCalibration) -> str | None:
    """Why FSU cannot be compared with a threshold; None where it can."""
    if result.has_levels:
        return None
    first, _, rest = result.level_unknown.partition(" ")
    return f"Not evaluated: {first if first.isupper() else first.lower()} {rest}"


def too_little(result: Utilization, window_s: float) -> str | None:
    """Why the window has too few rows to be judged; None where it has enough."""
    covered_s = 3600.0 * (result.coverage.hours_median or 0.0)
    if covered_s >= LEAST_COVERED * window_s:
        return None
    return (
        f"Targets of {result.filesystem} report {duration_text(covered_s)} of the last {duration_text(window_s)}; "
        "at least half is needed."
    )


KIND = RuleKind(
    summary="a file system is busy",
    measure="mean FSU over the window",
    unit="%",
    threshold=80.0,
    clear=70.0,
    window_s=900.0,
    for_s=600.0,
    clear_for_s=600.0,
    questions=questions,
    conditions=conditions,
    verb=("blame",),
    page="filesystem",
    has_who=True,
)
