"""Drives by the Intel SSD Data Center Tool: a dump, its archive and pytokio's series of it tell the same rows."""

from __future__ import annotations

import csv
import gzip
import io
import json
import tarfile
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from iolens.errors import InputError
from iolens.records import Note, Problem
from iolens.sources import get_source, recognise
from iolens.sources.drives import isdct_dump as dump_module
from iolens.sources.drives.rows import MalformedValue, count_of, percent_of, plain, serial_of, time_in_name
from iolens.sources.reading.options import ReadOptions
from iolens.store.readers import guarded
from tests.sources.stored import ingest, items_of, problems_of, rows_of, stored

NOON = datetime(2026, 1, 5, 12, tzinfo=UTC)
NOON_US = 1_767_614_400_000_000
POND = ReadOptions(filesystem="pond", at=NOON)
TERABYTE = 10**12


def lists(serial: str, *, units: int = 0x10000, nand: int = 3000, host: int = 1000) -> dict[str, str]:
    """What `isdct show` prints of one drive, list by list."""
    title = f"\n- Intel SSD DC P9999 Series {serial} -\n\n"
    return {
        "drive_info": title + "DevicePath : /dev/nvme0n1\nErrorString : \nFirmware : 8DV1\nModelNumber : INTEL SSDX\n"
        f"PhysicalSize : 1600000000000\nPowerGovernorMode : 0 40W for 8 Lane Slot power\nSerialNumber : {serial}\n",
        "performance_info": title + f"DataUnitsRead : 0x00000010\nDataUnitsWritten : {units:#010x}\n",
        "sensor_info": title + "AvailableSpare : 99\nMediaErrors : 0x02\nPercentageUsed : 4\n"
        "PowerOnHours : 0x03E8\nTemperature : 27 Celsius\n",
        "smart_info": f"\n- SMART Attributes {serial} -\n\n"
        f"\n- F4 -\n\nAction : Pass\nDescription : NAND Bytes Written\nID : F4\nNormalized : 100\nRaw : {nand}\n"
        f"\n- F5 -\n\nAction : Pass\nDescription : Host Bytes Written\nID : F5\nNormalized : 100\nRaw : {host}\n",
        "smarthealthinfo": f"\n- SMART and Health Information {serial} -\n\nData Units Read : 0x11\n"
        f"Data Units Written : {units:#x}\nPower On Hours : 0x3E8\nMedia Errors : 0x2\nPercentage Used : 4\n",
    }


# two controllers of one card on one host, a third drive on another
DRIVES = {("nid00001", "CVFA-1"): {}, ("nid00001", "CVFA-2"): {"nand": 4000}, ("nid00002", "CVFB-1"): {}}


def write_dump(root: Path, drives: dict[tuple[str, str], dict[str, int]] | None = None) -> Path:
    for number, ((host, serial), values) in enumerate((drives or DRIVES).items()):
        folder = root / host
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in lists(serial, **values).items():
            (folder / f"ssd{number}_{name}.txt").write_text(text)
    return root


def pack(root: Path, path: Path, extra: Iterable[tuple[tarfile.TarInfo, bytes]] = (), *, modified: int = 0) -> Path:
    with tarfile.open(path, "w:gz") as archive:
        for file in sorted(root.rglob("*.txt")):
            info = tarfile.TarInfo(f"dump/{file.relative_to(root)}")
            info.size, info.mtime = file.stat().st_size, modified
            archive.addfile(info, io.BytesIO(file.read_bytes()))
        for info, content in extra:
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return path


