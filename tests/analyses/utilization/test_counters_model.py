"""FSU of any disk that counts operations and bytes (U9), against plain Python, and what is no disk."""

from __future__ import annotations

import json
from collections import defaultdict
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import iolens
from iolens.api import OpenStore
from iolens.errors import UsageError
from iolens.models.transaction_time import GRACE_2012
from iolens.schema import DIRECTIONS
from iolens.store.store import Store
from iolens.units import MIB
from iolens.views.render.json_text import to_json
from tests.analyses.telemetry import T0_US, made_up, made_up_devices, table_of
from tests.analyses.utilization.test_utilization import assert_same


def opened(folder: Path, *rows: dict, name: str = "target_io") -> OpenStore:
    Store(folder).append(name, table_of(name, list(rows)))
    return iolens.open(str(folder))


def fsu(row: dict) -> float:
    """T = w0·N_w + w1·B_w + r0·N_r + r1·B_r, in per cent of the interval."""
    seconds = sum(
        row[f"{direction}_ops"] * GRACE_2012.of(direction).latency_s
        + row[f"{direction}_bytes"] * GRACE_2012.of(direction).s_per_byte
        for direction in DIRECTIONS
    )
    return 100 * seconds / row["duration_s"]


def optimal_fsu(row: dict) -> float:
    """The same bytes in 1 MiB I/Os; a direction whose mean I/O is larger stays as it is."""
    seconds = 0.0
    for direction in DIRECTIONS:
        cost, ops, moved = GRACE_2012.of(direction), row[f"{direction}_ops"], row[f"{direction}_bytes"]
        seconds += (moved if moved <= ops * MIB else 0) * (cost.latency_s / MIB + cost.s_per_byte)
        seconds += ops * cost.latency_s + moved * cost.s_per_byte if moved > ops * MIB else 0
    return 100 * seconds / row["duration_s"]


@pytest.fixture(scope="module")
def rows() -> list[dict]:
    return made_up_devices(11, ticks=400, devices=4)


@pytest.fixture(scope="module")
def result(rows: list[dict], tmp_path_factory: pytest.TempPathFactory):
    return opened(tmp_path_factory.mktemp("store"), *rows).utilization(calibration="grace-2012")


def test_one_second_of_the_papers_check_value(tmp_path: Path) -> None:
    """100 writes of 4 KiB and 50 reads of 1 MiB in one second: 20.93, and the kernel's %util beside it."""
    row = {
        "time": T0_US + 1_000_000, "start": T0_US, "duration_s": 1.0, "date": T0_US // 86_400_000_000,
        "filesystem": "node1", "source": "made-up", "target": "sda", "target_kind": "device", "write_ops": 100,
        "write_bytes": 409_600, "read_ops": 50, "read_bytes": 50 * MIB, "busy_us": 431_000,
    }  # fmt: skip
    answer = json.loads(to_json(opened(tmp_path, row).utilization(calibration="grace-2012")))
    assert answer["model"] == "counters"
    assert answer["mean_fsu_bytes_pct"] == pytest.approx(20.93, abs=0.005)
    assert answer["mean_fsu_pct"] is None
    assert answer["mean_util_pct"] == pytest.approx(43.1)
    assert answer["per_target"] == [
        {"target": "sda", "mean_fsu_pct": None, "busy_time_pct": 0.0, "read_bytes": 50 * MIB, "write_bytes": 409_600,
         "mean_fsu_bytes_pct": answer["mean_fsu_bytes_pct"], "mean_util_pct": pytest.approx(43.1)}
    ]  # fmt: skip


def test_everything_equals_a_brute_force(rows: list[dict], result) -> None:
    ticks: dict[int, list[dict]] = defaultdict(list)
    for row in rows:
        ticks[row["time"]].append(row)
    means = np.array([np.mean([fsu(row) for row in same]) for same in ticks.values()])
    optimal = np.array([np.mean([optimal_fsu(row) for row in same]) for same in ticks.values()])
    seconds = np.array([np.mean([row["duration_s"] for row in same]) for same in ticks.values()])
    assert (result.samples, result.target_samples, result.targets) == (len(ticks), len(rows), 4)
    assert result.mean_fsu_bytes_pct == pytest.approx((means * seconds).sum() / seconds.sum(), rel=1e-9)
    assert result.busy_time_pct == pytest.approx(100 * seconds[means > 30].sum() / seconds.sum(), rel=1e-9)
    factor = seconds[means > 30].sum() / seconds[optimal > 30].sum()
    assert result.under_report_factor == pytest.approx(factor, rel=1e-9)
    assert factor > 1.05
    known = {time: [row for row in same if row["busy_us"] is not None] for time, same in ticks.items()}
    util = [
        (
            np.mean([row["busy_us"] / row["duration_s"] / 1e4 for row in same]),
            np.mean([row["duration_s"] for row in same]),
        )
        for same in known.values()
        if same
    ]
    assert result.mean_util_pct == pytest.approx(
        np.average([u for u, _ in util], weights=[s for _, s in util]), rel=1e-9
    )


def test_targets_have_both_their_fsu_and_the_kernels_view(rows: list[dict], result) -> None:
    for line in result.per_target:
        mine = [row for row in rows if row["target"] == line.target]
        seconds = sum(row["duration_s"] for row in mine)
        mean = sum(fsu(row) * row["duration_s"] for row in mine) / seconds
        assert line.mean_fsu_bytes_pct == pytest.approx(mean, rel=1e-9)
        assert line.mean_fsu_pct is None
        if line.target == "sdd":
            assert line.mean_util_pct is None  # it does not count its busy time
        else:
            assert line.mean_util_pct == pytest.approx(sum(row["busy_us"] for row in mine) / seconds / 1e4, rel=1e-9)


