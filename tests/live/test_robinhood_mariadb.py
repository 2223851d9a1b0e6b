"""A Robinhood database in a real MariaDB gives exactly what its SQLite copy gives, in every version and state."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from iolens.errors import InputError
from iolens.records import Item, Note, Problem, Rows
from iolens.sources import ReadOptions
from iolens.sources.contents.inode_counts import Projects
from iolens.sources.contents.robinhood import PROFILE, SOURCE
from iolens.sources.reading import sql_database as lmt_database
from iolens.store.store import Store
from tests.live.mariadb import HOST, MariaDb
from tests.sources.contents.test_robinhood import BY_ID, BY_PATH, IDS, PLAIN, RULE
from tests.sources.robinhood_copy import AT, V3, V25, MadeUp, made_up, plain_rows
from tests.sources.stored import problems_of, rows_of

pytestmark = pytest.mark.live

# Types as Robinhood 3 itself declares them; owners are numbers where its configuration says so.
TYPES = {
    "id": "VARBINARY(64) PRIMARY KEY",
    "uid": "VARBINARY(127) DEFAULT 'unknown'",
    "gid": "VARBINARY(127) DEFAULT 'unknown'",
    "projid": "INT UNSIGNED DEFAULT 0",
    "size": "BIGINT UNSIGNED DEFAULT 0",
    "blocks": "BIGINT UNSIGNED DEFAULT 0",
    "last_access": "INT UNSIGNED DEFAULT 0",
    "last_mod": "INT UNSIGNED DEFAULT 0",
    "type": "ENUM('symlink', 'dir', 'file', 'chr', 'blk', 'fifo', 'sock') DEFAULT 'file'",
    "nlink": "INT UNSIGNED",
    "md_update": "INT UNSIGNED",
}
NAMES = """id VARBINARY(64), pkn VARBINARY(40) PRIMARY KEY, parent_id VARBINARY(64), name VARBINARY(255),
    path_update INT UNSIGNED, INDEX parent_id_index (parent_id), INDEX id_index (id)"""


@pytest.fixture
def reader(mariadb: MariaDb, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> MariaDb:
    """The server, with the reader's password where it belongs."""
    monkeypatch.setenv("IOLENS_MYSQL_PASSWORD", mariadb.password)
    monkeypatch.setenv("HOME", str(tmp_path))
    return mariadb


def create(
    server: MariaDb,
    database: str,
    made: MadeUp,
    renamed: Mapping[str, str] | None = None,
    types: Mapping[str, str] | None = None,
    leave_out: Sequence[str] = (),
) -> str:
    """A Robinhood database that the reader may read; its address."""
    server.run(f"CREATE DATABASE {database} CHARACTER SET latin1")
    kept = [name for name in V3 if name not in leave_out]
    declared = ", ".join(f"{(renamed or {}).get(name, name)} {({**TYPES, **(types or {})})[name]}" for name in kept)
    server.run(f"CREATE TABLE ENTRIES ({declared})", database=database)
    if made.entries:
        rows = [[entry[name] for name in kept] for entry in made.entries]
        server.run(f"INSERT INTO ENTRIES VALUES ({', '.join(['%s'] * len(kept))})", rows, database)
    if "NAMES" not in leave_out:
        server.run(f"CREATE TABLE NAMES ({NAMES})", database=database)
        names = [[item, str(number), parent, name, 0] for number, (item, parent, name) in enumerate(made.names)]
        if names:
            server.run("INSERT INTO NAMES VALUES (%s, %s, %s, %s, %s)", names, database)
    server.run("CREATE TABLE VARS (varname VARCHAR(255) PRIMARY KEY, value TEXT)", database=database)
    if made.variables:
        server.run("INSERT INTO VARS VALUES (%s, %s)", list(made.variables.items()), database)
    server.run(f"GRANT SELECT ON {database}.* TO {server.reader}@'{HOST}'")
    return server.url(database)


def read(url: str, options: ReadOptions = PLAIN) -> list[Item]:
    (capture,) = SOURCE.url_captures([url], options)
    return list(capture.items())


def plain(items: Sequence[Item]) -> list[object]:
    """All items but the address, in their order."""
    return [
        (type(item), item.reason) if isinstance(item, Problem) else (item.count, item.columns)  # type: ignore[union-attr]
        for item in items
    ]


