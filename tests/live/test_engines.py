"""The same store gives the same JSON on DuckDB, on a real Spark standalone cluster and over Spark Connect.

Every registered analysis runs, so that later ones are covered by existing.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

import iolens
from iolens.analyses import analysis_names
from iolens.store.store import Store
from iolens.views.json_text import to_json
from tests.analyses.telemetry import made_up
from tests.analyses.test_utilization import assert_same
from tests.live.spark_cluster import SparkCluster
from tests.live.test_spark_cluster import java_children

pytestmark = [pytest.mark.live, pytest.mark.xdist_group("spark")]


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Two file systems over a midnight, with missed samples, overlapping sources and a target that falls silent."""
    folder = tmp_path_factory.mktemp("store")
    store = Store(folder)
    parts = [
        made_up(1, ticks=200, targets=4, first_tick=17280 - 100, missing=0.3),
        made_up(2, ticks=50, targets=2, first_tick=17280 + 150),
        made_up(3, ticks=60, targets=3, filesystem="scratch2", first_tick=17280),
    ]
    for part in parts:
        for name in ("target_sizes", "target_io"):
            store.append(name, part.table(name))
            if part is parts[1]:
                again = [{**row, "source": "other"} for row in (part.sizes if name == "target_sizes" else part.io)]
                store.append(name, type(part)(again, again).table(name))
    return str(folder)


@pytest.fixture(params=["standalone", "connect", "local-spark"])
def engine(request: pytest.FixtureRequest, cluster: SparkCluster, monkeypatch: pytest.MonkeyPatch) -> str:
    """Small drivers that stay on this machine."""
    settings = " ".join(f"--conf '{key}={value}'" for key, value in cluster.driver_options.items())
    for name, value in cluster.environment().items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("PYSPARK_SUBMIT_ARGS", f"{settings} pyspark-shell")
    return {"standalone": cluster.master_url, "connect": cluster.connect_url}.get(request.param, request.param)


WINDOWS = [{}, {"since": "2020-09-15"}, {"since": "2020-09-14T23:55:00Z", "until": "2020-09-15T00:03:20Z"}]


@pytest.mark.parametrize("name", analysis_names())
def test_every_analysis_gives_the_same_json_on_spark(url: str, engine: str, name: str) -> None:
    with iolens.open(url) as embedded, iolens.open(url, engine=engine) as distributed:
        for filesystem in ("scratch", "scratch2"):
            for window in WINDOWS:
                here = json.loads(to_json(embedded.analyse(name, filesystem, **window)))
                there = json.loads(to_json(distributed.analyse(name, filesystem, **window)))
                assert_same(there, here)
    assert here["samples"] > 0


def test_a_day_opens_only_its_own_files_on_spark(tmp_path: Path, engine: str) -> None:
    store = Store(tmp_path)
    for day in range(3):
        part = made_up(day, ticks=20, targets=2, first_tick=17280 * day)
        store.append("target_sizes", part.table("target_sizes"))
        store.append("target_io", part.table("target_io"))
    for file in tmp_path.glob("*/date=*/*.parquet"):
        if "2020-09-15" not in str(file):
            file.write_bytes(b"not Parquet")
    with iolens.open(str(tmp_path), engine=engine) as opened:
        assert opened.utilization(since="2020-09-15", until="2020-09-16").samples > 0


def test_spark_leaves_no_process_and_no_mark_behind(url: str, engine: str) -> None:
    before = java_children()
    with iolens.open(url, engine=engine) as opened:
        opened.utilization("scratch2")
    assert java_children() == before
    assert "SPARK_CONNECT_MODE_ENABLED" not in os.environ


def test_an_analysis_accepts_a_spark_frame(cluster: SparkCluster) -> None:
    part = made_up(4, ticks=60, targets=3)
    tables = {name: part.table(name) for name in ("target_sizes", "target_io")}
    here = json.loads(to_json(iolens.utilization(filesystem="scratch", **tables)))
    with cluster.classic_session() as session:
        frames = {name: session.createDataFrame(table) for name, table in tables.items()}
        there = json.loads(to_json(iolens.utilization(filesystem="scratch", **frames)))
    assert_same(there, here)
