"""When loads were unbalanced by a threshold, and who was hot then: of targets, or of servers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

import numpy as np

from iolens.analyses.imbalance.periods import Periods
from iolens.analyses.imbalance.spreads import HotTargets, SpreadSeries
from iolens.analyses.intervals.tick_matrix import Ticks
from iolens.arrays import Booleans
from iolens.units import from_epoch_us

AskedThreshold = tuple[str, float | None, float]  # name, percentile where it is one, standard deviation


@dataclass(frozen=True, slots=True)
class ImbalanceThreshold:
    """What is called imbalance, and how much of it there was; `percentile` is None where a value was given."""

    name: str
    percentile: float | None
    std_bytes_per_s: float
    ticks: int
    ticks_pct: float
    hours: float
    periods: int
    periods_cut: int


@dataclass(frozen=True, slots=True)
class HotTarget:
    """How often a target was the hottest of an unbalanced tick or stood out in it, and when it was hot."""

    threshold: str
    target: str
    hottest_pct: float
    outstanding_pct: float
    hours: float
    first: datetime
    last: datetime
    longest_s: float
    longest_from: datetime


def thresholds_of(series: SpreadSeries, percentiles: Sequence[float], values: Sequence[float]) -> list[AskedThreshold]:
    """Names, percentiles and standard deviations, as they were asked for."""
    shares = [percentile / 100.0 for percentile in percentiles]
    limits = np.quantile(series.std, shares).tolist() if shares else []
    by_percentile = [
        (f"p{percentile:g}", float(percentile), limit) for percentile, limit in zip(percentiles, limits, strict=True)
    ]
    by_value = [(f"{value:.0f}_bytes_per_s", None, float(value)) for value in values]
    return list({item[0]: item for item in (*by_percentile, *by_value)}.values())


def unbalanced_time(asked: AskedThreshold, unbalanced: Booleans, lasted: Periods, tick_s: float) -> ImbalanceThreshold:
    """How often, how long and in how many periods it was reached."""
    name, percentile, limit = asked
    count = int(unbalanced.sum())
    share, hours = 100.0 * count / unbalanced.size, count * tick_s / 3600.0
    return ImbalanceThreshold(name, percentile, limit, count, share, hours, int(lasted.lifetimes.size), lasted.cut)


def hot_targets(name: str, series: SpreadSeries, chosen: Booleans, ticks: Ticks) -> Iterator[HotTarget]:
    """Those that ever were, the longest first."""
    hot = HotTargets(len(ticks.targets))
    for part in series.hot(chosen):
        hot.add(*part)
    total, lasted = int(chosen.sum()), hot.stretches
    for place in np.argsort(-lasted.rows, kind="stable").tolist():
        if lasted.rows[place]:
            yield HotTarget(
                name,
                ticks.targets[place],
                100.0 * int(hot.hottest[place]) / total,
                100.0 * int(hot.outstanding[place]) / total,
                int(lasted.rows[place]) * ticks.tick_us / 3.6e9,
                from_epoch_us((int(lasted.first[place]) - 1) * ticks.tick_us),
                from_epoch_us(int(lasted.last[place]) * ticks.tick_us),
                int(lasted.longest[place]) * ticks.tick_us / 1e6,
                from_epoch_us((int(lasted.longest_first[place]) - 1) * ticks.tick_us),
            )
