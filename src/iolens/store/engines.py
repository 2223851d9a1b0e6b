"""Which engine runs the analyses: embedded DuckDB, or a Spark cluster that already exists."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import narwhals as nw

from iolens.errors import UsageError
from iolens.store.tables import Tables


class Engine(Protocol):
    """Turns the files of a snapshot into a lazy frame with the declared columns, `epoch_us` and `start_us`."""

    name: str
    rows_per_chunk: int  # how much one question may read …
    days_per_chunk: int  # … and how many ticks it may answer with

    def scan(self, tables: Tables, name: str, files: Sequence[str]) -> nw.LazyFrame[Any]:
        """A lazy frame over `files` (paths relative to the table)."""

    def stop(self) -> None:
        """Let go of what the engine started."""


def get_engine(name: str = "duckdb") -> Engine:
    """The engine called `duckdb`, `local-spark`, `spark://host:port` or `sc://host:port`."""
    if name == "duckdb":
        from iolens.store.duckdb_engine import DuckDBEngine

        return DuckDBEngine()
    if name == "local-spark" or name.startswith(("spark://", "sc://")):
        from iolens.store.spark_engine import SparkEngine

        return SparkEngine(name)
    raise UsageError(f"no engine is called {name!r}; there are: duckdb, local-spark, spark://HOST:PORT, sc://HOST:PORT")
