"""Load on metadata targets against plain Python."""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest

import iolens
from iolens.analyses.calibration.runs import find_metadata_calibration
from iolens.api import OpenStore
from iolens.errors import UsageError
from iolens.models.metadata_time import MetadataCalibration, OperationCost
from iolens.store.store import Store
from iolens.views.render.json_text import to_json
from tests.analyses.telemetry import OPERATIONS, T0_US, made_up, made_up_metadata, table_of
from tests.analyses.utilization.test_utilization import assert_same

COUNTED = [*(name for name in OPERATIONS if name != "samedir_rename"), "mkdir"]
COSTS = {"getattr": 2e-4, "open": 5e-4, "close": 0.0, "mknod": 2e-3, "unlink": 1e-3}
ASSUMED = 1e-4
CALIBRATION = MetadataCalibration(
    "by hand",
    ASSUMED,
    [OperationCost(name, cost, "in open" if name == "close" else "measured") for name, cost in COSTS.items()],
)


def opened(folder: Path, *rows: dict) -> OpenStore:
    Store(folder).append("metadata_ops", table_of("metadata_ops", list(rows)))
    return iolens.open(str(folder))


def run(tool: str = "mdtest", **more: object) -> dict:
    return {"time": T0_US, "source": "mdtest", "filesystem": "scratch", "tool": tool, "run_id": "r1", "tasks": 8,
            "direction": "File stat", "duration_s": 2.0, "operations": 100_000, **more}  # fmt: skip


def operations(row: dict) -> int:
    return sum(row[name] or 0 for name in COUNTED)


def mdu(row: dict) -> float:
    return 100 * sum((row[name] or 0) * COSTS.get(name, ASSUMED) for name in COUNTED) / row["duration_s"]


def service(row: dict) -> float:
    return 100 * sum(row.get(f"{name}_us") or 0 for name in COUNTED) / 1e6 / row["duration_s"]


@pytest.fixture(scope="module")
def rows() -> list[dict]:
    return made_up_metadata(1, ticks=500, targets=3)


@pytest.fixture(scope="module")
def result(rows: list[dict], tmp_path_factory: pytest.TempPathFactory):
    return opened(tmp_path_factory.mktemp("store"), *rows).metadata(calibration=CALIBRATION)


def by_tick(rows: list[dict]) -> list[list[dict]]:
    ticks: dict[int, list[dict]] = defaultdict(list)
    for row in rows:
        ticks[row["time"]].append(row)
    return [ticks[time] for time in sorted(ticks)]


def test_the_file_system_equals_a_brute_force(rows: list[dict], result) -> None:
    ticks = by_tick(rows)
    rate = np.array([sum(operations(row) / row["duration_s"] for row in same) for same in ticks])
    load = np.array([np.mean([mdu(row) for row in same]) for same in ticks])
    seconds = np.array([np.mean([row["duration_s"] for row in same]) for same in ticks])
    assert (result.targets, result.samples, result.target_samples) == (3, len(ticks), len(rows))
    assert result.operations == sum(map(operations, rows))
    assert result.mean_ops_per_s == pytest.approx((rate * seconds).sum() / seconds.sum(), rel=1e-9)
    for share, answer in ((0.5, result.p50_ops_per_s), (0.95, result.p95_ops_per_s), (0.99, result.p99_ops_per_s)):
        assert answer == pytest.approx(np.quantile(rate, share), rel=1e-9)
    assert result.percentile_error_pct == 0
    assert result.peak_ops_per_s == pytest.approx(rate.max(), rel=1e-9)
    assert result.peak_ops_time.timestamp() * 1e6 == ticks[int(rate.argmax())][0]["time"]
    assert result.mean_mdu_pct == pytest.approx((load * seconds).sum() / seconds.sum(), rel=1e-9)
    assert result.busy_time_pct == pytest.approx(100 * seconds[load > 30].sum() / seconds.sum(), rel=1e-9)
    assert 0 < result.busy_time_pct < 100
    assert result.peak_mdu_pct == pytest.approx(load.max(), rel=1e-9)
    spent = np.array([np.mean([service(row) for row in same]) for same in ticks])
    assert result.mean_mdu_service_pct == pytest.approx((spent * seconds).sum() / seconds.sum(), rel=1e-9)


