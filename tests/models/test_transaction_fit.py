"""The regression of paper U: it finds known coefficients, agrees with brute force, and says when it cannot know."""

from __future__ import annotations

import math

import numpy as np
import pytest

from iolens.models.transaction_fit import (
    SEED,
    FitError,
    Run,
    find_asymptote,
    fit_transactions,
    r_squared,
)
from iolens.models.transaction_time import GRACE_2012, Coefficients, fsu_bytes_pct, fsu_pct
from iolens.units import GIB, KIB, MIB

SIZES = [4 * KIB << power for power in range(11)]


def runs_of(cost: Coefficients, noise: float = 0.0, seed: int = 0) -> list[Run]:
    """One run per size, 8 GiB each, in the modelled time."""
    rng = np.random.default_rng(seed)
    result = []
    for size in SIZES:
        count = 8 * GIB // size
        seconds = count * cost.seconds(size) * math.exp(noise * rng.standard_normal())
        result.append(Run(seconds, count, count * size, count * size))
    return result


@pytest.mark.parametrize("direction", ["write", "read"])
def test_table_one_comes_back(direction: str) -> None:
    cost = GRACE_2012.of(direction)
    fit = fit_transactions(runs_of(cost))
    assert fit.coefficients.latency_s == pytest.approx(cost.latency_s, rel=1e-9)
    assert fit.coefficients.s_per_byte == pytest.approx(cost.s_per_byte, rel=1e-9)
    assert fit.r2 == pytest.approx(1.0)
    assert fit.mape_pct == pytest.approx(0.0, abs=1e-6)
    assert fit.unconstrained is None


def test_the_rate_of_table_one_is_in_mebibytes() -> None:
    fit = fit_transactions(runs_of(GRACE_2012.write))
    assert fit.coefficients.bytes_per_s_limit / MIB == pytest.approx(551, abs=0.5)


def test_least_squares_is_that_of_numpy() -> None:
    runs = runs_of(GRACE_2012.write, noise=0.2, seed=3)
    equations = np.array([[run.operations / run.duration_s, run.io_bytes / run.duration_s] for run in runs])
    expected, *_ = np.linalg.lstsq(equations, np.ones(len(runs)), rcond=None)
    result = fit_transactions(runs).coefficients
    assert (result.latency_s, result.s_per_byte) == pytest.approx(tuple(expected), rel=1e-9)


def test_intervals_are_those_of_resampling_one_by_one() -> None:
    runs = runs_of(GRACE_2012.read, noise=0.1, seed=5)[:6]
    resamples = 200
    drawn = np.random.default_rng(SEED).integers(0, len(runs), (resamples, len(runs)))
    latencies = []
    for draw in drawn:
        chosen = [runs[place] for place in draw]
        if len({run.io_bytes / run.operations for run in chosen}) < 2:
            continue
        equations = np.array([[run.operations / run.duration_s, run.io_bytes / run.duration_s] for run in chosen])
        latencies.append(np.linalg.lstsq(equations, np.ones(len(chosen)), rcond=None)[0][0])
    fit = fit_transactions(runs, resamples=resamples)
    assert fit.latency_s_ci95 is not None
    expected = np.percentile(latencies, [2.5, 97.5])
    assert (fit.latency_s_ci95.low, fit.latency_s_ci95.high) == pytest.approx(tuple(expected), rel=1e-6)


def test_the_interval_holds_the_truth_about_as_often_as_it_says() -> None:
    """With few runs resampling is a little too sure; it must still be right far more often than not."""
    held = 0
    for seed in range(60):
        interval = fit_transactions(runs_of(GRACE_2012.write, noise=0.05, seed=seed), resamples=400).latency_s_ci95
        assert interval is not None
        held += interval.low <= GRACE_2012.write.latency_s <= interval.high
    assert held >= 45


def test_the_same_runs_give_the_same_interval() -> None:
    runs = runs_of(GRACE_2012.write, noise=0.05)
    assert fit_transactions(runs) == fit_transactions(runs)


def test_mixed_sizes_are_one_equation_like_any_other() -> None:
    cost = GRACE_2012.read
    mixes = [{4096: 900, MIB: 10}, {65536: 300}, {4096: 5, 4 * MIB: 40}]
    runs = []
    for mix in mixes:
        moved = sum(size * count for size, count in mix.items())
        seconds = sum(count * cost.seconds(size) for size, count in mix.items())
        runs.append(Run(seconds, sum(mix.values()), moved, moved))
    result = fit_transactions(runs).coefficients
    assert (result.latency_s, result.s_per_byte) == pytest.approx((cost.latency_s, cost.s_per_byte), rel=1e-9)


