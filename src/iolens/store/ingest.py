"""Captures in, rows of the store out; thousands of small ones are gathered into one."""

from __future__ import annotations

import gc
import json
import os
import uuid
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import partial
from itertools import count
from typing import Final

import numpy as np
import pyarrow as pa
from deltalake import DeltaTable, Transaction
from numpy.typing import NDArray

from iolens.counters.ceilings import RateCeilings
from iolens.open_files import release
from iolens.records import Capture, RowMark, Rows, Samples
from iolens.schema import BATCHES, TABLES, Table
from iolens.store.baselines import BaselineBook
from iolens.store.gate import AHEAD_US, Gate
from iolens.store.ledger import LATE_SCHEMA, UNDONE, known_ticks, known_values, new_rows, renewed, row_hashes
from iolens.store.placing import Late
from iolens.store.readers import CaptureItems, listed, read_ahead
from iolens.store.rebuild import Rebuilt, rebuild_table
from iolens.store.rows import having, to_arrow, with_constant
from iolens.store.tables import PARTS_PER_SEQUENCE, BatchPart, Tables, arrow_schema, retrying
from iolens.store.tally import Tally as Tally
from iolens.store.units import Unit, in_order
from iolens.visible_text import counted

# Small captures gathered into one -------------------------------------------------------------------------------------
# Thousands of logs would otherwise be a unit of the store each, with all its cost.
#
# Each is looked for by its own row before, so that what the store has is left out however captures are gathered. The
# row is written after all others of its capture: where a load broke off, the rows that are there already are dropped by
# key.

MOST: Final = 512  # captures in one
LARGEST_BYTES: Final = 1 << 20  # a larger file is read alone
MOST_BYTES: Final = 8 << 20  # of all files in one


def gathered(
    captures: Iterable[Capture], is_wanted: Callable[[Capture], bool], unwanted: Callable[[Capture], None]
) -> Iterator[Capture]:
    """The captures in order, with small ones that can be read together as one; `unwanted` hears of those left out."""
    members: list[Capture] = []
    total = 0
    for capture in captures:
        size = None if capture.together is None else _small_size(capture)
        if members and (size is None or capture.together is not members[0].together or total + size > MOST_BYTES):
            yield _combined(members)
            members, total = [], 0
        if size is None:
            yield capture
            continue
        release(capture.origin)  # whoever reads them together opens them again
        if not is_wanted(capture):
            unwanted(capture)
            continue
        members.append(capture)
        total += size
        if len(members) == MOST:
            yield _combined(members)
            members, total = [], 0
    if members:
        yield _combined(members)


def _small_size(capture: Capture) -> int | None:
    try:
        size = os.stat(capture.origin).st_size  # noqa: PTH116 (for each of many thousands)
    except OSError:
        return None
    return size if size <= LARGEST_BYTES else None


def _combined(members: list[Capture]) -> Capture:
    together = members[0].together
    assert together is not None
    others = f" and {counted(len(members) - 1, 'more file')}" if len(members) > 1 else ""
    names = [(capture.origin, "" if capture.row is None else capture.row.value) for capture in members]
    items = partial(together, names)
    return Capture(f"{members[0].origin}{others}", f"gathered/{uuid.uuid4()}", items, members=tuple(members))


# Captures in, rows of the store out -----------------------------------------------------------------------------------
# Difference counters, drop what is present, append, and keep the books.
#
# The order makes a crash at any time harmless: claim the baselines, append to each table, write `batches` last. A
# re-send finds what it claimed, computes the same rows and completes what is missing.

ITEMS_PER_PART: Final = 20_000
OBJECTS_PER_COLLECTION: Final = 100_000
ROWS_PER_ITEM: Final = 12  # a dozen rows in columns take about the memory of a single one
REBUILD: Final = "rebuild"  # what the identity of a capture that is taken again begins with


@contextmanager
def _rare_collections() -> Iterator[None]:
    """Python's search for cycles goes through all that is held; counters of many jobs are a million objects."""
    before = gc.get_threshold()
    gc.set_threshold(max(before[0], OBJECTS_PER_COLLECTION) if before[0] else 0, *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)


