"""A target that is silent while its peers report, or moves nothing while they move data (B2)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from statistics import median
from typing import TYPE_CHECKING, Final

from iolens.alerts.changes import NewestRows
from iolens.alerts.rule import AlertRule, Answers, CheckedWindow, Condition, EvidenceQuestion, RuleKind, unknown
from iolens.target_names import kind_by_name
from iolens.units import DAY_S, iso

if TYPE_CHECKING:
    from iolens.analyses.imbalance.analysis import Imbalance
    from iolens.analyses.imbalance.part import PeerTarget

DEAD: Final = "dead"
LEAST_WINDOW_S: Final = 3600.0  # in which a target is compared with what its peers move
FACTOR: Final = 4.0  # times the threshold


def questions(rule: AlertRule) -> Sequence[EvidenceQuestion]:
    """The newest rows of all targets, and how long each moved nothing."""
    return (
        EvidenceQuestion("newest", rule.window_s),
        EvidenceQuestion("imbalance", max(LEAST_WINDOW_S, FACTOR * rule.threshold)),
    )


def conditions(rule: AlertRule, answers: Answers, window: CheckedWindow) -> Iterator[Condition]:
    """Each target against those of its kind; one that is alone of its kind against all others."""
    newest: NewestRows = answers["newest"]
    last = newest.of(window.filesystem)
    if not last:
        yield unknown(f"No target of {window.filesystem} reports in the window.")
        return
    ages = {target: (window.end - time).total_seconds() for target, time in last.items()}
    idle, has_judged = _moving_nothing(answers.get("imbalance")), False
    for target, age_s in sorted(ages.items()):
        peers = _peers(target, ages)
        if not peers or median(peers) >= rule.threshold:
            continue
        has_judged = True
        is_idle = age_s < rule.threshold and target in idle
        yield _idle(rule, idle[target]) if is_idle else _silent(rule, target, age_s, last[target])
    if not has_judged:
        yield unknown(f"Most targets of {window.filesystem} are silent: there is no peer to compare one with.")


def _peers(target: str, ages: Mapping[str, float]) -> list[float]:
    others = {other: age for other, age in ages.items() if other != target}
    alike = [age for other, age in others.items() if kind_by_name(other) == kind_by_name(target)]
    return alike or list(others.values())


def _silent(rule: AlertRule, target: str, age_s: float, last: datetime) -> Condition:
    why = f"{target} has not reported since {iso(last)}, {rule.text(age_s)} ago, while its peers report."
    return Condition(target, rule.level(age_s), why, age_s, since=last)


def _idle(rule: AlertRule, peer: PeerTarget) -> Condition:
    lasted = peer.longest_silent_s
    why = f"{peer.target} has moved nothing for {rule.text(lasted)} while its peers move data."
    return Condition(peer.target, rule.level(lasted), why, lasted, since=peer.silent_from)


def _moving_nothing(result: Imbalance | None) -> dict[str, PeerTarget]:
    return {peer.target: peer for peer in result.peers if peer.finding == DEAD} if result is not None else {}


KIND = RuleKind(
    summary="a target is silent while its peers report",
    measure="time since a target reported or moved anything",
    unit="s",
    threshold=900.0,
    clear=600.0,
    window_s=7.0 * DAY_S,
    severity="critical",
    questions=questions,
    conditions=conditions,
    verb=("imbalance",),
    page="target",
    absent="clear",
    absent_why="It has no row in the whole window, and is taken as removed.",
)
