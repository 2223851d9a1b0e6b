"""FSU against the paper's equation, against a brute force, and on every kind of frame."""

from __future__ import annotations

import json
from collections import defaultdict
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest

import iolens
from iolens.errors import UsageError
from iolens.models.transaction_time import GRACE_2012, fsu_pct
from iolens.schema import DIRECTIONS, SIZE_BINS, size_column
from iolens.store.store import Store
from iolens.units import MIB
from iolens.views.render.json_text import to_json
from tests.analyses.telemetry import T0_US, TICK_US, Telemetry, made_up
from tests.chosen_calibration import GRACE
from tests.store.samples import capture, io_sample, size_sample


def filled(url: Path, *parts: Telemetry) -> iolens.api.OpenStore:
    store = Store(url)
    for part in parts:
        for name in ("target_sizes", "target_io"):
            store.append(name, part.table(name))
    return iolens.open(str(url))


def ios_of(row: dict) -> dict[tuple[str, int], int]:
    return {(direction, size): row[size_column(direction, size)] for direction in DIRECTIONS for size in SIZE_BINS}


def brute_force(part: Telemetry) -> dict:
    """Every number of the result in plain Python, straight from DEFINITIONS."""
    ticks: dict[int, list] = defaultdict(list)
    for row in part.sizes:
        ticks[row["time"]].append(row)
    observations = []
    for time, rows in sorted(ticks.items()):
        fsu = np.mean([fsu_pct(ios_of(row), row["duration_s"], GRACE_2012) for row in rows])
        optimal = np.mean([_optimal(row) for row in rows])
        seconds = np.mean([row["duration_s"] for row in rows])
        large = sum(count for row in rows for (_, size), count in ios_of(row).items() if size >= MIB)
        small = sum(count for row in rows for (_, size), count in ios_of(row).items() if size < MIB)
        observations.append((time, fsu, optimal, seconds, large, small))
    return {"observations": observations, "seconds": sum(observation[3] for observation in observations)}


def _optimal(row: dict) -> float:
    """DEFINITIONS, U8: bytes up to 1 MiB bins as 1 MiB I/Os, larger ones as observed."""
    total = 0.0
    for (direction, size), count in ios_of(row).items():
        item = GRACE_2012.of(direction)
        bytes_ = count * size
        total += bytes_ * (item.latency_s / 2**20 + item.s_per_byte) if size <= MIB else count * item.seconds(size)
    return 100.0 * total / row["duration_s"]


@pytest.fixture(scope="module")
def part() -> Telemetry:
    return made_up(1, ticks=400, targets=5)


@pytest.fixture(scope="module")
def result(part: Telemetry, tmp_path_factory: pytest.TempPathFactory):
    return filled(tmp_path_factory.mktemp("store"), part).utilization(calibration=GRACE)


def test_two_captures_give_equation_seven(tmp_path: Path) -> None:
    """One second with 100 writes of 4 KiB and 50 reads of 1 MiB: 20.93 (SPEC U, check value)."""
    before, after = {("write", 4096): 1000}, {("write", 4096): 1100, ("read", MIB): 50}
    items = [size_sample(0, before), io_sample(0, 0, 0), size_sample(1, after), io_sample(1, 50 * MIB, 100 * 4096)]
    Store(tmp_path).ingest([capture(items, "a")], "test")
    answer = json.loads(to_json(iolens.open(str(tmp_path)).utilization("scratch", calibration="grace-2012")))
    expected = 100 * (100 * (1.04e-3 + 1.73e-9 * 4096) + 50 * (8.02e-4 + 1.23e-9 * 1048576))
    assert answer["mean_fsu_pct"] == pytest.approx(expected, rel=1e-9)
    assert answer["mean_fsu_pct"] == pytest.approx(20.93, abs=0.005)
    assert answer["per_target"] == [
        {"target": "scratch-OST0000", "mean_fsu_pct": answer["mean_fsu_pct"], "busy_time_pct": 0.0,
         "read_bytes": 50 * MIB, "write_bytes": 409600, "mean_fsu_bytes_pct": None, "mean_util_pct": None}
    ]  # fmt: skip
    assert (answer["samples"], answer["target_samples"], answer["targets"], answer["model"]) == (1, 1, 1, "histogram")
    assert answer["peak_bytes_per_s"] == 50 * MIB + 409600
    assert answer["peak_origin"] == "largest tick"


