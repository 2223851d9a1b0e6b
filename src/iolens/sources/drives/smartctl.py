"""`smartctl --json` of NVMe, SATA and SAS drives: one document per drive, one after another, or a list of them.

NVMe and SAS count in known units. SATA attributes are vendors' own: they count only where their name or their maker
tells the unit, else the column is NULL and a note says so.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any, Final

from iolens.errors import InputError
from iolens.records import Capture, Item, Note, Problem
from iolens.schema import LARGEST
from iolens.sources.devices.block_devices import refuse_settings
from iolens.sources.drives.rows import (
    DATA_UNIT_BYTES,
    DriveReading,
    DriveRows,
    MalformedValue,
    ReportedValues,
    epoch_time,
    serial_of,
    stated_time,
    without_date,
)
from iolens.sources.reading.batches import within
from iolens.sources.reading.bounded_input import unpacked
from iolens.sources.reading.captures import FileSource, refuse_empty
from iolens.sources.reading.json_stream import JsonDocument, documents
from iolens.sources.reading.options import ReadOptions
from iolens.sources.reading.parsed_numbers import (
    LARGEST_SMALL,
    count_in_json,
    count_or_none,
    number_in_json,
    real_or_none,
    shown,
)
from iolens.sources.reading.saved_text import needed_filesystem, supplied_identity, zone_name
from iolens.units import GIB, MIB

SETTINGS: Final = ("timezone", "host")
FOLDER: Final = "folder"
SUFFIXES: Final = (".gz", ".json", ".txt", ".log", ".out")
NVME_LOG: Final = "nvme_smart_health_information_log"
NOT_OPENED: Final = 0b11  # bits of smartctl's exit status: the command line was wrong, the device did not answer

# What an attribute of a SATA drive counts, by the name that smartmontools' database gives it. Names with another unit
# (GB may be either), of a part (TLC_Writes_32MiB) or without one are not certain.
_NAMED: Final = re.compile(r"(Host|Lifetime|Total|NAND|Flash|Total_NAND)_(Writes|Reads)_(\d*)(MiB|GiB)")
_UNITS: Final = {"MiB": MIB, "GiB": GIB}
_INTEL: Final = {
    225: ("host_write", 32 * MIB), 241: ("host_write", 32 * MIB), 242: ("host_read", 32 * MIB), 249: ("nand", GIB),
}  # fmt: skip
_SAMSUNG: Final = {241: "host_write", 242: "host_read"}  # in logical blocks
_LBAS: Final = re.compile(r"Total_LBAs_(?:Written|Read)")
_LIFE_LEFT: Final = frozenset({"Media_Wearout_Indicator", "Percent_Lifetime_Remain", "SSD_Life_Left"})
_SAMSUNG_LIFE_LEFT: Final = "Wear_Leveling_Count"
_STATISTICS: Final = {
    "Logical Sectors Written": "host_write", "Logical Sectors Read": "host_read",
    "Percentage Used Endurance Indicator": "wear",
}  # fmt: skip

_HEAD: Final = re.compile(rb'"(?:json_format_version|smartctl)"\s*:\s*[\[{]')


class Smartctl(FileSource):
    """What smartmontools tells of drives."""

    name = "smartctl"
    summary = "`smartctl --json` of NVMe, SATA and SAS drives, one document or many; plain or gzip"

    def recognises(self, path: Path, head: bytes) -> bool:
        """Whether it holds a document of smartctl."""
        return _HEAD.search(unpacked(head)) is not None

    def captures(self, paths: Sequence[Path], options: ReadOptions) -> Iterator[Capture]:
        """One capture per file, if the settings are understood."""
        refuse_settings(options, self.name, "[sources.smartctl]", SETTINGS)
        host_setting(options, self.name)
        yield from super().captures(paths, options)

    def open(self, path: Path, options: ReadOptions) -> _SmartctlFile:
        """The file, if it can be read."""
        hosts_are_folders = host_setting(options, self.name)
        refuse_empty(path, "output of `smartctl --json`")
        filesystem = needed_filesystem(options, str(path))
        host = path.resolve().parent.name if hosts_are_folders else None
        identity = supplied_identity(
            path,
            filesystem=filesystem,
            zone=zone_name(options, filesystem),
            at=options.at,
            target=options.target,
            names=[host, path.name],  # they may tell the drive and the time
            since=options.since,
            until=options.until,
        )
        return _SmartctlFile(path, filesystem, host, options, identity)


SOURCE: Final = Smartctl()


def host_setting(options: ReadOptions, source: str) -> bool:
    """Whether files lie in folders named after their hosts."""
    setting = options.settings.get("host")
    if setting not in (None, FOLDER):
        raise InputError(f"[sources.{source}]", f"host = {setting!r}", '"folder": files lie in folders named by host')
    return setting == FOLDER


@dataclass(frozen=True, slots=True)
class _SmartctlFile:
    """One file of documents, and what the user said about it."""

    path: Path
    filesystem: str
    host: str | None
    options: ReadOptions
    identity: str

    def items(self) -> Iterator[Item]:
        return within(self._all(), self.options)

    def _all(self) -> Iterator[Item]:
        rows = DriveRows(self.filesystem)
        value = 0
        for document in documents(self.path):
            if isinstance(document, Problem):
                yield document
            else:
                value += 1
                yield from _Drive(self, document, value).items(rows)
        if not value:
            yield Problem(str(self.path), None, "no document of smartctl in it")
        yield from rows.flush()

    def name_of_drive(self, number: int) -> str:
        """What a drive without a serial number is called: by its file, and which document of it."""
        name = self.path.name
        while name.endswith(SUFFIXES):
            name = name[: name.rindex(".")]
        name = without_date(name).strip("-_. ") or name
        return name if number == 1 else f"{name}#{number}"


class _Drive:
    """One document of smartctl."""

    def __init__(self, file: _SmartctlFile, document: JsonDocument, number: int) -> None:
        self.file, self.content, self.number = file, document.content, number
        self.place, self.line = str(file.path), document.line

    def items(self, rows: DriveRows) -> Iterator[Item]:
        """Its row, or why there is none."""
        said = _section(self.content, "smartctl")
        if not said and "json_format_version" not in self.content:
            yield self._problem("not a document of smartctl")
            return
        if "device" not in self.content and "devices" in self.content:
            yield Note(self.place, self.line, "a list of devices (`smartctl --scan`), without their counters")
            return
        messages = _messages(said)
        status = said.get("exit_status")
        if isinstance(status, int) and status & NOT_OPENED:
            yield self._problem(f"smartctl could not read the drive: {'; '.join(messages) or f'exit status {status}'}")
            return
        yield from (Note(self.place, self.line, f"smartctl reported: {message}") for message in messages)
        yield from self._row(rows)

    def _row(self, rows: DriveRows) -> Iterator[Item]:
        serial = serial_of(self.content.get("serial_number"))
        if serial is None:
            serial = self.file.options.target or self.file.name_of_drive(self.number)
            if self.file.options.target is not None and self.number > 1:
                yield self._problem("a second drive without a serial number: --target names one")
                return
            yield Note(self.place, self.line, f"no serial number: the drive is called {shown(serial)}")
        try:
            time_us = epoch_time(_section(self.content, "local_time").get("time_t"))
        except MalformedValue as error:
            yield self._problem(f"local_time {error}")
            return
        if time_us is None:
            time_us = stated_time(self.file.options, (self.file.path.name,), self.place)
        reported = ReportedValues(self._reported(), self.place, self.line)
        reading = DriveReading(
            serial,
            time_us,
            model=reported.text("model"),
            firmware=reported.text("firmware"),
            host=self.file.host,
            device=reported.text("device"),
            capacity_bytes=reported.count("capacity"),
            host_write_bytes=reported.count("host_write"),
            host_read_bytes=reported.count("host_read"),
            nand_write_bytes=reported.count("nand"),
            power_on_hours=reported.hours("hours"),
            wear_pct=reported.percent("wear"),
            spare_pct=reported.percent("spare"),
            media_errors=reported.count("media_errors"),
        )
        yield from reported.problems
        yield from self._notes(reading)
        yield from rows.take(reading, self.place, self.line)

    def _reported(self) -> dict[str, object]:
        """What the document tells, by our names and in our units; the certain overrides the less certain."""
        content = self.content
        reported: dict[str, object] = {
            "model": content.get("model_name") or content.get("scsi_model_name") or content.get("scsi_product"),
            "firmware": content.get("firmware_version") or content.get("scsi_revision"),
            "device": _section(content, "device").get("name"),
            "capacity": content.get("nvme_total_capacity") or _section(content, "user_capacity").get("bytes"),
            "hours": _section(content, "power_on_time").get("hours"),
            "wear": content.get("scsi_percentage_used_endurance_indicator"),
            "spare": _section(content, "spare_available").get("current_percent"),
        }
        parts = (_ata(content), _ata_statistics(content), _scsi(content), _nvme(content))
        for part in parts:
            reported |= {name: value for name, value in part.items() if value is not None}
        standard = _section(content, "endurance_used").get("current_percent")
        if reported["wear"] is None and standard is not None:
            reported["wear"] = standard
        return reported

    def _notes(self, reading: DriveReading) -> Iterator[Item]:
        if reading.host_write_bytes is not None:
            return
        named = [
            str(attribute["name"])
            for attribute in _attributes(self.content)
            if _LBAS.fullmatch(str(attribute.get("name")))
        ]
        if named:
            reason = f"{shown(reading.model or '')} does not tell the unit of {', '.join(named)}: left out"
            yield Note(self.place, self.line, reason)

    def _problem(self, reason: str) -> Problem:
        return Problem(self.place, self.line, reason)


def _section(content: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    result = content.get(name)
    return result if isinstance(result, Mapping) else {}


def _messages(said: Mapping[str, Any]) -> list[str]:
    """Errors and warnings of smartctl itself."""
    result = said.get("messages")
    return [
        str(by_name.get("string"))
        for by_name in (result if isinstance(result, list) else [])
        if isinstance(by_name, Mapping) and by_name.get("severity") != "information"
    ]


def _nvme(content: Mapping[str, Any]) -> dict[str, object]:
    log = _section(content, NVME_LOG)
    return {
        "host_write": _times(log.get("data_units_written"), DATA_UNIT_BYTES),
        "host_read": _times(log.get("data_units_read"), DATA_UNIT_BYTES),
        "hours": log.get("power_on_hours"),
        "wear": log.get("percentage_used"),
        "spare": log.get("available_spare"),
        "media_errors": log.get("media_errors"),
    }


def _scsi(content: Mapping[str, Any]) -> dict[str, object]:
    """SAS: bytes in gigabytes of 10⁹ with three decimals, so to the megabyte."""
    log = _section(content, "scsi_error_counter_log")
    return {
        "host_write": _gigabytes(_section(log, "write").get("gigabytes_processed")),
        "host_read": _gigabytes(_section(log, "read").get("gigabytes_processed")),
    }


def _ata_statistics(content: Mapping[str, Any]) -> dict[str, object]:
    """The standard device statistics of SATA drives (`smartctl -x`), in logical sectors."""
    block = content.get("logical_block_size", 512)
    items: dict[str, object] = {}
    pages = _section(content, "ata_device_statistics").get("pages")
    for page in pages if isinstance(pages, list) else []:
        table = _section({"page": page}, "page").get("table")
        for entry in table if isinstance(table, list) else []:
            if not isinstance(entry, Mapping) or not _section(entry, "flags").get("valid", True):
                continue
            name = _STATISTICS.get(str(entry.get("name")))
            if name is not None:
                items[name] = entry.get("value") if name == "wear" else _times(entry.get("value"), block)
    return items


def _ata(content: Mapping[str, Any]) -> dict[str, object]:
    """SATA attributes whose meaning is certain."""
    items: dict[str, object] = {}
    model = str(content.get("model_name", "")).upper()
    block = content.get("logical_block_size", 512)
    for attribute in _attributes(content):
        name, raw = str(attribute.get("name")), _section(attribute, "raw").get("value")
        meaning = _named(name) or _made_by(model, attribute.get("id"), name, block)
        if meaning is not None and (meaning[0] not in items or meaning[1] < GIB):
            items[meaning[0]] = _times(raw, meaning[1])  # the finer of two units
        if name in _LIFE_LEFT or (name == _SAMSUNG_LIFE_LEFT and model.startswith("SAMSUNG")):
            items["wear"] = _complement(attribute.get("value"))
    return items


def _attributes(content: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    table = _section(content, "ata_smart_attributes").get("table")
    return [by_name for by_name in (table if isinstance(table, list) else []) if isinstance(by_name, Mapping)]


def _named(name: str) -> tuple[str, int] | None:
    """What an attribute counts and in which unit, where its name says both."""
    match = _NAMED.fullmatch(name)
    if match is None:
        return None
    what, direction, count, unit = match.groups()
    is_flash = what in ("NAND", "Flash", "Total_NAND")
    if is_flash and direction == "Reads":
        return None
    meaning = "nand" if is_flash else "host_write" if direction == "Writes" else "host_read"
    units = count_or_none(count or "1", LARGEST_SMALL)
    return None if units is None else (meaning, units * _UNITS[unit])


def _made_by(model: str, number: object, name: str, block: object) -> tuple[str, int] | None:
    """The same for makers that document their units: Intel's 32 MiB, Samsung's logical blocks."""
    if not isinstance(number, int):
        return None
    if model.startswith("INTEL SSDSC"):
        return _INTEL.get(number)
    if model.startswith("SAMSUNG") and _LBAS.fullmatch(name) and number in _SAMSUNG and isinstance(block, int):
        return _SAMSUNG[number], block
    return None


def _times(value: object, unit: object) -> object:
    """Bytes; what is not a whole number stays as it is, for the reader to report."""
    is_whole = isinstance(value, int) and not isinstance(value, bool)
    return value * unit if is_whole and isinstance(value, int) and isinstance(unit, int) else value


def _gigabytes(value: object) -> object:
    text = value if isinstance(value, str) else str(number_in_json(value))
    if real_or_none(text, largest=LARGEST / 10**9) is None:
        return value
    return int(Decimal(text) * 10**9)


def _complement(value: object) -> object:
    """Per cent used from the normalised value, which falls from 100; beyond that it is something else."""
    number = count_in_json(value, 100)
    return None if number is None else 100 - number
