"""`mmperfmon query`: a legend whose columns wrap over several tables; disks, clients and loads kept apart."""

from __future__ import annotations

import gzip
import io
import tarfile
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from iolens.errors import InputError
from iolens.records import Note, Problem
from iolens.sources import recognise
from iolens.sources.reading.options import ReadOptions
from tests.sources.stored import ingest, items_of, problems_of, rows_of, stored

LAKE = ReadOptions(filesystem="lake", timezone="UTC")


def output(columns: dict[str, list[str]], begin_minute: int = 1, wrap: int = 2, spacing: int = 1) -> str:
    """As `mmperfmon query` prints it: a legend, then as many columns at a time as the terminal is wide."""
    names = list(columns)
    text = "\nLegend:\n" + "".join(f"{number:2d}:\t{name}\n" for number, name in enumerate(names, 1)) + " \n"
    for first in range(0, len(names), wrap):
        chosen = names[first : first + wrap]
        text += "Row           Timestamp " + " ".join(name.rpartition("|")[2] for name in chosen) + " \n"
        for row in range(len(columns[names[0]])):
            minute = begin_minute + row * spacing
            stamp = f"2019-05-15-{12 + minute // 60:02d}:{minute % 60:02d}:00"
            text += f"{row + 1:3d} {stamp}  " + "  ".join(columns[name][row] for name in chosen) + " \n"
        text += " \n"
    return text


DISKS = output({
    "nsd1.site|GPFSNSDDisk|lun01|gpfs_nsdds_bytes_read": ["100", "200", "null"],
    "nsd1.site|GPFSNSDDisk|lun02|gpfs_nsdds_bytes_read": ["1", "2", "3"],
    "nsd1.site|GPFSNSDDisk|lun01|gpfs_nsdds_bytes_written": ["7", "8", "9"],
})  # fmt: skip
CLIENT = output({
    "c1|GPFSFilesystem|cluster.site|pond|gpfs_fs_bytes_read": ["500", "600"],
    "c1|GPFSFilesystem|cluster.site|pond|gpfs_fs_read_ops": ["5", "6"],
})  # fmt: skip
USAGE = output({
    "nsd1.site|CPU|cpu_user": ["0.25", "0.5"],
    "nsd1.site|CPU|cpu_sys": ["0.75", "-"],
    "nsd1.site|Memory|mem_total": ["1000.0 MB", "1000.0 MB"],
    "nsd1.site|Memory|mem_free": ["250.0 MB", "512000.0 kB"],
    "nsd1.site|Network|lo|net_r": ["1.7 kB", "1.7 kB"],
}, wrap=5)  # fmt: skip


def write(tmp_path: Path, text: str, name: str = "out.txt") -> Path:
    path = tmp_path / name
    path.write_text(text)
    return path


def archive(path: Path, members: dict[str, bytes]) -> Path:
    with tarfile.open(path, "w:gz") as tar:
        for name, data in members.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(data)
            tar.addfile(entry, io.BytesIO(data))
    return path


def test_columns_follow_the_legend_from_table_to_table(tmp_path: Path) -> None:
    items = items_of("mmperfmon", write(tmp_path, DISKS), LAKE)
    assert problems_of(items) == []
    rows = rows_of(items, "target_io")
    first = [row for row in rows if row["target"] == "nsd1.site:lun01"]
    assert [(row["read_bytes"], row["write_bytes"]) for row in first] == [(100, 7), (200, 8), (None, 9)]
    second = [row for row in rows if row["target"] == "nsd1.site:lun02"]
    assert [row["read_bytes"] for row in second] == [1, 2, 3]
    assert {(row["target_kind"], row["filesystem"], row["duration_s"]) for row in rows} == {("lun", "lake", 60.0)}


def test_a_bucket_ends_at_its_stamp_in_the_stated_zone(tmp_path: Path) -> None:
    pacific = ReadOptions(filesystem="lake", timezone="America/Los_Angeles")
    row = rows_of(items_of("mmperfmon", write(tmp_path, DISKS), pacific), "target_io")[0]
    assert row["time"] == 1_557_946_860_000_000  # 2019-05-15T19:01Z
    assert row["time"] - row["start"] == 60_000_000
    begins = ReadOptions(filesystem="lake", timezone="UTC", settings={"stamp": "start"})
    moved = rows_of(items_of("mmperfmon", write(tmp_path, DISKS), begins), "target_io")[0]
    assert moved["start"] == 1_557_921_660_000_000


