"""The embedded engine: DuckDB reads the files a Delta snapshot names with its own Parquet reader."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from datetime import date
from threading import Thread, local
from typing import Any, Final, TypeVar

import duckdb
import narwhals as nw
import pyarrow as pa
from deltalake import DeltaTable

from iolens.messages import DEBUG, detail
from iolens.schema import Table
from iolens.store.parts import made_by_workers, pays
from iolens.store.tables import Tables, arrow_schema, declared, unreadable
from iolens.store.tables import data_files as data_files

EPOCH: Final = date(1970, 1, 1).toordinal()

PATIENCE: Final = 5.0  # seconds

Answer = TypeVar("Answer")

_of_thread: Final = local()  # a connection answers one thread at a time; those of a server ask at once


class DuckDBEngine:
    """Analyses on this machine. Files on object storage are read through Arrow, since centres are air-gapped and
    DuckDB's own object-store reader would have to be fetched.
    """

    name = "duckdb"
    rows_per_chunk = 10_000_000  # keeps memory flat in the length of the window
    days_per_chunk = 7

    def __init__(self, workers: int | None = None) -> None:
        """`workers` are processes and cores: all that this process may use, unless given."""
        self.workers = workers or len(os.sched_getaffinity(0))
        if workers is not None:
            connection().execute(f"SET threads = {workers:d}")

    def scan(self, tables: Tables, name: str, files: Sequence[str]) -> nw.LazyFrame[Any]:
        """A lazy frame over `files` with the declared columns and `epoch_us`, `start_us`."""
        detail(f"reading {len(files)} files of {tables.uri(name)}", DEBUG)
        return nw.from_native(relation(tables, name, files))

    def frame(self, rows: pa.Table) -> nw.LazyFrame[Any]:
        """Rows of this process."""
        return nw.from_native(connection().from_arrow(rows))

    def made(self, maker: Any, days: Sequence[Any]) -> Iterator[Any] | None:
        """By worker processes, where there are several cores and enough rows, and DuckDB does not use them already."""
        if not pays(days, self.workers, maker.by_engine):
            return None
        return made_by_workers(maker, days, self.workers)

    def use_one_core(self) -> None:
        """One thread."""
        connection().execute("SET threads = 1")

    def stop(self) -> None:
        """Nothing to stop: the engine lives in this process."""


class NotWantedError(BaseException):
    """Nobody waits for what this thread computes: nothing may take it for a fault and go on."""


@contextmanager
def wanted_while(is_wanted: Callable[[], bool]) -> Iterator[None]:
    """Whatever this thread asks now ends with `NotWantedError` at its next statement when it is wanted no more.

    Between statements, because DuckDB 2.0 can lock up when one is interrupted.
    """
    _of_thread.is_wanted = is_wanted
    try:
        yield
    finally:
        _of_thread.is_wanted = None


def connection() -> duckdb.DuckDBPyConnection:
    """The thread's one in-memory database; UTC, so that a timestamp means the same everywhere."""
    is_wanted: Callable[[], bool] | None = getattr(_of_thread, "is_wanted", None)
    if is_wanted is not None and not is_wanted():
        raise NotWantedError
    if getattr(_of_thread, "connection", None) is None:
        _of_thread.connection = duckdb.connect(":memory:")
        _of_thread.connection.execute("SET TimeZone = 'UTC'")
        _of_thread.connection.execute("SET preserve_insertion_order = false")
        _of_thread.connection.execute("SET enable_progress_bar = false")
    own: duckdb.DuckDBPyConnection = _of_thread.connection
    return own


def interruptible(work: Callable[[], Answer]) -> Answer:
    """Do something long on the connection, in a thread beside this one: the engine does not notice Ctrl-C by itself."""
    answer: Future[Answer] = Future()
    beside = Thread(target=_settle, args=(answer, work, connection()), daemon=True)
    try:
        beside.start()  # inside: Ctrl-C may come before this returns, when the work has already begun
        return answer.result()
    except KeyboardInterrupt:
        _stop(beside)
        raise


def _stop(beside: Thread) -> None:
    """Interrupt the engine until it has noticed: an interruption between two statements is lost. DuckDB 2.0 can lock up
    instead, all its threads waiting; then the thread and the connection are left behind.
    """
    deadline = time.monotonic() + PATIENCE
    while beside.is_alive():
        if time.monotonic() > deadline:
            _of_thread.connection = None
            return
        connection().interrupt()
        beside.join(0.1)


