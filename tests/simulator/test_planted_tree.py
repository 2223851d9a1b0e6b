"""Planted jobs in job_stats, on clients and in telemetry: what the store says of each job is what is true of it."""

from __future__ import annotations

import json
from collections import defaultdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from iolens.records import Capture
from iolens.simulator.activity import Activity
from iolens.simulator.client_tree import SimulatedClients
from iolens.simulator.lustre_centre import Centre, SimulatedEvent
from iolens.simulator.lustre_tree import JOB_KEPT_S, Tree
from iolens.simulator.telemetry import order_of, simulate_telemetry
from iolens.simulator.truth import JobTruths
from iolens.simulator.workload import OPERATIONS
from iolens.sources import ReadOptions
from iolens.sources.lustre.job_stats import parse_job_stats
from iolens.sources.lustre.lustre_proc import SOURCE
from iolens.sources.schedulers import slurm
from iolens.store.store import Store
from tests.agent.truth import rows
from tests.simulator.planted import JOBS, RESTING, START_S, TINY, planted_workload

OSTS, MDTS, MINUTES = 3, 2, 45
WORKLOAD = planted_workload()
SUMS = ("read_bytes", "write_bytes", "operations", "metadata_operations")


def server(root: Path, version: str, targets: tuple[str, ...] | None = None) -> Tree:
    return Tree(
        root, version, WORKLOAD, start_s=START_S, osts=OSTS, mdts=MDTS, seed=3, targets=targets, uptime_s=900
    )  # fmt: skip


def stored_sums(store: Path) -> dict[str, dict[str, int]]:
    """By job: what all rows of job_io say."""
    sums: dict[str, dict[str, int]] = defaultdict(lambda: dict.fromkeys(SUMS, 0))
    for row in rows(store, "job_io"):
        job = sums[row["job_id"]]
        for name in ("read_bytes", "write_bytes"):
            job[name] += row[name] or 0
        job["operations"] += (row["read_ops"] or 0) + (row["write_ops"] or 0)
        job["metadata_operations"] += sum(row[name] or 0 for name in OPERATIONS) if row["target_kind"] == "mdt" else 0
    return {job_id: job for job_id, job in sums.items() if any(job.values())}


def true_sums(*truths: JobTruths) -> dict[str, dict[str, int]]:
    whole = JobTruths()
    for truth in truths:
        whole.merge(truth)
    return {job_id: {name: getattr(job, name) for name in SUMS} for job_id, job in whole.by_id.items()}


@pytest.mark.parametrize(("version", "late_s"), [("2.12", 0.0), ("2.15", 0.0), ("2.15", 0.4)])
def test_job_stats_sum_to_the_truth(tmp_path: Path, version: str, late_s: float) -> None:
    """The counters are read just before each event, so that none is lost; one job rests for longer than it is kept.

    Samples between two ticks miss nothing either.
    """
    events = [
        SimulatedEvent(START_S + 15 * 60, "reset"),
        SimulatedEvent(START_S + 22 * 60, "failover", "scratch-OST0001"),
        SimulatedEvent(START_S + 27 * 60, "failover", "scratch-MDT0000"),
    ]
    centre = Centre(server(tmp_path / "one", version), server(tmp_path / "two", version, targets=()), events)
    captures: list[Capture] = []
    times = {event.at_s for event in events}
    for minute in range(MINUTES + 1):
        second = START_S + minute * 60 + late_s
        if START_S + minute * 60 in times:  # the event itself happens on the way to the next minute
            for tree in centre.trees:
                tree.advance_to(second)
        else:
            centre.advance_to(second)
        roots = [tree.root for tree in centre.trees if tree.mounted]
        captures += SOURCE.captures(roots, ReadOptions(interval_s=60))
    tally = Store(tmp_path / "store").ingest(captures, "lustre-proc")
    assert tally.refused == 0
    truths = true_sums(*(tree.truth.jobs for tree in centre.trees))
    assert stored_sums(tmp_path / "store") == truths
    assert {job.job_id for job in JOBS} < set(truths)


@pytest.mark.parametrize("version", ["2.12", "2.15"])
def test_a_quiet_job_vanishes_and_comes_back_from_zero(tmp_path: Path, version: str) -> None:
    """The job is active in the first five of each 25 minutes, from five minutes before the start on."""
    tree = server(tmp_path / "root", version)
    path = tmp_path / "root/proc/fs/lustre/obdfilter/scratch-OST0001/job_stats"

    def job_at(second: int) -> Any:
        tree.advance_to(START_S + second)
        return parse_job_stats(path.read_bytes(), "").jobs.get(RESTING.job_id)

    first = job_at(0)
    assert first.counters["read_bytes"] > 0
    assert job_at(JOB_KEPT_S) == first
    assert job_at(JOB_KEPT_S + 5) is None
    assert job_at(1200) is None
    again = job_at(1205)
    assert 0 < again.counters["read_bytes"] < first.counters["read_bytes"] / 10
    if version == "2.15":
        assert first.start_us == (START_S - 295) * 1_000_000
        assert again.start_us == (START_S + 1205) * 1_000_000


def test_one_long_step_prints_what_many_short_ones_print(tmp_path: Path) -> None:
    for name, step in (("long", 1600), ("short", 5)):
        tree = server(tmp_path / name, "2.15")
        for second in range(step, 1601, step):
            tree.advance_to(START_S + second)
    texts = [sorted((tmp_path / name).rglob("job_stats")) for name in ("long", "short")]
    assert [path.read_text() for path in texts[0]] == [path.read_text() for path in texts[1]]


