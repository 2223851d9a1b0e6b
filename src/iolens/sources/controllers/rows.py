"""Rows of a controller export: bandwidth and operations to `target_io`, request sizes to `target_histograms`.

Rates are multiplied by the interval, counts of an interval are taken as they are, cumulative counters stay raw.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import add
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from iolens.errors import InputError
from iolens.records import CounterSet, Item, Problem, Rows, Sample, Samples
from iolens.schema import LARGEST
from iolens.sources.controllers.layout import CUMULATIVE, DIRECTIONS, RATE, Measure, SizeColumns
from iolens.sources.controllers.tables import TablePiece
from iolens.sources.reading.parsed_numbers import shown
from iolens.sources.reading.ticks import round_to
from iolens.units import SECOND_US

KIND: Final = {"target_kind": "controller"}
HISTOGRAM: Final = "request_size"

Times = NDArray[np.int64]
Column = np.ma.MaskedArray[Any, Any]


@dataclass(slots=True)
class Clockwork:
    """Ticks of a table: counted from its first time, at the interval given or found in its first piece."""

    place: str
    interval_us: int | None
    origin_us: int | None = None

    def start(self, piece: TablePiece) -> None:
        """Look at the first piece."""
        if self.origin_us is not None or not len(piece):
            return
        self.origin_us = int(piece.time_us[0])
        if self.interval_us is None:
            order = np.lexsort((piece.time_us, piece.controller))
            spacings = np.diff(piece.time_us[order])[np.diff(piece.controller[order]) == 0]
            distinct, counts = np.unique(spacings[spacings > 0], return_counts=True)
            if distinct.size:
                value = int(distinct[np.argmax(counts)])
                self.interval_us = max(round_to(value, SECOND_US), SECOND_US) if value >= SECOND_US else value
        if self.interval_us is None:
            expected = "--interval, or interval in the configuration"
            raise InputError(self.place, "one time does not tell the interval", expected)

    def ticks(self, time_us: Times) -> Times:
        """The ticks of these times."""
        step, origin = self.interval_us or SECOND_US, self.origin_us or 0
        values: Times = round_to(origin, step) + (2 * (time_us - origin) + step) // (2 * step) * step
        return values


class Reader(ABC):
    """What both kinds of content have in common."""

    def __init__(self, place: str, filesystem: str, interval_us: int | None) -> None:
        self.place, self.filesystem = place, filesystem
        self.clockwork = Clockwork(place, interval_us)
        self.last: dict[int, int] = {}  # the last tick of each controller

    def take(self, piece: TablePiece) -> Iterator[Item]:
        """What the next rows of the table become."""
        self.clockwork.start(piece)
        if len(piece):
            yield from self._take(piece)

    def end(self) -> Iterator[Item]:
        """What was held back."""
        yield from ()

    @abstractmethod
    def _take(self, piece: TablePiece) -> Iterator[Item]:
        """What rows that are not empty become."""

    def _starts(self, controller: NDArray[np.int64], tick_us: Times, *, since_last: bool) -> Times:
        """Where each interval begins: one interval before its end, or at the controller's last sample."""
        interval = self.clockwork.interval_us or SECOND_US
        starts: Times = tick_us - interval
        if not since_last:
            return starts
        for code, mine in _by_controller(controller):
            ticks = tick_us[mine]
            first = self.last.get(code, int(ticks[0]) - interval)
            before = np.concatenate(([first], ticks[:-1]))
            starts[mine] = np.where(before < ticks, before, ticks - interval)
            self.last[code] = int(ticks[-1])
        return starts


def _by_controller(controller: NDArray[np.int64]) -> Iterator[tuple[int, NDArray[np.int64]]]:
    """Each controller, and the rows that are its own, in their order."""
    order = np.argsort(controller, kind="stable")
    edges = np.flatnonzero(np.diff(controller[order])) + 1
    for rows in np.split(order, edges):
        if len(rows):
            yield int(controller[rows[0]]), rows


