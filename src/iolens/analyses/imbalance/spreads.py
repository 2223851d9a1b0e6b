"""How unevenly targets are loaded, tick by tick: least, mean, most and standard deviation over targets (SPEC S11).

The standard deviation of every tick is kept, because its percentiles are thresholds that are known only at the end;
so is which targets stood out, as bits. With 48 targets that is 26 bytes per tick: 34 MB for a month of 2 s ticks.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from iolens.analyses.imbalance.stretches import Stretches
from iolens.analyses.intervals.tick_matrix import TickMatrix
from iolens.arrays import Booleans, Floats, Integers, rearranged
from iolens.models.log_sketch import LogSketch
from iolens.schema import DIRECTIONS

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
