"""The same store gives the same JSON on DuckDB, on a real Spark standalone cluster and over Spark Connect.

Every registered analysis runs, and every question over many runs, so that later ones are covered by existing.
"""

from __future__ import annotations

import datetime
import json
import os
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import duckdb
import narwhals as nw
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from bench.limited_centre import CentreOrder

import iolens
from iolens.analyses import analysis_names
from iolens.analyses.attribution.job_sums import disk_seconds_of
from iolens.analyses.runs.asked import RunConditions
from iolens.api import OpenStore
from iolens.api.explain import explanation
from iolens.api.job_totals import jobs_of_window
from iolens.api.lost import lost_hours
from iolens.api.run_analyses import NAMES as RUN_ANALYSES
from iolens.api.run_analyses import run_analysis
from iolens.store.scope import Scope
from iolens.store.store import Store
from iolens.views.render.json_text import to_json
from tests.analyses.attribution.test_disk_seconds import BY_CLASS, JOBS
from tests.analyses.attribution.test_disk_seconds import made_up as made_up_attribution
from tests.analyses.capacity_rows import reading
from tests.analyses.client_rows import client_rows, fill, job_row
from tests.analyses.contents_rows import scanned
from tests.analyses.drive_rows import made_up_drives
from tests.analyses.explain.centre import made_up_centre as centre_of_runs
from tests.analyses.explain.test_explain import VICTIM, levels
from tests.analyses.metadata.test_metadata import run
from tests.analyses.run_rows import fill_runs, run_row
from tests.analyses.run_rows import job_row as run_job_row
from tests.analyses.runs.test_run_analyses import made_up_runs
from tests.analyses.telemetry import (
    T0_US,
    made_up,
    made_up_devices,
    made_up_io_times,
    made_up_metadata,
    table_of,
)
from tests.analyses.utilization.test_utilization import assert_same
from tests.analyses.workload_rows import made_up_centre
from tests.cli.test_calibrate_estimate import made_store
from tests.live.spark_cluster import SparkCluster, java_children, spark_environment
from tests.soak import IS_SOAK
from tests.store.samples import capture

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.live


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Two file systems over a midnight, with missed samples, overlapping sources and a target that falls silent."""
    folder = tmp_path_factory.mktemp("store") / "read_bytes=7" / "our centre's store, ä #1"  # means the same to all
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
    for filesystem, seed in (("scratch", 4), ("scratch2", 5)):
        minute, tick = (
            {"first_tick": 1440 - 8, "filesystem": filesystem},
            {"first_tick": 17280 - 100, "filesystem": filesystem},
        )
        store.append("target_histograms", table_of("target_histograms", made_up_io_times(seed, 40, 4, **minute)))
        store.append("metadata_ops", table_of("metadata_ops", made_up_metadata(seed, 300, 2, missing=0.3, **tick)))
        store.append("target_capacity", table_of("target_capacity", made_up_readings(filesystem)))
        store.append("contents", table_of("contents", made_up_scans(filesystem)))
        store.append("drives", table_of("drives", made_up_drives(seed, 12, 20, filesystem=filesystem, first_day=-10)))
    devices = made_up_devices(6, 300, 3, first_tick=17280 - 100, missing=0.3)
    store.append("target_io", table_of("target_io", devices))
    controllers = made_up_centre(
        7, targets=3, ticks=600, tick_s=20.0, first_us=T0_US + 82_800_000_000, missing=0.05, filesystem="controllers"
    )
    for name, table in controllers.tables.items():
        store.append(name, table)
    store.append("benchmark_runs", table_of("benchmark_runs", [run(), run(filesystem="scratch2")]))
    for number, (name, target_class) in enumerate((("disks", None), ("worn", None), ("flash", "flash"))):
        coefficients = {
            f"{direction}_{what}": 1e-9 * (number + 1)
            for direction in ("read", "write")
            for what in ("latency_s", "s_per_byte")
        }
        valid_from = T0_US + 86_500_000_000 if name == "worn" else None  # in the middle of its data
        store.add_calibration({"time": T0_US, "filesystem": "scratch2", "name": name, "target_class": target_class,
                               "valid_from": valid_from, **coefficients})  # fmt: skip
    nodes = [
        client_rows(node, 60 * k, 60 * k + 60, read_bytes=100 + k, rpcs={("read", 1): 2, ("write", 256): 20 + k},
                    metadata={"open": 1}, filesystem="lake", targets=2)
        for node in ("n1", "n2") for k in range(-15, 20)
    ]  # fmt: skip
    sampled = client_rows("n2", 640, 1150, job_id="9", write_bytes=7, filesystem="lake", source="job-files")
    jobs = [job_row("7", -600, 620, node_list="n[1-2]", name="enzo"), job_row("9", 650, 1140, node_list="n2")]
    fill(store, [*nodes, sampled], jobs)
    store.ingest([capture(list(made_up_attribution(1).items("marsh")), "attribution")], "test")
    return str(folder)


def made_up_readings(filesystem: str) -> list[dict]:
    """Bytes and inodes by the minute over a midnight; on scratch2 every target is read in a second of its own."""
    rows = []
    for minute in range(-30, 30):
        for target in range(3):
            day = 1 + minute / 1440 + (target / 86_400 if filesystem == "scratch2" else 0.0)
            if (minute, target) != (-7, 1):
                rows += reading(day, {f"{filesystem}-OST{target:04x}": 10**16 + 7 * minute}, total=3 * 10**16)
        inodes = {"used_inodes": 500 + minute, "total_inodes": 1000}
        rows += reading(1 + minute / 1440, {f"{filesystem}-MDT0000": 5}, kind="mdt", **inodes)
    return [{**row, "filesystem": filesystem} for row in rows]


def made_up_scans(filesystem: str) -> list[dict]:
    """Scans around a midnight; owners and projects not reported, sums beyond 2⁶³, and one without any bytes."""
    midnight = T0_US + 86_400_000_000
    holders = {("ada", "earth"): 300, ("bob", "earth"): 20, ("bob", None): 100, (None, "climate"): 50}
    rows = []
    for minute, more in ((-60, 0), (-2, 100), (1, 900)):
        grown = holders | {("ada", "earth"): 300 + more}
        rows += scanned(midnight + minute * 60_000_000, grown, seed=minute + 99, filesystem=filesystem)
    huge = {"inode_type": "file", "histogram": "size", "bin_from": 2**62, "count": 1, "bytes": 2**62 + 98_765_432_101}
    known = {"time": midnight + 60_000_000, "source": "scan", "filesystem": filesystem, "scan": "whole"}
    rows += [{**known, **huge, "owner": f"huge{n}", "project": "climate"} for n in range(3)]
    rough = {"time": midnight - 30_000_000, "source": "histogram", "filesystem": filesystem, "inode_type": "file"}
    return [*rows, *({**rough, "histogram": "size", "bin_from": n, "bin": n + 1, "count": 5} for n in range(4))]


@pytest.fixture(scope="module")
def settings(url: str) -> str:
    """Some targets of scratch2 are of a class of their own."""
    path = Path(url) / "iolens.toml"
    path.write_text('[filesystems.scratch2.classes]\nflash = ["*-OST0001"]\n')
    return str(path)


Question = TypeVar("Question")
KINDS = ("standalone", "connect", "local-spark")


@pytest.fixture(scope="module", params=KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    """How the session is reached."""
    return str(request.param)


@pytest.fixture(scope="module")
def engine(kind: str, cluster: SparkCluster) -> Iterator[str]:
    """Small drivers that stay on this machine."""
    with spark_environment(cluster):
        yield {"standalone": cluster.master_url, "connect": cluster.connect_url}.get(kind, kind)


@pytest.fixture(scope="module")
def stores(url: str, settings: str, engine: str) -> Iterator[tuple[OpenStore, OpenStore]]:
    """The store on DuckDB and on Spark, opened once for each kind: a driver takes seconds to start, and must end."""
    before = java_children()
    with iolens.open(url, config=settings) as here, iolens.open(url, engine=engine, config=settings) as there:
        yield here, there
        assert (java_children() > before) == (not engine.startswith("sc://"))
    assert java_children() == before
    assert "SPARK_CONNECT_MODE_ENABLED" not in os.environ


SELECTIONS = {
    "a window over midnight": ("scratch", {"since": "2020-09-14T23:55:00Z", "until": "2020-09-15T00:03:20Z"}),
    "everything": ("scratch2", {}),
    "from midnight on": ("scratch", {"since": "2020-09-15"}),
}


def asked(questions: Sequence[Question], kind: str) -> Sequence[Question]:
    """How a session is reached changes no plan: each kind is asked its share, and in `make soak` everything.

    Of the analyses a share has all selections: most of the time goes into a plan that is new to a session.
    """
    return questions if IS_SOAK else questions[KINDS.index(kind) :: len(KINDS)]


@pytest.mark.parametrize("selection", SELECTIONS)
def test_every_analysis_gives_the_same_json_on_spark(
    stores: tuple[OpenStore, OpenStore], kind: str, selection: str
) -> None:
    embedded, distributed = stores
    filesystem, window = SELECTIONS[selection]
    for name in asked(analysis_names(), kind):
        here = json.loads(to_json(embedded.analyse(name, filesystem, **window)))
        there = json.loads(to_json(distributed.analyse(name, filesystem, **window)))
        assert_same({name: there}, {name: here})
        assert here["samples"] > 0, name


@pytest.mark.parametrize("names", [analysis_names(), RUN_ANALYSES], ids=["analyses", "analyses of runs"])
def test_every_analysis_is_asked_of_one_kind_at_least(names: Sequence[str]) -> None:
    assert set().union(*(asked(names, kind) for kind in KINDS)) == set(names)
    assert all(asked(names, kind) for kind in KINDS)


def assert_same_totals_of_jobs(*stores: OpenStore) -> None:
    """By the intervals of its nodes over a midnight, and by its own samples."""
    here, there = (jobs_of_window(store, Scope("lake")) for store in stores)
    assert there == here
    assert [(line.job.job_id, line.origin, line.opens) for line in there.jobs] == [
        ("7", "nodes", 40), ("9", "job", None)
    ]  # fmt: skip


def assert_same_blame(*stores: OpenStore) -> None:
    """Of the jobs that job_stats name, over a midnight."""
    for options in ({"by": "job"}, {"by": "job", "metadata": True}, {"by": "user", "busiest": "5min"}):
        here, there = (json.loads(to_json(opened.blame("marsh", **options))) for opened in stores)
        assert here["who"]
        assert_same(here, there)


def assert_same_disk_seconds_of_jobs(*stores: OpenStore) -> None:
    here, there = (disk_seconds_of(opened.store.select("marsh"), JOBS, BY_CLASS) for opened in stores)
    assert there.by_job == pytest.approx(here.by_job)
    assert (there.calibrations, there.assumed_pct) == (here.calibrations, pytest.approx(here.assumed_pct))
    assert all(there.by_job.values())


def assert_same_analysis(name: str, filesystem: str, *stores: OpenStore) -> None:
    here, there = (json.loads(to_json(store.analyse(name, filesystem))) for store in stores)
    assert_same(there, here)
    assert here["samples"] > 0
    if (name, filesystem) == ("utilization", "scratch2"):
        assert {item["calibration"]["name"] for item in here["calibrations"]} == {"disks", "worn", "flash"}
    elif name == "utilization":
        assert here["model"] == "counters"


def assert_same_estimate(embedded: OpenStore, distributed: OpenStore) -> None:
    """Calibrations from telemetry, which are no analysis by name."""
    here, there = (json.loads(to_json(opened.calibrate_estimate("scratch"))) for opened in (embedded, distributed))
    assert_same(there, here)
    assert len(here["estimates"]) == 2


def test_counters_waits_calibrations_by_class_and_jobs_are_the_same_on_spark(
    stores: tuple[OpenStore, OpenStore], kind: str
) -> None:
    analyses = [("utilization", "scratch2"), ("utilization", "node1"), ("latency", "node1"), ("imbalance", "node1")]
    questions = [
        *(partial(assert_same_analysis, *analysis) for analysis in analyses),
        assert_same_totals_of_jobs,
        assert_same_disk_seconds_of_jobs,
        assert_same_blame,
    ]
    for assert_same_answer in asked(questions, kind):
        assert_same_answer(*stores)


def test_contents_without_a_project_and_by_name_are_the_same_on_spark(
    stores: tuple[OpenStore, OpenStore], kind: str
) -> None:
    embedded, distributed = stores
    options_asked = [
        {"without_projects": ["earth"]},
        {"projects": ["climate"], "threshold_files": 1e6},
        {"owners": ["bob"], "compare": "previous"},
        {"source": "histogram"},
    ]
    for options in asked(options_asked, kind):
        here = json.loads(to_json(embedded.contents("scratch", **options)))
        assert_same(json.loads(to_json(distributed.contents("scratch", **options))), here)
        assert here["files"] > 0
    assert embedded.contents("scratch", projects=["climate"]).bytes > 3 * 2**62


def test_executors_make_the_parts_and_the_same_answer_comes_without_them(
    stores: tuple[OpenStore, OpenStore], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Executors without iolens leave it to this process."""
    embedded, distributed = stores
    here = json.loads(to_json(embedded.imbalance("scratch")))
    engine = distributed.store.engine
    assert engine.has_iolens
    assert_same(json.loads(to_json(distributed.imbalance("scratch"))), here)
    monkeypatch.setitem(engine.__dict__, "has_iolens", False)
    assert_same(json.loads(to_json(distributed.imbalance("scratch"))), here)


