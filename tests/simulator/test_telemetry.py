"""Telemetry in a store: `utilization` finds the truth again, and asking twice adds nothing."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import narwhals as nw
import pytest

from iolens.analyses.utilization.analysis import utilization
from iolens.api import OpenStore
from iolens.errors import UsageError
from iolens.simulator.telemetry import order_of, simulate_telemetry
from iolens.simulator.workload import load_workload
from iolens.store.store import Store

START = datetime(2012, 10, 22, 22, 30, tzinfo=UTC)


def rows(store: Store, table: str) -> Any:
    return next(iter(store.select().chunks(table))).frame(table).collect(backend="pyarrow")


@pytest.fixture(scope="module")
def centre(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three hours of four OSTs across midnight."""
    url = tmp_path_factory.mktemp("simulated") / "store"
    order = order_of(str(url), load_workload("scratch"), start=START, days=0.125, osts=4, mdts=2, seed=7)
    done = simulate_telemetry(order, workers=1)
    assert done.rows["target_sizes"] == done.rows["target_io"] == 4 * 2160
    assert done.rows["metadata_ops"] == 2 * 2160
    return url


def test_utilization_recovers_the_truth(centre: Path) -> None:
    truth = json.loads((centre / "truth-scratch.json").read_text())
    with OpenStore(str(centre)) as opened:
        result = opened.analyse("utilization")
    assert result.calibration.name == "simulated-scratch"  # stored beside the data, so nobody has to name it
    assert result.samples == truth["samples"] == 2160
    assert result.target_samples == truth["target_samples"]
    assert result.mean_fsu_pct == pytest.approx(truth["mean_fsu_pct"], rel=1e-6)
    assert result.busy_time_pct == pytest.approx(truth["busy_time_pct"], rel=1e-6)
    for ours, true in zip(result.categories, truth["categories"], strict=True):
        assert ours.observations_pct == pytest.approx(true["observations_pct"], rel=1e-6)
        assert ours.optimal_pct == pytest.approx(true["optimal_pct"], rel=1e-6)
    assert result.coverage is not None


def test_asking_again_adds_nothing(centre: Path) -> None:
    before = rows(Store(centre), "target_sizes").shape[0]
    order = order_of(str(centre), load_workload("scratch"), start=START, days=0.125, osts=4, mdts=2, seed=7)
    simulate_telemetry(order, workers=1)
    assert rows(Store(centre), "target_sizes").shape[0] == before
    assert len([row for row in Store(centre).calibrations() if row["name"] == "simulated-scratch"]) == 1


def test_another_simulation_of_the_same_hours_is_refused(centre: Path) -> None:
    for seed, start in ((8, START), (7, START.replace(minute=0))):
        order = order_of(str(centre), load_workload("scratch"), start=start, days=0.125, osts=4, mdts=2, seed=seed)
        with pytest.raises(UsageError, match="another simulation of scratch"):
            simulate_telemetry(order, workers=1)


def test_jobs_and_targets_moved_the_same_bytes(centre: Path) -> None:
    store = Store(centre)
    names = ["read_bytes", "write_bytes", "read_ops", "write_ops"]
    by_target, by_job = (rows(store, table).select(nw.col(names).sum()).row(0) for table in ("target_io", "job_io"))
    assert by_target == by_job


def test_capacity_grows(centre: Path) -> None:
    full = rows(Store(centre), "target_capacity").filter(nw.col("target") == "scratch-OST0001").sort("time")
    used = full["used_bytes"].to_list()
    assert used == sorted(used)
    assert used[-1] - used[0] == pytest.approx(6 * 2**30 * 10200 / 86400, rel=0.01)


def test_two_processes_write_what_one_writes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("iolens.simulator.telemetry.SMALL", 0)
    means = []
    for workers in (1, 2):
        order = order_of(
            str(tmp_path / f"by{workers}"), load_workload("scratch2"), start=START, days=0.5, osts=2, seed=3
        )
        done = simulate_telemetry(order, workers=workers)
        result = utilization(Store(order.store).select(), calibration=order.workload.disks)
        assert result.mean_fsu_pct == pytest.approx(done.truth.summary()["mean_fsu_pct"], rel=1e-6)
        means.append(result.mean_fsu_pct)
    assert means[0] == pytest.approx(means[1], rel=1e-12)


def test_only_whole_minutes(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="whole minute"):
        order_of(str(tmp_path), load_workload("scratch"), start=START.replace(second=7), days=1)
    with pytest.raises(UsageError, match="whole minute"):
        order_of(str(tmp_path), load_workload("scratch"), start=START, days=0.0001)
    early = order_of(str(tmp_path / "s"), load_workload("scratch"), start=datetime(1970, 1, 1, tzinfo=UTC), days=0.1)
    with pytest.raises(UsageError, match="1970-01-03"):
        simulate_telemetry(early)
