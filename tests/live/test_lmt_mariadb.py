"""An LMT database in a real MariaDB gives exactly what its SQLite copy gives, and its password stays a secret."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import quote

import pytest

from iolens.errors import InputError
from iolens.records import Item, Note, Problem, Rows, Samples
from iolens.sources import ReadOptions
from iolens.sources.lmt.lmt_db import SOURCE
from iolens.sources.reading import sql_database as lmt_database
from iolens.store.store import Store
from tests.live.mariadb import MariaDb
from tests.sources.lmt.test_lmt_db import PACIFIC, set_counters
from tests.sources.lmt_copy import grow, small_copy

pytestmark = pytest.mark.live

TABLES = {
    "target_io": ("source", "target", "epoch_us", "duration_s", "read_bytes", "write_bytes", "after_reset"),
    "metadata_ops": ("source", "target", "epoch_us", "open", "close", "getattr"),
    "target_capacity": ("source", "target", "epoch_us", "used_bytes", "total_bytes", "free_inodes"),
    "host_load": ("source", "host", "epoch_us", "cpu_pct", "memory_pct"),
}


@pytest.fixture
def reader(mariadb: MariaDb, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> MariaDb:
    """The server, with the reader's password where it belongs."""
    monkeypatch.setenv("IOLENS_MYSQL_PASSWORD", mariadb.password)
    monkeypatch.setenv("HOME", str(tmp_path))
    return mariadb


def plain(item: Item) -> tuple[object, ...]:
    if isinstance(item, Samples):
        counters = {name: column.tolist() for name, column in item.counters.items()}
        return item.table, item.target, item.time_us.tolist(), counters
    if isinstance(item, Rows):
        columns = {
            name: getattr(column, "tolist", lambda entry=column: entry)() for name, column in item.columns.items()
        }
        return item.table, str(columns)
    return (item.reason,) if isinstance(item, Problem) else (item,)


def content(store: Store) -> dict[str, list[str]]:
    result = {}
    for table, columns in TABLES.items():
        frame = store.select("snx11025").frame(table).select(*columns).collect("pyarrow").to_native()
        result[table] = sorted(map(repr, frame.to_pylist()))
    return result


@pytest.mark.parametrize("name", ["snx11025_2018-01-28", "SYNTHETIC_counter_reset_and_gap"])
def test_the_server_gives_the_same_rows_as_the_copy(
    shared_data: Path, reader: MariaDb, tmp_path: Path, name: str
) -> None:
    copy = shared_data / "lmt-db" / f"{name}.sqlite3"
    database = f"lmt_{name[:9].lower()}"
    reader.create_lmt(database, copy)
    from_server = list(SOURCE.url_captures([reader.url(database)], PACIFIC))
    from_copy = list(SOURCE.captures([copy], PACIFIC))
    assert [item.identity for item in from_server] == [item.identity for item in from_copy]
    for ours, theirs in zip(from_server, from_copy, strict=True):
        assert list(map(plain, ours.items())) == list(map(plain, theirs.items()))
    stores = {"server": Store(tmp_path / "server"), "copy": Store(tmp_path / "copy")}
    stores["server"].ingest(from_server, "lmt-db")
    stores["copy"].ingest(from_copy, "lmt-db")
    assert content(stores["server"]) == content(stores["copy"])
    again = stores["server"].ingest(SOURCE.captures([copy], PACIFIC), "lmt-db")
    assert (again.already_present, dict(again.rows)) == (1, {})


def test_a_made_up_database_with_zeros_nulls_growth_and_an_hour_that_came_twice(
    reader: MariaDb, tmp_path: Path
) -> None:
    copy = small_copy(tmp_path / "copy.sqlite3", 18, first="2018-11-04 01:58:30")
    grow(copy, "2018-11-04 01:00:00", 800, since=18)
    set_counters(copy, 1, {300: (0, 0), 301: (0, 0), **{ts: (ts, ts) for ts in range(700, 819)}})
    copy.run("UPDATE OST_DATA SET READ_BYTES = NULL WHERE OST_ID = 2 AND TS_ID = 77")
    copy.run("UPDATE OST_INFO SET OFFLINE = 1 WHERE OST_ID = 2")
    reader.create_lmt("filesystem_scratch", copy.path)
    reader.run("DELETE FROM FILESYSTEM_INFO", database="filesystem_scratch")  # the database's name tells it as well
    (ours,) = SOURCE.url_captures([reader.url("filesystem_scratch")], PACIFIC)
    (theirs,) = SOURCE.captures([copy.path], PACIFIC)
    result = list(ours.items())
    assert list(map(plain, result)) == list(map(plain, theirs.items()))
    assert any(isinstance(item, Note) for item in result)
    window = ReadOptions(timezone="America/Los_Angeles", since=datetime(2018, 11, 4, 9, 30, tzinfo=UTC))
    (part,) = SOURCE.url_captures([reader.url("filesystem_scratch")], window)
    first = next(item for item in part.items() if isinstance(item, Samples))
    assert first.time_us[0] == window.since.timestamp() * 1e6


