"""Percentiles in bounded memory against NumPy's own, exact and from bins."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from iolens.models import log_sketch
from iolens.models.log_sketch import ERROR_PCT, LogSketch, bin_ends, bin_of

SHARES = [0.0, 0.25, 0.5, 0.95, 0.99, 0.999, 1.0]

values = st.one_of(st.just(0.0), st.just(np.nan), st.floats(1e-6, 1e15))
matrices = hnp.arrays(np.float64, st.tuples(st.integers(0, 40), st.just(3)), elements=values)


def filled(matrix: np.ndarray, cuts: list[int]) -> LogSketch:
    result = LogSketch(matrix.shape[1])
    for part in np.split(matrix, sorted(cut for cut in cuts if cut <= len(matrix))):
        result.add(part)
    return result


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is kept for long."""
    monkeypatch.setattr(log_sketch, "EXACT_AT_MOST", 20)


@given(matrices, st.lists(st.integers(0, 40), max_size=3))
def test_a_few_values_are_exact(matrix: np.ndarray, cuts: list[int]) -> None:
    result = filled(matrix, cuts)
    assert result.is_exact
    assert result.error_pct == 0
    for column in (None, 0, 2):
        mine = matrix.ravel() if column is None else matrix[:, column]
        mine = mine[~np.isnan(mine)]
        assert result.count(column) == mine.size
        expected = [None] * len(SHARES) if not mine.size else np.quantile(mine, SHARES)
        assert result.quantiles(SHARES, column) == pytest.approx(expected)
        assert result.sample(column).zeros == (mine == 0).sum()


@pytest.mark.usefixtures("few")
def test_many_values_are_right_to_the_stated_error() -> None:
    random = np.random.default_rng(1)
    matrix = random.lognormal(10, 4, (5000, 3)) * (random.random((5000, 3)) > 0.3)
    matrix[random.random((5000, 3)) < 0.1] = np.nan
    result = filled(matrix, [10, 2000])
    assert not result.is_exact
    assert result.error_pct == ERROR_PCT
    for column in (None, 0, 1, 2):
        mine = matrix.ravel() if column is None else matrix[:, column]
        mine = mine[~np.isnan(mine)]
        expected = np.quantile(mine, SHARES, method="lower")
        assert result.quantiles(SHARES, column) == pytest.approx(expected, rel=1.001 * ERROR_PCT / 100)
        assert result.quantile(1.0, column) == mine.max()
        assert result.count(column) == mine.size


@pytest.mark.usefixtures("few")
def test_bins_add_up_however_values_came() -> None:
    matrix = np.random.default_rng(2).pareto(1.2, (3000, 2)) * 1e6
    once, often = filled(matrix, []), filled(matrix, [1, 7, 500, 2999])
    assert np.array_equal(once.counts, often.counts)
    assert once.quantiles(SHARES) == often.quantiles(SHARES)


@pytest.mark.usefixtures("few")
def test_a_sample_of_bins_keeps_the_ends_and_the_numbers() -> None:
    matrix = np.random.default_rng(3).pareto(1.2, (1000, 2)) + 1.0
    matrix[:100] = 0
    sample = filled(matrix, []).sample()
    assert (sample.size, sample.zeros) == (1800, 200)
    assert (sample.smallest, sample.largest) == (matrix[100:].min(), matrix.max())


@given(hnp.arrays(np.float64, 20, elements=st.floats(1e-8, 1e17)))
def test_a_value_lies_in_its_bin(some: np.ndarray) -> None:
    low, high = bin_ends(bin_of(some))
    assert np.all(low <= some * (1 + 1e-9))
    assert np.all(some <= high * (1 + 1e-9))


@pytest.mark.usefixtures("few")
def test_values_beyond_all_bins_are_kept_in_the_outermost() -> None:
    result = filled(np.array([[1e-12], [1e30]] * 30), [])
    assert result.count() == 60
    assert (result.quantile(0.0), result.quantile(1.0)) == (pytest.approx(1e-12, rel=1e4), 1e30)


def test_nothing_has_no_percentile() -> None:
    result = LogSketch(2)
    result.add(np.full((3, 2), np.nan))
    result.add(np.empty((0, 2)))
    assert result.quantiles([0.5, 1.0]) == [None, None]
    assert result.sample().size == 0


@pytest.mark.usefixtures("few")
def test_a_column_of_zeros_only_is_zero_even_in_bins() -> None:
    result = filled(np.tile([0.0, 5.0], (50, 1)), [])
    assert result.quantiles([0.5, 1.0], 0) == [0.0, 0.0]
    assert result.sample(0).size == 0


def test_the_curve_of_a_figure_rises_to_all_values() -> None:
    result = LogSketch(1)
    result.add(np.arange(1000.0)[:, None])
    places, shares = result.cumulative()
    assert (places[0], places[-1], shares[0], shares[-1]) == (0.0, 999.0, 0.0, 1.0)
    assert np.all(np.diff(places) >= 0)
