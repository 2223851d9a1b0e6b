"""Purges and surges are found where they were put, and nowhere else."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from iolens.models.growth import LevelStep, events, usual_pace

DAYS = np.arange(60.0)


def noisy(seed: int = 1, days: int = 60) -> np.ndarray:
    """Usage that grows by 1 ± 1 a day."""
    return 1000 + np.cumsum(np.random.default_rng(seed).normal(1, 1, days))


def test_quiet_growth_has_no_events() -> None:
    result = [events(DAYS, noisy(seed), 0.0) for seed in range(40)]
    assert sum(map(len, result)) <= 4  # 40 times 60 days: about as many as four spreads let through


def test_a_purge_is_dated_and_measured() -> None:
    values = noisy()
    values[30:] -= 200.0  # between reading 29 and 30
    (result,) = events(DAYS, values, 10.0)
    assert (result.kind, result.first, result.last) == ("purge", 29, 30)
    assert result.change == values[30] - values[29]


def test_a_purge_over_several_days_is_one_event() -> None:
    values = noisy()
    for day in (30, 31, 32):
        values[day:] -= 60.0
    (result,) = events(DAYS, values, 10.0)
    assert (result.kind, result.first, result.last) == ("purge", 29, 32)


def test_a_spike_is_a_surge_and_a_purge() -> None:
    values = noisy()
    values[20] += 300.0
    assert [(event.kind, event.first, event.last) for event in events(DAYS, values, 10.0)] == [
        ("surge", 19, 20),
        ("purge", 20, 21),
    ]


def test_a_slow_fall_is_found_by_what_it_adds_up_to() -> None:
    """No single day of it is far out, together they are."""
    random = np.random.default_rng(2)
    steps = random.normal(1, 1, 59)
    steps[25:40] = -2.0  # three spreads off
    values = 1000 + np.concatenate([[0], np.cumsum(steps)])
    (result,) = events(DAYS, values, 5.0)
    assert result.kind == "purge"
    assert (result.first, result.last) == (25, 40)


def test_a_constant_level_with_one_step() -> None:
    values = np.full(60, 500.0)
    assert events(DAYS, values, 5.0) == []
    values[10:] += 50.0
    assert events(DAYS, values, 5.0) == [LevelStep("surge", 9, 10, 50.0)]


def test_what_is_small_beside_the_capacity_is_no_event() -> None:
    values = np.full(60, 500.0)
    values[10:] += 4.0
    assert events(DAYS, values, 5.0) == []


def test_growing_less_than_usual_is_no_purge() -> None:
    values = np.cumsum(np.where(np.arange(60) < 50, 100.0, 1.0))
    assert [event for event in events(DAYS, values, 1.0) if event.kind == "purge"] == []


def test_a_gap_is_measured_by_its_length() -> None:
    """Ten days without readings bring ten days of growth: nothing sudden."""
    values = noisy(3)
    keep = (DAYS < 20) | (DAYS >= 30)
    assert events(DAYS[keep], values[keep], 5.0) == []


def test_no_event_across_a_break() -> None:
    values = np.full(60, 500.0)
    values[10:] += 50.0
    broken = np.zeros(59, dtype=bool)
    broken[9] = True
    assert events(DAYS, values, 5.0, broken) == []


def test_too_few_readings_have_no_pace() -> None:
    assert usual_pace(DAYS[:3], np.array([1.0, 2.0, 900.0])) is None
    assert events(DAYS[:3], np.array([1.0, 2.0, 900.0]), 0.0) == []
    assert events(np.array([]), np.array([]), 0.0) == []


def test_the_usual_pace_is_robust() -> None:
    values = 5.0 * DAYS
    values[30:] -= 1e6
    assert usual_pace(DAYS, values) == pytest.approx((5.0, 0.0))


@given(st.lists(st.integers(-(10**6), 10**6), min_size=0, max_size=40), st.integers(0, 1000))
def test_events_never_overlap_and_point_the_right_way(values: list[int], least: int) -> None:
    used = np.array(values, dtype=float)
    result = events(np.arange(float(len(values))), used, float(least))
    for item in result:
        assert item.first < item.last
        assert (item.change < 0) == (item.kind == "purge")
        assert item.change == used[item.last] - used[item.first]
        assert abs(item.change) >= least
    assert all(a.last <= b.first for a, b in itertools.pairwise(result))
