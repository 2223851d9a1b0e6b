"""The frame type analyses work on: one file system, window and resolution, as lazy frames, chunk by chunk.

A `Selection` comes from a store or from frames the user already has; an analysis cannot tell the difference.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime
from itertools import pairwise
from typing import Any, Final, Protocol, TypeVar

import narwhals as nw
import pyarrow as pa
from deltalake import DeltaTable

from iolens.errors import UsageError
from iolens.nearest_names import not_among
from iolens.part_form import PartForm
from iolens.schema import Table
from iolens.store.engines import DUCKDB, Engine, get_engine
from iolens.store.snapshot import Snapshot
from iolens.store.tables import Tables, declared
from iolens.units import DAY_US, epoch_us, from_epoch_us

OVERLAP_BUCKET_US: Final = 900_000_000
ROWS_OF_DAYS: Final = 3_000_000  # in one part, unless a single day has more
ROWS_OF_SUMS: Final = 10_000_000  # likewise where the engine sums them, so that it is asked less often
ROWS_AT_ONCE: Final = 1_000_000  # in memory as matrices
FEW_ROWS: Final = 100_000  # about as many as a week has ticks of five seconds

Part = TypeVar("Part")


def chosen_targets(given: Sequence[str], known: Collection[str], filesystem: str) -> tuple[str, ...]:
    """The targets that were meant: `OST0001` is `scratch-OST0001`, in whatever case; an error names the nearest.

    A file system that has no targets, only records such as drives, leaves them as they are.
    """
    if not known:
        return tuple(given)
    return tuple(dict.fromkeys(_chosen_target(name, known, filesystem) for name in given))


def _chosen_target(given: str, known: Collection[str], filesystem: str) -> str:
    if given in known:
        return given
    meant = given.lower()
    names = sorted(name for name in known if meant in (name.lower(), *_short_names(name, filesystem)))
    if len(names) == 1:
        return names[0]
    if names:
        raise UsageError(f"several targets of {filesystem} may be meant by {given!r}: {', '.join(names)}")
    raise UsageError(f"{filesystem} has no target {given!r}{_nearest(given, known, filesystem)}")


def _nearest(given: str, known: Collection[str], filesystem: str) -> str:
    """The nearest targets, as they were asked for: with or without the file system's name."""
    prefix = f"{filesystem}-"
    is_whole = given.lower().startswith(prefix.lower())
    return not_among(given, known if is_whole else [name.removeprefix(prefix) for name in known])


def _short_names(name: str, filesystem: str) -> Iterator[str]:
    """A target's name without the file system's, which users leave out."""
    lower = name.lower()
    yield lower.removeprefix(f"{filesystem.lower()}-").removeprefix(f"{filesystem.lower()}:")
    yield lower.rpartition("-")[2]


class Chunk(Protocol):
    """A part of the window that is small enough to ask at once."""

    @property
    def end_us(self) -> int | None:
        """No later part has an interval that ends at or before this time; None: this part is all there is."""

    def frame(self, table: str) -> nw.LazyFrame[Any]:
        """The table's rows in this part."""


class Days(Chunk, Protocol):
    """Whole days by the ends of ticks."""

    def slices(self, tick_us: int) -> Iterator[Chunk]:
        """In time order, with so many rows as may be in memory at once; no tick is in two of them."""

    def live_columns(self, table: str, names: Sequence[str]) -> list[str]:
        """Those columns that may hold something other than zero in these days."""


@dataclass(frozen=True, slots=True)
class Ends:
    """Times at which intervals may end: later than `after_us`, not later than `until_us`."""

    after_us: int
    until_us: int

    def holds(self) -> nw.Expr:
        """Whether a row ends then: by its `time`, which files have statistics on."""
        after, until = from_epoch_us(self.after_us), from_epoch_us(self.until_us)
        return (nw.col("time") > after) & (nw.col("time") <= until)


