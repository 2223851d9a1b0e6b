"""The frame type analyses work on: one file system, window and resolution, as lazy frames, chunk by chunk.

A `Selection` comes from a store or from frames the user already has; an analysis cannot tell the difference.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, timedelta
from itertools import pairwise, zip_longest
from typing import Any, Final, Protocol, TypeVar

import narwhals as nw
import pyarrow as pa
from deltalake import DeltaTable

from iolens.errors import UsageError
from iolens.part_form import PartForm
from iolens.schema import JOBS, SCHEMA_VERSION, Table
from iolens.store.baselines import LastCounters, last_counters
from iolens.store.engines import DUCKDB, Engine, get_engine
from iolens.store.frames import any_row
from iolens.store.jobs import superseded_jobs
from iolens.store.part_memory import KEPT, PartMemory
from iolens.store.parts import (
    AROUND_US,
    EPOCH,
    Chunk,
    Days,
    Ends,
    GatheredWhole,
    MakersTogether,
    PartMaker,
    WholeMaker,
    day_blocks,
    midnight_us,
    streams_of,
    tick_day,
)
from iolens.store.plain_columns import plain_columns
from iolens.store.snapshot import DROPPED, DayMarks, Snapshot
from iolens.store.source_choice import LONGEST_US, READINGS_APART_US, RowForm, by_resolution, configured_first, marked
from iolens.store.tables import Tables, declared, unreadable
from iolens.target_servers import SeenServer, TargetServers, servers_in_window
from iolens.units import DAY_US, epoch_us, from_epoch_us

ROWS_OF_DAYS: Final = 3_000_000  # in one part, unless a single day has more
ROWS_OF_SUMS: Final = 10_000_000  # likewise where the engine sums them, so that it is asked less often
ROWS_AT_ONCE: Final = 2_500_000  # in memory as matrices
FEWEST_IN_SLICES: Final = 200_000  # where files can be read one by one
FEW_ROWS: Final = 100_000  # about as many as a week has ticks of five seconds
FEWEST_ANSWERED: Final = 4_000_000  # rows: an answer over fewer is made of its parts in less than a second
FEWEST_REMEMBERED: Final = 100_000  # rows: a part of fewer is made in less time than it is found

Part = TypeVar("Part")


class Selection(Protocol):
    """What an analysis needs to know before and while it reads."""

    filesystem: str
    window: tuple[datetime | None, datetime | None]
    source_order: Sequence[str]

    @property
    def overlapping_rows(self) -> int:
        """Rows of what was read that do not count, since a source before theirs tells of the same time."""

    def chunks(self, *tables: str, most_rows: int | None = None) -> Iterator[Chunk]:
        """The window in time order, in parts of whole days, with at most so many rows where a day has no more."""

    def tick_days(self, tables: Sequence[str], tick_us: int) -> Iterator[Days]:
        """The window in time order, in whole days by the ends of ticks, so that a tick is in one of them with all rows.

        Days with few rows are together.
        """

    def parts(self, maker: PartMaker[Part], progress: Callable[[date], None] | None = None) -> Iterator[Part]:
        """The parts of all `tick_days`, in time order: remembered, or made on all cores or on the cluster."""

    def whole(self, maker: WholeMaker[Part], progress: Callable[[date], None] | None = None) -> Part:
        """All of these parts, put together."""

    def once(self, name: str, make: Callable[[], Part]) -> Part:
        """What `make` gives, or gave to another analysis of this selection: something that nobody changes."""

    def remembered(self, form: PartForm, depends_on: object, make: Callable[[], Part]) -> Part:
        """What `make` gives, or gave before: something dear that depends on nothing else."""

    def frame(self, table: str) -> nw.LazyFrame[Any]:
        """All of the table's rows, for questions with small answers."""

    def extent_us(self, *tables: str) -> tuple[int, int] | None:
        """Start of the first and end of the last interval (about: by the log), None when there is nothing."""

    def extent_of(self, maker: PartMaker[Any]) -> tuple[tuple[int, int] | None, bool]:
        """The same of the parts of a question, and whether some are of days whose rows were dropped."""

    def live_columns(self, table: str, names: Sequence[str]) -> list[str]:
        """Those columns that may hold something other than zero."""

    def known_targets(self) -> set[str]:
        """Targets the file system is known to have, reporting in this window or not."""

    def target_servers(self) -> TargetServers:
        """The server of each target in this window, as far as it is known."""

    def last_counters(self, table: str) -> list[LastCounters]:
        """The newest raw counters of each target, of a wide table, if they were read in the window."""

    def sources(self, table: str) -> list[str]:
        """Sources the rows come from, in the order in which they are believed."""

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
        return midnight_us(self.last) + DAY_US

    def frame(self, table: str) -> nw.LazyFrame[Any]:
        """Rows of these days, pruned to their files."""
        return self.selection.frame(table, self.first, self.last)


