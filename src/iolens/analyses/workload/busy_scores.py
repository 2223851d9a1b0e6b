"""How targets and hours go together: normal scores of the bandwidth, hour by hour in local time (SPEC S12).

Scores have no heavy tail. So means of hours and the correlation of targets are found from days of samples, where means
of bytes would be the luck of a few bursts. What is left of luck in the factors of hours and weekdays is taken out, too.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from iolens.analyses.intervals.tick_matrix import TickMatrix
from iolens.arrays import Booleans, Floats, Integers
from iolens.models.workload_model import FIRST_WEEKDAY, Marginal, hour_of_week, standard_normal_cdf

LEAST: Final = 1e-7  # share at which scores end
ROUNDS: Final = 60
STEPS: Final = 501
HIGH: Final = 0.9  # the upper tenth is where targets have to agree for their sum to be right
MEASURES: Final = 8  # what is summed up for every hour
LEAST_TICKS: Final = 200  # of an hour, to tell its level from what its targets have in common
MOST_CORRELATED: Final = 0.999


@dataclass(slots=True)
class BusyScores:
    """One direction, fed by matrices: sums by local hour (`local_hours`).

    They are: samples, those with traffic, their scores, squares of scores, high scores; ticks, pairs of targets with
    traffic at the same tick, and pairs of high scores.
    """

    direction: str
    marginal: Marginal
    sums: dict[int, Floats] = field(default_factory=dict)

    def add(self, matrix: TickMatrix, hours: Integers) -> None:
        """Take the next ticks; `hours` are theirs."""
        from scipy.special import ndtri

        rates = matrix.rate(f"{self.direction}_bytes")
        with np.errstate(invalid="ignore"):
            busy = rates > 0
        scores = np.zeros(rates.shape)
        scores[busy] = ndtri(np.clip(self.marginal.cdf(rates[busy]), LEAST, 1.0 - LEAST))
        number, total, squares = busy.sum(axis=1), scores.sum(axis=1), (scores**2).sum(axis=1)
        high = (scores > ndtri(HIGH)).sum(axis=1)
        together = np.ones(number.size), number * (number - 1.0), high * (high - 1.0)
        each = ((~np.isnan(rates)).sum(axis=1), number, total, squares, high, *together)
        distinct, where = np.unique(hours, return_inverse=True)
        columns = np.array([np.bincount(where, weights=item, minlength=distinct.size) for item in each])
        for place, hour in enumerate(distinct.tolist()):
            self.sums[hour] = self.sums.get(hour, np.zeros(MEASURES)) + columns[:, place]

    def correlation(self) -> tuple[float, float]:
        """Of the normal scores of two targets at the same tick of the same hour of the week, and of how many pairs.

        It is the one under which both are in the upper tenth as often as they are: bursts that come to all targets at
        once count for what they do to the sum. What hours have in common is no correlation; where hours have too few
        ticks to tell, all of them are one.
        """
        hours, sums = self._hours()
        for group in (hour_of_week(hours), hours % 24, np.zeros_like(hours)):
            grouped = (np.bincount(group, weights=item).astype(np.float64) for item in sums)
            _, busy, _, _, high, ticks, pairs, both = grouped
            if ticks[ticks > 0].min(initial=np.inf) >= LEAST_TICKS:
                break
        some = (pairs > 0) & (high > 0)
        if not some.any():
            return 0.0, float(pairs.sum())
        return _shared(high[some] / busy[some], pairs[some], float(both.sum())), float(pairs.sum())

    def presence(self) -> dict[int, float]:
        """How often there is traffic in every local hour, 1 being usual."""
        hours, (samples, busy, *_) = self._hours()
        return _relative(hours, busy / np.maximum(samples, 1.0), samples)

    def speeds(self) -> dict[int, float]:
        """How fast traffic is in every local hour that has some, 1 being usual."""
        hours, (_, busy, scores, squares, *_) = self._hours()
        means = scores / np.maximum(busy, 1.0)
        within = float((squares - busy * means**2).sum() / max(busy.sum(), 1.0))
        return _relative(hours, self._speeds(means, max(within, 0.0) ** 0.5), busy)

    def _hours(self) -> tuple[Integers, Floats]:
        hours = sorted(self.sums)
        return np.array(hours, np.int64), np.array([self.sums[hour] for hour in hours]).reshape(-1, MEASURES).T

    def _speeds(self, means: Floats, spread: float) -> Floats:
        """The mean bandwidth of scores around these means."""
        grid = np.linspace(-6.0, 6.0, STEPS)
        weights = np.exp(-0.5 * grid**2)
        weights /= weights.sum()
        shares = (standard_normal_cdf(mean + spread * grid) for mean in means.tolist())
        return np.array([float(weights @ self.marginal.quantile(share)) for share in shares])


def _relative(hours: Integers, values: Floats, weights: Floats) -> dict[int, float]:
    """Values by hour relative to their weighted mean, of hours that have a weight."""
    usual = float(values @ weights) / max(float(weights.sum()), 1e-300)
    some = weights > 0
    return dict(zip(hours[some].tolist(), (values[some] / max(usual, 1e-300)).tolist(), strict=True))


def _shared(high: Floats, pairs: Floats, both: float) -> float:
    """The correlation under which so many pairs are high at once, given the share of high scores in every group."""
    from scipy.special import ndtri

    thresholds = ndtri(1.0 - np.minimum(high, 1.0 - 1e-9))[:, None]
    common = np.linspace(-8.0, 8.0, STEPS)
    weights = np.exp(-0.5 * common**2)
    weights /= weights.sum()
    low, upper = 0.0, MOST_CORRELATED
    for _ in range(40):
        middle = (low + upper) / 2.0
        above = standard_normal_cdf((np.sqrt(middle) * common - thresholds) / np.sqrt(1.0 - middle))
        low, upper = (middle, upper) if float(pairs @ (above**2 @ weights)) < both else (low, middle)
    return (low + upper) / 2.0


def day_and_week(
    factors: Mapping[str, Mapping[int, float]], weights: Mapping[str, float]
) -> tuple[list[float], list[float]]:
    """Factors of the hours of a day and of weekdays whose products come nearest; what was never observed is usual.

    Directions are averaged with their weights. Both are drawn towards 1 by as much of their spread as chance explains.
    """
    table = _table(factors, weights)
    known = ~np.isnan(table)
    values = np.where(known, table, 0.0)
    weekday = np.arange(len(table)) % 7
    days, hours = np.ones(7), np.ones(24)
    for _ in range(ROUNDS):
        each = days[weekday][:, None]
        hours = _ratio((values * each).sum(axis=0), (known * each**2).sum(axis=0))
        days = _ratio(
            _by_weekday((values * hours).sum(axis=1), weekday), _by_weekday((known * hours**2).sum(axis=1), weekday)
        )
    chance = _chance(values - days[weekday][:, None] * hours, known)
    by_day = _by_weekday(known.sum(axis=1).astype(np.float64), weekday)
    return _drawn_in(hours, known.sum(axis=0).astype(np.float64), chance), _drawn_in(days, by_day, chance)


def _by_weekday(values: Floats, weekday: Integers) -> Floats:
    return np.bincount(weekday, weights=values, minlength=7).astype(np.float64)


def _table(factors: Mapping[str, Mapping[int, float]], weights: Mapping[str, float]) -> Floats:
    """Local days × hours, the first day a Monday; NaN: not observed."""
    hours = sorted(set().union(*factors.values()))
    if not hours:
        return np.full((7, 24), np.nan)
    first = hours[0] // 24
    first -= (first + FIRST_WEEKDAY) % 7
    table = np.full((hours[-1] // 24 - first + 1, 24), np.nan)
    total = sum(weights.values())
    for hour in hours:
        pairs = [(direction, factor[hour]) for direction, factor in factors.items() if hour in factor]
        if len(pairs) == len(factors):
            table[hour // 24 - first, hour % 24] = sum(weights[direction] * value for direction, value in pairs) / total
    return table


def _ratio(above: Floats, below: Floats) -> Floats:
    values: Floats = np.divide(above, below, out=np.ones(below.size), where=below > 0)
    return values


def _chance(rest: Floats, known: Booleans) -> float:
    """Variance of what hours and weekdays do not explain; 0 where there is too little to tell."""
    free = int(known.sum()) - int(np.any(known, axis=0).sum()) - min(int(np.any(known, axis=1).sum()), 7) + 1
    return float((rest[known] ** 2).sum()) / free if free > 0 else 0.0


def _drawn_in(factors: Floats, seen: Floats, chance: float) -> list[float]:
    """With mean 1 over those observed, and nearer to it the more of their spread is chance (James and Stein)."""
    some = seen > 0
    mean = float(factors[some].mean()) if some.any() else 1.0
    level = factors / mean if mean > 0 else np.ones(factors.size)
    spread = float(level[some].var()) if some.any() else 0.0
    noise = float((chance / np.maximum(seen[some], 1)).mean()) if some.any() else 0.0
    kept = max(0.0, 1.0 - noise / spread) if spread > 0 else 0.0
    return [float(item) for item in np.where(some, 1.0 + kept * (level - 1.0), 1.0)]
