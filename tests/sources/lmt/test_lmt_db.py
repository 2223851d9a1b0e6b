"""LMT databases: raw counters of every target at the right time, in any zone, whatever is missing or was reset."""

from __future__ import annotations

import pickle
import sqlite3
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest

from iolens.errors import InputError, UsageError
from iolens.records import Capture, Item, Note, Problem, Row, Rows, Samples
from iolens.sources import recognise
from iolens.sources.lmt.lmt_db import SOURCE
from iolens.sources.reading import sql_database as lmt_database
from iolens.sources.reading.options import ReadOptions
from iolens.sources.reading.sql_database import MysqlOpening
from iolens.store.readers import guarded
from iolens.store.store import Store
from tests.sources.lmt_copy import COLUMNS, STOCK, LmtCopy, grow, ost_row, small_copy

PACIFIC = ReadOptions(timezone="America/Los_Angeles")
IN_UTC = ReadOptions(timezone="UTC")
MIDNIGHT_US = 1_517_126_400_000_000  # 2018-01-28 00:00 in Los Angeles
REAL, RESET = "snx11025_2018-01-28.sqlite3", "SYNTHETIC_counter_reset_and_gap.sqlite3"


def captures(path: Path, options: ReadOptions = PACIFIC) -> list[Capture]:
    return list(SOURCE.captures([path], options))


def items(path: Path, options: ReadOptions = PACIFIC) -> list[Item]:
    return [item for capture in captures(path, options) for item in capture.items()]


def samples(results: list[Item], table: str = "target_io") -> dict[str, Samples]:
    return {item.target: item for item in results if isinstance(item, Samples) and item.table == table}


def rows(results: list[Item], table: str) -> list[Rows]:
    return [item for item in results if isinstance(item, Rows) and item.table == table]


def problems(results: list[Item]) -> list[str]:
    return [item.reason for item in results if isinstance(item, Problem)]


def stored(store: Store, table: str, *columns: str, filesystem: str = "scratch") -> list[tuple]:
    frame = store.select(filesystem).frame(table).select(*columns).collect("pyarrow").to_native()
    return sorted(zip(*(frame.column(name).to_pylist() for name in columns), strict=True))


def load(store: Store, path: Path, options: ReadOptions = PACIFIC):
    return store.ingest(SOURCE.captures([path], options), "lmt-db")


@pytest.fixture
def copy(tmp_path: Path) -> LmtCopy:
    return small_copy(tmp_path / "lmt.sqlite3")


# --- what the tables become


def test_counters_stay_raw_and_targets_have_the_names_of_ost_info(copy: LmtCopy) -> None:
    result = samples(items(copy.path))
    assert sorted(result) == ["scratch-OST0000", "scratch-OST0001"]
    item = result["scratch-OST0001"]
    assert item.filesystem == "scratch"
    assert item.labels == {"target_kind": "ost"}
    assert item.counters["read_bytes"].tolist() == [2 * 10**12 + 10 * n for n in range(4)]
    assert item.counters["write_bytes"].tolist() == [4 * 10**12 + 1000 * n for n in range(4)]


def test_local_times_become_utc(copy: LmtCopy) -> None:
    item = samples(items(copy.path))["scratch-OST0000"]
    assert item.time_us.tolist() == [MIDNIGHT_US + 5_000_000 * n for n in range(4)]
    assert item.snapshot_us.tolist() == item.time_us.tolist()
    assert samples(items(copy.path, IN_UTC))["scratch-OST0000"].time_us[0] == MIDNIGHT_US - 8 * 3600 * 10**6


def test_kilobytes_are_kib(copy: LmtCopy) -> None:
    ost, _, mdt = rows(items(copy.path), "target_capacity")
    assert ost.columns["used_bytes"].tolist() == [1024 * (400 + n) for n in range(4)]
    assert ost.columns["total_bytes"].tolist() == [1024 * 1000] * 4
    assert (ost.columns["free_inodes"][0], ost.columns["total_inodes"][0]) == (80, 100)
    assert (mdt.columns["target"], mdt.columns["target_kind"]) == ("scratch-MDT0000", "mdt")


def test_metadata_operations_are_columns_and_times_only_where_they_are_microseconds(copy: LmtCopy) -> None:
    result = items(copy.path)
    mdt = samples(result, "metadata_ops")["scratch-MDT0000"]
    assert sorted(mdt.counters) == ["close", "getattr", "getattr_us", "open"]
    assert mdt.counters["open"].tolist() == [10**6 + 7 * n for n in range(4)]
    assert mdt.counters["getattr_us"].tolist() == [10**9 + 50 * n for n in range(4)]
    assert problems(result) == []


def test_of_a_row_that_is_there_twice_the_larger_count_holds(copy: LmtCopy) -> None:
    copy.add("MDS_OPS_DATA", (1, 2, 1, 10**6 - 5, 0, 0), (1, 3, 1, 10**6 + 99, 0, 0))
    mdt = samples(items(copy.path), "metadata_ops")["scratch-MDT0000"]
    assert mdt.counters["open"].tolist() == [10**6, 10**6 + 7, 10**6 + 99, 10**6 + 21]


def test_an_operation_nobody_knows_is_reported_once(copy: LmtCopy) -> None:
    copy.add("OPERATION_INFO", (5, "levitate", "reqs"))
    copy.add("MDS_OPS_DATA", (1, 1, 5, 3, 0, 0), (1, 2, 5, 4, 0, 0), (1, 2, 77, 4, 0, 0))
    assert problems(items(copy.path)) == [
        "MDS_OPS_DATA: operation 'levitate' is of no known version of Lustre",
        "MDS_OPS_DATA: operation 'number 77' is of no known version of Lustre",
    ]