def series(*, timestamp: int | None = 1_767_614_400) -> dict[str, dict[str, Any]]:
    """The same drives as pytokio writes them."""
    return {
        serial: {
            "node_name": host, "serial_number": serial, "device_path": "/dev/nvme0n1", "firmware": "8DV1",
            "model_number": "INTEL SSDX", "physical_size": 1_600_000_000_000, "data_units_read": 17,
            "data_units_written": 0x10000, "data_units_written_bytes": 0x10000 * 512_000, "available_spare": 99,
            "media_errors": 2, "percentage_used": 4, "power_on_hours": 1000, "temperature": "27 Celsius",
            "smart_nand_bytes_written_raw": values.get("nand", 3000), "smart_nand_bytes_written_id": 244,
            "smart_host_bytes_written_raw": 1000, "smart_host_bytes_written_id": 245, "endurance_analyzer": None,
        } | ({} if timestamp is None else {"timestamp": timestamp})
        for (host, serial), values in DRIVES.items()
    }  # fmt: skip


def series_csv(rows: Sequence[dict[str, Any]]) -> str:
    """As pandas writes it: the serial number is the index and a column."""
    names = [name for name in rows[0] if name != "serial_number"]
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(["serial_number", *names, "serial_number"])
    for row in rows:
        writer.writerow([row["serial_number"], *(row[name] for name in names), row["serial_number"]])
    return text.getvalue()


def by_serial(paths: Sequence[Path] | Path, options: ReadOptions = POND) -> list[dict[str, Any]]:
    items = items_of("isdct", paths, options)
    assert problems_of(items) == []
    return sorted(rows_of(items, "drives"), key=lambda row: str(row["serial"]))


def test_a_drive_of_a_dump_in_bytes(tmp_path: Path) -> None:
    first = by_serial(write_dump(tmp_path / "dump"))[0]
    assert first == {
        "time": NOON_US, "filesystem": "pond", "serial": "CVFA-1", "model": "INTEL SSDX", "firmware": "8DV1",
        "host": "nid00001", "device": "/dev/nvme0n1", "capacity_bytes": 1_600_000_000_000,
        "host_write_bytes": 1000 * 32 * 2**20, "host_read_bytes": 17 * 512_000, "nand_write_bytes": 3000 * 32 * 2**20,
        "power_on_hours": 1000.0, "wear_pct": 4.0, "spare_pct": 99.0, "media_errors": 2,
    }  # fmt: skip


def test_directory_archive_csv_and_json_are_the_same(tmp_path: Path) -> None:
    dump = write_dump(tmp_path / "dump")
    (tmp_path / "day.json").write_text(json.dumps(series()))
    (tmp_path / "list.json").write_text(json.dumps(list(series().values())))
    (tmp_path / "day.csv.gz").write_bytes(gzip.compress(series_csv(list(series().values())).encode()))
    expected = by_serial(dump)
    assert len(expected) == 3
    assert by_serial(pack(dump, tmp_path / "dump.tgz")) == expected
    for name in ("day.json", "list.json", "day.csv.gz"):
        assert recognise(tmp_path / name).name == "isdct", name
        assert by_serial(tmp_path / name, ReadOptions(filesystem="pond")) == expected, name
    assert recognise(dump).name == recognise(tmp_path / "dump.tgz").name == "isdct"


def test_a_counter_reported_twice_is_the_later_one(tmp_path: Path) -> None:
    """`DataUnitsRead` is 16 in one list and 17 in the one that was printed later."""
    assert {row["host_read_bytes"] for row in by_serial(write_dump(tmp_path))} == {17 * 512_000}


def test_nvme_counts_the_host_where_the_vendor_does_not(tmp_path: Path) -> None:
    dump = write_dump(tmp_path)
    for file in dump.rglob("*smart_info.txt"):
        file.unlink()
    row = by_serial(dump)[0]
    assert (row["host_write_bytes"], row["nand_write_bytes"]) == (0x10000 * 512_000, None)


def test_a_vendor_whose_host_bytes_are_others_is_not_believed(tmp_path: Path) -> None:
    dump = write_dump(tmp_path, {("a", "X1"): {"host": 1000, "units": 0x10000}, ("a", "X2"): {"host": 9000}})
    items = items_of("isdct", dump, POND)
    rows = {row["serial"]: row for row in rows_of(items, "drives")}
    assert rows["X1"]["nand_write_bytes"] is not None
    assert (rows["X2"]["nand_write_bytes"], rows["X2"]["host_write_bytes"]) == (None, 0x10000 * 512_000)
    (reason,) = problems_of(items)
    assert "its unit is not known" in reason


