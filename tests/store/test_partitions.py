"""Tables that grow for years are cut by day or month; those of iolens 0.1 are read as they are, and then cut."""

from __future__ import annotations

import csv
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from iolens.records import Row, Rows
from iolens.schema import TABLES
from iolens.store.delta_log import DeltaLog
from iolens.store.maintenance import compact_store, export_table, store_info, vacuum_store, verify_store
from iolens.store.rollup import retain_raw, roll_up
from iolens.store.store import Store
from iolens.store.tables import data_files
from tests.store.samples import T0, capture, io_sample
from tests.store.writers import CUT_SINCE_0_1, make_table_of_0_1

DAY = 86_400
MIDNIGHT = T0 // DAY * DAY  # 2020-09-13
NAMES = {"jobs": "job_id", "drives": "serial", "runs": "run_id", "run_files": "run_id", "run_ranks": "run_id"}

every_table = pytest.mark.parametrize("name", CUT_SINCE_0_1)


def values(table: str, name: str, day: int, hour: int = 12) -> dict[str, Any]:
    """A row that begins on that day after T0's, and ends two hours later where it has a beginning."""
    begin_us = (MIDNIGHT + day * DAY + hour * 3600) * 1_000_000
    row = {"filesystem": "scratch", "source": "test", "time": begin_us, NAMES[table]: name}
    if any(column.name == "start" for column in TABLES[table].columns):
        row |= {"start": begin_us, "time": begin_us + 2 * 3600 * 1_000_000}
    return row


def row(table: str, name: str, day: int, hour: int = 12) -> Row:
    return Row(table, values(table, name, day, hour))


def at(day: float) -> datetime:
    return datetime.fromtimestamp(MIDNIGHT, UTC) + timedelta(days=day)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    store = Store(tmp_path / "store")
    store.ingest([capture([io_sample(0, 0, 0), io_sample(5, 100, 0)], "io")], "test")
    return store


@pytest.fixture
def older_store(store: Store, name: str) -> Store:
    """A store whose table of that name iolens 0.1 made."""
    make_table_of_0_1(store, name, [values(name, "a", -40), values(name, "b", 0), values(name, "c", 1)])
    return Store(store.url)


def names_in(store: Store, name: str, since: datetime | None = None, until: datetime | None = None) -> list[str]:
    """Names of the rows that begin in a window, by a selection; an export agrees."""
    frame = store.select("scratch", since=since, until=until).frame(name).select(NAMES[name])
    result = sorted(frame.collect(backend="pyarrow").to_native().column(NAMES[name]).to_pylist())
    output = Path(store.url).parent / "export.csv"
    assert export_table(store, name, output, "scratch", since, until) == len(result)
    assert sorted(line[NAMES[name]] for line in csv.DictReader(output.open())) == result
    return result


def folders(store: Store, name: str) -> list[str]:
    handle = store.tables.load(name)
    assert handle is not None
    assert handle.metadata().partition_columns == ["date"]
    return sorted({path.rpartition("/")[0] for path in data_files(handle)})


@every_table
def test_a_row_lies_in_the_directory_of_the_day_or_month_in_which_it_begins(store: Store, name: str) -> None:
    late = [row(name, "a", 0, 23), row(name, "b", 1), row(name, "c", 20)]  # the first ends on the next day
    store.ingest([capture(late, "rows")], "test")
    by_month = ["date=2020-09-01", "date=2020-10-01"]
    by_day = ["date=2020-09-13", "date=2020-09-14", "date=2020-10-03"]
    assert folders(store, name) == (by_month if name == "drives" else by_day)


@every_table
def test_a_window_is_the_same_with_and_without_whole_days_and_opens_only_the_files_it_needs(
    store: Store, name: str
) -> None:
    days = (-20, -13, -12, -1, 0, 1, 17, 18, 60)
    for day in days:
        store.ingest([capture([row(name, f"{day}", day)], f"day {day}")], "test")
    for since, until in [(0, 1), (-12, 18), (-13, -12), (-12.4, 17.6), (0.4, 0.6), (17, 18), (0.6, 0.9)]:
        expected = sorted(f"{day}" for day in days if since <= day + 0.5 < until)
        assert names_in(store, name, at(since), at(until)) == expected, (since, until)
    assert len(store.select("scratch", since=at(0), until=at(1)).snapshot(name).paths) == (
        5 if name == "drives" else 1  # those of September
    )


@every_table
def test_a_table_of_0_1_is_read_without_writing_to_it(older_store: Store, name: str) -> None:
    assert names_in(older_store, name) == ["a", "b", "c"]
    assert names_in(older_store, name, at(0), at(1)) == ["b"]
    assert names_in(older_store, name, at(-50), at(0.7)) == ["a", "b"]
    if name == "jobs":
        assert [item["job_id"] for item in older_store.jobs(at(0), at(1))] == ["b"]
    assert verify_store(older_store).faults == []
    handle = older_store.tables.load(name)
    assert handle is not None
    assert (handle.metadata().partition_columns, len(data_files(handle))) == ([], 3)