def test_load_of_servers_is_theirs_and_not_the_targets(copy: LmtCopy) -> None:
    load_of = {row.columns["host"]: row.columns for row in rows(items(copy.path), "host_load")}
    assert sorted(load_of) == ["mds1", "oss1", "oss2"]
    assert load_of["oss1"]["cpu_pct"].tolist() == [1.5] * 4
    assert load_of["oss1"]["memory_pct"].tolist() == [90.25] * 4
    assert np.isnan(load_of["mds1"]["memory_pct"]).all()


def test_an_old_schema_has_the_load_with_the_osts(copy: LmtCopy) -> None:
    copy.run("DROP TABLE OSS_DATA")
    assert [row.columns["host"] for row in rows(items(copy.path), "host_load")] == ["mds1"]
    copy.run("UPDATE OST_DATA SET PCT_CPU = 12.5 WHERE OST_ID = 1")
    load_of = {row.columns["host"]: row.columns["cpu_pct"].tolist() for row in rows(items(copy.path), "host_load")}
    assert load_of == {"oss1": [12.5] * 4, "mds1": [2.5] * 4}


def test_an_ost_that_is_offline_keeps_its_samples_and_is_called_offline_at_the_end(copy: LmtCopy) -> None:
    copy.run("UPDATE OST_INFO SET OFFLINE = 1 WHERE OST_ID = 2")
    result = items(copy.path)
    assert len(samples(result)["scratch-OST0001"]) == 4
    (state,) = (item.values for item in result if isinstance(item, Row) and item.table == "target_state")
    assert (state["target"], state["recovery_status"]) == ("scratch-OST0001", "OFFLINE")
    assert state["time"] == MIDNIGHT_US + 15_000_000


def test_operations_of_an_ost_join_its_bytes(copy: LmtCopy) -> None:
    copy.add("OPERATION_INFO", (8, "read_bytes", "reqs"), (9, "write", "reqs"))
    copy.add("OST_OPS_DATA", (1, 1, 8, 40), (1, 3, 8, 42), (1, 3, 9, 7), (1, 3, 1, 5))
    item = samples(items(copy.path))["scratch-OST0000"]
    assert item.counters["read_ops"].tolist() == [40, None, 42, None]
    assert item.counters["write_ops"].tolist() == [None, None, 7, None]
    assert item.counters["read_bytes"].count() == 4


# --- what is missing, wrong or huge


def test_a_missing_row_is_a_missing_sample(copy: LmtCopy) -> None:
    copy.run("DELETE FROM OST_DATA WHERE OST_ID = 1 AND TS_ID IN (2, 3)")
    result = samples(items(copy.path))
    assert (result["scratch-OST0000"].time_us - MIDNIGHT_US).tolist() == [0, 15_000_000]
    assert len(result["scratch-OST0001"]) == 4


def test_null_is_not_known(copy: LmtCopy) -> None:
    copy.run("UPDATE OST_DATA SET READ_BYTES = NULL WHERE OST_ID = 1 AND TS_ID = 2")
    copy.run("UPDATE OST_DATA SET READ_BYTES = NULL, WRITE_BYTES = NULL WHERE OST_ID = 2 AND TS_ID = 2")
    result = items(copy.path)
    assert samples(result)["scratch-OST0000"].counters["read_bytes"].tolist()[1] is None
    assert len(samples(result)["scratch-OST0001"]) == 3
    assert problems(result) == []


@pytest.mark.parametrize("value", ["'many'", "''", "-1", "x'00'", "1e300", "'99999999999999999999'"])
def test_what_is_no_count_is_reported_and_not_known(copy: LmtCopy, value: str) -> None:
    copy.run(f"UPDATE OST_DATA SET WRITE_BYTES = {value} WHERE OST_ID = 1 AND TS_ID = 2")
    result = items(copy.path)
    assert samples(result)["scratch-OST0000"].counters["write_bytes"].tolist()[1] is None
    (reason,) = problems(result)
    assert reason == "OST_DATA.WRITE_BYTES of scratch-OST0000: 1 values are no whole numbers of zero or more"


@pytest.mark.parametrize("value", ["'7000'", "7000.0", "7000"])
def test_a_number_may_be_kept_as_text_or_real(copy: LmtCopy, value: str) -> None:
    copy.run(f"UPDATE OST_DATA SET READ_BYTES = {value} WHERE OST_ID = 1 AND TS_ID = 1")
    result = items(copy.path)
    assert samples(result)["scratch-OST0000"].counters["read_bytes"][0] == 7000
    assert problems(result) == []


def test_capacity_beyond_any_column_is_refused(copy: LmtCopy) -> None:
    copy.run(f"UPDATE OST_DATA SET KBYTES_USED = {2**60} WHERE OST_ID = 1 AND TS_ID = 2")
    result = items(copy.path)
    assert problems(result) == ["scratch-OST0000: 1 times with more than 8 EiB left out"]
    assert len(rows(result, "target_capacity")[0]) == 3


def test_a_row_whose_time_is_not_known_is_left_out(copy: LmtCopy) -> None:
    copy.add("OST_DATA", ost_row(1, 500))
    assert len(samples(items(copy.path))["scratch-OST0000"]) == 4


