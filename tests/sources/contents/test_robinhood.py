"""Robinhood databases: what the database counts is what counting one by one gives; versions, damage, paths."""

from __future__ import annotations

import pickle
import sqlite3
from collections import Counter
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from iolens.config import ProjectRule
from iolens.errors import InputError, UsageError
from iolens.records import Item, Note, Problem, Rows
from iolens.sources import recognise
from iolens.sources.contents import robinhood_paths
from iolens.sources.contents.inode_counts import AGES, POWERS, Projects
from iolens.sources.contents.robinhood import PROFILE, PROFILE_BINS, SOURCE
from iolens.sources.contents.robinhood_entries import bin_place
from iolens.sources.reading import sql_database as lmt_database
from iolens.sources.reading.options import ReadOptions
from iolens.store.store import Store
from tests.sources.robinhood_copy import AT, AT_S, DAY_S, ROOT, V25, MadeUp, made_up, plain_rows
from tests.sources.stored import items_of, problems_of, rows_of

PLAIN = ReadOptions(filesystem="scratch", at=AT)
IDS = ProjectRule(ids={"5001": "climate"})
RULE = ProjectRule(("/scratch/n1/{project}", "/scratch/{project}"), {"5001": "climate"})
BY_PATH = ReadOptions(filesystem="scratch", at=AT, projects=RULE, settings={"mount": "/scratch"})
BY_ID = ReadOptions(filesystem="scratch", at=AT, projects=IDS)


def read(path: Path, options: ReadOptions = PLAIN) -> list[Item]:
    return items_of("robinhood", path, options)


def contents(items: list[Item], histogram: str) -> list[dict[str, Any]]:
    return [row for row in rows_of(items, "contents") if row["histogram"] == histogram]


def change(path: Path, sql: str, *parameters: object) -> None:
    with closing(sqlite3.connect(path)) as database:
        database.execute(sql, parameters)
        database.commit()


def test_places_of_bins_are_those_of_a_count_one_by_one() -> None:
    """Every end of every bin, and what is just beside it."""
    sizes = sorted({max(0, end + step) for end in POWERS for step in (-1, 0, 1)} | {2**63 - 1})
    times = sorted({AT_S - end + step for end in AGES for step in (-1, 0, 1)} | {0})
    with closing(sqlite3.connect(":memory:")) as database:
        for name, ends, values in (("size", POWERS, sizes), ("atime", AGES, [AT_S - time for time in times])):
            sql = f"SELECT {bin_place('v', name, AT_S * 1_000_000)} FROM (SELECT ? AS v)"
            for value in values:
                reported = value if name == "size" else AT_S - value
                expected = next((place for place, end in enumerate(ends) if value <= end), len(ends))
                assert database.execute(sql, (reported,)).fetchone()[0] == expected, (name, value)


@pytest.mark.parametrize("seed", range(3))
def test_the_database_counts_as_one_by_one(tmp_path: Path, seed: int) -> None:
    made = made_up(seed)
    path = made.write(tmp_path / "copy.sqlite3")
    assert recognise(path).name == "robinhood"
    result = read(path, BY_ID)
    assert plain_rows(result) == made.counted(Projects(IDS))
    assert problems_of(result) == []
    assert {row["project"] for row in rows_of(result, "contents")} == {None, "climate", "77"}


