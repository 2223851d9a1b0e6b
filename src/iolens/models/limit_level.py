"""The FSU of a full disk by a centre's own telemetry (U10): where targets reach their limit, that of queued ticks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from iolens.arrays import Floats
from iolens.models.cost_estimate import TelemetryTicks, draws, interval, numbered, size_group, weighted_quantile
from iolens.models.frontier import FEWEST_BLOCKS, FEWEST_QUEUED, SPREAD, queued_ticks
from iolens.models.transaction_time import Coefficients, added, time_terms


@dataclass(frozen=True, slots=True)
class SeenCeiling:
    """The median FSU of queued ticks in per cent, by some coefficients, with 95 % of resampled days."""

    pct: float | None
    low_pct: float | None
    high_pct: float | None
    ticks: int
    note: str = ""


def seen_ceiling(sides: Sequence[tuple[TelemetryTicks, Coefficients]]) -> SeenCeiling | None:
    """Of ticks of each direction with its coefficients; None where too few are queued.

    Only where the limit of the class is known: queued ticks of jobs that limit themselves look alike. No level where
    sizes or directions have levels of their own: then the coefficients do not fit, and there is no one ceiling.
    """
    levels, counts, blocks, groups = ([part] for part in (np.empty(0), np.empty(0), np.empty(0, int), np.empty(0, int)))
    for place, (ticks, cost) in enumerate(sides):
        queued = ticks.where(queued_ticks(ticks))
        moved = queued.ios_per_s * queued.size_bytes
        levels.append(100.0 * added(time_terms(queued.ios_per_s, moved, cost.latency_s, cost.s_per_byte)))
        counts.append(queued.count)
        blocks.append(queued.block)
        groups.append(size_group(queued.size_bytes) * len(sides) + place)
    level, count, block, group = (np.concatenate(parts) for parts in (levels, counts, blocks, groups))
    places, number = numbered(block)
    if count.sum() < FEWEST_QUEUED or number < FEWEST_BLOCKS:
        return None
    middle = weighted_quantile(level, count, 0.5)
    ticks_queued = round(float(count.sum()))
    of_groups = [
        weighted_quantile(level[group == key], count[group == key], 0.5)
        for key in np.unique(group)
        if count[group == key].sum() >= FEWEST_QUEUED
    ]
    low, high = min(of_groups, default=middle), max(of_groups, default=middle)
    if low < SPREAD[0] * middle or high > SPREAD[1] * middle:
        note = (
            f"FSU at the limit is {low:.0f} to {high:.0f} % by size and direction: the coefficients have no one ceiling"
        )
        return SeenCeiling(None, None, None, ticks_queued, note)
    of_days = [weighted_quantile(level[places == day], count[places == day], 0.5) for day in range(number)]
    ends = interval(_medians(np.array(of_days)), middle)
    return SeenCeiling(middle, ends[0] if ends else None, ends[1] if ends else None, ticks_queued)


def _medians(of_days: Floats) -> Floats:
    """Of resampled days."""
    drawn = draws(of_days.size)
    order = np.argsort(of_days)
    places = (np.cumsum(drawn[:, order], axis=1) < of_days.size / 2).sum(axis=1)
    return np.asarray(of_days[order][places])