def tick_day(day: date, tick_us: int) -> Ends:
    """Ends of the intervals whose nearest tick ends within a UTC day: every tick is in one day, whoever is off it.

    The tick that ends at midnight is the last of the day before.
    """
    first, last = (
        midnight_us // tick_us * tick_us + tick_us // 2
        for midnight_us in (_midnight_us(day), _midnight_us(day) + DAY_US)
    )
    return Ends(first, last)


def _midnight_us(day: date) -> int:
    return (day.toordinal() - date(1970, 1, 1).toordinal()) * DAY_US


class Selection(Protocol):
    """What an analysis needs to know before and while it reads."""

    filesystem: str
    window: tuple[datetime | None, datetime | None]
    source_order: Sequence[str]
    overlapping_rows: int

    def chunks(self, *tables: str, most_rows: int | None = None) -> Iterator[Chunk]:
        """The window in time order, in parts of whole days, with at most so many rows where a day has no more."""

    def tick_days(self, tables: Sequence[str], tick_us: int) -> Iterator[Days]:
        """The window in time order, in whole days by the ends of ticks, so that a tick is in one of them with all rows.

        Days with few rows are together.
        """

    def parts(
        self,
        make: Callable[[Days], Part],
        form: PartForm,
        tables: Sequence[str],
        tick_us: int,
        progress: Callable[[date], None] | None = None,
    ) -> Iterator[Part]:
        """What `make` gives of all `tick_days`, in time order; on all cores or on the cluster where that pays.

        `make` passes between processes, so that it is a function of a module or a `partial` of one; what it gives has
        a written form.
        """

    def frame(self, table: str) -> nw.LazyFrame[Any]:
        """All of the table's rows, for questions with small answers."""

    def extent_us(self, *tables: str) -> tuple[int, int] | None:
        """Start of the first and end of the last interval (about: by the log), None when there is nothing."""

    def live_columns(self, table: str, names: Sequence[str]) -> list[str]:
        """Those columns that may hold something other than zero."""

    def filled_columns(self, table: str, names: Sequence[str]) -> list[str] | None:
        """Those columns that have a value in some row, where that is known without asking; None: it is not."""

    def known_targets(self) -> set[str]:
        """Targets the file system is known to have, reporting in this window or not."""

    def sources(self, table: str) -> list[str]:
        """Sources the rows come from."""

    def holds(self, table: str, column: str | None = None, values: Sequence[str] = ()) -> bool:
        """Whether there is any row, or any with one of the values in a text column."""


@dataclass(slots=True)
class StoreChunk:
    """Some days of a store selection."""

    selection: StoreSelection
    first: date
    last: date

    @property
    def end_us(self) -> int:
        """Midnight after the last day."""
        return _midnight_us(self.last) + DAY_US

    def frame(self, table: str) -> nw.LazyFrame[Any]:
        """Rows of these days, pruned to their files."""
        return self.selection.frame(table, self.first, self.last)