def test_a_negative_latency_is_reported_and_fitted_again_without() -> None:
    # Small transfers that are faster than their share: the plain regression wants a latency below zero.
    runs = [Run(1.0, 1000, 1000 * 4096.0, 1000 * 4096.0), Run(1.0, 1, 3.5e6, 3.5e6), Run(1.0, 2, 4.0e6, 4.0e6)]
    fit = fit_transactions(runs)
    assert fit.unconstrained is not None
    assert fit.unconstrained.latency_s < 0
    assert fit.coefficients.latency_s == 0.0
    assert fit.coefficients.iops_limit == math.inf
    rates = np.array([run.io_bytes for run in runs])
    assert fit.coefficients.s_per_byte == pytest.approx(rates.sum() / (rates * rates).sum())


def test_a_negative_time_per_byte_is_reported_too() -> None:
    # A device that is limited by operations and a little faster with large ones.
    runs = [Run(1.0, 1000, 1000.0 * size, 1000.0 * size) for size in (4096, 65536)] + [
        Run(1.0, 1100, 1100.0 * MIB, 1100.0 * MIB)
    ]
    fit = fit_transactions(runs)
    assert fit.unconstrained is not None
    assert fit.unconstrained.s_per_byte < 0
    assert fit.coefficients.s_per_byte == 0.0
    assert fit.coefficients.bytes_per_s_limit == math.inf


@pytest.mark.parametrize(
    ("runs", "words"),
    [
        ([], "0 runs"),
        ([Run(1, 1, 4096, 4096)], "1 run:"),
        ([Run(1, 10, 40960, 40960), Run(2, 10, 40960, 40960)], "same size"),
        ([Run(0, 10, 40960, 40960), Run(2, 10, 10 * MIB, 1)], "duration"),
        ([Run(1, 0, 40960, 40960), Run(2, 10, 10 * MIB, 1)], "number of I/Os"),
        ([Run(math.inf, 1, 40960, 40960), Run(2, 10, 10 * MIB, 1)], "duration"),
    ],
)
def test_runs_that_cannot_tell_are_refused(runs: list[Run], words: str) -> None:
    with pytest.raises(FitError, match=words):
        fit_transactions(runs)


def test_r_squared_by_hand_and_where_it_is_undefined() -> None:
    assert r_squared([1.0, 2.0, 3.0], [1.0, 2.0, 4.0]) == pytest.approx(0.5)
    assert r_squared([2.0, 2.0], [1.0, 3.0]) is None


def test_bandwidth_is_about_the_bytes_of_the_benchmark() -> None:
    """With read-ahead the disk moves more; what is predicted is the bandwidth the benchmark sees."""
    cost = GRACE_2012.read
    runs = [Run(100 * cost.seconds(size), 100, 100 * size, 80 * size) for size in (65536, MIB)]
    fit = fit_transactions(runs)
    assert fit.predicted_bytes_per_s == pytest.approx([run.moved_bytes / run.duration_s for run in runs])


def test_figure_two_settles_at_450() -> None:
    """Read bandwidth falls from above 4000 to about 450 MB/s once files exceed the server's 32 GB."""
    sizes = [size * 10**9 for size in (8, 16, 32, 64, 128, 256, 512)]
    result = find_asymptote(sizes, [4200e6, 4100e6, 3000e6, 700e6, 470e6, 455e6, 450e6])
    assert result is not None
    assert result.bytes_per_s == pytest.approx(455e6)
    assert result.from_bytes == 128 * 10**9


def test_writes_of_figure_two_were_level_all_along() -> None:
    result = find_asymptote([8, 16, 32], [400.0, 410.0, 395.0])
    assert result is not None
    assert (result.from_bytes, result.bytes_per_s) == (8, 400.0)


def test_a_bandwidth_that_still_falls_has_no_asymptote() -> None:
    assert find_asymptote([8, 16, 32], [4000.0, 2000.0, 1000.0]) is None
    assert find_asymptote([8], [4000.0]) is None
    assert find_asymptote([], []) is None


def test_several_runs_of_one_size_count_as_their_median() -> None:
    result = find_asymptote([8, 16, 16, 16, 32], [900.0, 9.0, 410.0, 400.0, 395.0])
    assert result is not None
    assert result.from_bytes == 16


def test_counts_of_operations_and_bytes_give_the_same_utilization() -> None:
    ios = {("write", 4096): 100, ("read", MIB): 50}
    counted = fsu_bytes_pct(50, 50 * MIB, 100, 100 * 4096, 1.0, GRACE_2012)
    assert counted == pytest.approx(fsu_pct(ios, 1.0, GRACE_2012), rel=1e-12)
    assert counted == pytest.approx(20.93, abs=0.005)
