"""Latency percentiles against plain Python, straight from the definition."""

from __future__ import annotations

import json
import statistics
from collections import Counter, defaultdict
from pathlib import Path

import numpy as np
import pytest

import iolens
from iolens.analyses.latency.part import of_bins, percentiles
from iolens.api import OpenStore
from iolens.errors import UsageError
from iolens.store.store import Store
from iolens.views.render.json_text import to_json
from tests.analyses.telemetry import made_up, made_up_devices, made_up_io_times, table_of
from tests.analyses.utilization.test_utilization import assert_same


def opened(folder: Path, **tables: list[dict]) -> OpenStore:
    store = Store(folder)
    for name, rows in tables.items():
        store.append(name, table_of(name, rows))
    return iolens.open(str(folder))


def percentile(bins: Counter, percent: int) -> float | None:
    """Upper edge of the first bin whose cumulative share reaches it."""
    reached = 0
    for edge in sorted(bins):
        reached += bins[edge]
        if reached * 100 >= percent * bins.total():
            return edge
    return None


@pytest.fixture(scope="module")
def rows() -> list[dict]:
    return made_up_io_times(1, ticks=180, targets=5)


@pytest.fixture(scope="module")
def result(rows: list[dict], tmp_path_factory: pytest.TempPathFactory):
    return opened(tmp_path_factory.mktemp("store"), target_histograms=rows).latency(every="10min")


def gathered(rows: list[dict], *keys: str) -> dict[tuple, Counter]:
    counts: dict[tuple, Counter] = defaultdict(Counter)
    for row in rows:
        if row["histogram"] == "io_time_ms":
            counts[tuple(row[key] for key in keys)][row["bin"]] += row["count"]
    return counts


def test_a_percentile_is_the_first_edge_that_reaches_its_share() -> None:
    """1 ms: 50, 2 ms: 45, 8 ms: 4, 64 ms: 1 of a hundred."""
    assert of_bins({1: 50, 2: 45, 8: 4, 64: 1}) == {
        "ios": 100, "p50_ms": 1, "p95_ms": 2, "p99_ms": 8, "max_ms": 64,
    }  # fmt: skip
    assert of_bins({4: 1})["p50_ms"] == 4
    none = percentiles(np.array([[0.0, 0.0]]), np.array([1, 2]))
    assert np.isnan([none[name][0] for name in ("p50_ms", "p99_ms", "max_ms")]).all()


def test_the_file_system_equals_a_brute_force(rows: list[dict], result) -> None:
    for line in result.whole:
        bins = gathered(rows, "direction")[line.direction,]
        assert (line.ios, line.max_ms) == (bins.total(), max(bins))
        assert [line.p50_ms, line.p95_ms, line.p99_ms] == [percentile(bins, percent) for percent in (50, 95, 99)]
        assert line.mean_wait_ms is None
    assert result.ios == sum(row["count"] for row in rows if row["histogram"] == "io_time_ms")


def test_targets_are_compared_with_the_median_of_their_peers(rows: list[dict], result) -> None:
    bins = gathered(rows, "target", "direction")
    for line in result.per_target:
        mine = bins[line.target, line.direction]
        peers = [percentile(other, 99) for (_, direction), other in bins.items() if direction == line.direction]
        usual = statistics.median_high(peers)
        assert (line.ios, line.p99_ms, line.peers_p99_ms) == (mine.total(), percentile(mine, 99), usual)
        assert line.p99_ratio == line.p99_ms / usual
        slower = sum(count for edge, count in mine.items() if edge > usual)
        assert line.slow_pct == pytest.approx(100 * slower / mine.total())
    slowest = max(result.per_target, key=lambda line: line.p99_ratio)
    assert (slowest.target, slowest.direction) == ("scratch-OST0001", "read")
    assert slowest.p99_ratio >= 2


