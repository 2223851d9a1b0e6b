"""In which directory of its table a row belongs: by the UTC day, or month, in which it begins."""

from __future__ import annotations

import hashlib
import json
import math
import re
import tempfile
import time
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, date, datetime
from itertools import pairwise
from pathlib import Path
from typing import IO, Any, Final
from urllib.parse import quote

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from deltalake import DeltaTable, Metadata
from deltalake import Schema as DeltaSchema
from deltalake.transaction import AddAction

from iolens.schema import Table
from iolens.units import DAY_US

# Data files of a table ------------------------------------------------------------------------------------------------
# Parquet, a day per file, with the checksum of the content in the name.
#
# They are written and on disk before a log entry names them. The log's statistics on a file are those of its own
# footer.

ROWS_PER_GROUP: Final = 262_144
LARGEST_BYTES: Final = 100 << 20  # what is longer goes on in the next file
LONGEST_TEXT: Final = 32  # longer text has no extremes in the log: they would prove nothing, and take space
_CHECKSUM: Final = re.compile(r"-([0-9a-f]{64})\.zstd\.parquet$")


@dataclass(frozen=True, slots=True)
class DataFile:
    """One file of a table, and what the log is to say about it."""

    path: str  # relative to the table
    size: int
    rows: int
    statistics: str

    def add_action(self, *, is_change: bool = True) -> AddAction:
        """The line of the log that makes it part of the table; no change when its rows were there before."""
        now_ms = time.time_ns() // 1_000_000
        return AddAction(self.path, self.size, partition_values(self.path), now_ms, is_change, self.statistics)


def described(path: str, size: int, metadata: pq.FileMetaData) -> DataFile:
    """A file as its footer describes it."""
    return DataFile(path, size, metadata.num_rows, json.dumps(statistics(metadata)))


def checksum_in(path: str) -> str | None:
    """The SHA-256 that a file's name promises; None for one written by delta-rs or by iolens 0.1."""
    match = _CHECKSUM.search(path)
    return match.group(1) if match else None


def partition_values(path: str) -> dict[str, str | None]:
    """The partition that a path below the table says: `date=2012-10-22/part-….parquet`."""
    folder, _, name = path.rpartition("/")
    key, _, value = folder.partition("=")
    return {key: value} if name and key else {}


class _Hashed:
    """A file being written that knows the checksum of what it holds."""

    def __init__(self, stream: IO[bytes]) -> None:
        self.stream, self.size, self.digest = stream, 0, hashlib.sha256()
        self.closed = False
        self.name = ""

    def write(self, content: Any) -> int:
        octets = memoryview(content)
        self.stream.write(octets)
        self.digest.update(octets)
        self.size += octets.nbytes
        return octets.nbytes

    def tell(self) -> int:
        return self.size

    def flush(self) -> None:
        self.stream.flush()

    def close(self) -> None:
        self.closed = True


def _path(day: date | None, sink: _Hashed) -> str:
    folder = f"date={day.isoformat()}/" if day is not None else ""
    return f"{folder}part-{uuid.uuid4()}-{sink.digest.hexdigest()}.zstd.parquet"


@contextmanager
def local_sink(folder: Path, day: date | None) -> Iterator[_Hashed]:
    """A file below `folder`, written beside its final name, which depends on the content.

    That name and the directory of a day are on disk once the caller has synced them.
    """
    beside = folder / (f"date={day.isoformat()}" if day is not None else "") / f"part-{uuid.uuid4()}.writing"
    beside.parent.mkdir(exist_ok=True)
    try:
        with beside.open("wb") as stream:
            yield (sink := _Hashed(stream))
        sink.name = _path(day, sink)
        beside.rename(folder / sink.name)
    finally:
        beside.unlink(missing_ok=True)


@contextmanager
def remote_sink(filesystem: Any, day: date | None) -> Iterator[_Hashed]:
    """A file on object storage."""
    with tempfile.TemporaryFile() as stream:
        yield (sink := _Hashed(stream))
        sink.name = _path(day, sink)
        stream.seek(0)
        with filesystem.open_output_stream(sink.name) as target:
            while block := stream.read(8 << 20):
                target.write(block)


def write_data_files(rows: pa.Table | pa.RecordBatchReader, open_sink: Any) -> Iterator[DataFile]:
    """One file after the other: a new one for each day of rows that have a `date`, and when one is long enough."""
    pieces = _by_day(rows)
    day, piece = next(pieces, (None, None))
    while piece is not None:
        current = day
        metadata: list[pq.FileMetaData] = []
        with open_sink(current) as sink:
            options = {"compression": "zstd", "compression_level": 3, "metadata_collector": metadata}
            writer = pq.ParquetWriter(sink, piece.schema, **options)
            try:
                while piece is not None and day == current and sink.size < LARGEST_BYTES:
                    writer.write_table(piece, row_group_size=ROWS_PER_GROUP)
                    day, piece = next(pieces, (None, None))
                writer.close()
            finally:
                writer.is_open = False  # or, on a full disk, it would try again when it is collected, and print that
        yield described(sink.name, sink.size, metadata[0])


