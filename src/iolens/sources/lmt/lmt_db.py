"""LMT databases: Lustre servers' counters every five seconds, in MySQL or MariaDB, or copied to a SQLite file.

Byte and operation counters are cumulative and stay raw. Times have no zone, so the zone must be stated. One capture
is one UTC day of one database; its identity changes when the day has grown, so that it may be read again.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, tzinfo
from functools import partial
from pathlib import Path
from typing import Any, Final, NamedTuple

from iolens.errors import InputError
from iolens.records import Capture, Item
from iolens.sources.lmt import brw_stats as lmt_brw_stats
from iolens.sources.lmt.brw_stats import BrwStats
from iolens.sources.lmt.days import TIMES, Day, Window, days_of, times_of
from iolens.sources.lmt.targets import OST_DATA, OST_NAMES, TABLES, DayTables, Schema
from iolens.sources.reading.captures import read_each
from iolens.sources.reading.local_time import find_zone
from iolens.sources.reading.options import ReadOptions
from iolens.sources.reading.sql_database import (
    SCHEMES,
    Database,
    MysqlOpening,
    Opening,
    SqliteOpening,
    TableSchema,
    is_sqlite_with,
)

MARKS: Final = frozenset({TIMES, OST_DATA})
DATABASE_PREFIX: Final = "filesystem_"
SETTINGS: Final = ("timezone", "brw_stats")

_REQUIRED: Final = {
    TIMES: ("TS_ID", "TIMESTAMP"),
    OST_DATA: ("OST_ID", "TS_ID", "READ_BYTES", "WRITE_BYTES"),
    OST_NAMES: ("OST_ID", "OST_NAME"),
}
_FILE_NAME: Final = re.compile(r"(?P<filesystem>.+)_\d{4}-\d{2}-\d{2}")


class LmtDb:
    """An LMT database."""

    name = "lmt-db"
    summary = "LMT databases: MySQL or MariaDB by URL, or a SQLite copy"
    schemes = SCHEMES

    def recognises(self, path: Path, head: bytes) -> bool:
        """A SQLite file with LMT's tables."""
        return is_sqlite_with(path, head, MARKS)

    def captures(self, paths: Sequence[Path], options: ReadOptions) -> Iterator[Capture]:
        """One capture per database and UTC day, the earliest first."""
        yield from _captures([SqliteOpening(path) for path in paths], options)

    def url_captures(self, urls: Sequence[str], options: ReadOptions) -> Iterator[Capture]:
        """The same from live databases."""
        yield from _captures([MysqlOpening(url) for url in urls], options)


SOURCE: Final = LmtDb()


@dataclass(frozen=True, slots=True)
class DayReading:
    """How to read one day of one database, now or in another process."""

    opening: Opening
    filesystem: str
    brw_stats: BrwStats | None
    day: Day
    is_last: bool

    def items(self) -> Iterator[Item]:
        """Everything of the day, target by target."""
        yield from self.day.problems
        with self.opening.open() as database:
            schema = database.schema()
            times = times_of(database, schema, self.day)
            tables = DayTables(database, schema, self.filesystem, times, self.brw_stats, self.is_last)
            yield from tables.items()


class ListedDay(NamedTuple):
    """One day and what makes it itself."""

    identity: str
    reading: DayReading


def _captures(openings: Sequence[Opening], options: ReadOptions) -> Iterator[Capture]:
    databases, refused = read_each(openings, partial(_list, options=options), lambda opening: opening.place)
    yield from refused
    days = [day for database in databases for day in database]
    for identity, reading in sorted(days, key=lambda listed_day: listed_day.reading.day.number):
        yield Capture(reading.opening.place, identity, reading.items)


def _list(opening: Opening, options: ReadOptions) -> list[ListedDay]:
    """The days of one database."""
    _check_settings(options.settings, opening.place)
    with opening.open() as database:
        schema = database.schema()
        _check_schema(schema, opening.place)
        filesystem = _filesystem(database, schema, opening, options)
        zone = _zone(database, schema, filesystem, options)
        brw_stats = lmt_brw_stats.configured(options.settings, opening.place) or lmt_brw_stats.stock(database, schema)
        if brw_stats is not None:
            lmt_brw_stats.check(brw_stats, schema, opening.place)
        days = days_of(database, schema, zone, Window(options.since, options.until))
        readings = [DayReading(opening, filesystem, brw_stats, day, day is days[-1]) for day in days]
        return [ListedDay(_identity(database, schema, reading, zone), reading) for reading in readings]


def _check_settings(settings: Mapping[str, Any], place: str) -> None:
    for key in settings:
        if key not in SETTINGS:
            raise InputError(place, f"unknown key sources.lmt-db.{key}", f"one of {', '.join(SETTINGS)}")
    if not isinstance(settings.get("timezone", ""), str):
        raise InputError(place, f"sources.lmt-db.timezone = {settings['timezone']!r}", "a text in quotes")


