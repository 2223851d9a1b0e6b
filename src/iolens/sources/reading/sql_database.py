"""The databases of LMT, Robinhood and controllers: a SQLite copy of one, or the live MySQL or MariaDB, read-only.

Both answer the same questions with whole NumPy columns. The schema is looked up first, because versions differ in
what they have. A password is never part of a place, a message or an identity.
"""

from __future__ import annotations

import contextlib
import os
import re
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any, Final, Protocol
from urllib.parse import SplitResult, parse_qsl, unquote, urlsplit

import numpy as np
from numpy.typing import NDArray

from iolens.errors import InputError, UsageError

SCHEMES: Final = ("mysql", "mariadb")
PASSWORD_VARIABLE: Final = "IOLENS_MYSQL_PASSWORD"  # noqa: S105 (the name of a variable)
DEFAULT_PORT: Final = 3306
SQLITE_MAGIC: Final = b"SQLite format 3\0"
PIECE_ROWS: Final = 100_000
BATCH_ROWS: Final = 65_536
CONNECT_TIMEOUT_S: Final = 20
GROUPING_BYTES: Final = 256 << 20
LONGEST_TEXT: Final = 12 << 20  # what the driver takes in one piece is 16 MiB

# A query over a file takes so many steps of SQLite's machine at most: ten per byte are usual. A view may have no end.
FEWEST_STEPS: Final = 20_000_000
STEPS_PER_BYTE: Final = 200
STEPS_AT_ONCE: Final = 100_000  # between two looks at the count
MOST_ROWS: Final = 1_000_000  # of an answer that is held as a whole
LONGEST_VALUE: Final = 16 << 20  # bytes of a text or blob

# What a number column gives where there is none: counters themselves are never negative.
NULL, NOT_A_NUMBER = -1, -2

_LARGEST: Final = 2**63 - 1
_STAMP_GLOB: Final = "[0-9][0-9][0-9][0-9]-[0-9][0-9]-[0-9][0-9][ T][0-9][0-9]:[0-9][0-9]:[0-9][0-9]"
_URL_PARAMETERS: Final = {"ssl-ca": "ca", "ssl-cert": "cert", "ssl-key": "key", "socket": "unix_socket"}
_INTEGERS: Final = frozenset({"tinyint", "smallint", "mediumint", "int", "bigint"})
_COLLATED: Final = frozenset({"char", "varchar", "tinytext", "text", "mediumtext", "longtext"})
_NAME: Final = re.compile(r"[\w$][\w$-]*")

Table = NDArray[np.void]  # a structured array: one field per column


@dataclass(frozen=True, slots=True)
class TableSchema:
    """A table as this database spells it; columns by their names in capitals, with their declared types."""

    name: str
    columns: Mapping[str, tuple[str, str]]

    def column(self, name: str) -> str:
        """That column, quoted."""
        return _quoted(self.columns[name][0])

    def has(self, *names: str) -> bool:
        """Whether it has all of these columns."""
        return all(name in self.columns for name in names)

    @property
    def quoted(self) -> str:
        """The table's name for SQL."""
        return _quoted(self.name)


@dataclass(frozen=True, slots=True)
class SqlSelection:
    """Some rows of a table, by the order of their first column; columns are named SQL expressions."""

    table: TableSchema
    columns: Mapping[str, str]
    where: str
    parameters: tuple[object, ...]
    reals: frozenset[str] = frozenset()  # names of columns that are not whole numbers

    @property
    def dtype(self) -> np.dtype[np.void]:
        """The type of a row."""
        return np.dtype([(name, np.float64 if name in self.reals else np.int64) for name in self.columns])

    @property
    def sql(self) -> str:
        """The question, row by row."""
        return f"SELECT {', '.join(self.columns.values())} {self.source} ORDER BY 1"

    @property
    def source(self) -> str:
        """Where the rows are from."""
        return f"FROM {self.table.quoted} WHERE {self.where}"


