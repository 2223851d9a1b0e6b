"""Reports of rbh-report: both layouts, profiles, rankings, what is rounded, and what is damaged."""

from __future__ import annotations

import gzip
import os
import pickle
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from iolens.errors import InputError
from iolens.records import Item, Note, Problem, Rows
from iolens.sources import recognise
from iolens.sources.contents.rbh_report import PROFILE, SOURCE, heading_of
from iolens.sources.contents.robinhood import PROFILE_BINS
from iolens.sources.reading.options import ReadOptions
from iolens.store.store import Store
from tests.sources.stored import items_of, problems_of, rows_of

AT = datetime(2025, 3, 1, tzinfo=UTC)
PLAIN = ReadOptions(filesystem="scratch", at=AT)
ROUNDED = "sizes are rounded to two decimals: rbh-report --csv prints them in full"

CSV = """\
user, type, count, volume, spc_used, avg_size
ada, dir, 2, 8192, 8192, 4096
ada, file, 3, 5000000000000, 4999999999488, 1666666666666
bob, symlink, 1, 0, 4096, 0
"""
ALIGNED = """\
user      ,     type,      count,     volume,   spc_used,   avg_size
ada       ,      dir,          2,    8.00 KB,    8.00 KB,    4.00 KB
ada       ,     file,          3,    4.55 TB,    4.55 TB,    1.52 TB
bob       ,  symlink,          1,          0,    4.00 KB,        0.0

Total: 6 entries, volume: 5000000008192 bytes (4.55 TB), space used: 5000000011776 bytes (4.55 TB)
"""


def write(folder: Path, text: str | bytes, name: str = "report.txt") -> Path:
    path = folder / name
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def read(folder: Path, text: str | bytes, options: ReadOptions = PLAIN) -> list[Item]:
    path = write(folder, text)
    assert recognise(path).name == "rbh-report"
    return items_of("rbh-report", path, options)


def totals(items: list[Item]) -> dict[tuple[str | None, str], tuple[Any, ...]]:
    return {
        (row["owner"], row["inode_type"]): (row["count"], row["bytes"], row["allocated_bytes"])
        for row in rows_of(items, "contents")
        if row["histogram"] == "total"
    }


def test_csv_is_exact(tmp_path: Path) -> None:
    result = read(tmp_path, CSV)
    assert totals(result) == {
        ("ada", "dir"): (2, 8192, 8192),
        ("ada", "file"): (3, 5_000_000_000_000, 4_999_999_999_488),
        ("bob", "symlink"): (1, 0, 4096),
    }
    assert problems_of(result) == []
    rows = rows_of(result, "contents")
    assert {(row["time"], row["filesystem"], row["scan"]) for row in rows} == {
        (int(AT.timestamp()) * 1_000_000, "scratch", "user-info")
    }
    assert {(row["histogram"], row["bin_from"], row["bin"]) for row in rows} == {("total", None, None)}


def test_aligned_text_is_rounded_by_powers_of_1024_and_says_so(tmp_path: Path) -> None:
    result = read(tmp_path, ALIGNED)
    assert totals(result)["ada", "dir"] == (2, 8192, 8192)
    assert totals(result)["ada", "file"] == (3, round(4.55 * 2**40), round(4.55 * 2**40))
    assert totals(result)["bob", "symlink"] == (1, 0, 4096)
    assert problems_of(result) == [ROUNDED]
    assert isinstance(result[0], Note)


@pytest.mark.parametrize("change", [lambda text: text.replace("\n", "\r\n").encode(), lambda text: text.encode()[:-1]])
def test_ends_of_lines(tmp_path: Path, change: Any) -> None:
    assert totals(read(tmp_path, change(CSV))) == totals(read(tmp_path, CSV))


def test_gzip(tmp_path: Path) -> None:
    assert totals(read(tmp_path, gzip.compress(CSV.encode()))) == totals(read(tmp_path, CSV))


