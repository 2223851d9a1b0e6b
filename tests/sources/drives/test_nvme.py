"""Drives by nvme-cli: both layouts of smart-log and JSON say the same, and a vendor's log beside it adds the flash."""

from __future__ import annotations

import gzip
import json
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from iolens.errors import InputError
from iolens.records import Note, Problem
from iolens.sources import get_source, recognise
from iolens.sources.drives.nvme_logs import controller
from iolens.sources.reading.options import ReadOptions
from tests.sources.stored import ingest, items_of, problems_of, rows_of, stored

NOON = datetime(2026, 1, 5, 12, tzinfo=UTC)
NOON_US = 1_767_614_400_000_000
POND = ReadOptions(filesystem="pond", at=NOON)
NAMED = ReadOptions(filesystem="pond", at=NOON, target="S1")

OLD = """Smart Log for NVME device:nvme0n1 namespace-id:ffffffff
critical_warning                    : 0
temperature                         : 41 C
available_spare                     : 98%
percentage_used                     : 7%
data_units_read                     : 2,000
data_units_written                  : 3,000,000
power_on_hours                      : 1,001
media_errors                        : 5
"""
NEW = """Smart Log for NVME device:nvme0 namespace-id:ffffffff
critical_warning\t\t\t: 0
temperature\t\t\t\t: 41 °C (314 K)
available_spare\t\t\t\t: 98%
percentage_used\t\t\t\t: 7%
endurance group critical warning summary: 0
Data Units Read\t\t\t\t: 2,000 (1.02 GB)
Data Units Written\t\t\t: 3,000,000 (1.54 TB)
power_on_hours\t\t\t\t: 1,001
media_errors\t\t\t\t: 5
Temperature Sensor 1           : 42 °C (315 K)
"""
JSON = {
    "critical_warning": 0, "temperature": 314, "avail_spare": 98, "percent_used": 7, "data_units_read": 2000,
    "data_units_written": 3_000_000, "power_on_hours": 1001, "media_errors": 5, "num_err_log_entries": 0,
}  # fmt: skip
INTEL = """Additional Smart Log for NVME device:nvme0 namespace-id:ffffffff
key                               normalized raw
program_fail_count              : 100%       0
wear_leveling                   :  70%       min: 3523, max: 3603, avg: 3562
nand_bytes_written              : 100%       sectors: 100000
host_bytes_written              : 100%       sectors: 45776
"""  # 45,776 × 32 MiB are the 3,000,000 data units above
SOLIDIGM = """Additional Smart Log for NVMe device:nvme0 namespace-id:ffffffff UUID-idx:0
ID             KEY                                 Normalized     Raw
0xad    wear_leveling_count                            100         min: 1, max: 2, avg: 1
0xf4    nand_bytes_written                             100         100000
0xf5    host_bytes_written                             100         45776
"""
SAMSUNG = """[015:000] PhysicallyWrittenBytes                            : 3355443200000
[031:016] Physically Read Bytes                             : 7095487750725632
[119:119] % Free Blocks                                     : 0
"""
OCP = """SMART Cloud Attributes :-
  Physical media units written -\t\t0 3355443200000
  Physical media units read    -\t\t0 467772386381824
  Bad user nand blocks - Raw\t\t\t0
"""
CLOUD = """SMART Cloud Attributes for NVMe device       : nvme0
Physical Media Units Written                 : 3,355,443,200,000
Physical Media Units Read                    : 1
"""
TOSHIBA = """Vendor Log Page 0xCA for NVME device:nvme0 namespace-id:ffffffff
Total data written to NAND               : 3125.0 GiB
Total data read from NAND                : 1463243.5 GiB
"""
IDENTIFY = """NVME Identify Controller:
vid       : 0x8086
sn        : BTLJ1234
mn        : INTEL SSDPE2KX080T8
fr        : VDV10170
tnvmcap   : 8001563222016
"""
OTHER_IDENTIFY = IDENTIFY.replace("BTLJ1234", "BTLJ9999")
NAND = 3_355_443_200_000  # 100,000 × 32 MiB


def write(tmp_path: Path, text: str | Mapping[str, Any] | list[Any], name: str = "drive.txt") -> Path:
    path = tmp_path / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text if isinstance(text, str) else json.dumps(text, indent=1))
    return path