@pytest.mark.parametrize("seed", range(3))
def test_paths_tell_projects(tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """In batches that end within an entry's names, and with a memory of one directory."""
    monkeypatch.setattr(lmt_database, "BATCH_ROWS", 7)
    monkeypatch.setattr(robinhood_paths, "BATCH_ROWS", 5)
    monkeypatch.setattr(robinhood_paths, "_REMEMBERED", 1)
    monkeypatch.setattr(robinhood_paths, "_ASKED_AT_ONCE", 2)
    made = made_up(seed)
    result = read(made.write(tmp_path / "copy.sqlite3"), BY_PATH)
    assert plain_rows(result) == made.counted(Projects(RULE), "/scratch")
    assert {"n2", "n3", "climate"} <= {row["project"] for row in rows_of(result, "contents")}
    assert problems_of(result) == []


def test_streaming_without_a_match_equals_the_count_by_the_database(tmp_path: Path) -> None:
    path = made_up(5).write(tmp_path / "copy.sqlite3")
    elsewhere = ReadOptions(
        filesystem="scratch",
        at=AT,
        projects=ProjectRule(("/other/{project}",), IDS.ids),
        settings={"mount": "/scratch"},
    )
    assert plain_rows(read(path, elsewhere)) == plain_rows(read(path, BY_ID))


def test_damage_is_reported_alike_by_both_ways_of_counting(tmp_path: Path) -> None:
    made = made_up(6, 60)
    for number, values in enumerate(
        [
            {"size": None},
            {"size": -5},
            {"size": "many"},
            {"blocks": None},
            {"blocks": 2**60},
            {"last_access": None},
            {"last_mod": "yesterday"},
            {"type": "door"},
            {"type": None},
            {"last_access": 0, "last_mod": 0},
            {"size": None, "blocks": None, "last_access": None, "last_mod": None},
        ]
    ):
        made.add(name=f"bad{number}", uid=f"owner{number}", **values)
    path = made.write(tmp_path / "copy.sqlite3")
    by_id, by_path = read(path, BY_ID), read(path, BY_PATH)
    expected = [
        "ENTRIES.type 'door' is not known: 1 entries left out",
        "ENTRIES.type None is not known: 1 entries left out",
        "ENTRIES.last_access: not reported for 1 entries: not in the histogram of access times",
        "ENTRIES.blocks: 1 values are no whole numbers from 0 to 2^63-1: the bins they are in tell no allocated bytes",
        "ENTRIES.blocks: not reported for 1 entries: the bins they are in tell no allocated bytes",
        "ENTRIES.last_mod: 1 values are no whole numbers from 0 to 2^63-1: not in the histogram of modification times",
        "ENTRIES.size: 2 values are no whole numbers from 0 to 2^63-1: those entries left out",
        "ENTRIES.size: not reported for 2 entries: those entries left out",
    ]
    assert sorted(problems_of(by_id)) == sorted(expected)
    assert sorted(problems_of(by_path)) == sorted(expected)
    notes = [item.reason for item in by_id if isinstance(item, Note)]
    assert sorted(notes) == sorted(
        item for item in expected if "not reported" in item
    )  # nothing wrong: not looked up yet
    sizes = {row["owner"]: row for row in contents(by_id, "size")}
    assert not {"owner0", "owner1", "owner2", "owner7", "owner8", "owner10"} & sizes.keys()
    assert (sizes["owner3"]["bytes"], sizes["owner3"]["allocated_bytes"]) == (100, None)
    assert {row["owner"] for row in contents(by_id, "atime")} >= {"owner4", "owner6", "owner9"}
    assert not {"owner5", "owner10"} & {row["owner"] for row in contents(by_id, "atime")}
    (ancient,) = (row for row in contents(by_id, "mtime") if row["owner"] == "owner9")
    assert (ancient["bin_from"], ancient["bin"]) == (3650 * DAY_S, None)  # 1970 is what it says, not "unknown"
    assert all_projects(by_id) == all_projects(by_path)


def all_projects(items: list[Item]) -> Counter[tuple[Any, ...]]:
    """Inodes and bytes by bin, whatever the project."""
    sums: Counter[tuple[Any, ...]] = Counter()
    for row in rows_of(items, "contents"):
        key = row["owner"], row["inode_type"], row["histogram"], row["bin"]
        sums[*key, "inodes"] += row["count"]
        sums[*key, "bytes"] += row["bytes"] or 0
    return sums


def test_columns_of_version_2_5_say_the_same(tmp_path: Path) -> None:
    made = made_up(7)
    path = made.write(tmp_path / "copy.sqlite3", V25)
    assert plain_rows(read(path, BY_ID)) == made.counted(Projects(IDS))


def test_owners_may_be_numbers(tmp_path: Path) -> None:
    made = MadeUp()
    for uid in (1000, 1000, 0, "1000"):
        made.add(uid=uid)
    result = contents(read(made.write(tmp_path / "copy.sqlite3")), "size")
    assert {row["owner"]: row["count"] for row in result} == {"1000": 3, "0": 1}


def test_owners_that_differ_in_case_alone_are_two(tmp_path: Path) -> None:
    path = made_up(1, 5).write(tmp_path / "copy.sqlite3")
    change(path, "DROP TABLE ENTRIES")
    change(path, "CREATE TABLE ENTRIES (id, uid TEXT COLLATE NOCASE, size, blocks, last_access, last_mod, type)")
    for uid in ("ada", "Ada", "ada "):
        change(path, "INSERT INTO ENTRIES VALUES ('1', ?, 1, 1, 1, 1, 'file')", uid)
    assert {row["owner"] for row in contents(read(path), "size")} == {"ada", "Ada", "ada "}


def test_what_a_copy_lacks_is_said_and_nothing_is_made_of_it(tmp_path: Path) -> None:
    made = made_up(8, 50)
    lacking = ("uid", "projid", "blocks", "last_access", "last_mod", "md_update", "NAMES")
    path = made.write(tmp_path / "copy.sqlite3", leave_out=lacking)
    result = items_of("robinhood", path, BY_PATH)
    assert problems_of(result) == [
        "no table NAMES tells paths: no directory rule finds a project",
        "ENTRIES has no column uid: owners are not reported",
        "ENTRIES has no column blocks: allocated bytes are not reported",
        "ENTRIES has no column last_access: there is no histogram of access times",
        "ENTRIES has no column last_mod: there is no histogram of modification times",
        "NAMES does not tell which directory a name is in: there is no histogram of directory widths",
    ]
    assert all(isinstance(item, Note) for item in result if isinstance(item, Problem))
    rows = rows_of(result, "contents")
    assert {(row["owner"], row["project"], row["histogram"], row["allocated_bytes"]) for row in rows} == {
        (None, None, "size", None)
    }
    assert sum(row["count"] for row in rows) == 50


@pytest.mark.parametrize("column", ["size", "type"])
def test_a_table_without_what_is_counted_is_refused(tmp_path: Path, column: str) -> None:
    path = made_up(1, 5).write(tmp_path / "copy.sqlite3", leave_out=[column])
    assert not SOURCE.recognises(path, path.read_bytes())
    with pytest.raises(InputError, match=f"table ENTRIES has no column {column}"):
        read(path)


def test_other_databases_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "other.sqlite3"
    change(path, "CREATE TABLE ENTRIES_OF_A_DIARY (size, type)")
    assert not SOURCE.recognises(path, path.read_bytes())
    with pytest.raises(InputError, match="neither a table ENTRIES nor ACCT_STAT"):
        read(path)


def test_a_copy_that_was_cut_is_refused_whole(tmp_path: Path) -> None:
    path = made_up(2, 3000).write(tmp_path / "copy.sqlite3")
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) * 2 // 3])
    with pytest.raises(InputError, match="SQLite: database disk image is malformed"):
        read(path)


