"""The cluster that live tests share starts, ends and leaves nothing behind, and so do sessions of iolens on it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

import iolens
from iolens.store.store import Store
from tests.analyses.telemetry import made_up
from tests.live.spark_cluster import (
    ComponentFailed,
    ComponentMissing,
    Daemon,
    SparkCluster,
    java_children,
    spark_environment,
)
from tests.soak import IS_SOAK

pytestmark = pytest.mark.live


def test_the_master_reports_two_alive_workers(cluster: SparkCluster) -> None:
    assert cluster.alive_workers() == 2


def test_a_failed_start_leaves_nothing_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor does a good one: the cluster that tests share is looked at when it has ended."""
    started: list[Daemon] = []

    def no_worker(self: SparkCluster) -> None:
        started.extend(self.daemons)
        assert all(daemon.alive() for daemon in started)
        raise ComponentFailed("no worker came")

    monkeypatch.setattr(SparkCluster, "_wait_for_workers", no_worker)
    cluster = SparkCluster(workers=1)
    with pytest.raises(ComponentFailed, match="no worker came"), cluster:
        pass
    assert len(started) == 2
    assert not any(daemon.alive() for daemon in started)
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
