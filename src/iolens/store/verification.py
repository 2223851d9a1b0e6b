"""Whether a store is whole, and putting a damaged one right as far as that can be."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

from iolens.errors import StoreError
from iolens.schema import BASELINES, BATCHES, TABLES
from iolens.store.data_files import DataFile, checksum_in, described, extremes, partition_values
from iolens.store.delta_log import ASIDE, DeltaLog
from iolens.store.duckdb_engine import connection, data_files, relation
from iolens.store.durable import MARKER, Marker, make_directory, sync_directory
from iolens.store.ledger import Books, FileKey
from iolens.store.log_reader import DeltaLogReader
from iolens.store.rebuild import REBUILT
from iolens.store.snapshot import DROPPED, Snapshot
from iolens.store.store import RESOLUTIONS, Store
from iolens.store.tables import REPAIR, Tables, arrow_schema, declared, retrying

# Whether a store is whole ---------------------------------------------------------------------------------------------
# Every file as it was written, and everything there that its books say was written.
#
# Each file is read once and each batch of the books looked at once, so that the time grows with the store and no
# faster.

Step = Callable[[str], None]
FILES_AT_ONCE: Final = 500  # of which the log's statistics are held
MOST_LISTED: Final = 20  # faults of one kind and table that are listed one by one


def table_names() -> Iterator[str]:
    """Every table and rollup a store may have."""
    yield from TABLES
    for resolution in RESOLUTIONS:
        yield from (f"{resolution}/{table.name}" for table in TABLES.values() if table.kind == "interval")


@dataclass(slots=True)
class Verification:
    """What a check found: faults, and what could not be checked."""

    files: int = 0
    unrecorded: int = 0
    faults: list[str] = field(default_factory=list)
    unchecked: list[str] = field(default_factory=list)


def verify_store(store: Store, step: Step = lambda label: None) -> Verification:
    """Check every file of the newest snapshots against log and books, and the tables against the books."""
    verification = Verification()
    contents = StoreContents(store.tables)
    verification.faults += _faults_of_the_books(contents, verification)
    for name in contents.handles:
        verification.faults += _altered_columns(contents, name)
        _check_files(contents, name, verification)
        step(name)
    verification.faults += _missing_tables(contents)
    verification.faults += _lost_parts(contents)
    lost, unknown = lost_files(contents)
    for name, paths in lost.items():
        verification.faults += _listed(f"{store.tables.uri(name)}: written, and not in the table any more:", paths)
    verification.unchecked += [
        f"{count} files of {name} that were replaced without a note" for name, count in unknown.items()
    ]
    verification.unchecked += _unlisted(contents)
    verification.faults = [*contents.faults, *verification.faults]
    return verification


class StoreContents:
    """What log and books say a store holds; nothing is put right on the way."""

    def __init__(self, tables: Tables) -> None:
        self.tables = tables
        self.faults: list[str] = []
        self.handles: dict[str, DeltaTable] = {}
        self._logs: dict[str, DeltaLogReader] = {}
        for name in table_names():
            try:
                handle = tables.load(name, recover=False)
                if handle is not None:
                    self.log(name).check()
            except StoreError as error:
                self.faults.append(str(error))
                continue
            if handle is not None:
                self.handles[name] = handle
                self.faults += [f"{entry}: torn after {entry.stat().st_size} bytes" for entry in self._torn(name)]

    def _torn(self, name: str) -> list[Path]:
        """Entries of a log that delta-rs reads, and that say less than they did."""
        if not self.tables.is_local:
            return []
        log = DeltaLog(self.tables.folder / name)
        return [log.entry(version) for version in log.versions() if log.is_torn(version)]

    def log(self, name: str) -> DeltaLogReader:
        """The log of a table."""
        return self._logs.setdefault(name, DeltaLogReader(self.tables, name))

    @cached_property
    def books(self) -> Books:
        """What `batches` says; nothing when it cannot be read, which is a fault of its own."""
        handle = self.handles.get(BATCHES.name)
        try:
            return Books() if handle is None else Books.read(self.tables, handle)
        except Exception as error:  # whatever the engine makes of a damaged file
            self.faults.append(f"{self.tables.uri('batches')}: cannot be read: {str(error).splitlines()[0]}")
            return Books()

    @cached_property
    def live(self) -> set[FileKey]:
        """Every file of every snapshot."""
        return {(name, path) for name, handle in self.handles.items() for path in Snapshot.of(handle).paths}

    @cached_property
    def marker(self) -> Marker | None:
        """How far the books had come, at the least."""
        try:
            return Marker.decoded(self.tables.read_bytes("", MARKER))
        except (OSError, DeltaError):
            return None
        except ValueError as error:
            self.faults.append(f"{self.tables.uri(MARKER)}: altered: {error}")
            return None


def _faults_of_the_books(contents: StoreContents, verification: Verification) -> Iterator[str]:
    """Whether the books are all there, as far as the marker tells."""
    place, handle, marker = contents.tables.uri("batches"), contents.handles.get(BATCHES.name), contents.marker
    if handle is None:
        if contents.handles or marker is not None:
            yield f"{place}: cannot be read or is missing: nothing says what the other tables must hold"
    elif marker is None:
        verification.unchecked.append(
            f"whether the last entries of batches are there: no {MARKER}; the next ingest makes it"
        )
    elif handle.version() < marker.batches_version:
        yield f"{place}: its last {marker.batches_version - handle.version()} log entries are missing, by {MARKER}"
    elif not marker.holds(contents.tables.entry_sha256(marker.batches_version)):
        yield f"{place}: log entry {marker.batches_version} is altered: its checksum is not that of {MARKER}"


def _altered_columns(contents: StoreContents, name: str) -> Iterator[str]:
    """A column that the log calls otherwise than we do, or gives another type, would be read as unknown."""
    table = TABLES.get(name.rpartition("/")[2])
    if table is None:
        return
    place, known = contents.tables.uri(name), arrow_schema(table)
    stored = pa.schema(contents.handles[name].schema().to_arrow())
    for column in stored:
        if column.name not in known.names:
            yield f"{place}: the schema is altered: it has a column {column.name}, which no version has"
        elif not _is_same_type(column.type, known.field(column.name).type):
            ours = known.field(column.name).type
            yield f"{place}: the schema is altered: {column.name} is {column.type}, not {ours}"


def _is_same_type(stored: pa.DataType, ours: pa.DataType) -> bool:
    """Delta knows one kind of text, and times in UTC."""
    texts = (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view)
    kinds = [any(is_text(kind) for is_text in texts) for kind in (stored, ours)]
    return stored == ours or all(kinds) or (pa.types.is_timestamp(stored) and pa.types.is_timestamp(ours))


def _check_files(contents: StoreContents, name: str, verification: Verification) -> None:
    """Check each file of a table's snapshot."""
    for logged in _logged_files(contents.handles[name]):
        verification.files += 1
        path = str(logged["path"])
        promised = {
            checksum
            for checksum in (checksum_in(path), contents.books.checksums.get((name, path)))
            if checksum is not None
        }
        verification.unrecorded += not promised
        for fault in _faults(contents.tables, name, path, promised, logged):
            verification.faults.append(f"{contents.tables.uri(name)}/{path}: {fault}")


