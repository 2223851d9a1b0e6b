"""Logs of simulated jobs agree with what the clients, and so the servers, of the same simulation count."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from iolens.analyses.runs.used_files import strategy_of
from iolens.api import OpenStore
from iolens.api.stored_runs import StoredRuns
from iolens.simulator.activity import Activity
from iolens.simulator.client_tree import SimulatedClients
from iolens.simulator.darshan_jobs import APPLICATIONS, WrittenRuns, jobs_in, run_of, truth_of, write_job_logs
from iolens.simulator.job_counts import SLOWDOWN, load_of_others_pct
from iolens.simulator.workload import OPERATIONS, SIZES, load_workload
from iolens.sources.darshan.isolated import rows_of_log
from iolens.units import MIB, parse_time
from tests.cli.command import iolens
from tests.simulator.planted import RESTING, TINY, planted_workload
from tests.simulator.planted import START_S as PLANTED_S
from tests.simulator.stated_runs import NEEDS_DARSHAN

pytestmark = NEEDS_DARSHAN

OSTS, NODES, HOURS = 3, 5, 4
START_S = int(parse_time("2026-01-05").timestamp())


@pytest.fixture(scope="module")
def activity() -> Activity:
    return Activity(load_workload("scratch"), OSTS, 7)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("runs")


@pytest.fixture(scope="module")
def written(activity: Activity, folder: Path) -> WrittenRuns:
    end_s = START_S + HOURS * 3600
    return write_job_logs(folder, activity, mdts=1, nodes=NODES, start_s=START_S, end_s=end_s)


def test_jobs_are_those_of_simulated_clients_to_the_byte(activity: Activity, tmp_path: Path) -> None:
    names = [f"scratch-OST{ost:04x}" for ost in range(OSTS)] + ["scratch-MDT0000"]
    clients = SimulatedClients(tmp_path, activity, 1, NODES, start_s=START_S, uptime_s=0)
    clients.advance_to(START_S + HOURS * 3600, names)
    jobs = jobs_in(activity, 1, NODES, START_S, START_S + HOURS * 3600, lambda text: None)
    assert len(jobs) == 1 + 2 + 4  # of 4, 2 and 1 hours; those of 6 and 12 do not end
    for _, job in jobs:
        counted = clients.jobs[job.job.job_id]
        assert (job.nodes, job.job) == (counted.nodes, counted.job)
        assert np.array_equal(job.rpcs, counted.rpcs)
        assert np.array_equal(job.operations, counted.operations)


def test_runs_have_all_that_their_jobs_did(written: WrittenRuns, activity: Activity) -> None:
    jobs = jobs_in(activity, 1, NODES, START_S, START_S + HOURS * 3600, lambda text: None)
    by_id = {int(job.job.job_id): job for _, job in jobs}
    assert [run.strategy for run in written.runs] == ["shared", "rank0", "rank0"]
    for run in written.runs:
        job, truth = by_id[run.job_id], truth_of(run)
        assert (truth.read_bytes, truth.write_bytes) == (job.moved_bytes(0), job.moved_bytes(1))
        assert (truth.reads, truth.writes) == (job.rpcs[0].sum(), job.rpcs[1].sum())
        by_ost = np.einsum("s,dso->o", np.array(SIZES), job.rpcs)
        assert [truth.bytes_by_ost[ost] for ost in range(OSTS)] == by_ost.tolist()
        assert truth.opens == job.operations[OPERATIONS.index("open")].sum()


def test_every_stream_fits_into_its_job(tmp_path: Path, activity: Activity) -> None:
    end_s = START_S + 12 * 3600
    whole = write_job_logs(tmp_path, activity, mdts=1, nodes=NODES, start_s=START_S, end_s=end_s)
    assert {run.strategy for run in whole.runs} == {"file_per_process", "shared", "rank0", "collective"}
    for path, run in zip(whole.logs, whole.runs, strict=True):
        columns = rows_of_log(path)["runs"].columns
        row = {name: values[0] for name, values in columns.items()}
        assert row["slowest_rank_s"] == pytest.approx(truth_of(run).slowest_rank_s)
        assert row["slowest_rank_s"] <= 0.81 * run.duration_s
        assert row["write_bytes"] == truth_of(run).write_bytes
        assert strategy_of({name: None if value is np.ma.masked else value for name, value in row.items()})[0] == (
            run.strategy
        )


def test_logs_and_jobs_are_loaded_and_joined(written: WrittenRuns, folder: Path, tmp_path: Path) -> None:
    with OpenStore(tmp_path / "store") as opened:
        assert opened.ingest(folder / "logs", source="darshan", filesystem="scratch").rows["runs"] == 3
        assert opened.ingest(folder / "sacct.txt", source="slurm").rows["jobs"] == 7
    stored = StoredRuns.opened(str(tmp_path / "store"), None)
    truths = json.loads((folder / "runs.json").read_text())["runs"]
    assert [truth["jobid"] for truth in truths] == [str(run.job_id) for run in written.runs]
    for truth in truths:
        (row,) = stored.named(truth["jobid"])
        moved = row["read_bytes"] + row["write_bytes"]
        assert moved / MIB / row["slowest_rank_s"] == pytest.approx(truth["mib_per_s"])
        assert strategy_of(row)[0] == truth["strategy"]
        assert stored.record(row).run["project"] == {"xgc": "fusion", "blastn": "genomes"}[truth["executable"]]


def test_the_verb_writes_the_same(written: WrittenRuns, folder: Path, tmp_path: Path) -> None:
    words = ("--osts", OSTS, "--nodes", NODES, "--days", HOURS / 24, "--start", "2026-01-05", "--seed", 7)
    done = iolens("simulate", "darshan", "--output", tmp_path, *words)
    assert done.code == 0, done.err
    assert done.out.startswith("3 logs of 7 jobs in ")
    for path in written.logs:
        assert (tmp_path / path.relative_to(folder)).read_bytes() == path.read_bytes()
    assert (tmp_path / "sacct.txt").read_text() == (folder / "sacct.txt").read_text()


def test_streams_differ_and_some_leave_no_log() -> None:
    assert None in APPLICATIONS
    strategies = [application.strategy for application in APPLICATIONS if application is not None]
    assert len(set(strategies)) == len(strategies)


def test_planted_jobs_have_logs_of_what_they_did(tmp_path: Path) -> None:
    """A shared file on each OST, and files of the processes on one OST; the job without a strategy has no log."""
    planted = Activity(planted_workload(), OSTS, 7)
    window = {"mdts": 1, "nodes": 12, "start_s": PLANTED_S - 600, "end_s": PLANTED_S + 5400}
    whole = write_job_logs(tmp_path, planted, **window)
    runs = {run.job_id: (path, run) for path, run in zip(whole.logs, whole.runs, strict=True)}
    block = planted.block(window["start_s"] // 5, 1200)
    for job, strategy, osts in ((TINY, "shared", OSTS), (RESTING, "file_per_process", 1)):
        path, run = runs[int(job.job_id)]
        part = next(part for part in block.planted if part.job == job)
        moved = np.einsum("s,dsto->do", np.array(SIZES), part.counts)
        row = {name: values[0] for name, values in rows_of_log(path)["runs"].columns.items()}
        assert (run.strategy, run.executable, run.user) == (strategy, job.executable, job.user)
        assert (row["read_bytes"], row["write_bytes"]) == tuple(moved.sum(axis=1).tolist())
        assert (row["osts"], row["processes"]) == (osts, 16 * job.nodes)
        assert row["slowest_rank_s"] <= 0.81 * run.duration_s
    assert "opens-7|walk.py|gina|lists|" in (tmp_path / "sacct.txt").read_text()


def test_the_load_of_others_slows_a_planted_run_down() -> None:
    victim = replace(TINY, job_id="90000003", level_pct=2.0, executable="app")
    times = []
    for beside in ((), (replace(TINY, level_pct=50.0),)):
        planted = Activity(planted_workload(victim, *beside, name="scratch2"), OSTS, 7)
        jobs = jobs_in(planted, 1, 12, PLANTED_S, PLANTED_S + 1800, lambda text: None)
        number, job = next((number, job) for number, job in jobs if job.job.job_id == victim.job_id)
        run = run_of(planted, number, job)
        assert run is not None
        times.append((truth_of(run).write_s, load_of_others_pct(planted, victim)))
    (alone_s, quiet_pct), (slowed_s, busy_pct) = times
    assert busy_pct - quiet_pct == pytest.approx(50.0, abs=1.0)
    slower = (1 + SLOWDOWN * busy_pct / 100) / (1 + SLOWDOWN * quiet_pct / 100)
    assert slowed_s / alone_s == pytest.approx(slower, rel=1e-6)
