"""Copies a store under pseudonyms, table by table: the same rows on the same days, in files and books of its own.

The copy is made beside its place, under a hidden name, and put there when it is complete and searched. Memory grows
with the number of different names and with the rows of a day, which are sorted, not with the number of days.
"""

from __future__ import annotations

import json
import os
import shutil
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable, Transaction

from iolens.api.anonymize.leaks import Leak, NameSearch
from iolens.api.anonymize.pseudonyms import NOT_COPIED, Pseudonyms, Treatment, treatments_of
from iolens.columns import Table
from iolens.errors import StoreError, UsageError
from iolens.schema import BATCHES, TABLES
from iolens.store.data_files import ROWS_PER_GROUP, DataFile, with_dates
from iolens.store.duckdb_engine import relation
from iolens.store.durable import replace_file, sync_directory
from iolens.store.log_reader import DeltaLogReader
from iolens.store.part_memory import FOLDER, KEPT, PartMemory
from iolens.store.rebuild import REBUILT
from iolens.store.rows import to_arrow
from iolens.store.snapshot import DROPPED, Snapshot
from iolens.store.store import Store
from iolens.store.tables import BatchPart, Tables, arrow_schema, declared, unreadable
from iolens.store.verification import table_names

Step = Callable[[str], None]


@dataclass(slots=True)
class AnonymizedCopy:
    """What was copied, what was left out, and what a search for the replaced names came upon."""

    rows: dict[str, int] = field(default_factory=dict)  # by table
    names: int = 0  # different ones that were replaced
    left_out: list[str] = field(default_factory=list)
    searched: bool = False
    leaks: list[Leak] = field(default_factory=list)
    ordinary: list[str] = field(default_factory=list)  # names that are words of iolens too, and were not searched for
    remaining: list[Leak] = field(default_factory=list)  # parts of paths and programs that a kept column has as a word


def anonymize_store(
    source: Store,
    destination: str | Path,
    key: bytes,
    *,
    jobid_names: Mapping[str, str] | None = None,
    search: bool = True,
    step: Step = lambda label: None,
) -> AnonymizedCopy:
    """Copy a store to a directory that does not exist yet; where the search comes upon a name, there is no copy."""
    source.check_that_it_exists()
    place = _free_place(source.tables, str(destination))
    for table in TABLES.values():
        if table.name not in NOT_COPIED:
            treatments_of(table)
    pseudonyms, done = Pseudonyms(key, jobid_names), AnonymizedCopy()
    with _made_beside(place) as (folder, keep):
        _copy_tables(source.tables, Tables(str(folder)), pseudonyms, done, step)
        _forget_location(folder)
        done.left_out += _left_out(source.tables)
        done.names = len(pseudonyms.replaced)
        if search:
            searched = NameSearch(pseudonyms.replaced)
            searched.search(folder, step)
            done.searched, done.leaks = True, searched.leaks
            done.ordinary, done.remaining = searched.ordinary, searched.remaining
        if not done.leaks:
            keep()
    return done


def _free_place(source: Tables, destination: str) -> Path:
    """Where the copy goes: a directory that is not there yet, on this machine and outside the original."""
    if "://" in destination:
        raise UsageError(f"{destination}: a copy is made in a directory of this machine; send it on from there")
    place = Path(destination).absolute()
    if place.exists() or place.is_symlink():
        raise UsageError(f"{destination} exists already; a copy is made where nothing is")
    if source.is_local and place.is_relative_to(source.folder):
        raise UsageError(f"{destination} is inside the original; a copy is made beside it")
    return place


@contextmanager
def _made_beside(destination: Path) -> Iterator[tuple[Path, Callable[[], None]]]:
    """A hidden directory that takes the place of `destination` when it is to be kept, and else is removed."""
    beside = destination.with_name(f".{destination.name}.{os.getpid()}.unfinished")
    try:
        beside.mkdir(parents=True)

        def keep() -> None:
            if destination.exists():
                raise UsageError(f"{destination} came to be meanwhile; nothing was copied")
            beside.rename(destination)
            sync_directory(beside.parent)

        yield beside, keep
    except OSError as error:
        raise StoreError(f"{destination} cannot be made: {error}") from error
    finally:
        shutil.rmtree(beside, ignore_errors=True)


