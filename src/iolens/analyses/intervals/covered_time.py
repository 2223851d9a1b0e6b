"""How long targets reported, by their nominal tick (SPEC B7): an interval made of missed samples is a gap.

The nominal tick of a target on a UTC day is its most common interval of that day, or of the whole window where the day
has few. An interval longer than one and a half of it covers one tick, its last: its sums are right, but nothing is
known of when in it they happened.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from iolens.analyses.intervals.tick_matrix import GAP
from iolens.arrays import Columns
from iolens.units import DAY_S

FEWEST_FOR_TICK: Final = 10  # intervals of a day: fewer do not tell its tick
ALIKE: Final = math.log(1.1)  # lengths within a tenth of each other may be the same tick, off by the clock


@dataclass(slots=True)
class Intervals:
    """Intervals of one length: how many, and the time they report of."""

    count: int = 0
    reported_s: float = 0.0


ByLength = dict[int, Intervals]  # by length in microseconds


@dataclass(slots=True)
class CoveredTime:
    """Feed sums by target, time bucket and `length_us`; buckets nest in UTC days."""

    bucket_s: int
    _days: dict[str, dict[int, ByLength]] = field(default_factory=dict)
    _known_ticks: dict[str, dict[int, float]] = field(default_factory=dict)

    def add(self, rows: Columns) -> None:
        """Sums with the columns of `fsu_sums.quality`."""
        self._known_ticks.clear()
        days = rows["bucket"] * self.bucket_s // DAY_S
        parts = (rows["target"], days, rows["length_us"], rows["rows"], rows["reported_s"])
        for target, day, length_us, count, reported_s in zip(*(part.tolist() for part in parts), strict=True):
            by_length = self._days.setdefault(target, {}).setdefault(day, {})
            intervals = by_length.setdefault(length_us, Intervals())
            intervals.count += round(count)
            intervals.reported_s += reported_s

    def seconds(self, target: str, overshoot_us: int = 0) -> float:
        """Time the target reported of; `overshoot_us` is how far its last interval reaches beyond the window."""
        ticks = self._ticks(target)
        covered_s = 0.0
        for day, by_length in self._days.get(target, {}).items():
            for length_us, intervals in by_length.items():
                is_gap = length_us > GAP * ticks[day]
                covered_s += intervals.count * ticks[day] / 1e6 if is_gap else intervals.reported_s
        beyond_us = min(overshoot_us, ticks[max(ticks)]) if ticks else 0
        return max(covered_s - beyond_us / 1e6, 0.0)

    def missed(self, target: str, missing_s: float) -> int:
        """Ticks at which it should have reported and did not: in its own long intervals, and in the rest of the time
        of the window that is missing of it.
        """
        ticks = self._ticks(target)
        if not ticks:
            return 0
        long = {
            day: sum(
                round(intervals.count * (length_us / ticks[day] - 1))
                for length_us, intervals in by_length.items()
                if length_us > GAP * ticks[day]
            )
            for day, by_length in self._days[target].items()
        }
        elsewhere_us = missing_s * 1e6 - sum(count * ticks[day] for day, count in long.items())
        return sum(long.values()) + max(round(elsewhere_us / _most_common(self._days[target].values())), 0)

    def _ticks(self, target: str) -> dict[int, float]:
        """The nominal tick of each day in microseconds."""
        if target not in self._known_ticks:
            days = self._days.get(target, {})
            whole = _most_common(days.values())
            self._known_ticks[target] = {day: _tick_of_day(by_length, whole) for day, by_length in days.items()}
        return self._known_ticks[target]


def _tick_of_day(by_length: Mapping[int, Intervals], whole: float) -> float:
    if _count(by_length) < FEWEST_FOR_TICK:
        return whole
    return float(next(iter(by_length))) if len(by_length) == 1 else _most_common([by_length])


def _count(by_length: Mapping[int, Intervals]) -> int:
    return sum(intervals.count for intervals in by_length.values())


def _most_common(parts: Iterable[Mapping[int, Intervals]]) -> float:
    """Mean of the most common intervals that are alike, in microseconds; of equally common ones the shorter."""
    counts: dict[int, int] = {}
    totals: dict[int, int] = {}
    for by_length in parts:
        for length_us, intervals in by_length.items():
            alike = round(math.log(max(length_us, 1)) / ALIKE)
            counts[alike] = counts.get(alike, 0) + intervals.count
            totals[alike] = totals.get(alike, 0) + intervals.count * length_us
    if not counts:
        return 0.0
    best = min(counts, key=lambda alike: (-counts[alike], alike))
    return totals[best] / counts[best]