@pytest.mark.parametrize("stamp", ["'yesterday'", "NULL", "1517126410", "'2018-01-28T08:00:10+00:00'"])
def test_a_time_that_is_no_local_time_is_reported(copy: LmtCopy, stamp: str) -> None:
    copy.run(f"UPDATE TIMESTAMP_INFO SET TIMESTAMP = {stamp} WHERE TS_ID = 3")
    result = items(copy.path)
    assert problems(result) == ["TS_ID 3 to 3: TIMESTAMP is not a time such as 2018-01-28 00:00:00"]
    assert (samples(result)["scratch-OST0000"].time_us - MIDNIGHT_US).tolist() == [0, 5_000_000, 15_000_000]


def test_a_clock_that_was_set_back_leaves_samples_in_time_order(copy: LmtCopy) -> None:
    copy.run("UPDATE TIMESTAMP_INFO SET TIMESTAMP = '2018-01-28 00:00:02' WHERE TS_ID = 4")
    item = samples(items(copy.path))["scratch-OST0000"]
    assert (item.time_us - MIDNIGHT_US).tolist() == [0, 2_000_000, 5_000_000, 10_000_000]
    assert item.counters["write_bytes"].tolist()[1] == 2 * 10**12 + 3000


def test_columns_that_a_version_lacks_are_absent(tmp_path: Path) -> None:
    copy = LmtCopy(tmp_path / "old.sqlite3", ["TIMESTAMP_INFO"])
    copy.run("CREATE TABLE OST_INFO (OST_ID, OST_NAME)")
    copy.run("CREATE TABLE OST_DATA (OST_ID, TS_ID, READ_BYTES, WRITE_BYTES)")
    copy.times("2018-01-28 00:00:00", 2)
    copy.run("INSERT INTO OST_INFO VALUES (?, ?)", [(1, "scratch-OST0000_UUID")])
    copy.run("INSERT INTO OST_DATA VALUES (?, ?, ?, ?)", [(1, 1, 5, 6), (1, 2, 7, 8)])
    result = items(copy.path, ReadOptions(filesystem="scratch", timezone="UTC"))
    assert [type(item) for item in result] == [Samples]
    assert list(samples(result)) == ["scratch-OST0000"]


# --- names and zones


def test_the_zone_must_be_stated(copy: LmtCopy) -> None:
    (refused,) = captures(copy.path, ReadOptions())
    with pytest.raises(InputError, match=r"without a zone; expected --timezone.*\[filesystems\.scratch\]"):
        list(refused.items())


def test_the_configuration_may_state_it(copy: LmtCopy) -> None:
    for options in (
        ReadOptions(zones={"scratch": "America/Los_Angeles"}),
        ReadOptions(settings={"timezone": "America/Los_Angeles"}),
        ReadOptions(timezone="America/Los_Angeles", zones={"scratch": "Europe/Berlin"}),
    ):
        assert samples(items(copy.path, options))["scratch-OST0000"].time_us[0] == MIDNIGHT_US


def test_a_zone_nobody_knows_is_refused(copy: LmtCopy) -> None:
    (refused,) = captures(copy.path, ReadOptions(timezone="Mars/Olympus"))
    with pytest.raises(InputError, match="no time zone is called 'Mars/Olympus'"):
        list(refused.items())


@pytest.mark.parametrize(
    ("name", "given", "expected"),
    [
        ("filesystem_home.sqlite3", None, "home"),
        ("snx11025_2018-01-28.sqlite3", None, "snx11025"),
        ("filesystem_home.sqlite3", "work", "work"),
    ],
)
def test_the_name_of_the_file_system_where_the_database_does_not_tell(
    tmp_path: Path, name: str, given: str | None, expected: str
) -> None:
    copy = small_copy(tmp_path / name)
    copy.run("DELETE FROM FILESYSTEM_INFO")
    result = items(copy.path, ReadOptions(filesystem=given, timezone="UTC"))
    assert {sample.filesystem for sample in samples(result).values()} == {expected}


def test_a_database_without_any_name_asks_for_one(copy: LmtCopy) -> None:
    copy.add("FILESYSTEM_INFO", (2, "other", "", 1.1))
    (refused,) = captures(copy.path)
    with pytest.raises(InputError, match="expected --filesystem"):
        list(refused.items())


def autumn(path: Path, *, first_pass: int = 720, second_pass: int = 720) -> LmtCopy:
    """A copy around 2018-11-04 02:00 in Los Angeles, when the hour from one o'clock came twice."""
    copy = small_copy(path, 12, osts=1, first="2018-11-04 00:59:00")
    grow(copy, "2018-11-04 01:00:00", first_pass, 1, since=12)
    grow(copy, "2018-11-04 01:00:00", second_pass, 1, since=12 + first_pass)
    grow(copy, "2018-11-04 02:00:00", 12, 1, since=12 + first_pass + second_pass)
    return copy


def test_the_hour_that_comes_twice_is_distinguished_by_the_order(tmp_path: Path) -> None:
    item = samples(items(autumn(tmp_path / "lmt.sqlite3").path))["scratch-OST0000"]
    assert np.diff(item.time_us).tolist() == [5_000_000] * (12 + 720 + 720 + 12 - 1)
    assert item.time_us[0] == datetime(2018, 11, 4, 7, 59, tzinfo=UTC).timestamp() * 1e6


def test_a_gap_from_the_first_passage_into_the_second_is_a_gap(tmp_path: Path) -> None:
    path = tmp_path / "lmt.sqlite3"
    copy = autumn(path)
    copy.run("DELETE FROM TIMESTAMP_INFO WHERE TS_ID > 600 AND TS_ID <= 740")
    time_us = samples(items(path))["scratch-OST0000"].time_us
    assert sorted(set(np.diff(time_us).tolist())) == [5_000_000, 141 * 5_000_000]