def _copy_tables(source: Tables, copy: Tables, pseudonyms: Pseudonyms, done: AnonymizedCopy, step: Step) -> None:
    """Every table but the books, which come last and say what was written of the others."""
    part = BatchPart(f"anonymize/{uuid.uuid4()}", 1)
    written: dict[str, list[str]] = {}
    for name in sorted(table_names(), key=lambda name: name == BATCHES.name):
        handle = source.load(name)
        if handle is None or declared(name).name in NOT_COPIED:
            continue
        column_maker = ColumnMaker(declared(name), pseudonyms)
        try:
            files = list(_written_files(source, copy, name, handle, column_maker, step))
        except duckdb.Error as error:
            raise unreadable(source.uri(name), error) from error
        marks = [] if name == BATCHES.name else [part.transaction, *_day_marks(source, name)]
        written[name] = copy.put(copy.load_or_create(name, declared(name)), name, files, marks=marks)
        done.rows[name] = sum(file.rows for file in files)
        if done.rows[name] != Snapshot.of(handle).rows:
            raise StoreError(f"{source.uri(name)}: {done.rows[name]} rows were read, and its log says another number")
    _note(copy, part, {name: paths for name, paths in written.items() if name != BATCHES.name}, done)


def _note(copy: Tables, part: BatchPart, written: Mapping[str, Sequence[str]], done: AnonymizedCopy) -> None:
    """The files of the copy in its own books, so that `store verify` can check them."""
    row = {
        "batch": part.identity,
        "part": part.part,
        "time": int(datetime.now(UTC).timestamp() * 1e6),
        "source": "anonymize",
        "filesystems": "{}",
        "rows": sum(done.rows[name] for name in written),
        "rows_by_table": json.dumps({name: done.rows[name] for name in written if done.rows[name]}),
        "checksums": json.dumps(copy.checksums(written), sort_keys=True),
        "replaced": "{}",
    }
    copy.append(BATCHES.name, {part: to_arrow(BATCHES, [row])})


def _forget_location(folder: Path) -> None:
    """Take out of the logs where the copy was made: delta-rs writes that into the first entry of each."""
    for path in folder.rglob(f"_delta_log/{0:020}.json"):
        actions = [json.loads(line) for line in path.read_bytes().splitlines()]
        for action in actions:
            action.get("commitInfo", {}).pop("operationParameters", None)
        replace_file(path, "".join(f"{json.dumps(action)}\n" for action in actions).encode())


def _day_marks(source: Tables, name: str) -> list[Transaction]:
    """Which days have only rollups, and which were rebuilt since: a rollup of the copy depends on it."""
    marks = DeltaLogReader(source, name).marks.items()
    return [Transaction(mark, version) for mark, version in marks if mark.partition("/")[0] in (DROPPED, REBUILT)]


def _written_files(
    source: Tables, copy: Tables, name: str, handle: DeltaTable, column_maker: ColumnMaker, step: Step
) -> Iterator[DataFile]:
    """Data files of the copy, a day at a time."""
    copy.load_or_create(name, declared(name))
    snapshot = Snapshot.of(handle)
    if declared(name).partitioned and not snapshot.is_cut:  # of 0.1
        rows = with_dates(handle, declared(name), arrow_schema(declared(name)))
        yield from copy.write(name, column_maker.reader(rows))
        step(name)
        return
    for day in snapshot.days() or (None,):
        paths = snapshot.paths if day is None else snapshot.on_days(day.__eq__).paths
        yield from copy.write(name, column_maker.reader(_in_time_order(source, name, paths)))
        step(name if day is None else f"{name} {day}")


