"""Everything that is told of single targets, gathered from sums by target and time bucket."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from iolens.analyses.fsu_sums import Columns

_ADDED = ("rows", "duration_s", "busy", "busy_s", "ios", "outside", "nominal_s", "irregular", "resets")


@dataclass(slots=True)
class TargetSums:
    """One target over the window; `busy` is FSU × seconds."""

    rows: float = 0.0
    duration_s: float = 0.0
    busy: float = 0.0
    busy_s: float = 0.0
    ios: float = 0.0
    outside: float = 0.0
    nominal_s: float = 0.0
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
    bytes_by_target: dict[str, tuple[float | None, float | None]] = field(default_factory=dict)
    bytes_by_day: dict[int, tuple[float | None, float | None]] = field(default_factory=dict)
    _heat: dict[tuple[str, int], tuple[float, float]] = field(default_factory=dict)

    @property
    def names_with_sizes(self) -> list[str]:
        """Targets that reported disk I/O sizes."""
        return sorted(self.sums)

    @property
    def extent_us(self) -> tuple[int, int] | None:
        """Start of the first and end of the last interval."""
        if not self.sums:
            return None
        return min(one.first_us for one in self.sums.values()), max(one.last_us for one in self.sums.values())

    def add_sizes(self, rows: Columns) -> None:
        """Sums of `FsuSums.per_target`."""
        for number, name in enumerate(rows["target"]):
            one = self.sums.setdefault(str(name), TargetSums())
            for column in _ADDED:
                setattr(one, column, getattr(one, column) + float(rows[column][number]))
            one.longest_s = max(one.longest_s, float(rows["longest_s"][number]))
            one.first_us = min(one.first_us, int(rows["first_us"][number]))
            one.last_us = max(one.last_us, int(rows["last_us"][number]))
            key = (str(name), int(rows["bucket"][number]))
            busy, seconds = self._heat.get(key, (0.0, 0.0))
            self._heat[key] = (busy + float(rows["busy"][number]), seconds + float(rows["duration_s"][number]))

    def add_bytes(self, rows: Columns) -> None:
        """Sums of `FsuSums.bytes_per_target`; a direction that nobody counted stays unknown."""
        for number, name in enumerate(rows["target"]):
            moved = tuple(
                float(rows[f"{way}_bytes"][number]) if rows[f"{way}_rows"][number] else None
                for way in ("read", "write")
            )
            day = int(rows["bucket"][number]) * self.bucket_s // 86400
            self.bytes_by_target[str(name)] = _plus(self.bytes_by_target.get(str(name)), moved)
            self.bytes_by_day[day] = _plus(self.bytes_by_day.get(day), moved)

    def heat(self) -> tuple[list[str], NDArray[np.int64], NDArray[np.float64]]:
        """Targets, bucket numbers without holes, and mean FSU; NaN where a target did not report."""
        names = self.names_with_sizes
        buckets = [bucket for _, bucket in self._heat]
        first, last = min(buckets), max(buckets)
        matrix = np.full((len(names), last - first + 1), np.nan)
        row_of = {name: number for number, name in enumerate(names)}
        for (name, bucket), (busy, seconds) in self._heat.items():
            matrix[row_of[name], bucket - first] = busy / seconds
        return names, np.arange(first, last + 1), matrix


def _plus(
    known: tuple[float | None, float | None] | None, moved: tuple[float | None, ...]
) -> tuple[float | None, float | None]:
    if known is None:
        return moved[0], moved[1]
    read, write = (
        old if new is None else new if old is None else old + new for old, new in zip(known, moved, strict=True)
    )
    return read, write
