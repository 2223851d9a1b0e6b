"""Columns of data files as they are, read without an engine: half of its work, where no row is to be judged."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from iolens.store.parts import Ends
from iolens.units import epoch_us

FEW_VALUES: Final = ["target"]  # read as a dictionary and the places of rows in it


def plain_columns(paths: Iterable[str], names: Sequence[str], ends: Ends | None) -> pa.Table | None:
    """The columns, and `epoch_us`, of all rows or of those that end then; None where a file lacks a column."""
    import pyarrow.parquet as pq

    pieces = []
    for path in paths:
        with pq.ParquetFile(path, read_dictionary=FEW_VALUES) as file:
            if not {"time", *names} <= set(file.schema_arrow.names):
                return None
            groups = list(_groups(file, ends))
            pieces.append(file.read_row_groups(groups, columns=["time", *names], use_threads=False))
    rows = pa.concat_tables(pieces, promote_options="permissive")
    end_us = rows.column("time").cast(pa.timestamp("us", "UTC")).cast(pa.int64())
    rows = rows.drop_columns("time").append_column("epoch_us", end_us)
    if ends is None:
        return rows
    return rows.filter(pc.and_(pc.greater(end_us, ends.after_us), pc.less_equal(end_us, ends.until_us)))


def _groups(file: Any, ends: Ends | None) -> Iterator[int]:
    """The row groups that may have rows which end then."""
    place = file.schema_arrow.get_field_index("time")
    for group in range(file.num_row_groups):
        times = file.metadata.row_group(group).column(place).statistics
        is_known = times is not None and times.has_min_max
        if (
            ends is None
            or not is_known
            or (epoch_us(times.max) > ends.after_us and epoch_us(times.min) <= ends.until_us)
        ):
            yield group