def test_everything_equals_a_brute_force(part: Telemetry, result) -> None:
    truth = brute_force(part)
    observations, seconds = truth["observations"], truth["seconds"]
    fsu = np.array([observation[1] for observation in observations])
    weight = np.array([observation[3] for observation in observations])
    assert result.samples == len(observations)
    assert result.target_samples == len(part.sizes)
    assert result.mean_fsu_pct == pytest.approx((fsu * weight).sum() / seconds, rel=1e-9)
    busy = weight[fsu > 30].sum()
    busy_if_optimal = sum(observation[3] for observation in observations if observation[2] > 30)
    assert result.busy_time_pct == pytest.approx(100 * busy / seconds, rel=1e-9)
    assert result.under_report_factor == pytest.approx(busy / busy_if_optimal, rel=1e-9)
    counts, _ = np.histogram(fsu, bins=[*np.arange(0, 202, 2), np.inf])
    assert [item.observations for item in result.histogram] == counts.tolist()
    assert len(result.histogram) == 101
    assert result.histogram[-1].fsu_to_pct is None


def test_categories_pool_the_ios_of_their_ticks(part: Telemetry, result) -> None:
    observations = brute_force(part)["observations"]
    borders = {"idle": lambda f: f < 2, "moderate": lambda f: 2 <= f <= 30, "busy": lambda f: f > 30}
    for line in result.categories:
        mine = [observation for observation in observations if borders[line.name](observation[1])]
        large, small = sum(item[4] for item in mine), sum(item[5] for item in mine)
        assert line.observations_pct == pytest.approx(100 * len(mine) / len(observations))
        if large + small:
            assert line.optimal_pct == pytest.approx(100 * large / (large + small), rel=1e-12)
            assert line.suboptimal_pct == pytest.approx(100 * small / (large + small), rel=1e-12)


def test_sizes_days_and_targets_are_exact_sums(part: Telemetry, result) -> None:
    for line in result.io_sizes:
        assert line.count == sum(row[size_column(line.direction, line.size_bytes)] for row in part.sizes)
    assert sum(day.read_bytes for day in result.daily) == sum(row["read_bytes"] for row in part.io)
    for line in result.per_target:
        rows = [row for row in part.sizes if row["target"] == line.target]
        own = [fsu_pct(ios_of(row), row["duration_s"], GRACE_2012) for row in rows]
        seconds = [row["duration_s"] for row in rows]
        assert line.mean_fsu_pct == pytest.approx(np.average(own, weights=seconds), rel=1e-9)
        busy = sum(second for second, fsu in zip(seconds, own, strict=True) if fsu > 30)
        assert line.busy_time_pct == pytest.approx(100 * busy / sum(seconds), rel=1e-9)
        assert line.write_bytes == sum(row["write_bytes"] for row in part.io if row["target"] == line.target)


def test_bandwidth_against_a_given_peak_and_the_largest_tick(part: Telemetry, tmp_path: Path) -> None:
    opened = filled(tmp_path, part)
    rates: dict[int, list] = defaultdict(list)
    for row in part.io:
        rates[row["time"]].append(((row["read_bytes"] + row["write_bytes"]) / row["duration_s"], row["duration_s"]))
    ticks = [(sum(rate for rate, _ in item), np.mean([second for _, second in item])) for item in rates.values()]
    largest = max(rate for rate, _ in ticks)
    for peak, origin in ((None, "largest tick"), (1e9, "given"), (5e7, "given")):
        answer = opened.utilization(peak=peak)
        limit = 0.3 * (peak or largest)
        above = sum(second for rate, second in ticks if rate > limit)
        expected = 100 * above / sum(second for _, second in ticks)
        assert answer.bandwidth_busy_time_pct == pytest.approx(expected, rel=1e-9)
        assert (answer.peak_origin, answer.peak_bytes_per_s) == (origin, pytest.approx(peak or largest))


@pytest.mark.parametrize("rows_for_workers", [1 << 40, 1], ids=["here", "workers"])
def test_parts_midnight_and_workers_do_not_change_the_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rows_for_workers: int
) -> None:
    """Wide intervals that end after midnight share their tick with rows of the next day's files."""
    from iolens.store.duckdb_engine import DuckDBEngine

    part = made_up(2, ticks=300, targets=4, first_tick=17280 - 150, missing=0.3)
    opened = filled(tmp_path, part)
    whole = to_json(opened.utilization())
    monkeypatch.setattr(DuckDBEngine, "rows_per_chunk", 1)
    monkeypatch.setattr("iolens.store.parts.FEWEST_ROWS", rows_for_workers)
    monkeypatch.setattr("iolens.store.parts.CORES_OF_A_DAY", 1)
    again, first = json.loads(to_json(opened.utilization())), json.loads(whole)
    assert len({day["date"] for day in first["daily"]}) == 2
    assert_same(again, first)