def test_every_target_equals_a_brute_force(rows: list[dict], result) -> None:
    for line in result.per_target:
        mine = [row for row in rows if row["target"] == line.target]
        seconds = np.array([row["duration_s"] for row in mine])
        rate = np.array([operations(row) for row in mine]) / seconds
        load = np.array([mdu(row) for row in mine])
        assert line.operations == sum(map(operations, mine))
        assert line.mean_ops_per_s == pytest.approx(line.operations / seconds.sum(), rel=1e-9)
        assert line.p95_ops_per_s == pytest.approx(np.quantile(rate, 0.95), rel=1e-9)
        assert line.peak_ops_per_s == pytest.approx(rate.max(), rel=1e-9)
        assert line.mean_mdu_pct == pytest.approx(np.average(load, weights=seconds), rel=1e-9)
        assert line.busy_time_pct == pytest.approx(100 * seconds[load > 30].sum() / seconds.sum(), rel=1e-9)


def test_the_mix_is_exact_and_says_what_is_assumed(rows: list[dict], result) -> None:
    counts = {name: sum(row[name] or 0 for row in rows) for name in COUNTED}
    spent = {name: counts[name] * COSTS.get(name, ASSUMED) for name in COUNTED}
    assert {line.operation: line.count for line in result.mix} == counts
    assert [line.count for line in result.mix] == sorted(counts.values(), reverse=True)
    for line in result.mix:
        name = line.operation
        assert line.share_pct == pytest.approx(100 * counts[name] / sum(counts.values()))
        assert line.time_share_pct == pytest.approx(100 * spent[name] / sum(spent.values()))
        assert line.basis == ("in open" if name == "close" else "measured" if name in COSTS else "assumed")
        service_us = sum(row.get(f"{name}_us") or 0 for row in rows)
        assert line.mean_service_s == pytest.approx(service_us / 1e6 / counts[name], rel=1e-6)
    assumed = [name for name in COUNTED if name not in COSTS]
    expected = 100 * sum(counts[name] for name in assumed) / sum(counts.values())
    assert result.assumed_ops_pct == pytest.approx(expected)
    assert result.assumed_time_pct == pytest.approx(100 * sum(spent[name] for name in assumed) / sum(spent.values()))


def test_days_and_buckets_add_up(rows: list[dict], result) -> None:
    assert [(str(day.date), day.operations) for day in result.daily] == [("2020-09-14", sum(map(operations, rows)))]
    series = result.series
    stacked = np.nansum(list(series.ops_per_s.values()), axis=0)
    width = round(series.bucket_s * 1e6)
    for place, start in enumerate(series.start_us):
        inside = [row for row in rows if start <= row["start"] < start + width]
        expected = 0.0
        for target in {row["target"] for row in inside}:
            mine = [row for row in inside if row["target"] == target]
            expected += sum(map(operations, mine)) / sum(row["duration_s"] for row in mine)
        assert stacked[place] == pytest.approx(expected, rel=1e-9)


def test_without_a_calibration_there_is_no_mdu_and_a_note(rows: list[dict], tmp_path: Path) -> None:
    answer = opened(tmp_path, *rows).metadata()
    unknown = answer.mean_mdu_pct, answer.busy_time_pct, answer.peak_mdu_pct, answer.assumed_ops_pct, answer.calibration
    assert unknown == (None,) * 5
    assert answer.operations > 0
    assert "no mdtest result is stored for scratch" in answer.coverage.notes[0]


def test_servers_that_count_no_times_have_no_service_estimate(tmp_path: Path) -> None:
    answer = opened(tmp_path, *made_up_metadata(2, ticks=50, targets=1, times=False)).metadata(calibration=CALIBRATION)
    assert answer.mean_mdu_service_pct is None
    assert {line.mean_service_s for line in answer.mix} == {None}


