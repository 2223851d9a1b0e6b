"""When a file system is used: bytes per observed hour of each weekday and hour, in the centre's own zone (SPEC S10).

Bytes are summed by UTC quarter-hour, which every zone's hours are made of, and only those sums are turned into local
time: a daylight-saving change moves them as it moved the people.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import tzinfo
from typing import Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import numpy as np

from iolens.analyses.intervals.tick_matrix import Edges, TickMatrix
from iolens.arrays import Floats, Integers, known_sums
from iolens.errors import UsageError
from iolens.schema import DIRECTIONS
from iolens.units import from_epoch_us

QUARTER_US: Final = 900_000_000
HOUR_S: Final = 3600.0
WEEKDAYS: Final = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")


@dataclass(frozen=True, slots=True)
class RhythmHours:
    """One weekday, or one hour of the day: bytes per hour in which anything was observed; None: never observed."""

    name: str
    observed_hours: float
    read_bytes_per_hour: float | None
    write_bytes_per_hour: float | None


@dataclass(frozen=True, slots=True)
class Rhythm:
    """The week and the day of a centre."""

    timezone: str
    weekday: list[RhythmHours]
    hour: list[RhythmHours]


@dataclass(slots=True)
class QuarterHours:
    """Feed matrices, or sums of later ones: bytes and observed seconds by quarter-hour."""

    numbers: list[Integers] = field(default_factory=list)  # since 1970
    sums: list[Floats] = field(default_factory=list)  # read, written, seconds; × quarter-hours
    edges: Edges | None = None

    def add(self, matrix: TickMatrix) -> None:
        """A tick belongs to the quarter-hour in which it ends."""
        quarters, where = np.unique((matrix.end_us - 1) // QUARTER_US, return_inverse=True)
        seconds = matrix.covered_s()
        moved = [
            known_sums(matrix.measures[name], axis=1) if name in matrix.measures else np.zeros(seconds.size)
            for name in (f"{direction}_bytes" for direction in DIRECTIONS)
        ]
        columns = [np.bincount(where, weights=item, minlength=quarters.size) for item in (*moved, seconds)]
        self.take(QuarterHours([quarters], [np.array(columns)], Edges.of(matrix, seconds)))

    def take(self, later: QuarterHours) -> None:
        """Sums of later ticks; what both sides say of the time between them is counted once."""
        self.numbers += later.numbers
        self.sums += later.sums
        if self.edges is not None and later.edges is not None:
            self.numbers.append(np.array([(later.edges.first_us - 1) // QUARTER_US]))
            self.sums.append(np.array([[0.0], [0.0], [-self.edges.twice_s(later.edges)]]))
        self.edges = later.edges if self.edges is None else self.edges.joined(later.edges)

    def result(self, timezone: str, known: Mapping[str, bool]) -> Rhythm:
        """In local time; a direction that is not `known` is None throughout."""
        zone = zone_called(timezone)
        days, hours = np.zeros((7, 3)), np.zeros((24, 3))
        for quarter, values in self._by_quarter():
            local = from_epoch_us(quarter * QUARTER_US).astimezone(zone)
            days[local.weekday()] += values
            hours[local.hour] += values
        return Rhythm(
            timezone,
            [_hours(name, row, known) for name, row in zip(WEEKDAYS, days.tolist(), strict=True)],
            [_hours(f"{hour:02d}", row, known) for hour, row in enumerate(hours.tolist())],
        )

    def _by_quarter(self) -> Iterator[tuple[int, Floats]]:
        if self.numbers:
            quarters, where = np.unique(np.concatenate(self.numbers), return_inverse=True)
            columns = np.concatenate(self.sums, axis=1)
            sums = np.array([np.bincount(where, weights=column, minlength=quarters.size) for column in columns])
            yield from zip(quarters.tolist(), sums.T, strict=True)


def _hours(name: str, sums: list[float], known: Mapping[str, bool]) -> RhythmHours:
    hours = sums[2] / HOUR_S
    rates = [
        value / hours if hours > 0 and known.get(direction) else None
        for direction, value in zip(DIRECTIONS, sums[:2], strict=True)
    ]
    return RhythmHours(name, hours, *rates)


def zone_called(name: str) -> tzinfo:
    """The time zone, or a refusal."""
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError):
        raise UsageError(f"no time zone is called {name!r}") from None