def _logged_files(handle: DeltaTable) -> Iterator[dict[str, Any]]:
    """What the log says of each file of a snapshot."""
    for batch in Snapshot.of(handle).files.to_batches(max_chunksize=FILES_AT_ONCE):
        yield from batch.to_pylist()


def _faults(tables: Tables, name: str, path: str, promised: set[str], logged: dict[str, Any]) -> Iterator[str]:
    """What is wrong with a file, or with what the log says of it."""
    try:
        content = tables.read_bytes(name, path)
    except (OSError, DeltaError) as error:
        is_gone = isinstance(error, FileNotFoundError) or "not found" in str(error).lower()
        yield "missing" if is_gone else str(error)
        return
    if len(content) != logged["size_bytes"]:
        yield f"altered: {len(content)} bytes long, written with {logged['size_bytes']}"
        return
    if promised and {hashlib.sha256(content).hexdigest()} != promised:
        yield "altered: its checksum is not the recorded one"
        return
    try:
        metadata = pq.read_metadata(pa.BufferReader(content))
        if not promised:
            pq.read_table(pa.BufferReader(content))  # all that can be said: whether every value can still be read
    except (pa.ArrowException, OSError) as error:
        yield f"altered: not a whole Parquet file: {str(error).splitlines()[0]}"
        return
    yield from (f"the log is altered: {what}" for what in _wrong_in_log(path, metadata, logged))


def _wrong_in_log(path: str, metadata: pq.FileMetaData, logged: dict[str, Any]) -> Iterator[str]:
    """What the log says of a file and the file does not: by the log rows are counted and files passed over."""
    if logged["num_records"] != metadata.num_rows:
        yield f"it says {logged['num_records']} rows, the file has {metadata.num_rows}"
    for key, value in partition_values(path).items():
        if str(logged.get(f"partition.{key}")) != value:
            yield f"it says {key} {logged.get(f'partition.{key}')}"
    if checksum_in(path) is None:  # written by delta-rs, which cuts times and long texts
        return
    for column, (low, high, _) in extremes(metadata).items():
        for end, value in (("min", low), ("max", high)):
            said = logged.get(f"{end}.{column}")
            if said is not None and value is not None and said != value:
                yield f"it says {end} {column} {said}, the file has {value}"


