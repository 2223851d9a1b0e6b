"""Purging by age against brute force over single files."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from iolens.models.growth import AgeDistribution, Policy, simulate, steady_peak, steady_trough

ENDS = (1.0, 2.0, 4.0, 7.0, 14.0, 28.0, 56.0, np.inf)


def binned(files: list[tuple[float, int]]) -> AgeDistribution:
    """Files as (age, bytes) in the bins of a scan."""
    starts = (0.0, *ENDS[:-1])
    sizes = [sum(size for age, size in files if low < age <= high) for low, high in zip(starts, ENDS, strict=True)]
    return AgeDistribution(np.array(starts), np.array(ENDS), np.array(sizes, dtype=float))


files = st.lists(st.tuples(st.floats(0.001, 400), st.integers(0, 10**6)), max_size=30)


@given(files, st.floats(0, 450))
def test_bounds_hold_whatever_files_are_in_the_bins(pairs: list[tuple[float, int]], days: float) -> None:
    truth = sum(size for age, size in pairs if age <= days)
    bounds = binned(pairs).younger(days)
    assert bounds.low <= truth + 1e-6
    assert truth <= bounds.high + 1e-6
    assert bounds.low <= bounds.likely <= bounds.high


@given(files)
def test_at_an_edge_of_a_bin_nothing_is_open(pairs: list[tuple[float, int]]) -> None:
    truth = sum(size for age, size in pairs if age <= 28)
    assert binned(pairs).younger(28.0) == pytest.approx((truth, truth, truth))


@given(files)
def test_no_byte_is_lost_when_spread_over_days(pairs: list[tuple[float, int]]) -> None:
    distribution = binned(pairs)
    by_day = distribution.by_day()
    assert by_day.sum() == pytest.approx(distribution.total)
    assert (by_day >= -1e-9).all()
    assert by_day[:28].sum() == pytest.approx(distribution.younger(28.0).likely)


def test_what_was_used_this_time_counts() -> None:
    distribution = AgeDistribution(np.array([0.0, 0.0]), np.array([0.0, 2.0]), np.array([7.0, 4.0]))
    assert distribution.younger(0.0).likely == 7.0
    assert distribution.by_day().tolist()[:2] == [9.0, 2.0]


@given(
    st.lists(st.integers(0, 60), max_size=20),
    st.integers(1, 10),
    st.integers(1, 12),
    st.integers(1, 9),
)
def test_the_simulation_is_what_deleting_single_files_gives(ages: list[int], daily: int, keep: int, every: int) -> None:
    """Every byte is a file of its own, with its own birthday."""
    days = 40
    start = np.bincount(np.array(ages, dtype=int), minlength=61).astype(float)
    course = simulate(start, float(daily), Policy(keep, every), days)
    born = [-age for age in ages]  # a file of age index a is in its (a + 1)-th day of life
    for day in range(1, days + 1):
        born += [day] * daily
        assert course.before[day] == len(born)
        if day % every == 0:
            born = [birth for birth in born if day - birth < keep]
        assert course.after[day] == len(born)


@given(st.integers(1, 40), st.integers(1, 40), st.integers(0, 100))
def test_it_settles_where_the_formula_says(keep: int, every: int, old: int) -> None:
    policy = Policy(keep, every)
    course = simulate(np.full(50, float(old)), 3.0, policy, 4 * (keep + every) + 100)
    last = slice(-(keep + every), None)
    assert course.before[last].max() == pytest.approx(steady_peak(3.0, policy))
    assert course.after[last].min() == pytest.approx(steady_trough(3.0, policy))
    assert (course.before - course.after).max() >= 3.0 * every


def test_the_study_s_policy_is_its_purge_fraction() -> None:
    """Kept 28 days, purged every 28: half of the peak goes each time, as PF = 0.5 of Eq. 1 says."""
    policy = Policy(28, 28)
    assert steady_peak(133e12, policy) == pytest.approx(133e12 * 28 / 0.5)
    assert steady_trough(133e12, policy) / steady_peak(133e12, policy) == 0.5


def test_nothing_to_start_with() -> None:
    empty = AgeDistribution(np.array([]), np.array([]), np.array([]))
    assert empty.by_day().tolist() == [0.0]
    assert empty.younger(5.0) == (0.0, 0.0, 0.0)
    assert simulate(empty.by_day(), 1.0, Policy(2, 1), 5).after.tolist() == [0.0, 1.0, 2.0, 2.0, 2.0, 2.0]