def test_a_size_profile(tmp_path: Path) -> None:
    heading = ", ".join(["user", "type", "count", "volume", "spc_used", "avg_size", *PROFILE])
    text = f"{heading}\nada, file, 7, 100, 512, 14, 1, 2, 0, 0, 0, 0, 0, 0, 0, 4\n"
    result = read(tmp_path, text)
    sizes = [row for row in rows_of(result, "contents") if row["histogram"] == "size"]
    assert [(row["bin_from"], row["bin"], row["count"], row["bytes"]) for row in sizes] == [
        (None, 0, 1, None),
        (0, 31, 2, None),
        (2**40 - 1, None, 4, None),
    ]
    assert totals(result) == {("ada", "file"): (7, 100, 512)}
    other = text.replace("32~1K-", "32~1K").replace("32K~1M-", "32K~1M")
    assert len(rows_of(read(tmp_path, other), "contents")) == 4
    wrong = text.replace("ada, file, 7", "ada, file, 8")
    assert problems_of(read(tmp_path, wrong)) == ["file of ada: 8 inodes, but 7 in the size profile"]


def test_the_file_system_as_a_whole_of_both_versions(tmp_path: Path) -> None:
    new = "type, count, volume, spc_used, avg_size\ndir, 4, 16384, 16384, 4096\nfile, 9, 900, 4608, 100\n"
    assert totals(read(tmp_path, new)) == {(None, "dir"): (4, 16384, 16384), (None, "file"): (9, 900, 4608)}
    old = (
        "status,    type ,    count,   volume, avg_size\n"
        "n/a   ,     dir ,        4, 16.00 KB,  4.00 KB\n"
        "new   ,    file ,        9,      900,      100\n"
        "synchro,   file ,        1,      100,      100\n"
        "\nTotal: 14 entries, 17384 bytes (16.98 KB)\n"
    )
    result = read(tmp_path, old)
    assert totals(result) == {(None, "dir"): (4, 16384, None), (None, "file"): (10, 1000, None)}
    assert {row["scan"] for row in rows_of(result, "contents")} == {"fs-info"}


def test_users_split_by_group_are_added_up(tmp_path: Path) -> None:
    rows = "ada, g1, file, 4, 1.00 KB, 5\nada, g2, file, 1, 1.00 KB, 5\n"
    text = "user , group,  type,  count,  spc_used,   avg_size\n" + rows
    result = read(tmp_path, text)
    assert totals(result) == {("ada", "file"): (5, None, 2048)}
    assert problems_of(result) == [ROUNDED, "groups are added up: there is no place for them"]


def test_groups_have_no_owner(tmp_path: Path) -> None:
    text = "group, type, count, volume, spc_used, avg_size\ng1, file, 4, 10, 512, 5\ng2, file, 1, 10, 512, 5\n"
    result = read(tmp_path, text)
    assert totals(result) == {(None, "file"): (5, 20, 1024)}
    assert {row["scan"] for row in rows_of(result, "contents")} == {"group-info"}


def test_a_ranking_is_a_scan_of_its_own(tmp_path: Path) -> None:
    text = "rank, user    , spc_used,  count, avg_size\n1, ada , 1.00 MB, 6, 5\n2, bob, 4.00 KB, 575, 1\n"
    result = read(tmp_path, text)
    assert totals(result) == {("ada", "file"): (6, None, 2**20), ("bob", "file"): (575, None, 4096)}
    assert {row["scan"] for row in rows_of(result, "contents")} == {"top-users"}
    assert problems_of(result) == [ROUNDED, "a ranking lists the first owners only, and files alone"]


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ("ada, file, 3, 5", "4 columns, the heading has 6: 'ada, file, 3, 5'"),
        ("ada, file, -3, 5, 5, 5", "count '-3' is not a count"),
        ("ada, file, many, 5, 5, 5", "count 'many' is not a count"),
        ("ada, file, 99999999999999999999, 5, 5, 5", "count '99999999999999999999' is out of range"),
        ("ada, file, 1, 5 bytes, 5, 5", "volume '5 bytes' is no size"),
        ("ada, file, 1, nan, 5, 5", "volume 'nan' is no size"),
        ("ada, file, 1, 9.00 EB, 5, 5", "volume '9.00 EB' is more than a number can hold"),
        ("ada, file, 1, 5, , 5", "spc_used '' is no size"),
        ("ada, door, 1, 5, 5, 5", "type 'door' is not known"),
        ("bob, symlink, 1, 0, 4096, 0", "bob symlink comes twice: 'bob, symlink, 1, 0, 4096, 0'"),
    ],
)
def test_a_row_that_is_wrong_is_named_and_the_others_count(tmp_path: Path, row: str, reason: str) -> None:
    result = read(tmp_path, CSV.replace("ada, file", "eve, file") + row + "\n")
    (problem,) = (item for item in result if isinstance(item, Problem))
    assert (problem.line, problem.reason) == (5, reason)
    assert len(totals(result)) == 3


