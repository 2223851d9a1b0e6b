"""Rows to Arrow columns of the declared types. Times are integers: microseconds since 1970 UTC."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from iolens.schema import Table
from iolens.store.tables import arrow_schema


def to_arrow(table: Table, rows: Sequence[dict[str, Any]]) -> pa.Table:
    """All declared columns; what a row does not have is NULL."""
    schema = arrow_schema(table)
    present = set().union(*rows)
    columns = [
        as_array([row.get(field.name) for row in rows], field.type, len(rows))
        if field.name in present
        else pa.nulls(len(rows), field.type)
        for field in schema
    ]
    return pa.table(columns, schema=schema)


def columns_to_arrow(table: Table, columns: Mapping[str, object], count: int) -> pa.Table:
    """The same from whole columns: sequences of `count` values, or one value for all rows."""
    schema = arrow_schema(table)
    return pa.table([as_array(columns.get(field.name), field.type, count) for field in schema], schema=schema)


def as_array(values: object, type_: pa.DataType, count: int) -> pa.Array:
    """One column: a sequence of `count` values, one value for all rows, or None for unknown throughout."""
    if values is None:
        return pa.nulls(count, type_)
    if isinstance(values, str | int | float | bool):
        return pa.repeat(as_array([values], type_, 1)[0], count)
    plain = pa.int64() if pa.types.is_timestamp(type_) else pa.int32() if pa.types.is_date32(type_) else type_
    if isinstance(values, pa.ChunkedArray):
        values = values.combine_chunks()
    if isinstance(values, np.ma.MaskedArray):
        array = pa.array(np.ma.getdata(values), mask=np.ma.getmaskarray(values))
    elif isinstance(values, np.ndarray):
        array = pa.array(values, from_pandas=True)  # NaN is NULL
    else:
        array = values if isinstance(values, pa.Array) else pa.array(values, plain)
    if array.type == type_:
        return array
    return array.cast(plain).cast(type_)


def with_constant(rows: pa.Table, name: str, value: int) -> pa.Table:
    """The table with one more column that says the same in every row."""
    return rows.append_column(name, pa.repeat(pa.scalar(value, pa.int32()), rows.num_rows))


def having(rows: pa.Table, name: str, value: int) -> pa.Table:
    """The rows in which that column has that value, without the column."""
    return rows.filter(pc.equal(rows.column(name), value)).drop_columns([name])
