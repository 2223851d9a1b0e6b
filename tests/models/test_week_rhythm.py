"""Hours differ as their factors say, and all of them together are what was to be drawn from."""

from __future__ import annotations

from datetime import UTC, datetime

import numpy as np
import pytest

from iolens.arrays import Floats
from iolens.models.workload_model import (
    FURTHEST,
    GRID,
    HOURS,
    Marginal,
    factors_of_week,
    hour_of_week,
    local_hours,
    mixture_cdf,
    mixture_survival,
    week_shifts,
)
from iolens.units import epoch_us

READ = Marginal.pareto(1.24, 45e6, 2.7e9)
DAY = [
    0.8,
    0.8,
    0.8,
    0.9,
    0.9,
    1.0,
    1.0,
    1.1,
    1.2,
    1.2,
    1.2,
    1.2,
    1.0,
    1.1,
    1.2,
    1.2,
    1.1,
    1.1,
    1.0,
    1.0,
    0.9,
    0.9,
    0.8,
    0.8,
]
FACTORS = factors_of_week(DAY, [1.0, 1.1, 1.1, 0.9, 1.0, 0.9, 0.9])


def means(marginal: Marginal, shifts: Floats, weights: Floats) -> tuple[Floats, Floats]:
    """What every hour draws on average, and values at even shares of everything drawn."""
    present = weights > 0
    reached = mixture_cdf(shifts[present], weights[present])
    scores = np.sort(np.random.default_rng(1).standard_normal(200_000))
    hours = [marginal.quantile(np.interp(shifts[hour] + scores, GRID, reached)) for hour in np.flatnonzero(present)]
    return np.array([hour.mean() for hour in hours]), np.concatenate([hour[::50] for hour in hours])


@pytest.mark.parametrize("weights", [np.ones(HOURS), np.r_[np.ones(30), np.zeros(HOURS - 30)]])
def test_hours_follow_their_factors_and_the_whole_does_not_change(weights: Floats) -> None:
    shifts = week_shifts(READ, FACTORS, weights)
    by_hour, everything = means(READ, shifts, weights)
    there = FACTORS[weights > 0]
    assert by_hour / by_hour.mean() == pytest.approx(there / there.mean(), rel=0.02)
    for share in (0.1, 0.5, 0.9, 0.99):
        expected = READ.quantile(np.array([share]))[0]
        assert np.quantile(everything, share) == pytest.approx(expected, rel=0.02)


def test_no_rhythm_is_no_shift() -> None:
    assert not week_shifts(READ, np.full(HOURS, 1.7), np.ones(HOURS)).any()


def test_what_is_out_of_reach_comes_as_near_as_possible() -> None:
    """A tenth of the mean is below the smallest value there is."""
    shifts = week_shifts(READ, np.where(np.arange(HOURS) % 24 < 8, 0.05, 1.0), np.ones(HOURS))
    assert shifts.min() == -FURTHEST
    assert np.isfinite(shifts).all()


def test_both_tails_of_the_mixture() -> None:
    shifts, weights = np.array([-0.5, 0.5]), np.array([1.0, 3.0])
    below, above = mixture_cdf(shifts, weights), mixture_survival(shifts, weights)
    assert below + above == pytest.approx(np.ones(GRID.size))
    assert above[np.searchsorted(GRID, 9.0)] > 0


def test_the_week_begins_on_monday_in_local_time() -> None:
    monday = epoch_us(datetime(2026, 1, 5, 0, 30, tzinfo=UTC))
    ends = np.array([monday, monday + 3_600_000_000])
    assert hour_of_week(local_hours(ends, "UTC")).tolist() == [0, 1]
    assert hour_of_week(local_hours(ends, "Europe/Berlin")).tolist() == [1, 2]
    assert hour_of_week(local_hours(ends, "America/New_York")).tolist() == [163, 164]
    assert hour_of_week(local_hours(ends, "Asia/Kolkata")).tolist() == [5, 6]


def test_a_tick_that_ends_with_an_hour_belongs_to_it() -> None:
    full = epoch_us(datetime(2026, 1, 5, 9, tzinfo=UTC))
    assert (local_hours(np.array([full, full + 1]), "UTC") % 24).tolist() == [8, 9]


def test_clocks_are_put_forward() -> None:
    """In Berlin, 2026-03-29 has no hour from 2 to 3."""
    ends = np.arange(24) * 3_600_000_000 + epoch_us(datetime(2026, 3, 28, 23, 30, tzinfo=UTC))
    hours = local_hours(ends, "Europe/Berlin")
    assert (hours % 24).tolist() == [0, 1, *range(3, 24), 0]
    assert len(set((hours // 24).tolist())) == 2
