"""The distributed engine: an Apache Spark cluster that already exists, or Spark inside this process.

`spark://HOST:PORT` is a standalone cluster, `sc://HOST:PORT` Spark Connect, `local-spark` this machine. Settings of
the site (memory, jars for object storage) come from Spark's own configuration.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Sequence
from functools import cached_property, partial
from pathlib import Path
from typing import Any, Final

import narwhals as nw
import pyarrow as pa

from iolens import __version__
from iolens.errors import StoreError, UsageError
from iolens.schema import Column
from iolens.store.tables import Tables, declared

SETTINGS: Final = {
    "spark.sql.session.timeZone": "UTC",
    "spark.ui.showConsoleProgress": "false",
    "spark.ui.enabled": "false",
}
SQL_TYPES: Final = {
    "timestamp": "TIMESTAMP",
    "date": "DATE",
    "int64": "BIGINT",
    "float64": "DOUBLE",
    "string": "STRING",
    "bool": "BOOLEAN",
}
WRITTEN: Final = "id long, part binary"
DAYS_AT_ONCE: Final = 64  # parts that wait in this process
_CONNECT_FLAG: Final = "SPARK_CONNECT_MODE_ENABLED"  # left set, it would turn the next classic session remote


class SparkEngine:
    """Analyses on a Spark cluster; the session is opened when first needed."""

    rows_per_chunk = 5_000_000_000  # a cluster has its own ways to stay within memory …
    days_per_chunk = 31  # … but its answers come to this process

    def __init__(self, name: str) -> None:
        self.name = name

    @cached_property
    def session(self) -> Any:
        """The Spark session."""
        from pyspark.sql import SparkSession  # `check_engine` has looked whether it is there

        builder = SparkSession.Builder().appName("iolens")
        for key, value in SETTINGS.items():
            if key.startswith("spark.sql") or not self.name.startswith("sc://"):
                builder = builder.config(key, value)
        try:
            return self._opened(builder)
        except Exception as error:  # py4j, gRPC and PySpark raise errors of their own, all of which mean this
            message = str(error).strip().splitlines() or [type(error).__name__]
            raise StoreError(f"{self.name}: no Spark session: {message[0]}") from error

    def _opened(self, builder: Any) -> Any:
        if self.name.startswith("sc://"):
            return builder.remote(self.name).getOrCreate()
        session = builder.master("local[*]" if self.name == "local-spark" else self.name).getOrCreate()
        session.sparkContext.setLogLevel("ERROR")
        return session

    def scan(self, tables: Tables, name: str, files: Sequence[str]) -> nw.LazyFrame[Any]:
        """A lazy frame over `files` with the declared columns and `epoch_us`, `start_us`."""
        from pyspark.sql import functions

        table = declared(name)
        schema = ", ".join(_declaration(column) for column in table.columns)
        if files:
            # Without basePath the partition column would vanish.
            root = _address(tables, name)
            reader = self.session.read.schema(schema).option("basePath", root)
            rows = reader.parquet(*(f"{root}/{path}" for path in files))
        else:
            rows = self.session.createDataFrame([], schema)
        rows = rows.select(*(column.name for column in table.columns))
        for time, alias in (("time", "epoch_us"), ("start", "start_us")):
            if any(column.name == time for column in table.columns):
                rows = rows.withColumn(alias, functions.unix_micros(time))
        frame: nw.LazyFrame[Any] = nw.from_native(rows)
        return frame

    def frame(self, rows: pa.Table) -> nw.LazyFrame[Any]:
        """Rows of this process, sent to the cluster."""
        frame: nw.LazyFrame[Any] = nw.from_native(self.session.createDataFrame(rows))
        return frame

    def made(self, maker: Any, days: Sequence[Any]) -> Iterator[Any] | None:
        """Inside the executors, so that only parts travel; None where they have no iolens of this version."""
        if not days or not self.has_iolens:
            return None
        return self._parts(maker, days)

    @cached_property
    def has_iolens(self) -> bool:
        """Whether the Python of the executors can import the same iolens as this process."""
        try:
            answer = self.session.range(1).mapInArrow(_versions, "version string").toArrow()
        except Exception:  # whatever it is, parts are then made here, as every answer says the same
            return False
        return bool(answer.column("version").to_pylist() == [__version__])

    def use_one_core(self) -> None:
        """The cluster has its own settings."""

    def _parts(self, maker: Any, days: Sequence[Any]) -> Iterator[Any]:
        for first in range(0, len(days), DAYS_AT_ONCE):
            some = [item.portable() for item in days[first : first + DAYS_AT_ONCE]]
            numbers = self.session.range(0, len(some), 1, len(some))
            answers = numbers.mapInArrow(partial(_written, maker, some), WRITTEN).toArrow().to_pylist()
            for answer in sorted(answers, key=lambda row: int(row["id"])):
                yield maker.form.read(answer["part"])

    def stop(self) -> None:
        """Close the session, and the JVM behind it where this process started one."""
        if "session" not in self.__dict__:
            return
        self.__dict__.pop("session").stop()
        if self.name.startswith("sc://"):
            os.environ.pop(_CONNECT_FLAG, None)
        else:
            _end_driver()


def _versions(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for _ in batches:
        yield pa.RecordBatch.from_pydict({"version": [__version__]})


def _written(maker: Any, days: Sequence[Any], batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """In an executor: the parts of the days with these numbers."""
    for batch in batches:
        for number in batch.column("id").to_pylist():
            part = days[number].made_on_one_core(maker)
            row = {"id": [number], "part": [maker.form.written(part)]}
            yield pa.RecordBatch.from_pydict(row)


def _declaration(column: Column) -> str:
    return f"`{column.name}` {SQL_TYPES[column.type]}"


def _address(tables: Tables, name: str) -> str:
    """Where the executors find the table; Spark calls S3 `s3a`."""
    uri = tables.uri(name)
    if strange := sorted({name for name in uri if name in "{}"}):
        raise UsageError(
            f"{tables.url}: Spark takes {' '.join(strange)} in a path for a pattern; use the engine duckdb"
        )
    if tables.is_local:  # Hadoop takes the path as it stands: an escaped blank would be looked for by its escape
        return f"file://{Path(uri).resolve()}"
    return uri.replace("s3://", "s3a://", 1)


def _end_driver() -> None:
    """PySpark keeps its JVM until the process ends; let it go with the last session."""
    from pyspark import SparkContext

    gateway = SparkContext._gateway
    if gateway is None:
        return
    with contextlib.suppress(Exception):
        gateway.shutdown()
        process = gateway.proc
        process.stdin.close()
        process.wait(timeout=20)
    SparkContext._gateway = None
    SparkContext._jvm = None
