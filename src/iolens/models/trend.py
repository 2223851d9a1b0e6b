"""Lines through readings over time and tests by rank: least squares, Theil–Sen, Spearman, Mann–Whitney."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from iolens.arrays import Floats, Integers
from iolens.models.resampling import RESAMPLES, SEED, persistent_noise, portions

# A straight line through readings over time ---------------------------------------------------------------------------
# Least squares and Theil–Sen, how sure it is, and where it leads (S9).
#
# Time is in days, with zero wherever the caller likes; values are of any unit.

MOST_EXACT: Final = 3_000  # readings: up to here every pair counts, 4.5 million of them
SAMPLED_PAIRS: Final = 2_000_000
RESAMPLED_PAIRS: Final = 10_000  # for each resample; the line itself uses them all
LEAST_FOR_INTERVAL: Final = 8  # readings: fewer say nothing of their own spread
LEAST_NOISE: Final = 1e-6  # of the change over the readings: less is rounding, and says nothing of what is to come

Method = Literal["linear", "theil-sen"]
METHODS: Final[tuple[Method, ...]] = ("linear", "theil-sen")


class TrendLine(NamedTuple):
    """`level` at day zero, and what is added per day."""

    slope: float
    level: float

    def at(self, days: float) -> float:
        """Its value on a day."""
        return self.level + self.slope * days

    def reaches(self, value: float) -> float | None:
        """The day on which it crosses `value`; None if it is level."""
        return (value - self.level) / self.slope if self.slope else None


@dataclass(frozen=True, slots=True)
class TrendLines:
    """Lines through resamples of the same readings."""

    slopes: Floats
    levels: Floats

    def at(self, days: float) -> Floats:
        """Their values on a day."""
        return self.levels + self.slopes * days

    def reach(self, value: float) -> Floats:
        """The days on which they cross `value` from below; infinite for a line that does not rise."""
        with np.errstate(divide="ignore", invalid="ignore"):
            days = (value - self.levels) / self.slopes
        return np.where(self.slopes > 0, days, np.inf)


def fit(method: Method, days: Floats, values: Floats) -> TrendLine | None:
    """The line by one of the methods; None unless there are two times."""
    return least_squares(days, values) if method == "linear" else theil_sen(days, values)


def least_squares(days: Floats, values: Floats) -> TrendLine | None:
    """The line with the least squared residuals."""
    if days.size < 2 or days.min() == days.max():
        return None
    centred = days - days.mean()
    slope = float(centred @ (values - values.mean()) / (centred @ centred))
    return TrendLine(slope, float(values.mean()) - slope * float(days.mean()))


def theil_sen(days: Floats, values: Floats) -> TrendLine | None:
    """The median slope of all pairs of readings, at the median level: a few wild ones do not move it.

    Beyond `MOST_EXACT` readings, the median of `SAMPLED_PAIRS` pairs drawn with a fixed seed.
    """
    if days.size < 2 or days.min() == days.max():
        return None
    slopes = _all_slopes(days, values) if days.size <= MOST_EXACT else _sampled_slopes(days, values, SAMPLED_PAIRS)
    slope = float(np.median(slopes))
    return TrendLine(slope, float(np.median(values - slope * days)))


def is_exact(readings: int) -> bool:
    """Whether Theil–Sen looks at every pair of so many readings."""
    return readings <= MOST_EXACT


def resampled_lines(method: Method, days: Floats, values: Floats, line: TrendLine) -> TrendLines | None:
    """Lines through the fitted one plus noise that is as large and lasts as long as its residuals.

    None for fewer than `LEAST_FOR_INTERVAL` readings, and for readings that lie on the line: without noise every
    resample is the same line, and its interval would have no width.
    """
    if days.size < LEAST_FOR_INTERVAL:
        return None
    fitted = line.level + line.slope * days
    residuals = values - fitted
    if float(residuals.std()) <= LEAST_NOISE * float(np.ptp(values)):
        return None
    random = np.random.default_rng(SEED)
    refit = _LeastSquares(days) if method == "linear" else _TheilSen(days, random)
    slopes, levels = [], []
    for count in portions(RESAMPLES, max(days.size, RESAMPLED_PAIRS if method == "theil-sen" else 0)):
        lines = refit(fitted + persistent_noise(residuals, random, count))
        slopes.append(lines.slopes)
        levels.append(lines.levels)
    return TrendLines(np.concatenate(slopes), np.concatenate(levels))


class _LeastSquares:
    """Least squares of many rows of values at the same days."""

    def __init__(self, days: Floats) -> None:
        self.mean_day = float(days.mean())
        centred = days - self.mean_day
        self.weights = centred / (centred @ centred)

    def __call__(self, rows: Floats) -> TrendLines:
        slopes = rows @ self.weights
        return TrendLines(slopes, rows.mean(axis=1) - slopes * self.mean_day)


class _TheilSen:
    """Theil–Sen of many rows of values at the same days, over one choice of pairs."""

    def __init__(self, days: Floats, random: np.random.Generator) -> None:
        self.days = days
        count = days.size
        if count * (count - 1) // 2 <= RESAMPLED_PAIRS:
            self.first, self.second = np.triu_indices(count, 1)
        else:
            self.first, self.second = _drawn_pairs(count, RESAMPLED_PAIRS, random)
        apart = days[self.second] - days[self.first]
        keep = apart != 0
        self.first, self.second, self.apart = self.first[keep], self.second[keep], apart[keep]

    def __call__(self, rows: Floats) -> TrendLines:
        slopes = np.median((rows[:, self.second] - rows[:, self.first]) / self.apart, axis=1)
        return TrendLines(slopes, np.median(rows - slopes[:, None] * self.days, axis=1))


def _all_slopes(days: Floats, values: Floats) -> Floats:
    parts = []
    for apart in range(1, days.size):
        between = days[apart:] - days[:-apart]
        rise = values[apart:] - values[:-apart]
        parts.append(rise[between != 0] / between[between != 0])
    return np.concatenate(parts)


def _sampled_slopes(days: Floats, values: Floats, pairs: int) -> Floats:
    first, second = _drawn_pairs(days.size, pairs, np.random.default_rng(SEED))
    between, rise = days[second] - days[first], values[second] - values[first]
    slopes: Floats = rise[between != 0] / between[between != 0]
    return slopes


def _drawn_pairs(count: int, pairs: int, random: np.random.Generator) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Pairs of two different places, every pair alike."""
    first = random.integers(0, count, pairs)
    second = (first + random.integers(1, count, pairs)) % count
    return first, second