def _missing_tables(contents: StoreContents) -> Iterator[str]:
    batches = contents.books.batches
    named = {name for batch in batches for name, _ in batch.written} | {
        name for batch in batches for name, rows in batch.rows_by_table.items() if rows
    }
    for name in sorted(named - set(contents.handles)):
        if not any(fault.startswith(contents.tables.uri(name)) for fault in contents.faults):
            yield f"{contents.tables.uri(name)}: the table is missing, and by batches it has rows"


def _lost_parts(contents: StoreContents) -> Iterator[str]:
    """A part that brought rows to a table has its mark in the table's log."""
    for name in contents.handles:
        brought = [batch for batch in contents.books.batches if not batch.is_upkeep and batch.rows_by_table.get(name)]
        marks = contents.log(name).marks if brought else {}
        lost = [batch for batch in brought if marks.get(batch.part.identity, -1) < batch.part.part]
        what = [f"{batch.rows_by_table[name]} rows of {batch}" for batch in lost]
        yield from _listed(f"{contents.tables.uri(name)}: lost", what)


def lost_files(contents: StoreContents) -> tuple[dict[str, list[str]], Counter[str]]:
    """Files that the books know and nothing accounts for, and the number of those of which that cannot be said.

    A file is live, or was replaced, or an entry of the log took it out. That iolens 0.1 replaced a file is not noted.
    """
    books = contents.books
    safe = books.safe(contents.live)
    silent = {name for batch in books.batches if batch.is_upkeep and batch.is_old for name, _ in batch.written}
    lost: dict[str, list[str]] = {}
    unknown: Counter[str] = Counter()
    for name, path in books.brought():
        if (name, path) in safe or name not in contents.handles:
            continue
        log, day = contents.log(name), partition_values(path).get("date")
        is_marked = any(f"{what}/{day}" in log.marks for what in (DROPPED, REBUILT))
        if path in log.removed or (checksum_in(path) is None and (is_marked or name in silent)):
            unknown[name] += 1
        else:
            lost.setdefault(name, []).append(path)
    return lost, unknown


def _unlisted(contents: StoreContents) -> Iterator[str]:
    if BATCHES.name not in contents.handles:  # a fault of its own
        return
    listed = {key for batch in contents.books.batches for key in batch.written}
    counts = Counter(name for name, path in contents.live - listed if checksum_in(path) and "/" not in name)
    for name, count in sorted(counts.items()):
        if name != BATCHES.name:
            yield f"{count} files of {name} that batches does not list: an ingest is at work, or was cut off once"


def _listed(what: str, items: list[str]) -> list[str]:
    more = len(items) - MOST_LISTED
    lines = [f"{what} {item}" for item in items[:MOST_LISTED]]
    return [*lines, f"{what} {more} more"] if more > 0 else lines


# Putting a damaged store right, as far as that can be done ------------------------------------------------------------
# What is torn or dead is taken out, what only the log lost is put back, and what is gone is named, so that it can be
# sent again.
#
# Nothing is deleted: torn log entries and dead files are kept in `_damaged/` below their table.


@dataclass(slots=True)
class Repair:
    """What was done, or would be, and what is lost."""

    done: list[str] = field(default_factory=list)
    lost: list[str] = field(default_factory=list)


def repair_store(store: Store, *, dry_run: bool = False) -> Repair:
    """Take out of the tables what cannot be read, and put back what they lost and is still there."""
    repair = Repair()
    if store.tables.is_local:
        for name in table_names():
            repair.done += _mend_log(store.tables, name, dry_run)
    contents = StoreContents(store.tables)
    if contents.faults:
        raise StoreError("; ".join(contents.faults))
    is_behind = _is_behind(contents)
    lost, _ = lost_files(contents)
    for name, handle in contents.handles.items():
        dead = list(_dead_files(store.tables, name, handle))
        back = [file for path in lost.get(name, []) if (file := _whole(store.tables, name, path)) is not None]
        repair.lost += _loss(contents, name, handle, dead, set(lost.get(name, [])) - {file.path for file in back})
        if dead or back:
            repair.done.append(f"{name}: {len(dead)} files that cannot be read taken out, {len(back)} put back")
            if not dry_run:
                _exchange(contents, name, back, dead)
    if repair.done and not dry_run:
        retrying(partial(_forget_older_baselines, store.tables), "repair baselines")
    if is_behind:
        repair.done.append("batches: goes on without the entries that it lost")
        repair.lost.append(f"{store.tables.uri('batches')}: notes of batches; their rows are in the tables")
        if not dry_run and (books := store.tables.load(BATCHES.name)) is not None:
            store.tables.write_marker(books.version(), anew=True)
    return repair


