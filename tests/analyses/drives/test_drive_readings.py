"""Every drive's last reading, what it did between readings, and one source for each."""

from __future__ import annotations

from collections import defaultdict
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any

import pytest

from iolens.analyses.drives.readings import Drive, drive_readings, fleet_over_time, with_later
from iolens.store.frames import FrameSelection
from tests.analyses.drive_rows import DAY_US, drive, made_up_drives, selection
from tests.analyses.telemetry import T0_US, table_of

ROWS = [
    drive("a", 0, 100, 900, capacity_bytes=1600),
    drive("a", 5, 200, 500, capacity_bytes=1600),
    drive("b", 5, 1000, 1500, capacity_bytes=1600),
    drive("idle", 5, 0, 77, capacity_bytes=1600),
    drive("hidden", 4, 300, None, capacity_bytes=3200),
]


def read(rows: list[dict[str, Any]], *order: str, **settings: Any) -> dict[str, Drive]:
    return {item.serial: item for item in drive_readings(selection(rows, **settings), order).drives}


def test_the_last_reading_of_each_drive_counts() -> None:
    result = drive_readings(selection(ROWS))
    assert [item.serial for item in result.drives] == ["a", "b", "hidden", "idle"]
    assert result.wafs == [2.5, 1.5]
    assert result.host_write_bytes == [200, 1000]
    assert result.fleet_waf == pytest.approx(2000 / 1200)
    assert result.median_capacity_bytes == 1600
    assert result.readings == 5
    assert result.origin == "burst: 2 of 4 drives, last read on 2020-09-19 (isdct)"


def test_the_window_ends_before_later_readings() -> None:
    assert drive_readings(selection(ROWS, window=(None, datetime(2020, 9, 16, tzinfo=UTC)))).wafs == [9.0]
    assert len(read(ROWS, window=(datetime(2020, 9, 19, tzinfo=UTC), None))) == 3


def test_a_file_system_without_drives_has_none() -> None:
    result = drive_readings(FrameSelection({}, "scratch"))
    assert (result.drives, result.fleet_waf, result.median_capacity_bytes, result.extent) == ([], None, None, None)
    assert result.origin == "scratch: no drive is known"
    assert fleet_over_time(FrameSelection({}, "scratch"), result) == []


def test_lifetime_numbers_of_a_drive() -> None:
    result = read([drive("a", 0, 50_000, 100_000, power_on_hours=2400.0, wear_pct=7.0)])["a"]
    assert (result.waf, result.drive_writes, result.dwpd, result.wear_pct) == (2.0, 50.0, 0.5, 7.0)
    assert result.stretch is None
    assert result.window_dwpd is None


@pytest.mark.parametrize(
    ("more", "waf", "dwpd"),
    [
        ({"capacity_bytes": None}, 2.0, None),
        ({"capacity_bytes": 0}, 2.0, None),
        ({"power_on_hours": None}, 2.0, None),
        ({"power_on_hours": 0.0}, 2.0, None),
        ({"host_write_bytes": None}, None, None),
        ({"host_write_bytes": 0}, None, 0.0),
        ({"nand_write_bytes": None}, None, 0.01),
        ({"nand_write_bytes": 0}, None, 0.01),
    ],
)
def test_what_is_not_known_makes_no_number(more: dict[str, Any], waf: float | None, dwpd: float | None) -> None:
    result = read([drive("a", 0, 10_000, 20_000, **more)])["a"]
    assert (result.waf, result.dwpd) == (waf, dwpd)


def test_counters_beyond_what_a_double_holds_stay_exact() -> None:
    large = 2**62 + 1
    result = read([drive("a", 0, large - 5, large - 50), drive("a", 2, large, large)])["a"]
    assert result.host_write_bytes == large
    assert result.stretch is not None
    assert (result.stretch.host_write_bytes, result.stretch.nand_write_bytes) == (5, 50)
    assert (result.stretch.days, result.stretch.waf, result.window_dwpd) == (2.0, 10.0, 5 / 1000 / 2)


