"""Disk I/O sizes beside an LMT database: stock LMT has none, sites added their own table of cumulative brw_stats.

The FSU authors' extension (schema 1.2: `BRW_STATS_DATA`, `BRW_STATS_INFO`) is found by itself; any other table is
named in the configuration, one row per bin (long) or one column per bin (wide). See docs/lmt.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np

from iolens.arrays import Integers
from iolens.errors import InputError
from iolens.schema import DIRECTIONS, SIZE_BINS, size_column
from iolens.sources.reading.sql_database import Database, SqlSelection, Table, TableSchema

STOCK_TABLE: Final = "BRW_STATS_DATA"
STOCK_NAMES: Final = "BRW_STATS_INFO"
STOCK_HISTOGRAM: Final = "BRW_IOSIZE"
_WHERE: Final = "sources.lmt-db.brw_stats"
_LONG_KEYS: Final = ("size", "read", "write")
_WIDE_KEYS: Final = ("read_columns", "write_columns")
_KEYS: Final = ("table", "ts_id", "ost_id", *_LONG_KEYS, "where", *_WIDE_KEYS)
_COLUMN_OF: Final = {size: number for number, size in enumerate(SIZE_BINS)}
_OUTSIDE: Final = len(SIZE_BINS)


@dataclass(frozen=True, slots=True)
class BrwStats:
    """Which table and columns hold the histogram. `bins`: column and its upper bound in bytes, by direction (wide)."""

    table: str
    ts_id: str = "TS_ID"
    ost_id: str = "OST_ID"
    size: str = ""
    read: str = ""
    write: str = ""
    where: tuple[tuple[str, int | str], ...] = ()
    bins: tuple[tuple[str, int, str], ...] = ()  # direction, upper bound in bytes, column

    @property
    def columns(self) -> list[str]:
        """Every column it needs."""
        long = [self.size, self.read, self.write, *(name for name, _ in self.where)] if self.size else []
        return [self.ts_id, self.ost_id, *long, *(column for _, _, column in self.bins)]


class SizeCounts(NamedTuple):
    """I/Os by size of one OST: counters of `target_sizes` at each TS_ID, and how many values were not numbers."""

    ts_ids: Integers
    counters: dict[str, Integers]
    refused: int


def configured(settings: Mapping[str, Any], place: str) -> BrwStats | None:
    """What the configuration says, or None."""
    if "brw_stats" not in settings:
        return None
    part = settings["brw_stats"]
    if not isinstance(part, Mapping):
        raise InputError(place, f"{_WHERE} is not a section", "keys such as table, size, read, write")
    for key in part:
        if key not in _KEYS:
            raise InputError(place, f"unknown key {_WHERE}.{key}", f"one of {', '.join(_KEYS)}")
    is_wide = any(key in part for key in _WIDE_KEYS)
    required = ("table", *(_WIDE_KEYS if is_wide else _LONG_KEYS))
    if missing := [key for key in required if key not in part]:
        raise InputError(place, f"{_WHERE} lacks {', '.join(missing)}", f"{', '.join(required)}")
    names: dict[str, Any] = {
        key: _name(part, key, place) for key in ("table", "ts_id", "ost_id", *_LONG_KEYS) if key in part
    }
    if is_wide:
        return BrwStats(**names, bins=tuple(_bins(part, place)))
    return BrwStats(**names, where=tuple(_conditions(part.get("where", {}), place)))


def stock(database: Database, schema: Mapping[str, TableSchema]) -> BrwStats | None:
    """The FSU authors' own table, where the database has it."""
    if STOCK_TABLE not in schema or STOCK_NAMES not in schema:
        return None
    names = schema[STOCK_NAMES]
    if not names.has("STATS_ID", "STATS_NAME"):
        return None
    sql = f"SELECT {database.key(names, 'STATS_ID')} FROM {names.quoted} WHERE {names.column('STATS_NAME')} = ?"  # noqa: S608
    results = database.rows(sql, (STOCK_HISTOGRAM,))
    if not results:
        return None
    where = (("STATS_ID", int(results[0][0])),)
    return BrwStats(STOCK_TABLE, size="BIN", read="READ_COUNT", write="WRITE_COUNT", where=where)


def check(brw_stats: BrwStats, schema: Mapping[str, TableSchema], place: str) -> TableSchema:
    """The table as the database has it."""
    table = schema.get(brw_stats.table.upper())
    if table is None:
        raise InputError(place, f"no table {brw_stats.table}", f"the table that {_WHERE} names")
    if missing := [column for column in brw_stats.columns if not table.has(column.upper())]:
        raise InputError(place, f"table {table.name} has no column {', '.join(missing)}", f"what {_WHERE} names")
    return table


