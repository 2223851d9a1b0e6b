"""Days (DEFINITIONS): one with less than 95 % of its samples is listed, and left out of means and medians."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import iolens
from iolens.analyses.demand import daily_writes
from iolens.analyses.intervals.buckets import COMPLETE_PCT, covered_pct, is_complete
from iolens.analyses.metadata import metadata
from iolens.store.frames import FrameSelection
from tests.analyses.telemetry import T0_US, table_of

DAY_US = 86_400_000_000
STEP_US = DAY_US // 96  # a quarter of an hour
GB = 10**9


def quarters(day: int, count: int, first: int = 0, target: str = "OST0", **values: Any) -> list[dict[str, Any]]:
    """Quarter-hourly rows of one target on one day."""
    moved = {"read_bytes": GB, "write_bytes": 2 * GB, "target_kind": "ost", **values}
    starts = [T0_US + day * DAY_US + (first + n) * STEP_US for n in range(count)]
    return [
        {
            "time": start + STEP_US, "start": start, "duration_s": 900.0, "date": start // DAY_US, "source": "made-up",
            "filesystem": "scratch", "target": target, **moved,
        }
        for start in starts
    ]  # fmt: skip


def utilization(*parts: list[dict[str, Any]]):
    return iolens.utilization(target_io=table_of("target_io", [row for part in parts for row in part]))


def test_five_minutes_of_a_third_day_do_not_lower_the_mean_of_two() -> None:
    """The demo's: 29 and 25.5 TB on two days and 29 GB in five minutes were 18.2 TB a day on average."""
    result = utilization(quarters(0, 96), quarters(1, 96), quarters(2, 1))
    assert [(day.covered_pct, day.complete) for day in result.daily] == [
        (100, True),
        (100, True),
        (pytest.approx(100 / 96), False),
    ]
    assert [day.read_bytes for day in result.daily] == [96 * GB, 96 * GB, GB]
    of = result.daily_summary
    assert (of.days, of.days_left_out) == (2, 1)
    assert (of.mean_read_bytes, of.mean_write_bytes) == (96 * GB, 192 * GB)
    assert (of.median_read_bytes, of.median_write_bytes) == (96 * GB, 192 * GB)


def test_without_a_complete_day_there_is_no_mean() -> None:
    of = utilization(quarters(0, 40)).daily_summary
    assert (of.days, of.days_left_out, of.mean_read_bytes, of.median_write_bytes) == (0, 1, None, None)


@pytest.mark.parametrize(("rows", "complete"), [(91, False), (92, True), (96, True)])  # 94.8 %, 95.8 %
def test_the_limit_is_95_per_cent(rows: int, complete: bool) -> None:
    (day,) = utilization(quarters(0, rows)).daily
    assert day.covered_pct == pytest.approx(100 * rows / 96)
    assert day.complete is complete
    assert is_complete(COMPLETE_PCT)


def test_a_target_that_is_silent_for_a_day_makes_it_incomplete_and_a_new_one_does_not() -> None:
    result = utilization(
        *(quarters(day, 96) for day in range(4)), quarters(1, 96, target="OST1"), quarters(3, 96, target="OST1")
    )
    assert [day.covered_pct for day in result.daily] == [100, 100, 50, 100]
    assert result.daily_summary.days == 3


def test_a_long_interval_is_one_sample_however_much_it_moved() -> None:
    """Counters stood for six hours: the next row tells what moved, not when; the day lacks a quarter of its samples."""
    gap = quarters(0, 1, first=24)
    gap[0] |= {"start": T0_US, "duration_s": 25 * 900.0, "read_bytes": 25 * GB}
    (day,) = utilization(gap, quarters(0, 71, first=25)).daily
    assert day.read_bytes == 96 * GB
    assert day.covered_pct == pytest.approx(100 * 72 / 96)
    assert not day.complete


def test_the_length_of_a_sample_is_that_of_the_days_median_row() -> None:
    """Minutes on one day, quarters of an hour on the next: both are complete."""
    minutes = [
        {**row, "time": row["start"] + (n + 1) * 60_000_000, "start": row["start"] + n * 60_000_000, "duration_s": 60.0}
        for row in quarters(0, 96)
        for n in range(15)
    ]
    assert [day.covered_pct for day in utilization(minutes, quarters(1, 96)).daily] == [100, 100]


def test_daily_writes_agree() -> None:
    rows = [*quarters(0, 96), *quarters(1, 70), *quarters(1, 96, target="OST1")]
    selection = FrameSelection({"target_io": table_of("target_io", rows)}, "scratch")
    ours, theirs = utilization(rows).daily, daily_writes(selection).days
    assert [(our.date, our.write_bytes, our.covered_pct, our.complete) for our in ours] == [
        (their.date, their.write_bytes, their.covered_pct, their.complete) for their in theirs
    ]