def _in_time_order(source: Tables, name: str, paths: Sequence[str]) -> pa.RecordBatchReader:
    columns, order = (", ".join(f'"{column}"' for column in some)
                      for some in (arrow_schema(declared(name)).names, _key(declared(name))))  # fmt: skip
    return relation(source, name, paths).project(columns).order(order).to_arrow_reader(ROWS_PER_GROUP)


def _key(table: Table) -> list[str]:
    names = {column.name for column in table.columns}
    return [name for name in dict.fromkeys(("time", *table.key)) if name in names]


class ColumnMaker:
    """Makes the columns of the copy, of one table, out of those of the original."""

    def __init__(self, table: Table, pseudonyms: Pseudonyms) -> None:
        self.table, self.pseudonyms = table, pseudonyms
        self.treatments = {
            name: treatment for name, treatment in treatments_of(table).items() if treatment is not Treatment.KEPT
        }

    def reader(self, rows: pa.RecordBatchReader) -> pa.RecordBatchReader:
        """A piece at a time; within a piece rows are in the order of time and of their new names."""
        schema = arrow_schema(self.table)

        def pieces() -> Iterator[pa.RecordBatch]:
            with rows:
                for batch in rows:
                    if batch.num_rows:
                        yield from self.made(pa.Table.from_batches([batch]).cast(schema)).to_batches()

        return pa.RecordBatchReader.from_batches(schema, pieces())

    def made(self, rows: pa.Table) -> pa.Table:
        """The same rows under pseudonyms."""
        result = rows
        for name, treatment in self.treatments.items():
            place = rows.schema.get_field_index(name)
            result = result.set_column(place, rows.schema.field(place), self._column(rows, name, treatment))
        if "target" in self.treatments and "filesystem" in rows.column_names:
            place = rows.schema.get_field_index("target")
            is_whole = pc.fill_null(pc.equal(rows.column("target"), rows.column("filesystem")), False)
            chosen = pc.if_else(is_whole, result.column("filesystem"), result.column("target"))
            result = result.set_column(place, rows.schema.field(place), chosen)
        return result.sort_by([(name, "ascending") for name in _key(self.table)]).combine_chunks()

    def _column(self, rows: pa.Table, name: str, treatment: Treatment) -> pa.ChunkedArray:
        values = rows.column(name)
        if values.type == pa.int64():
            return _mapped(values, lambda value: self.pseudonyms.number(treatment, value))
        result = _mapped(values, self.pseudonyms.text_function(treatment))
        if treatment is Treatment.JOB and "filesystem" in rows.column_names:
            for filesystem in self.pseudonyms.configured.intersection(pc.unique(rows.column("filesystem")).to_pylist()):
                of_form = _mapped(values, self.pseudonyms.text_function(treatment, filesystem))
                is_there = pc.fill_null(pc.equal(rows.column("filesystem"), filesystem), False)
                result = pc.if_else(is_there, of_form, result)
        return result


def _mapped(values: pa.ChunkedArray, function: Callable[[Any], Any]) -> pa.ChunkedArray:
    """Each different value once through the function."""
    encoded = values.combine_chunks().dictionary_encode()
    made = pa.array([function(value) for value in encoded.dictionary.to_pylist()], values.type)
    return pa.chunked_array([made.take(encoded.indices)], values.type)


def _left_out(source: Tables) -> Iterator[str]:
    """What the copy does not have, and why."""
    for name, reason in NOT_COPIED.items():
        if (handle := source.load(name)) is not None and Snapshot.of(handle).rows:
            yield f"{name}: {reason}"
    memory = PartMemory(source)
    for folder, reason in (
        (FOLDER, "remembered parts of answers, which are made again when somebody asks"),
        (KEPT, "parts of days whose raw rows were dropped; answers about those days come from rollups"),
    ):
        if count := sum(1 for _ in memory.entries(folder)):
            yield f"{folder}/: {count} {reason}"
