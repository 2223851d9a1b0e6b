"""The rows of a window as matrices: ticks in time order × targets. NaN is "not reported", never zero.

Rows are read once, chunk by chunk; whatever wants every sample of every target (distributions, silences, imbalance)
takes the same matrices, so that a month of 2 s samples is one pass in flat memory.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from itertools import pairwise
from math import lcm
from typing import Any, Final

import narwhals as nw
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from iolens.analyses.intervals.fsu_sums import data_targets, of_kinds
from iolens.arrays import Booleans, Floats, Integers
from iolens.store.parts import Days
from iolens.store.selection import Selection
from iolens.units import DAY_US, from_epoch_us

TABLE: Final = "target_io"
MEASURES: Final = ("read_bytes", "write_bytes", "read_ops", "write_ops", "background_bytes")
GAP: Final = 1.5  # ticks between two samples of a target: more is a gap
MINUTE_US: Final = 60_000_000  # figures of minutes are made of whole ones
SAMPLES_AT_ONCE: Final = 400_000
FEWEST_SPARSE, SPARSE = 10_000_000, 20  # ticks without a row, and such ticks per row, from which they cost too much


@dataclass(frozen=True, slots=True, eq=False)
class TickMatrix:
    """Some ticks of all targets. `end_us` are the ends of the ticks; every measure is ticks × targets."""

    end_us: Integers
    tick_us: int
    targets: tuple[str, ...]
    duration_s: Floats
    measures: Mapping[str, Floats]

    def rate(self, measure: str) -> Floats:
        """Per second, ticks × targets."""
        with np.errstate(invalid="ignore", divide="ignore"):
            values: Floats = self.measures[measure] / self.duration_s
        return values

    def moved(self) -> Floats:
        """Bytes per second read and written together; NaN where a direction is not known."""
        return self.rate("read_bytes") + self.rate("write_bytes")

    def covered_s(self) -> Floats:
        """Seconds that each tick adds to what the one before it had covered."""
        before = np.concatenate([[-np.inf], self.end_us[:-1].astype(np.float64)])
        longest = np.fmax.reduce(self.duration_s, axis=1, initial=0.0)
        values: Floats = np.minimum(longest, (self.end_us - before) / 1e6)
        return values

    def part(self, chosen: slice | Booleans) -> TickMatrix:
        """Some of the ticks."""
        measures = {name: values[chosen] for name, values in self.measures.items()}
        return TickMatrix(self.end_us[chosen], self.tick_us, self.targets, self.duration_s[chosen], measures)

    def pieces(self) -> Iterator[TickMatrix]:
        """Some ticks after the others, no minute in two of them: so few samples that several arrays of them fit into a
        processor's cache.
        """
        pieces = -(-self.duration_s.size // SAMPLES_AT_ONCE) or 1
        length = -(-self.end_us.size // pieces)
        minutes = (self.end_us - 1) // MINUTE_US
        begins = np.searchsorted(minutes, minutes[length::length]).tolist()
        borders = sorted({0, *begins, self.end_us.size})
        yield from (self.part(slice(first, after)) for first, after in pairwise(borders))

    @property
    def follows(self) -> Booleans:
        """Whether a tick comes right after the one before it in this matrix; the first does not."""
        return np.diff(self.end_us, prepend=self.end_us[:1] - 10 * self.tick_us) <= GAP * self.tick_us


@dataclass(frozen=True, slots=True)
class Edges:
    """Where some ticks begin and end: the end of the first and of the last, and the seconds the first one counts."""

    first_us: int
    first_s: float
    last_us: int

    @classmethod
    def of(cls, matrix: TickMatrix, seconds: Floats) -> Edges:
        """Of a matrix whose ticks count for so many seconds."""
        return cls(int(matrix.end_us[0]), float(seconds[0]), int(matrix.end_us[-1]))

    def twice_s(self, later: Edges) -> float:
        """Seconds that the first of the later ticks has in common with these."""
        return max(0.0, later.first_s - (later.first_us - self.last_us) / 1e6)

    def joined(self, later: Edges | None) -> Edges:
        """Of both together."""
        return self if later is None else Edges(self.first_us, self.first_s, later.last_us)


@dataclass(frozen=True, slots=True)
class Ticks:
    """The window's targets, its tick, and the matrices one after the other."""

    targets: tuple[str, ...]
    kinds: tuple[str, ...]
    tick_us: int
    known: frozenset[str]  # measures that some target has
    spans_us: tuple[tuple[int, int], ...] = ()  # ends of the first and the last row of each target
    left_out: frozenset[str] = frozenset()  # targets of other kinds, which tell of the same bytes
    rows: int = 0

    @property
    def rules(self) -> tuple[object, ...]:
        """Which rows make the matrices of some days, and how."""
        return list(self.kinds), self.tick_us, sorted(self.known)

    def only(self, chosen: Booleans) -> Ticks:
        """With some of the targets alone, and without what is known of the window."""
        targets = tuple(name for name, is_chosen in zip(self.targets, chosen.tolist(), strict=True) if is_chosen)
        return Ticks(targets, self.kinds, self.tick_us, self.known)

    def columns_in(self, other: Ticks) -> Integers:
        """The place of each target among those of other ticks; −1: it is not there."""
        places = {name: number for number, name in enumerate(other.targets)}
        return np.array([places.get(name, -1) for name in self.targets], np.int64)

    def expected(self, end_us: Integers) -> Integers:
        """How many targets should be in each tick: those that were seen before and after it, or in it."""
        first, last = (
            np.sort(_tick(np.array(ends, np.int64), self.tick_us)) for ends in zip(*self.spans_us, strict=True)
        )
        ticks = end_us // self.tick_us
        return np.searchsorted(first, ticks, side="right") - np.searchsorted(last, ticks, side="left")

    def matrices(
        self, selection: Selection, measures: Sequence[str] = MEASURES, progress: Callable[[date], None] | None = None
    ) -> Iterator[TickMatrix]:
        """Every row in its tick, every tick once, in time order; measures that no target tells are left out."""
        for days in selection.tick_days([TABLE], self.tick_us):
            yield from self.matrices_of(days, measures)
            if progress is not None and days.end_us is not None:
                progress(from_epoch_us(days.end_us - self.tick_us).date())

    def matrices_of(self, days: Days, measures: Sequence[str] = MEASURES) -> Iterator[TickMatrix]:
        """Those of some days."""
        wanted = [name for name in measures if name in self.known]
        minutes_us = lcm(self.tick_us, MINUTE_US)
        for part in days.slices(TABLE, minutes_us if minutes_us <= DAY_US else self.tick_us):
            matrix = self._matrix(self._rows(part, wanted), wanted)
            if matrix is not None:
                yield from matrix.pieces()

    def _rows(self, days: Days, measures: Sequence[str]) -> Any:
        names = ["target", "duration_s", *measures]
        rows = days.columns(TABLE, names, self.kinds[0]) if self.kinds else None
        if rows is not None:
            lasts = pc.greater(rows.column("duration_s"), 0.0)
            return rows if pc.all(lasts, skip_nulls=False).as_py() else rows.filter(lasts)
        frame = days.frame(TABLE)
        mine = of_kinds(frame, self.kinds) if self.kinds else _of_no_kind(frame)
        numbers = [nw.col(name).cast(nw.Float64) for name in measures]
        return mine.select("target", "epoch_us", "duration_s", *numbers).collect(backend="pyarrow").to_native()

    def _matrix(self, rows: Any, measures: Sequence[str]) -> TickMatrix | None:
        if not rows.num_rows:
            return None
        column, end_us = places_of(rows.column("target"), self.targets), _numbers(rows, "epoch_us", np.int64)
        if self._is_in_order(column, end_us):
            return self._reshaped(rows, measures, column[: len(self.targets)], end_us)
        ticks, line = _lines(_tick(end_us, self.tick_us))
        shape = ticks.size, len(self.targets)
        cell = line * shape[1] + column
        repeated = np.bincount(cell, minlength=shape[0] * shape[1]).max() > 1

        def spread(values: Floats) -> Floats:
            matrix = np.full(shape[0] * shape[1], np.nan)
            if repeated:
                known = ~np.isnan(values)
                sums = np.bincount(cell[known], weights=values[known], minlength=matrix.size)
                some = np.bincount(cell[known], minlength=matrix.size) > 0
                matrix[some] = sums[some]
            else:
                matrix[cell] = values
            return matrix.reshape(shape)

        return TickMatrix(
            ticks * self.tick_us,
            self.tick_us,
            self.targets,
            spread(_numbers(rows, "duration_s", np.float64)),
            {name: spread(_numbers(rows, name, np.float64)) for name in measures},
        )

    def _is_in_order(self, column: Integers, end_us: Integers) -> bool:
        """Whether every tick has a row of each target in the same order, as files are sorted."""
        count = len(self.targets)
        if not count or end_us.size % count or not np.array_equal(np.sort(column[:count]), np.arange(count)):
            return False
        by_tick, places = end_us.reshape(-1, count), column.reshape(-1, count)
        return bool(
            (by_tick == by_tick[:, :1]).all()
            and (places == places[0]).all()
            and (np.diff(_tick(by_tick[:, 0], self.tick_us)) > 0).all()
        )

    def _reshaped(self, rows: Any, measures: Sequence[str], places: Integers, end_us: Integers) -> TickMatrix:
        """Rows in order are a matrix already."""
        count = places.size
        order = slice(None) if np.array_equal(places, np.arange(count)) else np.argsort(places)

        def matrix(name: str) -> Floats:
            values: Floats = _numbers(rows, name, np.float64).reshape(-1, count)[:, order]
            return values

        ends = _tick(end_us[::count], self.tick_us) * self.tick_us
        by_name = {name: matrix(name) for name in measures}
        return TickMatrix(ends, self.tick_us, self.targets, matrix("duration_s"), by_name)