def test_of_an_hour_that_is_there_only_once_it_is_said_which_was_taken(tmp_path: Path) -> None:
    result = items(autumn(tmp_path / "lmt.sqlite3", second_pass=0).path)
    (note,) = (item for item in result if isinstance(item, Note))
    assert "came twice in America/Los_Angeles but is here once: taken for the first" in note.reason
    assert (np.diff(samples(result)["scratch-OST0000"].time_us) > 0).all()


def test_an_hour_that_never_was_means_the_wrong_zone(tmp_path: Path) -> None:
    copy = small_copy(tmp_path / "lmt.sqlite3", 24, first="2018-03-11 01:59:00")
    result = items(copy.path)
    (reason,) = problems(result)
    assert reason.startswith("2018-03-11 02:00:00 to 2018-03-11 02:00:55 does not exist in America/Los_Angeles")
    assert len(samples(result)["scratch-OST0000"]) == 12
    assert problems(items(copy.path, IN_UTC)) == []


# --- days, growth and repetition


def test_a_capture_is_a_utc_day_and_they_come_in_order(tmp_path: Path) -> None:
    copy = small_copy(tmp_path / "lmt.sqlite3", 6, first="2018-01-28 15:59:45")  # midnight UTC after three times
    first, second = captures(copy.path)
    assert first.identity != second.identity
    times = [samples(list(item.items()))["scratch-OST0000"].time_us.tolist() for item in (first, second)]
    assert [len(time) for time in times] == [3, 3]
    assert times[1][0] == datetime(2018, 1, 29, tzinfo=UTC).timestamp() * 1e6


def test_two_databases_are_read_day_by_day(tmp_path: Path) -> None:
    late = small_copy(tmp_path / "late.sqlite3", first="2018-02-02 00:00:00")
    early = small_copy(tmp_path / "early.sqlite3")
    result = SOURCE.captures([late.path, tmp_path / "absent.sqlite3", early.path], PACIFIC)
    assert [Path(item.origin).name for item in result] == ["absent.sqlite3", "early.sqlite3", "late.sqlite3"]


def test_identity_is_the_content_and_what_was_said(copy: LmtCopy, tmp_path: Path) -> None:
    (before,) = captures(copy.path)
    (again,) = captures(small_copy(tmp_path / "elsewhere.sqlite3").path)
    assert before.identity == again.identity
    others = {
        captures(copy.path, IN_UTC)[0].identity,
        captures(copy.path, ReadOptions(filesystem="work", timezone="America/Los_Angeles"))[0].identity,
    }
    copy.run("UPDATE OST_DATA SET WRITE_BYTES = WRITE_BYTES + 1 WHERE TS_ID = 4")
    others.add(captures(copy.path)[0].identity)
    grow(copy, "2018-01-28 00:00:20", 1, since=4)
    others.add(captures(copy.path)[0].identity)
    assert len(others | {before.identity}) == 5


def test_pieces_change_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = autumn(tmp_path / "lmt.sqlite3").path
    (whole,) = captures(path)
    monkeypatch.setattr(lmt_database, "PIECE_ROWS", 7)
    (pieces,) = captures(path)
    assert whole.identity == pieces.identity
    times = [samples(list(piece.items()))["scratch-OST0000"].time_us.tolist() for piece in (whole, pieces)]
    assert times[0] == times[1]


def test_only_a_window(tmp_path: Path) -> None:
    copy = small_copy(tmp_path / "lmt.sqlite3", 20)
    begin, end = (datetime(2018, 1, 28, 8, 0, second, tzinfo=UTC) for second in (10, 30))
    result = items(copy.path, ReadOptions(timezone="America/Los_Angeles", since=begin, until=end))
    assert (samples(result)["scratch-OST0000"].time_us - MIDNIGHT_US).tolist() == [5_000_000 * n for n in range(2, 6)]
    nothing = ReadOptions(timezone="UTC", since=datetime(2030, 1, 1, tzinfo=UTC))
    with pytest.raises(InputError, match="no times from 2030-01-01"):
        items(copy.path, nothing)


def test_a_capture_travels_to_another_process(copy: LmtCopy) -> None:
    (capture,) = pickle.loads(pickle.dumps(captures(copy.path)))
    assert sorted(samples(list(capture.items()))) == ["scratch-OST0000", "scratch-OST0001"]


def test_twice_the_same_adds_nothing(copy: LmtCopy, tmp_path: Path) -> None:
    store = Store(tmp_path / "store")
    tally = load(store, copy.path)
    rows = {"target_io": 6, "metadata_ops": 3, "target_capacity": 12, "host_load": 12, "target_servers": 3}
    assert dict(tally.rows) == rows
    again = load(store, copy.path)
    assert (again.already_present, dict(again.rows)) == (1, {})


def test_a_database_that_has_grown_gives_what_it_gives_at_once(tmp_path: Path) -> None:
    growing, whole = Store(tmp_path / "growing"), Store(tmp_path / "whole")
    path = tmp_path / "lmt.sqlite3"
    first = "2018-01-28 15:59:00"  # one minute before midnight UTC
    copy = small_copy(path, 8, first=first)
    load(growing, path)
    grow(copy, "2018-01-28 15:59:40", 12, since=8)
    tally = load(growing, path)
    assert (tally.older, tally.refused) == (0, 0)
    load(whole, path)
    columns = {
        "target_io": ("target", "epoch_us", "duration_s", "read_bytes", "write_bytes"),
        "metadata_ops": ("target", "epoch_us", "open", "getattr_us"),
        "target_capacity": ("target", "epoch_us", "used_bytes"),
        "host_load": ("host", "epoch_us", "cpu_pct"),
    }
    for table, names in columns.items():
        assert stored(growing, table, *names) == stored(whole, table, *names)
    assert sum(row[4] for row in stored(whole, "target_io", *columns["target_io"])) == 2 * 19 * 1000