def test_the_workload_of_controllers_is_the_same_on_spark(stores: tuple[OpenStore, OpenStore], kind: str) -> None:
    embedded, distributed = stores
    options_asked = [
        {"timezone": "Europe/Berlin", "resamples": 3},
        {"sections": ["arrivals", "sizes"], "weight": "requests"},
        {"sections": ["throughput", "idle"], "without_maintenance": True, "targets": ["controllers-C01"]},
    ]
    for options in asked(options_asked, kind):
        here = json.loads(to_json(embedded.workload("controllers", **options)))
        assert_same(json.loads(to_json(distributed.workload("controllers", **options))), here)
        assert here["samples"] > 0


@pytest.fixture(scope="module")
def run_stores(
    stores: tuple[OpenStore, OpenStore], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[OpenStore, OpenStore]]:
    """Runs matched by id, by an id of two jobs, by user, and not at all; and targets of a file system."""
    folder = tmp_path_factory.mktemp("runs")
    runs, jobs = made_up_runs(5, 120)
    runs = [{**row, "filesystem": "scratch"} if number % 3 else row for number, row in enumerate(runs)]
    jobs += [run_job_row("7", 9000, 9900, cluster="steam"), run_job_row("7", 7, 700, cluster="steam", user="eve")]
    jobs += [run_job_row("77_1", 0, 500, user="zoe", cores=8)]
    runs += [run_row("array", 20, 90, user="zoe", job_id="99999"), run_row("nobody", 20, 90, user=None, job_id="x")]
    runs += [
        run_row(f"like{k}", k, k + 9, read_bytes=500 + k, files=3, slowest_rank_s=1.0 + k, job_id="3") for k in range(5)
    ]
    store = fill_runs(Store(folder), runs, jobs)
    telemetry = made_up(1, ticks=20, targets=2, missing=0)
    for name in ("target_io", "target_sizes"):
        store.append(name, telemetry.table(name))
    with iolens.open(str(folder)) as here:
        there = OpenStore(str(folder))
        there.store.engine = stores[1].store.engine  # a session is warm by now, and ends with those stores
        yield here, there