def test_what_is_true_of_a_tree_is_what_its_osts_did(tmp_path: Path) -> None:
    tree = server(tmp_path / "root", "2.12", targets=("scratch-OST0001",))
    tree.advance_to(START_S + 1260)
    activity = Activity(WORKLOAD, OSTS, 3)
    block = activity.block(START_S // 5, 252)
    parts = {part.job.job_id: activity.disk_s(part.counts)[:, 1].sum() for part in block.planted}
    assert {job_id: tree.truth.job_disk_s[job_id] for job_id in parts} == pytest.approx(parts)
    assert sum(tree.truth.job_disk_s.values()) == pytest.approx(block.fsu_pct[:, 1].sum() / 100 * 5)
    assert "opens-7" not in tree.truth.job_disk_s  # no MDT is here


def test_clients_do_what_servers_count(tmp_path: Path) -> None:
    tree = server(tmp_path / "server", "2.15")
    clients = SimulatedClients(tmp_path / "clients", tree.activity, MDTS, 10, start_s=START_S, uptime_s=0)
    for second in (60, 700, 1260):
        tree.advance_to(START_S + second)
        clients.advance_to(START_S + second, tree.mounted)
    true = true_sums(tree.truth.jobs)
    for job_id, job in clients.jobs.items():
        counted = (job.rpc_bytes(0), job.rpc_bytes(1), int(job.rpcs.sum()), int(job.operations.sum()))
        assert counted == tuple(true[job_id].values()), job_id
    for kind in ("rpcs", "operations"):
        by_node = sum(getattr(node.counters, kind) for node in clients.trees)
        assert np.array_equal(by_node, sum(getattr(job, kind) for job in clients.jobs.values()))
    by_nodes = [node.counters.rpcs.sum() for node in clients.trees if node.name in clients.jobs[TINY.job_id].nodes]
    assert sum(by_nodes) == clients.jobs[TINY.job_id].rpcs.sum()  # nodes of its own
    store = Store(tmp_path / "store")
    store.ingest(slurm.SOURCE.captures([tmp_path / "clients/sacct.txt"], ReadOptions()), "slurm")
    record = next(row for row in rows(tmp_path / "store", "jobs") if row["job_id"] == TINY.job_id)
    assert [record[name] for name in ("user", "project", "name", "nodes")] == ["eve", "rogue", "tiny.x", 2]


@pytest.fixture(scope="module")
def centre(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two hours in a store, through telemetry."""
    url = tmp_path_factory.mktemp("planted") / "store"
    start = datetime.fromtimestamp(START_S - 1800, UTC)
    order = order_of(str(url), WORKLOAD, start=start, days=1 / 12, osts=OSTS, mdts=MDTS, seed=3)
    simulate_telemetry(order, workers=1)
    return url


def test_telemetry_sums_to_the_truth(centre: Path) -> None:
    truth = json.loads((centre / "truth-scratch.json").read_text())
    assert stored_sums(centre) == {job["job_id"]: {name: job[name] for name in SUMS} for job in truth["jobs"]}
    jobs = {job["job_id"]: job for job in truth["jobs"]}
    tiny = jobs[TINY.job_id]
    assert (tiny["user"], tiny["project"], tiny["name"]) == ("eve", "rogue", "tiny.x")
    assert tiny["disk_s"] == pytest.approx(tiny["operations"] * WORKLOAD.disks.write.seconds(4096))
    assert tiny["disk_s"] == pytest.approx(3 * 0.40 * 1800, rel=0.02)
    assert tiny["disk_s"] > jobs[RESTING.job_id]["disk_s"] > 200
    assert jobs["opens-7"]["metadata_operations"] == pytest.approx(790.5 * 600, abs=4)
    assert jobs["opens-7"]["disk_s"] == 0.0
    whole_s = sum(job["disk_s"] for job in truth["jobs"])
    assert whole_s == pytest.approx(truth["mean_fsu_pct"] / 100 * 7200 * OSTS, rel=1e-9)
    assert [job["disk_s"] for job in truth["jobs"]] == sorted((job["disk_s"] for job in truth["jobs"]), reverse=True)


def test_telemetry_has_the_same_bytes_by_job_and_target(centre: Path) -> None:
    by_target: dict[str, int] = defaultdict(int)
    by_job: dict[str, int] = defaultdict(int)
    for row in rows(centre, "target_io"):
        by_target[row["target"]] += row["read_bytes"] + row["write_bytes"]
    for row in rows(centre, "job_io"):
        if row["target_kind"] == "ost":
            by_job[row["target"]] += row["read_bytes"] + row["write_bytes"]
    assert by_target == by_job
    counted = sum(row[name] for row in rows(centre, "metadata_ops") for name in OPERATIONS)
    assert counted == sum(job["metadata_operations"] for job in stored_sums(centre).values())


def test_telemetry_has_their_records(centre: Path) -> None:
    jobs = {row["job_id"]: row for row in rows(centre, "jobs")}
    assert (jobs["opens-7"]["name"], jobs["opens-7"]["nodes"], jobs["opens-7"]["cores"]) == ("walk.py", 1, 16)
    assert jobs[TINY.job_id]["duration_s"] == 1800
    assert {row["name"] for row in jobs.values()} == {None, "tiny.x", "read.x", "walk.py"}
