"""What `batches` says of every capture: what the tables must hold, and rows that would be the same."""

from __future__ import annotations

import base64
import json
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable
from numpy.typing import NDArray

from iolens.records import Capture, RowMark
from iolens.schema import BATCHES, TABLES, Table
from iolens.store.data_files import directory_dates
from iolens.store.duckdb_engine import connection, files_of_days, newest, query, relation
from iolens.store.tables import PARTS_PER_SEQUENCE, UPKEEP, BatchPart, Tables
from iolens.units import from_epoch_us, iso

# The ledger -----------------------------------------------------------------------------------------------------------
# What `batches` says of every capture that was ingested, and which of them were taken back.
#
# A row of `batches` is a part of a capture. A capture is an identity and, of streams whose pieces share one, a
# sequence. Nothing is taken out of the ledger: what `iolens store undo` takes back is named by a row of its own
# (`undoes`), and no longer in force. When such a capture is ingested again, it gets a new identity (`again1/…`), so
# that marks of the first time, which stay in all logs, do not count for it.

MOST_HASHED: Final = 200_000  # rows of one part and table whose keys the ledger has
UNDONE: Final = "undone"  # marks captures that were taken back, with the number of times
AGAIN: Final = "again"  # what the identity of a capture begins with that was taken back before
RESENT: Final = "resent"
SECONDARY: Final = "rebuild"  # what a rebuild fitted between stored rows


class CaptureKey(NamedTuple):
    """What names a capture."""

    identity: str
    sequence: int

    def __str__(self) -> str:
        return self.identity if self.sequence <= 1 else f"{self.identity}/{self.sequence}"

    @property
    def mark(self) -> str:
        """Under which `batches` knows how often it was taken back."""
        return f"{UNDONE}/{self.identity}/{self.sequence}"


def renewed(capture: Capture, batches: DeltaTable | None) -> Capture:
    """The capture under the identity of this time, where it was taken back before."""
    if batches is None:
        return capture
    times = batches.transaction_version(CaptureKey(capture.identity, capture.sequence).mark) or 0
    if not times:
        return capture
    piece = f"/{capture.sequence}" if capture.sequence > 1 else ""
    return replace(capture, identity=f"{AGAIN}{times}/{capture.identity}{piece}", sequence=1)


def original(key: CaptureKey) -> CaptureKey:
    """Under which the capture was ingested the first time."""
    first, _, identity = key.identity.partition("/")
    if not (first.startswith(AGAIN) and first.removeprefix(AGAIN).isdecimal()):
        return key
    stream, _, number = identity.rpartition("/")
    is_piece = stream.startswith("agent/") and stream.count("/") == 2 and number.isdecimal()
    return CaptureKey(stream, int(number)) if is_piece else CaptureKey(identity, 1)


