"""`--rebuild`: samples older than the baseline are taken after all, and replace the intervals they cover.

Stored intervals that lie inside the rebuilt stretch of a target go; one that reaches across its edge stays, and the
rebuilt intervals that overlap it are dropped, so that nothing counts twice.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from deltalake import DeltaTable

from iolens.store.duckdb_engine import query
from iolens.store.tables import Tables, retrying
from iolens.units import from_epoch_us, iso

Rows = list[dict[str, Any]]
DAY_US = 86_400_000_000


def make_room(tables: Tables, name: str, rows: Rows) -> Rows:
    """Remove the stored intervals that `rows` replace; returns the rows that may be appended."""
    kept: Rows = []
    by_target: dict[tuple[str, str, str], Rows] = {}
    for row in rows:
        by_target.setdefault((row["source"], row["filesystem"], row["target"]), []).append(row)
    for (source, filesystem, target), mine in by_target.items():
        first, last = min(row["start"] for row in mine), max(row["time"] for row in mine)
        across = _across(tables, name, [source, filesystem, target], first, last)
        kept += [row for row in mine if not any(row["start"] < end and start < row["time"] for start, end in across)]
        condition = (
            f"source = {_quoted(source)} AND filesystem = {_quoted(filesystem)} AND target = {_quoted(target)}"
            f" AND date >= {_day(first)} AND date <= {_day(last)}"
            f" AND start >= {_moment(first)} AND time <= {_moment(last)}"
        )
        retrying(partial(_delete, tables, name, condition), f"rebuild {name}")
    return kept


def _across(tables: Tables, name: str, key: list[str], first: int, last: int) -> list[tuple[int, int]]:
    """Stored intervals that reach across an edge of the rebuilt stretch."""
    handle = tables.load(name)
    if handle is None:
        return []
    sql = """SELECT DISTINCT start_us, epoch_us FROM found WHERE source = ? AND filesystem = ? AND target = ?
             AND epoch_us > ? AND start_us < ? AND (start_us < ? OR epoch_us > ?)"""
    return [(start, end) for start, end in query(tables, handle, name, sql, [*key, first, last, first, last])]


def _delete(tables: Tables, name: str, condition: str) -> None:
    handle: DeltaTable | None = tables.load(name)
    if handle is not None:
        handle.delete(condition)


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _moment(microseconds: int) -> str:
    return f"arrow_cast('{iso(from_epoch_us(microseconds))}', 'Timestamp(Microsecond, Some(\"UTC\"))')"


def _day(microseconds: int) -> str:
    return f"DATE '{from_epoch_us(microseconds).date().isoformat()}'"
