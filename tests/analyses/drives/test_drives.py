"""Write amplification, drive writes per day and years left; outliers and their reason; published values."""

from __future__ import annotations

import csv
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import iolens
from iolens.analyses.drives.analysis import Drives, drives, spread
from iolens.errors import UsageError
from iolens.records import Capture, Row
from iolens.sources import ReadOptions
from iolens.store.frames import FrameSelection
from iolens.store.store import Store
from iolens.views.render.json_text import to_plain
from tests.analyses.drive_rows import drive, made_up_drives, selection
from tests.analyses.telemetry import T0_US, table_of
from tests.analyses.utilization.test_utilization import assert_same
from tests.sources.stored import ingest


def found_in(rows: list[dict[str, Any]], **options: Any) -> Drives:
    return drives(selection(rows), **options)


def fleet(*wafs: float, host: int = 60_000) -> list[dict[str, Any]]:
    return [drive(f"d{number:02}", 0, host, round(host * waf)) for number, waf in enumerate(wafs)]


def test_keys_of_the_interface() -> None:
    plain = to_plain(found_in(fleet(1.0, 2.0, 4.0)))
    assert plain["drives"] == 3
    assert plain["fleet_waf"] == pytest.approx(7 / 3)
    for name in ("waf", "dwpd", "wear_pct"):
        assert list(plain[name])[:4] == ["min", "median", "p95", "max"]
    assert plain["waf"]["median"] == 2.0
    assert plain["wear_pct"]["median"] is None


def test_percentiles_are_interpolated() -> None:
    result = spread([float(value) for value in range(11)])
    assert (result.min, result.median, result.p95, result.max, result.drives) == (0, 5, 9.5, 10, 11)
    assert spread([None, 3.0]).drives == 1
    assert spread([]).median is None


def test_lifetime_numbers_of_the_fleet() -> None:
    rows = [
        drive("a", 0, 100_000, 300_000, host_read_bytes=7, wear_pct=12.0, spare_pct=90.0, media_errors=2),
        drive("b", 0, 50_000, None, capacity_bytes=4000, power_on_hours=24.0 * 100, wear_pct=2.0),
    ]
    result = found_in(rows)
    assert (result.fleet_waf, result.waf.drives) == (3.0, 1)
    assert [result.dwpd.min, result.dwpd.max] == [pytest.approx(0.1), pytest.approx(0.125)]
    assert result.fleet_dwpd == pytest.approx(150_000 / (1000 * 1000 + 4000 * 100))
    assert (result.capacity_bytes, result.host_write_bytes, result.nand_write_bytes) == (5000, 150_000, 300_000)
    assert (result.host_read_bytes, result.media_errors, result.spare_pct.min) == (7, 2, 90.0)
    assert result.coverage.without_nand_writes == 1
    assert result.window is None
    assert any("media errors" in note for note in result.notes)


def test_a_high_waf_is_explained_by_low_use() -> None:
    usual = [drive(f"d{number}", 0, 60_000 + number, 150_000 + 400 * number) for number in range(20)]
    idle, busy = drive("idle", 0, 3000, 30_000), drive("small writes", 0, 90_000, 900_000)
    unsized = drive("unsized", 0, 3000, 30_000, capacity_bytes=None)
    result = found_in([*usual, idle, busy, unsized])
    reasons = {life.serial: life.outlier_reason for life in result.per_drive if life.outlier}
    assert reasons == {
        "idle": "low use", "small writes": "not explained by low use", "unsized": "use not known",
    }  # fmt: skip
    outliers = result.outliers
    assert (outliers.drives, outliers.low_use, outliers.not_explained, outliers.use_not_known) == (3, 1, 1, 1)
    assert outliers.drive_writes_below == pytest.approx(30.0, rel=0.01)
    assert outliers.median_drive_writes == pytest.approx(46.5)
    assert outliers.others_median_drive_writes == pytest.approx(60.0, rel=0.01)


def test_the_limit_is_tukeys_outer_fence_unless_that_is_close() -> None:
    wafs = [2.0, 2.1, 2.2, 2.3, 2.4, 2.5, 2.6, 2.7, 9.0]
    low, high = np.percentile(wafs, [25, 75])
    assert found_in(fleet(*wafs)).outliers.waf_above == pytest.approx(high + 3 * (high - low), rel=1e-4)
    same = found_in(fleet(*[2.0] * 9, 2.9, 3.1))
    assert same.outliers.waf_above == pytest.approx(3.0)
    assert [life.waf for life in same.per_drive if life.outlier] == [pytest.approx(3.1)]


def test_few_drives_have_no_outliers_unless_a_limit_is_given() -> None:
    few = found_in(fleet(2.0, 2.0, 50.0))
    assert (few.outliers.waf_above, few.outliers.drives) == (None, 0)
    assert found_in(fleet(2.0, 2.0, 50.0), waf_limit=5.0).outliers.drives == 1