class Database(Protocol):
    """An open database. SQL is written with `?` for parameters."""

    place: str

    def schema(self) -> Mapping[str, TableSchema]:
        """Its tables by their names in capitals."""

    def rows(self, sql: str, parameters: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        """All rows of a small answer."""

    def pieces(self, sql: str, parameters: Sequence[object], dtype: np.dtype[np.void]) -> Iterator[Table]:
        """A large answer in pieces of `PIECE_ROWS` rows, never all at once."""

    def batches(self, sql: str, parameters: Sequence[object] = ()) -> Iterator[list[tuple[Any, ...]]]:
        """A large answer of any types, some `BATCH_ROWS` rows at a time."""

    def table(self, selection: SqlSelection) -> Table:
        """All rows of a selection."""

    def exact_text(self, table: TableSchema, column: str, prefix: str = "") -> str:
        """SQL for a column as text that equals only itself, whatever its collation says of case and blanks."""

    def number(self, column: str) -> str:
        """SQL for a whole number of zero or more; `NULL` or `NOT_A_NUMBER` where there is none."""

    def raw_number(self, table: TableSchema, column: str) -> str:
        """SQL for a column of whole numbers as it is, the cheapest there is: NULL where there is none.

        What is no number at all is negative; what is negative or beyond 2⁶³ may be so.
        """

    def key(self, table: TableSchema, column: str) -> str:
        """SQL for a column of numbers that tell rows apart; `NULL` or `NOT_A_NUMBER` where there is none."""

    def real(self, column: str) -> str:
        """SQL for a number; NULL where there is none."""

    def local_seconds(self, column: str) -> str:
        """SQL for a local time as seconds since 1970 on that clock; NULL where it is no time."""

    def keeps_utc(self, table: TableSchema, column: str) -> bool:
        """Whether the column's own type is a time in UTC, whatever clock wrote it."""


class Opening(Protocol):
    """How to open a database, again and in another process."""

    @property
    def place(self) -> str:
        """Path or address, for people."""

    @property
    def database_name(self) -> str:
        """What the database or its file is called."""

    def open(self) -> contextlib.AbstractContextManager[Database]:
        """The open database."""


def is_sqlite_with(path: Path, head: bytes, tables: frozenset[str]) -> bool:
    """Whether the file is a SQLite database that has these tables (names in capitals)."""
    if not head.startswith(SQLITE_MAGIC):
        return False
    try:
        with SqliteOpening(path).open() as database:
            return tables <= database.schema().keys()
    except InputError:
        return False


@dataclass(frozen=True, slots=True)
class SqliteOpening:
    """A SQLite file."""

    path: Path

    @property
    def place(self) -> str:
        """Its path."""
        return str(self.path)

    @property
    def database_name(self) -> str:
        """The file's name without its ending."""
        return self.path.stem

    @contextlib.contextmanager
    def open(self) -> Iterator[Database]:
        """Open it for reading only."""
        if not self.path.is_file():
            raise InputError(self.place, "no such file")
        try:
            connection = sqlite3.connect(f"{self.path.absolute().as_uri()}?mode=ro", uri=True)
            with contextlib.closing(connection):
                connection.text_factory = _lenient_text
                connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, LONGEST_VALUE)
                connection.execute("PRAGMA trusted_schema = OFF")  # its views and indexes may be anybody's
                yield _Sqlite(self.place, connection, self.path.stat().st_size)
        except sqlite3.Error as error:
            raise InputError(self.place, f"SQLite: {error}", "a readable copy of a database") from error