def _settle(answer: Future[Answer], work: Callable[[], Answer], own: duckdb.DuckDBPyConnection) -> None:
    _of_thread.connection = own
    try:
        answer.set_result(work())
    except BaseException as error:
        answer.set_exception(error)


def relation(tables: Tables, name: str, files: Sequence[str]) -> duckdb.DuckDBPyRelation:
    """The declared columns of a table over the given files (paths relative to the table)."""
    schema = arrow_schema(declared(name))
    expressions: dict[str, str] = {}
    if not files:
        rows = connection().from_arrow(schema.empty_table())
    elif tables.is_local:
        root, is_partitioned = f"{tables.uri(name)}/", declared(name).partitioned
        paths = [root + path for path in files]
        rows = connection().read_parquet(paths, hive_partitioning=False, union_by_name=True, filename=is_partitioned)
        if is_partitioned:
            expressions["date"] = _day_below(root)
    else:
        rows = connection().from_arrow(_dataset(tables, name, files, schema))
    expressions = {column: f'"{column}"' for column in rows.columns} | expressions
    columns = [expressions.get(column) or _absent(field) for column, field in zip(schema.names, schema, strict=True)]
    times = [
        f"epoch_us({source}) AS {alias}"
        for source, alias in (("time", "epoch_us"), ("start", "start_us"))
        if source in schema.names
    ]
    return rows.project(", ".join([*columns, *times]))


def newest(rows: duckdb.DuckDBPyRelation, table: Table) -> duckdb.DuckDBPyRelation:
    """Of several rows with one key the one that counts, where the table keeps them all: by `newest_by`, `loaded_by`."""
    if table.newest_by is None:
        return rows
    key = ", ".join(f'"{name}"' for name in table.key)
    ranks = ", ".join(f'"{name}" DESC NULLS LAST' for name in (table.newest_by, table.loaded_by) if name is not None)
    order = f"PARTITION BY {key} ORDER BY {ranks}"
    numbered = rows.project(f"*, row_number() OVER ({order}) AS _place")
    return numbered.filter("_place = 1").project("* EXCLUDE (_place)")


def _day_below(root: str) -> str:
    """The day of a file: that of the log, which is the path below the table; what stands above it
    (`…/read_bytes=7/store`) is nobody's column, and a file of 0.1 may lie in no day's folder.
    """
    first = len(root) + len("date=") + 1
    return f"TRY_CAST(substr(filename, {first}, {len('2012-10-22')}) AS DATE) AS date"


def query(
    tables: Tables,
    handle: DeltaTable,
    name: str,
    sql: str,
    parameters: Sequence[object] = (),
    days: Collection[int] | None = None,
) -> list[tuple[Any, ...]]:
    """Rows of a small question in SQL over the table (of some days since 1970), which the statement calls `stored`."""
    try:
        stored = relation(tables, name, files_of_days(handle, days))
        assert stored is not None
        return connection().execute(sql, list(parameters)).fetchall()
    except (duckdb.IOException, duckdb.InvalidInputException) as error:
        raise unreadable(tables.uri(name), error) from error


def files_of_days(handle: DeltaTable, days: Collection[int] | None) -> list[str]:
    """Paths of the files of some days since 1970, or of all."""
    files = data_files(handle)
    if days is None:
        return files
    wanted = {f"date={date.fromordinal(EPOCH + day).isoformat()}" for day in days}
    return [path for path in files if path.partition("/")[0] in wanted]


def _absent(field: pa.Field) -> str:
    types = {
        pa.int64(): "BIGINT",
        pa.float64(): "DOUBLE",
        pa.string(): "VARCHAR",
        pa.bool_(): "BOOLEAN",
        pa.date32(): "DATE",
    }
    return f'NULL::{types.get(field.type, "TIMESTAMPTZ")} AS "{field.name}"'


def _dataset(tables: Tables, name: str, files: Sequence[str], schema: pa.Schema) -> Any:
    import pyarrow.dataset as pads

    partitioning = pads.partitioning(pa.schema([("date", pa.date32())]), flavor="hive")
    return pads.dataset(
        list(files),
        schema=schema,
        filesystem=tables.filesystem(name),
        format="parquet",
        partitioning=partitioning if declared(name).partitioned else None,
    )