def test_another_attribute_of_that_name_has_no_unit(tmp_path: Path) -> None:
    dump = write_dump(tmp_path)
    for file in dump.rglob("*smart_info.txt"):
        file.write_text(file.read_text().replace("F4", "F9"))
    items = items_of("isdct", dump, POND)
    assert {row["nand_write_bytes"] for row in rows_of(items, "drives")} == {None}
    assert all(isinstance(item, Note) for item in items if isinstance(item, Problem))
    assert problems_of(items) == ["SMART attribute F9 of this name has no known unit"] * 3


# --- whose and when ---


def test_the_folder_of_a_list_is_its_host(tmp_path: Path) -> None:
    dump = write_dump(tmp_path / "dump")
    assert [row["host"] for row in by_serial(dump)] == ["nid00001", "nid00001", "nid00002"]
    assert {row["host"] for row in by_serial(dump / "nid00001")} == {"nid00001"}
    assert by_serial(sorted(dump.rglob("*.txt"))) == by_serial(dump)  # named one by one
    dated = write_dump(tmp_path / "all", {("2026-01-05", "S1"): {}})
    assert by_serial(dated)[0]["host"] is None  # a date is no host


def test_all_lists_in_one_file(tmp_path: Path) -> None:
    path = tmp_path / "isdct-20260105.txt"
    path.write_text("".join(text for serial in ("S1", "S2") for text in lists(serial).values()))
    assert recognise(path).name == "isdct"
    rows = by_serial(path, ReadOptions(filesystem="pond", timezone="UTC"))
    assert [(row["serial"], row["nand_write_bytes"], row["capacity_bytes"]) for row in rows] == [
        ("S1", 3000 << 25, 1_600_000_000_000), ("S2", 3000 << 25, 1_600_000_000_000),
    ]  # fmt: skip
    assert {row["time"] for row in rows} == {NOON_US - 12 * 3_600_000_000}


def test_when_a_dump_was_made(tmp_path: Path) -> None:
    dump = write_dump(tmp_path / "isdct-2026-01-06")
    plain_options, zoned = ReadOptions(filesystem="pond"), ReadOptions(filesystem="pond", timezone="Europe/Berlin")
    assert by_serial(dump, zoned)[0]["time"] == NOON_US + 11 * 3_600_000_000  # its name, at midnight in Berlin
    with pytest.raises(InputError, match="--timezone"):
        items_of("isdct", dump, plain_options)
    assert by_serial(dump)[0]["time"] == NOON_US  # --at
    (dump / "timestamp_20260107120000").write_text("")
    assert (
        by_serial(dump, ReadOptions(filesystem="pond", timezone="UTC", at=NOON))[0]["time"]
        == NOON_US + 2 * 86400 * 10**6
    )


def test_an_archive_knows_when_its_members_were_written(tmp_path: Path) -> None:
    dump = write_dump(tmp_path / "dump")
    archive = pack(dump, tmp_path / "dump.tgz", modified=1_767_614_400)
    assert by_serial(archive, ReadOptions(filesystem="pond"))[0]["time"] == NOON_US
    late = tarfile.TarInfo("dump/nid00001/ssd9_smart_info.txt")
    late.mtime = 1_767_614_400 + 3 * 86400
    archive = pack(
        dump, tmp_path / "days.tgz", [(late, lists("CVFZ-1")["smart_info"].encode())], modified=1_767_614_400
    )
    with pytest.raises(InputError, match=r"over 3\.0 days"):
        items_of("isdct", archive, ReadOptions(filesystem="pond"))


def test_a_directory_does_not_tell_when(tmp_path: Path) -> None:
    """When files were last written is when they were copied."""
    with pytest.raises(InputError, match="nothing here tells the time"):
        items_of("isdct", write_dump(tmp_path / "dump"), ReadOptions(filesystem="pond"))