@every_table
def test_a_table_of_0_1_is_cut_with_the_first_write_and_keeps_its_marks(older_store: Store, name: str) -> None:
    # The tables of files and ranks had no start: their old rows are placed by their end, two hours later.
    again = older_store.ingest([capture([row(name, "b", 0), row(name, "d", 2)], "new")], "test")
    assert (again.rows[name], again.repeated) == (1, 1)
    days = ["2020-08-04", "2020-09-13", "2020-09-14", "2020-09-15"]
    assert folders(older_store, name) == [
        f"date={day}" for day in (("2020-08-01", "2020-09-01") if name == "drives" else days)
    ]
    assert names_in(older_store, name) == ["a", "b", "c", "d"]
    assert names_in(older_store, name, at(0), at(1)) == ["b"]
    handle = older_store.tables.load(name)
    assert handle is not None
    assert handle.transaction_version("file/old-1") == 1_000_001
    checked = verify_store(older_store)
    assert (checked.faults, checked.unrecorded) == ([], 0)


@every_table
def test_a_writer_that_is_overtaken_while_it_cuts_the_table_looks_again(
    older_store: Store, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another writer cuts the table, and appends to it, after the first has read the old rows."""

    def overtaken(log: DeltaLog, *arguments: Any) -> bool:
        patch.undo()
        Store(older_store.url).ingest([capture([row(name, "d", 2), row(name, "e", 2)], "other")], "test")
        return log.add_entry(*arguments)

    with monkeypatch.context() as patch:
        patch.setattr(DeltaLog, "add_entry", overtaken)
        tally = older_store.ingest([capture([row(name, "e", 2), row(name, "f", 3)], "first")], "test")
    assert (tally.rows[name], tally.repeated) == (1, 1)
    assert names_in(older_store, name) == ["a", "b", "c", "d", "e", "f"]
    checked = verify_store(older_store)
    assert (checked.faults, checked.unrecorded) == ([], 0)


@pytest.mark.parametrize("name", ["run_files", "run_ranks"])
def test_an_old_row_sent_again_with_its_start_is_there_already(store: Store, name: str) -> None:
    """0.1 knew only its end, on the next day: its row is there, and the one sent again is of the day before."""
    old = {key: value for key, value in values(name, "a", 0, 23).items() if key != "start"}
    make_table_of_0_1(store, name, [old])
    again = Store(store.url).ingest([capture([row(name, "a", 0, 23), row(name, "b", 0, 23)], "again")], "test")
    assert (again.rows[name], again.repeated) == (1, 1)
    assert folders(store, name) == ["date=2020-09-13", "date=2020-09-14"]


@every_table
def test_everything_that_looks_after_a_store_goes_on_with_a_table_of_0_1(older_store: Store, name: str) -> None:
    compact_store(older_store)
    assert len(folders(older_store, name)) == (2 if name == "drives" else 3)
    for day in (0, 1):
        older_store.ingest([capture([row(name, f"more {day}", day)], f"more {day}")], "test")
    assert compact_store(older_store).days == (1 if name == "drives" else 2)
    roll_up(older_store)
    assert retain_raw(older_store, 0).kept == []
    assert vacuum_store(older_store, 0, force=True) > 0
    assert names_in(older_store, name) == ["a", "b", "c", "more 0", "more 1"]
    handle = older_store.tables.load(name)
    assert handle is not None
    folder = older_store.tables.folder / name
    left = {str(path.relative_to(folder)) for path in folder.rglob("*.parquet")}
    assert left == set(data_files(handle))
    checked = verify_store(older_store)
    assert (checked.faults, checked.unrecorded) == ([], 0)


def test_a_log_of_12_000_daily_readings_of_a_drive_becomes_a_file_per_month(store: Store) -> None:
    columns = {"time": [day * DAY * 1_000_000 for day in range(12_000)], "serial": "a", "filesystem": "scratch"}
    store.ingest([capture([Rows("drives", columns, 12_000)], "log")], "test")
    assert len(folders(store, "drives")) == 395  # 1970-01 to 2002-11
    (info,) = [table for table in store_info(store)["tables"] if table["name"] == "drives"]
    assert (info["rows"], info["files"], info["days"]) == (12_000, 395, None)


def test_a_window_in_another_zone_finds_the_rows_of_the_utc_day_before(store: Store) -> None:
    store.ingest([capture([row("runs", "a", 0, 23)], "rows")], "test")
    zone = datetime.fromisoformat("2020-09-14T00:30:00+02:00")
    assert names_in(store, "runs", zone, zone + timedelta(hours=1)) == ["a"]
