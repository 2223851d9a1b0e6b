"""Limits, verdicts and scores."""

from __future__ import annotations

import pytest

from iolens.models.acceptance import (
    MEASURES,
    Limit,
    LimitCheck,
    StepResult,
    bandwidth_score,
    geometric_mean,
    operations_score,
    total_score,
)
from iolens.units import GIB


@pytest.mark.parametrize(
    ("value", "verdict", "ratio"),
    [(2e9, "pass", 2.0), (1e9, "pass", 1.0), (0.9e9, "fail", 0.9), (None, "not measured", None)],
)  # fmt: skip
def test_a_rate_must_be_reached(value: float | None, verdict: str, ratio: float | None) -> None:
    check = LimitCheck.of("read-bandwidth", Limit("read_bytes_per_s", 1e9, None, "why"), value)
    assert check.verdict == verdict
    assert check.ratio == (ratio if ratio is None else pytest.approx(ratio))
    assert check.reason == "why"


@pytest.mark.parametrize(("value", "verdict", "ratio"), [(0.01, "pass", 2.0), (0.02, "pass", 1.0), (0.04, "fail", 0.5)])
def test_a_delay_must_not_be_exceeded(value: float, verdict: str, ratio: float) -> None:
    check = LimitCheck.of("workload", Limit("read_p99_s", None, 0.02, ""), value)
    assert check.verdict == verdict
    assert check.ratio == pytest.approx(ratio)


def test_nothing_measured_as_zero_has_no_ratio_to_a_ceiling() -> None:
    assert LimitCheck.of("workload", Limit("size_deviation_points", None, 5.0, ""), 0.0).ratio is None
    assert LimitCheck.of("workload", Limit("size_deviation_points", None, 5.0, ""), 0.0).verdict == "pass"


def test_scores_are_geometric_means() -> None:
    steps = [
        StepResult("w", "bandwidth", "fio", write_bytes_per_s=1.0 * GIB, write_ops_per_s=1.0),
        StepResult("r", "bandwidth", "fio", read_bytes_per_s=4.0 * GIB, read_ops_per_s=1.0),
        StepResult("wo", "operations", "fio", write_ops_per_s=9_000.0),
        StepResult("ro", "operations", "fio", read_ops_per_s=1_000.0),
    ]
    assert bandwidth_score(steps) == pytest.approx(2.0)
    assert operations_score(steps) == pytest.approx(3.0)
    assert total_score(2.0, 3.0) == pytest.approx(6.0**0.5)
    assert geometric_mean([2.0, 8.0]) == pytest.approx(4.0)


def test_a_missing_step_leaves_no_score() -> None:
    steps = [
        StepResult("w", "bandwidth", "fio", write_bytes_per_s=1.0 * GIB),
        StepResult("r", "bandwidth", "fio", trouble="the disk went away"),
    ]
    assert bandwidth_score(steps) is None
    assert operations_score(steps) is None
    assert total_score(None, 3.0) is None


def test_measures_are_what_a_step_tells() -> None:
    assert {"read_bytes_per_s", "write_p99_s", "served_pct", "size_deviation_points"} <= set(MEASURES)
    assert not {"name", "kind", "tool", "trouble"} & set(MEASURES)
    step = StepResult("x", "workload", "fio", served_pct=99.0)
    assert [step.value(item) for item in MEASURES if item == "served_pct"] == [99.0]
