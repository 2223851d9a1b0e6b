"""Resampling: the same twice, right on what is known, block by block."""

from __future__ import annotations

import numpy as np
import pytest

from iolens.models import resampling as bootstrap
from iolens.models.resampling import (
    interval95,
    mean_interval,
    median_interval,
    persistence,
    persistent_noise,
    portions,
    resampled_means,
)


def test_the_interval_of_a_mean_is_about_two_standard_errors_wide() -> None:
    samples = np.random.default_rng(1).normal(100, 10, 400)
    low, high = mean_interval(samples) or (0, 0)
    error = samples.std(ddof=1) / 20
    assert low == pytest.approx(samples.mean() - 1.96 * error, abs=0.15)
    assert high == pytest.approx(samples.mean() + 1.96 * error, abs=0.15)


def test_the_same_samples_give_the_same_interval() -> None:
    samples = np.random.default_rng(2).exponential(3, 50)
    assert mean_interval(samples) == mean_interval(samples)
    assert median_interval(samples) == median_interval(samples)


def test_means_are_those_of_draws_with_replacement() -> None:
    """All resamples of two values, by hand: their means are 0, ½ and 1, a quarter, a half and a quarter of the time."""
    means = resampled_means(np.array([0.0, 1.0]), np.random.default_rng(3), 40_000)
    values, counts = np.unique(means, return_counts=True)
    assert values.tolist() == [0.0, 0.5, 1.0]
    assert counts / 40_000 == pytest.approx([0.25, 0.5, 0.25], abs=0.02)


def test_one_sample_has_no_interval_and_equal_ones_have_none() -> None:
    assert mean_interval(np.array([5.0])) is None
    assert median_interval(np.array([])) is None
    assert mean_interval(np.full(9, 5.0)) is None
    assert median_interval(np.full(9, 5.0)) is None


def test_percentiles_interpolate() -> None:
    assert interval95(np.arange(41.0)) == (1.0, 39.0)


def lasting(share: float, size: int, random: np.random.Generator) -> np.ndarray:
    """Noise of which `share` is left in the next value."""
    noise = random.normal(size=size)
    for place in range(1, size):
        noise[place] += share * noise[place - 1]
    return noise


@pytest.mark.parametrize("share", [0.0, 0.5, 0.9])
def test_noise_is_as_large_and_lasts_as_long_as_the_residuals(share: float) -> None:
    random = np.random.default_rng(5)
    residuals = lasting(share, 5000, random)
    assert persistence(residuals) == pytest.approx(share, abs=0.04)
    noise = persistent_noise(residuals, random, 200)
    assert noise.shape == (200, 5000)
    assert noise.std() == pytest.approx(residuals.std(), rel=0.05)
    assert np.mean([persistence(row) for row in noise]) == pytest.approx(share, abs=0.04)


def test_residuals_without_any_spread_have_no_noise() -> None:
    assert persistence(np.zeros(20)) == 0.0
    assert not persistent_noise(np.zeros(20), np.random.default_rng(6), 3).any()


def test_residuals_that_never_end_are_held_below_one() -> None:
    assert persistence(np.arange(50.0)) <= 0.995
    assert persistence((-1.0) ** np.arange(50)) == 0.0


def test_memory_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bootstrap, "_VALUES_AT_ONCE", 100)
    assert list(portions(7, 40)) == [2, 2, 2, 1]
    assert list(portions(3, 1000)) == [1, 1, 1]
    samples = np.arange(30.0)
    assert len(resampled_means(samples, np.random.default_rng(6), 7)) == 7
