"""The limit that targets reach: the linear programme against scipy's, ticks that are at the limit, and bounds."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import linprog

from iolens.models.cost_estimate import TelemetryTicks
from iolens.models.frontier import best_pair, frontier, longest_s

LATENCY_S, S_PER_BYTE = 1e-3, 2e-9
SIZES = (4096.0, 65536.0, float(1 << 20), float(4 << 20))


def seconds(size: float) -> float:
    return LATENCY_S + S_PER_BYTE * size


def ticks_of(rows: list[tuple[int, float, float, float]]) -> TelemetryTicks:
    """Ticks of (day, I/Os per second, size, in flight), a target each day."""
    day, rate, size, depth = np.array(rows, float).T
    count = np.ones(len(rows))
    return TelemetryTicks(
        day.astype(int), np.zeros(len(rows), int), count, rate, size, depth, np.zeros(len(rows), bool)
    )


def centre(sizes: tuple[float, ...] = SIZES, days: int = 8, seed: int = 1) -> list[tuple[int, float, float, float]]:
    """Slow ticks with nothing in flight, and ticks at the limit with a queue; days differ by some per cent."""
    random = np.random.default_rng(seed)
    rows = []
    for day in range(days):
        speed = np.exp(random.normal(0, 0.02))
        for size in sizes:
            limit = speed / seconds(size)
            rows += [(day, limit * share, size, 1 + share) for share in random.uniform(0.05, 0.4, 30)]
            rows += [(day, limit * noise, size, depth) for noise, depth in _queued(random)]
    return rows


def _queued(random: np.random.Generator) -> list[tuple[float, float]]:
    return list(zip(random.normal(1, 0.005, 20), random.uniform(12, 31, 20), strict=True))


def test_the_best_pair_is_that_of_a_linear_programme() -> None:
    random = np.random.default_rng(3)
    for _ in range(30):
        sizes = np.sort(random.choice(2.0 ** np.arange(12, 25), random.integers(1, 6), replace=False))
        rates = (
            1
            / (10 ** random.uniform(-4, -2) + sizes * 10 ** random.uniform(-10, -8))
            * random.uniform(0.5, 1, sizes.size)
        )
        solved = linprog(
            [-rates.sum(), -(rates * sizes).sum() * 1e-6],
            np.stack([rates, rates * sizes * 1e-6], 1),
            np.ones(sizes.size),
        )
        a0, a1 = best_pair(sizes, rates)
        assert rates.sum() * a0[0] + (rates * sizes).sum() * a1[0] == pytest.approx(-solved.fun, rel=1e-6)
        assert (rates * (a0[0] + a1[0] * sizes) <= 1 + 1e-6).all()


def test_a_group_that_a_resample_lacks_says_nothing() -> None:
    sizes = np.array([4096.0, 1 << 20])
    a0, a1 = best_pair(sizes, np.array([[1000.0, np.nan], [1000.0, 400.0]]))
    assert (a0[0], a1[0]) == (pytest.approx(1e-3), 0.0)
    assert a0[1] + a1[1] * sizes[1] == pytest.approx(1 / 400)


def test_the_limit_of_small_and_large_ios_gives_both_coefficients() -> None:
    result = frontier(ticks_of(centre()))
    assert result is not None
    assert result.latency_s == pytest.approx(LATENCY_S, rel=0.03)
    assert result.s_per_byte == pytest.approx(S_PER_BYTE, rel=0.03)
    assert (result.identified, result.upper_bound, result.blocks) == (("latency", "s_per_byte"), False, 8)
    assert result.latency_interval_s is not None
    assert result.latency_interval_s[0] < LATENCY_S < result.latency_interval_s[1]
    assert "limit reached at 4 KiB to 4 MiB" in result.note


def test_one_size_at_its_limit_tells_the_time_of_that_size_only() -> None:
    result = frontier(ticks_of(centre((float(1 << 20),))))
    assert result is not None
    assert (result.identified, result.upper_bound) == ((), True)
    assert result.time_at_bytes == pytest.approx(1 << 20)
    assert result.time_s == pytest.approx(seconds(1 << 20), rel=0.02)


def test_sizes_must_differ_by_a_factor_of_eight() -> None:
    near = frontier(ticks_of(centre((float(1 << 20), float(4 << 20)))))
    far = frontier(ticks_of(centre((float(1 << 19), float(4 << 20)))))
    assert near is not None
    assert far is not None
    assert (near.identified, far.identified) == ((), ("latency", "s_per_byte"))


def test_targets_that_never_reach_their_limit_have_an_upper_bound_above_the_truth() -> None:
    rows = [(day, rate * 0.5, size, 1.2) for day, rate, size, _ in centre()]
    result = frontier(ticks_of(rows))
    assert result is not None
    assert (result.identified, result.upper_bound) == ((), True)
    assert result.latency_s is not None
    assert result.s_per_byte is not None
    for size in (4096, 10_000, 1 << 20, 4 << 20):
        assert result.latency_s + result.s_per_byte * size >= seconds(size)


def test_a_job_that_limits_itself_is_no_limit() -> None:
    """A steady level with some I/Os in flight: faster ticks of the same size, with a shorter queue, refute it."""
    rows = []
    for day in range(8):
        for size in SIZES:
            rows += [(day, 0.2 / seconds(size), size, 6.0)] * 20
            rows += [(day, share / seconds(size), size, 1 + share) for share in np.linspace(0.02, 0.45, 40)]
    result = frontier(ticks_of(rows))
    assert result is not None
    assert (result.identified, result.upper_bound) == ((), True)


def with_depth(low: float, high: float, is_full: bool = False) -> TelemetryTicks:
    """The centre whose queued ticks have such numbers in flight."""
    random = np.random.default_rng(2)
    rows = [(day, rate, size, random.uniform(low, high) if depth > 4 else depth) for day, rate, size, depth in centre()]
    ticks = ticks_of(rows)
    return replace(ticks, is_full=(ticks.in_flight >= low) & is_full)


def test_a_level_at_one_depth_may_be_a_job_that_limits_itself() -> None:
    for low, high, is_bound in ((12, 14, True), (12, 24, False), (30, 31, False)):
        result = frontier(with_depth(low, high))
        assert result is not None
        assert result.upper_bound is is_bound
    busy = frontier(with_depth(12, 14, is_full=True))
    assert busy is not None
    assert not busy.upper_bound


def test_a_queue_on_one_day_only_is_no_limit() -> None:
    rows = [row for row in centre() if row[0] == 0 or row[3] < 4]
    result = frontier(ticks_of(rows))
    assert result is not None
    assert result.upper_bound


def test_what_a_cache_answers_says_nothing_of_the_disk() -> None:
    """Four times the limit, with nothing in flight, in one tick of ten."""
    cached = [(day, 4 / seconds(size), size, 1.05) for day in range(8) for size in SIZES for _ in range(5)]
    busy = frontier(ticks_of(centre() + cached))
    assert busy is not None
    assert busy.latency_s == pytest.approx(LATENCY_S, rel=0.03)
    quiet = frontier(ticks_of([(day, rate * 0.5, size, 1.4) for day, rate, size, _ in centre()] + cached))
    assert quiet is not None
    assert quiet.upper_bound
    assert quiet.latency_s is not None
    assert quiet.latency_s >= LATENCY_S


def test_a_device_that_is_always_busy_needs_no_queue() -> None:
    rows = centre()
    ticks = ticks_of([(day, rate, size, float("nan")) for day, rate, size, _ in rows])
    full = np.array([depth >= 4 for *_, depth in rows])
    always = TelemetryTicks(
        ticks.block, ticks.target, ticks.count, ticks.ios_per_s, ticks.size_bytes, ticks.in_flight, full
    )
    result = frontier(always)
    assert result is not None
    assert result.latency_s == pytest.approx(LATENCY_S, rel=0.03)
    assert result.in_flight is None


def test_without_days_blocks_of_ticks_are_resampled_and_said() -> None:
    result = frontier(ticks_of(centre()), blocks_are_days=False)
    assert result is not None
    assert "fewer than 5 days: interval from 8 blocks of ticks" in result.note


def test_no_ticks_no_estimate() -> None:
    empty, none = np.empty(0), np.empty(0, int)
    assert frontier(TelemetryTicks(none, none, empty, empty, empty, empty, none.astype(bool))) is None


def test_the_longest_time_that_bounds_allow_is_that_of_a_linear_programme() -> None:
    sizes, times = np.array([4096.0, 65536.0, 1 << 20]), np.array([2e-3, 2.1e-3, 5e-3])
    for size in (0.0, 4096.0, 500_000.0, 4 << 20):
        solved = linprog([-1.0, -size * 1e-6], np.stack([np.ones(3), sizes * 1e-6], 1), times)
        assert longest_s(size, sizes, times) == pytest.approx(-solved.fun, rel=1e-6)
