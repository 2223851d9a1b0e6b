"""Lines through readings, against brute force and against lines that are known."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from iolens.models import trend
from iolens.models.trend import TrendLine, TrendLines, fit, least_squares, resampled_lines, theil_sen

points = st.lists(
    st.tuples(st.integers(-500, 500), st.integers(-1000, 1000)), min_size=2, max_size=25, unique_by=lambda item: item[0]
)


def split(pairs: list[tuple[int, int]]) -> tuple[np.ndarray, np.ndarray]:
    days, values = zip(*sorted(pairs), strict=True)
    return np.array(days, dtype=float), np.array(values, dtype=float)


@given(points)
def test_theil_sen_is_the_median_slope_of_all_pairs(pairs: list[tuple[int, int]]) -> None:
    days, values = split(pairs)
    slopes = [(values[b] - values[a]) / (days[b] - days[a]) for a, b in itertools.combinations(range(len(days)), 2)]
    slope = float(np.median(slopes))
    result = theil_sen(days, values)
    assert result is not None
    assert result.slope == pytest.approx(slope, rel=1e-12, abs=1e-12)
    assert result.level == pytest.approx(float(np.median(values - slope * days)), rel=1e-9, abs=1e-9)


@given(points)
def test_least_squares_is_what_numpy_fits(pairs: list[tuple[int, int]]) -> None:
    days, values = split(pairs)
    slope, level = np.polyfit(days, values, 1)
    result = least_squares(days, values)
    assert result is not None
    assert result.slope == pytest.approx(slope, rel=1e-6, abs=1e-6)
    assert result.level == pytest.approx(level, rel=1e-6, abs=1e-5)


@pytest.mark.parametrize("method", trend.METHODS)
def test_a_line_comes_back(method: trend.Method) -> None:
    days = np.array([0.0, 1.0, 2.5, 7.0, 7.25])
    result = fit(method, days, 40.0 - 3.0 * days)
    assert result == pytest.approx((-3.0, 40.0))


@pytest.mark.parametrize("method", trend.METHODS)
def test_one_reading_or_one_time_has_no_line(method: trend.Method) -> None:
    assert fit(method, np.array([1.0]), np.array([5.0])) is None
    assert fit(method, np.array([]), np.array([])) is None
    assert fit(method, np.array([1.0, 1.0]), np.array([5.0, 6.0])) is None


def test_wild_readings_move_theil_sen_little() -> None:
    days = np.arange(100.0)
    values = 2.0 * days
    values[::7] += 1e6
    robust, squares = theil_sen(days, values), least_squares(days, values)
    assert robust is not None
    assert squares is not None
    assert robust.slope == pytest.approx(2.0, abs=0.3)
    assert abs(squares.slope - 2.0) > 10


def test_many_readings_are_sampled_and_twice_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    random = np.random.default_rng(1)
    days = np.sort(random.uniform(0, 400, 900))
    values = 5.0 * days + random.normal(0, 50, 900)
    exact = theil_sen(days, values)
    monkeypatch.setattr(trend, "MOST_EXACT", 100)
    assert not trend.is_exact(900)
    sampled = theil_sen(days, values)
    assert exact is not None
    assert sampled is not None
    assert sampled.slope == pytest.approx(exact.slope, abs=0.01)
    assert sampled == theil_sen(days, values)


def test_sampled_pairs_are_of_different_readings_and_all_alike() -> None:
    first, second = trend._drawn_pairs(5, 100_000, np.random.default_rng(2))
    assert (first != second).all()
    counts = np.bincount(first * 5 + second, minlength=25).reshape(5, 5)
    assert counts[~np.eye(5, dtype=bool)].min() > 100_000 / 20 * 0.9


@pytest.mark.parametrize("method", trend.METHODS)
def test_the_interval_covers_the_truth_about_as_often_as_it_says(
    method: trend.Method, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Residuals that last for days: an interval that took them for independent would miss far more often."""
    monkeypatch.setattr(trend, "RESAMPLES", 300)
    monkeypatch.setattr(trend, "RESAMPLED_PAIRS", 1500)
    random = np.random.default_rng(3)
    days, covered, naive = np.arange(150.0), 0, 0
    trials = 40
    for _ in range(trials):
        noise = random.normal(size=150)
        for place in range(1, 150):
            noise[place] += 0.8 * noise[place - 1]
        line = fit(method, days, 0.5 * days + noise)
        assert line is not None
        lines = resampled_lines(method, days, 0.5 * days + noise, line)
        assert lines is not None
        low, high = np.percentile(lines.slopes, (2.5, 97.5))
        covered += low <= 0.5 <= high
        error = noise.std() / np.sqrt(((days - days.mean()) ** 2).sum())
        naive += abs(line.slope - 0.5) <= 1.96 * error
    assert covered >= 0.85 * trials
    assert naive < 0.7 * trials


def test_resampled_least_squares_are_least_squares() -> None:
    random = np.random.default_rng(4)
    days = np.sort(random.uniform(0, 30, 12))
    rows = random.normal(0, 1, (5, 12))
    result = trend._LeastSquares(days)(rows)
    for row, slope, level in zip(rows, result.slopes, result.levels, strict=True):
        assert least_squares(days, row) == pytest.approx((slope, level), rel=1e-9)


def test_resampled_theil_sen_is_theil_sen() -> None:
    random = np.random.default_rng(5)
    days = np.sort(random.uniform(0, 30, 12))
    rows = random.normal(0, 1, (5, 12))
    result = trend._TheilSen(days, random)(rows)
    for row, slope, level in zip(rows, result.slopes, result.levels, strict=True):
        assert theil_sen(days, row) == pytest.approx((slope, level), rel=1e-9)


def test_few_readings_have_no_interval() -> None:
    days = np.arange(float(trend.LEAST_FOR_INTERVAL - 1))
    assert resampled_lines("linear", days, days, TrendLine(1.0, 0.0)) is None


def test_a_line_reaches_a_value_once_or_never() -> None:
    assert TrendLine(2.0, 10.0).reaches(20.0) == 5.0
    assert TrendLine(-2.0, 10.0).reaches(20.0) == -5.0
    assert TrendLine(0.0, 10.0).reaches(20.0) is None
    days = TrendLines(np.array([2.0, 0.0, -1.0]), np.array([10.0, 10.0, 10.0])).reach(20.0)
    assert days.tolist() == [5.0, np.inf, np.inf]