@_rare_collections()
def ingest(
    tables: Tables,
    captures: Iterable[Capture],
    source: str,
    *,
    rebuild: bool = False,
    progress: Callable[[Capture], None] | None = None,
    workers: int = 1,
    ceilings: RateCeilings | None = None,
    stored: Callable[[Capture, Tally], None] | None = None,
    now_us: Callable[[], int] | None = None,
) -> Tally:
    """Load captures; the same capture twice adds nothing. With several `workers` many captures are parsed at once.

    `stored` is called for each piece of a capture that is in the tables now, with what became of it. What is later
    than `now_us`, the clock, and ten minutes is refused.

    With `rebuild`, samples that came too late are fitted between the stored ones, also those of captures that the
    store has; see `store/rebuild.py`.
    """
    loader = _Loader(tables, source, ceilings or RateCeilings(), now_us or _now_us, rebuild=rebuild, stored=stored)

    def is_known(capture: Capture) -> None:
        loader.total.captures += 1
        loader.total.already_present += 1
        if progress is not None:
            progress(capture)

    named = (renewed(capture, loader.batches) if loader.has_undone else capture for capture in listed(captures))
    for reading in read_ahead(gathered(named, loader.is_wanted, is_known), loader.is_wanted, workers):
        members = reading.capture.members or (reading.capture,)
        loader.total.captures += len(members)
        if reading.items is None:
            loader.total.already_present += 1
        else:
            for unit in _parts(reading, present=rebuild and loader.is_present(reading.capture)):
                unit.loaded_us = loader.began_us
                loader.group.append(unit)
                if sum(part.weight for part in loader.group) >= ITEMS_PER_PART or not unit.last:
                    loader.load()
        if progress is not None:
            for member in members:
                progress(member)
    loader.load()
    return loader.total


