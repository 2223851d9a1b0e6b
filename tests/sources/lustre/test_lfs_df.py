"""`lfs df`: exact KiB, one row per target and time, summaries as a check, silent targets said and never zero."""

from __future__ import annotations

import gzip
from datetime import UTC, datetime
from pathlib import Path

import pytest

from iolens.errors import InputError
from iolens.records import Note
from iolens.sources import recognise
from iolens.sources.reading.options import ReadOptions
from tests.sources.stored import ingest, items_of, problems_of, rows_of, stored

AT = ReadOptions(at=datetime(2026, 1, 5, 12, tzinfo=UTC))
HEADING = "UUID                   1K-blocks        Used   Available Use% Mounted on\n"
MDT = "lake-MDT0000_UUID         1000000      100000      850000  11% /lake[MDT:0]\n"
OSTS = (
    "lake-OST0000_UUID         2000000      500000     1400000  27% /lake[OST:0]\n"
    "lake-OST0001_UUID         2000000      700000     1200000  37% /lake[OST:1]\n"
)
SUMMARY = "\nfilesystem summary:       4000000     1200000     2600000  32% /lake\n\n"
BLOCKS = HEADING + MDT + OSTS + SUMMARY
INODES = (
    "UUID                      Inodes       IUsed       IFree IUse% Mounted on\n"
    "lake-MDT0000_UUID           5000        1000        4000  20% /lake[MDT:0]\n"
    "lake-OST0000_UUID           3000        1500        1500  50% /lake[OST:0]\n"
    "lake-OST0001_UUID           3000        1400        1600  47% /lake[OST:1]\n"
    "\nfilesystem_summary:         4100        1000        3100  24% /lake\n"
)