def read_sizes(
    database: Database, table: TableSchema, brw_stats: BrwStats, ost_id: int, first: int, last: int
) -> SizeCounts:
    """The histogram of one OST between two TS_IDs."""
    values = [brw_stats.size, brw_stats.read, brw_stats.write] if brw_stats.size else [c for *_, c in brw_stats.bins]
    ts_id, ost = table.column(brw_stats.ts_id.upper()), table.column(brw_stats.ost_id.upper())
    columns = {"ts_id": database.key(table, brw_stats.ts_id.upper())}
    for number, name in enumerate(values):
        columns[f"v{number}"] = database.number(table.column(name.upper()))
    conditions = [
        f"{ost} = ?",
        f"{ts_id} BETWEEN ? AND ?",
        *(f"{table.column(name.upper())} = ?" for name, _ in brw_stats.where),
    ]
    parameters = (ost_id, first, last, *(value for _, value in brw_stats.where))
    array = database.table(SqlSelection(table, columns, " AND ".join(conditions), parameters))
    return _from_long(array) if brw_stats.size else _from_wide(array, brw_stats)


def _from_long(values: Table) -> SizeCounts:
    """One row per bin. brw_stats prints no row for a size that never occurred: at a time that has rows it is zero."""
    numbers = np.stack([values[f"v{n}"] for n in range(3)]) if len(values) else np.zeros((3, 0), np.int64)
    ts_ids, where = np.unique(values["ts_id"], return_inverse=True)
    broken = np.unique(where[(numbers < 0).any(axis=0)])
    bins = np.array([_COLUMN_OF.get(size, _OUTSIDE) for size in numbers[0].tolist()], np.int64)
    counters: dict[str, Integers] = {}
    for direction, counts in zip(DIRECTIONS, numbers[1:], strict=True):
        table = np.zeros((len(ts_ids), len(SIZE_BINS) + 1), np.int64)
        inside = bins != _OUTSIDE
        order = np.flatnonzero(inside)[np.argsort(counts[inside], kind="stable")]  # of a repeated row the larger counts
        table[where[order], bins[order]] = counts[order]
        np.add.at(table[:, _OUTSIDE], where[~inside], counts[~inside])
        counters |= _counters(direction, np.delete(table, broken, axis=0))
    return SizeCounts(np.delete(ts_ids, broken), counters, len(broken))


def _from_wide(array: Table, brw_stats: BrwStats) -> SizeCounts:
    values = {name: array[name] for name in array.dtype.names or () if name != "ts_id"}
    broken = np.zeros(len(array), bool)
    for column in values.values():
        broken |= column < 0
    tables = {direction: np.zeros((len(array), len(SIZE_BINS) + 1), np.int64) for direction in DIRECTIONS}
    for (direction, size, _), column in zip(brw_stats.bins, values.values(), strict=True):
        tables[direction][:, _COLUMN_OF.get(size, _OUTSIDE)] += column
    counters: dict[str, Integers] = {}
    for direction, table in tables.items():
        counters |= _counters(direction, table[~broken])
    return SizeCounts(array["ts_id"][~broken], counters, int(broken.sum()))


def _counters(direction: str, table: Integers) -> dict[str, Integers]:
    named = {size_column(direction, size): table[:, number].copy() for size, number in _COLUMN_OF.items()}
    return named | {f"{direction}_ios_outside": table[:, _OUTSIDE].copy()}


def _name(part: Mapping[str, Any], key: str, place: str) -> str:
    value = part[key]
    if not isinstance(value, str) or not value:
        raise InputError(place, f"{_WHERE}.{key} = {value!r} is not a name", "a text in quotes")
    return value


def _bins(part: Mapping[str, Any], place: str) -> list[tuple[str, int, str]]:
    result = []
    for direction in DIRECTIONS:
        columns = part[f"{direction}_columns"]
        if not isinstance(columns, Mapping):
            raise InputError(place, f"{_WHERE}.{direction}_columns is not a section", '{ "4096" = "COLUMN", … }')
        for size, column in columns.items():
            if not str(size).isdigit() or not isinstance(column, str):
                raise InputError(place, f"{_WHERE}.{direction}_columns.{size} = {column!r}", '"bytes" = "COLUMN"')
            result.append((direction, int(size), column))
    return result


def _conditions(part: Any, place: str) -> list[tuple[str, int | str]]:
    if not isinstance(part, Mapping) or not all(isinstance(value, int | str) for value in part.values()):
        raise InputError(place, f"{_WHERE}.where = {part!r}", "{ COLUMN = number or text }")
    return list(part.items())