@pytest.mark.parametrize(("number", "options"), list(enumerate([PLAIN, BY_ID, BY_PATH])))
def test_the_server_gives_what_the_copy_gives(
    reader: MariaDb, tmp_path: Path, number: int, options: ReadOptions
) -> None:
    made = made_up(21, 1500)
    copy = made.write(tmp_path / "copy.sqlite3")
    url = create(reader, f"robinhood_same{number}", made)
    (ours,), (theirs,) = SOURCE.url_captures([url], options), SOURCE.captures([copy], options)
    assert ours.identity == theirs.identity
    result = list(ours.items())
    assert plain(result) == plain(list(theirs.items()))
    assert problems_of(result) == []
    if options is not PLAIN:
        rule, mount = (RULE, "/scratch") if options is BY_PATH else (IDS, None)
        assert plain_rows(result) == made.counted(Projects(rule), mount)


def test_the_shared_copy_on_a_server(shared_data: Path, reader: MariaDb, tmp_path: Path) -> None:
    copy = shared_data / "robinhood" / "SYNTHETIC_robinhood_entries.sqlite3"
    made = MadeUp()
    lacking = ("projid", "nlink", "md_update")
    with closing(sqlite3.connect(f"file:{copy}?mode=ro", uri=True)) as database:
        database.row_factory = sqlite3.Row
        made.entries = [dict(row) for row in database.execute("SELECT * FROM ENTRIES")]
        made.names = [tuple(row) for row in database.execute("SELECT id, parent_id, name FROM NAMES")]
    options = replace(BY_PATH, at=datetime(2024, 11, 1, tzinfo=UTC))
    for number, (mine, types) in enumerate([(options, {}), (replace(PLAIN, at=options.at), {"uid": "INT"})]):
        url = create(reader, f"robinhood_shared{number}", made, types=types, leave_out=lacking)
        (ours,), (theirs,) = SOURCE.url_captures([url], mine), SOURCE.captures([copy], mine)
        assert ours.identity == theirs.identity
        result = list(ours.items())
        assert plain(result) == plain(list(theirs.items()))
        sizes = [row for row in rows_of(result, "contents") if row["histogram"] == "size"]
        assert [sum(row[name] for row in sizes) for name in ("count", "bytes", "allocated_bytes")] == [
            8000,
            130307117841,
            130305859584,
        ]


def test_columns_of_version_2_5_and_texts_that_ignore_case(reader: MariaDb) -> None:
    made = made_up(22, 200)
    types = {"uid": "VARCHAR(127) CHARACTER SET utf8mb4", "gid": "VARCHAR(127)"}
    url = create(reader, "robinhood_old", made, V25, types)
    assert plain_rows(read(url, BY_ID)) == made.counted(Projects(IDS))


def test_a_version_without_names_or_project_ids(reader: MariaDb) -> None:
    made = made_up(23, 200)
    url = create(reader, "robinhood_nameless", made, leave_out=["NAMES", "projid"])
    result = read(url, BY_PATH)
    assert [item.reason for item in result if isinstance(item, Note)] == [
        "no table NAMES tells paths: no directory rule finds a project",
        "NAMES does not tell which directory a name is in: there is no histogram of directory widths",
    ]
    assert {row["project"] for row in rows_of(result, "contents")} == {None}


def test_nulls_huge_sizes_and_times_of_zero(reader: MariaDb, tmp_path: Path) -> None:
    made = made_up(24, 50)
    made.add(uid="null", size=None)
    made.add(uid="blockless", blocks=None)
    made.add(uid="timeless", last_access=None, last_mod=None)
    made.add(uid="old", last_access=0, last_mod=0)
    made.add(uid=None)
    copy = made.write(tmp_path / "copy.sqlite3")
    made.add(uid="huge", size=2**64 - 1)
    made.add(uid="full", blocks=2**64 - 1)
    url = create(reader, "robinhood_odd", made)
    for options in (BY_ID, BY_PATH):
        (capture,) = SOURCE.captures([copy], options)
        ours, theirs = read(url, options), list(capture.items())
        reported = [str(row) for row in rows_of(ours, "contents") if row["owner"] not in ("huge", "full")]
        assert reported == [str(row) for row in rows_of(theirs, "contents")]
        assert sorted(set(problems_of(ours)) - set(problems_of(theirs))) == [
            "ENTRIES.blocks: 1 values are no whole numbers from 0 to 2^63-1: the bins they are in tell no allocated"
            " bytes",
            "ENTRIES.size: 1 values are no whole numbers from 0 to 2^63-1: those entries left out",
        ]
        full = [row for row in rows_of(ours, "contents") if row["owner"] == "full"]
        assert {(row["bytes"], row["allocated_bytes"]) for row in full} == {(100, None)}


