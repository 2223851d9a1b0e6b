"""A Parquet table with a `date=` partition, asked through narwhals: Spark must answer what DuckDB answers."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import narwhals as nw
import psutil
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.live.spark_cluster import ComponentFailed, ComponentMissing, SparkCluster

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.live

SCHEMA = "target STRING, bytes BIGINT, seconds DOUBLE, date DATE"


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("transfers")
    for day in (1, 2):
        folder = root / f"date=2024-03-0{day}"
        folder.mkdir()
        rows = {
            "target": ["OST0000", "OST0001", "OST0000"],
            "bytes": [day * 2**40, 4096, None],
            "seconds": [0.5 * day, 0.25, 0.125],
        }
        pq.write_table(pa.table(rows), folder / "part-0.parquet")
    return root


def files_of(table: Path) -> list[str]:
    return sorted(str(file) for file in table.glob("date=*/*.parquet"))


def totals(frame: Any) -> list[dict[str, Any]]:
    """The same narwhals question for every engine; the cast undoes DuckDB's HUGEINT."""
    lazy = (
        nw.from_native(frame)
        .group_by("date", "target")
        .agg(nw.col("bytes").sum().cast(nw.Int64), nw.col("seconds").mean(), nw.len().alias("samples"))
    )
    answer = lazy.sort("date", "target").collect(backend="pyarrow").to_native()
    assert answer.schema.field("bytes").type == pa.int64()
    assert answer.schema.field("date").type == pa.date32()
    rows: list[dict[str, Any]] = answer.to_pylist()
    return rows


def duckdb_totals(table: Path) -> list[dict[str, Any]]:
    with duckdb.connect() as connection:
        return totals(connection.read_parquet(files_of(table), hive_partitioning=True))


def spark_frame(session: SparkSession, table: Path) -> Any:
    return session.read.schema(SCHEMA).option("basePath", str(table)).parquet(*files_of(table))


def java_children() -> set[int]:
    return {child.pid for child in psutil.Process().children() if child.name() == "java"}


def test_the_master_reports_two_alive_workers(cluster: SparkCluster) -> None:
    assert cluster.alive_workers() == 2


def test_the_standalone_cluster_answers_as_duckdb(cluster: SparkCluster, table: Path) -> None:
    before = java_children()
    with cluster.classic_session() as session:
        frame = spark_frame(session, table)
        assert totals(frame) == duckdb_totals(table)
        assert frame.toArrow().num_rows == 6
        assert java_children() > before
    assert java_children() == before


def test_spark_connect_answers_as_duckdb(cluster: SparkCluster, table: Path) -> None:
    with cluster.connect_session() as session:
        frame = spark_frame(session, table)
        assert totals(frame) == duckdb_totals(table)
        first_day = frame.where(frame["date"] == datetime.date(2024, 3, 1))
        assert first_day.toArrow().num_rows == 3


def test_nothing_is_left_behind(cluster: SparkCluster) -> None:
    with SparkCluster() as another:
        daemons, directory = list(another.daemons), another.directory
        assert all(daemon.alive() for daemon in daemons)
    assert not any(daemon.alive() for daemon in daemons)
    assert not directory.exists()


def test_a_failed_start_leaves_nothing_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_worker(self: SparkCluster) -> None:
        raise ComponentFailed("no worker came")

    monkeypatch.setattr(SparkCluster, "_wait_for_workers", no_worker)
    cluster = SparkCluster()
    with pytest.raises(ComponentFailed, match="no worker came"), cluster:
        pass
    assert cluster.daemons == []
    assert not cluster.directory.exists()


def test_without_java_the_message_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(ComponentMissing, match="openjdk-17-jre-headless"), SparkCluster():
        pass
