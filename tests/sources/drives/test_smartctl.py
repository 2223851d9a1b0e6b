"""Drives by `smartctl --json`: known units are converted, uncertain ones stay NULL, blotted-out serials stay apart."""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from iolens.errors import InputError
from iolens.records import Note, Problem
from iolens.sources import get_source, recognise
from iolens.sources.reading.options import ReadOptions
from tests.sources.stored import ingest, items_of, problems_of, rows_of, stored

POND = ReadOptions(filesystem="pond")
NOON_S = 1_767_614_400
MIB, GIB = 1 << 20, 1 << 30


def document(**more: Any) -> dict[str, Any]:
    """What smartctl prints of any drive."""
    return {
        "json_format_version": [1, 0],
        "smartctl": {"version": [7, 3], "argv": ["smartctl", "--json"], "exit_status": 0},
        "local_time": {"time_t": NOON_S, "asctime": "Mon Jan  5 12:00:00 2026 UTC"},
        "device": {"name": "/dev/sda", "type": "sat", "protocol": "ATA"},
        "model_name": "Maker Model",
        "serial_number": "S1",
        "firmware_version": "FW1",
        "user_capacity": {"blocks": 1000, "bytes": 512_000},
        "logical_block_size": 512,
        "power_on_time": {"hours": 1000},
        **more,
    }


def nvme(**more: Any) -> dict[str, Any]:
    log = {
        "critical_warning": 0, "available_spare": 98, "percentage_used": 7, "data_units_read": 2000,
        "data_units_written": 3000, "power_on_hours": 1001, "media_errors": 5,
    } | more.pop("log", {})  # fmt: skip
    return document(nvme_smart_health_information_log=log, nvme_total_capacity=3_200_631_791_616, **more)


def sata(attributes: Mapping[int, tuple[str, int, int]], **more: Any) -> dict[str, Any]:
    """Attributes by number: name, normalised value, raw value."""
    table = [
        {"id": number, "name": name, "value": value, "raw": {"value": raw, "string": str(raw)}}
        for number, (name, value, raw) in attributes.items()
    ]
    return document(ata_smart_attributes={"revision": 1, "table": table}, **more)


def write(tmp_path: Path, content: Any, name: str = "drive.json") -> Path:
    path = tmp_path / name
    path.write_text(content if isinstance(content, str) else json.dumps(content, indent=2))
    return path


def row_of(tmp_path: Path, content: Any, options: ReadOptions = POND) -> dict[str, Any]:
    items = items_of("smartctl", write(tmp_path, content), options)
    assert [item for item in items if isinstance(item, Problem) and not isinstance(item, Note)] == []
    (row,) = rows_of(items, "drives")
    return row


def test_an_nvme_drive(tmp_path: Path) -> None:
    assert row_of(tmp_path, nvme()) == {
        "time": NOON_S * 1_000_000, "filesystem": "pond", "serial": "S1", "model": "Maker Model", "firmware": "FW1",
        "host": None, "device": "/dev/sda", "capacity_bytes": 3_200_631_791_616, "host_write_bytes": 3000 * 512_000,
        "host_read_bytes": 2000 * 512_000, "nand_write_bytes": None, "power_on_hours": 1001.0, "wear_pct": 7.0,
        "spare_pct": 98.0, "media_errors": 5,
    }  # fmt: skip


def test_the_capacity_of_one_namespace_where_the_controller_tells_none(tmp_path: Path) -> None:
    content = nvme()
    content["nvme_total_capacity"] = 0
    assert row_of(tmp_path, content)["capacity_bytes"] == 512_000
    del content["nvme_total_capacity"], content["user_capacity"]
    assert row_of(tmp_path, content)["capacity_bytes"] is None


def test_a_sas_drive(tmp_path: Path) -> None:
    content = document(
        scsi_error_counter_log={
            "read": {"gigabytes_processed": "1234.567"}, "write": {"gigabytes_processed": "89.012"},
        },
        scsi_percentage_used_endurance_indicator=3,
        scsi_model_name="SEAGATE XS3840",
    )  # fmt: skip
    del content["model_name"]
    row = row_of(tmp_path, content)
    assert (row["host_read_bytes"], row["host_write_bytes"]) == (1_234_567_000_000, 89_012_000_000)
    assert (row["wear_pct"], row["model"]) == (3.0, "SEAGATE XS3840")


