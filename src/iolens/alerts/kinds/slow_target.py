"""A target far slower than its peers (B8): by the finding of `iolens latency`, and by its factor in `calibrate drift`.

Latency is that of the window, and contains queueing; the factor is that of the last weeks, at like sizes and queues.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from iolens.alerts.rule import AlertRule, Answers, CheckedWindow, Condition, EvidenceQuestion, RuleKind, unknown

if TYPE_CHECKING:
    from iolens.analyses.calibration_drift import SlowTarget, SlowTargets
    from iolens.analyses.latency.analysis import Latency, TargetLatency

SLOWER, NOT_JUDGED = "slower", "unknown"
LEVELS: Final = ("reached", "between", "clear", "unknown")  # the worst first
SLOW_LEVELS: Final = LEVELS[:2]


def questions(rule: AlertRule) -> Sequence[EvidenceQuestion]:
    """Latency by target, and who is slower than its class."""
    return (EvidenceQuestion("latency", rule.window_s), EvidenceQuestion("slow_targets", rule.window_s))


def conditions(rule: AlertRule, answers: Answers, window: CheckedWindow) -> Iterator[Condition]:
    """Each target, by its worse direction, or by its factor where that is worse."""
    result: Latency = answers["latency"]
    slow: SlowTargets | None = answers.get("slow_targets")
    factors = {item.target: item for item in slow.targets} if slow is not None else {}
    targets: dict[str, list[TargetLatency]] = {target: [] for target in factors}
    for line in result.per_target:
        targets.setdefault(line.target, []).append(line)
    if not factors and not any(line.finding != NOT_JUDGED for line in result.per_target):
        yield unknown(f"No target of {window.filesystem} has enough timed I/Os in the window.")
        return
    for target, lines in sorted(targets.items()):
        known = [_by_latency(rule, target, lines, window)] if lines else []
        if target in factors:
            known.append(_by_factor(rule, factors[target], window))
        yield _together(known)


def _by_latency(rule: AlertRule, target: str, lines: Sequence[TargetLatency], window: CheckedWindow) -> Condition:
    judged = [line for line in lines if line.finding != NOT_JUDGED]
    if not judged:
        return unknown(f"{target}: {lines[0].not_judged}.", target)
    return _condition(rule, max(judged, key=_badness), window)


def _by_factor(rule: AlertRule, item: SlowTarget, window: CheckedWindow) -> Condition:
    why = f"By the counters of the last weeks {item.words} (`iolens calibrate drift`)."
    return Condition(item.target, rule.level(item.factor), why, item.factor, stretch=(window.start, window.end))


def _together(known: Sequence[Condition]) -> Condition:
    """The worse of both kinds of evidence; the other one beside it where it says that the target is slow, too."""
    worst, *others = sorted(known, key=lambda condition: (LEVELS.index(condition.level), -(condition.value or 0.0)))
    more = [other.why for other in others if other.level in SLOW_LEVELS]
    return replace(worst, why=" ".join([worst.why, *more]))


def _badness(line: TargetLatency) -> tuple[bool, float]:
    return line.finding == SLOWER, _times(line) or 0.0


def _times(line: TargetLatency) -> float | None:
    """How many times as slow as its peers: by the 99th percentile, or by the mean wait."""
    return line.p99_ratio if line.p99_ratio is not None else line.mean_wait_ratio


def _condition(rule: AlertRule, line: TargetLatency, window: CheckedWindow) -> Condition:
    times, stretch = _times(line), (window.start, window.end)
    if line.finding != SLOWER or times is None:
        return Condition(line.target, "clear", f"{line.target} is not slower than its peers.", times, stretch=stretch)
    measure = "99th percentile" if line.p99_ratio is not None else "mean wait"
    mine, usual = (
        (line.p99_ms, line.peers_p99_ms) if line.p99_ratio is not None else (line.mean_wait_ms, line.peers_mean_wait_ms)
    )
    why = (
        f"The {measure} of {line.direction}s of {line.target} is {mine:.3g} ms, {rule.text(times)} that of its peers "
        f"({usual:.3g} ms), beyond chance."
    )
    return Condition(line.target, rule.level(times), why, times, stretch=stretch)


LEAST_SLOWER: Final = 2.0  # times: what `iolens latency` calls slower

KIND = RuleKind(
    summary="a target is far slower than its peers",
    measure="latency against the median of the peers, or time of an I/O against its class",
    unit="x",
    threshold=LEAST_SLOWER,
    clear=1.5,
    window_s=3600.0,
    for_s=900.0,
    clear_for_s=1800.0,
    questions=questions,
    conditions=conditions,
    verb=("latency",),
    page="target",
)