def test_mdtest_results_of_the_store_are_the_calibration(rows: list[dict], tmp_path: Path) -> None:
    store = opened(tmp_path, *rows)
    runs = [
        run(), run(direction="File creation", operations=8_000), run("ior", direction="write", run_id="r3"),
        run(filesystem="testbed", run_id="r2", operations=20_000),
    ]  # fmt: skip
    store.store.append("benchmark_runs", table_of("benchmark_runs", runs))
    answer = store.metadata()
    assert (answer.calibration.name, answer.calibration.of("getattr").s_per_op) == ("mdtest:scratch", 2e-5)
    assert answer.coverage.notes == []
    for wish in ("mdtest:testbed", "mdtest:r2"):
        assert store.metadata(calibration=wish).calibration.of("getattr").s_per_op == 1e-4
    assert store.metadata(calibration="none").mean_mdu_pct is None
    with pytest.raises(UsageError, match="there are: r1, r2, scratch, testbed"):
        store.metadata(calibration="mdtest:elsewhere")
    with pytest.raises(UsageError, match="mdtest:NAME or none"):
        store.metadata(calibration="grace-2012")


def test_a_printed_rate_counts_where_operations_are_unknown_but_not_of_a_run_that_is_not_complete() -> None:
    unknown = {**run(direction="file_stat", operations=None, duration_s=None), "reported_ops_per_s": 40_000.0}
    invalid = {**unknown, "reported_ops_per_s": 90_000.0, "complete": False}
    calibration, notes = find_metadata_calibration([unknown, invalid], None, "scratch")
    assert calibration is not None
    assert (calibration.of("getattr").s_per_op, notes) == (1 / 40_000, ())


def test_an_unsaturated_mdtest_is_reported(rows: list[dict], tmp_path: Path) -> None:
    store = opened(tmp_path, *rows)
    runs = [run(), run(run_id="r2", tasks=16, operations=160_000)]
    store.store.append("benchmark_runs", table_of("benchmark_runs", runs))
    assert "still became faster at file_stat" in store.metadata().coverage.notes[0]


def test_chunks_and_midnight_do_not_change_the_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from iolens.store.duckdb_engine import DuckDBEngine

    store = opened(tmp_path, *made_up_metadata(3, ticks=300, targets=3, first_tick=17280 - 150, missing=0.3))
    whole = json.loads(to_json(store.metadata(calibration=CALIBRATION)))
    assert len(whole["daily"]) == 2
    monkeypatch.setattr(DuckDBEngine, "rows_per_chunk", 1)
    assert_same(json.loads(to_json(store.metadata(calibration=CALIBRATION))), whole)


@pytest.mark.parametrize("kind", ["pandas", "polars", "pyarrow", "duckdb"])
def test_frames_of_a_user_work_too(rows: list[dict], result, kind: str) -> None:
    from tests.analyses.utilization.test_utilization import _as

    frame = _as(kind, table_of("metadata_ops", rows))
    left, right = (
        json.loads(to_json(item))
        for item in (iolens.metadata(metadata_ops=frame, filesystem="scratch", costs=CALIBRATION), result)
    )
    for entry in (left, right):
        del entry["coverage"]
        entry["mix"].sort(key=lambda line: line["operation"])
    assert_same(left, right)


def test_a_store_without_metadata_answers_with_nulls(tmp_path: Path) -> None:
    part = made_up(1, ticks=10, targets=1)
    store = Store(tmp_path)
    store.append("target_io", part.table("target_io"))
    answer = iolens.open(str(tmp_path)).metadata()
    assert (answer.samples, answer.operations, answer.mean_ops_per_s, answer.series) == (0, 0, None, None)
    assert answer.coverage.targets_known == 0


def test_buckets_may_be_chosen(rows: list[dict], tmp_path: Path) -> None:
    store = opened(tmp_path, *rows)
    assert store.metadata(every="10min").series.bucket_s == 600
    for wrong in ("7s", 0.5):
        with pytest.raises(UsageError, match="does not divide a day"):
            store.metadata(every=wrong)