def _by_day(rows: pa.Table | pa.RecordBatchReader) -> Iterator[tuple[date | None, pa.Table]]:
    """Runs of rows of one day, without the column that the directory's name stands for."""
    for part in [rows] if isinstance(rows, pa.Table) else _in_groups(rows):
        if not part.num_rows:
            continue
        if "date" not in part.column_names:
            yield None, part
            continue
        days = np.asarray(part.column("date").cast(pa.int32()))
        if (np.diff(days) < 0).any():
            order = np.argsort(days, kind="stable")
            part, days = part.take(pa.array(order)), days[order]
        part = part.drop_columns(["date"])
        edges = [0, *(np.flatnonzero(np.diff(days)) + 1).tolist(), len(days)]
        for start, end in pairwise(edges):
            yield date.fromordinal(719_163 + int(days[start])), part.slice(start, end - start)


def _in_groups(reader: pa.RecordBatchReader) -> Iterator[pa.Table]:
    """A stream in pieces of at least a row group."""
    held: list[pa.RecordBatch] = []
    for batch in reader:
        held.append(batch)
        if sum(item.num_rows for item in held) >= ROWS_PER_GROUP:
            yield pa.Table.from_batches(held)
            held = []
    if held:
        yield pa.Table.from_batches(held)


def statistics(metadata: pq.FileMetaData) -> dict[str, Any]:
    """Rows, and the extremes and NULLs of every column, in the words of Delta's log."""
    by_name = extremes(metadata)
    return {
        "numRecords": metadata.num_rows,
        "minValues": {name: _in_json(low) for name, (low, _, _) in by_name.items() if low is not None},
        "maxValues": {name: _in_json(high) for name, (_, high, _) in by_name.items() if high is not None},
        "nullCount": {name: nulls for name, (_, _, nulls) in by_name.items()},
    }


def extremes(metadata: pq.FileMetaData) -> dict[str, tuple[Any, Any, int]]:
    """Smallest and largest value of each column, None where they prove nothing, and its number of NULLs."""
    by_name: dict[str, tuple[Any, Any, int]] = {}
    groups = [metadata.row_group(number) for number in range(metadata.num_row_groups)]
    for position in range(metadata.num_columns):
        stated = [group.column(position).statistics for group in groups]
        if all(item is not None and item.has_null_count for item in stated):
            low, high = _ends([item for item in stated if item.has_min_max or item.num_values])
            nulls = sum(item.null_count for item in stated)
            by_name[metadata.schema.column(position).name] = low, high, nulls
    return by_name


def _ends(stated: list[pq.Statistics]) -> tuple[Any, Any]:
    if not stated or not all(item.has_min_max for item in stated):
        return None, None
    try:
        low, high = min(item.min for item in stated), max(item.max for item in stated)
    except (OverflowError, ValueError):  # a time that no calendar has
        return None, None
    return (low, high) if _proves_something(low) and _proves_something(high) else (None, None)


def _proves_something(value: Any) -> bool:
    if isinstance(value, str):
        return len(value) < LONGEST_TEXT
    return isinstance(value, int | datetime) or (isinstance(value, float) and math.isfinite(value))


def _in_json(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
    return value


def directory_dates(table: Table, start_us: pa.Array | None, time_us: pa.Array) -> pa.Array:
    """The column `date` of rows that begin at `start_us`, or at `time_us` where that is unknown; both since 1970."""
    began = time_us if start_us is None else pc.coalesce(start_us, time_us)
    days = (np.asarray(began.fill_null(0)) // DAY_US).astype("datetime64[D]")
    if table.cut_by == "month":
        days = days.astype("datetime64[M]").astype("datetime64[D]")
    return pa.array(days.astype(np.int32)).cast(pa.date32())


def with_dates(handle: DeltaTable, table: Table, schema: pa.Schema) -> pa.RecordBatchReader:
    """The rows of a table that is not cut, a piece at a time, with all declared columns and the `date` of each."""
    pieces = handle.to_pyarrow_dataset().to_batches()
    return pa.RecordBatchReader.from_batches(schema, _dated(pieces, table, schema))


def _dated(pieces: Iterator[pa.RecordBatch], table: Table, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    for piece in pieces:
        arrays = {
            field.name: piece.column(field.name).cast(field.type)
            if field.name in piece.schema.names
            else pa.nulls(piece.num_rows, field.type)
            for field in schema
        }
        start, time = (arrays[name].view(pa.int64()) if name in arrays else None for name in ("start", "time"))
        arrays["date"] = directory_dates(table, start, time)
        yield pa.record_batch([arrays[field.name] for field in schema], schema=schema)


def _in_log(path: str) -> str:
    """A path as the log writes it."""
    return quote(path, safe="/=")


def cutting_actions(
    metadata: Metadata, schema: DeltaSchema, files: Sequence[DataFile], old: Sequence[str]
) -> list[dict[str, Any]]:
    """What an entry of Delta's log says to cut a table: that it is, its new files, and that the old ones are gone."""
    now_ms = time.time_ns() // 1_000_000
    about = {
        "id": str(metadata.id), "name": metadata.name, "description": metadata.description,
        "format": {"provider": "parquet", "options": {}}, "schemaString": schema.to_json(),
        "partitionColumns": ["date"], "createdTime": metadata.created_time, "configuration": metadata.configuration,
    }  # fmt: skip
    added = [
        {"path": _in_log(file.path), "partitionValues": partition_values(file.path), "size": file.size,
         "modificationTime": now_ms, "dataChange": True, "stats": file.statistics}
        for file in files
    ]  # fmt: skip
    removed = [{"path": _in_log(path), "deletionTimestamp": now_ms, "dataChange": True} for path in old]
    return [{"metaData": about}, *({"add": item} for item in added), *({"remove": item} for item in removed)]
