"""Bytes written by day: coverage, kinds of targets, capacity, sizes of writes."""

from __future__ import annotations

from typing import Any

import pytest

from iolens.analyses.demand import daily_writes, system_capacity, system_usage, write_sizes
from iolens.store.frames import FrameSelection
from tests.analyses.capacity_rows import readings
from tests.analyses.capacity_rows import table_of as capacity_table
from tests.analyses.telemetry import T0_US, made_up, table_of

DAY_US = 86_400_000_000
HOUR_US = DAY_US // 24


def hours(
    day: int, count: int, written: int | None, target: str = "OST0", kind: str | None = "ost"
) -> list[dict[str, Any]]:
    """Hourly rows from the beginning of a day."""
    starts = [T0_US + day * DAY_US + hour * HOUR_US for hour in range(count)]
    return [
        {
            "time": start + HOUR_US, "start": start, "duration_s": 3600.0, "date": start // DAY_US, "source": "made-up",
            "filesystem": "scratch", "target": target, "target_kind": kind, "write_bytes": written,
        }
        for start in starts
    ]  # fmt: skip


def selection(*parts: list[dict[str, Any]]) -> FrameSelection:
    return FrameSelection({"target_io": table_of("target_io", [row for part in parts for row in part])}, "scratch")


def test_targets_add_up_and_a_missing_hour_shows() -> None:
    result = daily_writes(
        selection(hours(0, 24, 10), hours(0, 24, 5, "OST1"), hours(1, 24, 1), hours(1, 12, 2, "OST1"))
    )
    assert [(str(day.date), day.write_bytes, day.covered_pct) for day in result.days] == [
        ("2020-09-14", 360, 100),
        ("2020-09-15", 48, 75),
    ]
    assert result.kinds == ["ost"]
    assert "2 days with reports, 2020-09-14 to 2020-09-15" in result.origin


def test_a_silent_day_of_one_target_is_missing_and_a_silent_day_of_all_is_not_there() -> None:
    result = daily_writes(
        selection(*(hours(day, 24, 1) for day in (0, 1, 3)), hours(0, 24, 1, "b"), hours(3, 24, 1, "b"))
    )
    assert [day.covered_pct for day in result.days] == [100, 50, 100]
    assert [day.date.day for day in result.days] == [14, 15, 17]


def test_a_target_is_not_missed_before_it_was_added() -> None:
    result = daily_writes(selection(hours(0, 24, 1), hours(1, 24, 1), hours(1, 24, 1, "new")))
    assert [day.covered_pct for day in result.days] == [100, 100]


def test_metadata_targets_and_sums_are_never_added_to_data_targets() -> None:
    result = daily_writes(
        selection(hours(0, 24, 10), hours(0, 24, 1000, "MDT0", "mdt"), hours(0, 24, 10, "scratch", "filesystem"))
    )
    assert [day.write_bytes for day in result.days] == [240]


def test_sums_serve_on_days_without_targets() -> None:
    result = daily_writes(selection(hours(0, 24, 7, "scratch", "filesystem"), hours(1, 24, 10)))
    assert [day.write_bytes for day in result.days] == [168, 240]
    assert result.kinds == ["ost", "filesystem"]


def test_unknown_bytes_are_not_zero() -> None:
    result = daily_writes(selection(hours(0, 24, None), hours(1, 24, 0)))
    assert [(day.date.day, day.write_bytes) for day in result.days] == [(15, 0)]
    assert daily_writes(selection(hours(0, 24, None))).days == []


def test_capacity_is_that_of_the_last_complete_reading() -> None:
    def reading(day: int, target: str, total: int | None) -> dict[str, Any]:
        time = T0_US + day * DAY_US
        common = {"filesystem": "scratch", "source": "lfs-df", "target_kind": "ost", "used_bytes": 1}
        return {"time": time, "date": time // DAY_US, "target": target, "total_bytes": total, **common}

    rows = [reading(day, target, 100) for day in range(9) for target in "ab"]
    rows += [reading(9, "a", 500)]  # the other target is silent for more than a day
    rows += [reading(12, target, 150) for target in "ab"]
    result = system_capacity(FrameSelection({"target_capacity": table_of("target_capacity", rows)}, "scratch"))
    assert result is not None
    assert result.bytes == 300
    assert "2020-09-26" in result.origin
    assert system_capacity(FrameSelection({}, "scratch")) is None


def test_write_sizes_are_those_of_the_histogram() -> None:
    telemetry = made_up(3, 40, 2)
    result = write_sizes(FrameSelection({"target_sizes": telemetry.table("target_sizes")}, "scratch"))
    assert result == {
        size: sum(row[f"write_ios_{size}"] for row in telemetry.sizes) for size in (4096, 65536, 1 << 20, 1 << 22)
    }
    assert write_sizes(FrameSelection({}, "scratch")) == {}


@pytest.mark.parametrize("kind", [None, "device"])
def test_targets_of_unknown_or_other_kind_count_where_there_are_no_others(kind: str | None) -> None:
    assert [day.write_bytes for day in daily_writes(selection(hours(0, 24, 2, "x", kind))).days] == [48]


def test_usage_is_that_of_the_last_complete_reading() -> None:
    """Two targets for three days; on the last one a target is silent."""
    silent = [*readings([0, 1], [500, 700]), *readings([2], [900])[:1]]
    result = system_usage(FrameSelection({"target_capacity": capacity_table(silent)}, "scratch"))
    assert result is not None
    assert (result.used_bytes, result.total_bytes, f"{result.time:%Y-%m-%d}") == (700, 2_000_000, "2020-09-15")
    assert system_usage(FrameSelection({"target_capacity": capacity_table([])}, "scratch")) is None
