"""Time between requests: Δt/N, counted one by one."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from iolens.analyses.workload.arrivals import EXACT_UP_TO, Arrivals, Spacings
from iolens.models.heavy_tail import fit_as_paper
from tests.analyses.matrices import matrix

counts = st.lists(st.integers(0, 5000) | st.none(), min_size=1, max_size=60)


def added(requests: list[int | None], tick_s: float = 2.0, cuts: tuple[int, ...] = ()) -> Spacings:
    result = Spacings(tick_s)
    for part in np.split(np.array([np.nan if request is None else request for request in requests], float), cuts):
        result.add(part, np.full(part.size, tick_s))
    return result


@given(counts, st.integers(0, 60))
def test_every_sample_with_requests_is_one_value(requests: list[int | None], cut: int) -> None:
    result = added(requests, cuts=(min(cut, len(requests)),))
    known = [request for request in requests if request is not None]
    assert result.samples == len(known)
    sample = result.sample()
    assert sample.zeros == known.count(0)
    shown = dict(zip((2.0 / np.exp(sample.mean_log)).round(6).tolist(), sample.counts.tolist(), strict=True))
    if max(known, default=0) <= EXACT_UP_TO:
        assert shown == Counter(item for item in known if item)
    assert sample.size == sum(item > 0 for item in known)


@given(counts | st.lists(st.integers(EXACT_UP_TO - 5, 10**9), min_size=1, max_size=60), st.integers(0, 60))
@settings(derandomize=True, max_examples=300)
def test_by_requests_every_request_is_one_value(requests: list[int | None], cut: int) -> None:
    """Exactly, also where neighbouring numbers of requests are counted together (4,802 once became 4,807)."""
    result = added(requests, cuts=(min(cut, len(requests)),))
    sample = result.sample(by_requests=True)
    assert sample.size == sum(request for request in requests if request)
    assert sample.zeros == requests.count(0)


def test_4802_requests_are_4802_values() -> None:
    assert added([4802]).sample(by_requests=True).size == 4802


def test_large_numbers_count_together_to_a_permille() -> None:
    sample = added([10**6, 10**6 + 1000, 10**9]).sample()
    assert sample.observed is not None
    assert sample.observed.tolist() == pytest.approx([2 / 10**9, 2 / (10**6 + 500)], rel=1e-9)
    assert sample.counts.tolist() == [1, 2]
    assert added([10**6, 10**6 + 1000]).sample().smallest_seen == 2 / (10**6 + 1000)  # x_m is a value that was seen


def test_a_value_is_known_to_half_a_request() -> None:
    """N = 4 in 2 s stands for 3.5 to 4.5 requests; a single request may have been any time after."""
    sample = added([4] * 3 + [2] * 5 + [1]).sample()
    assert sample.lower.tolist() == pytest.approx([0.5, 2 / 2.5, 2 / 1.5])  # the smallest is where it begins
    assert sample.upper.tolist() == pytest.approx([2 / 3.5, 2 / 1.5, np.inf])


def test_a_few_samples_out_of_step_are_left_out() -> None:
    result = Spacings(2.0)
    result.add(np.full(95, 10.0), np.full(95, 2.0))
    result.add(np.full(5, 10.0), np.full(5, 4.0))
    assert result.left_out == 5
    assert result.sample().size == 95


@pytest.mark.parametrize("by_requests", [False, True])
def test_many_samples_out_of_step_count_by_their_own_length(by_requests: bool) -> None:
    random = np.random.default_rng(1)
    requests, length = random.integers(0, 50, 1000).astype(float), random.choice([2.0, 3.0, 6.0], 1000)
    result = Spacings(2.0)
    result.add(requests, length)
    sample = result.sample(by_requests)
    assert result.left_out == 0
    assert sample.smallest == (length / np.where(requests > 0, requests, 1)).min()
    some = requests > 0
    weights = requests[some] if by_requests else np.ones(some.sum())
    assert sample.size == weights.sum()
    assert sample.zeros == (~some).sum()
    expected = np.average(np.log(length[some] / requests[some]), weights=weights)
    assert np.average(sample.mean_log, weights=sample.counts) == pytest.approx(expected, abs=0.005)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("by_requests", [False, True])
def test_the_paper_fit_is_that_of_the_definition(seed: int, by_requests: bool) -> None:
    """x_m the smallest Δt/N, least squares of F on the 999 permille quantiles: in plain NumPy from every value."""
    from scipy.optimize import minimize_scalar

    random = np.random.default_rng(seed)
    requests = np.rint(np.minimum(30.0 * random.random(3000) ** (-1.0 / 1.3), 4000.0)) * (random.random(3000) < 0.7)
    values = np.array([2.0 / number for number in requests if number for _ in range(int(number) if by_requests else 1)])
    shares = np.arange(1, 1000) / 1000.0
    quantiles = np.quantile(values, shares)

    def squares(alpha: float) -> float:
        return float(np.sum((1.0 - (values.min() / quantiles) ** alpha - shares) ** 2))

    expected = minimize_scalar(squares, bounds=(1e-3, 50.0), method="bounded", options={"xatol": 1e-12})
    fit = fit_as_paper(added(requests.astype(int).tolist()).sample(by_requests))
    assert fit is not None
    assert fit.xm == values.min()
    assert fit.alpha == pytest.approx(expected.x, rel=1e-6)
    assert fit.r2 == pytest.approx(1.0 - expected.fun / np.sum((shares - shares.mean()) ** 2), abs=1e-9)


def test_directions_are_apart_and_one_that_is_not_counted_is_empty() -> None:
    result = Arrivals(60.0)
    result.add(matrix(read_ops=[3, 0, np.nan], read_bytes=[1, 1, 1]))
    assert result.of["read"].samples == 2
    assert result.of["write"].samples == 0
    assert result.of["write"].sample().size == 0
