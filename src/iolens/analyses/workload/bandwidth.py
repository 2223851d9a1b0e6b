"""Bandwidth of targets and of all together, minute by minute, and by hour of the day and week."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, tzinfo
from typing import Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import numpy as np
from numpy.typing import NDArray

from iolens.analyses.intervals.tick_matrix import MINUTE_US, Edges, TickMatrix
from iolens.arrays import Booleans, Floats, Integers, known_counts, known_sums
from iolens.errors import UsageError
from iolens.models.log_sketch import EXACT_AT_MOST, LogSketch
from iolens.schema import DIRECTIONS
from iolens.units import epoch_us, from_epoch_us

# Bandwidth of every target and of all together ------------------------------------------------------------------------
# Percentiles, tails, and peaks that never come at once (SPEC S2–S4).

PERCENTILES: Final = (95.0, 99.0, 100.0)
LEAST_TARGETS: Final = 0.9  # share of the targets that must be in a tick for their sum to mean something
EVERYTHING: Final = "total"  # reads and writes together


@dataclass(frozen=True, slots=True)
class PeakAgainstSum:
    """Figure 6: all targets together at a percentile, against the sum of each at its own."""

    percentile: float
    direction: str
    aggregate_bytes_per_s: float
    sum_of_targets_bytes_per_s: float


@dataclass(slots=True)
class TickSums:
    """Tick by tick: bytes per second of all targets together, and in how many of them they are known."""

    tick_us: int
    first: int | None = None  # number of the first tick
    numbers: list[NDArray[np.int32]] = field(default_factory=list)  # since the first
    reporting: list[NDArray[np.int32]] = field(default_factory=list)
    rates: dict[str, list[Floats]] = field(default_factory=lambda: {direction: [] for direction in DIRECTIONS})

    def add(self, end_us: Integers, rates: dict[str, Floats]) -> None:
        """The next ticks; `rates` are ticks × targets. A direction that no target tells is NaN."""
        known = {direction: known_counts(values, axis=1) for direction, values in rates.items()}
        numbers = end_us // self.tick_us
        self.first = int(numbers[0]) if self.first is None else self.first
        self.numbers.append((numbers - self.first).astype(np.int32))
        self.reporting.append(np.max(list(known.values()), axis=0).astype(np.int32))
        for direction, pieces in self.rates.items():
            values = rates.get(direction)
            nothing = np.full(end_us.size, np.nan)
            pieces.append(
                nothing if values is None else np.where(known[direction] > 0, known_sums(values, axis=1), nothing)
            )

    def take(self, later: TickSums) -> None:
        """Of later ticks."""
        if later.first is None:
            return
        self.first = later.first if self.first is None else self.first
        self.numbers += [piece + np.int32(later.first - self.first) for piece in later.numbers]
        self.reporting += later.reporting
        for direction, pieces in self.rates.items():
            pieces += later.rates[direction]

    def whole(self, expected: Callable[[Integers], Integers]) -> tuple[Booleans, dict[str, Floats]]:
        """Which ticks have at least nine in ten of the targets expected at their ends, and the rates of all ticks."""
        end_us = (np.concatenate(self.numbers).astype(np.int64) + (self.first or 0)) * self.tick_us
        reporting = np.concatenate(self.reporting)
        rates = {direction: np.concatenate(pieces) for direction, pieces in self.rates.items()}
        return reporting >= LEAST_TARGETS * expected(end_us), rates


@dataclass(slots=True)
class Bandwidths:
    """Feed matrices; rates of every target, and their sum tick by tick: `together`, once `settle` was called."""

    targets: int
    tick_us: int
    exact_at_most: int = EXACT_AT_MOST  # values of single targets
    by_target: dict[str, LogSketch] = field(init=False)
    sums: TickSums = field(init=False)
    together: dict[str, LogSketch] = field(init=False)
    ticks_left_out: int = 0

    def __post_init__(self) -> None:
        self.by_target = {direction: LogSketch(self.targets, self.exact_at_most) for direction in DIRECTIONS}
        self.sums = TickSums(self.tick_us)
        self.together = {direction: LogSketch(1) for direction in (*DIRECTIONS, EVERYTHING)}

    def add(self, matrix: TickMatrix) -> None:
        """Take the next ticks."""
        rates = {
            direction: matrix.rate(f"{direction}_bytes")
            for direction in DIRECTIONS
            if f"{direction}_bytes" in matrix.measures
        }
        for side, values in rates.items():
            self.by_target[side].add(values)
        if rates:
            self.sums.add(matrix.end_us, rates)

    def take(self, later: Bandwidths) -> None:
        """Those of later ticks."""
        for side, sketch in self.by_target.items():
            sketch.take(later.by_target[side])
        self.sums.take(later.sums)

    def rearranged(self, columns: Integers) -> Bandwidths:
        """Of other targets, by their places among these; −1 has no sample."""
        result = Bandwidths(columns.size, self.tick_us, self.exact_at_most)
        result.by_target = {side: sketch.rearranged(columns) for side, sketch in self.by_target.items()}
        result.sums = self.sums
        return result

    def settle(self, expected: Callable[[Integers], Integers]) -> None:
        """Sum up the ticks with at least nine in ten of the targets that are expected at their ends."""
        if self.sums.first is None:
            return
        whole, rates = self.sums.whole(expected)
        self.ticks_left_out = int((~whole).sum())
        for side, values in rates.items():
            self.together[side].add(values[whole][:, None])
        self.together[EVERYTHING].add(np.nansum(list(rates.values()), axis=0)[whole][:, None])
        self.sums = TickSums(self.tick_us)

    def peaks(self) -> list[PeakAgainstSum]:
        """For every percentile and direction that is known."""
        result = []
        for percentile in PERCENTILES:
            for direction in DIRECTIONS:
                together = self.together[direction].quantile(percentile / 100.0)
                alone = [self.by_target[direction].quantile(percentile / 100.0, value) for value in range(self.targets)]
                if together is not None:
                    result.append(PeakAgainstSum(percentile, direction, together, sum(value or 0.0 for value in alone)))
        return result


# Throughput minute by minute ------------------------------------------------------------------------------------------
# Mean, peak, how bursty it is, idle periods, and maintenance (SPEC D7, Table III of D).
#
# Missing is not idle, and breaks a period.

IDLE_SHARE: Final = 0.05  # of peak: below it, a minute is idle
THIRD: Final = 0.33
DURATIONS: Final = ((1, 1), (2, 5), (6, 10), (11, 20), (21, 30), (31, 40), (41, 50), (51, 60), (61, None))
MAINTENANCE_MINUTES: Final = 120  # without a byte on any target: nobody's workload
LEAST_OBSERVED: Final = 0.5  # share of a minute that must have been seen for it to count
DAY_S: Final = 86_400.0
LARGEST_MINUTE: Final = "largest minute"  # stands in where no peak is known


@dataclass(frozen=True, slots=True)
class IdlePeriods:
    """One line of Table III; the last has no upper end. `share_pct` is of observed, `wall_share_pct` of all minutes."""

    from_min: int
    to_min: int | None
    count: int
    minutes: int
    share_pct: float
    wall_share_pct: float


@dataclass(frozen=True, slots=True)
class Maintenance:
    """A time in which the file system was not in use; `origin` is configured or found."""

    start: datetime
    end: datetime
    name: str
    origin: str


@dataclass(frozen=True, slots=True)
class Throughput:
    """All targets together, by minutes. Idle periods by the share of the peak, and by no byte at all.

    `peak_bytes_per_s` is what was given, or the largest minute; `peak_time` is the end of the largest minute.
    """

    mean_bytes_per_s: float
    peak_bytes_per_s: float
    peak_origin: str
    largest_bytes_per_s: float
    peak_time: datetime
    peak_read_bytes_per_s: float | None
    peak_write_bytes_per_s: float | None
    read_bytes_per_day: float | None
    write_bytes_per_day: float | None
    below_third_of_peak_pct: float | None
    observed_minutes: int
    wall_minutes: int
    idle_below_bytes_per_s: float
    idle_pct: float
    idle_periods: list[IdlePeriods]
    longest_idle_min: int
    zero_pct: float
    zero_periods: list[IdlePeriods]
    longest_zero_min: int


@dataclass(slots=True)
class Minutes:
    """Feed matrices, or sums of later ones: bytes of all targets by minute (or by tick, where ticks are longer).

    A tick in which no target tells of a direction that is counted was not seen: nobody knows whether it was idle. Of
    a sample that is longer than a minute (others were missed), a minute's worth counts where it ends: the rest of its
    time was not seen by minutes, and is missing.
    """

    tick_us: int
    numbers: list[Integers] = field(default_factory=list)
    sums: list[Floats] = field(default_factory=list)  # read, written, seconds seen; × minutes
    edges: Edges | None = None

    @property
    def width_us(self) -> int:
        """A minute, or a whole tick that is longer."""
        return max(MINUTE_US, self.tick_us)

    def add(self, matrix: TickMatrix) -> None:
        """A tick belongs to the minute in which it ends."""
        minutes, where = np.unique((matrix.end_us - 1) // self.width_us, return_inverse=True)
        moved, unknown = self._moved(matrix)
        seen = np.where(unknown, 0.0, np.minimum(matrix.covered_s(), self.width_us / 1e6))
        columns = [
            np.bincount(where, weights=np.where(unknown, 0.0, values), minlength=minutes.size)
            for values in (*moved, seen)
        ]
        self.take(Minutes(self.tick_us, [minutes], [np.array(columns)], Edges.of(matrix, seen)))

    def take(self, later: Minutes) -> None:
        """Sums of later ticks; what both sides say of the time between them is counted once."""
        self.numbers += later.numbers
        self.sums += later.sums
        if self.edges is not None and later.edges is not None:
            self.numbers.append(np.array([(later.edges.first_us - 1) // self.width_us]))
            self.sums.append(np.array([[0.0], [0.0], [-self.edges.twice_s(later.edges)]]))
        self.edges = later.edges if self.edges is None else self.edges.joined(later.edges)

    def _moved(self, matrix: TickMatrix) -> tuple[list[Floats], Booleans]:
        """Bytes by tick, read and written; and ticks in which no target tells of a direction that is counted."""
        too_long = matrix.duration_s > self.width_us / 1e6
        share = self.width_us / 1e6 / np.where(too_long, matrix.duration_s, np.nan) if too_long.any() else None
        arrays: list[Floats] = []
        unknown = np.zeros(matrix.end_us.size, np.bool_)
        for direction in DIRECTIONS:
            known = matrix.measures.get(f"{direction}_bytes")
            if known is not None and share is not None:
                known = np.where(too_long, known * share, known)
            if known is None:
                arrays.append(np.zeros(matrix.end_us.size))
                continue
            arrays.append(known_sums(known, axis=1))
            unknown |= known_counts(known, axis=1) == 0
        return arrays, unknown

    def series(self) -> tuple[Integers, Floats, Floats]:
        """Numbers of the observed minutes, and bytes per second read and written in them."""
        if not self.numbers:
            return np.empty(0, np.int64), np.empty(0), np.empty(0)
        minutes, where = np.unique(np.concatenate(self.numbers), return_inverse=True)
        read, write, seconds = (
            np.bincount(where, column, minutes.size) for column in np.concatenate(self.sums, axis=1)
        )
        seen = seconds >= LEAST_OBSERVED * self.width_us / 1e6
        return minutes[seen], read[seen] / seconds[seen], write[seen] / seconds[seen]

    def result(
        self, known: Sequence[str], peak_bytes_per_s: float | None = None, peak_origin: str = "given"
    ) -> Throughput | None:
        """`known` are the directions that some target tells."""
        minutes, read, write = self.series()
        if not minutes.size:
            return None
        total = read + write
        peak = float(total.max()) if peak_bytes_per_s is None else peak_bytes_per_s
        wall = int(minutes[-1] - minutes[0]) + 1
        by_direction = {name: values for name, values in (("read", read), ("write", write)) if name in known}
        is_idle = (total < IDLE_SHARE * peak) | (total == 0)
        idle, zero = (self._in_minutes(_periods(minutes, mask)) for mask in (is_idle, total == 0))
        observed_minutes, wall_minutes = self._in_minutes(np.array([minutes.size, wall])).tolist()
        return Throughput(
            mean_bytes_per_s=float(total.mean()),
            peak_bytes_per_s=peak,
            peak_origin=LARGEST_MINUTE if peak_bytes_per_s is None else peak_origin,
            largest_bytes_per_s=float(total.max()),
            peak_time=from_epoch_us(int(minutes[int(total.argmax())] + 1) * self.width_us),
            peak_read_bytes_per_s=float(read.max()) if "read" in by_direction else None,
            peak_write_bytes_per_s=float(write.max()) if "write" in by_direction else None,
            read_bytes_per_day=float(read.mean()) * DAY_S if "read" in by_direction else None,
            write_bytes_per_day=float(write.mean()) * DAY_S if "write" in by_direction else None,
            below_third_of_peak_pct=100.0 * float((total < THIRD * peak).mean()) if peak > 0 else None,
            observed_minutes=observed_minutes,
            wall_minutes=wall_minutes,
            idle_below_bytes_per_s=IDLE_SHARE * peak,
            idle_pct=100.0 * float(is_idle.mean()),
            idle_periods=_table(idle, observed_minutes, wall_minutes),
            longest_idle_min=int(idle.max(initial=0)),
            zero_pct=100.0 * float((total == 0).mean()),
            zero_periods=_table(zero, observed_minutes, wall_minutes),
            longest_zero_min=int(zero.max(initial=0)),
        )

    def _in_minutes(self, lengths: Integers) -> Integers:
        minutes: Integers = np.rint(lengths * (self.width_us / MINUTE_US)).astype(np.int64)
        return minutes

    def maintenance(self, least_minutes: int = MAINTENANCE_MINUTES) -> list[Maintenance]:
        """Long stretches without a byte on any target."""
        minutes, read, write = self.series()
        result = []
        for first, last in _runs(minutes, read + write == 0):
            if (last - first + 1) * self.width_us >= least_minutes * MINUTE_US:
                start, end = (from_epoch_us(int(value) * self.width_us) for value in (first, last + 1))
                result.append(Maintenance(start, end, "no activity", "found"))
        return result


def outside(matrix: TickMatrix, windows: Sequence[Maintenance]) -> TickMatrix:
    """Without the ticks that end in one of the windows."""
    keep = np.ones(matrix.end_us.size, np.bool_)
    for window in windows:
        keep &= ~((matrix.end_us > epoch_us(window.start)) & (matrix.end_us <= epoch_us(window.end)))
    if keep.all():
        return matrix
    return matrix.part(keep)


def _runs(minutes: Integers, is_idle: Booleans) -> list[tuple[int, int]]:
    """First and last minute of every run of idle minutes without a hole."""
    idle = minutes[is_idle]
    if not idle.size:
        return []
    cuts = np.flatnonzero(np.diff(idle) != 1) + 1
    return [(int(part[0]), int(part[-1])) for part in np.split(idle, cuts)]


def _periods(minutes: Integers, is_idle: Booleans) -> Integers:
    return np.array([last - first + 1 for first, last in _runs(minutes, is_idle)], np.int64)


def _table(lengths: Integers, observed: int, wall: int) -> list[IdlePeriods]:
    result = []
    for low, high in DURATIONS:
        mine = lengths[(lengths >= low) & (lengths <= (high or lengths.max(initial=0)))]
        total = int(mine.sum())
        result.append(IdlePeriods(low, high, int(mine.size), total, 100.0 * total / observed, 100.0 * total / wall))
    return result


# When a file system is used -------------------------------------------------------------------------------------------
# Bytes per observed hour of each weekday and hour, in the centre's own zone (SPEC S10).
#
# Bytes are summed by UTC quarter-hour, which every zone's hours are made of, and only those sums are turned into local
# time: a daylight-saving change moves them as it moved the people.

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
