"""A file system that is saturated: a steady stretch of FSU, near its ceiling, that lasts until now (U10)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Final

from iolens.alerts.kinds.fsu import too_little, without_level
from iolens.alerts.results import duration_text
from iolens.alerts.rule import AlertRule, Answers, CheckedWindow, Condition, EvidenceQuestion, RuleKind, unknown

if TYPE_CHECKING:
    from iolens.analyses.utilization.analysis import Utilization
    from iolens.analyses.utilization.saturation import Plateau

LASTS: Final = timedelta(minutes=2)  # a stretch that ends this near the last sample goes on


def questions(rule: AlertRule) -> Sequence[EvidenceQuestion]:
    """Plateaus of the window."""
    return (EvidenceQuestion("utilization", rule.window_s),)


def conditions(rule: AlertRule, answers: Answers, window: CheckedWindow) -> Iterator[Condition]:
    """Of the file system as a whole."""
    result: Utilization = answers["utilization"]
    lack = without_level(result) or too_little(result, rule.window_s)
    if lack is not None or result.plateaus is None or result.coverage.last_sample is None:
        yield unknown(lack or "Samples are too far apart to show a steady stretch.", window.filesystem)
        return
    plateau = _lasting(result.plateaus, result.coverage.last_sample)
    if plateau is None or plateau.median_pct is None:
        why = f"No steady stretch of FSU of {window.filesystem} lasts until now."
        yield Condition(window.filesystem, "clear", why)
        return
    share = 100.0 * plateau.median_pct / plateau.ceiling_pct
    why = (
        f"The FSU of {window.filesystem} has been steady at {plateau.median_pct:.1f} % for "
        f"{duration_text(plateau.duration_s)}: {rule.text(share)} of its ceiling of {plateau.ceiling_pct:g} % "
        f"({plateau.ceiling_origin}; {result.calibration_words}); the threshold is {rule.text(rule.threshold)}."
    )
    stretch = plateau.start, plateau.end
    yield Condition(window.filesystem, rule.level(share), why, share, since=plateau.start, stretch=stretch)


def _lasting(plateaus: Sequence[Plateau], last: datetime) -> Plateau | None:
    return next((plateau for plateau in reversed(plateaus) if plateau.end >= last - LASTS), None)


KIND = RuleKind(
    summary="a file system is saturated",
    measure="level of a steady stretch of FSU, in per cent of the ceiling",
    unit="%",
    threshold=90.0,
    clear=80.0,
    window_s=3600.0,
    clear_for_s=900.0,
    questions=questions,
    conditions=conditions,
    verb=("blame",),
    page="filesystem",
    has_who=True,
)