def row_of(paths: Path | list[Path], options: ReadOptions = NAMED) -> dict[str, Any]:
    items = items_of("nvme", paths, options)
    assert [item for item in items if isinstance(item, Problem) and not isinstance(item, Note)] == []
    (row,) = rows_of(items, "drives")
    return row


@pytest.mark.parametrize("text", [OLD, NEW, JSON], ids=["old", "new", "json"])
def test_smart_log_in_every_layout(tmp_path: Path, text: Any) -> None:
    path = write(tmp_path, text)
    assert recognise(path).name == "nvme"
    row = row_of(path)
    assert row == {
        "time": NOON_US, "filesystem": "pond", "serial": "S1", "model": None, "firmware": None, "host": None,
        "device": row["device"], "capacity_bytes": None, "host_write_bytes": 3_000_000 * 512_000,
        "host_read_bytes": 2000 * 512_000, "nand_write_bytes": None, "power_on_hours": 1001.0, "wear_pct": 7.0,
        "spare_pct": 98.0, "media_errors": 5,
    }  # fmt: skip


@pytest.mark.parametrize("separator", [".", "'", "\u202f", " ", ""])
def test_thousands_as_a_locale_separates_them(tmp_path: Path, separator: str) -> None:
    row = row_of(write(tmp_path, OLD.replace(",", separator)))
    assert row["host_write_bytes"] == 3_000_000 * 512_000


def test_lines_without_their_heading(tmp_path: Path) -> None:
    assert row_of(write(tmp_path, OLD.partition("\n")[2]))["power_on_hours"] == 1001.0


@pytest.mark.parametrize(
    "text",
    [
        INTEL, SOLIDIGM, SAMSUNG, OCP, CLOUD, TOSHIBA,
        {"Intel Smart log": "nvme0", "Device stats": {
            "nand_bytes_written": {"normalized": 100, "raw": 100_000},
            "host_bytes_written": {"normalized": 100, "raw": 45_776},
        }},
        {"Physical media units written": {"hi": 0, "lo": NAND}, "Physical media units read": {"hi": 0, "lo": 1}},
        {"physical_media_units_written": {"hi": 0, "lo": NAND}},
        {"vs-smart-add-log": {"PhysicallyWrittenBytes": str(NAND)}},
    ],
    ids=["intel", "solidigm", "samsung", "ocp", "cloud", "toshiba", "intel json", "ocp json", "ocp json 2", "samsung"],
)  # fmt: skip
def test_bytes_written_to_flash(tmp_path: Path, text: Any) -> None:
    path = write(tmp_path, text)
    assert recognise(path).name == "nvme"
    assert row_of(path)["nand_write_bytes"] == NAND


def test_intel_tells_the_host_beside_it(tmp_path: Path) -> None:
    """Host and flash of one log, so that their quotient is its WAF, though NVMe counts the host more finely."""
    row = row_of(write(tmp_path, OLD + INTEL))
    assert (row["host_write_bytes"], row["nand_write_bytes"]) == (45_776 << 25, NAND)
    alone = row_of(write(tmp_path, INTEL))
    assert (alone["host_write_bytes"], alone["power_on_hours"]) == (45_776 << 25, None)


def test_a_vendor_whose_unit_is_another_is_not_believed(tmp_path: Path) -> None:
    items = items_of("nvme", write(tmp_path, OLD + INTEL.replace("45776", "3000000000")), NAMED)
    (row,) = rows_of(items, "drives")
    assert (row["host_write_bytes"], row["nand_write_bytes"]) == (3_000_000 * 512_000, None)
    assert "its unit is not known" in problems_of(items)[0]


def test_a_counter_that_the_drive_does_not_keep_is_null(tmp_path: Path) -> None:
    row = row_of(write(tmp_path, OLD + INTEL.replace("100%", "  0%").replace("100000", "0").replace("45776", "0")))
    assert (row["nand_write_bytes"], row["host_write_bytes"]) == (None, 3_000_000 * 512_000)


