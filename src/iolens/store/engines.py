"""Which engine runs the analyses: embedded DuckDB, or a Spark cluster that already exists."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from typing import Any, Final, Protocol

import narwhals as nw
import pyarrow as pa

from iolens.errors import UsageError
from iolens.nearest_names import not_among
from iolens.store.tables import Tables

DUCKDB, LOCAL_SPARK = "duckdb", "local-spark"
CLUSTERS: Final = ("spark://", "sc://")


class Engine(Protocol):
    """Turns the files of a snapshot into a lazy frame with the declared columns, `epoch_us` and `start_us`."""

    name: str
    rows_per_chunk: int  # how much one question may read …
    days_per_chunk: int  # … and how many ticks it may answer with

    def scan(self, tables: Tables, name: str, files: Sequence[str]) -> nw.LazyFrame[Any]:
        """A lazy frame over `files` (paths relative to the table)."""

    def frame(self, rows: pa.Table) -> nw.LazyFrame[Any]:
        """Rows of this process, to be joined with those of files."""

    def made(self, maker: Any, days: Sequence[Any]) -> Iterator[Any] | None:
        """Parts of an answer that the engine makes elsewhere, of all days in their order; None: make them here."""

    def use_one_core(self) -> None:
        """From here on, where cores are this process's to use."""

    def stop(self) -> None:
        """Let go of what the engine started."""


def get_engine(name: str = DUCKDB, workers: int | None = None) -> Engine:
    """The engine called `duckdb`, `local-spark`, `spark://host:port` or `sc://host:port`.

    `workers` are the processes, and cores, that DuckDB may use; a cluster has its own settings.
    """
    check_engine(name)
    if name == DUCKDB:
        from iolens.store.duckdb_engine import DuckDBEngine

        return DuckDBEngine(workers)
    if workers is not None:
        raise UsageError(f"engine {name} has its own workers: --workers goes with duckdb")
    from iolens.store.spark_engine import SparkEngine

    return SparkEngine(name)


def check_engine(name: str) -> None:
    """Whether there is such an engine, and what it needs is installed; nothing is started."""
    if name == DUCKDB:
        return
    if name != LOCAL_SPARK and not name.startswith(CLUSTERS):
        known = (DUCKDB, LOCAL_SPARK, *(f"{cluster}HOST:PORT" for cluster in CLUSTERS))
        raise UsageError(f"no engine is called {name!r}{not_among(name, known)}")
    if find_spec("pyspark") is None:
        raise UsageError(f"engine {name} needs PySpark: pip install 'iolens[spark]'")