# --- zeros and resets


def set_counters(copy: LmtCopy, ost: int, values: dict[int, tuple[int, int]]) -> None:
    rows = [(read, write, ost, ts_id) for ts_id, (read, write) in values.items()]
    copy.run("UPDATE OST_DATA SET READ_BYTES = ?, WRITE_BYTES = ? WHERE OST_ID = ? AND TS_ID = ?", rows)


def test_zeros_after_which_the_former_counts_go_on_are_failed_readings(tmp_path: Path) -> None:
    """Else a whole history would seem to be moved in the one interval that follows."""
    copy = small_copy(tmp_path / "lmt.sqlite3", 8)
    set_counters(copy, 1, {3: (0, 0), 4: (0, 0)})
    result = items(copy.path)
    assert [item.reason for item in result if isinstance(item, Note)] == [
        "scratch-OST0000: 2 readings of zero, after which the former counts went on, left out"
    ]
    store = Store(tmp_path / "store")
    assert load(store, copy.path).resets == 0
    written = [row[1] for row in stored(store, "target_io", "target", "write_bytes") if row[0] == "scratch-OST0000"]
    assert sorted(written) == [1000, 1000, 1000, 1000, 3000]


def test_a_reset_is_kept_and_costs_no_more_than_its_interval(tmp_path: Path) -> None:
    copy = small_copy(tmp_path / "lmt.sqlite3", 10)
    set_counters(copy, 1, {5: (0, 0), 6: (0, 700), **{ts: (10 * ts, 1000 * (ts - 6) + 700) for ts in range(7, 11)}})
    store = Store(tmp_path / "store")
    assert load(store, copy.path).resets == 1
    written = sum(row[1] for row in stored(store, "target_io", "target", "write_bytes") if row[0] == "scratch-OST0000")
    assert written == 3 * 1000 + 700 + 4 * 1000


def test_zeros_at_the_end_wait_for_what_follows(tmp_path: Path) -> None:
    copy = small_copy(tmp_path / "lmt.sqlite3", 6)
    set_counters(copy, 1, {5: (0, 0), 6: (0, 0)})
    store = Store(tmp_path / "store")
    load(store, copy.path)
    grow(copy, "2018-01-28 00:00:30", 4, since=6)
    tally = load(store, copy.path)
    assert (tally.resets, tally.older) == (0, 0)
    written = [row[1] for row in stored(store, "target_io", "target", "write_bytes") if row[0] == "scratch-OST0000"]
    assert sorted(written) == [1000] * 6 + [3000]


def test_zeros_around_midnight_look_beyond_the_day(tmp_path: Path) -> None:
    copy = small_copy(tmp_path / "lmt.sqlite3", 8, first="2018-01-28 15:59:40")
    set_counters(copy, 1, {4: (0, 0), 5: (0, 0), 6: (0, 0)})  # the fifth time is midnight UTC
    assert [len(samples(list(capture.items()))["scratch-OST0000"]) for capture in captures(copy.path)] == [3, 2]


def test_an_ost_that_never_moved_anything_is_idle_not_missing(tmp_path: Path) -> None:
    copy = small_copy(tmp_path / "lmt.sqlite3", 6)
    set_counters(copy, 1, dict.fromkeys(range(1, 7), (0, 0)))
    assert len(samples(items(copy.path))["scratch-OST0000"]) == 6


# --- disk I/O sizes


def with_stock_sizes(path: Path) -> LmtCopy:
    copy = small_copy(path, 3, osts=1)
    for name in ("BRW_STATS_INFO", "BRW_STATS_DATA"):
        copy.run(f"CREATE TABLE {name} ({', '.join(COLUMNS[name])})")
    copy.add(
        "BRW_STATS_INFO", (1, "BRW_RPC", "pages per bulk r/w", "pages"), (7, "BRW_IOSIZE", "disk I/O size", "bytes")
    )
    bins = [(1, 1, 7, 4096, 10, 20), (1, 1, 7, 1048576, 100, 200), (2, 1, 7, 1048576, 103, 204), (2, 1, 1, 4096, 9, 9)]
    copy.add("BRW_STATS_DATA", *bins, (2, 1, 7, 4096, 10, 21), (2, 1, 7, 3000, 5, 6), (2, 1, 7, 2**30, 1, 1))
    return copy


def test_the_fsu_authors_own_table_is_found_by_itself(tmp_path: Path) -> None:
    sizes = samples(items(with_stock_sizes(tmp_path / "lmt.sqlite3").path), "target_sizes")["scratch-OST0000"]
    assert (sizes.time_us - MIDNIGHT_US).tolist() == [0, 5_000_000]
    assert sizes.counters["read_ios_4096"].tolist() == [10, 10]
    assert sizes.counters["write_ios_1048576"].tolist() == [200, 204]
    assert sizes.counters["read_ios_8192"].tolist() == [0, 0]  # brw_stats has no line for a size that never occurred
    assert sizes.counters["write_ios_outside"].tolist() == [0, 7]