def test_an_empty_table_gives_no_rows_and_says_so(tmp_path: Path) -> None:
    result = read(MadeUp().write(tmp_path / "copy.sqlite3"))
    assert problems_of(result) == ["no entry that could be counted"]
    assert not any(isinstance(item, Rows) for item in result)


def test_sums_larger_than_an_integer_take_several_rows_and_are_not_wrapped(tmp_path: Path) -> None:
    made = MadeUp()
    for _ in range(3):
        made.add(size=2**62 + 1)
    result = read(made.write(tmp_path / "copy.sqlite3"))
    large = [row for row in contents(result, "size") if row["bin_from"] == 2**62]
    assert [row["piece"] for row in large] == [1, 2]
    assert (sum(row["count"] for row in large), sum(row["bytes"] for row in large)) == (3, 3 * (2**62 + 1))
    assert problems_of(result) == []


def test_hard_links_count_once_and_belong_to_their_first_name(tmp_path: Path) -> None:
    made = MadeUp()
    first, second = made.add(name="alpha", type="dir"), made.add(name="beta", type="dir")
    item = made.add(parent=second, name="a", size=7)
    made.link(item, first, "z")
    path = made.write(tmp_path / "copy.sqlite3")
    change(path, "CREATE INDEX by_id ON NAMES (id)")  # with it SQLite gives the names as they were put in
    result = contents(read(path, BY_PATH), "size")
    assert [(row["project"], row["count"], row["bytes"]) for row in result if row["inode_type"] == "file"] == [
        ("alpha", 1, 7)
    ]
    widths = contents(read(path), "width")
    assert [(row["bin"], row["count"], row["bytes"]) for row in widths] == [(1, 2, None)]