@pytest.mark.parametrize(
    ("number", "name", "column", "unit"),
    [
        (241, "Host_Writes_32MiB", "host_write_bytes", 32 * MIB),
        (225, "Host_Writes_32MiB", "host_write_bytes", 32 * MIB),
        (242, "Host_Reads_32MiB", "host_read_bytes", 32 * MIB),
        (241, "Lifetime_Writes_GiB", "host_write_bytes", GIB),
        (246, "Host_Writes_MiB", "host_write_bytes", MIB),
        (249, "NAND_Writes_1GiB", "nand_write_bytes", GIB),
        (243, "NAND_Writes_32MiB", "nand_write_bytes", 32 * MIB),
        (233, "Flash_Writes_GiB", "nand_write_bytes", GIB),
    ],
)
def test_sata_attributes_whose_name_tells_the_unit(
    tmp_path: Path, number: int, name: str, column: str, unit: int
) -> None:
    assert row_of(tmp_path, sata({number: (name, 100, 7)}))[column] == 7 * unit


@pytest.mark.parametrize(
    "name", ["Total_LBAs_Written", "Total_Writes_GB", "TLC_Writes_32MiB", "NAND_Reads_1GiB", "Unknown_SSD_Attribute"]
)
def test_an_attribute_of_uncertain_unit_is_null(tmp_path: Path, name: str) -> None:
    row = row_of(tmp_path, sata({241: (name, 100, 7)}))
    assert row["host_write_bytes"] is row["nand_write_bytes"] is None


def test_that_is_reported(tmp_path: Path) -> None:
    items = items_of("smartctl", write(tmp_path, sata({241: ("Total_LBAs_Written", 100, 7)})), POND)
    assert problems_of(items) == ["'Maker Model' does not tell the unit of Total_LBAs_Written: left out"]
    assert isinstance(items[0], Note)


def test_makers_that_document_their_units(tmp_path: Path) -> None:
    """Also where smartmontools' database does not know the drive and gives its default names."""
    attributes = {241: ("Total_LBAs_Written", 100, 7), 242: ("Total_LBAs_Read", 100, 9), 249: ("Unknown", 100, 3)}
    intel = row_of(tmp_path, sata(attributes, model_name="INTEL SSDSC2BB480G4"))
    assert [intel[f"{item}_bytes"] for item in ("host_write", "host_read", "nand_write")] == [
        7 * 32 * MIB, 9 * 32 * MIB, 3 * GIB,
    ]  # fmt: skip
    samsung = row_of(tmp_path, sata(attributes, model_name="SAMSUNG MZ7WD240", logical_block_size=4096))
    assert [samsung[f"{item}_bytes"] for item in ("host_write", "host_read", "nand_write")] == [
        7 * 4096,
        9 * 4096,
        None,
    ]


def test_of_two_counters_of_flash_the_finer_counts(tmp_path: Path) -> None:
    for order in ((243, 249), (249, 243)):
        named = {243: ("NAND_Writes_32MiB", 100, 100), 249: ("NAND_Writes_1GiB", 100, 3)}
        row = row_of(tmp_path, sata({number: named[number] for number in order}))
        assert row["nand_write_bytes"] == 100 * 32 * MIB


@pytest.mark.parametrize(
    ("name", "model", "wear"),
    [
        ("Media_Wearout_Indicator", "INTEL SSDSC2", 3.0),
        ("Percent_Lifetime_Remain", "Micron_5200", 3.0),
        ("Wear_Leveling_Count", "SAMSUNG MZ7", 3.0),
        ("Wear_Leveling_Count", "Another", None),
    ],
)
def test_wear_is_what_is_gone_of_the_normalised_value(
    tmp_path: Path, name: str, model: str, wear: float | None
) -> None:
    assert row_of(tmp_path, sata({177: (name, 97, 1661)}, model_name=model))["wear_pct"] == wear


def test_the_standard_statistics_of_sata_count_first(tmp_path: Path) -> None:
    def entry(name: str, value: int, *, valid: bool = True) -> dict[str, Any]:
        return {"name": name, "value": value, "flags": {"valid": valid}}

    pages = [
        {"number": 1, "table": [entry("Logical Sectors Written", 11), entry("Logical Sectors Read", 13, valid=False)]},
        {"number": 7, "table": [entry("Percentage Used Endurance Indicator", 8)]},
    ]
    content = sata({241: ("Host_Writes_32MiB", 100, 7), 242: ("Host_Reads_32MiB", 100, 9)})
    row = row_of(tmp_path, content | {"ata_device_statistics": {"pages": pages}})
    assert (row["host_write_bytes"], row["host_read_bytes"], row["wear_pct"]) == (11 * 512, 9 * 32 * MIB, 8.0)
    newer = row_of(tmp_path, document(endurance_used={"current_percent": 12}, spare_available={"current_percent": 90}))
    assert (newer["wear_pct"], newer["spare_pct"]) == (12.0, 90.0)


# --- whose and when ---