def assert_same(left, right, place: str = "$") -> None:
    """Equal to 1e-9 relative, key by key."""
    assert type(left) is type(right) or {type(left), type(right)} <= {int, float}, place
    if isinstance(left, dict):
        assert left.keys() == right.keys(), place
        for key in left:
            assert_same(left[key], right[key], f"{place}.{key}")
    elif isinstance(left, list):
        assert len(left) == len(right), place
        for number, (item, other) in enumerate(zip(left, right, strict=True)):
            assert_same(item, other, f"{place}[{number}]")
    elif isinstance(left, float):
        assert left == pytest.approx(right, rel=1e-9, abs=1e-12), place
    else:
        assert left == right, place


def test_a_window_is_half_open_by_the_start_of_intervals(part: Telemetry, tmp_path: Path) -> None:
    opened = filled(tmp_path, part)
    since = datetime.fromtimestamp((T0_US + 100 * TICK_US) / 1e6, UTC)
    until = datetime.fromtimestamp((T0_US + 200 * TICK_US) / 1e6, UTC)
    answer = opened.utilization(since=since, until=until)
    inside = [row for row in part.sizes if T0_US + 100 * TICK_US <= row["start"] < T0_US + 200 * TICK_US]
    assert answer.target_samples == len(inside)
    assert (answer.window_start, answer.window_end) == (since, until)


def test_a_target_that_did_not_report_is_reported_and_not_counted_as_idle(tmp_path: Path) -> None:
    both = made_up(3, ticks=50, targets=2, missing=0)
    later = made_up(4, ticks=50, targets=1, first_tick=17280, missing=0)
    opened = filled(tmp_path, both, later)
    answer = opened.utilization(since="2020-09-15", until="2020-09-16")
    assert answer.coverage.missing_targets == ["scratch-OST0001"]
    assert (answer.coverage.targets_known, answer.coverage.targets_reporting, answer.targets) == (2, 1, 1)
    alone = brute_force(later)["observations"]
    assert answer.mean_fsu_pct == pytest.approx(
        np.average([item[1] for item in alone], weights=[item[3] for item in alone])
    )


def test_an_empty_window_is_answered_with_nulls_not_zeros(part: Telemetry, tmp_path: Path) -> None:
    answer = filled(tmp_path, part).utilization(since="2030-01-01")
    assert (answer.samples, answer.mean_fsu_pct, answer.under_report_factor, answer.peak_origin) == (
        0,
        None,
        None,
        None,
    )
    assert answer.coverage.missing_targets == sorted({row["target"] for row in part.sizes})


def test_several_file_systems_must_be_distinguished(part: Telemetry, tmp_path: Path) -> None:
    opened = filled(tmp_path, part, made_up(5, ticks=10, targets=2, filesystem="scratch2"))
    with pytest.raises(UsageError, match="scratch, scratch2"):
        opened.utilization()
    assert opened.utilization("scratch2").targets == 2


def test_metadata_targets_do_not_count_as_disks(part: Telemetry, tmp_path: Path) -> None:
    mdt = [{**row, "target": "scratch-MDT0000", "target_kind": "mdt"} for row in part.sizes[:50]]
    opened = filled(tmp_path, part, Telemetry(mdt, []))
    assert opened.utilization().targets == 5


def test_of_two_sources_the_first_in_order_wins_and_the_overlap_is_reported(part: Telemetry, tmp_path: Path) -> None:
    other = Telemetry(
        [{**row, "source": "other"} for row in part.sizes], [{**row, "source": "other"} for row in part.io]
    )
    opened = filled(tmp_path, part, other)
    answer = opened.utilization()
    assert answer.target_samples == len(part.sizes)
    assert answer.coverage.overlapping_rows == len(part.sizes) + len(part.io)
    assert answer.coverage.sources == ["made-up", "other"]
    assert opened.utilization(source="other").coverage.sources == ["other"]