def test_a_directory_of_dumps_is_one_capture_each(tmp_path: Path) -> None:
    for day, nand in (("2026-01-05", 3000), ("2026-01-06", 3100)):
        write_dump(tmp_path / "all" / day, {("nid1", "S1"): {"nand": nand}})
    rows = by_serial(tmp_path / "all", ReadOptions(filesystem="pond", timezone="UTC"))
    assert [(row["time"], row["nand_write_bytes"], row["host"]) for row in rows] == [
        (NOON_US - 12 * 3_600_000_000, 3000 << 25, "nid1"), (NOON_US + 12 * 3_600_000_000, 3100 << 25, "nid1"),
    ]  # fmt: skip
    with pytest.raises(InputError, match="2 dumps"):
        items_of("isdct", tmp_path / "all", POND)


def test_a_series_without_times_has_the_date_of_its_name(tmp_path: Path) -> None:
    text = series_csv(list(series(timestamp=None).values()))
    named, unnamed = tmp_path / "Intel_DCT_20260105.csv", tmp_path / "drives.csv"
    named.write_text(text)
    unnamed.write_text(text)
    row = by_serial(named, ReadOptions(filesystem="pond", timezone="UTC"))[0]
    assert row["time"] == NOON_US - 12 * 3_600_000_000
    with pytest.raises(InputError, match="nothing here tells the time"):
        items_of("isdct", unnamed, ReadOptions(filesystem="pond", timezone="UTC"))


def test_the_same_content_of_another_day_is_another_capture(tmp_path: Path) -> None:
    text = series_csv(list(series(timestamp=None).values()))
    days = [tmp_path / f"Intel_DCT_2026010{day}.csv" for day in (5, 6)]
    for day in days:
        day.write_text(text)
    store = tmp_path / "store"
    assert ingest(store, "isdct", days, ReadOptions(filesystem="pond", timezone="UTC")).rows["drives"] == 6
    again = ingest(store, "isdct", days, ReadOptions(filesystem="pond", timezone="UTC"))
    assert (again.already_present, dict(again.rows)) == (2, {})
    result = stored(store, "pond", "drives", "serial", "nand_write_bytes", "spare_pct")
    assert len(result) == 6
    assert result[0] == ("CVFA-1", 3000 << 25, 99.0)


def test_the_file_system_must_be_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="--filesystem"):
        items_of("isdct", write_dump(tmp_path), ReadOptions(at=NOON))


def test_unknown_settings_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"sources\.isdct\.colour"):
        list(get_source("isdct").captures([tmp_path], ReadOptions(settings={"colour": 1})))


# --- archives that mean harm ---


def member(name: str, kind: bytes = tarfile.REGTYPE, link: str = "") -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, link
    return info


def test_hostile_members_are_ignored_and_reported(tmp_path: Path) -> None:
    """Nothing is unpacked to disk, wherever a member would like to go."""
    evil = lists("EVIL-1")["smart_info"].encode()
    extra = [
        (member("../outside.txt"), evil),
        (member("/etc/outside.txt"), evil),
        (member("dump/nid1/link.txt", tarfile.SYMTYPE, "/etc/passwd"), b""),
        (member("dump/nid1/hard.txt", tarfile.LNKTYPE, "dump/nid1/link.txt"), b""),
        (member("dump/nid1/pipe.txt", tarfile.FIFOTYPE), b""),
        (member("dump/nid1/.hidden.txt"), evil),
    ]
    folder = tmp_path / "here"
    folder.mkdir()
    archive = pack(write_dump(tmp_path / "dump"), folder / "dump.tgz", extra)
    items = items_of("isdct", archive, POND)
    assert {row["serial"] for row in rows_of(items, "drives")} == {serial for _, serial in DRIVES}
    reasons = problems_of(items)
    assert sum("leaves the archive" in reason for reason in reasons) == 2
    assert sum("not a plain file" in reason for reason in reasons) == 3
    assert [path.name for path in folder.iterdir()] == ["dump.tgz"]
    assert not (tmp_path / "outside.txt").exists()