def test_a_log_of_uncertain_unit_is_left_out_and_reported(tmp_path: Path) -> None:
    seagate = "Seagate Extended SMART Information :\nPhysical (NAND) bytes written    60137   0x2d0cdc01b\n"
    items = items_of("nvme", write(tmp_path, OLD + seagate), NAMED)
    assert rows_of(items, "drives")[0]["nand_write_bytes"] is None
    assert any("Seagate" in problem for problem in problems_of(items))


# --- which drive ---


def test_logs_of_one_drive_in_several_files_are_one_row(tmp_path: Path) -> None:
    paths = [
        write(tmp_path, OLD, "nvme0.smart-log.txt"), write(tmp_path, INTEL, "nvme0.intel-smart-log-add.txt"),
        write(tmp_path, IDENTIFY, "nvme0.id-ctrl.txt"),
    ]  # fmt: skip
    row = row_of(paths, POND)
    assert (row["serial"], row["model"], row["firmware"]) == ("BTLJ1234", "INTEL SSDPE2KX080T8", "VDV10170")
    assert (row["capacity_bytes"], row["nand_write_bytes"], row["wear_pct"]) == (8_001_563_222_016, NAND, 7.0)
    assert row_of(paths[::-1], POND) == row


def test_the_list_of_a_host_identifies_its_drives(tmp_path: Path) -> None:
    devices = [
        {"DevicePath": f"/dev/nvme{item}n{namespace}", "SerialNumber": f"S{item}", "ModelNumber": "M", "Firmware": "F",
         "PhysicalSize": 1000}
        for item in (0, 1, 2) for namespace in (1, 2)
    ]  # fmt: skip
    paths = [write(tmp_path, {"Devices": devices}, "nvme-list.json"), write(tmp_path, OLD, "nvme0.txt")]
    paths += [write(tmp_path, OLD.replace("nvme0n1", "nvme1n1"), "smart-log.txt")]
    items = items_of("nvme", paths, POND)
    rows = rows_of(items, "drives")
    assert [(row["serial"], row["capacity_bytes"], row["model"]) for row in rows] == [
        ("S0", 2000, "M"),
        ("S1", 2000, "M"),
    ]
    assert problems_of(items) == ["no log of 'nvme2': only who it is"]


def test_a_file_named_after_the_serial_number(tmp_path: Path) -> None:
    paths = [write(tmp_path, OLD, "S4YP-smart-log.txt"), write(tmp_path, SAMSUNG, "S4YP_samsung-vs-smart-add-log.txt")]
    items = items_of("nvme", paths, POND)
    (row,) = rows_of(items, "drives")
    assert (row["serial"], row["nand_write_bytes"], row["wear_pct"]) == ("S4YP", NAND, 7.0)
    assert problems_of(items) == ["no serial number: the drive is called 'S4YP'"]
    assert all(isinstance(item, Note) for item in items if isinstance(item, Problem))


def test_a_device_name_alone_is_no_serial_number(tmp_path: Path) -> None:
    """Every host has an nvme0."""
    path = write(tmp_path, OLD, "node17/nvme0.smart-log.txt")
    items = items_of("nvme", path, POND)
    assert rows_of(items, "drives") == []
    assert "a name every host has" in problems_of(items)[0]
    row = row_of(path, ReadOptions(filesystem="pond", at=NOON, settings={"host": "folder"}))
    assert (row["serial"], row["host"], row["device"]) == ("node17:nvme0", "node17", "nvme0n1")


def test_a_log_of_no_drive_is_reported(tmp_path: Path) -> None:
    items = items_of("nvme", write(tmp_path, SAMSUNG, "samsung_vs-smart-add-log.txt"), POND)
    assert rows_of(items, "drives") == []
    assert "does not tell which drive it is of: supply --target" in problems_of(items)[0]


@pytest.mark.parametrize(
    "order", [lambda who, log: who + log, lambda who, log: log + who], ids=["identity first", "identity last"]
)
def test_a_loop_over_all_drives_in_one_file(tmp_path: Path, order: Any) -> None:
    other = OLD.replace("nvme0n1", "nvme1n1").replace("1,001", "2,002")
    text = order(IDENTIFY, OLD + SAMSUNG) + order(OTHER_IDENTIFY, other + SAMSUNG)
    items = items_of("nvme", write(tmp_path, text, "node17.txt"), POND)
    assert problems_of(items) == []
    assert [(row["serial"], row["device"], row["power_on_hours"]) for row in rows_of(items, "drives")] == [
        ("BTLJ1234", "nvme0n1", 1001.0), ("BTLJ9999", "nvme1n1", 2002.0),
    ]  # fmt: skip