def test_a_table_with_a_row_per_size_is_named_in_the_configuration(tmp_path: Path) -> None:
    copy = small_copy(tmp_path / "lmt.sqlite3", 2, osts=1)
    copy.run("CREATE TABLE OST_SIZES (T, O, KIND, BYTES, R, W)")
    rows_ = [
        (1, 1, "disk", 4096, 1, 2),
        (2, 1, "disk", 4096, 4, 7),
        (2, 1, "net", 4096, 100, 100),
        (1, 1, "disk", 8, None, 0),
    ]
    copy.run("INSERT INTO OST_SIZES VALUES (?, ?, ?, ?, ?, ?)", rows_)
    named = {"table": "ost_sizes", "ts_id": "T", "ost_id": "O", "size": "bytes", "read": "R", "write": "W"}
    options = ReadOptions(timezone="UTC", settings={"brw_stats": named | {"where": {"KIND": "disk"}}})
    result = items(copy.path, options)
    sizes = samples(result, "target_sizes")["scratch-OST0000"]
    assert sizes.counters["write_ios_4096"].tolist() == [7]
    assert problems(result) == ["OST_SIZES: 1 times of scratch-OST0000 with values that are no numbers left out"]


def test_a_table_with_a_column_per_size(tmp_path: Path) -> None:
    copy = small_copy(tmp_path / "lmt.sqlite3", 2, osts=1)
    copy.run("CREATE TABLE SIZES (TS_ID, OST_ID, R4, R1M, W4, W1M)")
    copy.run("INSERT INTO SIZES VALUES (?, ?, ?, ?, ?, ?)", [(1, 1, 1, 2, 3, 4), (2, 1, 5, 6, 7, 8)])
    read, write = {"4096": "R4", "1048576": "R1M"}, {"4096": "W4", "1048576": "W1M"}
    settings = {"brw_stats": {"table": "SIZES", "read_columns": read, "write_columns": write}}
    result = items(copy.path, ReadOptions(timezone="UTC", settings=settings))
    sizes = samples(result, "target_sizes")["scratch-OST0000"]
    assert sizes.counters["read_ios_1048576"].tolist() == [2, 6]
    assert sizes.counters["write_ios_4096"].tolist() == [3, 7]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"colour": 1}, "unknown key sources.lmt-db.colour"),
        ({"timezone": 3}, "sources.lmt-db.timezone = 3"),
        ({"brw_stats": "T"}, "brw_stats is not a section"),
        ({"brw_stats": {"table": "T"}}, "lacks size, read, write"),
        ({"brw_stats": {"table": "T", "read_columns": {}}}, "lacks write_columns"),
        ({"brw_stats": {"table": "T", "size": "S", "read": "R", "write": "W", "x": 1}}, "unknown key .*brw_stats.x"),
        ({"brw_stats": {"table": "T", "size": "S", "read": "R", "write": "W"}}, "no table T"),
        (
            {"brw_stats": {"table": "OST_DATA", "size": "S", "read": "R", "write": "W"}},
            "OST_DATA has no column S, R, W",
        ),
        (
            {"brw_stats": {"table": "OST_DATA", "size": 1, "read": "R", "write": "W"}},
            "brw_stats.size = 1 is not a name",
        ),
        (
            {"brw_stats": {"table": "T", "read_columns": {"4K": "R"}, "write_columns": {}}},
            "brw_stats.read_columns.4K = 'R'",
        ),
    ],
)
def test_settings_that_are_wrong_are_named(copy: LmtCopy, settings: dict, message: str) -> None:
    (refused,) = captures(copy.path, ReadOptions(timezone="UTC", settings=settings))
    with pytest.raises(InputError, match=message):
        list(refused.items())


# --- damage, and what is not an LMT database


def test_a_copy_is_recognised_and_other_databases_are_not(copy: LmtCopy, tmp_path: Path) -> None:
    assert recognise(copy.path).name == "lmt-db"
    other = tmp_path / "other.sqlite3"
    with closing(sqlite3.connect(other)) as connection, connection:
        connection.execute("CREATE TABLE ENTRIES (id)")
    assert not SOURCE.recognises(other, other.read_bytes())