def test_client_bytes_never_stand_for_disk_bytes(tmp_path: Path) -> None:
    items = items_of("mmperfmon", write(tmp_path, CLIENT), ReadOptions(timezone="UTC"))
    assert rows_of(items, "target_io") == []
    rows = rows_of(items, "client_io")
    assert [(row["node"], row["filesystem"], row["read_bytes"], row["read_ops"]) for row in rows] == [
        ("c1", "pond", 500, 5),
        ("c1", "pond", 600, 6),
    ]


def test_calls_of_applications_are_preferred_to_a_clients_transfers(tmp_path: Path) -> None:
    text = output({
        "c1|GPFSFilesystem|cluster|pond|gpfs_fs_bytes_read": ["500", "600"],
        "c1|GPFSFilesystemAPI|cluster|pond|gpfs_fis_bytes_read": ["50", "60"],
    })  # fmt: skip
    rows = rows_of(items_of("mmperfmon", write(tmp_path, text), LAKE), "client_io")
    assert [row["read_bytes"] for row in rows] == [50, 60]


def test_a_server_is_a_target_only_where_its_disks_are_not_reported(tmp_path: Path) -> None:
    server = {"nsd1.site|GPFSNSDFS|pond|gpfs_nsdfs_bytes_read": ["10", "20"]}
    alone = rows_of(items_of("mmperfmon", write(tmp_path, output(server)), LAKE), "target_io")
    assert [(row["target"], row["target_kind"], row["filesystem"]) for row in alone] == [
        ("nsd1.site", "server", "pond")
    ] * 2
    disk = {"nsd1.site|GPFSNSDDisk|lun01|gpfs_nsdds_bytes_read": ["10", "20"]}
    both = rows_of(items_of("mmperfmon", write(tmp_path, output(server | disk)), LAKE), "target_io")
    assert {row["target"] for row in both} == {"nsd1.site:lun01"}


def test_loads_are_percentages_and_units_powers_of_two(tmp_path: Path) -> None:
    items = items_of("mmperfmon", write(tmp_path, USAGE), LAKE)
    first, second = rows_of(items, "host_load")
    assert (first["host"], first["cpu_pct"], first["memory_pct"]) == ("nsd1.site", 1.0, 75.0)
    assert (second["cpu_pct"], second["memory_pct"]) == (None, 50.0)
    assert [item.reason for item in items if isinstance(item, Note)] == ["net_r is not among the metrics that are kept"]


def test_reads_and_writes_in_two_files_are_one_row(tmp_path: Path) -> None:
    lun = "nsd1|GPFSNSDDisk|lun01|gpfs_nsdds_bytes_"
    reads = write(tmp_path, output({f"{lun}read": ["1", "2"]}), "reads")
    writes = write(tmp_path, output({f"{lun}written": ["3", "4"]}), "writes")
    later = write(tmp_path, output({f"{lun}written": ["5", "6"]}, begin_minute=30), "later")
    rows = rows_of(items_of("mmperfmon", [later, reads, writes], LAKE), "target_io")
    assert [(row.get("read_bytes"), row["write_bytes"]) for row in rows] == [(1, 3), (2, 4), (None, 5), (None, 6)]


def test_an_archive_of_many_and_one_bad_file_in_it(tmp_path: Path) -> None:
    members = {"d/a.out": DISKS.encode(), "d/b.out.gz": gzip.compress(CLIENT.encode()), "d/readme": b"hello\n"}
    path = archive(tmp_path / "many.tgz", members)
    assert recognise(path).name == "mmperfmon"
    items = items_of("mmperfmon", path, LAKE)
    assert (len(rows_of(items, "target_io")), len(rows_of(items, "client_io"))) == (6, 2)
    assert {item.place for item in items if isinstance(item, Problem)} == {f"{path}:d/readme"}