def test_what_the_server_cannot_send_in_one_text_is_read_row_by_row(
    reader: MariaDb, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy = small_copy(tmp_path / "copy.sqlite3", 40)
    reader.create_lmt("filesystem_long", copy.path)
    (theirs,) = SOURCE.captures([copy.path], PACIFIC)
    for longest in (50, 150, 600):  # cut within a number, between numbers, in some columns only
        monkeypatch.setattr(lmt_database, "LONGEST_TEXT", longest)
        (ours,) = SOURCE.url_captures([reader.url("filesystem_long")], PACIFIC)
        assert list(map(plain, ours.items())) == list(map(plain, theirs.items()))


def test_numbers_beyond_signed_64_bits_are_refused_not_wrapped(reader: MariaDb, tmp_path: Path) -> None:
    copy = small_copy(tmp_path / "copy.sqlite3")
    reader.create_lmt("filesystem_huge", copy.path)
    update = f"UPDATE OST_DATA SET WRITE_BYTES = {2**64 - 1} WHERE OST_ID = 1 AND TS_ID = 2"
    reader.run(update, database="filesystem_huge")
    (capture,) = SOURCE.url_captures([reader.url("filesystem_huge")], PACIFIC)
    result = list(capture.items())
    first = next(item for item in result if isinstance(item, Samples))
    assert first.counters["write_bytes"].tolist()[1] is None
    assert [str(item) for item in result if isinstance(item, Problem)] == [
        f"mysql://lmt_reader@127.0.0.1:{reader.port}/filesystem_huge: OST_DATA.WRITE_BYTES of scratch-OST0000:"
        " 1 values are no whole numbers of zero or more"
    ]


def test_a_column_of_type_timestamp_needs_no_zone(reader: MariaDb, tmp_path: Path) -> None:
    copy = small_copy(tmp_path / "copy.sqlite3")
    reader.create_lmt("filesystem_zoned", copy.path)
    reader.run("SET GLOBAL time_zone = '-03:00'")
    try:
        reader.run("ALTER TABLE TIMESTAMP_INFO MODIFY TIMESTAMP timestamp NOT NULL", database="filesystem_zoned")
        (capture,) = SOURCE.url_captures([reader.url("filesystem_zoned")], ReadOptions())
        first = next(item for item in capture.items() if isinstance(item, Samples))
    finally:
        reader.run("SET GLOBAL time_zone = 'SYSTEM'")
    assert first.time_us[0] == datetime(2018, 1, 28, 3, tzinfo=UTC).timestamp() * 1e6


def test_a_wrong_password_is_refused_without_being_said(reader: MariaDb, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("IOLENS_MYSQL_PASSWORD", "guess-work")
    (refused,) = SOURCE.url_captures([reader.url("filesystem_scratch")], PACIFIC)
    with pytest.raises(InputError, match="Access denied for user 'lmt_reader'") as raised:
        list(refused.items())
    assert "guess-work" not in str(raised.value)


def test_a_password_in_the_url_works_and_is_in_no_record(
    reader: MariaDb, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("IOLENS_MYSQL_PASSWORD")
    reader.create_lmt("filesystem_secret", small_copy(tmp_path / "copy.sqlite3").path)
    address = reader.url("filesystem_secret").replace("@", f":{quote(reader.password, safe='')}@", 1)
    store = Store(tmp_path / "store")
    tally = store.ingest(SOURCE.url_captures([address], PACIFIC), "lmt-db")
    assert tally.rows["target_io"] == 6
    secret = reader.password.encode()
    held = [path.read_bytes() for path in (tmp_path / "store").rglob("*") if path.is_file()]
    assert held
    assert not any(secret in item or quote(reader.password, safe="").encode() in item for item in held)
    batches = store.tables.load("batches")
    assert batches is not None
    assert batches.to_pyarrow_table().column("origin").to_pylist() == [reader.url("filesystem_secret")]


def test_reading_takes_no_lock_and_sees_one_state(reader: MariaDb, tmp_path: Path) -> None:
    """What LMT inserts while a day is read does not appear in it."""
    copy = small_copy(tmp_path / "copy.sqlite3", 10)
    reader.create_lmt("filesystem_busy", copy.path)
    (capture,) = SOURCE.url_captures([reader.url("filesystem_busy")], PACIFIC)
    stream = capture.items()
    first = next(item for item in stream if isinstance(item, Samples))
    reader.run("UPDATE OST_DATA SET WRITE_BYTES = WRITE_BYTES + 5", database="filesystem_busy")
    reader.run("DELETE FROM OST_DATA WHERE TS_ID > 5", database="filesystem_busy")
    second = next(item for item in stream if isinstance(item, Samples))
    assert first.target == "scratch-OST0000"
    assert second.target == "scratch-OST0001"
    assert second.counters["write_bytes"].tolist() == [4 * 10**12 + 1000 * n for n in range(10)]
