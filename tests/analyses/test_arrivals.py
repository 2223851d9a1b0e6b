"""Time between requests: Δt/N, counted one by one."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from iolens.analyses.arrivals import EXACT_UP_TO, Arrivals, Spacings
from tests.analyses.matrices import matrix

counts = st.lists(st.integers(0, 5000) | st.none(), min_size=1, max_size=60)


def added(requests: list[int | None], tick_s: float = 2.0, cuts: tuple[int, ...] = ()) -> Spacings:
    found = Spacings(tick_s)
    for part in np.split(np.array([np.nan if one is None else one for one in requests], float), cuts):
        found.add(part, np.full(part.size, tick_s))
    return found


@given(counts, st.integers(0, 60))
def test_every_sample_with_requests_is_one_value(requests: list[int | None], cut: int) -> None:
    found = added(requests, cuts=(min(cut, len(requests)),))
    known = [one for one in requests if one is not None]
    assert found.samples == len(known)
    sample = found.sample()
    assert sample.zeros == known.count(0)
    shown = dict(zip((2.0 / np.exp(sample.mean_log)).round(6).tolist(), sample.counts.tolist(), strict=True))
    if max(known, default=0) <= EXACT_UP_TO:
        assert shown == Counter(one for one in known if one)
    assert sample.size == sum(one > 0 for one in known)


@given(counts)
def test_by_requests_every_request_is_one_value(requests: list[int | None]) -> None:
    sample = added(requests).sample(by_requests=True)
    expected = sum(one for one in requests if one)
    assert sample.size == pytest.approx(expected, rel=0.001 * (max((one or 0) for one in requests) > EXACT_UP_TO))


def test_large_numbers_count_together_to_a_permille() -> None:
    found = added([10**6, 10**9])
    requests, samples = found._regular()
    assert requests.tolist() == pytest.approx([10**6, 10**9], rel=0.002)
    assert samples.tolist() == [1, 1]


def test_a_value_is_known_to_half_a_request() -> None:
    """N = 4 in 2 s stands for 3.5 to 4.5 requests; a single request may have been any time after."""
    sample = added([4] * 3 + [2] * 5 + [1]).sample()
    assert sample.lower.tolist() == pytest.approx([0.5, 2 / 2.5, 2 / 1.5])  # the smallest is where it begins
    assert sample.upper.tolist() == pytest.approx([2 / 3.5, 2 / 1.5, np.inf])


def test_a_few_samples_out_of_step_are_left_out() -> None:
    found = Spacings(2.0)
    found.add(np.full(95, 10.0), np.full(95, 2.0))
    found.add(np.full(5, 10.0), np.full(5, 4.0))
    assert found.irregular_samples == 5
    assert found.sample().size == 95


@pytest.mark.parametrize("by_requests", [False, True])
def test_many_samples_out_of_step_count_by_their_own_length(by_requests: bool) -> None:
    random = np.random.default_rng(1)
    requests, length = random.integers(0, 50, 1000).astype(float), random.choice([2.0, 3.0, 6.0], 1000)
    found = Spacings(2.0)
    found.add(requests, length)
    sample = found.sample(by_requests)
    some = requests > 0
    weights = requests[some] if by_requests else np.ones(some.sum())
    assert sample.size == weights.sum()
    assert sample.zeros == (~some).sum()
    expected = np.average(np.log(length[some] / requests[some]), weights=weights)
    assert np.average(sample.mean_log, weights=sample.counts) == pytest.approx(expected, abs=0.005)


def test_directions_are_apart_and_one_that_is_not_counted_is_empty() -> None:
    found = Arrivals(60.0)
    found.add(matrix(read_ops=[3, 0, np.nan], read_bytes=[1, 1, 1]))
    assert found.of["read"].samples == 2
    assert found.of["write"].samples == 0
    assert found.of["write"].sample().size == 0
