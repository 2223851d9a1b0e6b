"""Drift: slow targets and monthly costs of random centres whose truth is known."""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from typing import Any

import numpy as np
import pytest
from bench.estimates import outcome
from bench.limited_centre import CentreOrder, random_centre

from iolens.analyses.calibration_drift import CalibrationDrift, calibration_drift, has_days, slow_now, slow_words
from iolens.store.frames import FrameSelection
from tests.soak import IS_SOAK

SMALL = CentreOrder(1, days=6, ticks_a_day=400, targets=3)


def drift_of(order: CentreOrder) -> CalibrationDrift:
    return calibration_drift(FrameSelection(random_centre(order).frames))


@pytest.fixture(scope="module")
def slow() -> CalibrationDrift:
    return drift_of(replace(SMALL, slow=2.0))


def test_a_slow_target_is_named_with_its_factor_and_left_out_of_its_class(slow: CalibrationDrift) -> None:
    assert [item.target for item in slow.slow] == ["random-OST0000"]
    worst = slow.slow[0]
    assert worst.factor == pytest.approx(2.0, rel=0.1)
    assert slow.sentences == [f"{slow_words(worst)}."]
    assert slow.sentences[0].startswith(f"random-OST0000 needs {worst.factor:.1f} times (")
    assert "as long for an I/O as its class" in slow.sentences[0]
    assert {item.targets for item in slow.months} == {2}


def test_sentences_say_since_when_and_never_an_interval_without_width(slow: CalibrationDrift) -> None:
    worst = slow.slow[0]
    sentence = slow_words(replace(worst, since=date(2026, 3, 2), factor=1.84, factor_low=1.81, factor_high=1.83))
    assert sentence == (
        "random-OST0000 needs 1.84 times (1.81 to 1.83) as long for an I/O as its class since 2026-03-02"
    )


def test_busy_time_names_nobody_where_ios_may_overlap() -> None:
    result = drift_of(replace(SMALL, with_busy=True, slow=1.8, ticks_a_day=100))
    busy = [item for item in result.targets if item.evidence == "busy_time"]
    assert [item.direction for item in busy] == [None] * 3
    assert busy[0].factor == pytest.approx(1.8, rel=0.1)
    assert not busy[0].differs
    assert (busy[0].why or "").startswith("busy time alone names nobody")


def test_too_little_evidence_is_no_factor_and_says_why() -> None:
    few_days = drift_of(replace(SMALL, days=2, ticks_a_day=100))
    assert {(item.factor, (item.why or "")[:13]) for item in few_days.targets} == {(None, "too few days:")}
    two = drift_of(replace(SMALL, targets=2, ticks_a_day=100))
    assert {(item.factor, item.why) for item in two.targets} == {
        (None, "fewer than 3 targets of the class have enough ticks of a like size")
    }


def test_a_window_of_a_few_days_is_not_read_for_slow_targets() -> None:
    class Unread(FrameSelection):
        def tick_days(self, tables: Any, tick_us: int) -> Any:
            raise AssertionError

    short = Unread(random_centre(replace(SMALL, days=3, ticks_a_day=20)).frames)
    assert not has_days(short)
    assert slow_now(short).targets == []
    assert not has_days(FrameSelection({}))


def test_nothing_stored_is_no_drift() -> None:
    result = calibration_drift(FrameSelection({}))
    assert (result.targets, result.months, result.samples, result.sentences) == ([], [], 0, [])
    assert {item.note for item in result.changes} == {"too little data: 0 of 3 identified months"}


def test_months_have_coefficients_with_ends_and_the_fullness_of_their_class() -> None:
    result = drift_of(CentreOrder(1, days=40, ticks_a_day=80, targets=2, per_10_points=0.05))
    writes = [item for item in result.months if item.direction == "write"]
    assert [item.month for item in writes] == [date(2026, 1, 1), date(2026, 2, 1)]
    assert writes[0].fullness_pct == pytest.approx(40 + 50 * 15 / 90)
    assert writes[1].fullness_pct == pytest.approx(40 + 50 * 35 / 90, abs=0.1)
    assert writes[0].identified == ["latency", "s_per_byte"]
    assert (writes[0].latency_low_s or np.inf) < (writes[0].latency_s or 0.0) < (writes[0].latency_high_s or 0.0)
    assert {item.per_year_pct for item in result.changes} == {None}


@pytest.mark.skipif(not IS_SOAK, reason="a long form, in make soak")
@pytest.mark.parametrize("kind", ["slow", "alike"])
def test_slow_targets_are_named_and_nobody_else(kind: str) -> None:
    assert sum(outcome(kind, seed).is_right for seed in range(20)) >= 18
