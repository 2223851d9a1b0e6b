"""How sure a number is: resampling with a fixed seed, so that two people get the same interval.

2,000 resamples; the middle 95 % of them are the interval.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np

from iolens.arrays import Floats

RESAMPLES: Final = 2000
SEED: Final = 20190402  # any number will do, as long as it stays
PERCENTILES: Final = (2.5, 97.5)
MOST_PERSISTENT: Final = 0.995
_VALUES_AT_ONCE: Final = 4_000_000  # what is held in memory at a time


def interval95(values: Floats) -> tuple[float, float]:
    """The middle 95 % of `values`."""
    low, high = np.percentile(values, PERCENTILES, method="linear")
    return float(low), float(high)


def resampled_means(samples: Floats, random: np.random.Generator, count: int = RESAMPLES) -> Floats:
    """Means of `count` resamples, each as large as `samples` and drawn from it with replacement."""
    parts = [
        samples[random.integers(0, samples.size, (size, samples.size))].mean(axis=1)
        for size in portions(count, samples.size)
    ]
    return np.concatenate(parts)


def mean_interval(samples: Floats) -> tuple[float, float] | None:
    """The 95 % interval of the mean; None where samples do not differ, or there are fewer than two."""
    if samples.size < 2 or not np.ptp(samples) > 0:
        return None
    return interval95(resampled_means(samples, np.random.default_rng(SEED)))


def median_interval(samples: Floats) -> tuple[float, float] | None:
    """The 95 % interval of the median; None where samples do not differ, or there are fewer than two."""
    if samples.size < 2 or not np.ptp(samples) > 0:
        return None
    random = np.random.default_rng(SEED)
    parts = [
        np.median(samples[random.integers(0, samples.size, (size, samples.size))], axis=1)
        for size in portions(RESAMPLES, samples.size)
    ]
    return interval95(np.concatenate(parts))


def persistence(residuals: Floats) -> float:
    """How much of a residual is left in the next one: its autocorrelation at one step.

    What a straight line took out of it with the trend is put back, (2 + 4ρ)/n; from 0 to `MOST_PERSISTENT`.
    """
    centred = residuals - residuals.mean()
    power = float(centred @ centred)
    if power <= 0:
        return 0.0
    value = float(centred[1:] @ centred[:-1]) / power
    return min(max(value + (2.0 + 4.0 * value) / residuals.size, 0.0), MOST_PERSISTENT)


def persistent_noise(residuals: Floats, random: np.random.Generator, count: int) -> Floats:
    """Noise such as might have been in place of `residuals`, one row per resample.

    Each value keeps the share of the one before that the residuals keep, and adds a shock drawn from theirs: what
    lasts for weeks in the readings lasts for weeks in every resample.
    """
    size, kept = residuals.size, persistence(residuals)
    centred = residuals - residuals.mean()
    shocks = centred[1:] - kept * centred[:-1]
    shocks = (shocks - shocks.mean()) * np.sqrt(size / max(size - 2, 1))  # two numbers went into the line
    noise: Floats = shocks[random.integers(0, shocks.size, (count, size))]
    noise[:, 0] /= np.sqrt(1.0 - kept**2)
    for place in range(1, size):
        noise[:, place] += kept * noise[:, place - 1]
    return noise


def portions(count: int, width: int) -> Iterator[int]:
    """Numbers of resamples of `width` values that fit into memory together and add up to `count`."""
    most = max(1, _VALUES_AT_ONCE // max(width, 1))
    while count > 0:
        yield min(most, count)
        count -= most
