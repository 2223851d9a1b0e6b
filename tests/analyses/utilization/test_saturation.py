"""Steady and saturated are two things (DEFINITIONS, U10): the ceiling decides, and the evidence stands beside it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import iolens
from iolens.analyses.calibration.applied import AppliedCalibration
from iolens.analyses.utilization.saturation import NOT_IN_STRETCH, NOT_STORED, Saturation
from iolens.api import OpenStore
from iolens.models.transaction_time import GRACE_2012, FsuCeiling, ceiling_of, mean_ceiling
from iolens.store.store import Store
from iolens.units import from_epoch_us
from tests.analyses.telemetry import T0_US, TICK_US, table_of
from tests.chosen_calibration import choose_grace

MINUTE_US = 60_000_000
TICKS = 180  # fifteen minutes


def loads(*levels: float) -> list[dict[str, Any]]:
    """A quarter of an hour at each FSU, by writes of 4 KiB on one OST."""
    cost = GRACE_2012.write.seconds(4096)
    rows = []
    for place, level in enumerate(levels):
        for tick in range(place * TICKS, (place + 1) * TICKS):
            start = T0_US + tick * TICK_US
            rows.append({
                "time": start + TICK_US, "start": start, "duration_s": 5.0, "date": start // 86_400_000_000,
                "filesystem": "scratch", "source": "made-up", "target": "scratch-OST0000", "target_kind": "ost",
                "write_ios_4096": round(level / 100 * 5.0 / cost),
            })  # fmt: skip
    return rows


def histograms(*minutes: tuple[int, str, dict[int, int]]) -> list[dict[str, Any]]:
    """Rows of `target_histograms`: the minute, the histogram and its bins."""
    return [
        {
            "time": T0_US + (minute + 1) * MINUTE_US, "start": T0_US + minute * MINUTE_US, "duration_s": 60.0,
            "date": T0_US // 86_400_000_000, "filesystem": "scratch", "source": "made-up",
            "target": "scratch-OST0000", "target_kind": "ost", "histogram": name, "direction": "write", "bin": bin_,
            "count": count,
        }
        for minute, name, bins in minutes
        for bin_, count in bins.items()
    ]  # fmt: skip


def filled(folder: Path, *levels: float, config: str = "", evidence: list[dict[str, Any]] = ()) -> OpenStore:
    Store(folder / "store").append("target_sizes", table_of("target_sizes", loads(*levels)))
    choose_grace(folder / "store")
    if evidence:
        Store(folder / "store").append("target_histograms", table_of("target_histograms", evidence))
    (folder / "iolens.toml").write_text(config)
    return iolens.open(str(folder / "store"), config=str(folder / "iolens.toml"))


def test_a_disk_that_sits_steadily_at_32_to_60_is_not_saturated(tmp_path: Path) -> None:
    """53 such stretches were called "saturated, no more to give"."""
    result = filled(tmp_path, 0, 32, 0, 45, 0, 60).utilization().plateaus
    assert [round(item.median_fsu_pct) for item in result] == [32, 45, 60]
    assert [item.saturated for item in result] == [False] * 3
    assert {(item.ceiling_pct, item.ceiling_origin) for item in result} == {(100.0, "default")}


def test_a_steady_load_at_nine_tenths_of_the_ceiling_is(tmp_path: Path) -> None:
    result = filled(tmp_path, 0, 88, 0, 92, 0, 130).utilization().plateaus
    assert [item.saturated for item in result] == [False, True, True]
    assert [item.duration_s for item in result] == pytest.approx([900] * 3, abs=60)
    assert result[0].duration_s == (result[0].end - result[0].start).total_seconds()


def test_a_configured_ceiling_and_share_decide(tmp_path: Path) -> None:
    """The paper's disks were full at 70."""
    config = "[filesystems.scratch]\nceiling_fsu_pct = 70\n"
    result = filled(tmp_path, 0, 60, 0, 66, config=config).utilization().plateaus
    assert [(item.saturated, item.ceiling_pct, item.ceiling_origin) for item in result] == [
        (False, 70, "configured"),
        (True, 70, "configured"),
    ]
    (tmp_path / "iolens.toml").write_text(f"{config}[thresholds]\nsaturated_share = 0.8\n")
    again = iolens.open(str(tmp_path / "store"), config=str(tmp_path / "iolens.toml")).utilization().plateaus
    assert [item.saturated for item in again] == [True, True]


def test_a_measured_ceiling_wins_over_a_configured_one(tmp_path: Path) -> None:
    opened = filled(tmp_path, 0, 60, config="[filesystems.scratch]\nceiling_fsu_pct = 90\n")
    opened.store.add_calibration(
        {"time": T0_US, "valid_from": 0, "name": "swept", "filesystem": "scratch", "write_latency_s": 1.04e-3,
         "write_s_per_byte": 1.73e-9, "read_latency_s": 8.02e-4, "read_s_per_byte": 1.23e-9, "ceiling_fsu_pct": 65.0}
    )  # fmt: skip
    (result,) = opened.utilization().plateaus
    assert (result.saturated, result.ceiling_pct, result.ceiling_origin) == (True, 65.0, "calibration swept")
    (by_name,) = opened.utilization(calibration="grace-2012").plateaus
    assert (by_name.saturated, by_name.ceiling_origin) == (False, "configured")