def test_a_report_that_was_cut_does_not_add_up(tmp_path: Path) -> None:
    cut = ALIGNED.replace("ada       ,     file,          3,    4.55 TB,    4.55 TB,    1.52 TB\n", "")
    assert problems_of(read(tmp_path, cut)) == ["the report's total is 6 entries, its rows have 3", ROUNDED]


def test_reports_one_after_the_other(tmp_path: Path) -> None:
    """Of several users: one. Of several kinds: the first, for added up they would count twice."""
    second = ALIGNED.replace("ada ", "eve ").replace("bob ", "dan ")
    result = read(tmp_path, ALIGNED + second)
    assert {owner for owner, _ in totals(result)} == {"ada", "bob", "eve", "dan"}
    assert problems_of(result) == [ROUNDED]
    other = "type, count, volume, spc_used, avg_size\nfile, 9, 900, 4608, 100\n\nTotal: 9 entries, 900 bytes (900)\n"
    mixed = read(tmp_path, CSV + other)
    assert problems_of(mixed) == ["another report in the same file: left out, it needs a file of its own"]
    assert totals(mixed) == totals(read(tmp_path, CSV))


def test_lines_before_the_heading(tmp_path: Path) -> None:
    text = "Using config file '/etc/robinhood.d/scratch.conf'.\nDisk quotas for grp staff:\n" + CSV
    assert problems_of(read(tmp_path, text)) == ["before the heading: 'Disk quotas for grp staff:'"]


def test_a_report_of_a_part_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path, "filter path: /scratch/ada\n" + CSV)
    with pytest.raises(InputError, match="a report of a part only: filter path: /scratch/ada"):
        items_of("rbh-report", path, PLAIN)


def test_headings_that_are_none() -> None:
    others = (
        "user, type, count",
        "name,age,count,volume",
        "user, user, type, count, volume",
        "type, count, volume, colour",
        "type, count, volume, 0, 1~31",
        "rank, path, size, user, group, last_access, last_mod, purge class",
        "archive class  ,    count, spc_used,   volume, min_size,  max_size,  avg_size",
        "",
    )
    assert [heading_of(other) for other in others] == [None] * len(others)
    assert len(PROFILE) == len(PROFILE_BINS)


def test_a_heading_alone_gives_nothing_and_says_so(tmp_path: Path) -> None:
    result = read(tmp_path, CSV.splitlines()[0])
    assert problems_of(result) == ["no row that could be read below the heading"]
    assert not any(isinstance(item, Rows) for item in result)


