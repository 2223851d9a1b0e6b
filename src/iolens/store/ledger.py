"""The ledger: what `batches` says of every capture that was ingested, and which of them were taken back.

A row of `batches` is a part of a capture. A capture is an identity and, of streams whose pieces share one, a sequence.
Nothing is taken out of the ledger: what `iolens store undo` takes back is named by a row of its own (`undoes`), and no
longer in force. When such a capture is ingested again, it gets a new identity (`again1/…`), so that marks of the first
time, which stay in all logs, do not count for it.
"""

from __future__ import annotations

import base64
import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
from deltalake import DeltaTable

from iolens.records import Capture
from iolens.schema import BATCHES, Table
from iolens.store.duckdb_engine import connection, query
from iolens.store.tables import PARTS_PER_SEQUENCE, UPKEEP, BatchPart, Tables

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