def test_a_member_of_any_size_costs_only_itself(tmp_path: Path) -> None:
    big = (member("dump/nid1/big.txt"), b"\n" * (dump_module.LONGEST_TEXT + 1))
    items = items_of("isdct", pack(write_dump(tmp_path / "dump"), tmp_path / "dump.tgz", [big]), POND)
    assert len(rows_of(items, "drives")) == 3
    assert any("longer than 1 MiB" in problem for problem in problems_of(items))


def test_an_archive_that_unpacks_without_end_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("iolens.sources.reading.bounded_input.RATIO_FROM", 100_000)
    bomb = (member("dump/nid1/bomb.txt"), bytes(9_000_000))
    items = items_of("isdct", pack(write_dump(tmp_path / "dump"), tmp_path / "dump.tgz", [bomb]), POND)
    assert len(rows_of(items, "drives")) == 3
    assert any("inflates beyond 800 times its size" in problem for problem in problems_of(items))


@pytest.mark.parametrize("kind", [tarfile.GNUTYPE_LONGNAME, tarfile.XHDTYPE])
def test_a_name_longer_than_any_is_not_held(tmp_path: Path, kind: bytes) -> None:
    endless = (member("././@LongLink", kind), b"n" * (2 << 20))
    items = items_of("isdct", pack(write_dump(tmp_path / "dump"), tmp_path / "dump.tgz", [endless]), POND)
    assert len(rows_of(items, "drives")) == 3
    assert f"cannot be read to its end: a header of {2 << 20} bytes" in problems_of(items)


def test_too_many_members_are_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("iolens.sources.reading.archives.MOST_MEMBERS", 10)
    items = items_of("isdct", pack(write_dump(tmp_path / "dump"), tmp_path / "dump.tgz"), POND)
    assert 0 < len(rows_of(items, "drives")) < 3
    assert any("more than 10 members" in problem for problem in problems_of(items))