@dataclass(slots=True)
class TickDays:
    """Some days of a store selection, by the ends of ticks."""

    selection: StoreSelection
    ends: Ends
    rows: int  # about

    @property
    def end_us(self) -> int:
        """No later part has a row that ends before."""
        return self.ends.until_us

    def portable(self) -> TickDays:
        """For another process or machine, where DuckDB reads the files of the same snapshot."""
        here = self.selection
        url = str(here.tables.folder.resolve()) if here.tables.is_local else here.tables.url
        first_us, last_us = self.ends.after_us - OVERLAP_BUCKET_US, self.ends.until_us + OVERLAP_BUCKET_US
        files = {table: snapshot.ending(first_us, last_us) for table, snapshot in here._snapshots.items()}
        there = replace(here, tables=Tables(url), engine=get_engine(DUCKDB), overlapping_rows=0, _snapshots=files)
        return replace(self, selection=there)

    def made(self, make: Callable[[Days], Part]) -> tuple[Part, int]:
        """The part, on one core: there is a process for each; and how many rows overlap."""
        self.selection.engine.use_one_core()
        return make(self), self.selection.overlapping_rows

    def count_overlapping(self, rows: int) -> None:
        """Rows of other sources that another process has left out."""
        self.selection.overlapping_rows += rows

    def slices(self, tick_us: int) -> Iterator[TickDays]:
        """Equal times, and so about equally many rows."""
        pieces = -(-self.rows // ROWS_AT_ONCE) or 1
        ticks = -(-(self.ends.until_us - self.ends.after_us) // tick_us)
        borders = [self.ends.after_us + ticks * piece // pieces * tick_us for piece in range(pieces)]
        for after_us, until_us in pairwise([*borders, self.ends.until_us]):
            if until_us > after_us:
                yield TickDays(self.selection, Ends(after_us, until_us), self.rows // pieces)

    def frame(self, table: str) -> nw.LazyFrame[Any]:
        """Rows that end in these days, from the files that may have any."""
        return self.selection.ending(table, self.ends)

    def live_columns(self, table: str, names: Sequence[str]) -> list[str]:
        """By the log's statistics of those files."""
        return self.selection.snapshot(table).ending(self.ends.after_us, self.ends.until_us).ever_positive(names)


@dataclass(slots=True)
class StoreSelection:
    """A window of one file system in a store; an empty name stands for all of it, whatever file system rows name."""

    tables: Tables
    engine: Engine
    filesystem: str
    window: tuple[datetime | None, datetime | None] = (None, None)
    targets: Sequence[str] = ()
    source: str | None = None
    source_order: Sequence[str] = ()
    resolution: str | None = None
    targets_known: set[str] = field(default_factory=set)
    overlapping_rows: int = 0
    _snapshots: dict[str, Snapshot] = field(default_factory=dict)
    _sources: dict[str, list[str]] = field(default_factory=dict)

    def chunks(self, *tables: str, most_rows: int | None = None) -> Iterator[StoreChunk]:
        """Runs of days with at most the engine's appetite in rows, or less."""
        rows: dict[date, int] = {}
        for table in tables:
            for day, count in self.snapshot(table).days().items():
                rows[day] = max(rows.get(day, 0), count)
        for first, last in self._runs_of_days(rows, most_rows or self.engine.rows_per_chunk):
            yield StoreChunk(self, first, last)

    def tick_days(self, tables: Sequence[str], tick_us: int, most_rows: int | None = None) -> Iterator[TickDays]:
        """By the log where it says in which days rows end, else by asking; as many rows as the largest table has."""
        rows: dict[date, int] = {}
        for table in tables:
            for day, count in self._days_of_ticks(table, tick_us).items():
                rows[day] = max(rows.get(day, 0), count)
        for first, last in self._runs_of_days(rows, most_rows or ROWS_OF_DAYS):
            ends = Ends(tick_day(first, tick_us).after_us, tick_day(last, tick_us).until_us)
            yield TickDays(self, ends, sum(count for day, count in rows.items() if first <= day <= last))

    def parts(
        self,
        make: Callable[[Days], Part],
        form: PartForm,
        tables: Sequence[str],
        tick_us: int,
        progress: Callable[[date], None] | None = None,
    ) -> Iterator[Part]:
        """By the engine where that is worth it, else here."""
        days = list(self.tick_days(tables, tick_us, ROWS_OF_SUMS if form.summed else None))
        made = self.engine.made(make, form, days) or map(make, days)
        for part, made_of in zip(made, days, strict=True):
            if progress is not None:
                progress(from_epoch_us(made_of.end_us - tick_us).date())
            yield part

    def _runs_of_days(self, rows: Mapping[date, int], most_rows: int) -> Iterator[tuple[date, date]]:
        """First and last of the days that are asked for together."""
        most = min(self.engine.rows_per_chunk, most_rows)
        first: date | None = None
        last = date.min
        held = 0
        for day, count in sorted(rows.items()):
            if first is not None and self._is_too_much(held + count, most, (day - first).days):
                yield first, last
                first, held = None, 0
            first, last, held = first or day, day, held + count
        if first is not None:
            yield first, last

    def _days_of_ticks(self, table: str, tick_us: int) -> dict[date, int]:
        """Rows by the day in which their tick ends."""
        snapshot = self.snapshot(table)
        proven = {
            day
            for day, (low, high) in snapshot.extents_by_day().items()
            if low > (ends := tick_day(day, tick_us)).after_us and high + 1_000 <= ends.until_us
        }
        rows = {day: count for day, count in snapshot.days().items() if day in proven}
        for day, count in self._asked_days(table, snapshot.on_days(lambda day: day not in proven), tick_us):
            rows[day] = rows.get(day, 0) + count
        return rows

    def _asked_days(self, table: str, snapshot: Snapshot, tick_us: int) -> Iterator[tuple[date, int]]:
        if not snapshot.paths:
            return
        tick = (nw.col("epoch_us") + (tick_us - 1) // 2) // tick_us
        frame = self._rows(table, snapshot).select(((tick * tick_us - 1) // DAY_US).alias("day"))
        counts = frame.group_by("day").agg(nw.len().alias("rows")).collect(backend="pyarrow").to_native()
        for row in counts.to_pylist():
            yield date.fromordinal(date(1970, 1, 1).toordinal() + int(row["day"])), int(row["rows"])

    def _is_too_much(self, rows: int, most: int, days: int) -> bool:
        """Whether a day more would be too much for one question; few rows have few ticks, over however many days."""
        return rows > most or (days >= self.engine.days_per_chunk and rows > FEW_ROWS)

    def snapshot(self, table: str) -> Snapshot:
        """The table's files that can matter to this selection."""
        if table not in self._snapshots:
            whole = Snapshot.of(self._handle(table))
            result = whole.in_window(declared(table), *self.window)
            if self.filesystem:
                result = result.with_value("filesystem", self.filesystem)
            if self.source is not None:
                result = result.with_value("source", self.source)
            self._snapshots[table] = result
        return self._snapshots[table]

    def frame(self, table: str, first: date = date.min, last: date = date.max) -> nw.LazyFrame[Any]:
        """Rows of the selection whose interval starts on those days, one source per target and quarter-hour."""
        snapshot = self.snapshot(table).on_days(lambda day: first <= day <= last)
        return self._one_source(table, self._rows(table, snapshot))

    def ending(self, table: str, ends: Ends) -> nw.LazyFrame[Any]:
        """Rows of the selection that end then, one source per target and quarter-hour."""
        snapshot = self.snapshot(table)
        several = self.source is None and len(self.sources(table)) > 1
        beside = OVERLAP_BUCKET_US if several else 0  # a quarter-hour is decided on by all of its rows
        snapshot = snapshot.ending(ends.after_us - beside, ends.until_us + beside)
        if snapshot.ends_within(ends.after_us, ends.until_us):
            return self._one_source(table, self._rows(table, snapshot))
        return self._one_source(table, self._rows(table, snapshot), ends.holds())

    def _rows(self, table: str, snapshot: Snapshot) -> nw.LazyFrame[Any]:
        """Rows of the snapshot's files that belong to the selection, from all sources."""
        frame = self.engine.scan(self.tables, self._name(table), snapshot.paths)
        for condition in self._conditions(table, snapshot):
            frame = frame.filter(condition)
        return _newest(table, frame)

    def records_between(self, table: str, first_us: int, last_us: int) -> nw.LazyFrame[Any]:
        """Every row that overlaps that time, whenever it began and whichever file system and source it names.

        Rows with one key are all there: `Table.newest_by` is left to the caller.
        """
        snapshot = Snapshot.of(self.tables.load(table)).overlapping(first_us, last_us)
        frame = self.engine.scan(self.tables, table, snapshot.paths)
        return frame.filter(nw.col("start_us") <= last_us, nw.col("epoch_us") >= first_us)

    def beside(self, rows: pa.Table) -> nw.LazyFrame[Any]:
        """Rows of this process as a frame of the same engine, to be joined with those of tables."""
        return self.engine.frame(rows)

    def between(self, first_us: int, last_us: int) -> StoreSelection:
        """The same rows of another window."""
        window = from_epoch_us(first_us), from_epoch_us(last_us)
        return replace(self, window=window, overlapping_rows=0, _snapshots={}, _sources={})

    def extent_us(self, *tables: str) -> tuple[int, int] | None:
        """By the log's statistics, so that no file is opened; cut to the window."""
        starts, ends = [], []
        for table in tables:
            snapshot = self.snapshot(table)
            low, high = (
                snapshot.extreme("start", "min") or snapshot.extreme("time", "min"),
                snapshot.extreme("time", "max"),
            )
            if low is not None and high is not None:
                starts.append(epoch_us(low.astimezone(UTC)))
                ends.append(epoch_us(high.astimezone(UTC)))
        if not starts:
            return None
        since, until = (epoch_us(end) if end else None for end in self.window)
        low_us = min(starts) if since is None else max(since, min(starts))
        high_us = max(ends) if until is None else min(until, max(ends))
        return low_us, max(low_us + 1, high_us)

    def live_columns(self, table: str, names: Sequence[str]) -> list[str]:
        """By the log's statistics."""
        return self.snapshot(table).ever_positive(names)

    def filled_columns(self, table: str, names: Sequence[str]) -> list[str] | None:
        """By the log's statistics, where they are of the selected rows alone, and those are of one kind."""
        snapshot = self.snapshot(table)
        kinds = [column.name for column in declared(table).columns if column.name == "target_kind"]
        is_mixed = any(snapshot.single_value(name) is None for name in kinds)
        return (
            None
            if is_mixed or next(self._conditions(table, snapshot), None) is not None
            else snapshot.ever_filled(names)
        )

    def known_targets(self) -> set[str]:
        """Targets that any batch of this store ever brought for the file system."""
        return {target for target in self.targets_known if not self.targets or target in self.targets}

    def days(self, *tables: str) -> set[date]:
        """Days of the window on which any of the tables has rows, by the log; a rollup that was not made has none."""
        made = [table for table in tables if self.tables.load(self._name(table)) is not None]
        return {day for table in made for day in self.snapshot(table).days()}

    def sources(self, table: str) -> list[str]:
        """The one source if the log proves it, else by asking."""
        if table not in self._sources:
            self._sources[table] = self._find_sources(table)
        return self._sources[table]

    def holds(self, table: str, column: str | None = None, values: Sequence[str] = ()) -> bool:
        """By the log where it proves that there is none, else by asking for one row, whichever source it is from."""
        snapshot = self.snapshot(table)
        only = snapshot.single_value(column) if column is not None else None
        if not snapshot.paths or (only is not None and only not in values):
            return False
        return _any(self._rows(table, snapshot), column, values)

    def _find_sources(self, table: str) -> list[str]:
        snapshot = self.snapshot(table)
        if not snapshot.paths:
            return []
        if (single := snapshot.single_value("source")) is not None:
            return [single]
        frame = self._rows(table, snapshot)
        result = frame.select("source").unique().collect(backend="pyarrow").to_native()
        return sorted(result.column("source").to_pylist())

    def _handle(self, table: str) -> DeltaTable | None:
        """The table; a rollup that was never made of rows there are is an error, not a table without rows."""
        handle = self.tables.load(self._name(table))
        if handle is None and self._name(table) != table and self.tables.load(table) is not None:
            raise UsageError(
                f"{self.tables.url} has no {self.resolution} rollup of {table}; make it with `iolens store rollup`,"
                " or leave --resolution out"
            )
        return handle

    def _name(self, table: str) -> str:
        """Where the table is; only intervals are rolled up."""
        return f"{self.resolution}/{table}" if self.resolution and declared(table).kind == "interval" else table

    def _conditions(self, table: str, snapshot: Snapshot) -> Iterator[nw.Expr]:
        """Filters the file list alone does not settle."""
        if self.filesystem and snapshot.single_value("filesystem") != self.filesystem:
            yield nw.col("filesystem") == self.filesystem
        if self.source is not None and snapshot.single_value("source") != self.source:
            yield nw.col("source") == self.source
        if self.targets and "target" in declared(table).key:
            yield nw.col("target").is_in(list(self.targets))
        since, until = self.window
        first, *others = begin_columns(declared(table))
        begin = nw.coalesce(first, *others) if others else nw.col(first)
        if since is not None and not snapshot.is_cut_at(declared(table), since):
            yield begin >= epoch_us(since)
        if until is not None and not snapshot.is_cut_at(declared(table), until):
            yield begin < epoch_us(until)

    def _one_source(self, table: str, frame: nw.LazyFrame[Any], wanted: nw.Expr | None = None) -> nw.LazyFrame[Any]:
        """Where sources overlap, the first in order wins each target's quarter-hour; of clients, each node's.

        What a job moved on a node, from its begin to its end, is no overlap with the intervals of that node. Of the
        rows that are left, those that are wanted.
        """
        sources = self.sources(table) if self.source is None else []
        subject = declared(table).subject
        if len(sources) < 2 or subject not in declared(table).key:
            return frame if wanted is None else frame.filter(wanted)
        apart = (subject, "job_id") if subject == "node" else (subject,)
        ranked = [*(name for name in self.source_order if name in sources)]
        ranked += [name for name in sources if name not in ranked]
        rank: nw.Expr = nw.lit(len(ranked))
        for position, name in enumerate(ranked):
            rank = nw.when(nw.col("source") == name).then(nw.lit(position)).otherwise(rank)
        bucket = (nw.col("epoch_us") - 1) // OVERLAP_BUCKET_US
        marked = frame.with_columns(rank.alias("_rank"), bucket.alias("_bucket"))
        best = nw.col("_rank").min().over(*apart, "_bucket")
        marked = marked.with_columns(best.alias("_best"))
        marked = marked if wanted is None else marked.filter(wanted)
        dropped = (
            marked.filter(nw.col("_rank") != nw.col("_best")).select(nw.len().alias("n")).collect(backend="pyarrow")
        )
        self.overlapping_rows += int(dropped["n"][0])
        return marked.filter(nw.col("_rank") == nw.col("_best")).drop("_rank", "_bucket", "_best")


def begin_columns(table: Table) -> tuple[str, ...]:
    """The columns, in microseconds, whose first known value decides whether a row is in a window."""
    if table.placed_by == "time":
        return ("epoch_us",)
    return ("start_us",) if table.kind == "interval" else ("start_us", "epoch_us")


def _newest(table: str, frame: nw.LazyFrame[Any]) -> nw.LazyFrame[Any]:
    """Of several rows with one key the one that counts, where the table keeps them all: `Table.newest_by`."""
    column = declared(table).newest_by
    if column is None:
        return frame
    rank = nw.when(nw.col(column).is_null()).then(nw.lit(-1)).otherwise(nw.col(column).cast(nw.Int64()))
    ranked = frame.with_columns(rank.alias("_rank"))
    ranked = ranked.with_columns(nw.col("_rank").max().over(*declared(table).key).alias("_best"))
    return ranked.filter(nw.col("_rank") == nw.col("_best")).drop("_rank", "_best")


@dataclass(slots=True)
class FrameSelection:
    """Frames the user already has: pandas, Polars, PyArrow, DuckDB or Spark, by table name."""

    frames: Mapping[str, Any]
    filesystem: str = ""
    window: tuple[datetime | None, datetime | None] = (None, None)
    source_order: Sequence[str] = ()
    overlapping_rows: int = 0
    end_us: None = None

    def chunks(self, *tables: str, most_rows: int | None = None) -> Iterator[Chunk]:
        """All at once: the frame's owner chose its size."""
        yield self

    def tick_days(self, tables: Sequence[str], tick_us: int) -> Iterator[Days]:
        """All at once, too."""
        yield self

    def slices(self, tick_us: int) -> Iterator[Chunk]:
        """All at once, too."""
        yield self

    def parts(
        self,
        make: Callable[[Days], Part],
        form: PartForm,
        tables: Sequence[str],
        tick_us: int,
        progress: Callable[[date], None] | None = None,
    ) -> Iterator[Part]:
        """One part, made here."""
        return map(make, self.tick_days(tables, tick_us))

    def frame(self, table: str) -> nw.LazyFrame[Any]:
        """The user's frame with `epoch_us` and `start_us`, cut to the window."""
        if table not in self.frames:
            return _lazy(_empty(table))
        frame = with_epochs(self.frames[table])
        if self.filesystem and "filesystem" in frame.collect_schema().names():
            frame = frame.filter(nw.col("filesystem") == self.filesystem)
        since, until = self.window
        if since is not None:
            frame = frame.filter(nw.col("start_us") >= epoch_us(since))
        if until is not None:
            frame = frame.filter(nw.col("start_us") < epoch_us(until))
        return frame

    def extent_us(self, *tables: str) -> tuple[int, int] | None:
        """By asking the frames."""
        result = []
        for table in tables:
            ends = self.frame(table).select(low=nw.col("start_us").min(), high=nw.col("epoch_us").max())
            row = ends.collect(backend="pyarrow").to_native().to_pylist()[0]
            if row["low"] is not None:
                result.append((int(row["low"]), int(row["high"])))
        return (min(low for low, _ in result), max(high for _, high in result)) if result else None

    def live_columns(self, table: str, names: Sequence[str]) -> list[str]:
        """The columns the frame has."""
        if table not in self.frames:
            return []
        have = set(with_epochs(self.frames[table]).collect_schema().names())
        return [name for name in names if name in have]

    def filled_columns(self, table: str, names: Sequence[str]) -> list[str] | None:
        """A frame has to be asked."""
        return None

    def known_targets(self) -> set[str]:
        """A frame knows only the targets that report."""
        return set()

    def sources(self, table: str) -> list[str]:
        """The frame itself."""
        return ["frame"] if table in self.frames else []

    def holds(self, table: str, column: str | None = None, values: Sequence[str] = ()) -> bool:
        """By asking the frame for one row."""
        return table in self.frames and _any(self.frame(table), column, values)


def _any(frame: nw.LazyFrame[Any], column: str | None, values: Sequence[str]) -> bool:
    if column is not None:
        if column not in frame.collect_schema().names():
            return False
        frame = frame.filter(nw.col(column).is_in(list(values)))
    return bool(frame.select("epoch_us").head(1).collect(backend="pyarrow").shape[0])


def with_epochs(native: Any) -> nw.LazyFrame[Any]:
    """A lazy frame with integer microseconds `epoch_us` and `start_us` beside its times."""
    plain = _lazy(native)
    names = plain.collect_schema().names()
    if "time" not in names:
        raise UsageError("the frame has no `time` column: the UTC end of each interval")
    times = [(name, alias) for name, alias in (("time", "epoch_us"), ("start", "start_us")) if name in names]
    kind = type(native).__module__.partition(".")[0]
    if kind in ("duckdb", "_duckdb"):
        frame = _lazy(native.project(", ".join(["*", *(f'epoch_us("{name}") AS {alias}' for name, alias in times)])))
    elif kind == "pyspark":
        from pyspark.sql import functions

        frame = _lazy(native.withColumns({alias: functions.unix_micros(name) for name, alias in times}))
    else:
        frame = plain.with_columns(*(nw.col(name).dt.timestamp("us").alias(alias) for name, alias in times))
    if "start" in names:
        return frame
    if "duration_s" not in names:  # a time is over when it begins
        return frame.with_columns(nw.col("epoch_us").alias("start_us"))
    whole_us = (nw.col("duration_s").round() * nw.lit(1e6, nw.Float64)).cast(nw.Int64)
    return frame.with_columns((nw.col("epoch_us") - whole_us).alias("start_us"))


def _lazy(native: Any) -> nw.LazyFrame[Any]:
    frame: nw.LazyFrame[Any] = nw.from_native(native).lazy()
    return frame


def _empty(table: str) -> Any:
    from iolens.store.tables import arrow_schema

    extra = [("epoch_us", pa.int64()), ("start_us", pa.int64())]
    schema = arrow_schema(declared(table))
    return pa.schema([*schema, *(pa.field(name, type_) for name, type_ in extra)]).empty_table()