class IoReader(Reader):
    """Bandwidth and operations."""

    def __init__(self, place: str, filesystem: str, interval_us: int | None, measures: Sequence[Measure]) -> None:
        super().__init__(place, filesystem, interval_us)
        self.measures = measures

    def _take(self, piece: TablePiece) -> Iterator[Item]:
        kind = self.measures[0].kind
        seconds = (self.clockwork.interval_us or SECOND_US) / SECOND_US
        columns: dict[str, Column] = {}
        for measure in self.measures:
            total: Column = reduce(add, (piece.numbers[name] for name in measure.names))  # unknown if one of them is
            columns[measure.column], wrong = _counts(total, measure.factor, seconds if kind == RATE else None)
            if wrong:
                reason = f"{' + '.join(measure.names)}: {wrong} values are negative or too large: taken as unknown"
                yield Problem(self.place, None, reason)
        ticks = self.clockwork.ticks(piece.time_us)
        if kind == CUMULATIVE:
            yield from self._samples(piece, ticks, columns)
        else:
            yield from self._rows(piece, ticks, columns, since_last=kind != RATE)

    def _samples(self, piece: TablePiece, ticks: Times, columns: Mapping[str, Column]) -> Iterator[Item]:
        for code, mine in _by_controller(piece.controller):
            counters = {name: column[mine] for name, column in columns.items()}
            target = piece.names[code]
            yield Samples(
                "target_io", self.filesystem, target, ticks[mine], piece.time_us[mine], counters, KIND
            )  # fmt: skip

    def _rows(
        self, piece: TablePiece, ticks: Times, columns: Mapping[str, Column], *, since_last: bool
    ) -> Iterator[Item]:
        starts = self._starts(piece.controller, ticks, since_last=since_last)
        reported = ~np.logical_and.reduce([np.ma.getmaskarray(column) for column in columns.values()])
        if not reported.any():
            return
        values: dict[str, object] = {
            "time": ticks[reported],
            "start": starts[reported],
            "duration_s": (ticks - starts)[reported] / SECOND_US,
            "filesystem": self.filesystem,
            "target": np.array(piece.names, object)[piece.controller[reported]],
            **KIND,
            **{name: column[reported] for name, column in columns.items()},
        }
        yield Rows("target_io", values, int(reported.sum()))


def _counts(numbers: Column, factor: int, seconds: float | None) -> tuple[Column, int]:
    """Whole bytes or operations, exact where the cells were whole; how many were impossible."""
    unknown = np.ma.getmaskarray(numbers)
    plain = np.where(unknown, 0, np.ma.getdata(numbers))
    with np.errstate(over="ignore"):  # what is beyond any number is among the impossible
        scaled = plain.astype(np.float64) * factor * (seconds or 1.0)
    wrong = ~unknown & ((scaled < 0) | (scaled >= LARGEST) | np.isnan(scaled))
    unknown = unknown | wrong
    whole = plain.dtype.kind == "i" and seconds is None
    exact = plain * factor if whole else np.rint(np.where(unknown, 0.0, scaled)).astype(np.int64)
    return np.ma.MaskedArray(np.where(unknown, 0, exact), unknown), int(wrong.sum())


class _Bins(NamedTuple):
    """Counts of one controller at one time, by direction and upper bound."""

    time_us: int
    controller: int
    counts: dict[str, int]