def test_calibrations_are_found_in_the_store_by_file_system_and_date(part: Telemetry, tmp_path: Path) -> None:
    opened = filled(tmp_path, part)
    assert "Grace" in opened.utilization().coverage.notes[0]
    for name, year, latency in (("old", 2010, 1e-3), ("new", 2019, 2e-3), ("future", 2030, 9e-3)):
        time = int(datetime(year, 1, 1, tzinfo=UTC).timestamp() * 1e6)
        opened.store.add_calibration(
            {"time": time, "valid_from": time, "name": name, "filesystem": "scratch", "write_latency_s": latency,
             "write_s_per_byte": 1e-9, "read_latency_s": latency, "read_s_per_byte": 1e-9}
        )  # fmt: skip
    assert opened.utilization().calibration.name == "new"
    chosen = opened.utilization(since="2020-09-14")
    assert (chosen.calibration.name, chosen.coverage.notes) == ("new", [])
    assert opened.utilization(calibration="old").calibration.write.latency_s == 1e-3
    with pytest.raises(UsageError, match="future, grace-2012, new, old"):
        opened.utilization(calibration="none")


@pytest.mark.parametrize("kind", ["pandas", "polars", "polars-lazy", "pyarrow", "duckdb"])
def test_an_analysis_accepts_the_frames_a_user_has(part: Telemetry, result, kind: str) -> None:
    tables = {name: part.table(name) for name in ("target_sizes", "target_io")}
    frames = {name: _as(kind, table) for name, table in tables.items()}
    answer = iolens.utilization(filesystem="scratch", **frames)
    left, right = json.loads(to_json(answer)), json.loads(to_json(result))
    for item in (left, right):
        del item["coverage"]
    assert_same(left, right)


def _as(kind: str, table):
    import duckdb
    import polars

    if kind == "pandas":
        return table.to_pandas()
    if kind.startswith("polars"):
        frame = polars.from_arrow(table)
        return frame.lazy() if kind.endswith("lazy") else frame
    return table if kind == "pyarrow" else duckdb.from_arrow(table)


def test_a_histogram_that_stands_still_while_bytes_move_is_reported(tmp_path: Path) -> None:
    part = made_up(6, ticks=20, targets=1, missing=0)
    still = [{**row, **{name: 0 for name in row if "_ios_" in name}} for row in part.sizes]
    answer = filled(tmp_path, replace(part, sizes=still)).utilization()
    assert answer.coverage.targets_without_sizes == ["scratch-OST0000"]


def test_a_frame_s_own_start_decides_its_day_and_window() -> None:
    part = made_up(7, ticks=30, targets=1, missing=0)
    sizes = [{**row, "duration_s": 3.4} for row in part.sizes]  # a clock that disagrees with the ticks
    frame = Telemetry(sizes, []).table("target_sizes")
    answer = iolens.utilization(target_sizes=frame, until=datetime.fromtimestamp(T0_US / 1e6 + 50, UTC))
    assert answer.target_samples == 10


def test_times_without_a_zone_are_utc(part: Telemetry, tmp_path: Path) -> None:
    opened = filled(tmp_path, part)
    assert (
        opened.utilization(since=datetime(2020, 9, 14, 0, 5)).samples
        == opened.utilization(since="2020-09-14T00:05").samples
    )


def test_data_older_than_every_calibration_are_reported(part: Telemetry, tmp_path: Path) -> None:
    opened = filled(tmp_path, part)
    later = int(datetime(2030, 1, 1, tzinfo=UTC).timestamp() * 1e6)
    opened.store.add_calibration(
        {"time": later, "valid_from": later, "name": "later", "filesystem": "scratch", "write_latency_s": 1e-3,
         "write_s_per_byte": 1e-9, "read_latency_s": 1e-3, "read_s_per_byte": 1e-9}
    )  # fmt: skip
    answer = opened.utilization()
    assert answer.calibration.name == "later"
    assert "older than every calibration" in answer.coverage.notes[0]


def test_the_envelope_is_that_of_the_ticks(tmp_path: Path) -> None:
    part = made_up(seed=11, targets=2, ticks=1500)
    result = filled(tmp_path / "s", part).utilization("scratch")
    assert result.envelope is not None
    assert result.envelope.fsu_pct is not None
    starts = [round(start.timestamp() * 1e6) for start in result.envelope.bucket_starts]
    observations = brute_force(part)["observations"]
    for start, median, largest in zip(starts, result.envelope.fsu_pct.median, result.envelope.fsu_pct.max, strict=True):
        mine = [fsu for time, fsu, *_ in observations if start < time <= start + result.envelope.bucket_s * 1e6]
        assert (median, largest) == pytest.approx((np.median(mine), max(mine)), nan_ok=True)
