"""Ranks, Spearman's ρ and its p, Holm's correction, places among others: against loops and SciPy."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from iolens.models.trend import holm, percentile_of, ranks, slower_ps, spearman


@pytest.mark.parametrize("seed", range(5))
def test_ranks_and_rho_with_ties_as_scipy_has_them(seed: int) -> None:
    random = np.random.default_rng(seed)
    first, second = random.integers(0, 8, 25).astype(float), random.normal(size=25)
    by_hand = [sum(other < value for other in first) + (sum(other == value for other in first) + 1) / 2
               for value in first]  # fmt: skip
    assert ranks(first).tolist() == by_hand
    expected = stats.spearmanr(first, second)
    assert spearman(first, second) == pytest.approx((expected.statistic, expected.pvalue))


def test_a_perfect_order_has_the_p_of_its_permutations() -> None:
    """Of five runs two of 120 orders are as extreme; Student's t would say 0."""
    rising = np.arange(5.0)
    assert spearman(rising, rising * 3) == (1.0, 2 / 120)
    assert spearman(rising, -rising) == (-1.0, 2 / 120)


def test_nothing_is_said_of_what_does_not_vary_or_is_too_short() -> None:
    assert spearman(np.ones(9), np.arange(9.0)) is None
    assert spearman(np.arange(2.0), np.arange(2.0)) is None


def test_holm_by_hand() -> None:
    """0.01·4, 0.02·3, 0.03·2 → not less than 0.06, 0.5."""
    assert holm([0.03, 0.01, 0.5, 0.02]) == pytest.approx([0.06, 0.04, 0.5, 0.06])
    assert holm([]) == []
    assert holm([0.7, 0.6]) == [1.0, 1.0]


def test_the_place_of_a_value_counts_equal_ones_as_half() -> None:
    others = np.array([1.0, 2.0, 2.0, 3.0, math.nan])
    assert percentile_of(2.0, others) == pytest.approx(50.0)
    assert percentile_of(9.0, others) == 100.0
    assert percentile_of(0.0, others) == 0.0
    assert percentile_of(math.nan, others) is None
    assert percentile_of(1.0, np.array([math.nan])) is None


def test_the_rank_test_of_one_group_against_the_others_is_that_of_scipy() -> None:
    """With ties, as times rounded to a tenth have them; the slow group alone is beyond chance."""
    random = np.random.default_rng(1)
    values, groups = np.round(random.exponential(1.0, 200), 1), random.integers(0, 7, 200)
    values[groups == 3] += 1.5
    expected = [
        stats.mannwhitneyu(
            values[groups == number], values[groups != number], alternative="greater", method="asymptotic"
        )
        for number in range(7)
    ]
    p_values = slower_ps(values, groups)
    assert p_values == pytest.approx([test.pvalue for test in expected], rel=1e-9)
    assert [place for place, p in enumerate(p_values) if p < 0.01] == [3]
    assert slower_ps(np.ones(4), np.array([0, 0, 1, 1])).tolist() == [1.0, 1.0]