# Tests by rank --------------------------------------------------------------------------------------------------------
# Spearman's correlation, Mann and Whitney's test, Holm's correction, a value's place among others.


def ranks(values: Floats) -> Floats:
    """Ranks from 1; equal values share the mean of theirs."""
    _, where, counts = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    shared: Floats = (last - (counts - 1) / 2.0)[where]
    return shared


def spearman(first: Floats, second: Floats) -> tuple[float, float] | None:
    """ρ and its two-sided p by Student's t with n − 2 degrees; None: fewer than 3 pairs, or one does not vary.

    p is at least 2/n!, that of a perfect order: the approximation gives 0 there.
    """
    count = len(first)
    if count < 3:
        return None
    left, right = (ranks(values) - (count + 1) / 2.0 for values in (first, second))
    spread = math.sqrt(float(left @ left) * float(right @ right))
    if spread == 0.0:
        return None
    rho = min(max(float(left @ right) / spread, -1.0), 1.0)
    return rho, max(_two_sided_p(rho, count), 2.0 / math.factorial(min(count, 100)))


def _two_sided_p(rho: float, count: int) -> float:
    from scipy.special import stdtr

    if abs(rho) >= 1.0:
        return 0.0
    t = rho * math.sqrt((count - 2) / ((1.0 - rho) * (1.0 + rho)))
    return min(2.0 * float(stdtr(count - 2, -abs(t))), 1.0)


def slower_ps(values: Floats, groups: Integers) -> Floats:
    """One-sided p for each group, numbered from 0, that its values are larger than all others by chance.

    Mann and Whitney's test by the normal approximation, corrected for ties and for continuity; 1 where nothing differs.
    """
    counts, whole = np.bincount(groups).astype(float), len(values)
    _, tied = np.unique(values, return_counts=True)
    ties = float((tied.astype(float) ** 3 - tied).sum()) / max(whole * (whole - 1), 1)
    others = whole - counts
    spread = np.sqrt(np.maximum(counts * others / 12.0 * (whole + 1 - ties), 0.0))
    larger = np.bincount(groups, ranks(values)) - counts * (counts + 1) / 2.0
    beyond = larger - counts * others / 2.0 - 0.5
    pairs = zip(beyond.tolist(), spread.tolist(), strict=True)
    return np.array([0.5 * math.erfc(more / width / math.sqrt(2.0)) if width else 1.0 for more, width in pairs])


def holm(p_values: Sequence[float]) -> list[float]:
    """Each p corrected for the number of tests (Holm, 1979), in the order given."""
    order = sorted(range(len(p_values)), key=lambda place: p_values[place])
    corrected = [1.0] * len(p_values)
    largest = 0.0
    for step, place in enumerate(order):
        largest = max(largest, min((len(p_values) - step) * p_values[place], 1.0))
        corrected[place] = largest
    return corrected


def percentile_of(value: float, others: Floats) -> float | None:
    """Per cent of the others that are smaller, equal ones as half; None of nothing, or where it is not known."""
    known = others[~np.isnan(others)]
    if not known.size or math.isnan(value):
        return None
    return 100.0 * float((known < value).sum() + 0.5 * (known == value).sum()) / known.size
