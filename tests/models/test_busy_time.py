"""Coefficients from busy time: non-negative least squares against scipy's, and what is not separated."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import nnls

from iolens.models.cost_estimate import BusySums, busy_time, not_negative

TRUTH = np.array([0.8e-3, 1.2e-9, 1.0e-3, 1.7e-9])  # read latency and rate, write latency and rate


def made(random: np.random.Generator, ticks: int, sizes: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
    """I/Os and bytes of reads and writes, and busy seconds with noise."""
    ios = random.integers(1, 3000, (ticks, 2)).astype(float)
    size = random.choice(sizes, (ticks, 2))
    terms = np.stack([ios[:, 0], ios[:, 0] * size[:, 0], ios[:, 1], ios[:, 1] * size[:, 1]], axis=1)
    return terms, terms @ TRUTH * (1 + random.normal(0, 0.02, ticks))


def test_the_solution_is_that_of_non_negative_least_squares() -> None:
    random = np.random.default_rng(5)
    for _ in range(20):
        terms = random.exponential(1, (12, 4)) * [1.0, 1e6, 1.0, 1e5]
        busy = random.normal(1, 2, 12)
        result = not_negative((terms.T @ terms)[None], (terms.T @ busy)[None])[0]
        assert result == pytest.approx(nnls(terms, busy)[0], rel=1e-6, abs=1e-12)


def test_busy_seconds_give_the_coefficients_of_both_directions() -> None:
    random = np.random.default_rng(6)
    terms, busy = made(random, 600, (4096, 65536, 1 << 20))
    result = busy_time(BusySums.of(terms, busy, np.arange(600) // 60))
    for place, direction in enumerate(("read", "write")):
        estimate = result[direction]
        assert estimate.latency_s == pytest.approx(TRUTH[2 * place], rel=0.05)
        assert estimate.s_per_byte == pytest.approx(TRUTH[2 * place + 1], rel=0.02)
        assert estimate.identified == ("latency", "s_per_byte")
        assert estimate.s_per_byte_interval is not None
        assert estimate.s_per_byte_interval[0] <= estimate.s_per_byte <= estimate.s_per_byte_interval[1]


def test_one_size_does_not_tell_latency_from_rate() -> None:
    terms, busy = made(np.random.default_rng(7), 200, (1 << 20,))
    result = busy_time(BusySums.of(terms, busy, np.arange(200) // 20))
    assert result["write"].identified == ()
    assert "sizes of 1 MiB only" in result["write"].note


def test_a_direction_that_did_not_move_has_no_estimate() -> None:
    terms, busy = made(np.random.default_rng(8), 200, (4096, 1 << 20))
    terms[:, :2] = 0
    assert list(busy_time(BusySums.of(terms, terms @ TRUTH, np.arange(200) // 20))) == ["write"]
    assert busy_time(BusySums.of(terms[:0], busy[:0], np.arange(0))) == {}


def test_a_tick_that_was_busy_without_ending_an_io_says_nothing() -> None:
    terms, busy = made(np.random.default_rng(10), 200, (4096, 1 << 20))
    terms[::10] = 0.0
    estimate = busy_time(BusySums.of(terms, busy, np.arange(200) // 20))["write"]
    assert estimate.latency_s == pytest.approx(TRUTH[2], rel=0.1)


def test_slow_ios_that_are_few_count_as_much_as_the_time_they_take() -> None:
    """A job with pauses does fewer I/Os where they take longer: the same busy time at every speed."""
    random = np.random.default_rng(9)
    slowness = np.repeat(np.exp(random.normal(0, 0.7, 400)), 2)
    size = np.tile([4096.0, 262144.0], 400)
    ios = 0.4 / (slowness * (TRUTH[2] + TRUTH[3] * size))
    terms = np.stack([np.zeros(800), np.zeros(800), ios, ios * size], axis=1)
    estimate = busy_time(BusySums.of(terms, np.full(800, 0.4), np.arange(800) // 40))["write"]
    assert estimate.coefficients is not None
    explained_s = estimate.coefficients.counted_seconds(terms[:, 2].sum(), terms[:, 3].sum())
    assert explained_s == pytest.approx(800 * 0.4, rel=1e-6)
