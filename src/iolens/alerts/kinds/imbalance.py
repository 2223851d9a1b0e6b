"""A target that carries far more than its share: by the finding of `iolens imbalance`, and by how many times."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

from iolens.alerts.rule import AlertRule, Answers, CheckedWindow, Condition, EvidenceQuestion, KindOption, RuleKind
from iolens.units import format_bytes_si

if TYPE_CHECKING:
    from iolens.analyses.imbalance.analysis import Imbalance
    from iolens.analyses.imbalance.part import PeerTarget

HIGH: Final = "high"


def questions(rule: AlertRule) -> Sequence[EvidenceQuestion]:
    """Loads of targets beside each other."""
    return (EvidenceQuestion("imbalance", rule.window_s),)


def conditions(rule: AlertRule, answers: Answers, window: CheckedWindow) -> Iterator[Condition]:
    """Each target that reports."""
    result: Imbalance = answers["imbalance"]
    for peer in result.peers:
        if peer.load_ratio is not None and peer.mean_bytes_per_s is not None:
            yield _condition(rule, peer, peer.load_ratio, peer.mean_bytes_per_s, window)


def _condition(rule: AlertRule, peer: PeerTarget, times: float, rate: float, window: CheckedWindow) -> Condition:
    stretch = window.start, window.end
    moved = f"{peer.target} moved {format_bytes_si(rate)}/s, {rule.text(times)} the mean of all targets"
    is_light, is_far = rate < rule.number("least"), peer.finding == HIGH
    level = "clear" if is_light else rule.level(times)
    if level == "reached" and not is_far:  # as uneven as all of them are
        level = "between"
    return Condition(
        peer.target, level, f"{moved}; the threshold is {rule.text(rule.threshold)}.", times, None, stretch
    )


KIND = RuleKind(
    summary="a target carries far more than its peers",
    measure="load against the mean of all targets",
    unit="x",
    threshold=3.0,
    clear=2.0,
    window_s=3600.0,
    for_s=900.0,
    clear_for_s=1800.0,
    severity="info",
    questions=questions,
    conditions=conditions,
    verb=("imbalance",),
    page="target",
    options={"least": KindOption(10e6, "rate")},
)
