"""What the store has already: rows that would be the same again, and ticks that came before.

Questions go to the engine as joins, so that a day of a million rows is compared in a second and in flat memory.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable
from numpy.typing import NDArray

from iolens.records import RowMark
from iolens.schema import TABLES, Table
from iolens.store.duckdb_engine import connection, files_of_days, newest, relation
from iolens.store.partitions import directory_dates
from iolens.store.tables import Tables

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