@pytest.mark.parametrize(
    "content", [b"", b"SQLite format 3\0", b"\x00\xff" * 5000, b"SQLite format 3\0" + b"\x07" * 9000]
)
def test_rubbish_is_refused_by_name(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "rubbish.sqlite3"
    path.write_bytes(content)
    assert not SOURCE.recognises(path, content)
    (refused,) = captures(path)
    with pytest.raises(InputError, match=r"rubbish\.sqlite3"):
        list(refused.items())


def test_a_copy_that_was_cut_says_so(tmp_path: Path) -> None:
    copy = small_copy(tmp_path / "lmt.sqlite3", 2000)
    content = copy.path.read_bytes()
    copy.path.write_bytes(content[: len(content) // 2])
    with pytest.raises(InputError, match="SQLite: database disk image is malformed"):
        items(copy.path)


def test_a_database_that_lacks_a_table_or_column_is_refused(copy: LmtCopy) -> None:
    copy.run("ALTER TABLE OST_DATA DROP COLUMN WRITE_BYTES")
    with pytest.raises(InputError, match="table OST_DATA has no column WRITE_BYTES"):
        items(copy.path)
    copy.run("DROP TABLE OST_INFO")
    copy.run("ALTER TABLE OST_DATA ADD COLUMN WRITE_BYTES")
    with pytest.raises(InputError, match="no table OST_INFO"):
        items(copy.path)


def test_a_database_without_times_is_refused(tmp_path: Path) -> None:
    copy = LmtCopy(tmp_path / "lmt.sqlite3", STOCK)
    copy.add("FILESYSTEM_INFO", (1, "scratch", "", 1.1))
    with pytest.raises(InputError, match="TIMESTAMP_INFO has no times"):
        items(copy.path)


# --- addresses

SECRET = "tiger:and@more"
ADDRESS = "mysql://scott:tiger%3Aand%40more@127.0.0.1:1/filesystem_scratch"


def test_a_password_is_in_no_message_origin_or_identity() -> None:
    (refused,) = SOURCE.url_captures([ADDRESS], PACIFIC)
    with pytest.raises(InputError, match="Can't connect") as raised:
        list(refused.items())
    said = f"{raised.value} {refused.origin} {refused.identity} {refused!r} {MysqlOpening(ADDRESS)!r}"
    assert "tiger" not in said
    assert refused.origin == "mysql://scott@127.0.0.1:1/filesystem_scratch"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("IOLENS_MYSQL_PASSWORD", raising=False)
    return tmp_path


def test_the_password_comes_from_the_url_the_environment_or_the_users_file(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert MysqlOpening(ADDRESS).arguments()["password"] == SECRET
    plain = MysqlOpening("mariadb://scott@db/filesystem_scratch")
    assert "password" not in plain.arguments()
    (home / ".my.cnf").write_text("[client]\npassword = x\n")
    assert plain.arguments()["read_default_file"] == str(home / ".my.cnf")
    monkeypatch.setenv("IOLENS_MYSQL_PASSWORD", "from the environment")
    assert plain.arguments()["password"] == "from the environment"
    assert (plain.arguments()["host"], plain.arguments()["port"]) == ("db", 3306)


def test_transport_security_by_parameter(home: Path) -> None:
    opening = MysqlOpening("mysql://u@db/filesystem_scratch?ssl-ca=/etc/ca.pem&socket=/run/x.sock")
    assert opening.arguments()["ssl"] == {"ca": "/etc/ca.pem"}
    assert opening.arguments()["unix_socket"] == "/run/x.sock"


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("mysql://u@db/", "name the database"),
        ("mysql://u@db/a;b", "name the database"),
        ("mysql://u:12/secret@db/x", "name the database"),
        ("mysql://u@db:port/x", "the port is not a number"),
        ("mysql://u:secret@[::1/x", "not an address; write mysql://user@host:port/database"),
        ("mysql://u:secret@[db]/x", "not an address"),
        ("mysql://u:secret@db/x?tls=1", "unknown parameter 'tls'"),
    ],
)
def test_an_address_that_is_wrong_is_a_usage_error(home: Path, url: str, message: str) -> None:
    with pytest.raises(UsageError, match=message) as raised:
        list(SOURCE.url_captures([url], PACIFIC))
    assert "secret" not in str(raised.value)


def test_a_host_no_name_service_takes_is_refused_alone(home: Path) -> None:
    """Its name has a label of 70 characters, on which the lookup fails before any connection."""
    (refused,) = SOURCE.url_captures([f"mysql://u:secret@{'a' * 70}.example/x"], PACIFIC)
    with pytest.raises(InputError, match=r"cannot connect|Can't connect") as raised:
        list(refused.items())
    assert "secret" not in str(raised.value)


# --- copies that mean harm

ENDLESS = "WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM t)"


@pytest.mark.parametrize(
    ("table", "columns"),
    [
        ("OST_DATA", "1 AS OST_ID, n AS TS_ID, n AS READ_BYTES, n AS WRITE_BYTES"),
        ("TIMESTAMP_INFO", "n AS TS_ID, '2018-01-28 00:00:00' AS TIMESTAMP"),
        ("OST_INFO", "n AS OST_ID, 'scratch-OST0000' AS OST_NAME"),
        ("FILESYSTEM_INFO", "n AS FILESYSTEM_NAME"),
    ],
)
def test_a_view_without_an_end_is_refused_and_the_next_database_is_read(
    copy: LmtCopy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, table: str, columns: str
) -> None:
    monkeypatch.setattr(lmt_database, "FEWEST_STEPS", 1_000_000)
    monkeypatch.setattr(lmt_database, "STEPS_PER_BYTE", 1)
    good = small_copy(tmp_path / "good.sqlite3")
    copy.run(f"DROP TABLE {table}")
    copy.run(f"CREATE VIEW {table} AS {ENDLESS} SELECT {columns} FROM t")
    assert recognise(copy.path).name == "lmt-db"
    result = list(SOURCE.captures([copy.path, good.path], PACIFIC))
    refused = [item for entry in result for item in guarded(entry) if entry.origin == str(copy.path)]
    assert all(isinstance(item, Problem) for item in refused)
    assert any("did not end within" in item.reason or "more than" in item.reason for item in refused)
    assert len(samples([item for entry in result if entry.origin == str(good.path) for item in entry.items()])) == 2


def test_a_query_over_a_real_copy_stays_far_below_the_bound(copy: LmtCopy) -> None:
    """Steps per byte of the file: an honest query takes a fraction of what a query may."""
    grow(copy, "2018-01-28 00:01:00", 2000, since=100)
    with lmt_database.SqliteOpening(copy.path).open() as database:
        database.steps, most = 0, 0  # type: ignore[attr-defined]
        database.connection.set_progress_handler(lambda: setattr(database, "steps", database.steps + 1), 1)  # type: ignore[attr-defined]
        for sql in ("SELECT COUNT(*) FROM MDS_OPS_DATA", "SELECT * FROM OST_DATA ORDER BY WRITE_BYTES"):
            database.rows(sql)
            most = max(most, database.steps)  # type: ignore[attr-defined]
    assert most < lmt_database.STEPS_PER_BYTE / 20 * copy.path.stat().st_size


@pytest.mark.parametrize("value", ["'x'", "x'00ff'", "-1", "NULL", "1e300", "9e18"])
@pytest.mark.parametrize(
    ("table", "column"),
    [
        ("TIMESTAMP_INFO", "TS_ID"), ("OST_DATA", "TS_ID"), ("OST_INFO", "OST_ID"), ("OST_DATA", "OST_ID"),
        ("MDS_OPS_DATA", "OPERATION_ID"), ("OPERATION_INFO", "OPERATION_ID"), ("MDS_INFO", "MDS_ID"),
        ("OST_DATA", "READ_BYTES"), ("OST_DATA", "KBYTES_USED"), ("OSS_DATA", "PCT_CPU"), ("OST_INFO", "OST_NAME"),
    ],
)  # fmt: skip
def test_a_value_that_is_none_costs_its_row(copy: LmtCopy, table: str, column: str, value: str) -> None:
    copy.run(f"UPDATE {table} SET {column} = {value} WHERE rowid = 1")
    result = items(copy.path)
    assert "scratch-OST0001" in samples(result)
    assert not any("please report" in problem for problem in problems(result))


def test_times_beyond_any_calendar_are_refused(copy: LmtCopy) -> None:
    copy.run("UPDATE TIMESTAMP_INFO SET TIMESTAMP = '0000-01-01 00:00:00' WHERE TS_ID = 1")
    copy.run("UPDATE TIMESTAMP_INFO SET TIMESTAMP = '9999-12-31 23:59:59' WHERE TS_ID = 2")
    result = items(copy.path)
    assert "TS_ID 1 to 2: TIMESTAMP is not a time such as 2018-01-28 00:00:00" in problems(result)
    assert len(samples(result)["scratch-OST0000"]) == 2


# --- the real thing


def test_the_real_copy_against_its_notes(shared_data: Path, tmp_path: Path) -> None:
    path = shared_data / "lmt-db" / REAL
    assert recognise(path).name == "lmt-db"
    store = Store(tmp_path / "store")
    tally = load(store, path)
    assert (tally.captures, tally.refused, tally.noted, tally.baselines) == (1, 0, 0, 25)
    assert dict(tally.rows) == {
        "target_io": 24 * 60,
        "metadata_ops": 60,
        "target_capacity": 25 * 61,
        "host_load": 25 * 61,
        "target_servers": 25,
    }
    io = stored(store, "target_io", "target", "read_bytes", "write_bytes", "duration_s", filesystem="snx11025")
    assert sum(row[1] for row in io) == 6_347_173_888
    assert sum(row[2] for row in io) == 119_037_925_429
    assert {row[3] for row in io} == {5.0}
    (opens,) = zip(*stored(store, "metadata_ops", "open", filesystem="snx11025"), strict=True)
    assert sum(opens) == 1_529_078
    again = load(store, path)
    assert (again.already_present, dict(again.rows)) == (1, {})


def test_a_reset_and_a_hole_change_no_total_by_more_than_what_was_lost(shared_data: Path, tmp_path: Path) -> None:
    stores = {}
    for name in (REAL, RESET):
        stores[name] = Store(tmp_path / name)
        tally = load(stores[name], shared_data / "lmt-db" / name)
        assert tally.resets == (2 if name == RESET else 0)
        assert tally.refused == 0
    columns = ("target", "epoch_us", "read_bytes", "write_bytes", "duration_s", "after_reset")
    real, reset = (stored(stores[name], "target_io", *columns, filesystem="snx11025") for name in (REAL, RESET))
    assert len(real) - len(reset) == 5  # the hole on OST 5
    touched = {"snx11025-OST0002", "snx11025-OST0006"}  # OST_ID 3 and 7
    assert {row[0] for row in reset if row[5]} == touched
    for target in {row[0] for row in real}:
        before, after = ([row for row in result if row[0] == target] for result in (real, reset))
        lost = {row[1] for row in after if row[5]}
        for direction in (2, 3):
            moved = sum(row[direction] for row in before), sum(row[direction] for row in after)
            assert 0 <= moved[0] - moved[1] <= sum(row[direction] for row in before if row[1] in lost)
    hole = [row for row in reset if row[0] == "snx11025-OST0004" and row[4] != 5.0]
    assert [row[4] for row in hole] == [30.0]


def test_the_real_database_in_two_halves(shared_data: Path, tmp_path: Path) -> None:
    path = shared_data / "lmt-db" / REAL
    half = tmp_path / "half.sqlite3"
    half.write_bytes(path.read_bytes())
    with closing(sqlite3.connect(half)) as connection, connection:
        for table in ("TIMESTAMP_INFO", "OST_DATA", "MDS_DATA", "MDS_OPS_DATA", "OSS_DATA"):
            connection.execute(f"DELETE FROM {table} WHERE TS_ID > 8921928")
    grown, whole = Store(tmp_path / "grown"), Store(tmp_path / "whole")
    load(grown, half)
    assert load(grown, path).older == 0
    load(whole, path)
    for table, key in (("target_io", "write_bytes"), ("metadata_ops", "getattr"), ("target_capacity", "used_bytes")):
        names = ("target", "epoch_us", key)
        assert stored(grown, table, *names, filesystem="snx11025") == stored(
            whole, table, *names, filesystem="snx11025"
        )


def test_the_hosts_of_the_database_serve_its_targets(copy: LmtCopy) -> None:
    rows = [item.values for item in items(copy.path) if isinstance(item, Row) and item.table == "target_servers"]
    assert sorted(str(row["target"]) for row in rows) == ["scratch-MDT0000", "scratch-OST0000", "scratch-OST0001"]
    assert all(row["host"] for row in rows)
