"""The rows of a window as matrices: ticks in time order by targets, parts made of them, which targets move data."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from itertools import pairwise
from math import lcm
from typing import Any, ClassVar, Final

import narwhals as nw
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from iolens.analyses.intervals.fsu_sums import data_targets, of_kinds
from iolens.arrays import Booleans, Floats, Integers
from iolens.part_form import PartForm
from iolens.schema import DATA_KINDS, SUM_KINDS
from iolens.store.parts import Days, Ends, EngineParts
from iolens.store.selection import Selection
from iolens.units import DAY_US, from_epoch_us

# The rows of a window as matrices -------------------------------------------------------------------------------------
# Ticks in time order × targets. NaN is "not reported", never zero.
#
# Rows are read once, chunk by chunk; whatever wants every sample of every target (distributions, silences, imbalance)
# takes the same matrices, so that a month of 2 s samples is one pass in flat memory.

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


# Parts that are made of every matrix of some days ---------------------------------------------------------------------
# Of one question, or of several in one reading.


@dataclass(frozen=True, slots=True)
class TickParts:
    """What makers of such parts have in common; a part takes matrices by `add`, in time order."""

    ticks: Ticks
    tables: ClassVar = (TABLE,)
    by_engine: ClassVar = False
    looks_around: ClassVar = False
    measures: ClassVar[Sequence[str]] = MEASURES
    form: ClassVar[PartForm]

    @property
    def tick_us(self) -> int:
        """What days are cut by."""
        return self.ticks.tick_us

    def depends_on(self, ends: Ends) -> object:
        """What a part of these days depends on beside its rows."""
        raise NotImplementedError

    def for_good(self) -> Any:
        """What is kept of days whose raw rows are dropped; None: nothing is."""

    def empty(self) -> Any:
        """No ticks yet."""
        raise NotImplementedError

    def taken(self, matrix: TickMatrix) -> TickMatrix:
        """The ticks that count."""
        return matrix

    def finished(self, part: Any) -> Any:
        """When all matrices were added."""
        return part

    def made(self, days: Days) -> Any:
        """Of some days."""
        return PartsTogether((self,)).made(days)[0]


@dataclass(frozen=True, slots=True)
class PartsTogether:
    """Parts of several questions about the same ticks, from one reading."""

    makers: tuple[TickParts, ...]
    tables: ClassVar = (TABLE,)
    by_engine: ClassVar = False
    looks_around: ClassVar = False

    @property
    def form(self) -> PartForm:
        """A tuple of the parts."""
        classes = dict.fromkeys(kind for maker in self.makers for kind in maker.form.classes)
        return PartForm("together", 1, tuple(classes))

    @property
    def tick_us(self) -> int:
        """What days are cut by."""
        return self.makers[0].tick_us

    def made(self, days: Days) -> tuple[Any, ...]:
        """Of some days."""
        measures = [name for name in MEASURES if any(name in maker.measures for maker in self.makers)]
        parts = [maker.empty() for maker in self.makers]
        for matrix in self.makers[0].ticks.matrices_of(days, measures):
            for maker, part in zip(self.makers, parts, strict=True):
                part.add(maker.taken(matrix))
        return tuple(maker.finished(part) for maker, part in zip(self.makers, parts, strict=True))


# Which targets move data in a window, how often they are sampled and from when to when --------------------------------
# What `Ticks` are made of.

SECOND_US, MILLISECOND_US = 1_000_000, 1_000


@dataclass(slots=True)
class Surveyed:
    """One target as one kind: its rows by how far apart they are, the ends of the first and the last."""

    spacings: Counter[int]  # in microseconds; from a second on in whole milliseconds
    first_us: int
    last_us: int

    @property
    def rows(self) -> int:
        """How many."""
        return self.spacings.total()

    def take(self, other: Surveyed) -> None:
        """Other rows of the same."""
        self.spacings.update(other.spacings)
        self.first_us, self.last_us = min(self.first_us, other.first_us), max(self.last_us, other.last_us)


@dataclass(slots=True)
class Survey:
    """Some rows of `target_io`, by target and kind; and the measures that have a value, by kind."""

    targets: dict[tuple[str, str | None], Surveyed] = field(default_factory=dict)
    known: dict[str | None, frozenset[str]] = field(default_factory=dict)

    def take(self, other: Survey) -> None:
        """Other rows."""
        for key, surveyed in other.targets.items():
            if key in self.targets:
                self.targets[key].take(surveyed)
            else:
                self.targets[key] = surveyed
        for kind, measures in other.known.items():
            self.known[kind] = self.known.get(kind, frozenset()) | measures

    def ticks(self) -> Ticks | None:
        """Of the targets of one kind, where several tell of the same bytes; None without any."""
        if not self.targets:
            return None
        kind = min((kind for _, kind in self.targets), key=_rank)
        chosen = sorted((name, surveyed) for (name, own), surveyed in self.targets.items() if own == kind)
        names = tuple(name for name, _ in chosen)
        medians = sorted((_median(surveyed.spacings), surveyed.rows) for _, surveyed in chosen)
        return Ticks(
            names,
            () if kind is None else (kind,),
            max(round(_weighted_median(medians)), 1),
            self.known.get(kind, frozenset()),
            tuple((surveyed.first_us, surveyed.last_us) for _, surveyed in chosen),
            frozenset(name for name, _ in self.targets) - set(names),
            sum(surveyed.rows for _, surveyed in chosen),
        )


FORM: Final = PartForm("survey", 1, (Survey, Surveyed))


def survey_part(days: Days) -> Survey:
    """Of some days."""
    frame = data_targets(days.frame(TABLE))
    names = set(frame.collect_schema().names())
    measures = [name for name in MEASURES if name in names]
    filled = days.filled_columns(TABLE, measures)
    counted = measures if filled is None else []
    kind = nw.col("target_kind") if "target_kind" in names else nw.lit(None, nw.String)
    spacing = nw.col("epoch_us") - nw.col("start_us")
    whole_ms = (spacing + MILLISECOND_US // 2) // MILLISECOND_US * MILLISECOND_US
    rounded = nw.when(spacing >= SECOND_US).then(whole_ms).otherwise(spacing)
    rows = frame.select("target", kind.alias("kind"), rounded.alias("spacing"), "epoch_us", *counted)
    sums = rows.group_by("target", "kind", "spacing").agg(
        nw.len().alias("rows"),
        nw.col("epoch_us").min().alias("first"),
        nw.col("epoch_us").max().alias("last"),
        *(nw.col(name).count() for name in counted),
    )
    return _survey(sums.collect(backend="pyarrow").to_native().to_pylist(), counted, filled or ())


SURVEY_PARTS: Final = EngineParts(survey_part, FORM, (TABLE,), is_kept=True)


def ticks_of(selection: Selection) -> Ticks | None:
    """The ticks of a window; None without any target that moves data."""
    return selection.once("ticks", lambda: _surveyed(selection).ticks())


def _surveyed(selection: Selection) -> Survey:
    whole = Survey()
    for part in selection.parts(SURVEY_PARTS):
        whole.take(part)
    return whole


def _survey(rows: list[dict[str, Any]], counted: Iterable[str], filled: Iterable[str]) -> Survey:
    survey = Survey()
    for row in rows:
        surveyed = Surveyed(Counter({int(row["spacing"]): int(row["rows"])}), int(row["first"]), int(row["last"]))
        kind = None if row["kind"] is None else str(row["kind"])
        measures = frozenset([*filled, *(name for name in counted if row[name])])
        survey.take(Survey({(str(row["target"]), kind): surveyed}, {kind: measures}))
    return survey


def _rank(kind: str | None) -> tuple[int, str]:
    """Kinds in the order in which they are believed."""
    order = {name: place for place, name in enumerate((*DATA_KINDS, None, *SUM_KINDS))}
    return order.get(kind, len(DATA_KINDS)), kind or ""


def _median(counts: Counter[int]) -> float:
    """Of values that stand for so many each; the mean of the middle two of an even number."""
    values = np.array(sorted(counts))
    reached = np.cumsum([counts[value] for value in values.tolist()])
    middle = np.searchsorted(reached, [(reached[-1] - 1) // 2, reached[-1] // 2], side="right")
    return float(values[middle].mean())


def _weighted_median(pairs: list[tuple[float, int]]) -> float:
    half, reached = sum(weight for _, weight in pairs) / 2.0, 0
    for value, weight in pairs:
        reached += weight
        if reached >= half:
            return value
    return pairs[-1][0]
