"""Write amplification from the last reading of every drive."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from iolens.analyses.drive_waf import drive_wafs
from iolens.store.selection import FrameSelection
from tests.analyses.telemetry import T0_US, table_of

DAY_US = 86_400_000_000


def drive(serial: str, day: int, host: int | None, nand: int | None, capacity: int | None = 1600) -> dict[str, Any]:
    return {
        "time": T0_US + day * DAY_US, "source": "isdct", "filesystem": "burst", "serial": serial,
        "host_write_bytes": host, "nand_write_bytes": nand, "capacity_bytes": capacity,
    }  # fmt: skip


ROWS = [
    drive("a", 0, 100, 900),
    drive("a", 5, 200, 500),
    drive("b", 5, 1000, 1500),
    drive("idle", 5, 0, 77),
    drive("hidden", 4, 300, None, 3200),
]


def selection(**settings: Any) -> FrameSelection:
    return FrameSelection({"drives": table_of("drives", ROWS)}, "burst", **settings)


def test_the_last_reading_of_each_drive_counts() -> None:
    found = drive_wafs(selection())
    assert found is not None
    assert found.wafs == [2.5, 1.5]
    assert found.drives == 4
    assert found.fleet == pytest.approx(2000 / 1200)
    assert found.median_capacity_bytes == 1600
    assert found.origin == "burst: 2 of 4 drives, last read on 2020-09-19 (isdct)"


def test_the_window_ends_before_later_readings() -> None:
    found = drive_wafs(selection(window=(None, datetime(2020, 9, 16, tzinfo=UTC))))
    assert found is not None
    assert found.wafs == [9.0]


def test_a_file_system_without_drives_has_none() -> None:
    assert drive_wafs(FrameSelection({}, "scratch")) is None