@dataclass(slots=True)
class LedgerPart:
    """One row of `batches`; times in microseconds since 1970."""

    part: BatchPart
    time_us: int
    source: str | None
    origin: str
    filesystems: dict[str, list[str]]
    first_us: int | None
    last_us: int | None
    samples: int
    rows: dict[str, int]
    is_plain: bool  # no reset, glitch, clock set back or refused reading: what moved adds up to the counters
    dropped: int  # samples and rows that were present, or older than what was stored
    hashes: dict[str, str]  # by table, in Base64
    files: dict[str, set[str]]
    replaced: dict[str, set[str]]

    @property
    def key(self) -> CaptureKey:
        """The capture it is of."""
        return CaptureKey(self.part.identity, self.part.part // PARTS_PER_SEQUENCE)

    @property
    def is_ingest(self) -> bool:
        """Whether it brought rows of a capture."""
        return self.part.identity.partition("/")[0] not in (*UPKEEP, RESENT)


@dataclass(slots=True)
class Ledger:
    """All of `batches`."""

    parts: list[LedgerPart] = field(default_factory=list)  # oldest first
    undone: dict[CaptureKey, int] = field(default_factory=dict)  # when

    @classmethod
    def read(cls, tables: Tables) -> Ledger:
        """As it is now."""
        handle = tables.load(BATCHES.name)
        if handle is None:
            return cls()
        sql = """SELECT batch, part, epoch_us, source, origin, filesystems, epoch_us(first_time), epoch_us(last_time),
                        coalesce(samples, 0), rows_by_table, coalesce(resets, 0) + coalesce(glitches, 0)
                        + coalesce(set_back, 0) + coalesce(refused, 0), coalesce(repeated, 0) + coalesce(older, 0),
                        row_hashes, checksums, replaced
                 FROM stored ORDER BY time, batch, part"""
        parts = [_part(row) for row in query(tables, handle, BATCHES.name, sql)]
        return cls(parts, undone_captures(tables, handle))

    def captures(self) -> dict[CaptureKey, list[LedgerPart]]:
        """Parts by capture, as they came."""
        by_capture: dict[CaptureKey, list[LedgerPart]] = {}
        for part in self.parts:
            if part.is_ingest:
                by_capture.setdefault(part.key, []).append(part)
        return by_capture


def _part(row: Sequence[Any]) -> LedgerPart:
    batch, part, time_us, source, origin, filesystems, first, last, samples, rows, odd, dropped, *texts = row
    hashes, files, replaced = (json.loads(text or "{}") for text in texts)
    return LedgerPart(
        BatchPart(batch, part), time_us or 0, source, origin or "", json.loads(filesystems or "{}"), first, last,
        samples, json.loads(rows or "{}"), not odd, dropped, hashes,
        {name: set(paths) for name, paths in files.items()}, {name: set(paths) for name, paths in replaced.items()},
    )  # fmt: skip


def hash_of_key(table: Table) -> str:
    """SQL of 32 bits that tell a row from most others of its table, the same in every version of every engine."""
    names = dict.fromkeys(name for name in (*table.key, table.newest_by, table.loaded_by) if name is not None)
    texts = [
        f"coalesce({f'epoch_us({quoted})' if table.column(name).type == 'timestamp' else quoted}::VARCHAR, '')"
        for name in names
        for quoted in [f'"{name}"']
    ]
    return f"(md5_number_lower(concat_ws(chr(31), {', '.join(texts)})) % 4294967296)::BIGINT"


def row_hashes(table: Table, rows: pa.Table) -> str | None:
    """By what rows that came finished are known later, whatever file they are in then; None: they are too many."""
    if rows.num_rows > MOST_HASHED:
        return None
    hashes = connection().sql(f"SELECT {hash_of_key(table)} FROM rows").to_arrow_table().column(0)  # noqa: S608 (schema)
    return base64.b64encode(np.sort(hashes.to_numpy()).astype("<u4").tobytes()).decode()


def hashes_in(texts: Iterable[str]) -> list[int]:
    """The inverse."""
    return [number for text in texts for number in np.frombuffer(base64.b64decode(text), "<u4").tolist()]


def undone_captures(tables: Tables, handle: DeltaTable) -> dict[CaptureKey, int]:
    """Captures that were taken back, and when, in microseconds since 1970."""
    if not handle.transaction_version(UNDONE):
        return {}
    rows = query(tables, handle, BATCHES.name, "SELECT undoes, epoch_us FROM stored WHERE undoes IS NOT NULL")
    return {CaptureKey(*key): time_us for text, time_us in rows for key in json.loads(text)}


def in_force(tables: Tables, handle: DeltaTable) -> str:
    """A condition in SQL: the batch was not taken back."""
    undone = undone_captures(tables, handle)
    names = ", ".join(f"('{key.identity.replace(chr(39), chr(39) * 2)}', {key.sequence})" for key in sorted(undone))
    return f"(batch, part // {PARTS_PER_SEQUENCE}) NOT IN ({names})" if names else "true"


class LiveFiles:
    """Of which captures the rows in a table's files may be, through all that replaced files since."""

    def __init__(self, ledger: Ledger, name: str) -> None:
        self._made_of: dict[str, set[str]] = {}  # by file, those it took the place of
        self._brought_by: dict[str, set[CaptureKey | None]] = {}  # None: of a sender that was not the first
        for part in ledger.parts:
            written = part.files.get(name, set())
            for path in written:
                if part.replaced.get(name):
                    self._made_of.setdefault(path, set()).update(part.replaced[name])
                if part.is_ingest or part.part.identity.startswith(RESENT):
                    self._brought_by.setdefault(path, set()).add(part.key if part.is_ingest else None)

    def may_hold(self, path: str, captures: Iterable[CaptureKey]) -> bool:
        """Whether rows of any of the captures may be in a file: they are, or nothing says whose rows it has."""
        seen, queue, brought = {path}, [path], set[CaptureKey | None]()
        while queue:
            file = queue.pop()
            brought |= self._brought_by.get(file, set())
            new = self._made_of.get(file, set()) - seen
            seen |= new
            queue += new
        return not brought or None in brought or not brought.isdisjoint(captures)


def rows_of(parts: Iterable[LedgerPart]) -> Counter[str]:
    """Rows by table that parts brought."""
    total = Counter[str]()
    for part in parts:
        total.update({name: rows for name, rows in part.rows.items() if rows})
    return total


def origins_of(captures: Mapping[CaptureKey, Sequence[LedgerPart]]) -> list[str]:
    """Captures as messages name them."""
    return [f"{key} ({parts[0].origin})" if parts[0].origin else f"{key}" for key, parts in captures.items()]


# What `batches` says every other table must hold ----------------------------------------------------------------------
# Files with their checksums, what replaced what, parts with rows.

FileKey = tuple[str, str]  # table, path below it


@dataclass(slots=True)
class BookedBatch:
    """One row of `batches`."""

    part: BatchPart
    origin: str
    window: str
    rows_by_table: dict[str, int]
    written: dict[FileKey, str]  # with their checksums
    replaced: list[FileKey]
    is_old: bool  # of iolens 0.1, which did not say what it replaced

    def __str__(self) -> str:
        origin, window = (f" from {self.origin}" if self.origin else ""), (f", {self.window}" if self.window else "")
        return f"batch {self.part.identity} part {self.part.part}{origin}{window}"

    @property
    def is_upkeep(self) -> bool:
        """Whether it brought nothing new, only put rows into other files."""
        return self.part.identity.partition("/")[0] in UPKEEP


@dataclass(slots=True)
class Books:
    """All of them."""

    batches: list[BookedBatch] = field(default_factory=list)
    checksums: dict[FileKey, str] = field(default_factory=dict)

    @classmethod
    def read(cls, tables: Tables, handle: DeltaTable) -> Books:
        """Every row of `batches`, oldest first."""
        books = cls()
        sql = """SELECT batch, part, origin, epoch_us(first_time), epoch_us(last_time), rows_by_table,
                        checksums, replaced
                 FROM stored ORDER BY time, batch, part"""
        results = query(tables, handle, "batches", sql)
        for identity, part, origin, first, last, rows, checksums, replaced in results:
            written = dict(_files(checksums))
            batch = BookedBatch(
                BatchPart(identity, part),
                origin or "",
                f"{iso(from_epoch_us(first))} … {iso(from_epoch_us(last))}" if first and last else "",
                json.loads(rows or "{}"),
                written,
                [(name, path) for name, paths in json.loads(replaced or "{}").items() for path in paths],
                replaced is None,
            )
            books.batches.append(batch)
            books.checksums |= written
        return books

    def brought(self) -> dict[FileKey, BookedBatch]:
        """Files with new rows, by the batch that brought them."""
        return {key: batch for batch in self.batches if not batch.is_upkeep for key in batch.written}

    def safe(self, live: set[FileKey]) -> set[FileKey]:
        """Files whose rows are there: in their tables, or replaced by files whose rows are there."""
        missing = [sum(key not in live for key in batch.written) for batch in self.batches]
        waiting: dict[FileKey, list[int]] = {}
        for number, batch in enumerate(self.batches):
            for key in batch.written:
                waiting.setdefault(key, []).append(number)
        safe = set(live)
        ready = deque(number for number, batch in enumerate(self.batches) if batch.replaced and not missing[number])
        while ready:
            for key in self.batches[ready.popleft()].replaced:
                if key not in safe:
                    safe.add(key)
                    for number in waiting.get(key, []):
                        missing[number] -= 1
                        if not missing[number] and self.batches[number].replaced:
                            ready.append(number)
        return safe

    def origins_of(self, lost: FileKey) -> list[BookedBatch]:
        """The batches whose rows a file held: those that brought it, or the files that it replaced."""
        replaced_by: dict[FileKey, list[FileKey]] = {}
        for batch in self.batches:
            for key in batch.written:
                replaced_by.setdefault(key, []).extend(old for old in batch.replaced if old[0] == key[0])
        brought, seen, queue = self.brought(), {lost}, deque([lost])
        batches: dict[str, BookedBatch] = {}
        while queue:
            key = queue.popleft()
            if key in brought:
                batches.setdefault(f"{brought[key].part}", brought[key])
            new = set(replaced_by.get(key, [])) - seen
            seen |= new
            queue.extend(new)
        return list(batches.values())


def _files(text: str | None) -> Iterator[tuple[FileKey, str]]:
    for name, files in json.loads(text or "{}").items():
        for path, checksum in files.items():
            yield (name, path), checksum


# What the store has already -------------------------------------------------------------------------------------------
# Rows that would be the same again, and ticks that came before.
#
# Questions go to the engine as joins, so that a day of a million rows is compared in a second and in flat memory.

LATE_SCHEMA: Final = pa.schema(
    [("filesystem", pa.string()), ("target", pa.string()), ("time_us", pa.int64()), ("unit", pa.int32())]
)


def new_rows(tables: Tables, handle: DeltaTable, table: Table, rows: pa.Table) -> pa.Table:
    """Those of `rows` whose key neither the table nor an earlier one of `rows` has, or that replace the one it has."""
    if not rows.num_rows:
        return rows
    files = files_of_days(handle, _days(rows, table) if table.partitioned else None)
    has_repeats = _has_repeats(rows, table)
    if not files and not has_repeats:
        return rows
    key = ", ".join(f'"{name}"' for name in table.key)
    same = " AND ".join(f'offered."{name}" IS NOT DISTINCT FROM stored."{name}"' for name in table.key)
    order, compared = "_order", [*table.key]
    stored = relation(tables, table.name, files)
    if table.newest_by is not None:
        stored = newest(stored, table)
        same += f" AND {_counts_no_more(table, table.newest_by)}"
        order = f'"{table.newest_by}" DESC NULLS LAST, _order'
        compared = [column.name for column in table.columns]
    offered = rows.select([*dict.fromkeys(compared)]).append_column("_order", pa.array(np.arange(rows.num_rows)))
    assert stored is not None
    first = f"QUALIFY row_number() OVER (PARTITION BY {key} ORDER BY {order}) = 1" if has_repeats else ""
    sql = f"SELECT _order FROM (SELECT * FROM offered {first}) AS offered ANTI JOIN stored ON {same}"  # noqa: S608 (column names of the schema)
    assert offered is not None
    new = connection().sql(sql).to_arrow_table().column(0)
    return rows if len(new) == rows.num_rows else rows.take(new.sort())


def known_values(tables: Tables, handle: DeltaTable | None, mark: RowMark) -> NDArray[np.bytes_]:
    """All values of a column by which captures are known, sorted."""
    if handle is None:
        return np.zeros(0, "S1")
    stored = relation(tables, mark.table, files_of_days(handle, None))
    values = stored.project(f'"{mark.column}"').to_arrow_table().column(0)
    pieces = [np.array(piece.to_pylist(), "S") for piece in values.chunks]
    return np.sort(np.concatenate(pieces)) if pieces else np.zeros(0, "S1")


def _counts_no_more(table: Table, column: str) -> str:
    """Whether an offered row does not take the place of the stored one: it says less, or nothing else.

    One that is as final as the stored one takes its place where it knows something else, such as a corrected account.
    """
    offered, stored = _rank("offered", column), _rank("stored", column)
    about_itself = {*table.key, "source", "date", table.loaded_by}
    names = [name.name for name in table.columns if name.name not in about_itself]
    differs = " OR ".join(
        f'(offered."{name}" IS NOT NULL AND offered."{name}" IS DISTINCT FROM stored."{name}")' for name in names
    )
    return f"({offered} < {stored} OR ({offered} = {stored} AND NOT ({offered} = 1 AND ({differs}))))"


def _rank(rows: str, column: str) -> str:
    """What decides which of two rows with one key counts; NULL is the least."""
    return f'COALESCE(CAST({rows}."{column}" AS BIGINT), -1)'


def known_ticks(tables: Tables, handle: DeltaTable, name: str, source: str, late: pa.Table) -> dict[int, int]:
    """How many of each unit's `late` ticks are the beginning or end of an interval the table has."""
    day_us = 86_400_000_000
    days = {time // day_us + shift for time in pc.unique(late.column("time_us")).to_pylist() for shift in (-1, 0, 1)}
    stored = relation(tables, name, files_of_days(handle, days))
    assert stored is not None
    sql = f"""WITH ticks AS (SELECT filesystem, {TABLES[name].subject} AS target,
                                    unnest([epoch_us, start_us]) AS time_us FROM stored WHERE source = ?)
              SELECT unit, count(*) FROM late SEMI JOIN ticks USING (filesystem, target, time_us) GROUP BY unit"""  # noqa: S608 (column names of the schema)
    return dict(connection().execute(sql, [source]).fetchall())


def _has_repeats(offered: pa.Table, table: Table) -> bool:
    key = ", ".join(f'"{name}"' for name in table.key)
    sql = f"SELECT count(*) FROM (SELECT DISTINCT {key} FROM offered)"  # noqa: S608 (column names of the schema)
    ((distinct,),) = connection().execute(sql).fetchall()
    return bool(distinct < offered.num_rows)


def _days(rows: pa.Table, table: Table) -> set[int]:
    """Days in whose directories the same rows may be.

    Tables of files and ranks of 0.1 had no start, so that their old rows are in the directory of the day they end.
    """
    days = set(pc.unique(rows.column("date").cast(pa.int32())).to_pylist())
    if "start" in rows.column_names and not {"start", "time"} & {*table.key}:
        ends = directory_dates(table, None, rows.column("time").combine_chunks().view(pa.int64()))
        days |= set(pc.unique(ends.cast(pa.int32())).to_pylist())
    return days