class SizesReader(Reader):
    """Request sizes."""

    def __init__(
        self,
        place: str,
        filesystem: str,
        interval_us: int | None,
        sizes: SizeColumns,
        bins: Mapping[str, tuple[str, int]],
    ) -> None:
        super().__init__(place, filesystem, interval_us)
        self.sizes, self.bins = sizes, bins
        self.seen: dict[int, dict[str, int]] = {}  # bins of each controller that ever counted something
        self.names: tuple[str, ...] = ()
        self.held: tuple[NDArray[np.int64], ...] | None = None

    def _take(self, piece: TablePiece) -> Iterator[Item]:
        self.names = piece.names
        if self.sizes.wide:
            yield from self._wide(piece)
        else:
            yield from self._long(piece)

    def end(self) -> Iterator[Item]:
        """The last time."""
        if self.held is not None:
            held, self.held = self.held, None
            yield from self._grouped(held)

    def _wide(self, piece: TablePiece) -> Iterator[Item]:
        names = list(piece.numbers)
        labels = [f"{direction}:{upper}" for direction, upper in (self.bins[name] for name in names)]
        columns = [_counts(piece.numbers[name], 1, None) for name in names]
        if wrong := sum(count for _, count in columns):
            yield Problem(self.place, None, f"{wrong} counts are negative or too large: taken as unknown")
        counts = np.stack([np.ma.getdata(column) for column, _ in columns], axis=1)
        unknown = np.stack([np.ma.getmaskarray(column) for column, _ in columns], axis=1)
        for row in range(len(piece)):
            used = np.flatnonzero(~unknown[row] & (counts[row] > 0))
            reported = {labels[place]: int(counts[row, place]) for place in used}
            if not unknown[row].all():
                yield from self._emit(_Bins(int(piece.time_us[row]), int(piece.controller[row]), reported))

    def _long(self, piece: TablePiece) -> Iterator[Item]:
        size, impossible = _counts(piece.numbers[self.sizes.size or ""], self.sizes.label_bytes, None)
        if impossible:
            yield Problem(self.place, None, f"{impossible} sizes are negative or too large: those rows left out")
        parts = []
        for direction, name in self.sizes.counts:
            counts, wrong = _counts(piece.numbers[name], 1, None)
            directions, strange = self._directions(piece, direction)
            known = ~np.ma.getmaskarray(counts) & ~np.ma.getmaskarray(size) & (directions >= 0)
            if wrong or strange is not None:
                what = (
                    f"direction {shown(strange)} is neither read nor write" if strange else f"{wrong} counts impossible"
                )
                yield Problem(self.place, None, f"{what}: {int((~known).sum())} rows left out")
            columns = (piece.time_us, piece.controller, np.ma.getdata(size), directions, np.ma.getdata(counts))
            parts.append([column[known] for column in columns])
        together = tuple(np.concatenate(columns) for columns in zip(*parts, strict=True))
        yield from self._whole_times(together)

    def _directions(self, piece: TablePiece, direction: str) -> tuple[NDArray[np.int64], str | None]:
        """0 for read, 1 for write, −1 for what is neither, and the first such."""
        if direction:
            return np.full(len(piece), DIRECTIONS.index(direction), np.int64), None
        said, which = np.unique(piece.texts[self.sizes.direction or ""], return_inverse=True)
        codes = np.array([{"r": 0, "w": 1}.get(str(item).strip()[:1].lower(), -1) for item in said], np.int64)
        strange = [str(item) for item, code in zip(said, codes, strict=True) if code < 0]
        return codes[which], strange[0] if strange else None

    def _whole_times(self, columns: tuple[NDArray[np.int64], ...]) -> Iterator[Item]:
        """Hold back the last time: its rows may go on in the next piece."""
        if self.held is not None:
            columns = tuple(np.concatenate(pair) for pair in zip(self.held, columns, strict=True))
            self.held = None
        time_us, controller = columns[0], columns[1]
        if not len(time_us):
            return
        last = time_us == time_us[-1]
        if not (np.diff(time_us) >= 0).all():  # one controller after another: only its own time may go on
            last &= controller == controller[-1]
        self.held = tuple(column[last] for column in columns)
        yield from self._grouped(tuple(column[~last] for column in columns))

    def _grouped(self, columns: tuple[NDArray[np.int64], ...]) -> Iterator[Item]:
        time_us, controller, upper, direction, count = columns
        order = np.lexsort((controller, time_us))
        edges = np.flatnonzero((np.diff(time_us[order]) != 0) | (np.diff(controller[order]) != 0)) + 1
        for rows in np.split(order, edges):
            if not len(rows):
                continue
            reported: dict[str, int] = {}
            for place in rows:
                if count[place]:
                    label = f"{DIRECTIONS[direction[place]]}:{upper[place]}"
                    reported[label] = reported.get(label, 0) + int(count[place])
            for label in [label for label, total in reported.items() if total > LARGEST]:
                yield Problem(self.place, None, f"counts of {label} add up to more than can be: left out")
                del reported[label]
            yield from self._emit(_Bins(int(time_us[rows[0]]), int(controller[rows[0]]), reported))

    def _emit(self, bins: _Bins) -> Iterator[Item]:
        tick = int(self.clockwork.ticks(np.array([bins.time_us], np.int64))[0])
        target = self.names[bins.controller]
        if self.sizes.kind == CUMULATIVE:
            seen = self.seen.setdefault(bins.controller, {})
            seen |= dict.fromkeys(bins.counts, 0)
            counters = CounterSet(seen | bins.counts)  # a bin that fell to zero is reported, so that a reset shows
            yield Sample(
                "target_histograms", self.filesystem, target, tick, bins.time_us, {HISTOGRAM: counters}, KIND
            )  # fmt: skip
        elif bins.counts:
            start = int(self._starts(np.array([bins.controller]), np.array([tick]), since_last=True)[0])
            labels = [label.partition(":") for label in bins.counts]
            values: dict[str, object] = {
                "time": [tick] * len(labels),
                "start": start,
                "duration_s": (tick - start) / SECOND_US,
                "filesystem": self.filesystem,
                "target": target,
                **KIND,
                "histogram": HISTOGRAM,
                "direction": [direction for direction, _, _ in labels],
                "bin": [int(upper) for _, _, upper in labels],
                "count": list(bins.counts.values()),
            }
            yield Rows("target_histograms", values, len(labels))
        else:
            self.last[bins.controller] = tick
