"""Everything reported of single targets, gathered from sums by target and time bucket."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from iolens.analyses.intervals.covered_time import CoveredTime
from iolens.analyses.intervals.days import OBSERVED, covered_pct
from iolens.analyses.intervals.target_rows import TargetRows, codes
from iolens.arrays import Columns, Integers
from iolens.schema import DIRECTIONS

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
