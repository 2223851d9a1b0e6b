"""A Parquet table with a `date=` partition, asked through narwhals: Spark must answer what DuckDB answers."""

from __future__ import annotations

import datetime
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import narwhals as nw
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import iolens
from iolens.store.store import Store
from iolens.views.render.json_text import to_json
from tests.analyses.telemetry import made_up
from tests.analyses.utilization.test_utilization import assert_same
from tests.live.spark_cluster import (
    ComponentFailed,
    ComponentMissing,
    SparkCluster,
    java_children,
    spark_environment,
)
from tests.soak import IS_SOAK

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


def test_the_master_reports_two_alive_workers(cluster: SparkCluster) -> None:
    assert cluster.alive_workers() == 2


def test_the_standalone_cluster_answers_as_duckdb_and_analyses_take_its_frames(
    cluster: SparkCluster, table: Path
) -> None:
    """One session for both: a driver takes seconds to start."""
    before = java_children()
    with cluster.classic_session() as session:
        frame = spark_frame(session, table)
        assert totals(frame) == duckdb_totals(table)
        assert frame.toArrow().num_rows == 6
        assert_utilization_of_frames(session)
        assert java_children() > before
    assert java_children() == before


def assert_utilization_of_frames(session: SparkSession) -> None:
    """Frames of a session of the user's own give what Arrow tables give."""
    part = made_up(4, ticks=60, targets=3)
    tables = {name: part.table(name) for name in ("target_sizes", "target_io")}
    here = json.loads(to_json(iolens.utilization(filesystem="scratch", **tables)))
    frames = {name: session.createDataFrame(table) for name, table in tables.items()}
    there = json.loads(to_json(iolens.utilization(filesystem="scratch", **frames)))
    assert_same(there, here)
    assert here["samples"] > 0


def test_spark_connect_answers_as_duckdb(cluster: SparkCluster, table: Path) -> None:
    with cluster.connect_session() as session:
        frame = spark_frame(session, table)
        assert totals(frame) == duckdb_totals(table)
        first_day = frame.where(frame["date"] == datetime.date(2024, 3, 1))
        assert first_day.toArrow().num_rows == 3


def test_nothing_is_left_behind(cluster: SparkCluster) -> None:
    with SparkCluster(workers=1) as another:
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


# Sessions that iolens opens and closes. That drivers end with them, tests/live/test_engines.py sees of every kind.


@pytest.fixture(scope="module", params=["standalone", "connect", "local-spark"] if IS_SOAK else ["connect"])
def engine(request: pytest.FixtureRequest, cluster: SparkCluster) -> Iterator[str]:
    """Small drivers that stay on this machine."""
    with spark_environment(cluster):
        yield {"standalone": cluster.master_url, "connect": cluster.connect_url}.get(request.param, request.param)


def test_a_session_opens_only_the_files_of_its_day_and_leaves_nothing_behind(tmp_path: Path, engine: str) -> None:
    store = Store(tmp_path)
    for day in range(3):
        part = made_up(day, ticks=20, targets=2, first_tick=17280 * day)
        store.append("target_sizes", part.table("target_sizes"))
        store.append("target_io", part.table("target_io"))
    for file in tmp_path.glob("*/date=*/*.parquet"):
        if "2020-09-15" not in str(file):
            file.write_bytes(b"not Parquet")
    before = java_children()
    with iolens.open(str(tmp_path), engine=engine) as opened:
        assert opened.utilization(since="2020-09-15", until="2020-09-16").samples > 0
    assert java_children() == before
    assert "SPARK_CONNECT_MODE_ENABLED" not in os.environ