def test_a_cut_archive_gives_what_came_before(tmp_path: Path) -> None:
    archive = pack(
        write_dump(tmp_path / "dump", {(f"n{item}", f"S{item}"): {} for item in range(200)}), tmp_path / "d.tgz"
    )
    archive.write_bytes(archive.read_bytes()[: archive.stat().st_size // 2])
    items = items_of("isdct", archive, POND)
    assert 0 < len(rows_of(items, "drives")) < 200
    assert any("cannot be read to its end" in problem for problem in problems_of(items))


# --- damage ---


def test_files_of_a_dump_that_are_none(tmp_path: Path) -> None:
    dump = write_dump(tmp_path / "dump")
    (dump / "nid00001" / "empty.txt").write_text("")
    (dump / "nid00001" / "noise.txt").write_bytes(bytes(range(256)))
    (dump / "nid00001" / "failed.txt").write_text("No Intel SSDs found.\n")
    (dump / "nid00001" / ".hidden").write_text("no")
    items = items_of("isdct", dump, POND)
    assert len(rows_of(items, "drives")) == 3
    assert sorted(problems_of(items)) == [
        "empty file instead of a list of `isdct show`", *["not a list of `isdct show`"] * 2
    ]  # fmt: skip


def test_a_cut_list_leaves_null(tmp_path: Path) -> None:
    dump = write_dump(tmp_path / "dump")
    for file in dump.rglob("*smart_info.txt"):
        text = file.read_text()
        file.write_text(text[: text.index("Raw : ")].replace("\n", "\r\n"))
    row = by_serial(dump)[0]
    assert (row["nand_write_bytes"], row["host_write_bytes"]) == (None, 0x10000 * 512_000)


@pytest.mark.parametrize(
    ("name", "value", "reason"),
    [
        ("data_units_written", str(2**63), "out of range"),
        ("data_units_written", str(2**55), "out of range"),  # in bytes
        ("data_units_written", "many", "is not a count"),
        ("data_units_written", "-5", "is not a count"),
        ("percentage_used", "1000", "is not a percentage"),
        ("power_on_hours", "1.5e400", "is not a count"),
    ],
)
def test_a_field_that_cannot_be_read_is_null_and_reported(tmp_path: Path, name: str, value: str, reason: str) -> None:
    rows = list(series().values())
    rows[1][name] = value
    del rows[1]["data_units_written_bytes"], rows[0]["data_units_written_bytes"], rows[2]["data_units_written_bytes"]
    path = tmp_path / "day.csv"
    path.write_text(series_csv(rows))
    items = items_of("isdct", path, ReadOptions(filesystem="pond"))
    assert len(rows_of(items, "drives")) == 3
    (problem,) = [item for item in items if isinstance(item, Problem)]
    assert problem.line == 3
    assert reason in problem.reason
    column = {"percentage_used": "wear_pct", "power_on_hours": "power_on_hours"}.get(name)
    if column is not None:
        assert [row[column] for row in rows_of(items, "drives")].count(None) == 1


def test_lines_that_are_wrong_are_reported_and_the_others_count(tmp_path: Path) -> None:
    rows = list(series().values())
    lines = series_csv(rows).splitlines()
    other = lines[1].rsplit(",", 1)[0] + ",OTHER"
    nameless = series_csv([rows[0] | {"serial_number": ""}]).splitlines()[1]
    timeless = series_csv([rows[0] | {"timestamp": 99999999999}]).splitlines()[1]
    conflict = series_csv([rows[0] | {"power_on_hours": 7}]).splitlines()[1]
    path = tmp_path / "day.csv"
    path.write_text("\r\n".join([*lines, lines[1], other, nameless, timeless, conflict, "cut,li", ""]))
    items = items_of("isdct", path, ReadOptions(filesystem="pond"))
    assert len(rows_of(items, "drives")) == 3
    assert [(item.line, item.reason.split(" as ")[0][:40]) for item in items if isinstance(item, Problem)] == [
        (6, "serialnumber is there twice,"),
        (7, "a drive without a serial number"),
        (8, "timestamp '99999999999' is not a time in"),
        (9, "drive 'CVFA-1' again at the same time, w"),
        (10, "2 columns, the heading has 21"),
    ]


def test_missing_columns_are_null(tmp_path: Path) -> None:
    """The design study's table of drive writes per day has four of them."""
    path = tmp_path / "dwpd_2026-01-05.csv"
    path.write_text("serial_number,data_units_written_bytes,physical_size,power_on_hours,dwpd\nS1,1000,500,48,1.0\n")
    (row,) = by_serial(path, ReadOptions(filesystem="pond", timezone="UTC"))
    assert (row["host_write_bytes"], row["capacity_bytes"], row["power_on_hours"]) == (1000, 500, 48.0)
    assert row["nand_write_bytes"] is row["model"] is row["wear_pct"] is None


def test_a_drive_without_any_counter_has_no_row(tmp_path: Path) -> None:
    path = tmp_path / "day.csv"
    path.write_text("serial_number,data_units_written,timestamp\nS1,,1767614400\nS2,nan,1767614400\n")
    items = items_of("isdct", path, ReadOptions(filesystem="pond"))
    assert rows_of(items, "drives") == []
    assert [problem.partition(": ")[2] for problem in problems_of(items)[:2]] == ["no counter that could be read"] * 2


@pytest.mark.parametrize("share", [0.3, 0.6, 0.99])
def test_a_cut_json_series_gives_the_drives_before_the_cut(tmp_path: Path, share: float) -> None:
    drives = {f"S{number}": dict(series()["CVFA-1"], serial_number=f"S{number}") for number in range(50)}
    text = json.dumps(drives, indent=1)
    path = tmp_path / "day.json"
    path.write_text(text[: int(len(text) * share)])
    items = items_of("isdct", path, ReadOptions(filesystem="pond"))
    result = rows_of(items, "drives")
    assert share * 50 - 2 <= len(result) <= share * 50
    (problem,) = [item for item in items if isinstance(item, Problem)]
    assert problem.reason.startswith("not JSON from here on")
    assert problem.line == text[: int(len(text) * share)].count("\n", 0, text.index(f'"S{len(result)}"')) + 1


def test_entries_that_are_no_drives(tmp_path: Path) -> None:
    path = tmp_path / "day.json"
    path.write_text(json.dumps({**series(), "S9": [1, 2], "S10": 7}))
    items = items_of("isdct", path, ReadOptions(filesystem="pond"))
    assert (len(rows_of(items, "drives")), len(problems_of(items))) == (3, 2)


def test_in_a_directory_a_bad_file_does_not_stop_the_others(tmp_path: Path) -> None:
    folder = tmp_path / "days"
    folder.mkdir()
    (folder / "a.json").write_text(json.dumps(series()))
    (folder / "b.csv.gz").write_bytes(gzip.compress(series_csv(list(series().values())).encode() * 500)[:-50])
    captures = list(get_source("isdct").captures([folder, tmp_path / "absent"], ReadOptions(filesystem="pond")))
    items = [item for capture in captures for item in guarded(capture)]
    assert len(rows_of(items, "drives")) >= 6
    reasons = problems_of(items)
    assert any("No such file" in reason for reason in reasons)
    assert any("cannot be read to its end" in reason for reason in reasons)


# --- numbers and names ---


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("0x05887CEF", 92_830_959), ("1,234,567", 1_234_567), ("1.234.567", 1_234_567), ("499.055", 499_055),
        ("1\u202f234", 1234), ("1'234", 1234), ("12,34,567", 1_234_567), ("49,235,197 (25.21 TB)", 49_235_197),
        ("246.0", 246), ("1e3", 1000), (7, 7), (7.0, 7), (float("nan"), None), ("", None), ("nan", None), (None, None),
    ],
)  # fmt: skip
def test_counts_as_tools_write_them(text: object, count: int | None) -> None:
    assert count_of(text) == count


