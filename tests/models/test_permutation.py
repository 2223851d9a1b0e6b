"""Two groups compared by permuting their members: against plain Python, and how often chance is taken for a change."""

from __future__ import annotations

import math
import statistics
from itertools import combinations

import numpy as np
import pytest

from iolens.models.resampling import MOST_ARRANGEMENTS, group_differences


def plain_statistic(first: list[float], second: list[float]) -> float:
    """Difference of means over the pooled standard error, as in any textbook."""
    if not first or not second or len(first) + len(second) < 3:
        return 0.0
    difference = statistics.fmean(second) - statistics.fmean(first)
    within = sum((value - statistics.fmean(group)) ** 2 for group in (first, second) for value in group)
    error = math.sqrt(within / (len(first) + len(second) - 2) * (1 / len(first) + 1 / len(second)))
    if error < 1e-12:
        return math.copysign(math.inf, difference) if abs(difference) > 1e-12 else 0.0
    return difference / error


def plain_test(rows: list[list[float]], seconds: set[int]) -> tuple[list[float], list[float]]:
    """Statistics and family-wise p-values of every measure, by going through every arrangement."""

    def all_statistics(chosen: set[int]) -> list[float]:
        result = []
        for measure in range(len(rows[0])):
            values = [(row[measure], number in chosen) for number, row in enumerate(rows)]
            known = [(value, is_second) for value, is_second in values if not math.isnan(value)]
            groups = ([value for value, side in known if side is wanted] for wanted in (False, True))
            result.append(plain_statistic(*groups))
        return result

    observed = all_statistics(seconds)
    every = [all_statistics(set(chosen)) for chosen in combinations(range(len(rows)), len(seconds))]
    largest = [max(map(abs, line)) for line in every]
    shares = [sum(value >= abs(own) * (1 - 1e-9) for value in largest) / len(largest) for own in observed]
    return observed, shares


@pytest.mark.parametrize(("members", "seconds", "seed"), [(7, 3, 1), (8, 4, 2), (9, 2, 3), (6, 3, 4)])
def test_statistics_and_p_are_those_of_plain_python(members: int, seconds: int, seed: int) -> None:
    random = np.random.default_rng(seed)
    values = random.normal(size=(members, 5))
    values[:, 1] += 2.0 * (np.arange(members) < seconds)
    values[random.integers(members), 2] = np.nan
    values[:, 3] = 7.1  # no spread at all
    values[:, 4] = np.where(np.arange(members) < seconds, 0.1, 0.3)  # none within the groups
    chosen = set(range(seconds))
    result = group_differences(values, np.arange(members) < seconds)
    observed, shares = plain_test(values.tolist(), chosen)
    assert result.statistic == pytest.approx(observed, rel=1e-9)
    assert result.statistic[4] == -math.inf
    assert result.p == pytest.approx(shares, abs=1e-12)
    assert result.arrangements == math.comb(members, seconds)
    assert result.is_exhaustive
    assert result.p[3] == 1.0
    assert result.p.min() >= result.smallest_p


def test_means_and_differences_leave_out_what_is_not_there() -> None:
    values = np.array([[1.0, np.nan], [3.0, 4.0], [5.0, 6.0], [9.0, np.nan]])
    result = group_differences(values, np.array([False, False, True, True]))
    assert result.first_mean.tolist() == [2.0, 4.0]
    assert result.second_mean.tolist() == [7.0, 6.0]
    assert result.difference.tolist() == [5.0, 2.0]
    assert np.isnan(result.p[1])  # one member of each group has it


def test_one_member_on_a_side_has_differences_only() -> None:
    result = group_differences(np.array([[1.0], [2.0], [4.0]]), np.array([True, False, False]))
    assert result.difference.tolist() == [-2.0]
    assert np.isnan(result.statistic).all()
    assert np.isnan(result.p).all()
    assert result.arrangements == 0
    assert result.smallest_p is None


def test_many_members_are_drawn_at_random_with_a_fixed_seed() -> None:
    random = np.random.default_rng(5)
    values = random.normal(size=(40, 3))
    values[:20, 0] += 3.0
    is_second = np.arange(40) < 20
    result = group_differences(values, is_second)
    assert not result.is_exhaustive
    assert result.arrangements == MOST_ARRANGEMENTS
    assert result.p[0] == pytest.approx(1 / (MOST_ARRANGEMENTS + 1))
    assert result.p[1:].min() > 0.05
    assert group_differences(values, is_second).p.tolist() == result.p.tolist()
    assert result.statistic[0] == pytest.approx(
        plain_statistic(*(values[side, 0].tolist() for side in (~is_second, is_second)))
    )


def test_p_is_the_share_of_chance_draws() -> None:
    """13 and 5 members have 8,568 arrangements; drawing some of them at random leads to the same share."""
    values = np.random.default_rng(8).normal(size=(18, 4))
    values[:5, 0] += 1.2
    whole = group_differences(values, np.arange(18) < 5)
    drawn = np.mean([np.max(np.abs(_one_draw(values, seed))) >= abs(whole.statistic[0]) for seed in range(4000)])
    assert whole.p[0] == pytest.approx(drawn, abs=0.02)


def _one_draw(values: np.ndarray, seed: int) -> list[float]:
    order = np.random.default_rng(seed).permutation(18)
    return [plain_statistic(values[order[5:], k].tolist(), values[order[:5], k].tolist()) for k in range(4)]
