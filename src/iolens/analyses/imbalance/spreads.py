"""How unevenly targets are loaded, tick by tick, for how long in one stretch, and when beyond a threshold."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from iolens.analyses.intervals.tick_matrix import TickMatrix, Ticks
from iolens.arrays import Booleans, Floats, Integers, rearranged
from iolens.models.log_sketch import LogSketch
from iolens.schema import DIRECTIONS
from iolens.units import from_epoch_us

# Runs of ticks down the columns of matrices that come one after the other ---------------------------------------------
# The longest of each target, and when.
#
# A row that does not follow the one before it ends every run; whatever is not true ends the run of its column.


def runs_of(true: Booleans, follows: Booleans) -> tuple[Integers, Integers, Integers]:
    """Column, first and last row of every maximal run of true values in columns × rows, by column and time.

    `follows` (the same shape, or one line for all columns) says whether a row comes right after the one before it.
    """
    joined = np.zeros(true.shape, np.bool_)
    joined[:, 1:] = true[:, 1:] & true[:, :-1] & follows[..., 1:]
    goes_on = np.zeros(true.shape, np.bool_)
    goes_on[:, :-1] = joined[:, 1:]
    column, first = np.divmod(np.flatnonzero(true & ~joined), max(true.shape[1], 1))
    last = np.flatnonzero(true & ~goes_on) - column * true.shape[1]
    return column, first, last


def _first_largest(values: Integers, starts: Integers) -> Integers:
    """Of every group, by its start, the place of the first of its largest values; they are zero or more."""
    if not values.size:
        return starts
    ranks = values * values.size + np.arange(values.size)[::-1]
    return values.size - 1 - np.maximum.reduceat(ranks, starts) % values.size


@dataclass(slots=True)
class Stretches:
    """Feed rows × columns in time order, with a number (of its tick) for each row.

    Of every column: how many rows were true, the first and last of them, and the longest run, the earliest of several;
    and the runs at both ends, which may go on in the rows before and after. −1 stands where there is none.
    """

    columns: int
    fed: int = 0  # rows
    rows: Integers = field(init=False)
    first: Integers = field(init=False)
    last: Integers = field(init=False)
    longest: Integers = field(init=False)  # in rows
    longest_first: Integers = field(init=False)
    longest_last: Integers = field(init=False)
    lead: Integers = field(init=False)  # rows of the run that begins with the first row; 0: none
    lead_last: Integers = field(init=False)
    open: Integers = field(init=False)  # rows of the run that reaches the last row; 0: none
    open_first: Integers = field(init=False)

    def __post_init__(self) -> None:
        self.rows, self.longest, self.lead, self.open = (np.zeros(self.columns, np.int64) for _ in range(4))
        self.first, self.last, self.longest_first, self.longest_last, self.lead_last, self.open_first = (
            np.full(self.columns, -1, np.int64) for _ in range(6)
        )

    @classmethod
    def of(cls, true: Booleans, numbers: Integers, follows: Booleans) -> Stretches:
        """`follows` is for each row, or for each row and column."""
        result = cls(true.shape[1], len(true))
        if not len(true):
            return result
        on = np.ascontiguousarray(true.T)
        column, first, last = runs_of(on, follows[None, :] if follows.ndim == 1 else follows.T)
        length, begun, ended = last - first + 1, numbers[first], numbers[last]
        result._keep_ends(on, numbers)
        values, starts = np.unique(column, return_index=True)
        longest = _first_largest(length, starts)
        result._keep_longest(values, *(array[longest] for array in (length, begun, ended)))
        leads, reaches = first == 0, last == len(true) - 1
        result.lead[column[leads]], result.lead_last[column[leads]] = length[leads], ended[leads]
        result.open[column[reaches]], result.open_first[column[reaches]] = length[reaches], begun[reaches]
        return result

    def add(self, true: Booleans, numbers: Integers, follows: Booleans) -> None:
        """The next rows; whether they follow those so far is in the first of `follows`."""
        if len(true):
            self.take(Stretches.of(true, numbers, follows), np.broadcast_to(follows[0], self.columns))

    def take(self, later: Stretches, follows: Booleans) -> None:
        """Of later rows; `follows` says of every column whether they come right after these."""
        if not later.fed:
            return
        both = follows & (self.open > 0) & (later.lead > 0)
        length, every = self.open + later.lead, np.arange(self.columns)
        self._keep_longest(every[both], length[both], self.open_first[both], later.lead_last[both])
        self._keep_longest(every, later.longest, later.longest_first, later.longest_last)
        is_lead, is_open = both & (self.lead == self.fed), both & (later.lead == later.fed)
        if not self.fed:
            self.lead, self.lead_last = later.lead, later.lead_last
        self.lead = np.where(is_lead, length, self.lead)
        self.lead_last = np.where(is_lead, later.lead_last, self.lead_last)
        self.open_first = np.where(is_open, self.open_first, later.open_first)
        self.open = np.where(is_open, length, later.open)
        self.first = np.where(self.first < 0, later.first, self.first)
        self.last = np.where(later.last < 0, self.last, later.last)
        self.rows = self.rows + later.rows
        self.fed += later.fed

    def rearranged(self, columns: Integers) -> Stretches:
        """Of other columns, by their places among these; −1 was never true."""
        result = Stretches(columns.size, self.fed)
        for name in ("rows", "longest", "lead", "open"):
            setattr(result, name, rearranged(getattr(self, name), columns))
        for name in ("first", "last", "longest_first", "longest_last", "lead_last", "open_first"):
            setattr(result, name, rearranged(getattr(self, name), columns, -1))
        return result

    def _keep_longest(self, columns: Integers, length: Integers, first: Integers, last: Integers) -> None:
        longer = length > self.longest[columns]
        chosen = columns[longer]
        self.longest[chosen], self.longest_first[chosen], self.longest_last[chosen] = (
            length[longer], first[longer], last[longer],
        )  # fmt: skip

    def _keep_ends(self, on: Booleans, numbers: Integers) -> None:
        some = on.any(axis=1)
        self.first = np.where(some, numbers[on.argmax(axis=1)], -1)
        self.last = np.where(some, numbers[on.shape[1] - 1 - on[:, ::-1].argmax(axis=1)], -1)
        self.rows = np.count_nonzero(on, axis=1)


# How long imbalance lasts and how far apart its periods are (SPEC S11, Fig. 17 of paper S) ----------------------------
# Gaps break both.


@dataclass(frozen=True, slots=True)
class Durations:
    """Percentiles of a set of durations; None without any."""

    count: int
    mean_s: float | None
    p50_s: float | None
    p90_s: float | None
    p99_s: float | None
    max_s: float | None

    @classmethod
    def of(cls, ticks: Integers, tick_s: float) -> Durations:
        """Of lengths in ticks."""
        if not ticks.size:
            return cls(0, None, None, None, None, None)
        seconds = ticks * tick_s
        mean, most = float(seconds.mean()), float(seconds.max())
        middle, p90, p99 = (float(item) for item in np.quantile(seconds, [0.5, 0.9, 0.99]))
        return cls(seconds.size, mean, middle, p90, p99, most)


@dataclass(frozen=True, slots=True, eq=False)
class Periods:
    """Lengths in ticks. A period that meets a gap or an end of the window is `cut`: it may have been longer."""

    lifetimes: Integers
    distances: Integers  # from the end of a period to the start of the next, where nothing is missing between them
    cut: int


def periods(unbalanced: Booleans, follows: Booleans) -> Periods:
    """Maximal runs of unbalanced ticks; a tick that does not follow the one before it comes after a gap."""
    _, first, last = runs_of(unbalanced[None, :], follows)
    part = np.cumsum(~follows)  # between two gaps
    near = part[first[1:]] == part[last[:-1]]
    begins_open = ~follows[first] | (first == 0)
    ends_open = ~np.append(follows[1:], False)[last]
    return Periods(last - first + 1, (first[1:] - last[:-1] - 1)[near], int((begins_open | ends_open).sum()))


# How unevenly targets are loaded, tick by tick ------------------------------------------------------------------------
# Least, mean, most and standard deviation over targets (SPEC S11).
#
# The standard deviation of every tick is kept, because its percentiles are thresholds that are known only at the end;
# so is which targets stood out, as bits. With 48 targets that is 26 bytes per tick: 34 MB for a month of 2 s ticks.

FEWEST: Final = 2  # targets in a tick: one has no spread
STANDS_OUT: Final = 2.0  # standard deviations above the mean of the tick
BACKGROUND: Final = "background_bytes"
EXTREMES: Final = ("minimum", "mean", "maximum")
ROWS_AT_ONCE: Final = 100_000  # unpacked


@dataclass(frozen=True, slots=True, eq=False)
class TickSpread:
    """The ticks of a matrix in which enough targets report: loads in bytes per second, and how they spread."""

    rows: Integers  # places in the matrix
    load: Floats  # ticks × targets, NaN: not known
    filled: Floats  # the same with zeros
    known: Booleans
    reporting: Integers
    minimum: Floats
    mean: Floats
    maximum: Floats
    std: Floats  # with n − 1


def loads(matrix: TickMatrix, with_background: bool) -> Floats:
    """Bytes per second of every target: read and written, and in the background where that is reported.

    NaN where a target does not report, or leaves out a direction that others tell.
    """
    names = [f"{direction}_bytes" for direction in DIRECTIONS if f"{direction}_bytes" in matrix.measures]
    moved = matrix.measures[names[0]]
    for name in names[1:]:
        moved = moved + matrix.measures[name]
    if with_background and BACKGROUND in matrix.measures:
        moved = moved + np.nan_to_num(matrix.measures[BACKGROUND])
    return moved / matrix.duration_s


def spread(load: Floats) -> TickSpread:
    """Over the targets of every tick."""
    known = ~np.isnan(load)
    reporting = known.sum(axis=1)
    rows = np.flatnonzero(reporting >= FEWEST)
    if rows.size < len(load):
        load, known, reporting = load[rows], known[rows], reporting[rows]
    missing = not known.all()
    filled = np.where(known, load, 0.0) if missing else load
    mean = filled.sum(axis=1) / reporting
    off = filled - mean[:, None]
    if missing:
        off[~known] = 0.0
    least = np.fmin.reduce(load, axis=1, initial=np.inf) if missing else load.min(axis=1)
    most = filled.max(axis=1)
    std = np.sqrt(np.einsum("ij,ij->i", off, off) / (reporting - 1))
    std[least == most] = 0.0  # a rounded mean is no imbalance
    return TickSpread(rows, load, filled, known, reporting, least, mean, most, std)


@dataclass(slots=True)
class SpreadSeries:
    """Feed spreads, or series of later ones, in time order; what is asked of them needs no second reading."""

    targets: int
    tick_us: int
    extremes: dict[str, LogSketch] = field(init=False)
    pieces: dict[str, list[NDArray[Any]]] = field(init=False)
    first: int | None = None  # number of the first tick

    def __post_init__(self) -> None:
        self.extremes = {name: LogSketch(1) for name in EXTREMES}
        self.pieces = {name: [] for name in ("tick", "std", "mean", "reporting", "hottest", "outstanding")}

    def add(self, end_us: Integers, tick_spread: TickSpread) -> None:
        """`end_us` are the ends of the ticks of the spread."""
        if not end_us.size:
            return
        tick = end_us // self.tick_us
        if self.first is None:
            self.first = int(tick[0])
        for name, sketch in self.extremes.items():
            sketch.add(getattr(tick_spread, name)[:, None])
        outstanding = tick_spread.filled > (tick_spread.mean + STANDS_OUT * tick_spread.std)[:, None]
        parts = {
            "tick": (tick - self.first).astype(np.int32),
            "std": tick_spread.std,
            "mean": tick_spread.mean.astype(np.float32),
            "reporting": tick_spread.reporting.astype(_place_type(self.targets)),
            "hottest": tick_spread.filled.argmax(axis=1).astype(_place_type(self.targets)),
            "outstanding": np.packbits(outstanding, axis=1),
        }
        for name, part in parts.items():
            self.pieces[name].append(part)

    def take(self, later: SpreadSeries) -> None:
        """Of later ticks."""
        if later.first is None:
            return
        if self.first is None:
            self.first = later.first
        for name, sketch in self.extremes.items():
            sketch.take(later.extremes[name])
        for name, pieces in later.pieces.items():
            offset = np.int32(later.first - self.first) if name == "tick" else None
            self.pieces[name] += pieces if offset is None else [piece + offset for piece in pieces]

    def rearranged(self, columns: Integers) -> SpreadSeries:
        """Of other targets, by their places among these."""
        result = SpreadSeries(columns.size, self.tick_us, first=self.first)
        result.extremes = self.extremes
        there = np.flatnonzero(columns >= 0)
        place = np.zeros(self.targets, _place_type(columns.size))
        place[columns[there]] = there
        bits = (np.unpackbits(piece, axis=1, count=self.targets) for piece in self.pieces["outstanding"])
        result.pieces = self.pieces | {
            "hottest": [place[piece] for piece in self.pieces["hottest"]],
            "outstanding": [np.packbits(rearranged(piece, columns, axis=1), axis=1) for piece in bits],
        }
        return result

    @property
    def std(self) -> Floats:
        """Of every tick."""
        return self._whole("std", np.float64)

    @property
    def mean(self) -> NDArray[np.float32]:
        """Bytes per second per target, of every tick."""
        return self._whole("mean", np.float32)

    @property
    def reporting(self) -> Integers:
        """Targets that report, of every tick."""
        return self._whole("reporting", np.uint16).astype(np.int64)

    @property
    def numbers(self) -> Integers:
        """Of every tick; times `tick_us` is its end."""
        return self._whole("tick", np.int32).astype(np.int64) + (self.first or 0)

    @property
    def follows(self) -> Booleans:
        """Whether a tick comes right after the one before it in this series."""
        return _successive(self._whole("tick", np.int32))

    def unbalanced(self, threshold: float) -> Booleans:
        """Ticks with at least that standard deviation; equal loads are balanced whatever the threshold."""
        std = self.std
        values: Booleans = (std >= threshold) & (std > 0)
        return values

    def hot(self, chosen: Booleans) -> Iterator[tuple[Integers, Integers, Booleans]]:
        """Of chosen ticks, part by part: their numbers, which target was the hottest, and which stood out."""
        numbers, hottest = self.numbers, self._whole("hottest", np.uint16)
        outstanding = self._whole("outstanding", np.uint8)
        places = np.flatnonzero(chosen)
        for start in range(0, places.size, ROWS_AT_ONCE):
            some = places[start : start + ROWS_AT_ONCE]
            bits = np.unpackbits(outstanding[some], axis=1, count=self.targets).astype(np.bool_)
            yield numbers[some], hottest[some].astype(np.int64), bits

    def _whole(self, name: str, kind: Any) -> NDArray[Any]:
        parts = self.pieces[name]
        if len(parts) > 1:
            parts[:] = [np.concatenate(parts)]
        return parts[0] if parts else np.empty(0, kind)


@dataclass(slots=True)
class HotTargets:
    """Feed parts of `SpreadSeries.hot`: a target is hot where it is the hottest of a tick, or stands out in it."""

    targets: int
    hottest: Integers = field(init=False)  # ticks
    outstanding: Integers = field(init=False)
    stretches: Stretches = field(init=False)
    _last: int | None = None

    def __post_init__(self) -> None:
        self.hottest, self.outstanding = (np.zeros(self.targets, np.int64) for _ in range(2))
        self.stretches = Stretches(self.targets)

    def add(self, numbers: Integers, hottest: Integers, outstanding: Booleans) -> Booleans:
        """The next ticks; which targets are hot in them."""
        self.hottest += np.bincount(hottest, minlength=self.targets)
        self.outstanding += outstanding.sum(axis=0)
        hot = outstanding.copy()
        hot[np.arange(hottest.size), hottest] = True
        follows = _successive(numbers, self._last)
        self.stretches.add(hot, numbers, follows)
        self._last = int(numbers[-1])
        return hot


def _place_type(targets: int) -> type[np.uint16 | np.uint32]:
    return np.uint16 if targets < 1 << 16 else np.uint32


def _successive(numbers: NDArray[Any], before: int | None = None) -> Booleans:
    values = np.zeros(numbers.size, np.bool_)
    values[1:] = np.diff(numbers) == 1
    values[:1] = before is not None and numbers[:1] == before + 1
    return values


# When loads were unbalanced by a threshold, and who was hot then ------------------------------------------------------
# Of targets, or of servers.

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