@pytest.mark.parametrize("text", ["1,23", "12 Celsius", "1.5", "0x", "-1", -1, True, 1.5, 2**63, "9" * 30, "1,2345"])
def test_what_is_no_count(text: object) -> None:
    with pytest.raises(MalformedValue):
        count_of(text)


def test_percentages_and_serial_numbers() -> None:
    assert (percent_of("7%"), percent_of(" 7 % "), percent_of(104), percent_of("")) == (7.0, 7.0, 104.0, None)
    for wrong in ("-1", "300", "seven", True):
        with pytest.raises(MalformedValue):
            percent_of(wrong)
    assert serial_of(" S1 ") == "S1"
    assert {serial_of(item) for item in ("REDACTED", "", "0000", "xxxx", "N/A", None, True, "Unknown")} == {None}


@pytest.mark.parametrize(
    ("name", "time"),
    [
        ("Intel_DCT_20190401.csv.gz", datetime(2019, 4, 1)),
        ("coribb_dwpd_2018-04-25.csv", datetime(2018, 4, 25)),
        ("nvme0-20260105T1230.txt", datetime(2026, 1, 5, 12, 30)),
        ("timestamp_20170825183142", datetime(2017, 8, 25, 18, 31, 42)),
        ("BTLJ20190401", None),  # a serial number
        ("20190231.csv", None),
        ("120190401.csv", None),
    ],
)
def test_dates_in_names(name: str, time: datetime | None) -> None:
    timestamp = time_in_name(name)
    assert (None if timestamp is None else timestamp.local) == time


def test_one_name_however_it_is_written() -> None:
    assert {plain(item) for item in ("DataUnitsWritten", "Data Units Written", "data_units_written")} == {
        "dataunitswritten"
    }


