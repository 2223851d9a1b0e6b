"""`--rebuild`: samples older than the baseline are taken after all, and replace the intervals they cover.

Stored intervals that lie inside the rebuilt stretch of a target go; one that reaches across its edge stays, and the
rebuilt intervals that overlap it are dropped, so that nothing counts twice.
"""

from __future__ import annotations

from datetime import date
from functools import partial

import numpy as np
import pyarrow as pa
from deltalake import DeltaTable
from numpy.typing import NDArray

from iolens.schema import TABLES
from iolens.store.duckdb_engine import query
from iolens.store.snapshot import DayMarks
from iolens.store.tables import Tables, commit_properties, retrying
from iolens.units import from_epoch_us, iso

DAY_US = 86_400_000_000
REBUILT = "rebuilt"  # marks days some of whose rows were exchanged for others, which their number does not show


def make_room(tables: Tables, name: str, rows: pa.Table) -> pa.Table:
    """Remove the stored intervals that `rows` replace; returns the rows that may be appended."""
    who = "target" if "target" in TABLES[name].key else "node"
    start, end = (np.asarray(rows.column(moment).cast(pa.int64())) for moment in ("start", "time"))
    kept = np.ones(rows.num_rows, bool)
    for (source, filesystem, target), mine in _by_target(rows, who).items():
        first, last = int(start[mine].min()), int(end[mine].max())
        for began, ended in _across(tables, name, who, [source, filesystem, target], first, last):
            kept[mine] &= ~((start[mine] < ended) & (began < end[mine]))
        condition = (
            f"source = {_quoted(source)} AND filesystem = {_quoted(filesystem)} AND {who} = {_quoted(target)}"
            f" AND date >= {_day(first)} AND date <= {_day(last)}"
            f" AND start >= {_moment(first)} AND time <= {_moment(last)}"
        )
        days = [from_epoch_us(day * DAY_US).date() for day in range(first // DAY_US, last // DAY_US + 1)]
        retrying(partial(_delete, tables, name, condition, days), f"rebuild {name}")
    return rows.filter(pa.array(kept))


def _by_target(rows: pa.Table, who: str) -> dict[tuple[str, str, str], NDArray[np.int64]]:
    """Positions of each target's rows."""
    keys = zip(*(rows.column(column).to_pylist() for column in ("source", "filesystem", who)), strict=True)
    found: dict[tuple[str, str, str], list[int]] = {}
    for position, key in enumerate(keys):
        found.setdefault(key, []).append(position)
    return {key: np.array(positions) for key, positions in found.items()}


def _across(tables: Tables, name: str, who: str, key: list[str], first: int, last: int) -> list[tuple[int, int]]:
    """Stored intervals that reach across an edge of the rebuilt stretch."""
    handle = tables.load(name)
    if handle is None:
        return []
    sql = f"""SELECT DISTINCT start_us, epoch_us FROM found WHERE source = ? AND filesystem = ? AND {who} = ?
              AND epoch_us > ? AND start_us < ? AND (start_us < ? OR epoch_us > ?)"""  # noqa: S608 (a column's name)
    return [(start, end) for start, end in query(tables, handle, name, sql, [*key, first, last, first, last])]


def _delete(tables: Tables, name: str, condition: str, days: list[date]) -> None:
    handle: DeltaTable | None = tables.load(name)
    if handle is not None:
        marks = DayMarks(handle, REBUILT)
        rebuilt = marks.set_to({day: marks.of(day) + 1 for day in days})
        handle.delete(condition, commit_properties=commit_properties(rebuilt))


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _moment(microseconds: int) -> str:
    return f"arrow_cast('{iso(from_epoch_us(microseconds))}', 'Timestamp(Microsecond, Some(\"UTC\"))')"


def _day(microseconds: int) -> str:
    return f"DATE '{from_epoch_us(microseconds).date().isoformat()}'"