class _Sqlite:
    def __init__(self, place: str, connection: sqlite3.Connection, size: int) -> None:
        self.place = place
        self.connection = connection
        self.most_steps = FEWEST_STEPS + STEPS_PER_BYTE * size
        self.steps = 0  # of the query under way
        connection.set_progress_handler(self._is_too_long, STEPS_AT_ONCE)

    def _is_too_long(self) -> bool:
        self.steps += STEPS_AT_ONCE
        return self.steps > self.most_steps

    @contextlib.contextmanager
    def _answer(self, sql: str, parameters: Sequence[object]) -> Iterator[sqlite3.Cursor]:
        """The rows of a query, which must come to an end."""
        self.steps = 0
        try:
            yield self.connection.execute(sql, tuple(parameters))
        except UnicodeDecodeError as error:  # of a message of SQLite's that quotes a damaged schema
            raise InputError(self.place, "SQLite: a damaged schema", "a readable copy of a database") from error
        except sqlite3.OperationalError as error:
            if self.steps <= self.most_steps:
                raise
            problem = f"a query did not end within {self.most_steps:,} steps: a view without an end, or a damaged index"
            raise InputError(self.place, problem, "tables, or views of what the file holds") from error

    def schema(self) -> Mapping[str, TableSchema]:
        results = self.rows(
            "SELECT m.name, c.name, c.type FROM sqlite_master m, pragma_table_info(m.name) c"
            " WHERE m.type IN ('table', 'view')"
        )
        return _schema(results)

    def rows(self, sql: str, parameters: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        with self._answer(sql, parameters) as cursor:
            results = cursor.fetchmany(MOST_ROWS + 1)
        if len(results) > MOST_ROWS:
            raise InputError(self.place, f"more than {MOST_ROWS:,} rows where a few were expected")
        return results

    def pieces(self, sql: str, parameters: Sequence[object], dtype: np.dtype[np.void]) -> Iterator[Table]:
        with self._answer(sql, parameters) as cursor:
            yield from _in_pieces(iter(cursor), dtype)

    def batches(self, sql: str, parameters: Sequence[object] = ()) -> Iterator[list[tuple[Any, ...]]]:
        with self._answer(sql, parameters) as cursor:
            while batch := cursor.fetchmany(BATCH_ROWS):
                yield batch

    def table(self, selection: SqlSelection) -> Table:
        return _row_by_row(self, selection)

    def exact_text(self, table: TableSchema, column: str, prefix: str = "") -> str:
        return f"CAST({prefix}{table.column(column)} AS TEXT) COLLATE BINARY"

    def number(self, column: str) -> str:
        """Columns of a copy often have no type: a number may be stored as text, and anything else as well."""
        return (
            f"CASE typeof({column}) WHEN 'null' THEN {NULL}"
            f" WHEN 'integer' THEN CASE WHEN {column} < 0 THEN {NOT_A_NUMBER} ELSE {column} END"
            f" WHEN 'real' THEN CASE WHEN {column} BETWEEN 0 AND 9e18 THEN CAST({column} AS INTEGER)"
            f" ELSE {NOT_A_NUMBER} END"
            f" WHEN 'text' THEN CASE WHEN {column} <> '' AND length({column}) < 19 AND {column} NOT GLOB '*[^0-9]*'"
            f" THEN CAST({column} AS INTEGER) ELSE {NOT_A_NUMBER} END ELSE {NOT_A_NUMBER} END"
        )

    def raw_number(self, table: TableSchema, column: str) -> str:
        return f"NULLIF({self.number(table.column(column))}, {NULL})"

    def key(self, table: TableSchema, column: str) -> str:
        return self.number(table.column(column))

    def real(self, column: str) -> str:
        return f"CASE WHEN typeof({column}) IN ('integer', 'real') THEN CAST({column} AS REAL) END"

    def local_seconds(self, column: str) -> str:
        """A stamp with a zone or a number of its own is not LMT's: NULL rather than a guess."""
        return (
            f"CASE WHEN {column} GLOB '{_STAMP_GLOB}' OR {column} GLOB '{_STAMP_GLOB}.*'"
            f" THEN CAST(strftime('%s', substr({column}, 1, 19)) AS INTEGER) END"
        )

    def keeps_utc(self, table: TableSchema, column: str) -> bool:
        return False


@dataclass(frozen=True, slots=True)
class MysqlOpening:
    """A MySQL or MariaDB database by URL: `mysql://user@host:port/filesystem_NAME?ssl-ca=FILE`."""

    url: str = field(repr=False)  # may carry a password

    @property
    def place(self) -> str:
        """The address without a password and parameters."""
        parts = self._parts()
        user = f"{parts.username}@" if parts.username else ""
        port = f":{parts.port}" if parts.port else ""
        return f"{parts.scheme}://{user}{parts.hostname or ''}{port}{parts.path}"

    @property
    def database_name(self) -> str:
        """The name of the database."""
        return unquote(self._parts().path.strip("/"))

    @contextlib.contextmanager
    def open(self) -> Iterator[Database]:
        """Connect and begin to read one consistent state."""
        import pymysql
        from pymysql.cursors import SSCursor

        arguments = self.arguments()
        try:
            connection = pymysql.connect(**arguments, cursorclass=SSCursor)
        except pymysql.Error as error:
            raise InputError(self.place, f"MySQL: {_reason(error)}", "a readable database") from error
        except (OSError, RuntimeError, ValueError) as error:  # no such certificate, library or host name
            raise InputError(self.place, f"cannot connect: {error}") from error
        try:
            with contextlib.closing(connection):
                with connection.cursor() as cursor:
                    cursor.execute(f"SET SESSION time_zone = '+00:00', SESSION group_concat_max_len = {LONGEST_TEXT}")
                    for limit in ("tmp_table_size", "max_heap_table_size"):  # to group on disk is five times slower
                        cursor.execute(f"SET SESSION {limit} = GREATEST(@@{limit}, {GROUPING_BYTES})")
                    cursor.execute("START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY")
                yield _Mysql(self.place, connection)
        except pymysql.Error as error:
            raise InputError(self.place, f"MySQL: {_reason(error)}", "a readable database") from error
        except OSError as error:
            raise InputError(self.place, f"the connection was lost: {error}") from error

    def arguments(self) -> dict[str, Any]:
        """What the driver is given: from the URL, the environment and `~/.my.cnf`."""
        parts = self._parts()
        given: dict[str, Any] = {
            "database": self.database_name,
            "connect_timeout": CONNECT_TIMEOUT_S,
            "charset": "utf8mb4",
            "host": parts.hostname,
            "port": parts.port or DEFAULT_PORT,
            "user": unquote(parts.username) if parts.username else None,
            "password": unquote(parts.password) if parts.password else os.environ.get(PASSWORD_VARIABLE),
        }
        options = Path.home() / ".my.cnf"
        if options.is_file():
            given["read_default_file"] = str(options)
        return {name: value for name, value in given.items() if value is not None} | self._parameters()

    def _parts(self) -> SplitResult:
        """The parts of the URL; what is wrong with it is said without quoting it, for a password may be anywhere."""
        try:
            parts = urlsplit(self.url)
        except ValueError:  # brackets that hold no IPv6 address, characters no host has
            scheme = self.url.partition("://")[0]
            raise UsageError(f"{scheme}://…: not an address; write {scheme}://user@host:port/database") from None
        if not _NAME.fullmatch(unquote(parts.path.strip("/"))):
            raise UsageError(f"name the database, such as {parts.scheme}://user@host/filesystem_scratch")
        try:
            parts.port  # noqa: B018 (raises where it is no number)
        except ValueError:
            raise UsageError(f"{parts.scheme}://…{parts.path}: the port is not a number") from None
        return parts

    def _parameters(self) -> dict[str, Any]:
        names = dict(parse_qsl(urlsplit(self.url).query, keep_blank_values=True))
        if unknown := sorted(names.keys() - _URL_PARAMETERS.keys()):
            raise UsageError(f"{self.place}: unknown parameter {unknown[0]!r}; there are {', '.join(_URL_PARAMETERS)}")
        named = {_URL_PARAMETERS[name]: value for name, value in names.items()}
        socket = {"unix_socket": named.pop("unix_socket")} if "unix_socket" in named else {}
        return socket | ({"ssl": named} if named else {})


class _Mysql:
    def __init__(self, place: str, connection: Any) -> None:
        self.place = place
        self.connection = connection
        self.longest_text = int(self.rows("SELECT LEAST(@@group_concat_max_len, @@max_allowed_packet)")[0][0]) - 1

    @contextlib.contextmanager
    def cursor(self) -> Iterator[Any]:
        """A cursor for one answer. Where the server goes away amid it, the driver must not wait for the rest of it."""
        import pymysql

        cursor = self.connection.cursor()
        try:
            yield cursor
        except pymysql.Error:
            if cursor._result is not None:
                cursor._result.unbuffered_active = False
            raise
        except BaseException:
            cursor.close()
            raise
        cursor.close()

    def schema(self) -> Mapping[str, TableSchema]:
        results = self.rows(
            "SELECT TABLE_NAME, COLUMN_NAME, DATA_TYPE FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = DATABASE()"
        )
        return _schema(results)

    def rows(self, sql: str, parameters: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        with self.cursor() as cursor:
            cursor.execute(_percent(sql), tuple(parameters))
            return list(cursor.fetchall())

    def pieces(self, sql: str, parameters: Sequence[object], dtype: np.dtype[np.void]) -> Iterator[Table]:
        with self.cursor() as cursor:
            cursor.execute(_percent(sql), tuple(parameters))
            yield from _in_pieces(iter(cursor.fetchone, None), dtype)

    def batches(self, sql: str, parameters: Sequence[object] = ()) -> Iterator[list[tuple[Any, ...]]]:
        with self.cursor() as cursor:
            cursor.execute(_percent(sql), tuple(parameters))
            while batch := cursor.fetchmany(BATCH_ROWS):
                yield list(batch)

    def table(self, selection: SqlSelection) -> Table:
        """Each column as one text that the server joins: several times faster than rows through the driver.

        Values of a group are joined in one order for all columns. What does not fit is read row by row.
        """
        joined = ", ".join(
            f"GROUP_CONCAT(COALESCE({expression}, 'nan') SEPARATOR ' ')" for expression in selection.columns.values()
        )
        count, *texts = self.rows(f"SELECT COUNT(*), {joined} {selection.source}", selection.parameters)[0]
        values = np.empty(count, selection.dtype)
        for name, text in zip(selection.columns, texts, strict=True):
            if len(text or "") >= self.longest_text:
                return _row_by_row(self, selection)
            values[name] = np.fromstring(text or "", values.dtype[name], sep=" ")
        return values[np.argsort(values[next(iter(selection.columns))], kind="stable")]

    def exact_text(self, table: TableSchema, column: str, prefix: str = "") -> str:
        """Only what has a collation is cast: to group by a cast is tens of times slower."""
        name = prefix + table.column(column)
        return f"CAST({name} AS BINARY)" if table.columns[column][1] in _COLLATED else name

    def number(self, column: str) -> str:
        return (
            f"CASE WHEN {column} IS NULL THEN {NULL}"
            f" WHEN {column} < 0 OR {column} > {_LARGEST} THEN {NOT_A_NUMBER} ELSE CAST({column} AS SIGNED) END"
        )

    def raw_number(self, table: TableSchema, column: str) -> str:
        name = table.column(column)
        return name if table.columns[column][1] in _INTEGERS else f"NULLIF({self.number(name)}, {NULL})"

    def key(self, table: TableSchema, column: str) -> str:
        return f"COALESCE({self.raw_number(table, column)}, {NULL})"

    def real(self, column: str) -> str:
        return column

    def local_seconds(self, column: str) -> str:
        """Without the session's zone: a DATETIME has none, and the session's own is UTC for a TIMESTAMP."""
        return f"TIMESTAMPDIFF(SECOND, '1970-01-01 00:00:00', {column})"

    def keeps_utc(self, table: TableSchema, column: str) -> bool:
        return table.columns[column][1] == "timestamp"


def _row_by_row(database: Database, selection: SqlSelection) -> Table:
    pieces = list(database.pieces(selection.sql, selection.parameters, selection.dtype))
    return np.concatenate(pieces) if pieces else np.empty(0, selection.dtype)


def _in_pieces(rows: Iterator[tuple[Any, ...]], dtype: np.dtype[np.void]) -> Iterator[Table]:
    while len(piece := np.fromiter(islice(rows, PIECE_ROWS), dtype)):
        yield piece
        if len(piece) < PIECE_ROWS:
            return


def _schema(results: Sequence[tuple[Any, ...]]) -> Mapping[str, TableSchema]:
    columns: dict[str, dict[str, tuple[str, str]]] = {}
    for table, column, kind in results:
        if _NAME.fullmatch(table) and _NAME.fullmatch(column):
            columns.setdefault(table, {})[column.upper()] = (column, str(kind).lower())
    return {table.upper(): TableSchema(table, of_table) for table, of_table in columns.items()}


def _quoted(name: str) -> str:
    return f"`{name}`"  # names were checked when the schema was read; both kinds of database take this quotation mark


def _percent(sql: str) -> str:
    return sql.replace("%", "%%").replace("?", "%s")


def _reason(error: Exception) -> str:
    """The driver's message; its first argument is a number of the server's."""
    return " ".join(str(arg) for arg in error.args) or type(error).__name__


def _lenient_text(raw: bytes) -> str:
    return raw.decode("utf-8", "backslashreplace")