def test_broken_gzip_keeps_what_came_before(tmp_path: Path) -> None:
    rows = "".join(f"user{n}, file, {n}, {n * 7919}, {n * 104729}, 1\n" for n in range(1, 3000))
    packed = gzip.compress((CSV.splitlines()[0] + "\n" + rows).encode())
    result = items_of("rbh-report", write(tmp_path, packed[: len(packed) // 2]), PLAIN)
    assert "cannot be read to its end" in problems_of(result)[0]
    assert 100 < len(totals(result)) < 2999


def test_without_a_time_it_is_the_files_and_said(tmp_path: Path) -> None:
    path = write(tmp_path, CSV)
    os.utime(path, (1_700_000_000, 1_700_000_000))
    result = items_of("rbh-report", path, ReadOptions(filesystem="scratch"))
    assert {row["time"] for row in rows_of(result, "contents")} == {1_700_000_000_000_000}
    assert problems_of(result) == ["a report does not tell its time: taken for that of the file; supply it with --at"]


def test_what_must_be_supplied_and_what_is_not_known(tmp_path: Path) -> None:
    path = write(tmp_path, CSV)
    with pytest.raises(InputError, match="--filesystem"):
        items_of("rbh-report", path, ReadOptions())
    with pytest.raises(InputError, match=r"unknown key sources\.rbh-report\.colour"):
        items_of("rbh-report", path, ReadOptions(filesystem="scratch", settings={"colour": 1}))


def test_the_same_report_twice_adds_nothing_and_it_travels(tmp_path: Path) -> None:
    store, path = Store(tmp_path / "store"), write(tmp_path, CSV)
    (capture,) = SOURCE.captures([path], PLAIN)
    travelled = pickle.loads(pickle.dumps(capture))
    assert totals(list(travelled.items())) == totals(list(capture.items()))
    first = store.ingest([capture], "rbh-report")
    again = store.ingest(SOURCE.captures([path], PLAIN), "rbh-report")
    assert (first.rows["contents"], again.already_present) == (3, 1)
    april = ReadOptions("scratch", at=datetime(2025, 4, 1, tzinfo=UTC))
    later = store.ingest(SOURCE.captures([path], april), "rbh-report")
    assert later.rows["contents"] == 3


# The shared reports

FOLDER, NAME = "robinhood", "SYNTHETIC_rbh-report_{}.txt"


def test_the_aligned_report_is_the_rounded_csv(shared_data: Path) -> None:
    """Every volume within half of its second decimal; the counts are the same; the total is the report's own."""
    exact = items_of("rbh-report", shared_data / FOLDER / NAME.format("user_info_csv"), PLAIN)
    rounded = items_of("rbh-report", shared_data / FOLDER / NAME.format("user_info"), PLAIN)
    assert problems_of(exact) == []
    assert problems_of(rounded) == [ROUNDED]
    ours, theirs = totals(rounded), totals(exact)
    assert ours.keys() == theirs.keys()
    assert len(ours) == 45
    for key, (count, *sizes) in ours.items():
        assert count == theirs[key][0]
        for size, true in zip(sizes, theirs[key][1:], strict=True):
            unit = 1024 ** max(0, (true.bit_length() - 1) // 10)
            assert abs(size - true) <= 0.005001 * unit
    assert [sum(column) for column in zip(*theirs.values(), strict=True)] == [8000, 130307117841, 130305859584]


def test_the_report_agrees_with_the_database(shared_data: Path) -> None:
    report = totals(items_of("rbh-report", shared_data / FOLDER / NAME.format("user_info_csv"), PLAIN))
    database = items_of("robinhood", shared_data / FOLDER / "SYNTHETIC_robinhood_entries.sqlite3", PLAIN)
    sums: dict[tuple[str, str], list[int]] = {}
    for row in rows_of(database, "contents"):
        if row["histogram"] == "size":
            numbers = sums.setdefault((f"u{row['owner']}", row["inode_type"]), [0, 0, 0])
            for place, name in enumerate(("count", "bytes", "allocated_bytes")):
                numbers[place] += row[name]
    assert {key: tuple(numbers) for key, numbers in sums.items()} == report


def test_the_profile_agrees_with_the_database(shared_data: Path) -> None:
    report = items_of("rbh-report", shared_data / FOLDER / NAME.format("szprof"), PLAIN)
    counts = {row["bin"]: row["count"] for row in rows_of(report, "contents") if row["histogram"] == "size"}
    assert (counts[0], sum(counts.values())) == (454, 7218)
    database = items_of("robinhood", shared_data / FOLDER / "SYNTHETIC_robinhood_entries.sqlite3", PLAIN)
    empty = sum(
        row["count"]
        for row in rows_of(database, "contents")
        if (row["histogram"], row["inode_type"], row["bin"]) == ("size", "file", 0)
    )
    assert empty == counts[0]