def test_empty_files_and_archives_say_so(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="empty file"):
        items_of("mmperfmon", write(tmp_path, "", "empty.tgz"), LAKE)
    hollow = archive(tmp_path / "hollow.tgz", {})
    assert "an archive without any file" in problems_of(items_of("mmperfmon", hollow, LAKE))[0]


def test_a_cut_archive_keeps_what_came_before(tmp_path: Path) -> None:
    whole = archive(tmp_path / "whole.tgz", {"a.out": DISKS.encode(), "b.out": bytes(range(256)) * 2000})
    path = tmp_path / "cut.tgz"
    path.write_bytes(whole.read_bytes()[:-400])
    items = items_of("mmperfmon", path, LAKE)
    assert len(rows_of(items, "target_io")) == 6
    assert any("cannot be read to its end" in problem for problem in problems_of(items))


def test_a_last_row_that_repeats_the_one_before_is_left_out(tmp_path: Path) -> None:
    columns = {f"c1|GPFSFilesystem|cl|pond{n}|gpfs_fs_bytes_read": ["1", str(n + 9), str(n + 9)] for n in range(4)}
    items = items_of("mmperfmon", write(tmp_path, output(columns)), LAKE)
    assert len(rows_of(items, "client_io")) == 8
    assert any("repeats the one before" in problem for problem in problems_of(items))
    idle = {name: ["0", "0", "0"] for name in columns}
    assert len(rows_of(items_of("mmperfmon", write(tmp_path, output(idle)), LAKE), "client_io")) == 12


def test_what_is_missing_must_be_supplied(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="--timezone"):
        items_of("mmperfmon", write(tmp_path, DISKS), ReadOptions(filesystem="lake"))
    assert "--filesystem" in problems_of(items_of("mmperfmon", write(tmp_path, DISKS), ReadOptions(timezone="UTC")))[0]
    single = output({"nsd1|GPFSNSDDisk|lun01|gpfs_nsdds_bytes_read": ["1"]})
    assert "--interval" in problems_of(items_of("mmperfmon", write(tmp_path, single), LAKE))[0]
    given = ReadOptions(filesystem="lake", timezone="UTC", interval_s=60.0)
    assert [
        row["duration_s"] for row in rows_of(items_of("mmperfmon", write(tmp_path, single), given), "target_io")
    ] == [60.0]


def test_only_buckets_of_the_window(tmp_path: Path) -> None:
    since = datetime(2019, 5, 15, 12, 2, tzinfo=UTC)
    options = ReadOptions(filesystem="lake", timezone="UTC", since=since, until=since + timedelta(minutes=1))
    rows = rows_of(items_of("mmperfmon", write(tmp_path, DISKS), options), "target_io")
    assert [(row["target"][-5:], row["read_bytes"]) for row in rows] == [("lun01", 200), ("lun02", 2)]


def test_disks_of_several_file_systems_by_pattern(tmp_path: Path) -> None:
    options = ReadOptions(timezone="UTC", settings={"filesystems": {"lun01": "lake", "lun*": "pond"}})
    rows = rows_of(items_of("mmperfmon", write(tmp_path, DISKS), options), "target_io")
    assert {(row["target"], row["filesystem"]) for row in rows} == {
        ("nsd1.site:lun01", "lake"),
        ("nsd1.site:lun02", "pond"),
    }


@pytest.mark.parametrize("settings", [{"stamps": "end"}, {"stamp": "middle"}, {"filesystems": "lake"}])
def test_settings_are_checked(tmp_path: Path, settings: dict[str, object]) -> None:
    with pytest.raises(InputError, match=r"sources\.mmperfmon"):
        items_of("mmperfmon", write(tmp_path, DISKS), ReadOptions(timezone="UTC", settings=settings))


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("  200  2 ", "  200 ", "1 values, the table has 2 columns"),
        ("  200  2 ", "  many  2 ", "value 'many' is not a number: row left out"),
        ("  200  2 ", "  -5  2 ", "out of range"),
        ("-12:02:00  200", "-12:62:00  200", "no such time"),
        ("Timestamp gpfs_nsdds_bytes_written", "Timestamp something_else", "where the legend has"),
        (" 2:\tnsd1", " 7:\tnsd1", "legend entry 7 where 2 was expected"),
        ("\nLegend:", "mmperfmon: a warning\nLegend:", "not a line of `mmperfmon query`"),
    ],
)
def test_what_is_not_understood_is_reported_with_its_line(tmp_path: Path, old: str, new: str, reason: str) -> None:
    assert old in DISKS
    items = items_of("mmperfmon", write(tmp_path, DISKS.replace(old, new)), LAKE)
    reported = [item for item in items if isinstance(item, Problem) and reason in item.reason]
    assert reported
    assert reported[0].line is not None