def test_signed_columns_may_be_negative(reader: MariaDb) -> None:
    made = MadeUp()
    made.add(size=-1)
    made.add(size=5)
    result = read(create(reader, "robinhood_negative", made, types={"size": "BIGINT"}))
    assert problems_of(result) == [
        "ENTRIES.size: 1 values are no whole numbers from 0 to 2^63-1: those entries left out"
    ]
    assert [row["bytes"] for row in rows_of(result, "contents") if row["histogram"] == "size"] == [5]


def test_empty_tables(reader: MariaDb) -> None:
    result = read(create(reader, "robinhood_empty", MadeUp()))
    assert [item.reason for item in result if isinstance(item, Problem)][-1] == "no entry that could be counted"
    assert not any(isinstance(item, Rows) for item in result)


def test_the_time_is_reported_or_the_servers_own(reader: MariaDb) -> None:
    made = made_up(25, 20)
    url = create(reader, "robinhood_clock", made, leave_out=["md_update"])
    before = datetime.now(UTC).timestamp()
    result = read(url, ReadOptions())
    assert isinstance(result[0], Note)
    assert "ages count from now, or from --at" in result[0].reason
    (time,) = {row["time"] for row in rows_of(result, "contents")}
    assert int(before) * 1_000_000 <= time <= datetime.now(UTC).timestamp() * 1_000_000
    assert {row["filesystem"] for row in rows_of(result, "contents")} == {"clock"}
    reader.run("INSERT INTO VARS VALUES ('LastScanEndTime', '1740830400')", database="robinhood_clock")
    assert {row["time"] for row in rows_of(read(url, ReadOptions()), "contents")} == {AT.timestamp() * 1_000_000}


def test_a_user_that_may_read_the_totals_alone(reader: MariaDb) -> None:
    url = create(reader, "robinhood_totals", made_up(26, 20))
    profile = ", ".join(f"{name} BIGINT UNSIGNED DEFAULT 0" for name in PROFILE)
    totals = "size BIGINT UNSIGNED, blocks BIGINT UNSIGNED, `count` BIGINT UNSIGNED"
    key = "uid VARBINARY(127), gid VARBINARY(127), type ENUM('dir', 'file')"
    reader.run(f"CREATE TABLE ACCT_STAT ({key}, {totals}, {profile})", database="robinhood_totals")
    rows = [["ada", "g", "file", 2**41, 16, 2, 1, 1], ["bob", "g", "file", 2**64 - 1, 8, 1, 1, 0]]
    columns = "uid, gid, type, size, blocks, `count`, sz0, sz1T"
    insert = f"INSERT INTO ACCT_STAT ({columns}) VALUES (%s, %s, %s, %s, %s, %s, %s, %s)"
    reader.run(insert, rows, "robinhood_totals")
    assert sum(row["count"] for row in rows_of(read(url), "contents") if row["histogram"] == "size") == 20
    reader.run(f"REVOKE SELECT ON robinhood_totals.* FROM {reader.reader}@'{HOST}'")
    reader.run(f"GRANT SELECT ON robinhood_totals.ACCT_STAT TO {reader.reader}@'{HOST}'")
    result = read(url)
    sums = [
        (row["owner"], row["histogram"], row["bin"], row["count"], row["bytes"]) for row in rows_of(result, "contents")
    ]
    assert sums == [
        ("ada", "size", 0, 1, None),
        ("ada", "size", None, 1, None),
        ("ada", "total", None, 2, 2**41),
        ("bob", "size", 0, 1, None),
        ("bob", "total", None, 1, None),
    ]
    assert problems_of(result) == ["ACCT_STAT: file of bob: a total is no whole number from 0 to 2^63-1: not reported"]