def test_the_window_stands_beside_the_lifetime() -> None:
    rows = [drive("a", 0, 100_000, 200_000, wear_pct=10.0), drive("a", 100, 150_000, 450_000, wear_pct=12.0)]
    rows += [drive("b", 0, 10_000, 20_000), drive("c", 100, 10_000, 20_000)]
    result = found_in(rows)
    (life,) = [life for life in result.per_drive if life.window is not None]
    assert life.window is not None
    assert (life.window.days, life.window.waf, life.window.dwpd, life.window.wear_pct) == (100, 5.0, 0.5, 2.0)
    assert (life.waf, life.dwpd) == (3.0, pytest.approx(150 / 1100))
    assert result.window is not None
    assert (result.window.drives, result.window.fleet_waf, result.window.fleet_dwpd) == (1, 5.0, 0.5)
    assert result.coverage.read_once == 2
    assert result.coverage.not_read_lately == ["b"]


def test_years_left_by_wear_and_by_rating() -> None:
    rows = [
        drive("a", 0, 0, 0, wear_pct=10.0, power_on_hours=24.0 * 365),
        drive("a", 365, 365_000, 0, wear_pct=20.0, power_on_hours=24.0 * 730),
    ]
    (life,) = found_in(rows, rated_dwpd=1.0, warranty_years=2.0).per_drive
    assert life.rated_used_pct == pytest.approx(50.0)
    assert life.years_left_by_wear == pytest.approx(8.0)  # 20 % in two years of power
    assert life.window_years_left_by_wear == pytest.approx(8.0)  # 10 % in a year
    assert life.years_left_by_rating == pytest.approx(2.0)  # half a write a day
    assert life.window_years_left_by_rating == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("more", "by_wear", "by_rating"),
    [
        ({"wear_pct": 0.0}, None, 3.9),
        ({"wear_pct": 130.0}, 0.0, 3.9),
        ({"wear_pct": None, "power_on_hours": None}, None, None),
        ({"host_write_bytes": 0}, None, None),
        ({"host_write_bytes": 10**7}, None, 0.0),
    ],
)
def test_years_left_where_nothing_wears(more: dict[str, Any], by_wear: float | None, by_rating: float | None) -> None:
    row = drive("a", 0, 365_000, None, **{"power_on_hours": 24.0 * 365, **more})
    (life,) = found_in([row], rated_dwpd=0.98, warranty_years=5.0).per_drive
    assert life.years_left_by_wear == by_wear
    assert life.years_left_by_rating == (by_rating and pytest.approx(by_rating))
    assert found_in([row]).per_drive[0].years_left_by_rating is None


def test_groups_show_hot_spots_first() -> None:
    rows = [
        drive(
            f"{host}{number}", day, 1000 * (1 + number) + day * rate, 9000, host=host, model="m", wear_pct=2.0 + number
        )
        for host, rate in (("cool", 1), ("hot", 50))
        for number in range(2)
        for day in (0, 10)
    ]
    result = found_in(rows, group_by="host")
    assert [(group.group, group.drives, group.wear_max_pct) for group in result.groups] == [
        ("hot", 2, 3.0),
        ("cool", 2, 3.0),
    ]
    assert result.groups[0].window_dwpd == pytest.approx(0.05)
    assert result.groups[0].waf == pytest.approx(18_000 / 4000)
    assert [group.group for group in found_in(rows).groups] == ["m"]
    assert [group.group for group in found_in(fleet(2.0)).groups] == [None]


def test_counters_that_fell_are_named() -> None:
    result = found_in([drive("a", 0, 9, 9), drive("a", 1, 3, 3), drive("b", 0, 1, 1), drive("b", 1, 2, 2)])
    assert result.coverage.counters_fell == ["a"]
    assert result.per_drive[0].counters_fell == 1
    assert any(note.startswith("1 drive had a counter that fell") for note in result.notes)


def test_nothing_is_known_of_nothing() -> None:
    result = drives(FrameSelection({}, "scratch"))
    assert (result.drives, result.samples, result.fleet_waf, result.waf.median, result.over_time) == (
        0,
        0,
        None,
        None,
        [],
    )
    assert (result.window_start, result.capacity_bytes, result.notes) == (None, None, [])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"rated_dwpd": 0.0}, "a rated DWPD is above 0, not 0"),
        ({"warranty_years": float("inf")}, "a warranty is above 0, not inf"),
        ({"waf_limit": float("nan")}, "a limit of WAF is above 0"),
        ({"group_by": "rack"}, "there are: model, host"),
    ],
)
def test_what_makes_no_sense_is_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        found_in(fleet(1.0), **options)