def test_operations_of_part_of_a_day_are_marked() -> None:
    rows = [*quarters(0, 96, target="MDT0", open=5), *quarters(1, 48, target="MDT0", open=5)]
    for row in rows:
        del row["read_bytes"], row["write_bytes"], row["target_kind"]
    result = metadata(FrameSelection({"metadata_ops": table_of("metadata_ops", rows)}, "scratch")).daily
    assert [(day.operations, day.covered_pct, day.complete) for day in result] == [(480, 100, True), (240, 50, False)]


@settings(derandomize=True, max_examples=200, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 5), st.sampled_from("abc"), st.integers(1, 17280)), min_size=1, max_size=12))
def test_coverage_is_a_share(rows: list[tuple[int, str, int]]) -> None:
    rows = [(day, target, rows) for (day, target), rows in {(day, target): n for day, target, n in rows}.items()]
    days, targets, counts = (np.array(column) for column in zip(*rows, strict=True))
    columns = {
        "bucket": days, "target": targets.astype(object), "rows": counts.astype(float), "duration_s": counts * 5.0,
        "tick_s": np.full(len(rows), 5.0),
    }  # fmt: skip
    halves = [{name: values[part] for name, values in columns.items()} for part in (days % 2 == 0, days % 2 == 1)]
    result = covered_pct(halves)
    assert result == covered_pct([columns])
    assert set(result) == set(days.tolist())
    for day, share in result.items():
        present = [(target, n) for item, target, n in rows if item == day]
        expected = [t for t in set(targets) if min(days[targets == t]) <= day <= max(days[targets == t])]
        assert share == pytest.approx(100 * sum(n * 5.0 for _, n in present) / (86400 * len(expected)))
        assert 0 < share <= 100


# Days of a time zone.

BERLIN = "Europe/Berlin"  # T0_US is in summer: days begin at 22:00 UTC


def test_days_of_another_zone_have_the_bytes_of_their_own_hours() -> None:
    rows = [*quarters(0, 96), *quarters(1, 96)]
    table = table_of("target_io", rows)
    result = iolens.utilization(target_io=table, timezone=BERLIN)
    assert result.daily_summary.timezone == BERLIN
    assert [(str(day.date), day.read_bytes, day.complete) for day in result.daily] == [
        ("2020-09-14", 88 * GB, False),
        ("2020-09-15", 96 * GB, True),
        ("2020-09-16", 8 * GB, False),
    ]
    assert [day.covered_pct for day in result.daily] == pytest.approx([100 * 88 / 96, 100, 100 * 8 / 96])
    utc = iolens.utilization(target_io=table)
    assert utc.daily_summary.timezone == "UTC"
    assert [day.read_bytes for day in utc.daily] == [96 * GB, 96 * GB]
    assert utc.per_target == result.per_target


@pytest.mark.parametrize(("day", "hours"), [("2020-03-29", 23), ("2020-10-25", 25)])
def test_a_day_on_which_clocks_change_is_complete_with_all_of_its_hours(day: str, hours: int) -> None:
    from datetime import datetime
    from zoneinfo import ZoneInfo

    start = round(datetime.fromisoformat(day).replace(tzinfo=ZoneInfo(BERLIN)).timestamp() * 1e6)
    rows = quarters(0, 4 * hours, first=(start - T0_US) // STEP_US)
    (line,) = iolens.utilization(target_io=table_of("target_io", rows), timezone=BERLIN).daily
    assert (str(line.date), line.covered_pct, line.read_bytes) == (day, 100, 4 * hours * GB)


def test_operations_of_days_of_another_zone() -> None:
    rows = [*quarters(0, 96, target="MDT0", open=5), *quarters(1, 96, target="MDT0", open=5)]
    for row in rows:
        del row["read_bytes"], row["write_bytes"], row["target_kind"]
    selection = FrameSelection({"metadata_ops": table_of("metadata_ops", rows)}, "scratch")
    result = metadata(selection, timezone=BERLIN)
    assert result.timezone == BERLIN
    assert [(str(day.date), day.operations) for day in result.daily] == [
        ("2020-09-14", 440),
        ("2020-09-15", 480),
        ("2020-09-16", 40),
    ]
    assert metadata(selection).timezone == "UTC"


@settings(derandomize=True, max_examples=25, deadline=None)
@given(
    st.lists(st.integers(0, 96 * 40), min_size=1, max_size=30, unique=True),
    st.sampled_from(["Asia/Kathmandu", "America/St_Johns", "Pacific/Apia", BERLIN]),
)
def test_no_byte_is_lost_or_counted_twice_in_any_zone(places: list[int], zone: str) -> None:
    from zoneinfo import ZoneInfo

    from iolens.units import from_epoch_us

    rows = [row for place in places for row in quarters(0, 1, first=place, read_bytes=place + 1)]
    result = iolens.utilization(target_io=table_of("target_io", rows), timezone=zone).daily
    expected: dict[str, int] = {}
    for row in rows:
        day = str(from_epoch_us(row["start"]).astimezone(ZoneInfo(zone)).date())
        expected[day] = expected.get(day, 0) + row["read_bytes"]
    assert {str(day.date): day.read_bytes for day in result} == expected