def test_a_file_beside_the_projects_is_of_none(tmp_path: Path) -> None:
    made = MadeUp()
    made.add(name="projects", type="dir")
    made.add(name="README")
    result = contents(read(made.write(tmp_path / "copy.sqlite3"), BY_PATH), "size")
    assert {(row["inode_type"], row["project"]) for row in result} == {("dir", "projects"), ("file", None)}


def test_names_that_are_whole_paths(tmp_path: Path) -> None:
    made = MadeUp()
    made.add("", "proj1", type="dir")
    made.add("", "proj1/deep/down/file")
    made.add("", "proj2/file")
    made.add("", "file")
    result = read(made.write(tmp_path / "copy.sqlite3"), BY_PATH)
    projects = Counter((row["inode_type"], row["project"]) for row in contents(result, "size"))
    assert projects == {("dir", "proj1"): 1, ("file", "proj1"): 1, ("file", "proj2"): 1, ("file", None): 1}
    assert "NAMES does not tell which directory a name is in" in problems_of(result)[-1]


def test_directories_that_hang_nowhere_are_reported(tmp_path: Path) -> None:
    made = MadeUp()
    made.add(name="alpha", type="dir")
    lost = made.add(parent="0x1:0x99:0x0", name="beta", type="dir")
    made.add(parent=lost, name="file", projid=5001)
    result = read(made.write(tmp_path / "copy.sqlite3"), BY_PATH)
    assert problems_of(result) == [
        "1 directories hang below none that is known: no directory rule finds a project there"
    ]
    projects = {(row["inode_type"], row["project"]) for row in contents(result, "size")}
    assert projects == {("dir", "alpha"), ("dir", None), ("file", "climate")}


def test_a_root_that_is_not_lustres(tmp_path: Path) -> None:
    made = MadeUp()
    made.add("12:2", "alpha", type="dir")
    path = made.write(tmp_path / "copy.sqlite3")
    assert {row["project"] for row in contents(read(path, BY_PATH), "size")} == {"alpha"}
    change(path, "INSERT INTO ENTRIES SELECT 'x', uid, gid, projid, size, blocks, 0, 0, type, 1, 1 FROM ENTRIES")
    change(path, "INSERT INTO NAMES VALUES ('x', '12:3', 'beta')")
    with pytest.raises(InputError, match="2 directories could be the root of the file system"):
        read(path, BY_PATH)
    stated = ReadOptions("scratch", at=AT, projects=RULE, settings={"mount": "/scratch", "root": "12:3"})
    assert {row["project"] for row in contents(read(path, stated), "size")} == {"beta", None}


def test_rules_need_a_mount(tmp_path: Path) -> None:
    made = made_up(1, 20)
    without = ReadOptions("scratch", at=AT, projects=RULE)
    with pytest.raises(InputError, match="nothing here tells where the file system is mounted"):
        read(made.write(tmp_path / "unknown.sqlite3"), without)
    made.variables["FS_Path"] = "/scratch"
    assert plain_rows(read(made.write(tmp_path / "reported.sqlite3"), without)) == made.counted(
        Projects(RULE), "/scratch"
    )
    off = ReadOptions("scratch", at=AT, projects=RULE, settings={"directories": False})
    assert plain_rows(read(tmp_path / "unknown.sqlite3", off)) == made.counted(Projects(IDS))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"mounted": "/x"}, "unknown key sources.robinhood.mounted; expected one of mount, root, directories"),
        ({"mount": 7}, "sources.robinhood.mount = 7; expected a text in quotes"),
        ({"mount": "scratch"}, "sources.robinhood.mount = 'scratch'; expected an absolute path"),
        ({"directories": "no"}, "sources.robinhood.directories = 'no'; expected true or false"),
    ],
)
def test_settings_are_checked(tmp_path: Path, settings: dict[str, Any], message: str) -> None:
    path = made_up(1, 5).write(tmp_path / "copy.sqlite3")
    with pytest.raises(InputError) as raised:
        read(path, ReadOptions("scratch", settings=settings))
    assert message in str(raised.value)


def times(items: list[Item]) -> set[int]:
    return {row["time"] for row in rows_of(items, "contents")}