def test_what_needs_sizes_is_null(result) -> None:
    assert result.io_sizes == []
    assert {(line.optimal_pct, line.suboptimal_pct) for line in result.categories} == {(None, None)}
    assert sum(line.observations_pct for line in result.categories) == pytest.approx(100)


def test_a_plateau_names_its_fsu(tmp_path: Path) -> None:
    steady = [
        {**row, "read_ops": 2500, "read_bytes": 2500 * 65536, "write_ops": 0, "write_bytes": 0, "duration_s": 5.0}
        for row in made_up_devices(3, ticks=240, devices=1, missing=0)
    ]
    (plateau,) = opened(tmp_path, *steady).utilization(calibration="grace-2012").plateaus
    assert plateau.median_fsu_pct is None
    assert plateau.median_fsu_bytes_pct == pytest.approx(fsu(steady[0]))


def test_rows_that_lack_a_count_have_no_fsu_and_are_named(rows: list[dict], tmp_path: Path) -> None:
    """Bytes without operations say nothing of the disks' load; zero operations would."""
    bytes_only = [{**row, "target": "sdx", "read_ops": None} for row in rows if row["target"] == "sda"]
    answer = opened(tmp_path, *rows, *bytes_only).utilization(calibration="grace-2012")
    assert answer.targets == 4
    assert answer.target_samples == len(rows)
    assert answer.coverage.targets_without_sizes == ["sdx"]
    assert next(line for line in answer.per_target if line.target == "sdx").mean_fsu_bytes_pct is None


def test_osts_are_refused_because_their_bytes_are_the_clients(tmp_path: Path) -> None:
    osts = made_up(1, ticks=30, targets=2).io
    store = opened(tmp_path, *osts)
    with pytest.raises(UsageError, match="bytes and RPCs of clients, which never stand for disk I/Os"):
        store.utilization(model="counters")
    answer = store.utilization()
    assert (answer.model, answer.samples, answer.mean_fsu_pct, answer.mean_fsu_bytes_pct) == (
        "histogram",
        0,
        None,
        None,
    )
    assert any("no FSU" in note for note in answer.coverage.notes)
    assert answer.peak_bytes_per_s is not None  # bandwidth needs no model
    with pytest.raises(UsageError, match="model: 'guess' is not known; there are: auto, counters, histogram"):
        store.utilization(model="guess")
    with pytest.raises(UsageError, match="auto, histogram, counters"):
        store.analyse("utilization", model="guess")


def test_targets_of_unknown_kind_are_not_taken_for_disks(rows: list[dict], tmp_path: Path) -> None:
    store = opened(tmp_path, *({**row, "target_kind": None} for row in rows))
    with pytest.raises(UsageError, match="no counters of devices"):
        store.utilization(model="counters")


def test_osts_beside_disks_are_distinguished(rows: list[dict], tmp_path: Path) -> None:
    """One file system with histograms of OSTs and counters of the disks below them: the same bytes twice."""
    part = made_up(1, ticks=400, targets=3)
    disks = [{**row, "filesystem": "scratch"} for row in rows]
    store = opened(tmp_path, *part.io, *disks)
    store.store.append("target_sizes", part.table("target_sizes"))
    of_osts, of_disks = store.utilization(), store.utilization(model="counters")
    assert (of_osts.model, of_osts.targets, of_disks.model, of_disks.targets) == ("histogram", 3, "counters", 4)
    assert sum(day.read_bytes for day in of_osts.daily) == sum(row["read_bytes"] for row in part.io)
    assert sum(day.read_bytes for day in of_disks.daily) == sum(row["read_bytes"] for row in disks)
    assert of_osts.coverage.missing_targets == of_disks.coverage.missing_targets == []
    assert any("left out" in note for note in of_osts.coverage.notes)
    assert any("rows of OSTs are left out" in note for note in of_disks.coverage.notes)
    assert (of_osts.mean_fsu_bytes_pct, of_disks.mean_fsu_pct) == (None, None)


def test_another_file_systems_sizes_in_the_same_files_do_not_decide(rows: list[dict], tmp_path: Path) -> None:
    """The log's statistics span all file systems of a file; the choice of a model must not go by them."""
    sizes = [*made_up(1, 5, 1, filesystem="aaa").sizes, *made_up(2, 5, 1, filesystem="zzz").sizes]
    store = opened(tmp_path, *rows)
    store.store.append("target_sizes", table_of("target_sizes", sizes))
    assert store.utilization("node1").model == "counters"


def test_frames_of_a_user_work_too(rows: list[dict], result) -> None:
    answer = iolens.utilization(target_io=table_of("target_io", rows), filesystem="node1")
    left, right = json.loads(to_json(answer)), json.loads(to_json(replace(result)))
    del left["coverage"], right["coverage"]
    assert_same(left, right)


def test_chunks_do_not_change_the_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from iolens.store.duckdb_engine import DuckDBEngine

    store = opened(tmp_path, *made_up_devices(2, ticks=300, devices=3, first_tick=17280 - 150, missing=0.3))
    whole = json.loads(to_json(store.utilization()))
    monkeypatch.setattr(DuckDBEngine, "rows_per_chunk", 1)
    assert_same(json.loads(to_json(store.utilization())), whole)