def test_every_analysis_of_runs_gives_the_same_json_on_spark(
    run_stores: tuple[OpenStore, OpenStore], kind: str
) -> None:
    like = RunConditions(projects=["?", "earth", "(unknown)"])
    options = {"projects": {"min_processes": 8, "min_bytes": 1000, "ceiling_mib_per_s_per_node": 500.0}}
    for name in asked(RUN_ANALYSES, kind):
        here, there = (
            json.loads(to_json(run_analysis(store, name, Scope(), like, **options.get(name, {}))))
            for store in run_stores
        )
        assert_same({name: there}, {name: here})
        assert here["runs"] > 100, name
        if "joined" in here:
            assert min(here["joined"].values()) > 0, name


def test_explained_runs_and_lost_core_hours_are_the_same_on_spark(
    stores: tuple[OpenStore, OpenStore], kind: str, tmp_path: Path
) -> None:
    """Eighteen runs over two days, the last of them beside many neighbours."""
    centre_of_runs(*levels(count=VICTIM + 1)).stored(Store(tmp_path))
    with iolens.open(str(tmp_path)) as here:
        there = OpenStore(str(tmp_path))
        there.store.engine = stores[1].store.engine
        questions: list[Callable[[OpenStore], Any]] = [
            lambda opened: explanation(opened, str(1000 + VICTIM), load=True),
            lambda opened: lost_hours(opened),
            lambda opened: explanation(opened, "1003"),
        ]
        for question in asked(questions, kind):
            expected = json.loads(to_json(question(here)))
            assert_same(json.loads(to_json(question(there))), expected)
            assert expected.get("verdict") in ("system", "not slow", None)