def write(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "lfs-df.txt"
    path.write_text(text)
    return path


def test_kib_become_bytes_and_free_is_not_available(tmp_path: Path) -> None:
    items = items_of("lfs-df", write(tmp_path, BLOCKS), AT)
    assert problems_of(items) == []
    rows = {row["target"]: row for row in rows_of(items, "target_capacity")}
    assert {row["target_kind"] for row in rows.values()} == {"ost", "mdt"}
    ost = rows["lake-OST0000"]
    assert (ost["filesystem"], ost["time"]) == ("lake", 1_767_614_400_000_000)
    kib = [ost[f"{what}_bytes"] / 1024 for what in ("total", "used", "free", "available")]
    assert kib == [2_000_000, 500_000, 1_500_000, 1_400_000]


def test_bytes_and_inodes_of_one_time_are_one_row(tmp_path: Path) -> None:
    rows = rows_of(items_of("lfs-df", write(tmp_path, BLOCKS + INODES), AT), "target_capacity")
    assert len(rows) == 3
    ost = next(row for row in rows if row["target"] == "lake-OST0001")
    assert (ost["total_inodes"], ost["used_inodes"], ost["free_inodes"]) == (3000, 1400, 1600)
    assert ost["used_bytes"] == 700_000 * 1024


def test_a_stamped_series(tmp_path: Path) -> None:
    later = BLOCKS.replace("500000 ", "500064 ").replace("1200000     26", "1200064     26")
    text = f"BEGIN 1489998203\n{BLOCKS}BEGIN 1489998503\n{later}"
    items = items_of("lfs-df", write(tmp_path, text))
    assert problems_of(items) == []
    used = {(row["time"] // 1_000_000, row["used_bytes"] // 1024) for row in rows_of(items, "target_capacity")}
    assert {(1489998203, 500_000), (1489998503, 500_064)} <= used


def test_stamps_may_be_iso_times_in_the_stated_zone(tmp_path: Path) -> None:
    path = write(tmp_path, f"2026-01-05 04:00:00\n{BLOCKS}")
    pacific = items_of("lfs-df", path, ReadOptions(timezone="America/Los_Angeles"))
    assert {row["time"] for row in rows_of(pacific, "target_capacity")} == {1_767_614_400_000_000}


def test_without_a_stamp_the_time_must_be_supplied(tmp_path: Path) -> None:
    items = items_of("lfs-df", write(tmp_path, BLOCKS))
    assert rows_of(items, "target_capacity") == []
    assert problems_of(items) == ["nothing here tells the time: supply it with --at"]


def test_several_file_systems(tmp_path: Path) -> None:
    text = BLOCKS + BLOCKS.replace("lake", "pond")
    rows = rows_of(items_of("lfs-df", write(tmp_path, text), AT), "target_capacity")
    assert {row["filesystem"] for row in rows} == {"lake", "pond"}


@pytest.mark.parametrize(
    "silent",
    [
        "OST0001             : inactive device\n",
        "lake-OST0001_UUID    : Resource temporarily unavailable\n",
        "OST0001: inactive device\n",
    ],
)
def test_a_silent_target_has_no_row_and_the_summary_is_not_held_against_it(tmp_path: Path, silent: str) -> None:
    first, _ = OSTS.splitlines(keepends=True)
    items = items_of("lfs-df", write(tmp_path, HEADING + MDT + first + silent + SUMMARY), AT)
    assert {row["target"] for row in rows_of(items, "target_capacity")} == {"lake-MDT0000", "lake-OST0000"}
    (note,) = [item for item in items if problems_of([item])]
    assert isinstance(note, Note)
    assert note.line == 4
    assert "did not answer" in note.reason


def test_a_summary_that_does_not_add_up_is_reported(tmp_path: Path) -> None:
    items = items_of("lfs-df", write(tmp_path, BLOCKS.replace("1200000     26", "1300000     26")), AT)
    assert problems_of(items) == ["the summary says 1300000 KiB used, the OSTs above add up to 1200000"]
    assert len(rows_of(items, "target_capacity")) == 3


def test_rounded_sizes_are_refused(tmp_path: Path) -> None:
    text = (
        "UUID                       bytes        Used   Available Use% Mounted on\n"
        "lake-OST0000_UUID           1.9G      488.3M        1.3G  27% /lake[OST:0]\n"
        "\nfilesystem_summary:         3.8G        1.1G        2.5G  32% /lake\n"
    )
    items = items_of("lfs-df", write(tmp_path, text), AT)
    assert rows_of(items, "target_capacity") == []
    assert len(problems_of(items)) == 1
    assert "-h" in problems_of(items)[0]


def test_a_second_list_without_a_time_between_is_left_out(tmp_path: Path) -> None:
    items = items_of("lfs-df", write(tmp_path, BLOCKS + BLOCKS), AT)
    assert len(rows_of(items, "target_capacity")) == 3
    assert all("no time tells when" in problem for problem in problems_of(items))


def test_the_same_file_system_mounted_twice_is_listed_once(tmp_path: Path) -> None:
    items = items_of("lfs-df", write(tmp_path, BLOCKS + BLOCKS.replace("/lake", "/mnt/lake")), AT)
    assert (len(rows_of(items, "target_capacity")), problems_of(items)) == (3, [])


@pytest.mark.parametrize("cut", range(len(HEADING) + 1, len(BLOCKS) - len(SUMMARY), 13))
def test_a_cut_list_loses_its_last_line_and_says_so(tmp_path: Path, cut: int) -> None:
    items = items_of("lfs-df", write(tmp_path, BLOCKS[:cut]), AT)
    whole = {row["target"]: row for row in rows_of(items_of("lfs-df", write(tmp_path, BLOCKS), AT), "target_capacity")}
    for row in rows_of(items, "target_capacity"):
        assert row == whole[row["target"]]
    assert any("no summary" in problem for problem in problems_of(items))


def test_impossible_and_unknown_lines_are_reported_with_their_number(tmp_path: Path) -> None:
    text = BLOCKS.replace("     500000 ", "    5000000 ") + "a line of something else\n"
    items = items_of("lfs-df", write(tmp_path, text), AT)
    result = [(item.line, item.reason[:20]) for item in items if problems_of([item])]
    assert result[0] == (3, "'lake-OST0000': impo")
    assert result[1][0] == 8


def test_targets_without_a_file_system_need_its_name(tmp_path: Path) -> None:
    path = write(tmp_path, BLOCKS.replace("lake-", ""))
    assert "--filesystem" in problems_of(items_of("lfs-df", path, AT))[0]
    named = items_of("lfs-df", path, ReadOptions(at=AT.at, filesystem="lake"))
    assert {row["filesystem"] for row in rows_of(named, "target_capacity")} == {"lake"}


def test_gzip_crlf_and_nothing_twice(tmp_path: Path) -> None:
    path, store = tmp_path / "series.gz", tmp_path / "store"
    text = f"BEGIN 1489998203\n{BLOCKS}{INODES}"
    path.write_bytes(gzip.compress(text.replace("\n", "\r\n").encode()))
    assert recognise(path).name == "lfs-df"
    assert ingest(store, "lfs-df", [path], ReadOptions()).rows["target_capacity"] == 3
    again = ingest(store, "lfs-df", [path], ReadOptions())
    assert (again.already_present, dict(again.rows)) == (1, {})
    grown = tmp_path / "grown.txt"
    grown.write_text(text + f"BEGIN 1489998503\n{BLOCKS}")
    assert ingest(store, "lfs-df", [grown], ReadOptions()).rows["target_capacity"] == 3
    assert len(stored(store, "lake", "target_capacity", "target")) == 6


def test_empty_and_strange_files(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="empty file"):
        items_of("lfs-df", write(tmp_path, ""), AT)
    assert any(
        "no list of `lfs df`" in problem for problem in problems_of(items_of("lfs-df", write(tmp_path, "words\n"), AT))
    )


# --- NERSC's four file systems ---


def test_a_single_dump_plain_and_gzip(shared_data: Path) -> None:
    files = [shared_data / "lfs-df" / name for name in ("lfs-df.txt", "lfs-df.txt.gz")]
    plain, packed = (rows_of(items_of("lfs-df", path, AT), "target_capacity") for path in files)
    assert plain == packed
    assert len(plain) == 340
    assert next(row for row in plain if row["target"] == "snx11035-OST0000")["used_bytes"] == 65387344040 * 1024


def test_46_stamped_dumps_add_up_as_pytokio_reads_them(shared_data: Path) -> None:
    """pytokio 0.13.0, NerscLfsOstFullness: 46 times, 15,640 entries, and these sums of used KiB."""
    items = items_of("lfs-df", shared_data / "lfs-df" / "ost-fullness.txt.gz")
    assert problems_of(items) == []  # every summary agrees with its OSTs
    rows = rows_of(items, "target_capacity")
    assert (len(rows), len({row["time"] for row in rows})) == (15640, 46)
    used: dict[str, int] = {}
    for row in rows:
        used[row["filesystem"]] = used.get(row["filesystem"], 0) + row["used_bytes"] // 1024
    assert used == {
        "snx11025": 71926265154608,
        "snx11035": 73278157103224,
        "snx11036": 108107537104300,
        "snx11168": 607542727828040,
    }