def test_without_identities_that_file_names_the_host(tmp_path: Path) -> None:
    text = OLD + OLD.replace("nvme0n1", "nvme1n1")
    rows = rows_of(items_of("nvme", write(tmp_path, text, "node17.txt"), POND), "drives")
    assert [row["serial"] for row in rows] == ["node17:nvme0", "node17:nvme1"]


def test_a_target_names_one_drive(tmp_path: Path) -> None:
    text = OLD + OLD.replace("nvme0n1", "nvme1n1")
    items = items_of("nvme", write(tmp_path, text), NAMED)
    assert [row["device"] for row in rows_of(items, "drives")] == ["nvme0n1"]
    assert problems_of(items) == ["a smart-log of nvme1n1, but 'S1' is nvme0n1 at this time: left out"]


def test_two_logs_that_disagree(tmp_path: Path) -> None:
    paths = [write(tmp_path, OLD, "S1.smart-log.txt"), write(tmp_path, OLD.replace("7%", "8%"), "S1_smart-log.txt")]
    items = items_of("nvme", paths, POND)
    assert [row["wear_pct"] for row in rows_of(items, "drives")] == [7.0]
    assert "another smart-log of 'S1' at the same time: the first counts" in problems_of(items)
    again = items_of("nvme", write(tmp_path, OLD + OLD), NAMED)
    assert (len(rows_of(again, "drives")), problems_of(again)) == (1, [])


def test_names_of_controllers() -> None:
    assert {controller(item) for item in ("nvme0", "/dev/nvme0n1", "nvme0n1p2", "nvme0c1n1")} == {"nvme0"}
    assert controller("S4YP") is None


# --- when ---


def test_when(tmp_path: Path) -> None:
    zoned = ReadOptions(filesystem="pond", timezone="Europe/Berlin")
    assert row_of(write(tmp_path, OLD, "S1.smart-log.20260105T1300.txt"), zoned)["time"] == NOON_US
    items = items_of("nvme", write(tmp_path, OLD, "S1.txt"), zoned)
    assert rows_of(items, "drives") == []
    assert "nothing here tells the time" in problems_of(items)[0]


def test_a_series_in_one_file(tmp_path: Path) -> None:
    days = [
        ("BEGIN 1767614400", OLD), ("2026-01-05T12:00:05Z", NEW.replace("1,001", "1,002")),
        ("2026-01-05 12:00:10", json.dumps(JSON, indent=1)),
    ]  # fmt: skip
    text = "\n".join(f"{stamp}\n{log}" for stamp, log in days)
    items = items_of("nvme", write(tmp_path, text), ReadOptions(filesystem="pond", target="S1", timezone="UTC"))
    assert problems_of(items) == []
    assert [(row["time"] - NOON_US) // 1_000_000 for row in rows_of(items, "drives")] == [0, 5, 10]
    with pytest.raises(InputError, match="--timezone"):
        items_of("nvme", write(tmp_path, text), NAMED)


def test_the_same_content_of_two_days_is_two_readings(tmp_path: Path) -> None:
    options, store = ReadOptions(filesystem="pond", timezone="UTC"), tmp_path / "store"
    paths = [write(tmp_path, OLD, f"S1.smart-log.2026-01-0{day}.txt") for day in (5, 6)]
    for path in paths:
        assert ingest(store, "nvme", [path], options).rows["drives"] == 1
    again = ingest(store, "nvme", paths, options)
    assert (again.repeated, dict(again.rows)) == (2, {})
    assert len(stored(store, "pond", "drives", "serial", "host_write_bytes")) == 2


# --- damage ---


def test_crlf_and_gzip(tmp_path: Path) -> None:
    path = tmp_path / "drive.txt.gz"
    path.write_bytes(gzip.compress((OLD + INTEL).replace("\n", "\r\n").encode()))
    assert recognise(path).name == "nvme"
    assert row_of(path)["nand_write_bytes"] == NAND
    path.write_bytes(gzip.compress((OLD * 3000).encode())[:-40])
    assert any("cannot be read to its end" in problem for problem in problems_of(items_of("nvme", path, NAMED)))


def test_a_cut_log_leaves_null(tmp_path: Path) -> None:
    row = row_of(write(tmp_path, OLD[: OLD.index("data_units_written")]))
    assert (row["host_read_bytes"], row["host_write_bytes"], row["power_on_hours"]) == (2000 * 512_000, None, None)


def test_damaged_json_costs_itself(tmp_path: Path) -> None:
    cut = json.dumps(JSON)[:60]
    items = items_of("nvme", write(tmp_path, f"{cut}\n{OLD}"), NAMED)
    assert (len(rows_of(items, "drives")), problems_of(items)[0][:9]) == (1, "not JSON:")
    items = items_of("nvme", write(tmp_path, [JSON, {"a": 1}, 7]), NAMED)
    assert (len(rows_of(items, "drives")), len(problems_of(items))) == (1, 2)


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("3,000,000", "9" * 25, "out of range"),
        ("3,000,000", str(2**60), "out of range"),
        ("3,000,000", "many", "is not a count"),
        ("7%", "999%", "is not a percentage"),
    ],
)
def test_a_value_that_cannot_be_is_null_and_reported(tmp_path: Path, old: str, new: str, reason: str) -> None:
    items = items_of("nvme", write(tmp_path, OLD.replace(old, new)), NAMED)
    (row,) = rows_of(items, "drives")
    assert row["host_write_bytes" if old != "7%" else "wear_pct"] is None
    assert reason in problems_of(items)[0]