def test_a_wrong_password_is_refused_without_being_said(reader: MariaDb, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("IOLENS_MYSQL_PASSWORD", "guess-work")
    (refused,) = SOURCE.url_captures([reader.url("robinhood_any")], PLAIN)
    with pytest.raises(InputError, match="Access denied for user 'lmt_reader'") as raised:
        list(refused.items())
    assert "guess-work" not in str(raised.value)


def test_a_password_in_the_url_works_and_is_in_no_record(
    reader: MariaDb, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("IOLENS_MYSQL_PASSWORD")
    url = create(reader, "robinhood_secret", made_up(27, 30))
    address = url.replace("@", f":{quote(reader.password, safe='')}@", 1)
    store = Store(tmp_path / "store")
    tally = store.ingest(SOURCE.url_captures([address], BY_PATH), "robinhood")
    assert (tally.refused, tally.rows["contents"] > 30) == (0, True)
    again = store.ingest(SOURCE.url_captures([url], BY_PATH), "robinhood")
    assert again.refused == 1  # no password at all
    held = [path.read_bytes() for path in (tmp_path / "store").rglob("*") if path.is_file()]
    assert not any(reader.password.encode() in content for content in held)


def test_a_state_is_read_whole_while_robinhood_goes_on(reader: MariaDb, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between the questions of one reading an entry is added: none of the answers has it."""
    made = made_up(28, 100)
    url = create(reader, "robinhood_busy", made)
    real = lmt_database._Mysql.batches
    added: list[int] = []

    def meddle(self: Any, sql: str, parameters: Sequence[object] = ()) -> Iterator[list[tuple[Any, ...]]]:
        yield from real(self, sql, parameters)
        added.append(len(added))
        reader.run(
            "INSERT INTO ENTRIES (id, uid, last_access, last_mod) VALUES (%s, 'late', 1, 1)",
            [[f"late{len(added)}"]],
            "robinhood_busy",
        )

    monkeypatch.setattr(lmt_database._Mysql, "batches", meddle)
    result = read(url, BY_ID)
    assert len(added) == 4  # size, atime, mtime, width
    assert plain_rows(result) == made.counted(Projects(IDS))
    assert plain_rows(read(url, BY_ID)) != plain_rows(result)


def test_a_server_that_goes_away_leaves_nothing_half_counted(
    reader: MariaDb, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between two questions; then amid an answer that is too long to be on its way already."""
    url = create(reader, "robinhood_gone", made_up(29, 300))
    entries = "id, uid, size, blocks, last_access, last_mod, type, md_update"
    values = "CONCAT('0x1:', seq, ':0x0'), 'ada', seq, 1, 1, 1, 'file', 1"
    reader.run(f"INSERT INTO ENTRIES ({entries}) SELECT {values} FROM seq_1_to_30000", database="robinhood_gone")
    names = "CONCAT('0x1:', seq, ':0x0'), LPAD(seq, 40, '0'), '0x200000007:0x1:0x0', RPAD(seq, 250, 'x'), 0"
    reader.run(f"INSERT INTO NAMES SELECT {names} FROM seq_1_to_30000", database="robinhood_gone")
    real = lmt_database._Mysql.batches
    asked: list[str] = []

    def cut(self: Any, sql: str, parameters: Sequence[object] = ()) -> Iterator[list[tuple[Any, ...]]]:
        asked.append(sql)
        for place, batch in enumerate(real(self, sql, parameters)):
            if len(asked) == 2 and place == 1:
                reader.run(f"KILL CONNECTION {self.connection.thread_id()}")
            yield batch
        if len(asked) == 1 and "place" in sql:
            reader.run(f"KILL CONNECTION {self.connection.thread_id()}")

    monkeypatch.setattr(lmt_database, "BATCH_ROWS", 100)
    for options in (BY_ID, BY_PATH):
        asked.clear()
        store = Store(tmp_path / ("paths" if options is BY_PATH else "counted"))
        captures = list(SOURCE.url_captures([url], options))
        monkeypatch.setattr(lmt_database._Mysql, "batches", cut)
        tally = store.ingest(captures, "robinhood")
        monkeypatch.setattr(lmt_database._Mysql, "batches", real)
        assert len(asked) == 2
        assert (dict(tally.rows), tally.refused) == ({}, 1)
        assert "MySQL: " in tally.problems[0].reason
        assert str(tally.problems[0].place) == url
        again = store.ingest(SOURCE.url_captures([url], options), "robinhood")
        assert again.rows["contents"] == len(rows_of(read(url, options), "contents"))
