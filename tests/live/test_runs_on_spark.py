"""Every question over many runs has the same JSON on DuckDB and on Spark inside this process."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

import iolens
from iolens.analyses.runs.run_conditions import RunConditions
from iolens.api import OpenStore
from iolens.api.run_analyses import NAMES, run_analysis
from iolens.store.scope import Scope
from iolens.store.store import Store
from iolens.views.render.json_text import to_json
from tests.analyses.run_rows import fill_runs, job_row, run_row
from tests.analyses.runs.test_run_analyses import made_up_runs
from tests.analyses.telemetry import made_up
from tests.analyses.utilization.test_utilization import assert_same
from tests.live.spark_cluster import SparkCluster, spark_environment

pytestmark = pytest.mark.live


@pytest.fixture(scope="module")
def stores(tmp_path_factory: pytest.TempPathFactory, cluster: SparkCluster) -> Iterator[tuple[OpenStore, OpenStore]]:
    """Runs matched by id, by an id of two jobs, by user, and not at all; and targets of a file system."""
    folder = tmp_path_factory.mktemp("store")
    runs, jobs = made_up_runs(5, 120)
    runs = [{**run, "filesystem": "scratch"} if number % 3 else run for number, run in enumerate(runs)]
    jobs += [job_row("7", 9000, 9900, cluster="steam"), job_row("7", 7, 700, cluster="steam", user="eve")]
    jobs += [job_row("77_1", 0, 500, user="zoe", cores=8)]
    runs += [run_row("array", 20, 90, user="zoe", job_id="99999"), run_row("nobody", 20, 90, user=None, job_id="x")]
    runs += [
        run_row(f"like{k}", k, k + 9, read_bytes=500 + k, files=3, slowest_rank_s=1.0 + k, job_id="3") for k in range(5)
    ]
    store = fill_runs(Store(folder), runs, jobs)
    telemetry = made_up(1, ticks=20, targets=2, missing=0)
    for name in ("target_io", "target_sizes"):
        store.append(name, telemetry.table(name))
    url = str(folder)
    with spark_environment(cluster), iolens.open(url) as here, iolens.open(url, engine="local-spark") as there:
        yield here, there


@pytest.mark.parametrize("name", NAMES)
def test_the_same_json_on_spark(stores: tuple[OpenStore, OpenStore], name: str) -> None:
    like = RunConditions(projects=["?", "earth", "(unknown)"])
    options = {"projects": {"min_processes": 8, "min_bytes": 1000, "ceiling_mib_per_s_per_node": 500.0}}.get(name, {})
    results = [json.loads(to_json(run_analysis(store, name, Scope(), like, **options))) for store in stores]
    here, there = results
    assert_same(there, here)
    assert here["runs"] > 100
    if "joined" in here:
        assert min(here["joined"].values()) > 0