class _Loader:
    """One call of `ingest`."""

    def __init__(
        self,
        tables: Tables,
        source: str,
        ceilings: RateCeilings,
        now_us: Callable[[], int],
        *,
        rebuild: bool,
        stored: Callable[[Capture, Tally], None] | None = None,
    ) -> None:
        self.tables, self.source, self.ceilings, self.rebuild = tables, source, ceilings, rebuild
        self.stored, self.now_us = stored, now_us
        self.latest_us = 0  # of times in the group that is written
        self.total = Tally()
        self.began_us = _now_us()
        self.group: list[Unit] = []  # what is written next, together
        self.batches = tables.load("batches")  # as they were before
        self.has_undone = self.batches is not None and bool(self.batches.transaction_version(UNDONE))
        self._taken: set[BatchPart] = set()
        self._known_values: dict[tuple[str, str], NDArray[np.bytes_]] = {}  # of columns that captures are known by

    def is_present(self, capture: Capture) -> bool:
        """Whether the store had all of it before."""
        if capture.row is not None:
            return self._has_row(capture.row)
        return self.batches is not None and BatchPart(_complete(capture), capture.sequence).is_in(self.batches)

    def is_wanted(self, capture: Capture) -> bool:
        """A capture another writer completes meanwhile is noticed when its parts are appended."""
        if capture.members:
            return True  # each was looked for before
        whole = BatchPart(_complete(capture), capture.sequence)
        is_known = whole in self._taken or (self.is_present(capture) and not self.rebuild)
        self._taken.add(whole)
        return not is_known

    def _has_row(self, mark: RowMark) -> bool:
        """Whether there was a row before that stands for a capture."""
        column = (mark.table, mark.column)
        if column not in self._known_values:
            self._known_values[column] = known_values(self.tables, self.tables.load(mark.table), mark)
        values = self._known_values[column]
        if not len(values):
            return False
        value = mark.value.encode()
        place = int(np.searchsorted(values, np.bytes_(value)))
        return place < len(values) and bool(values[place] == value)

    def load(self) -> None:
        """Write the group of units: one commit per table, each unit exactly once."""
        group = self.group = in_order(self.group)
        if not group:
            return
        self.latest_us = self.now_us() + AHEAD_US
        written = {"baselines": retrying(self._claim, "claim baselines")}
        for name in sorted(set().union(*(unit.tables() for unit in group))):
            if any(name in unit.rows.columns or len(unit.offered(name, self.rebuild)) for unit in group):
                written[name] = retrying(partial(self._append, name), f"append to {name}")
        rebuilt = self._rebuild() if self.rebuild else {}
        if not self.rebuild:
            self._settle_late()
        self._record(written, rebuilt)
        for unit in group:
            self.total.add(unit.tally)
            if self.stored is not None:
                self.stored(unit.capture, unit.tally)
        self.group = []

    def _claim(self) -> list[str]:
        """Difference every unit against the baselines and take the next position of each target it moved."""
        targets = set().union(*(unit.targets() for unit in self.group))
        book = BaselineBook.open(self.tables, self.source, targets) if targets else None
        fresh = []
        for unit in self.group:
            if book is None:
                unit.apply({}, self.source, self.ceilings, self.latest_us)
            elif unit.part.is_in(book.handle):
                unit.apply(book.before(unit.part, unit.targets()), self.source, self.ceilings, self.latest_us)
            else:
                unit.apply(book.current, self.source, self.ceilings, self.latest_us)
                book.add(unit.part, unit.touched)
                fresh.append(unit.part)
        return book.claim(fresh) if book is not None else []

    def _append(self, name: str) -> list[str]:
        """The rows of those units that the table does not have yet, in one commit; paths of the files written."""
        table = TABLES[name]
        handle = self.tables.load_or_create(name, table)
        todo = [unit for unit in self.group if not unit.part.is_in(handle)]
        bringing = {unit.part: rows for unit in todo if len(rows := unit.offered(name, self.rebuild))}
        kept = self._new_of_each(handle, table, bringing)
        parts = [arrow_schema(table).empty_table()]
        for unit in self.group:
            own, offered = unit.rows.columns.get(name, []), unit.offered(name, self.rebuild)
            new = kept.get(unit.part)
            unit.written[name] = sum(map(len, own)) + (len(offered) if new is None else new.num_rows)
            unit.dropped[name] = 0 if new is None else len(offered) - new.num_rows
            if table.kind != "interval" and unit.written[name]:
                unit.hashes[name] = row_hashes(table, offered if new is None else new)
        for unit in todo:
            parts += unit.rows.columns.get(name, [])
            parts += [kept[unit.part]] if unit.part in kept else []
        rows = pa.concat_tables(parts)
        if not rows.num_rows:
            return []
        marks = self._guards(handle, table, bringing.values())
        return self.tables.commit(handle, name, rows, [unit.part for unit in todo], marks)

    def _new_of_each(
        self, handle: DeltaTable, table: Table, bringing: Mapping[BatchPart, pa.Table]
    ) -> dict[BatchPart, pa.Table]:
        """Finished rows of each unit that neither the table nor an earlier unit has."""
        if not bringing:
            return {}
        offered = [with_constant(rows, "_unit", number) for number, rows in enumerate(bringing.values())]
        new = new_rows(self.tables, handle, table, pa.concat_tables(offered))
        if new.num_rows == sum(map(len, offered)):
            return dict(bringing)
        return {part: having(new, "_unit", number) for number, part in enumerate(bringing)}

    def _guards(self, handle: DeltaTable, table: Table, brought: Iterable[pa.Table]) -> list[Transaction]:
        """Marks that let only one of two racing writers of finished rows through; the other looks again.

        Where a key names no source, such as that of a job, rows of any source may be the same.
        """
        if "source" not in table.key:
            return [Transaction("rows", handle.version() + 1)] if list(brought) else []
        marks: set[str] = set()
        for rows in brought:
            named = rows.select(["source", "filesystem"]).group_by(["source", "filesystem"]).aggregate([]).to_pylist()
            marks.update(f"rows/{pair['source']}/{pair['filesystem']}" for pair in named)
        return [Transaction(mark, handle.version() + 1) for mark in sorted(marks)]

    def _rebuild(self) -> dict[str, Rebuilt]:
        """Fit what came too late into each table."""
        rebuilt = {}
        part = BatchPart(f"{REBUILD}/{uuid.uuid4()}", 1)
        own = frozenset((unit.part.identity, unit.part.part) for unit in self.group)
        for name in sorted({name for unit in self.group for name in (*unit.late, *unit.finished.columns)}):
            late = [(unit, sample) for unit in self.group for sample in unit.late.get(name, [])]
            finished = [part for unit in self.group for part in unit.finished.columns.get(name, [])]
            if TABLES[name].kind != "interval" or not (late or finished):
                continue
            rows = pa.concat_tables([arrow_schema(TABLES[name]).empty_table(), *finished])
            samples = [Late(sample, unit.capture) for unit, sample in late]
            refusals = Tally()
            gate = Gate(self.group[0].capture.origin, refusals.refuse, self.ceilings, self.latest_us)
            attempt = partial(rebuild_table, self.tables, name, self.source, samples, rows, gate, part, own)
            done = rebuilt[name] = retrying(attempt, f"rebuild {name}")
            for (unit, _), fate in zip(late, done.fates, strict=True):
                setattr(unit.tally, fate.value, getattr(unit.tally, fate.value) + 1)
            self.total.rows[name] += done.added
            self.total.repeated += done.repeated
            self.total.unplaced += done.unplaced
        return rebuilt

    def _settle_late(self) -> None:
        """Tell samples that the store has from samples that came too late."""
        for name in {name for unit in self.group for name in unit.late}:
            late = [
                (sample.filesystem, sample.target, sample.time_us, number)
                for number, unit in enumerate(self.group)
                for sample in unit.late.get(name, [])
            ]
            table = pa.table([pa.array(column) for column in zip(*late, strict=True)], schema=LATE_SCHEMA)
            handle = self.tables.load(name)
            known = {} if handle is None else known_ticks(self.tables, handle, name, self.source, table)
            for number, unit in enumerate(self.group):
                unit.tally.repeated += known.get(number, 0)
                unit.tally.older += len(unit.late.get(name, [])) - known.get(number, 0)

    def _record(self, written: dict[str, list[str]], rebuilt: dict[str, Rebuilt]) -> None:
        """The last step: what was ingested, with the checksum of every file it became."""
        for unit in self.group:
            unit.tally.rows = Counter({name: count for name, count in unit.written.items() if count})
            unit.tally.repeated += sum(unit.dropped.values())
        checksums = self.tables.checksums(written)
        booked = to_arrow(BATCHES, [self._batch_row(unit, checksums) for unit in self.group])
        rows = {unit.part: booked.slice(number, 1) for number, unit in enumerate(self.group)}
        if any(done.files for done in rebuilt.values()):
            part = next(done.part for done in rebuilt.values())
            rows[part] = to_arrow(BATCHES, [self._rebuild_row(part, rebuilt)])
        done = [
            Transaction(_complete(unit.capture), unit.capture.sequence)
            for unit in self.group
            if unit.last and not unit.is_empty and not unit.present
        ]
        if not self.tables.append("batches", rows, done) and checksums:  # another sender of the same was faster
            note = {"batch": f"resent/{uuid.uuid4()}", "part": 1, "time": _now_us(), "source": self.source}
            row = to_arrow(BATCHES, [{**note, "checksums": json.dumps(checksums, sort_keys=True)}])  # files are ours
            self.tables.append("batches", {BatchPart(str(note["batch"]), 1): row})

    def _rebuild_row(self, part: BatchPart, rebuilt: dict[str, Rebuilt]) -> dict[str, object]:
        """What was exchanged; `rows_by_table` may be negative, so that it adds up over all batches."""
        checksums = self.tables.checksums({name: done.files for name, done in rebuilt.items()})
        return {
            "batch": part.identity,
            "part": part.part,
            "time": _now_us(),
            "source": self.source,
            "origin": _in_utf8(self.group[0].capture.origin),
            "filesystems": json.dumps({}),
            "rows": sum(done.added for done in rebuilt.values()),
            "rows_by_table": json.dumps({name: done.added - done.removed for name, done in rebuilt.items()}),
            "checksums": json.dumps(checksums, sort_keys=True),
        }

    def _batch_row(self, unit: Unit, checksums: dict[str, dict[str, str]]) -> dict[str, object]:
        seen, first, last = unit.extent()
        tally = unit.tally
        return {
            "batch": unit.part.identity,
            "part": unit.part.part,
            "time": _now_us(),
            "source": self.source,
            "origin": _in_utf8(unit.capture.origin),
            "filesystems": json.dumps({name: sorted(targets) for name, targets in sorted(seen.items())}),
            "first_time": first,
            "last_time": last,
            "samples": tally.samples,
            "rows": sum(tally.rows.values()),
            "rows_by_table": json.dumps(dict(tally.rows), sort_keys=True),
            "baselines": tally.baselines,
            "repeated": tally.repeated,
            "older": tally.older + tally.unplaced,
            "resets": tally.resets,
            "glitches": tally.glitches,
            "set_back": tally.set_back,
            "refused": tally.refused,
            "problems": json.dumps(list(map(_in_utf8, map(str, (*tally.problems, *tally.notes)))), ensure_ascii=False),
            "checksums": json.dumps(checksums, sort_keys=True),
            "row_hashes": json.dumps({name: text for name, text in sorted(unit.hashes.items()) if text}),
        }


def _parts(reading: CaptureItems, *, present: bool) -> Iterator[Unit]:
    """The units of one capture, each small enough to hold; where it is cut depends on the items alone.

    Those of a capture that is taken again have an identity of their own.
    """
    capture = reading.capture
    identity = f"{REBUILD}/{capture.identity}" if present else capture.identity
    numbers = count(capture.sequence * PARTS_PER_SEQUENCE + 1)
    unit = Unit(capture, BatchPart(identity, next(numbers)), present=present)
    for item in reading.items or ():
        if unit.weight >= ITEMS_PER_PART:
            yield unit
            unit = Unit(capture, BatchPart(identity, next(numbers)), present=present)
        unit.items.append(item)
        unit.weight += 1 + (len(item) // ROWS_PER_ITEM if isinstance(item, Rows | Samples) else 0)
    unit.last = True
    yield unit


def _complete(capture: Capture) -> str:
    return f"{capture.identity}/complete"


def _now_us() -> int:
    return int(datetime.now(UTC).timestamp() * 1e6)


def _in_utf8(text: str) -> str:
    """A path may hold bytes that are no text: they are written as they would be escaped."""
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