@dataclass(slots=True)
class TickDays:
    """Some days of a store selection, by the ends of ticks."""

    selection: StoreSelection
    first: date
    last: date
    ends: Ends
    rows: int  # about
    kept_at: str | None = None  # the part, where the rows are gone
    is_of_small: bool = False  # blocks of few rows taken together, others in another window

    @property
    def end_us(self) -> int:
        """No later part has a row that ends before."""
        return self.ends.until_us

    def portable(self) -> TickDays:
        """For another process or machine, where DuckDB reads the files of the same snapshot."""
        here = self.selection
        url = str(here.tables.folder.resolve()) if here.tables.is_local else here.tables.url
        files = {}
        for table, snapshot in here._snapshots.items():
            near = self.ends.widened(AROUND_US + here._reach_us(table))
            files[table] = snapshot.ending(near.after_us, near.until_us)
        there = replace(
            here, tables=Tables(url), engine=get_engine(DUCKDB), memory=None, _snapshots=files, _gathered={}, _once={}
        )
        return replace(self, selection=there)

    def made(self, maker: PartMaker[Part]) -> Part:
        """The part of these days."""
        return maker.made(self)

    def made_on_one_core(self, maker: PartMaker[Part]) -> Part:
        """The same in a process of its own: there is one for each core."""
        self.selection.engine.use_one_core()
        return self.made(maker)

    def remembered_at(self, maker: PartMaker[Any]) -> str | None:
        """Where the part is kept; None where that does not pay, the window cuts these days, or they are not over."""
        here = self.selection
        if here.memory is None or here.memory.fresh:
            return None
        read = self.ends.widened(AROUND_US) if maker.looks_around else self.ends
        if self.rows < FEWEST_REMEMBERED or self.is_of_small or read.until_us > time.time() * 1e6:
            return None
        files = {table: here.files_ending(table, read) for table in maker.tables}
        if any(snapshot.paths and not snapshot.starts_within(*here.window) for snapshot in files.values()):
            return None
        rows = [*here._narrowing(), {here._name(table): snapshot.paths for table, snapshot in files.items()}]
        rows += here._choices(files)
        days = f"{self.first}_{(self.last - self.first).days + 1}"
        return here.memory.path(maker.form, days, [rows, maker.depends_on(self.ends)])

    def filled_columns(self, table: str, names: Sequence[str]) -> list[str] | None:
        """By the log's statistics, where they are of the selected rows alone, and those are of one kind."""
        return self.selection.filled_columns(table, names, self.ends)

    def live_columns(self, table: str, names: Sequence[str]) -> list[str]:
        """By the log's statistics of the files that may have rows of these days."""
        return self.selection.snapshot(table).ending(self.ends.after_us, self.ends.until_us).ever_positive(names)

    def columns(self, table: str, names: Sequence[str], kind: str) -> pa.Table | None:
        """Without the engine, where the log proves that no other rows are in the files."""
        return self.selection.columns(table, names, kind, self.ends)

    def slices(self, table: str, tick_us: int) -> Iterator[TickDays]:
        """Whole files of the table, as far as no tick is in two of them."""
        after_us, before = self.ends.after_us, 0
        for border_us, rows in self.selection.files_ending(table, self.ends).borders(after_us, tick_us):
            if rows - before >= FEWEST_IN_SLICES and after_us < border_us < self.ends.until_us:
                yield from replace(self, ends=Ends(after_us, border_us), rows=rows - before)._equal_slices(tick_us)
                after_us, before = border_us, rows
        yield from replace(self, ends=Ends(after_us, self.ends.until_us), rows=self.rows - before)._equal_slices(
            tick_us
        )

    def _equal_slices(self, tick_us: int) -> Iterator[TickDays]:
        """Equal times, and so about equally many rows, where they are too many."""
        pieces = max(-(-self.rows // ROWS_AT_ONCE), 1)
        ticks = -(-(self.ends.until_us - self.ends.after_us) // tick_us)
        borders = [self.ends.after_us + ticks * piece // pieces * tick_us for piece in range(pieces)]
        for after_us, until_us in pairwise([*borders, self.ends.until_us]):
            if until_us > after_us:
                yield replace(self, ends=Ends(after_us, until_us), rows=self.rows // pieces)

    def frame(self, table: str) -> nw.LazyFrame[Any]:
        """Rows that end in these days, from the files that may have any."""
        return self.selection.ending(table, self.ends)

    def around(self, table: str) -> nw.LazyFrame[Any]:
        """Those of an hour before and after, too."""
        return self.selection.ending(table, self.ends.widened(AROUND_US))

    def beside(self, rows: pa.Table) -> nw.LazyFrame[Any]:
        """By the engine of the selection."""
        return self.selection.beside(rows)


@dataclass(slots=True)
class PartPlan:
    """The days of a question, and where the part of each is kept."""

    maker: PartMaker[Any]
    days: list[TickDays]
    paths: list[str | None]
    held: set[str]  # paths with a part

    @property
    def absent(self) -> list[TickDays]:
        """Days that have to be read."""
        return [item for item, path in zip(self.days, self.paths, strict=True) if path not in self.held]

    @property
    def absent_days(self) -> list[tuple[date, date]]:
        """The first and last of each."""
        return [(item.first, item.last) for item in self.absent]


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
    servers: Mapping[str, Sequence[str]] = field(default_factory=dict)  # configured: patterns of targets by server
    memory: PartMemory | None = None
    days_from_parts: dict[str, set[date]] = field(default_factory=dict)  # without rows, by the form of the parts
    _snapshots: dict[str, Snapshot] = field(default_factory=dict)
    _sources: dict[str, list[str]] = field(default_factory=dict)
    _gathered: dict[object, GatheredWhole] = field(default_factory=dict)  # by maker, until it is asked for
    _once: dict[str, tuple[Any, set[str]]] = field(default_factory=dict)  # with the tables that were read for it
    _read: set[str] = field(default_factory=set)  # tables
    _left_out: dict[str, int] = field(default_factory=dict)  # rows of each table that do not count

    def another(self, **changes: Any) -> StoreSelection:
        """With nothing of what was found of these rows."""
        fresh: dict[str, Any] = {"_snapshots": {}, "_sources": {}, "_gathered": {}, "_once": {}, "_left_out": {}}
        return replace(self, days_from_parts={}, _read=set(), **fresh, **changes)

    def of_filesystem(self, name: str, targets_known: set[str]) -> StoreSelection:
        """Rows of one file system, where these are of all; the logs that were read are not read again."""
        files = {table: snapshot.with_value("filesystem", name) for table, snapshot in self._snapshots.items()}
        return replace(self.another(filesystem=name, targets_known=targets_known), _snapshots=files)

    def for_another_question(self) -> StoreSelection:
        """The same rows, with what was found of them."""
        return replace(self, days_from_parts={}, _read=set())

    @property
    def overlapping_rows(self) -> int:
        """Each once, however often the tables were read."""
        return sum(self._rows_left_out(table) for table in self._read)

    def _rows_left_out(self, table: str) -> int:
        if table not in self._left_out:
            rows = self._with_choice(table, self._rows(table, self.snapshot(table)))
            left = 0
            if rows is not None:
                counted = rows.filter(~nw.col("_counts")).select(nw.len().alias("rows")).collect(backend="pyarrow")
                left = int(counted["rows"][0])
            self._left_out[table] = left
        return self._left_out[table]

    def chunks(self, *tables: str, most_rows: int | None = None) -> Iterator[StoreChunk]:
        """Runs of days with at most the engine's appetite in rows, or less."""
        rows: dict[date, int] = {}
        for table in tables:
            for day, count in self.snapshot(table).days().items():
                rows[day] = max(rows.get(day, 0), count)
        for first, last in self._runs_of_days(rows, most_rows or self.engine.rows_per_chunk):
            yield StoreChunk(self, first, last)

    def tick_days(
        self,
        tables: Sequence[str],
        tick_us: int,
        *,
        without: Collection[date] = (),
        most_rows: int | None = None,
    ) -> Iterator[TickDays]:
        """By the log where it says in which days rows end, else by asking; `without` some days."""
        rows: dict[date, int] = {}
        for table in tables:
            for day, count in self._days_of_ticks(table, tick_us).items():
                if day not in without:
                    rows[day] = max(rows.get(day, 0), count)
        most_rows = ROWS_OF_DAYS if most_rows is None else most_rows
        for block in day_blocks(rows, most_rows, FEWEST_REMEMBERED, without):
            ends = Ends(tick_day(block.first, tick_us).after_us, tick_day(block.last, tick_us).until_us)
            yield TickDays(self, block.first, block.last, ends, block.rows, is_of_small=block.is_of_small)

    def parts(self, maker: PartMaker[Part], progress: Callable[[date], None] | None = None) -> Iterator[Part]:
        """From memory where they are there; else by the engine where that is worth it, or here."""
        self._read.update(maker.tables)
        plan = self._plan(maker)
        return self._parts(plan, self._made(maker, plan.absent), progress)

    def whole(self, maker: WholeMaker[Part], progress: Callable[[date], None] | None = None) -> Part:
        """As it was gathered, or of the parts."""
        self._read.update(maker.tables)
        gathered = self._gathered.pop(maker, None)
        if gathered is None:
            gathered = GatheredWhole(maker.empty(), {})
            for part in self.parts(maker, progress):
                gathered.whole.take(part)
        self.days_from_parts |= gathered.days_from_parts
        whole: Part = gathered.whole
        return whole

    def gather(self, together: MakersTogether, progress: Callable[[date], None] | None = None) -> None:
        """Read the rows once for several questions that are asked next, where they lack the same days."""
        here = [self.for_another_question() for _ in together.makers]
        plans = [selection._plan(maker) for selection, maker in zip(here, together.makers, strict=True)]
        absent = plans[0].absent
        if not absent or any(plan.absent_days != plans[0].absent_days for plan in plans):
            return
        streams = streams_of(self._made(together, absent), len(plans))
        parts = [
            selection._parts(plan, stream, None if place else progress)
            for place, (selection, plan, stream) in enumerate(zip(here, plans, streams, strict=True))
        ]
        wholes = [maker.empty() for maker in together.makers]
        for some in zip_longest(*parts):  # in step, so that no part waits for another
            for whole, part in zip(wholes, some, strict=True):
                if part is not None:
                    whole.take(part)
        for selection, maker, whole in zip(here, together.makers, wholes, strict=True):
            self._gathered[maker] = GatheredWhole(whole, selection.days_from_parts)

    def has_gathered(self, maker: WholeMaker[Any]) -> bool:
        """Whether its whole was gathered and not asked for yet."""
        return maker in self._gathered

    def once(self, name: str, make: Callable[[], Part]) -> Part:
        """With the tables that it read."""
        if name not in self._once:
            before, self._read = self._read, set()
            self._once[name] = make(), self._read
            self._read = before
        value: Part
        value, tables = self._once[name]
        self._read |= tables
        return value

    def _plan(self, maker: PartMaker[Any]) -> PartPlan:
        gone = list(self._days_gone(maker))
        self.days_from_parts[maker.form.name] = {item.first for item in gone}
        most_rows = min(self.engine.rows_per_chunk, ROWS_OF_SUMS if maker.by_engine else ROWS_OF_DAYS)
        here = self.tick_days(
            maker.tables, maker.tick_us, without=self.days_from_parts[maker.form.name], most_rows=most_rows
        )
        days = sorted([*gone, *here], key=lambda item: item.first)
        paths = [item.kept_at or item.remembered_at(maker) for item in days]
        held = {path for path in paths if path is not None and self.memory is not None and self.memory.holds(path)}
        return PartPlan(maker, days, paths, held)

    def _made(self, maker: Any, days: Sequence[TickDays]) -> Iterator[Any]:
        return self.engine.made(maker, days) or (item.made(maker) for item in days)

    def _parts(
        self, plan: PartPlan, made: Iterator[Any], progress: Callable[[date], None] | None = None
    ) -> Iterator[Any]:
        """Of all days of the plan; `made` are those that are absent."""
        maker = plan.maker
        for item, path in zip(plan.days, plan.paths, strict=True):
            part = self._remembered(maker, item, path) if path in plan.held else next(made)
            if part is None:
                self.days_from_parts[maker.form.name].discard(item.first)
                continue
            if path is not None and path not in plan.held and self.memory is not None:
                self.memory.write(maker.form, path, part)
            if progress is not None:
                progress(item.last)
            yield part

    def keep(self, maker: PartMaker[Any]) -> int:
        """Make the parts of single days, and keep them for good, since the rows are to be dropped; how many."""
        keeper = maker.for_good()
        if keeper is None or self.memory is None:
            return 0
        days = list(self.tick_days(maker.tables, maker.tick_us, without=self._dropped(keeper), most_rows=0))
        for item, part in zip(days, self._made(keeper, days), strict=True):
            self.memory.keep(keeper.form, self._kept_at(keeper, item.first), part)
        return len(days)

    def extent_of(self, maker: PartMaker[Any]) -> tuple[tuple[int, int] | None, bool]:
        """Of rows by the log; days without have all of their hours."""
        gone = [(midnight_us(item.first), midnight_us(item.first) + DAY_US) for item in self._days_gone(maker)]
        extents = [*gone, *([here] if (here := self.extent_us(*maker.tables)) else [])]
        return (min(low for low, _ in extents), max(high for _, high in extents)) if extents else None, bool(gone)

    def has_kept(self, maker: PartMaker[Any]) -> bool:
        """Whether there is any day of the window whose raw rows were dropped, and whose part answers the question."""
        return next(self._days_gone(maker), None) is not None

    def _days_gone(self, maker: PartMaker[Any]) -> Iterator[TickDays]:
        """Days of the window whose raw rows were dropped, and whose parts answer the question."""
        keeper = maker.for_good()
        if keeper is None or self.memory is None or self.resolution is not None:
            return
        since, until = (epoch_us(end) if end else None for end in self.window)
        for day in sorted(self._dropped(keeper)):
            start, path = midnight_us(day), self._kept_at(keeper, day)
            is_whole = (since is None or since <= start) and (until is None or start + DAY_US <= until)
            if is_whole and self.memory.holds(path):
                yield TickDays(self, day, day, tick_day(day, maker.tick_us), 0, path)

    def _dropped(self, keeper: PartMaker[Any]) -> set[date]:
        """Days of which parts are kept and raw rows were dropped; rows that came later are not looked at."""
        assert self.memory is not None
        if not (kept := self.memory.kept_days(keeper.form)):
            return set()
        handles = {table: self.tables.load(table) for table in keeper.tables}
        rows = {table: Snapshot.of(handle).days() for table, handle in handles.items()}
        return {
            day
            for day in kept
            if all(day not in rows[table] or DayMarks(handles[table], DROPPED).of(day) for table in keeper.tables)
        }

    def _kept_at(self, keeper: PartMaker[Any], day: date) -> str:
        assert self.memory is not None
        depends_on = [*self._narrowing(), keeper.depends_on(tick_day(day, keeper.tick_us))]
        return self.memory.path(keeper.form, str(day), depends_on, KEPT)

    def _narrowing(self) -> list[object]:
        return [SCHEMA_VERSION, self.filesystem, list(self.targets), self.source, list(self.source_order)]

    def remembered(self, form: PartForm, depends_on: object, make: Callable[[], Part]) -> Part:
        """From memory where it is there."""
        if self.memory is None or self.memory.fresh:
            return make()
        return self.remembered_at(form, self.memory.path(form, "any", depends_on), make)

    def answer_at(self, form: PartForm, tables: Sequence[str], depends_on: object) -> str | None:
        """Where a whole answer is kept; None where that does not pay, some day is not over, or rows are gone."""
        extent_us = self.extent_us(*tables) if self.resolution is None else None
        if self.memory is None or self.memory.fresh or extent_us is None or extent_us[1] > time.time() * 1e6:
            return None
        files = {table: self.snapshot(table) for table in tables}
        if sum(snapshot.rows for snapshot in files.values()) < FEWEST_ANSWERED or self.memory.keeps_any():
            return None
        rows = [*self._narrowing(), [str(end) for end in self.window], sorted(self.targets_known)]
        rows += self._choices(tables)
        paths = {table: snapshot.paths for table, snapshot in files.items()}
        return self.memory.path(form, "any", [rows, paths, depends_on])

    def remembered_at(self, form: PartForm, path: str | None, make: Callable[[], Part]) -> Part:
        """From memory where it is there; without a place it is made every time."""
        if path is None or self.memory is None:
            return make()
        part: Part | None = self.memory.read(form, path)
        if part is None:
            part = make()
            self.memory.write(form, path, part)
        return part

    def _remembered(self, maker: PartMaker[Part], days: TickDays, path: str | None) -> Part | None:
        """From memory; made and kept again where the entry is damaged or gone. None: so it is, and so are the rows."""
        assert self.memory is not None
        assert path is not None
        part: Part | None = self.memory.read(maker.form, path)
        if part is None and days.kept_at is None:
            part = days.made(maker)
            self.memory.write(maker.form, path, part)
        return part

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
            yield date.fromordinal(EPOCH + int(row["day"])), int(row["rows"])

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
        """Rows of the selection whose interval starts on those days, of one source for each time of a target."""
        self._read.add(table)
        if (first, last) == (date.min, date.max):
            return self._one_source(table, self._rows(table, self.snapshot(table)))
        return self._starting(table, lambda day: first <= day <= last, nw.col("date").is_between(first, last))

    def rows_of_days(self, table: str, days: Collection[date]) -> nw.LazyFrame[Any]:
        """Rows of the selection whose interval starts on one of these days, which need not follow each other."""
        return self._starting(table, lambda day: day in days, nw.col("date").is_in(sorted(days)))

    def _starting(self, table: str, is_wanted: Callable[[date], bool], wanted: nw.Expr) -> nw.LazyFrame[Any]:
        """Rows in the directories of some days; of several sources, decided on with those of days beside."""
        around = -(-self._reach_us(table) // DAY_US)
        if not around:
            return self._one_source(table, self._rows(table, self.snapshot(table).on_days(is_wanted)))
        steps = [timedelta(step) for step in range(-around, around + 1)]
        near = self.snapshot(table).on_days(lambda day: any(is_wanted(day + step) for step in steps))
        return self._one_source(table, self._rows(table, near), wanted)

    def ending(self, table: str, ends: Ends) -> nw.LazyFrame[Any]:
        """Rows of the selection that end then, of one source for each time of a target."""
        self._read.add(table)
        snapshot = self.files_ending(table, ends)
        if snapshot.ends_within(ends.after_us, ends.until_us):
            return self._one_source(table, self._rows(table, snapshot))
        return self._one_source(table, self._rows(table, snapshot), ends.holds())

    def files_ending(self, table: str, ends: Ends) -> Snapshot:
        """The files that decide on the rows that end then."""
        beside = self._reach_us(table)
        return self.snapshot(table).ending(ends.after_us - beside, ends.until_us + beside)

    def _reach_us(self, table: str) -> int:
        """How far from a row those may end that decide on whether it counts: one may hide another that hides it."""
        sources = self.sources(table) if self.source is None else []
        if len(sources) < 2 or declared(table).kind != "interval":
            return 0 if len(sources) < 2 else READINGS_APART_US
        longest_s = self.snapshot(table).extreme("duration_s", "max")
        longest_us = LONGEST_US if longest_s is None else round(longest_s * 1e6) + READINGS_APART_US
        return (len(sources) - 1) * longest_us

    def _choices(self, tables: Iterable[str]) -> list[object]:
        """By what order rows of several sources were chosen, where there are several."""
        orders = {} if self.source is not None else {table: self.sources(table) for table in tables}
        several = {table: sources for table, sources in orders.items() if len(sources) > 1}
        return [{"sources by interval": several}] if several else []

    def _rows(self, table: str, snapshot: Snapshot) -> nw.LazyFrame[Any]:
        """Rows of the snapshot's files that belong to the selection, from all sources."""
        frame = self.engine.scan(self.tables, self._name(table), snapshot.paths)
        for condition in self._conditions(table, snapshot):
            frame = frame.filter(condition)
        return self._in_one_zone(table, _newest(table, frame), snapshot)

    def _in_one_zone(self, table: str, frame: nw.LazyFrame[Any], snapshot: Snapshot) -> nw.LazyFrame[Any]:
        """Records of jobs without those that were loaded again with another zone."""
        first, last = snapshot.extreme("start", "min"), snapshot.extreme("time", "max")
        if table != JOBS.name or first is None or last is None:
            return frame
        superseded = superseded_jobs(self.tables, epoch_us(first), epoch_us(last))
        if not superseded.num_rows:
            return frame
        of_cluster = frame.with_columns(nw.coalesce("cluster", nw.lit("")).alias("_cluster"))
        names = superseded.column_names
        return of_cluster.join(self.engine.frame(superseded), on=names, how="anti").drop("_cluster")

    def records_between(self, table: str, first_us: int, last_us: int) -> nw.LazyFrame[Any]:
        """Every row that overlaps that time, whenever it began and whichever file system and source it names.

        Rows with one key are all there: `Table.newest_by` is left to the caller.
        """
        snapshot = Snapshot.of(self.tables.load(table)).overlapping(first_us, last_us)
        frame = self._in_one_zone(table, self.engine.scan(self.tables, table, snapshot.paths), snapshot)
        return frame.filter(nw.col("start_us") <= last_us, nw.col("epoch_us") >= first_us)

    def beside(self, rows: pa.Table) -> nw.LazyFrame[Any]:
        """Rows of this process as a frame of the same engine, to be joined with those of tables."""
        return self.engine.frame(rows)

    def between(self, first_us: int, last_us: int) -> StoreSelection:
        """The same rows of another window."""
        return self.another(window=(from_epoch_us(first_us), from_epoch_us(last_us)))

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

    def filled_columns(self, table: str, names: Sequence[str], ends: Ends) -> list[str] | None:
        """By the log's statistics, where they are of the rows that end then alone, and those are of one kind."""
        snapshot = self.files_ending(table, ends)
        kinds = [column.name for column in declared(table).columns if column.name == "target_kind"]
        is_mixed = any(snapshot.single_value(name) is None for name in kinds)
        return (
            None
            if is_mixed
            or not snapshot.ends_within(ends.after_us, ends.until_us)
            or next(self._conditions(table, snapshot), None) is not None
            else snapshot.ever_filled(names)
        )

    def columns(self, table: str, names: Sequence[str], kind: str, ends: Ends) -> pa.Table | None:
        """Those of rows that end then, where the log proves that all rows of the files are of one kind and source."""
        snapshot = self.files_ending(table, ends)
        is_plain = (
            self.tables.is_local
            and declared(table).newest_by is None
            and len(self.sources(table)) == 1
            and snapshot.single_value("target_kind") == kind
            and next(self._conditions(table, snapshot), None) is None
        )
        if not is_plain:
            return None
        root, is_whole = self.tables.uri(self._name(table)), snapshot.ends_within(ends.after_us, ends.until_us)
        try:
            paths = (f"{root}/{path}" for path in snapshot.paths)
            return plain_columns(paths, names, None if is_whole else ends)
        except (pa.ArrowException, OSError) as error:
            raise unreadable(root, error) from error

    def known_targets(self) -> set[str]:
        """Targets that any batch of this store ever brought for the file system."""
        return {target for target in self.targets_known if not self.targets or target in self.targets}

    def last_counters(self, table: str) -> list[LastCounters]:
        """By the baselines; of a target that several sources read, those that were read last."""
        since, until = (epoch_us(end) if end else None for end in self.window)
        return [
            last
            for last in last_counters(self.tables, self.filesystem, table)
            if (not self.targets or last.target in self.targets)
            and self.source in (None, last.source)
            and (since is None or since <= last.time_us)
            and (until is None or last.time_us < until)
        ]

    def target_servers(self) -> TargetServers:
        """By the configuration, else by the small table of what was seen; no row of an interval is read."""
        return self.once("target_servers", self._find_servers)

    def _find_servers(self) -> TargetServers:
        handle = self.tables.load("target_servers")
        extents = (self.extent_us(table) for table in self._made_of("target_io", "metadata_ops"))
        extent_us = next((extent for extent in extents if extent is not None), None) if handle is not None else None
        seen = [] if handle is None or extent_us is None else self._seen_servers(handle, extent_us[1])
        return servers_in_window(seen, extent_us or (0, 0), self.servers, self.known_targets(), self.source_order)

    def _seen_servers(self, handle: DeltaTable, until_us: int) -> list[SeenServer]:
        """Rows up to a time, also of before the window: the last of them tells who served when it began.

        Of a target that never moved its first row is enough.
        """
        snapshot = Snapshot.of(handle).with_value("filesystem", self.filesystem)
        frame = self.engine.scan(self.tables, "target_servers", snapshot.paths)
        frame = frame.filter(nw.col("filesystem") == self.filesystem, nw.col("epoch_us") < until_us)
        if self.source is not None:
            frame = frame.filter(nw.col("source") == self.source)
        if self.targets:
            frame = frame.filter(nw.col("target").is_in(list(self.targets)))
        firsts = _seen(frame.group_by("target", "source", "host").agg(nw.col("epoch_us").min()))
        hosts = Counter((row.target, row.source) for row in firsts)
        moved = {target for (target, _), count in hosts.items() if count > 1}
        if not moved:
            return firsts
        return [row for row in firsts if row.target not in moved] + _seen(frame.filter(nw.col("target").is_in(moved)))

    def days(self, *tables: str) -> set[date]:
        """Days of the window on which any of the tables has rows, by the log; a rollup that was not made has none."""
        return {day for table in self._made_of(*tables) for day in self.snapshot(table).days()}

    def _made_of(self, *tables: str) -> list[str]:
        """Those tables that are there at this resolution."""
        return [
            table for table in tables if self._name(table) == table or self.tables.load(self._name(table)) is not None
        ]

    def sources(self, table: str) -> list[str]:
        """The one source if the log proves it, else by asking; the configured ones first, then the finer ones."""
        if table not in self._sources:
            self._sources[table] = self._find_sources(table)
        return self._sources[table]

    def holds(self, table: str, column: str | None = None, values: Sequence[str] = ()) -> bool:
        """By the log where it proves that there is any or none, else by asking for one row, of whichever source."""
        snapshot = self.snapshot(table)
        proven = snapshot.only_value("filesystem", self.filesystem) if self.filesystem and column is None else None
        if proven is not None and proven.rows and next(self._conditions(table, proven), None) is None:
            return True
        only = snapshot.single_value(column) if column is not None else None
        if not snapshot.paths or (only is not None and only not in values):
            return False
        return any_row(self._rows(table, snapshot), column, values)

    def _find_sources(self, table: str) -> list[str]:
        snapshot = self.snapshot(table)
        if not snapshot.paths:
            return []
        if (single := snapshot.single_value("source")) is not None:
            return [single]
        known = by_resolution(self._rows(table, snapshot), is_interval=declared(table).kind == "interval")
        return configured_first(known, self.source_order)

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
        """Rows that count where sources overlap; of them, those that are wanted."""
        chosen = self._with_choice(table, frame)
        if chosen is None:
            return frame if wanted is None else frame.filter(wanted)
        chosen = chosen if wanted is None else chosen.filter(wanted)
        return chosen.filter(nw.col("_counts")).drop("_counts")

    def _with_choice(self, table: str, frame: nw.LazyFrame[Any]) -> nw.LazyFrame[Any] | None:
        """Rows with `_counts`, for each target, or node of clients; None where all count.

        What a job moved on a node, from its begin to its end, is no overlap with the intervals of that node.
        """
        sources = self.sources(table) if self.source is None else []
        subject, is_interval = declared(table).subject, declared(table).kind == "interval"
        form: RowForm = ("buckets" if self.resolution else "intervals") if is_interval else "readings"
        if len(sources) < 2 or subject not in declared(table).key:
            return None
        apart = (subject, "job_id") if subject == "node" else (subject,)
        return marked(frame, sources, apart, form)


def _seen(frame: nw.LazyFrame[Any]) -> list[SeenServer]:
    rows = frame.select("target", "source", "epoch_us", "host").collect(backend="pyarrow").to_native()
    return list(map(SeenServer, *(rows.column(name).to_pylist() for name in rows.column_names)))


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
    for name in (column, declared(table).loaded_by):
        if name is not None:
            rank = nw.when(nw.col(name).is_null()).then(nw.lit(-1)).otherwise(nw.col(name).cast(nw.Int64()))
            ranked = frame.with_columns(rank.alias("_rank"))
            ranked = ranked.with_columns(nw.col("_rank").max().over(*declared(table).key).alias("_best"))
            frame = ranked.filter(nw.col("_rank") == nw.col("_best")).drop("_rank", "_best")
    return frame