def test_a_stretch_in_which_a_counter_falls_says_nothing() -> None:
    host = [1000, 1100, 30, 40]
    rows = [drive("a", day, host[day], 2 * host[day], host_read_bytes=7 * day, wear_pct=float(day)) for day in range(4)]
    result = read(rows)["a"]
    assert result.falls == 1
    assert result.stretch is not None
    assert (result.stretch.days, result.stretch.host_write_bytes, result.stretch.host_read_bytes) == (2.0, 110, 14)
    assert (result.stretch.wear_pct, result.stretch.wear_days) == (2.0, 2.0)
    assert read([drive("a", 0, 5, 5), drive("a", 1, 4, 5)])["a"].stretch is None
    assert read([drive("a", 0, 5, 5), drive("a", 1, 6, 6, power_on_hours=3.0)])["a"].falls == 1


def test_flash_and_host_bytes_of_the_window_are_of_the_same_time() -> None:
    rows = [drive("a", 0, 100, 1000), drive("a", 1, 200, 1500), drive("a", 2, 300, None), drive("a", 3, 400, 9000)]
    result = read(rows)["a"]
    assert result.stretch is not None
    assert (result.stretch.host_write_bytes, result.stretch.amplified_bytes, result.stretch.waf) == (300, 100, 5.0)


def test_one_source_counts_for_each_drive() -> None:
    rows = [
        *(drive("a", day, 100 + day, 200) for day in range(3)),
        *(drive("a", day, 101 + day, None, source="smartctl") for day in range(4)),
        drive("b", 0, 50, 100),
        drive("b", 20, 500, None, source="smartctl"),
    ]
    result = drive_readings(selection(rows))
    assert [(item.serial, item.source) for item in result.drives] == [
        ("a", "isdct"),
        ("b", "smartctl"),
    ]  # b: long since
    assert (result.readings, result.overlapping_rows) == (4, 5)
    assert {item.source for item in read(rows, "smartctl", "isdct").values()} == {"smartctl"}
    assert {item.source for item in read(rows, "isdct").values()} == {"isdct"}
    history = fleet_over_time(selection(rows), result)
    assert [item.readings for item in history] == [1, 1, 1, 1]


def test_readings_without_a_serial_number_are_counted() -> None:
    nameless = [{**drive("", 0, 9, 9), "serial": None}] * 2
    result = drive_readings(selection([*nameless, drive("a", 0, 1, 2)]))
    assert ([item.serial for item in result.drives], result.nameless_rows) == (["a"], 2)
    assert drive_readings(selection([{**drive("a", 0, 1, 2), "source": None}])).sources == ["unknown"]


