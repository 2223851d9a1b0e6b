"""Rows as dictionaries to Arrow columns of the declared types. Times are integers: microseconds since 1970 UTC."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from iolens.schema import Table
from iolens.store.tables import arrow_schema


def to_arrow(table: Table, rows: Sequence[dict[str, Any]]) -> pa.Table:
    """All declared columns; what a row does not have is NULL."""
    schema = arrow_schema(table)
    return pa.table([_column([row.get(field.name) for row in rows], field.type) for field in schema], schema=schema)


def _column(values: list[Any], type_: pa.DataType) -> pa.Array:
    if pa.types.is_timestamp(type_):
        return pa.array(values, pa.int64()).cast(type_)
    if pa.types.is_date32(type_):
        return pa.array(values, pa.int32()).cast(type_)
    return pa.array(values, type_)
