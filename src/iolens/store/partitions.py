"""In which directory of its table a row belongs: by the UTC day, or month, in which it begins."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import Any
from urllib.parse import quote

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable, Metadata
from deltalake import Schema as DeltaSchema

from iolens.schema import Table
from iolens.store.data_files import DataFile, partition_values
from iolens.units import DAY_US


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