def test_the_time_is_the_last_that_robinhood_looked(tmp_path: Path) -> None:
    made = made_up(3, 20)
    unreported = ReadOptions("scratch")
    path = made.write(tmp_path / "a.sqlite3")
    assert times(read(path, unreported)) == {(AT_S - 60) * 1_000_000}
    assert problems_of(read(path, unreported)) == []
    made.variables["LastScanEndTime"] = str(AT_S + 5)
    assert times(read(made.write(tmp_path / "b.sqlite3"), unreported)) == {(AT_S + 5) * 1_000_000}
    made.add(md_update=2**31 * 3)  # a clock that was wrong
    made.variables["LastScanEndTime"] = "soon"
    assert times(read(made.write(tmp_path / "c.sqlite3"), unreported)) == {(AT_S - 60) * 1_000_000}
    assert times(read(tmp_path / "c.sqlite3", PLAIN)) == {AT_S * 1_000_000}


def test_without_a_time_it_is_the_files_and_said(tmp_path: Path) -> None:
    import os

    path = made_up(3, 20).write(tmp_path / "copy.sqlite3", leave_out=["md_update"])
    os.utime(path, (1_700_000_000, 1_700_000_000))
    result = read(path, ReadOptions("scratch"))
    assert times(result) == {1_700_000_000_000_000}
    assert isinstance(result[0], Note)
    assert "ages count from when the file was written, or from --at" in result[0].reason


@pytest.mark.parametrize("name", ["robinhood_home", "rbh_home"])
def test_the_database_is_called_after_the_file_system(tmp_path: Path, name: str) -> None:
    path = made_up(3, 5).write(tmp_path / f"{name}.sqlite3")
    assert {row["filesystem"] for row in rows_of(read(path, ReadOptions(at=AT)), "contents")} == {"home"}
    other = path.rename(tmp_path / "backup.sqlite3")
    with pytest.raises(InputError, match="--filesystem"):
        read(other, ReadOptions(at=AT))


def identity(path: Path, options: ReadOptions) -> str:
    (capture,) = SOURCE.captures([path], options)
    return capture.identity


def test_the_identity_is_the_state_and_what_was_said(tmp_path: Path) -> None:
    made = made_up(4, 50)
    first, copy = made.write(tmp_path / "first.sqlite3"), made.write(tmp_path / "copy.sqlite3")
    assert identity(first, PLAIN) == identity(copy, PLAIN)
    others = [ReadOptions("home", at=AT), ReadOptions("scratch"), BY_ID, BY_PATH]
    assert len({identity(first, other) for other in (PLAIN, *others)}) == 5
    change(copy, "UPDATE ENTRIES SET last_mod = last_mod + 1 WHERE id = ?", made.entries[7]["id"])
    assert identity(first, PLAIN) != identity(copy, PLAIN)


def test_the_same_state_twice_adds_nothing(tmp_path: Path) -> None:
    store = Store(tmp_path / "store")
    path = made_up(4, 50).write(tmp_path / "copy.sqlite3")
    first = store.ingest(SOURCE.captures([path], BY_ID), "robinhood")
    again = store.ingest(SOURCE.captures([path], BY_ID), "robinhood")
    assert first.rows["contents"] == len(rows_of(read(path, BY_ID), "contents"))
    assert (first.refused, again.already_present, dict(again.rows)) == (0, 1, {})


def test_no_path_and_no_id_of_an_entry_leaves_the_database(tmp_path: Path) -> None:
    made = made_up(4, 200)
    rows = rows_of(read(made.write(tmp_path / "copy.sqlite3"), BY_PATH), "contents")
    texts = {value for row in rows for value in row.values() if isinstance(value, str)}
    projects = {row["project"] for row in rows if row["project"]}
    owners, types = {str(entry["uid"]) for entry in made.entries}, {entry["type"] for entry in made.entries}
    assert texts == owners | types | projects | {"scratch", "size", "atime", "mtime", "width"}
    assert len(projects) < 60  # top directories and project ids


def test_a_capture_travels_and_can_be_read_again(tmp_path: Path) -> None:
    path = made_up(4, 50).write(tmp_path / "copy.sqlite3")
    (capture,) = SOURCE.captures([path], BY_PATH)
    travelled = pickle.loads(pickle.dumps(capture))
    assert plain_rows(list(capture.items())) == plain_rows(list(travelled.items())) == plain_rows(list(capture.items()))