def test_a_cut_output_lacks_columns_and_says_so(tmp_path: Path) -> None:
    cut = DISKS[: DISKS.rindex("Row")]
    items = items_of("mmperfmon", write(tmp_path, cut), LAKE)
    assert problems_of(items) == ["1 columns of the legend have no table: the output is cut"]


def test_gzip_crlf_and_nothing_twice(tmp_path: Path) -> None:
    path, store = tmp_path / "out.gz", tmp_path / "store"
    path.write_bytes(gzip.compress(DISKS.replace("\n", "\r\n").encode()))
    assert recognise(path).name == "mmperfmon"
    assert ingest(store, "mmperfmon", [path], LAKE).rows["target_io"] == 6
    again = ingest(store, "mmperfmon", [path], LAKE)
    assert (again.already_present, dict(again.rows)) == (1, {})
    assert {row[0] for row in stored(store, "lake", "target_io", "target")} == {"nsd1.site:lun01", "nsd1.site:lun02"}


# --- NERSC's captures ---

NGF = ReadOptions(filesystem="ngf", timezone="America/Los_Angeles")


def test_an_hour_of_nsd_servers_adds_up_as_pytokio_reads_it(shared_data: Path, tmp_path: Path) -> None:
    """pytokio 0.13.0: 71,468,811,883 bytes read and 23,283,560,116 written, in 60 buckets."""
    path = shared_data / "mmperfmon" / "mmperfmon.2019-05-15-micro.tgz"
    rows = rows_of(items_of("mmperfmon", path, NGF), "target_io")
    assert len({row["time"] for row in rows}) == 60
    assert min(row["start"] for row in rows) == 1_557_946_800_000_000  # noon in California
    assert sum(row["read_bytes"] for row in rows) == 71_468_811_883
    assert sum(row["write_bytes"] for row in rows) == 23_283_560_116
    tally = ingest(tmp_path / "store", "mmperfmon", [path], NGF)
    assert (tally.rows["target_io"], tally.rows["host_load"], tally.refused) == (7440, 360, 0)


def test_36_servers_in_one_archive(shared_data: Path) -> None:
    rows = rows_of(items_of("mmperfmon", shared_data / "mmperfmon" / "mmperfmon.tgz", NGF), "host_load")
    assert (len(rows), len({row["host"] for row in rows})) == (36 * 60, 36)
    first = next(row for row in rows if row["host"].startswith("ngfsv471."))
    assert first["cpu_pct"] == pytest.approx(0.19 + 0.56)
    assert first["memory_pct"] == pytest.approx(100 * (1 - 18858.3 / 31371.0))


def test_operations_of_a_client(shared_data: Path) -> None:
    path = shared_data / "mmperfmon" / "mmperfmon-gpfsNumberOperations.txt.gz"
    items = items_of("mmperfmon", path, ReadOptions(timezone="America/Los_Angeles"))
    rows = rows_of(items, "client_io")
    assert {row["filesystem"] for row in rows} == {"tlproject2", "tlprojecta"}
    assert {row["duration_s"] for row in rows} == {600.0}
    assert sum(row["read_bytes"] for row in rows if row["filesystem"] == "tlproject2") == 44794368


def test_the_empty_archive_has_a_clear_message(shared_data: Path) -> None:
    with pytest.raises(InputError, match="empty file; expected output of `mmperfmon query`"):
        items_of("mmperfmon", shared_data / "mmperfmon" / "mmperfmon.2019-05-16-mini.tgz", NGF)
