"""How sure a number is: resampling with a fixed seed, permutation of two groups, noise of a measured grid."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import combinations, islice
from math import comb, exp, log, sqrt
from typing import Final, NamedTuple

import numpy as np

from iolens.arrays import Booleans, Floats

# How sure a number is -------------------------------------------------------------------------------------------------
# Resampling with a fixed seed, so that two people get the same interval.
#
# 2,000 resamples; the middle 95 % of them are the interval.

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


# Whether two groups differ, by permuting their members ----------------------------------------------------------------
# DEFINITIONS, "Jobs before and after" (N3).
#
# The statistic of a measure is the difference of the group means divided by its pooled standard error. Its p-value is
# the share of arrangements of the members in which the largest statistic of all measures is at least as large (max-T):
# it holds for the whole family of measures at once.

MOST_ARRANGEMENTS: Final = 20_000
FEWEST_MEMBERS: Final = 2  # in a group, of those that have the measure
_NOTHING: Final = 1e-12  # of the largest value: what doubles lose is no spread


@dataclass(frozen=True, slots=True)
class GroupDifferences:
    """Two groups, measure by measure; NaN is undefined.

    A statistic is infinite where neither group has any spread. `p` is family-wise and two-sided.
    """

    first_mean: Floats
    second_mean: Floats
    difference: Floats  # second less first
    statistic: Floats
    p: Floats
    arrangements: int  # 0: nothing could be tested
    is_exhaustive: bool
    smallest_p: float | None  # that so many members can reach


def group_differences(values: Floats, is_second: Booleans, seed: int = SEED) -> GroupDifferences:
    """`values` has a row for each member and a column for each measure; NaN: the member does not have it."""
    known = np.isfinite(values)
    counts = np.array([known[~is_second].sum(axis=0), known[is_second].sum(axis=0)], dtype=float)
    sums = np.array([np.where(known, values, 0.0)[group].sum(axis=0) for group in (~is_second, is_second)])
    first, second = (np.where(counts > 0, sums, np.nan) / np.maximum(counts, 1)).reshape(2, -1)
    family = _Family(values, known)
    tested = (counts >= FEWEST_MEMBERS).all(axis=0)
    undefined = np.full(values.shape[1], np.nan)
    if not tested.any():
        return GroupDifferences(first, second, second - first, undefined, undefined.copy(), 0, False, None)
    statistic = np.where(tested, family.statistics(is_second[np.newaxis].astype(float))[0], np.nan)
    members, seconds = is_second.size, int(is_second.sum())
    is_exhaustive = comb(members, seconds) <= MOST_ARRANGEMENTS
    arrangements = comb(members, seconds) if is_exhaustive else MOST_ARRANGEMENTS
    threshold = np.abs(np.where(tested, statistic, np.inf)) * (1 - 1e-9)  # equal up to what doubles lose
    reached = np.zeros(values.shape[1])
    for labels in _labels(members, seconds, is_exhaustive, seed):
        largest = np.abs(family.statistics(labels)[:, tested]).max(axis=1)
        reached += (largest[:, np.newaxis] >= threshold).sum(axis=0)
    itself = 0 if is_exhaustive else 1  # the arrangement there is, which chance draws need not hold
    p = np.where(tested, (reached + itself) / (arrangements + itself), np.nan)
    mirrored = 2 if is_exhaustive and 2 * seconds == members else 1
    return GroupDifferences(
        first, second, second - first, statistic, p, arrangements, is_exhaustive, mirrored / (arrangements + itself)
    )


class _Family:
    """All measures of all members, ready for many arrangements at once."""

    def __init__(self, values: Floats, known: Booleans) -> None:
        self.known = known.astype(float)
        self.counts = self.known.sum(axis=0)
        plain = np.where(known, values, 0.0)
        means = plain.sum(axis=0) / np.maximum(self.counts, 1)
        self.centred = np.where(known, values - means, 0.0)
        self.squares = (self.centred**2).sum(axis=0)
        scale = np.abs(plain).max(axis=0, initial=0.0)
        self.has_spread = (self.counts >= 3) & (self.squares > self.counts * (_NOTHING * scale) ** 2)

    def statistics(self, labels: Floats) -> Floats:
        """A row for each arrangement: 1 for members of the second group, 0 for the others.

        The squares between the groups and those within them add up to the same in every arrangement, so that sums are
        enough. 0 where a measure has no spread, or an arrangement leaves one group without it.
        """
        second = labels @ self.known
        sums = labels @ self.centred
        pairs = second * (self.counts - second)
        can = self.has_spread & (pairs > 0.5)
        between = np.divide(sums**2 * self.counts, pairs, out=np.zeros_like(sums), where=can)
        share = np.divide(between, self.squares, out=np.zeros_like(sums), where=can)
        within = np.where(1.0 - share > _NOTHING, 1.0 - share, 0.0)
        with np.errstate(divide="ignore"):
            size = np.sqrt(np.where(share > 0, share * np.maximum(self.counts - 2, 0) / within, 0.0))
        statistic: Floats = np.sign(sums) * size
        return statistic


def _labels(members: int, seconds: int, is_exhaustive: bool, seed: int) -> Iterator[Floats]:
    """Arrangements, as many at a time as fit into memory."""
    if is_exhaustive:
        chosen = combinations(range(members), seconds)
        for count in portions(comb(members, seconds), members):
            yield _marked(np.array(list(islice(chosen, count)), dtype=np.intp).reshape(count, seconds), members)
        return
    random = np.random.default_rng(seed)
    for count in portions(MOST_ARRANGEMENTS, members):
        keys = random.random((count, members), dtype=np.float32)
        yield _marked(np.argpartition(keys, seconds - 1, axis=1)[:, :seconds], members)


def _marked(chosen: np.ndarray[tuple[int, int], np.dtype[np.intp]], members: int) -> Floats:
    labels = np.zeros((chosen.shape[0], members))
    np.put_along_axis(labels, chosen, 1.0, axis=1)
    return labels


# How large a difference between two cells of a measured grid must be to be more than noise ----------------------------
# Tukey's honest significant difference on logarithms: repeats of a cell tell the noise, pooled over all cells, and the
# quantile of the studentized range allows for the best cell being picked out of many.

CONFIDENCE: Final = 0.95
MOST_CELLS: Final = 100  # the quantile grows little beyond


class GridNoise(NamedTuple):
    """`factor`: two cells differ if one's mean is more than so many times the other's; None: there are no repeats."""

    factor: float | None
    noise_pct: float | None  # standard deviation of a run within its cell


def grid_noise(cells: Sequence[Sequence[float]]) -> GridNoise:
    """Of positive values by cell; cells of one value tell nothing of the noise."""
    repeated = [np.log(np.asarray(cell, float)) for cell in cells if len(cell) > 1]
    freedom = sum(len(cell) - 1 for cell in repeated)
    if not freedom or len(cells) < 2:
        return GridNoise(None, None)
    variance = sum(float(((cell - cell.mean()) ** 2).sum()) for cell in repeated) / freedom
    repeats = min(len(cell) for cell in cells)
    quantile = _range_quantile(min(len(cells), MOST_CELLS), freedom)
    return GridNoise(exp(quantile * sqrt(variance / repeats)), 100.0 * (exp(sqrt(variance)) - 1.0))


@cache
def _range_quantile(cells: int, freedom: int) -> float:
    """Of the studentized range; it takes a tenth of a second to compute, and grids of a study are of one shape."""
    from scipy.stats import studentized_range

    return float(studentized_range.ppf(CONFIDENCE, cells, freedom))


def geometric_mean(values: Sequence[float]) -> float:
    """The mean on the same scale."""
    return exp(sum(map(log, values)) / len(values))