def test_no_space_for_the_directories_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = made_up(4, 50).write(tmp_path / "copy.sqlite3")

    def full(*_: object) -> None:
        raise sqlite3.OperationalError("database or disk is full")

    monkeypatch.setattr(robinhood_paths.Directories, "load", full)
    with pytest.raises(InputError, match="cannot be kept on this machine: database or disk is full"):
        read(path, BY_PATH)


# ACCT_STAT alone

ACCOUNTS = ("uid", "gid", "type", "size", "blocks", "count", *(name.lower() for name in PROFILE))


def accounts(path: Path, *rows: tuple[object, ...], columns: tuple[str, ...] = ACCOUNTS) -> Path:
    change(path, f"CREATE TABLE ACCT_STAT ({', '.join(columns)})")
    for row in rows:
        change(path, f"INSERT INTO ACCT_STAT VALUES ({', '.join('?' * len(columns))})", *row)
    return path


def test_bins_of_the_profile() -> None:
    assert PROFILE_BINS[:4] == ((None, 0), (0, 31), (31, 1023), (1023, 32767))
    assert PROFILE_BINS[-2:] == ((2**35 - 1, 2**40 - 1), (2**40 - 1, None))
    assert len(PROFILE_BINS) == len(PROFILE) == 10


def test_totals_where_there_is_no_entry(tmp_path: Path) -> None:
    path = accounts(
        tmp_path / "robinhood_scratch.sqlite3",
        ("ada", "g1", "file", 5000, 16, 3, 1, 0, 0, 2, 0, 0, 0, 0, 0, 0),
        ("ada", "g2", "file", 2**41, 8, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1),
        ("ada", "g1", "dir", 4096, 8, 1, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0),
        ("bob", "g1", "file", 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0),
    )
    assert recognise(path).name == "robinhood"
    result = read(path)
    assert problems_of(result) == []
    totals = {(row["owner"], row["inode_type"]): row for row in contents(result, "total")}
    assert totals.keys() == {("ada", "file"), ("ada", "dir")}
    ada = totals["ada", "file"]
    assert (ada["count"], ada["bytes"], ada["allocated_bytes"]) == (4, 2**41 + 5000, 24 * 512)
    assert (ada["bin_from"], ada["bin"]) == (None, None)
    sizes = [row for row in contents(result, "size") if row["inode_type"] == "file"]
    assert [(row["bin_from"], row["bin"], row["count"], row["bytes"]) for row in sizes] == [
        (None, 0, 1, None),
        (1023, 32767, 2, None),
        (2**40 - 1, None, 1, None),
    ]
    change(path, "CREATE TABLE ENTRIES (id, size, type)")  # empty: the totals still count
    assert plain_rows(read(path)) == plain_rows(result)
    change(path, "INSERT INTO ENTRIES VALUES ('1', 1, 'file')")
    assert sum(row["count"] for row in contents(read(path), "size")) == 1


def test_totals_of_version_2_5_without_a_profile(tmp_path: Path) -> None:
    columns = ("owner", "gr_name", "type", "status", "size", "blocks", "count")
    path = accounts(tmp_path / "a.sqlite3", ("ada", "g", "file", 1, 10, 1, 2), columns=columns)
    (row,) = rows_of(read(path), "contents")
    assert (row["owner"], row["histogram"], row["count"], row["bytes"]) == ("ada", "total", 2, 10)


def test_totals_that_went_wrong(tmp_path: Path) -> None:
    nothing = (0,) * 10
    path = accounts(
        tmp_path / "a.sqlite3",
        ("ada", "g", "file", -3, 8, 10, 10, *nothing[1:]),
        ("bob", "g", "file", 1, 8, -1, *nothing),
        ("cyd", "g", "door", 1, 8, 1, *nothing),
        ("dan", "g", "file", 1, 8, 1, *nothing),
        ("eve", "g", "file", None, 8, 1, 1, *nothing[1:]),
    )
    result = read(path)
    assert problems_of(result) == [
        "ACCT_STAT: file of ada: a total is no whole number from 0 to 2^63-1: not reported",
        "ACCT_STAT: file of bob: the count is no whole number from 0 to 2^63-1: left out",
        "ACCT_STAT: door of cyd: 1 inodes of no type that is known: left out",
        "file of dan: 1 inodes, but 0 in the size profile",
    ]
    totals = {row["owner"]: row["bytes"] for row in contents(result, "total")}
    assert totals == {"ada": None, "dan": 1, "eve": None}