def test_the_fleet_day_by_day() -> None:
    rows = [
        drive(serial, day, 1000 + day * rate, 3 * (1000 + day * rate), wear_pct=float(day // 10 + wear))
        for day in range(20)
        for serial, rate, wear in (("a", 100, 1), ("b", 300, 5))
    ]
    chosen = selection(rows)
    history = fleet_over_time(chosen, drive_readings(chosen))
    assert len(history) == 20
    assert (history[0].dwpd, history[0].waf) == (None, None)
    last = history[-1]
    assert (last.time, last.readings) == (datetime(2020, 10, 3, tzinfo=UTC), 2)
    assert (last.wear_min_pct, last.wear_mean_pct, last.wear_max_pct) == (2.0, 4.0, 6.0)
    assert last.drive_writes == pytest.approx((2000 + 19 * 400) / 2000)
    assert (last.dwpd, last.waf) == (pytest.approx(400 / 2000), pytest.approx(3.0))


def test_a_short_history_is_by_the_hour() -> None:
    rows = [drive("a", hour / 24, 100 + hour, None) for hour in range(12)]
    history = fleet_over_time(selection(rows), drive_readings(selection(rows)))
    assert len(history) == 12
    assert history[3].dwpd == pytest.approx(24 / 1000)
    assert {item.waf for item in history} == {None}
    assert {item.wear_max_pct for item in history} == {None}


# Against a loop over the readings, on every kind of frame.


def by_hand(rows: list[dict[str, Any]], source: str) -> dict[str, tuple[Any, ...]]:
    """Last host bytes, falls, days, host, read and flash bytes and wear of the window, of each drive."""
    mine: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for row in sorted(rows, key=lambda row: row["time"]):
        if row["source"] == source:
            mine[row["serial"]].append(row)
    result = {}
    for serial, readings in mine.items():
        falls, days, host, read_, flash, wear = 0, 0.0, 0, None, None, 0.0
        for before, after in pairwise(readings):
            counters = ("host_write_bytes", "host_read_bytes", "nand_write_bytes", "power_on_hours")
            known = [name for name in counters if before[name] is not None and after[name] is not None]
            if any(after[name] < before[name] for name in known):
                falls += 1
                continue
            days += (after["time"] - before["time"]) / DAY_US
            host += after["host_write_bytes"] - before["host_write_bytes"]
            wear += after["wear_pct"] - before["wear_pct"]
            if "host_read_bytes" in known:
                read_ = (read_ or 0) + after["host_read_bytes"] - before["host_read_bytes"]
            if "nand_write_bytes" in known:
                flash = (flash or 0) + after["nand_write_bytes"] - before["nand_write_bytes"]
        result[serial] = (readings[-1]["host_write_bytes"], falls, pytest.approx(days), host, read_, flash, wear)
    return result


def frames() -> dict[str, Any]:
    import duckdb
    import pandas as pd
    import polars as pl

    table = table_of("drives", made_up_drives(1, 12, 40))
    return {
        "arrow": table,
        "duckdb": duckdb.from_arrow(table),
        "polars": pl.from_arrow(table),
        "pandas": table.to_pandas(types_mapper=pd.ArrowDtype),
        "columns": table.drop_columns(["wear_pct", "model", "host", "host_read_bytes", "source"]),
    }


@pytest.mark.parametrize("kind", ["arrow", "duckdb", "polars", "pandas"])
@pytest.mark.parametrize("source", ["isdct", "smartctl"])
def test_as_a_loop_over_the_readings_would_say(kind: str, source: str) -> None:
    chosen = FrameSelection({"drives": frames()[kind]}, "burst")
    result = {item.serial: item for item in drive_readings(chosen, [source]).drives if item.source == source}
    wanted = by_hand(made_up_drives(1, 12, 40), source)
    assert result.keys() == wanted.keys()
    for serial, entry in result.items():
        assert entry.stretch is not None
        between = (entry.stretch.days, entry.stretch.host_write_bytes, entry.stretch.host_read_bytes)
        rest = (entry.stretch.nand_write_bytes, entry.stretch.wear_pct)
        assert (entry.host_write_bytes, entry.falls, *between, *rest) == wanted[serial]
    assert sum(item.falls for item in result.values()) > 5 * (source == "isdct")


def test_a_frame_may_lack_columns() -> None:
    table = frames()["columns"]
    result = drive_readings(FrameSelection({"drives": table}, "burst"))
    assert result.sources == ["frame"]
    assert {item.wear_pct for item in result.drives} == {item.model for item in result.drives} == {None}
    assert result.fleet_waf is not None


def test_drives_read_only_after_the_window_count_at_their_first_reading() -> None:
    """a: read on days 0 and 5; b and the others first on days 4 and 5. The window ends on day 2."""
    rows = [*ROWS, drive("b", 9, 9000, 90_000)]
    before = drive_readings(selection([row for row in rows if row["time"] < T0_US + 2 * DAY_US]))
    after = drive_readings(selection([row for row in rows if row["time"] >= T0_US + 2 * DAY_US]), first=True)
    result = with_later(before, after)
    assert [item.serial for item in before.drives] == ["a"]
    assert [item.serial for item in result.drives] == ["a", "b", "hidden", "idle"]
    assert result.read_later == {"b", "hidden", "idle"}
    assert result.wafs == [9.0, 1.5]  # a on day 0, b on day 5, not on day 9