def _tick(end_us: Integers, tick_us: int) -> Integers:
    """The number of the tick that is nearest."""
    values: Integers = end_us // tick_us + (end_us % tick_us * 2 > tick_us)
    return values


def _lines(tick: Integers) -> tuple[Integers, Integers]:
    """The ticks there are, rising, and the place among them of each row's."""
    first, last = int(tick.min()), int(tick.max())
    if last - first > FEWEST_SPARSE + SPARSE * tick.size:
        ticks, line = np.unique(tick, return_inverse=True)
        return ticks, line
    present = np.zeros(last - first + 1, np.bool_)
    present[tick - first] = True
    return np.flatnonzero(present) + first, (np.cumsum(present) - 1)[tick - first]


def _of_no_kind(frame: nw.LazyFrame[Any]) -> nw.LazyFrame[Any]:
    known = "target_kind" in frame.collect_schema().names()
    return data_targets(frame.filter(nw.col("target_kind").is_null()) if known else frame)


def _numbers(rows: Any, name: str, kind: Any) -> NDArray[Any]:
    """A column as numbers; NULL is NaN."""
    values, end = np.empty(rows.num_rows, kind), 0
    for chunk in rows.column(name).chunks:
        begin, end = end, end + len(chunk)
        values[begin:end] = chunk.to_numpy(zero_copy_only=False)
    return values


def places_of(column: Any, targets: Sequence[str]) -> Integers:
    """The place of each row's target among the `targets`; −1 where it is none of them."""
    encoded = column if pa.types.is_dictionary(column.type) else column.dictionary_encode()
    place = {name: number for number, name in enumerate(targets)}
    values, end = np.empty(len(column), np.int64), 0
    for chunk in encoded.chunks:
        begin, end = end, end + len(chunk)
        names = np.array([place.get(name, -1) for name in chunk.dictionary.to_pylist()], np.int64)
        values[begin:end] = names[chunk.indices.to_numpy(zero_copy_only=False)]
    return values
