"""The alert `slow-target` by latency, by the factor of the last weeks, and by both."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import pytest

from iolens.alerts.kinds import get_kind
from iolens.alerts.kinds.slow_target import conditions
from iolens.alerts.rule import CheckedWindow, Condition, default_rule
from iolens.analyses.calibration_drift import SlowTarget, SlowTargets
from iolens.analyses.latency.analysis import TargetLatency

RULE = default_rule("slow-target", get_kind("slow-target"))
WINDOW = CheckedWindow("scratch", datetime(2026, 3, 2, 9, tzinfo=UTC), datetime(2026, 3, 2, 10, tzinfo=UTC))
USUAL = TargetLatency(
    target="OST0001", direction="read", ios=5000, p50_ms=1.0, p95_ms=2.0, p99_ms=4.0, max_ms=8.0, mean_wait_ms=None,
    p99_low_ms=None, p99_high_ms=None, peers_p99_ms=4.0, p99_ratio=1.0, slow_pct=None, peers_mean_wait_ms=None,
    mean_wait_ratio=None, finding="usual", not_judged=None, evidence=None,
)  # fmt: skip
SLOW = replace(USUAL, finding="slower", p99_ratio=8.0, p99_ms=32.0)
UNKNOWN = replace(USUAL, finding="unknown", not_judged="30 I/Os of 1000")
WORDS = "OST0001 needs 2.5 times (2.2 to 2.9) as long for an I/O as its class since 2026-02-20"


def seen(*lines: TargetLatency, factor: float | None = None) -> Condition:
    slow = [] if factor is None else [SlowTarget("OST0001", factor, WORDS)]
    answers: dict[str, Any] = {"latency": SimpleNamespace(per_target=lines), "slow_targets": SlowTargets(slow)}
    (condition,) = conditions(RULE, answers, WINDOW)
    return condition


def test_the_factor_alone_reaches_the_threshold_and_the_alert_says_so() -> None:
    for lines in ((), (USUAL,), (UNKNOWN,)):
        condition = seen(*lines, factor=2.5)
        assert (condition.subject, condition.level, condition.value) == ("OST0001", "reached", 2.5)
        assert condition.why == f"By the counters of the last weeks {WORDS} (`iolens calibrate drift`)."


def test_both_kinds_of_evidence_are_named_the_worse_first() -> None:
    condition = seen(SLOW, factor=2.5)
    assert (condition.level, condition.value) == ("reached", 8.0)
    assert condition.why.startswith("The 99th percentile of reads of OST0001 is 32 ms")
    assert condition.why.endswith(f"By the counters of the last weeks {WORDS} (`iolens calibrate drift`).")


@pytest.mark.parametrize(("factor", "level"), [(1.3, "clear"), (1.8, "between"), (2.0, "reached")])
def test_the_threshold_holds_for_the_factor_as_for_latency(factor: float, level: str) -> None:
    assert seen(USUAL, factor=factor).level == level


def test_without_a_factor_it_is_as_latency_says() -> None:
    assert (seen(USUAL).level, seen(SLOW).level) == ("clear", "reached")
    assert seen(UNKNOWN).why == "No target of scratch has enough timed I/Os in the window."