def test_estimates_of_calibrations_are_the_same_on_spark(
    stores: tuple[OpenStore, OpenStore], kind: str, tmp_path: Path
) -> None:
    """A small centre whose two targets reach their limit."""
    url = str(made_store(tmp_path / "limited", CentreOrder(1, days=2, ticks_a_day=200, targets=2)))
    for assert_same_answer in asked([assert_same_estimate], kind):
        with iolens.open(url) as here:
            there = OpenStore(url)
            there.store.engine = stores[1].store.engine
            assert_same_answer(here, there)


# A table that is not ours, and sessions of the user's own.

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


def test_a_frame_of_a_session_answers_as_duckdb(stores: tuple[OpenStore, OpenStore], table: Path) -> None:
    frame = spark_frame(stores[1].store.engine.session, table)
    assert totals(frame) == duckdb_totals(table)
    assert frame.toArrow().num_rows == 6
    assert frame.where(frame["date"] == datetime.date(2024, 3, 1)).toArrow().num_rows == 3


def test_an_analysis_accepts_a_spark_frame(stores: tuple[OpenStore, OpenStore]) -> None:
    part = made_up(4, ticks=60, targets=3)
    tables = {name: part.table(name) for name in ("target_sizes", "target_io")}
    here = json.loads(to_json(iolens.utilization(filesystem="scratch", **tables)))
    session = stores[1].store.engine.session
    frames = {name: session.createDataFrame(table) for name, table in tables.items()}
    there = json.loads(to_json(iolens.utilization(filesystem="scratch", **frames)))
    assert_same(there, here)
    assert here["samples"] > 0