# --- real captures ---

BB = ReadOptions(filesystem="bb")


def test_the_real_dump_and_its_archive(shared_data: Path) -> None:
    options = ReadOptions(filesystem="bb", at=datetime(2017, 8, 25, 18, 31, tzinfo=UTC))
    folder = shared_data / "isdct"
    rows = by_serial(folder / "sample_nersc_isdct_dir", options)
    assert rows == by_serial(folder / "sample_nersc_isdct.tgz", options)
    assert (len(rows), len({row["host"] for row in rows})) == (16, 4)
    assert {row["serial"][-2:] for row in rows} == {"-1", "-2"}  # both controllers of each card
    (row,) = [row for row in rows if row["serial"] == "CVF51A58219DE7F493-1"]
    assert (row["host_write_bytes"], row["nand_write_bytes"]) == (1_416_488 << 25, 3_140_623 << 25)
    assert (row["capacity_bytes"], row["power_on_hours"], row["host"]) == (1_600_319_143_936, 16589.0, "nid00842")
    assert by_serial(folder / "sample_nersc_isdct.tgz", BB)[0]["time"] == 1_503_685_872_000_000  # its oldest member


def test_waf_as_pytokio_computes_it(shared_data: Path) -> None:
    path = shared_data / "isdct" / "sample_nersc_isdct-1.json.gz"
    published = json.loads(gzip.decompress(path.read_bytes()))
    rows = by_serial(path, BB)
    assert len(rows) == len(published) == 12
    for row in rows:
        its = published[row["serial"]]
        assert row["nand_write_bytes"] / row["host_write_bytes"] == its["write_amplification_factor"]
        assert row["nand_write_bytes"] == its["smart_nand_bytes_written_bytes"]
        assert row["host_read_bytes"] == its["data_units_read_bytes"]
        assert (row["time"], row["host"]) == (its["timestamp"] * 1_000_000, its["node_name"])


def test_write_amplification_of_the_paper(shared_data: Path) -> None:
    """Figure 2 of the all-flash design paper: 1.35 smallest, 2.68 median, 3.17 at 95 %, 10.15 largest."""
    rows = by_serial(shared_data / "isdct" / "cori-bb-daily" / "Intel_DCT_20190401.csv.gz", BB)
    wafs = np.array([row["nand_write_bytes"] / row["host_write_bytes"] for row in rows])
    assert len(wafs) == 1152
    assert np.percentile(wafs, [0, 50, 95, 100]) == pytest.approx([1.35, 2.68, 3.17, 10.15], abs=0.01)


def test_the_daily_series(shared_data: Path) -> None:
    names = ("20190305.csv", "20190306.csv", "20200227.json")
    rows = by_serial([shared_data / "isdct" / "cori-bb-daily" / f"Intel_DCT_{name}.gz" for name in names], BB)
    assert (len(rows), len({row["time"] for row in rows})) == (1148 + 1152 + 1152, 3)
    unwritten = {row["serial"] for row in rows if row["host_write_bytes"] == 0}
    assert len(unwritten) == 2  # fresh in March 2019: no WAF yet


def test_drive_writes_per_day_of_the_paper(shared_data: Path) -> None:
    path = shared_data / "nersc-fs-design" / "coribb_dwpd_2018-04-25.csv"
    assert recognise(path).name == "isdct"
    rows = {row["serial"]: row for row in by_serial(path, ReadOptions(filesystem="bb", timezone="America/Los_Angeles"))}
    with path.open() as stream:
        published = {line["serial_number"]: float(line["dwpd"]) for line in csv.DictReader(stream)}
    assert len(rows) == len(published) == 1152
    for serial, row in rows.items():
        days = row["power_on_hours"] / 24
        assert row["host_write_bytes"] / row["capacity_bytes"] / days == pytest.approx(published[serial], rel=1e-10)
    assert {row["time"] for row in rows.values()} == {1_524_639_600_000_000}  # midnight in California