def test_the_same_from_a_store_and_from_a_frame(tmp_path: Path) -> None:
    rows = made_up_drives(2, 20, 30)
    store = Store(tmp_path)
    store.append("drives", table_of("drives", rows))
    store.append("target_capacity", table_of("target_capacity", [{
        "time": T0_US, "date": T0_US // 86_400_000_000, "filesystem": "burst", "source": "x", "target": "t",
    }]))  # fmt: skip
    with iolens.open(str(tmp_path)) as opened:
        here = to_plain(opened.drives(since="2020-09-18", until="2020-10-01"))
        assert to_plain(opened.drives(source="smartctl"))["coverage"]["sources"] == ["smartctl"]
    window = (datetime(2020, 9, 18, tzinfo=UTC), datetime(2020, 10, 1, tzinfo=UTC))
    assert_same(here, to_plain(drives(selection(rows, window=window))))
    assert here["samples"] > 100
    assert here["coverage"]["overlapping_rows"] > 10


def test_the_configured_order_of_sources_counts(tmp_path: Path) -> None:
    rows = [Row("drives", row) for row in made_up_drives(3, 4, 3) if row.pop("source") == "isdct"]
    for source in ("isdct", "smartctl"):
        Store(tmp_path).ingest([Capture(source, f"made-up/{source}", lambda: iter(rows))], source)
    settings = tmp_path / "iolens.toml"
    settings.write_text('[filesystems.burst]\nsources = ["smartctl", "isdct"]\n')
    with iolens.open(str(tmp_path), config=str(settings)) as opened:
        assert opened.drives().coverage.sources == ["smartctl"]
    with iolens.open(str(tmp_path)) as opened:
        assert opened.drives().coverage.sources == ["isdct"]


# Published values.


@pytest.fixture(scope="module")
def burst_buffer(tmp_path_factory: pytest.TempPathFactory, shared_data: Path) -> Path:
    """Three dumps of the burst buffer of the design study."""
    folder = tmp_path_factory.mktemp("store")
    files = [
        shared_data / "isdct" / "cori-bb-daily" / f"Intel_DCT_{day}.csv.gz" for day in (20190306, 20190401, 20190501)
    ]
    ingest(folder, "isdct", files, ReadOptions(filesystem="coribb"))
    return folder


def test_published_write_amplification(burst_buffer: Path) -> None:
    with iolens.open(str(burst_buffer)) as opened:
        result = opened.drives(since="2019-04-01", until="2019-04-02")
    assert result.drives == 1152
    waf = result.waf
    assert (round(waf.min, 2), round(waf.median, 2), round(waf.p95, 2)) == (1.35, 2.68, 3.17)
    assert waf.max == pytest.approx(10.15, abs=0.01)
    assert result.window is None


def test_published_outliers_are_little_used(burst_buffer: Path) -> None:
    with iolens.open(str(burst_buffer)) as opened:
        result = opened.drives(until="2019-04-02")
    assert result.outliers.waf_above == pytest.approx(5.39, abs=0.01)  # the paper speaks of more than 5
    assert (result.outliers.drives, result.outliers.low_use) == (24, 24)
    assert len({life.host for life in result.per_drive if life.outlier}) == 6  # a partition for development
    assert result.outliers.median_drive_writes == pytest.approx(3.55, abs=0.01)
    assert result.outliers.others_median_drive_writes == pytest.approx(66.9, abs=0.1)


def test_a_month_of_the_burst_buffer_equals_the_difference_of_two_dumps(burst_buffer: Path) -> None:
    with iolens.open(str(burst_buffer)) as opened:
        first = {life.serial: life for life in opened.drives(until="2019-04-02").per_drive}
        both = opened.drives(since="2019-04-01")
        last = opened.drives(since="2019-05-01")
    assert (both.drives, both.coverage.counters_fell) == (1152, [])
    for life in both.per_drive:
        assert life.window is not None
        written = life.host_write_bytes - first[life.serial].host_write_bytes
        assert life.window.host_write_bytes == written
        assert life.window.dwpd == pytest.approx(written / life.capacity_bytes / life.window.days)
    assert both.waf == last.waf


def test_published_drive_writes_per_day(shared_data: Path) -> None:
    with (shared_data / "nersc-fs-design" / "coribb_dwpd_2018-04-25.csv").open(newline="") as stream:
        lines = list(csv.DictReader(stream))
    rows = [
        drive(
            line["serial_number"], 0, int(line["data_units_written_bytes"]), None,
            capacity_bytes=int(line["physical_size"]), power_on_hours=float(line["power_on_hours"]),
        )
        for line in lines
    ]  # fmt: skip
    result = {life.serial: life.dwpd for life in found_in(rows).per_drive}
    assert len(result) == len(lines) > 1000
    assert result == {line["serial_number"]: pytest.approx(float(line["dwpd"]), rel=1e-9) for line in lines}