def test_blotted_out_serials_do_not_make_all_drives_one(tmp_path: Path) -> None:
    paths = [write(tmp_path, nvme(serial_number="REDACTED"), f"{name}.json") for name in ("a-2026-01-05", "b", "c")]
    items = items_of("smartctl", paths, POND)
    assert [row["serial"] for row in rows_of(items, "drives")] == ["a", "b", "c"]
    assert len([problem for problem in problems_of(items) if "no serial number" in problem]) == 3
    named = ReadOptions(filesystem="pond", target="S9")
    assert row_of(tmp_path, nvme(serial_number=""), named)["serial"] == "S9"


def test_several_nameless_drives_in_one_file(tmp_path: Path) -> None:
    content = [nvme(serial_number="REDACTED"), nvme(serial_number="REDACTED", log={"data_units_written": 1})]
    rows = rows_of(items_of("smartctl", write(tmp_path, content), POND), "drives")
    assert [row["serial"] for row in rows] == ["drive", "drive#2"]
    items = items_of("smartctl", write(tmp_path, content), ReadOptions(filesystem="pond", target="S9"))
    assert [row["serial"] for row in rows_of(items, "drives")] == ["S9"]
    assert any("--target names one" in problem for problem in problems_of(items))


def test_hosts_by_folder(tmp_path: Path) -> None:
    (tmp_path / "node17").mkdir()
    path = write(tmp_path / "node17", nvme())
    options = ReadOptions(filesystem="pond", settings={"host": "folder"})
    (row,) = rows_of(items_of("smartctl", path, options), "drives")
    assert row["host"] == "node17"
    for wrong in ({"host": "name"}, {"colour": 1}):
        with pytest.raises(InputError, match=r"sources\.smartctl"):
            list(get_source("smartctl").captures([path], ReadOptions(settings=wrong)))


def test_when(tmp_path: Path) -> None:
    content = nvme()
    del content["local_time"]
    with pytest.raises(InputError, match="nothing here tells the time"):
        items_of("smartctl", write(tmp_path, content), POND)
    at = ReadOptions(filesystem="pond", at=datetime(2026, 1, 6, tzinfo=UTC))
    assert row_of(tmp_path, content, at)["time"] == (NOON_S + 43200) * 1_000_000
    assert row_of(tmp_path, nvme(), at)["time"] == NOON_S * 1_000_000  # what the drive's host said counts
    items = items_of("smartctl", write(tmp_path, nvme(local_time={"time_t": 10**12})), POND)
    assert problems_of(items) == ["local_time '1000000000000' is not a time in epoch seconds"]


def test_the_file_system_must_be_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="--filesystem"):
        items_of("smartctl", write(tmp_path, nvme()), ReadOptions())


# --- several, damaged, and what smartctl itself says ---


@pytest.mark.parametrize("shape", ["list", "one after another", "lines", "gzip"])
def test_documents_in_any_arrangement(tmp_path: Path, shape: str) -> None:
    drives = [nvme(serial_number=f"S{number}") for number in range(3)]
    text = {
        "list": json.dumps(drives),
        "one after another": "\n".join(json.dumps(drive, indent=1) for drive in drives),
        "lines": "\r\n".join(json.dumps(drive) for drive in drives),
        "gzip": json.dumps(drives),
    }[shape]
    path = tmp_path / "drives"
    path.write_bytes(gzip.compress(text.encode()) if shape == "gzip" else text.encode())
    assert recognise(path).name == "smartctl"
    items = items_of("smartctl", path, POND)
    assert [row["serial"] for row in rows_of(items, "drives")] == ["S0", "S1", "S2"]
    assert problems_of(items) == []


def test_damage_costs_the_damaged_document(tmp_path: Path) -> None:
    good = json.dumps(nvme(), indent=1)
    cut = json.dumps(nvme(serial_number="S2"), indent=1)[:300]
    items = items_of("smartctl", write(tmp_path, good + "\n" + cut), POND)
    assert [row["serial"] for row in rows_of(items, "drives")] == ["S1"]
    (reason,) = problems_of(items)
    assert "the file ends within it" in reason
    with pytest.raises(InputError, match="empty file"):
        items_of("smartctl", write(tmp_path, ""), POND)


def test_a_drive_that_did_not_answer(tmp_path: Path) -> None:
    said = {
        "exit_status": 2,
        "messages": [{"string": "Smartctl open device: /dev/nvme9 failed: No such device", "severity": "error"}],
    }
    content = {"json_format_version": [1, 0], "smartctl": said, "local_time": {"time_t": NOON_S}}
    items = items_of("smartctl", write(tmp_path, content), POND)
    assert rows_of(items, "drives") == []
    assert problems_of(items) == [
        "smartctl could not read the drive: Smartctl open device: /dev/nvme9 failed: No such device"
    ]