# Addresses

ADDRESS = "mysql://scott:tiger%3Aand%40more@127.0.0.1:1/robinhood_scratch"


def test_a_server_that_is_not_there_is_refused_without_the_password(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    (refused,) = SOURCE.url_captures([ADDRESS], ReadOptions())
    assert refused.origin == "mysql://scott@127.0.0.1:1/robinhood_scratch"
    assert "tiger" not in repr(refused)
    with pytest.raises(InputError, match="MySQL: ") as raised:
        list(refused.items())
    assert "tiger" not in str(raised.value)


def test_other_addresses_are_refused() -> None:
    with pytest.raises(InputError, match="no database of this kind"):
        list(SOURCE.url_captures(["postgres://scott:tiger@db/robinhood_x"], PLAIN))
    with pytest.raises(UsageError, match="name the database"):
        list(SOURCE.url_captures(["mysql://scott@db/"], PLAIN))


# The shared copy

COPY = "SYNTHETIC_robinhood_entries.sqlite3"


def test_the_shared_copy(shared_data: Path) -> None:
    """Against sums that SQLite makes of it, and against what its sister, the report, prints as its total."""
    path = shared_data / "robinhood" / COPY
    result = read(path, ReadOptions("scratch", at=datetime(2024, 11, 1, tzinfo=UTC)))
    sizes = contents(result, "size")
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as database:
        direct = {
            (str(owner), kind): (count, size, 512 * blocks)
            for owner, kind, count, size, blocks in database.execute(
                "SELECT uid, type, COUNT(*), SUM(size), SUM(blocks) FROM ENTRIES GROUP BY uid, type"
            )
        }
    sums: dict[tuple[str, str], tuple[int, ...]] = {}
    for row in sizes:
        before = sums.get((row["owner"], row["inode_type"]), (0, 0, 0))
        numbers = (row["count"], row["bytes"], row["allocated_bytes"])
        sums[row["owner"], row["inode_type"]] = tuple(map(sum, zip(before, numbers, strict=True)))
    assert sums == direct
    totals = [sum(item) for item in zip(*sums.values(), strict=True)]
    assert totals == [8000, 130307117841, 130305859584]
    for name, count in (("atime", 8000), ("mtime", 8000), ("width", 0)):
        assert sum(row["count"] for row in contents(result, name)) == count


def test_projects_of_the_shared_copy(shared_data: Path) -> None:
    path = shared_data / "robinhood" / COPY
    result = contents(read(path, BY_PATH), "size")
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as database:
        top = Counter(name.split("/")[0] for (name,) in database.execute("SELECT name FROM NAMES"))
    counted: Counter[str] = Counter()
    for row in result:
        counted[row["project"]] += row["count"]
    assert counted == top
    assert ROOT not in counted


def test_a_root_below_its_own_child_does_not_go_round_for_ever(tmp_path: Path) -> None:
    made = made_up(5, 30)
    child = made.add(ROOT, "climate", type="dir")
    made.add(child, "data")
    made.entries.append(made.entries[-1] | {"id": ROOT, "type": "dir"})
    made.link(ROOT, child, "up")
    items = read(made.write(tmp_path / "rbh.sqlite3"), BY_PATH)
    assert sum(row["count"] for row in contents(items, "size")) == 33


def test_a_view_without_an_end_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lmt_database, "FEWEST_STEPS", 1_000_000)
    monkeypatch.setattr(lmt_database, "STEPS_PER_BYTE", 1)
    path = made_up(5, 30).write(tmp_path / "rbh.sqlite3")
    change(path, "DROP TABLE ENTRIES")
    endless = "WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM t)"
    change(path, f"CREATE VIEW ENTRIES AS {endless} SELECT n AS id, n AS size, 'file' AS type FROM t")
    with pytest.raises(InputError, match="a query did not end within"):
        read(path)