def test_every_bucket_equals_a_brute_force(rows: list[dict], result) -> None:
    starts = [int(start.timestamp() * 1e6) for start in result.bucket_starts]
    assert set(np.diff(starts)) == {600_000_000}
    placed = [{**row, "bucket": row["start"] // 600_000_000 * 600_000_000} for row in rows]
    by_target = gathered(placed, "target", "direction", "bucket")
    for series in result.over_time:
        whole = gathered(placed, "direction", "bucket") if series.target is None else None
        for place, start in enumerate(starts):
            bins = whole[series.direction, start] if whole else by_target[series.target, series.direction, start]
            if not bins:
                assert np.isnan(series.p99_ms[place])
                continue
            assert series.ios[place] == bins.total()
            assert [series.p50_ms[place], series.p95_ms[place], series.p99_ms[place], series.max_ms[place]] == [
                *(percentile(bins, percent) for percent in (50, 95, 99)), max(bins),
            ]  # fmt: skip
    assert len(result.over_time) == 2 * (5 + 1)


def test_without_a_histogram_there_is_a_mean_and_no_percentile(tmp_path: Path) -> None:
    rows = made_up_devices(2, ticks=300, devices=4)
    answer = opened(tmp_path, target_io=rows).latency(every="5min")
    for line in answer.per_target:
        mine = [row for row in rows if row["target"] == line.target]
        wait_us = sum(row[f"{line.direction}_wait_us"] for row in mine)
        assert line.mean_wait_ms == pytest.approx(wait_us / sum(row[f"{line.direction}_ops"] for row in mine) / 1000)
        assert (line.ios, line.p50_ms, line.p99_ms, line.p99_ratio) == (None, None, None, None)
    whole = next(line for line in answer.whole if line.direction == "read")
    expected = sum(row["read_wait_us"] for row in rows) / sum(row["read_ops"] for row in rows) / 1000
    assert whole.mean_wait_ms == pytest.approx(expected)
    series = next(item for item in answer.over_time if (item.target, item.direction) == ("sda", "read"))
    start = int(answer.bucket_starts[0].timestamp() * 1e6)
    first = [row for row in rows if row["target"] == "sda" and start <= row["start"] < start + 300_000_000]
    expected = sum(row["read_wait_us"] for row in first) / sum(row["read_ops"] for row in first) / 1000
    assert series.mean_wait_ms[0] == pytest.approx(expected)
    assert np.isnan(series.p99_ms).all()
    whole_series = next(item for item in answer.over_time if (item.target, item.direction) == (None, "write"))
    for place, start in enumerate(int(bucket_start.timestamp() * 1e6) for bucket_start in answer.bucket_starts):
        inside = [row for row in rows if start <= row["start"] < start + 300_000_000]
        expected = sum(row["write_wait_us"] for row in inside) / sum(row["write_ops"] for row in inside) / 1000
        assert whole_series.mean_wait_ms[place] == pytest.approx(expected)
    assert (answer.coverage.targets_with_histogram, answer.coverage.targets_with_waits) == (0, 4)


def test_waits_that_are_not_counted_are_not_zero(tmp_path: Path) -> None:
    rows = [{**row, "write_wait_us": None} for row in made_up_devices(2, ticks=30, devices=1)]
    answer = opened(tmp_path, target_io=rows).latency()
    assert [line.direction for line in answer.per_target] == ["read"]


def test_metadata_targets_are_shown_but_not_pooled(rows: list[dict], result, tmp_path: Path) -> None:
    mdt = [{**row, "target": "scratch-MDT0000", "target_kind": "mdt"} for row in rows if row["target"].endswith("1")]
    answer = opened(tmp_path, target_histograms=[*rows, *mdt]).latency(every="10min")
    assert answer.whole == result.whole
    of_mdt = [line for line in answer.per_target if line.target == "scratch-MDT0000"]
    assert {line.peers_p99_ms for line in of_mdt} == {None}  # it has no peers


def test_chunks_and_midnight_do_not_change_the_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from iolens.store.duckdb_engine import DuckDBEngine

    rows = made_up_io_times(3, ticks=120, targets=3, first_tick=1440 - 60)
    devices = made_up_devices(4, ticks=200, devices=2, first_tick=17280 - 100, filesystem="scratch")
    store = opened(tmp_path, target_histograms=rows, target_io=devices)
    whole = json.loads(to_json(store.latency()))
    monkeypatch.setattr(DuckDBEngine, "rows_per_chunk", 1)
    assert_same(json.loads(to_json(store.latency())), whole)


@pytest.mark.parametrize("kind", ["pandas", "polars", "pyarrow", "duckdb"])
def test_frames_of_a_user_work_too(rows: list[dict], result, kind: str) -> None:
    from tests.analyses.utilization.test_utilization import _as

    answer = iolens.latency(
        target_histograms=_as(kind, table_of("target_histograms", rows)), filesystem="scratch", every_s=600
    )
    left, right = json.loads(to_json(answer)), json.loads(to_json(result))
    del left["coverage"], right["coverage"]
    assert_same(left, right)


def sized(seed: int) -> list[dict]:
    """Rows of two OSTs and an MDT by size, and others beside them."""
    random = np.random.default_rng(seed)
    rows = []
    for row in made_up_io_times(seed, ticks=20, targets=3):
        size = int(random.choice([4096, 65536, 1 << 20]))
        edge = 1024 << int(random.integers(0, 16))
        kind = "mdt" if row["target"].endswith("2") else "ost"
        rows.append({**row, "histogram": f"io_latency_ns_from_{size}", "bin": edge, "target_kind": kind})
    unique = {(row["target"], row["histogram"], row["direction"], row["bin"], row["time"]): row for row in rows}
    return list(unique.values())


@pytest.mark.parametrize("kind", ["pandas", "polars", "pyarrow", "duckdb"])
def test_latency_by_size_equals_a_brute_force(tmp_path: Path, rows: list[dict], kind: str) -> None:
    """Of all data targets together; the MDT's are not among them, nor do they change what else is answered."""
    from tests.analyses.utilization.test_utilization import _as

    mine = sized(4)
    answer = iolens.latency(target_histograms=_as(kind, table_of("target_histograms", mine)), filesystem="scratch")
    bins: dict[tuple[str, int], Counter] = defaultdict(Counter)
    for row in mine:
        if row["target_kind"] == "ost":
            bins[row["direction"], int(row["histogram"].rpartition("_")[2])][row["bin"]] += row["count"]
    assert [(line.direction, line.from_bytes) for line in answer.by_size] == sorted(bins)
    for line in answer.by_size:
        of_size = bins[line.direction, line.from_bytes]
        assert (line.below_bytes, line.ios) == (2 * line.from_bytes, of_size.total())
        times = [percentile(of_size, percent) for percent in (50, 95, 99)]
        assert [line.p50_ms, line.p95_ms, line.p99_ms] == [edge / 1e6 for edge in times]
        assert line.max_ms == max(of_size) / 1e6
    assert (answer.samples, answer.ios, answer.per_target) == (0, None, [])
    assert (answer.has_times, answer.targets, answer.coverage.targets_with_sizes) == (True, 2, 2)
    if kind == "pyarrow":
        both = opened(tmp_path / "both", target_histograms=[*rows, *mine]).latency(every="10min")
        timed = sum(row["count"] for row in rows if row["histogram"] == "io_time_ms")
        assert (both.by_size, both.ios) == (answer.by_size, timed)


def test_nothing_is_answered_with_nothing(tmp_path: Path) -> None:
    part = made_up(1, ticks=10, targets=2)
    store = Store(tmp_path)
    store.append("target_io", part.table("target_io"))
    answer = iolens.open(str(tmp_path)).latency()
    assert (answer.samples, answer.ios, answer.whole, answer.per_target, answer.over_time) == (0, None, [], [], [])
    assert answer.coverage.targets_without == ["scratch-OST0000", "scratch-OST0001"]


def test_buckets_nest_in_a_day_and_are_not_too_many(tmp_path: Path, rows: list[dict]) -> None:
    store = opened(tmp_path, target_histograms=rows)
    with pytest.raises(UsageError, match="does not divide a day"):
        store.latency(every="7min")
    with pytest.raises(UsageError, match="more than 5,000"):
        store.latency(every="1s")
    assert store.latency().bucket_s >= 60  # never narrower than the rows' own intervals


def test_targets_in_two_neighbouring_bins_are_not_slow(tmp_path: Path) -> None:
    """Half of them reach 99 % at 4 ms and half at 8 ms, which may be a hair apart."""
    first = next(row for row in made_up_io_times(1, ticks=2, targets=1) if row["histogram"] == "io_time_ms")
    bins = {"a": {4: 600}, "b": {4: 600}, "c": {4: 600, 8: 400}, "d": {4: 600, 8: 400}}
    rows = [
        {**first, "target": target, "bin": edge, "count": count}
        for target, counts in bins.items()
        for edge, count in counts.items()
    ]
    answer = opened(tmp_path, target_histograms=rows).latency(every="10min")
    assert [line.peers_p99_ms for line in answer.per_target] == [8] * 4
    assert [line.slow_pct for line in answer.per_target] == [0.0] * 4