def _check_schema(schema: Schema, place: str) -> None:
    for name, columns in _REQUIRED.items():
        if name not in schema:
            raise InputError(place, f"no table {name}", "an LMT database")
        if missing := [column for column in columns if not schema[name].has(column)]:
            raise InputError(place, f"table {name} has no column {', '.join(missing)}", "an LMT database")


def _filesystem(database: Database, schema: Schema, opening: Opening, options: ReadOptions) -> str:
    """`--filesystem`, else what the database says of itself, else its name, else the file's."""
    if options.filesystem:
        return options.filesystem
    table = schema.get("FILESYSTEM_INFO")
    if table is not None and table.has("FILESYSTEM_NAME"):
        sql = f"SELECT DISTINCT {table.column('FILESYSTEM_NAME')} FROM {table.quoted}"  # noqa: S608 (the schema's names)
        names = [str(row[0]) for row in database.rows(sql) if row[0]]
        if len(names) == 1:
            return names[0]
    if opening.database_name.startswith(DATABASE_PREFIX):
        return opening.database_name.removeprefix(DATABASE_PREFIX)
    if match := _FILE_NAME.fullmatch(opening.database_name):
        return match["filesystem"]
    raise InputError(opening.place, "FILESYSTEM_INFO does not name one file system", "--filesystem NAME")


def _zone(database: Database, schema: Schema, filesystem: str, options: ReadOptions) -> tzinfo:
    """`--timezone`, else the configuration's; a column of MySQL's own TIMESTAMP type needs none."""
    if database.keeps_utc(schema[TIMES], "TIMESTAMP"):
        return UTC
    name = options.timezone or options.zones.get(filesystem) or options.settings.get("timezone")
    if name is None:
        raise InputError(
            database.place,
            "LMT writes local times without a zone",
            f"--timezone, such as America/Los_Angeles, or timezone in [filesystems.{filesystem}] of the configuration",
        )
    return find_zone(str(name), database.place)


def _identity(database: Database, schema: Schema, reading: DayReading, zone: tzinfo) -> str:
    """What the day holds, in brief: which times, how many rows of each table, and the counters at both ends.

    A day that has grown, or was replaced, is another one; the same day in a copy of the database is the same.
    """
    day, brw_stats = reading.day, reading.brw_stats
    counts = {name: _rows_of(database, schema, name, key, "TS_ID", day) for name, key in TABLES.items()}
    if brw_stats is not None:
        name, key, ts_id = (name.upper() for name in (brw_stats.table, brw_stats.ost_id, brw_stats.ts_id))
        counts[name] = _rows_of(database, schema, name, key, ts_id, day)
    ends = [_counters_at(database, schema, ts_id) for ts_id in (day.first, day.last)]
    said = [reading.filesystem, str(zone), brw_stats, day.number, day.first, day.last, day.count, counts, ends]
    return "lmt-db/" + hashlib.sha256(repr(said).encode()).hexdigest()


def _rows_of(database: Database, schema: Schema, name: str, key: str, ts_id: str, day: Day) -> int:
    """Rows of a day, found through the primary key: a copy may have no index on TS_ID alone."""
    table, known = schema.get(name), TABLES.get(name, "OST_ID")
    numbers = _numbers(database, schema.get(f"{known.removesuffix('_ID')}_INFO"), known)
    if table is None or not table.has(key, ts_id) or not numbers:
        return 0
    where = f"{_is_any(table, key, numbers)} AND {table.column(ts_id)} BETWEEN ? AND ?"
    sql = f"SELECT COUNT(*) FROM {table.quoted} WHERE {where}"  # noqa: S608 (names from the schema)
    return int(database.rows(sql, (*numbers, day.first, day.last))[0][0])


def _counters_at(database: Database, schema: Schema, ts_id: int) -> list[tuple[Any, ...]]:
    """The byte counters of every OST at one time."""
    table, numbers = schema[OST_DATA], _numbers(database, schema[OST_NAMES], "OST_ID")
    if not numbers:
        return []
    values = ", ".join(database.number(table.column(name)) for name in ("READ_BYTES", "WRITE_BYTES"))
    where = f"{_is_any(table, 'OST_ID', numbers)} AND {table.column('TS_ID')} = ?"
    sql = f"SELECT {database.key(table, 'OST_ID')}, {values} FROM {table.quoted} WHERE {where}"  # noqa: S608 (as above)
    return sorted(database.rows(sql, (*numbers, ts_id)))


def _numbers(database: Database, names: TableSchema | None, key: str) -> list[Any]:
    if names is None or not names.has(key):
        return []
    return [row[0] for row in database.rows(f"SELECT DISTINCT {names.column(key)} FROM {names.quoted}")]  # noqa: S608


def _is_any(table: TableSchema, key: str, numbers: Sequence[object]) -> str:
    return f"{table.column(key)} IN ({', '.join('?' * len(numbers))})"