@pytest.mark.parametrize("words", ["1 0", "0 9223372036854775808", "x y"])
def test_flash_bytes_beyond_any_drive(tmp_path: Path, words: str) -> None:
    items = items_of("nvme", write(tmp_path, OLD + OCP.replace("0 3355443200000", words)), NAMED)
    assert rows_of(items, "drives")[0]["nand_write_bytes"] is None
    assert any("bytes written to flash" in problem for problem in problems_of(items))


def test_much_rubbish_ends(tmp_path: Path) -> None:
    items = items_of("nvme", write(tmp_path, "{x\n" * 5000 + OLD), NAMED)
    assert len(problems_of(items)) < 1100
    assert problems_of(items)[-1] == "so much is wrong that the rest is not read"


def test_settings_and_what_must_be_supplied(tmp_path: Path) -> None:
    path = write(tmp_path, OLD)
    for wrong in ({"host": 7}, {"colour": 1}):
        with pytest.raises(InputError, match=r"sources\.nvme"):
            list(get_source("nvme").captures([path], ReadOptions(settings=wrong)))
    with pytest.raises(InputError, match="--filesystem"):
        items_of("nvme", path, ReadOptions(at=NOON))


# --- real captures ---


def test_vendor_logs_as_others_read_them(shared_data: Path) -> None:
    """CacheLib's tests expect these very bytes of the two excerpts."""
    folder = shared_data / "nvme-smart" / "nvme-cli"
    assert row_of(folder / "intel_smart-log-add.txt")["nand_write_bytes"] == 7_547_837_550_166_016
    assert row_of(folder / "samsung_vs-smart-add-log.txt")["nand_write_bytes"] == 5_357_954_930_143_232
    intel = row_of(folder / "intel_smart-log-add.txt")
    assert intel["nand_write_bytes"] / intel["host_write_bytes"] == pytest.approx(224_943_088 / 172_365_270)


def test_smart_logs_of_both_layouts_and_json(shared_data: Path) -> None:
    folder = shared_data / "nvme-smart" / "nvme-cli"
    old, new, plain = (
        row_of(folder / f"SYNTHETIC_smart-log{name}") for name in ("_v1_style.txt", "_v2_style.txt", ".json")
    )
    assert {name: old[name] for name in old if name != "device"} == {
        name: plain[name] for name in plain if name != "device"
    }
    assert (new["host_write_bytes"], new["power_on_hours"]) == (49_235_197 * 512_000, 7383.0)
    for path in sorted(folder.iterdir()):
        assert recognise(path).name == "nvme"