def _is_behind(contents: StoreContents) -> bool:
    """Whether the books lost entries that were noted."""
    handle, marker = contents.handles.get(BATCHES.name), contents.marker
    if handle is None or marker is None:
        return False
    is_short = handle.version() < marker.batches_version
    return is_short or not marker.holds(contents.tables.entry_sha256(marker.batches_version))


def _mend_log(tables: Tables, name: str, dry_run: bool) -> list[str]:
    """Entries that are torn or missing, wherever they stand in the log."""
    log = DeltaLog(tables.folder / name)
    if not log.folder.is_dir():
        return []
    versions = log.versions()
    gaps = sorted(set(range(versions[0], versions[-1])) - set(versions)) if versions else []
    damaged = [version for version in versions if log.is_torn(version)] + gaps
    if dry_run:
        return [f"{log.entry(version)}: torn or missing; would be put aside" for version in damaged]
    try:
        tables.load(name, recover=False)
    except StoreError:
        return log.recover(damaged)
    return log.recover(damaged) if damaged else []


def _dead_files(tables: Tables, name: str, handle: DeltaTable) -> Iterator[str]:
    """Files that are part of the table and cannot be read."""
    files = Snapshot.of(handle).files
    for path, size in zip(files.column("path").to_pylist(), files.column("size_bytes").to_pylist(), strict=True):
        try:
            content = tables.read_bytes(name, path)
            if len(content) == size:
                pq.read_table(pa.BufferReader(content))
                continue
        except (OSError, DeltaError, pa.ArrowException):
            pass
        yield path


def _whole(tables: Tables, name: str, path: str) -> DataFile | None:
    """A file that the table lost and that is there, as it was written."""
    promised = checksum_in(path)
    try:
        content = tables.read_bytes(name, path)
    except (OSError, DeltaError):
        return None
    if promised is None or hashlib.sha256(content).hexdigest() != promised:
        return None
    return described(path, len(content), pq.read_metadata(pa.BufferReader(content)))


def _loss(contents: StoreContents, name: str, handle: DeltaTable, dead: list[str], gone: set[str]) -> Iterator[str]:
    """What is lost with files: rows, time and the batches that brought them."""
    files = Snapshot.of(handle).files
    for path in [*dead, *sorted(gone)]:
        row = files.filter(pa.compute.equal(files.column("path"), path)).to_pylist()
        known = row[0] if row else {}
        window = f" of {known.get('min.time')} … {known.get('max.time')}" if known.get("min.time") else ""
        yield f"{contents.tables.uri(name)}/{path}: {known.get('num_records', 'its')} rows{window}"
        for batch in contents.books.origins_of((name, path)):
            yield f"  brought by {batch}"


def _exchange(contents: StoreContents, name: str, back: list[DataFile], dead: list[str]) -> None:
    """One commit; batches whose files come back get their marks back, so that sending them again adds nothing."""
    tables = contents.tables
    brought = contents.books.brought()
    wanted = {file.path for file in back}
    marks = [batch.part.transaction for (table, path), batch in brought.items() if table == name and path in wanted]

    def attempt() -> None:
        handle = tables.load_or_create(name, declared(name))
        live = set(data_files(handle))
        missing = [file for file in back if file.path not in live]
        tables.put(handle, name, missing, instead_of=sorted(live.intersection(dead)), marks=marks, what=REPAIR)

    retrying(attempt, f"repair {name}")
    if tables.is_local:
        for path in dead:
            _set_aside(tables.folder / name, unquote(path))


def _set_aside(table: Path, path: str) -> None:
    """Keep a dead file where no vacuum comes."""
    if (table / path).exists():
        make_directory(table / ASIDE)
        (table / path).rename(table / ASIDE / Path(path).name)
        sync_directory(table / ASIDE)


def _forget_older_baselines(tables: Tables) -> None:
    """Of a target whose newest counters are lost, older ones would difference what is stored already: none is better.

    Its next sample is a first one.
    """
    handle = tables.load(BASELINES.name)
    if handle is None or not data_files(handle):
        return
    stored = relation(tables, BASELINES.name, data_files(handle))
    newest = stored.aggregate("source, filesystem, target, max(position) AS position").fetchall()
    stale = [
        (source, filesystem, target)
        for source, filesystem, target, position in newest
        if (handle.transaction_version(f"baseline/{source}/{filesystem}/{target}") or 0) > position
    ]
    if not stale:
        return
    forgotten = pa.table(dict(zip(("source", "filesystem", "target"), zip(*stale, strict=True), strict=True)))
    columns = ", ".join(f'"{column.name}"' for column in BASELINES.columns)
    sql = f"SELECT {columns} FROM stored ANTI JOIN forgotten USING (source, filesystem, target)"  # noqa: S608 (schema)
    assert forgotten is not None
    tables.replace_all(handle, BASELINES.name, connection().sql(sql).to_arrow_table(), REPAIR)
