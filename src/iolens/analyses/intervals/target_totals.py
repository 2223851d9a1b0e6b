"""Everything reported of single targets over a window, and how long each reported."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from iolens.analyses.intervals.buckets import OBSERVED, covered_pct
from iolens.analyses.intervals.target_rows import TargetRows, codes
from iolens.analyses.intervals.tick_matrix import GAP
from iolens.arrays import Columns, Integers
from iolens.schema import DIRECTIONS
from iolens.units import DAY_S

# How long targets reported, by their nominal tick (SPEC B7) -----------------------------------------------------------
# An interval made of missed samples is a gap.
#
# The nominal tick of a target on a UTC day is its most common interval of that day, or of the whole window where the
# day has few. An interval longer than one and a half of it covers one tick, its last: its sums are right, but nothing
# is known of when in it they happened.

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


# Everything reported of single targets, gathered from sums by target and time bucket ----------------------------------

ADDED: Final = ("rows", "duration_s", "busy", "busy_s", "outside", "irregular", "resets")

Moved = list[int | None]  # bytes read and written; None where nobody counted them


@dataclass(slots=True)
class TargetSums:
    """One target over the window; `busy` is FSU × seconds."""

    rows: float = 0.0
    duration_s: float = 0.0
    busy: float = 0.0
    busy_s: float = 0.0
    outside: float = 0.0
    irregular: float = 0.0
    resets: float = 0.0
    longest_s: float = 0.0
    first_us: int = 2**62
    last_us: int = 0


@dataclass(slots=True)
class TargetTotals:
    """Feed sums chunk by chunk."""

    bucket_s: int
    sums: dict[str, TargetSums] = field(default_factory=dict)
    bytes_by_target: dict[str, Moved] = field(default_factory=dict)
    bytes_by_day: dict[int, Moved] = field(default_factory=dict)
    util_by_target: dict[str, tuple[float, float]] = field(default_factory=dict)  # busy and observed seconds
    left_out: set[str] = field(default_factory=set)
    covered: CoveredTime = field(init=False)
    _days: list[Columns] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.covered = CoveredTime(self.bucket_s)

    @property
    def names_with_sizes(self) -> list[str]:
        """Targets that reported what the model needs: disk I/Os by size, or operations and bytes."""
        return sorted(self.sums)

    @property
    def names_without_sizes(self) -> list[str]:
        """Targets that moved bytes while the counts the model needs stood still or are absent."""
        with_sizes = {name for name, target_sums in self.sums.items() if target_sums.busy}
        return sorted(name for name, moved in self.bytes_by_target.items() if any(moved) and name not in with_sizes)

    @property
    def extent_us(self) -> tuple[int, int] | None:
        """Start of the first and end of the last interval."""
        if not self.sums:
            return None
        return min(target_sums.first_us for target_sums in self.sums.values()), max(
            target_sums.last_us for target_sums in self.sums.values()
        )

    def add_sizes(self, rows: Columns) -> None:
        """Sums of `FsuSums.per_target`."""
        names, where = codes(rows["target"])
        added = {name: np.bincount(where, weights=rows[name], minlength=len(names)) for name in ADDED}
        first, longest, last = (np.zeros(len(names)) for _ in range(3))
        first += 2.0**62
        np.minimum.at(first, where, rows["first_us"])
        np.maximum.at(longest, where, rows["longest_s"])
        np.maximum.at(last, where, rows["last_us"])
        for number, name in enumerate(names):
            target_sums = self.sums.setdefault(name, TargetSums())
            for column in ADDED:
                setattr(target_sums, column, getattr(target_sums, column) + float(added[column][number]))
            target_sums.longest_s = max(target_sums.longest_s, float(longest[number]))
            target_sums.first_us = min(target_sums.first_us, int(first[number]))
            target_sums.last_us = max(target_sums.last_us, int(last[number]))
        self.covered.add(rows)

    def add_bytes(self, moved: TargetRows, per_target: bool) -> None:
        """Sums of `bytes_per_target`: by the day in their `bucket` and, if wanted, by target."""
        rows, places = moved.columns, moved.columns["target"]
        names = np.array(moved.names, object)
        self._days.append({**{name: rows[name] for name in OBSERVED}, "target": names[places]})
        days, where = np.unique(rows["bucket"], return_inverse=True)
        keyed: list[tuple[dict[Any, Moved], list[Any], Integers]] = [(self.bytes_by_day, days.tolist(), where)]
        keyed += [(self.bytes_by_target, moved.names, places)] if per_target else []
        for totals, keys, place in keyed:
            for side, direction in enumerate(DIRECTIONS):
                sums = np.bincount(place, weights=np.nan_to_num(rows[f"{direction}_bytes"]), minlength=len(keys))
                counted = np.bincount(place, weights=rows[f"{direction}_rows"], minlength=len(keys)) > 0
                for key, added, is_known in zip(keys, sums.tolist(), counted, strict=True):
                    total = totals.setdefault(key, [None, None])
                    if is_known:
                        total[side] = (total[side] or 0) + round(added)
        if not per_target or "busy_us" not in rows:
            return
        for name, busy_us, seconds in zip(names[places], rows["busy_us"], rows["util_s"], strict=True):
            if seconds > 0:
                busy, known = self.util_by_target.get(name, (0.0, 0.0))
                self.util_by_target[name] = busy + busy_us * 1e-6, known + seconds

    def covered_pct(self, zone: str | None = None) -> dict[int, float]:
        """Share of its samples that each day has, days being those of a time zone."""
        return covered_pct(self._days, zone)