def test_i_os_in_flight_and_latency_of_the_stretch_stand_beside_the_windows(tmp_path: Path) -> None:
    """Half an hour idle, a quarter of an hour full: 28 in flight against 2, 64 ms against 4."""
    idle = [(m, name, bins) for m in range(30) for name, bins in IDLE]
    full = [(m, name, bins) for m in range(31, 44) for name, bins in FULL]
    result = filled(tmp_path, 0, 0, 95, evidence=histograms(*idle, *full)).utilization().plateaus
    assert [(item.in_flight_p50, item.window_in_flight_p50) for item in result] == [(28, 2)]
    assert [(item.io_time_p50_ms, item.window_io_time_p50_ms) for item in result] == [(64, 4)]
    assert result[0].evidence_missing is None


def test_rows_in_powers_of_two_are_evidence_too(tmp_path: Path) -> None:
    """Lustre 2.17.51 on: 17 to 32 in flight; before an upgrade in the same window rows were linear."""
    idle = [(m, name, bins) for m in range(30) for name, bins in IDLE]
    full = [(m, "disk_ios_in_flight_pow2", {16: 45, 32: 55}) for m in range(31, 44)]
    (result,) = filled(tmp_path, 0, 0, 95, evidence=histograms(*idle, *full)).utilization().plateaus
    assert (result.in_flight_p50, result.window_in_flight_p50) == (32, 2)
    (alone,) = filled(tmp_path / "alone", 0, 0, 95, evidence=histograms(*full)).utilization().plateaus
    assert (alone.in_flight_p50, alone.window_in_flight_p50) == (32, 32)


IDLE = (("disk_ios_in_flight", {1: 40, 2: 60}), ("io_time_ms", {2: 30, 4: 70}), ("pages_per_bulk", {256: 9000}))
FULL = (("disk_ios_in_flight", {27: 45, 28: 55}), ("io_time_ms", {32: 45, 64: 55}))


def test_evidence_that_is_not_stored_is_null_with_the_reason(tmp_path: Path) -> None:
    (nothing,) = filled(tmp_path, 0, 95).utilization().plateaus
    assert (nothing.in_flight_p50, nothing.io_time_p50_ms, nothing.evidence_missing) == (None, None, NOT_STORED)
    early = histograms((1, "disk_ios_in_flight", {1: 5}))
    Store(tmp_path / "store").append("target_histograms", table_of("target_histograms", early))
    (elsewhere,) = iolens.open(str(tmp_path / "store")).utilization().plateaus
    assert (elsewhere.in_flight_p50, elsewhere.window_in_flight_p50) == (None, 1)
    assert elsewhere.evidence_missing == NOT_IN_STRETCH


def test_ticks_that_are_too_long_are_not_looked_at() -> None:
    """Null, not an empty list: hourly means do not tell whether FSU was steady."""
    rows = [
        {**row, "start": T0_US + n * 3_600_000_000, "time": T0_US + (n + 1) * 3_600_000_000, "duration_s": 3600.0}
        for n, row in enumerate(loads(95)[:20])
    ]
    assert iolens.utilization(target_sizes=table_of("target_sizes", rows)).plateaus is None
    assert iolens.utilization(target_sizes=table_of("target_sizes", loads(5))).plateaus == []


@pytest.mark.parametrize(
    ("measured", "configured", "is_estimated", "ceiling"),
    [
        (72.5, 80.0, False, FsuCeiling(72.5, "calibration swept")),
        (72.5, 80.0, True, FsuCeiling(80.0, "configured")),
        (72.5, None, True, FsuCeiling(72.5, "telemetry swept")),
        (None, 80.0, False, FsuCeiling(80.0, "configured")),
        (None, None, True, FsuCeiling(100.0, "default")),
    ],
)
def test_the_order_of_ceilings(
    measured: float | None, configured: float | None, is_estimated: bool, ceiling: FsuCeiling
) -> None:
    assert ceiling_of(measured, "swept", configured, is_estimated) == ceiling


def test_the_ceiling_of_an_estimate_is_said_to_be_of_telemetry(tmp_path: Path) -> None:
    opened = filled(tmp_path, 0, 60)
    opened.store.add_calibration(
        {"time": T0_US, "valid_from": 0, "name": "seen", "filesystem": "scratch", "write_latency_s": 1.04e-3,
         "write_s_per_byte": 1.73e-9, "read_latency_s": 8.02e-4, "read_s_per_byte": 1.23e-9, "ceiling_fsu_pct": 65.0,
         "state": "estimated"}
    )  # fmt: skip
    (result,) = opened.utilization(calibration="seen").plateaus
    assert (result.saturated, result.ceiling_pct, result.ceiling_origin) == (True, 65.0, "telemetry seen")


def test_ceilings_of_target_classes_are_averaged_over_targets_as_fsu_is() -> None:
    """Two flash targets of ten are full at 60, the disks of an older date at 90 and of a newer at 80."""
    applied = [
        AppliedCalibration("flash", ["a", "b"], None, None, GRACE_2012, 60.0),
        AppliedCalibration(None, None, from_epoch_us(T0_US), None, GRACE_2012, 80.0),
        AppliedCalibration(None, None, None, from_epoch_us(T0_US), GRACE_2012, 90.0),
    ]
    saturation = Saturation()
    assert saturation.ceiling_at(applied, T0_US, 10).pct == pytest.approx((2 * 60 + 8 * 80) / 10)
    assert saturation.ceiling_at(applied, T0_US - 1, 10).pct == pytest.approx((2 * 60 + 8 * 90) / 10)
    assert saturation.ceiling_at(applied[:1] + applied[2:], T0_US, 2).pct == 60
    assert saturation.ceiling_at(applied[1:], T0_US, 0).pct == 80
    assert mean_ceiling([]) == FsuCeiling(100.0, "default")