def test_a_warning_beside_good_counters_is_a_note(tmp_path: Path) -> None:
    messages = [{"string": "Read log failed", "severity": "warning"}, {"string": "hello", "severity": "information"}]
    items = items_of("smartctl", write(tmp_path, nvme(smartctl={"exit_status": 4, "messages": messages})), POND)
    assert len(rows_of(items, "drives")) == 1
    assert problems_of(items) == ["smartctl reported: Read log failed"]
    assert all(isinstance(item, Note) for item in items if isinstance(item, Problem))


def test_a_list_of_devices_is_no_drive(tmp_path: Path) -> None:
    scan = {"json_format_version": [1, 0], "smartctl": {"exit_status": 0}, "devices": [{"name": "/dev/sda"}]}
    items = items_of("smartctl", write(tmp_path, scan), POND)
    assert "smartctl --scan" in problems_of(items)[0]
    assert "not a document" in problems_of(items_of("smartctl", write(tmp_path, {"a": 1}), POND))[0]


@pytest.mark.parametrize("value", [-1, 2**62, "many", True, 1.5, [1]])
def test_a_counter_that_cannot_be_is_null_and_reported(tmp_path: Path, value: object) -> None:
    items = items_of("smartctl", write(tmp_path, nvme(log={"data_units_written": value})), POND)
    (row,) = rows_of(items, "drives")
    assert (row["host_write_bytes"], row["host_read_bytes"]) == (None, 2000 * 512_000)
    assert "host_write" in problems_of(items)[0]


def test_sections_of_another_shape_do_not_break_it(tmp_path: Path) -> None:
    content = document(
        ata_smart_attributes={"table": [7, {"id": "x"}]}, ata_device_statistics={"pages": [3, {"table": {}}]},
        device="sda", user_capacity=None, scsi_error_counter_log={"write": {"gigabytes_processed": "much"}},
    )  # fmt: skip
    items = items_of("smartctl", write(tmp_path, content), POND)
    (row,) = rows_of(items, "drives")
    assert (row["power_on_hours"], row["host_write_bytes"], row["capacity_bytes"]) == (1000.0, None, None)
    assert problems_of(items) == ["host_write 'much' is not a count: left out"]


def test_a_drive_that_tells_nothing_has_no_row(tmp_path: Path) -> None:
    content = document()
    del content["power_on_time"]
    items = items_of("smartctl", write(tmp_path, content), POND)
    assert (rows_of(items, "drives"), problems_of(items)) == ([], ["drive 'S1': no counter that could be read"])


def test_text_that_is_no_unicode_is_escaped(tmp_path: Path) -> None:
    path = Path(os.fsdecode(os.fsencode(tmp_path) + b"/dr\xffive.json"))
    path.write_text(json.dumps(nvme(serial_number="")))
    assert [row["serial"] for row in rows_of(items_of("smartctl", path, POND), "drives")] == ["dr\\udcffive"]
    damaged = write(tmp_path, nvme(serial_number="S\ud800"))
    assert ingest(tmp_path / "store", "smartctl", [damaged], POND).rows["drives"] == 1
    assert stored(tmp_path / "store", "pond", "drives", "serial") == [("S\\ud800",)]


def test_nothing_twice(tmp_path: Path) -> None:
    store, path = tmp_path / "store", write(tmp_path, nvme())
    assert ingest(store, "smartctl", [path], POND).rows["drives"] == 1
    assert ingest(store, "smartctl", [path], POND).already_present == 1
    assert stored(store, "pond", "drives", "serial", "device", "media_errors") == [("S1", "/dev/sda", 5)]


# --- real captures ---


def test_real_drives(shared_data: Path) -> None:
    paths = sorted((shared_data / "nvme-smart" / "smartctl").glob("*.json"))
    assert {recognise(path).name for path in paths} == {"smartctl"}
    items = items_of("smartctl", paths, POND)
    rows = {row["serial"]: row for row in rows_of(items, "drives")}
    assert len(rows) == len(paths) == 36  # every serial number is REDACTED
    assert all(isinstance(item, Note) for item in items if isinstance(item, Problem))
    assert all(row["capacity_bytes"] and row["host_write_bytes"] and row["power_on_hours"] for row in rows.values())
    micron = rows["nvme-null-Micron_7400_MTFDKCB1T6TFC-nvme2"]
    assert (micron["host_write_bytes"], micron["capacity_bytes"]) == (1_136_100_893 * 512_000, 1_600_321_314_816)
    samsung = rows["SAMSUNG_MZ7WD240HAFV-00003_21"]  # SATA
    assert (samsung["host_write_bytes"], samsung["wear_pct"]) == (216_456_537_880 * 512, 9.0)
