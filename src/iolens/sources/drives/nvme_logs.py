"""The logs nvme-cli prints of a drive, as text or JSON: smart-log, what vendors add, and who the drive is.

Vendors count flash writes in units of their own. Those that are certain: Intel and Solidigm 32 MiB, Samsung and the OCP
log bytes, Toshiba as printed. Each log becomes plain names in bytes, hours and per cent.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, Final, NamedTuple

from iolens.records import Note, Problem
from iolens.schema import LARGEST
from iolens.sources.drives.rows import (
    DATA_UNIT_BYTES,
    INTEL_UNIT_BYTES,
    MalformedValue,
    ReportedValues,
    count_of,
    plain,
    serial_of,
)
from iolens.sources.reading.parsed_numbers import LARGEST_UNSIGNED, count_in_json, count_or_none, shown
from iolens.units import GIB, MIB

SMART, VENDOR, IDENTITY = "smart-log", "vendor log", "identity"
OCP_WRITTEN: Final = "physicalmediaunitswritten"
SAMSUNG_WRITTEN: Final = "physicallywrittenbytes"
MOST_PROBLEMS: Final = 1000

_CONTROLLER: Final = re.compile(r"(?:/dev/)?(nvme\d+)(?:c\d+)?(?:n\d+)?(?:p\d+)?")
_DEVICE: Final = r"device\s*+:\s*+(?P<device>\S++)"
_BEGIN: Final = re.compile(r"BEGIN\s++(?P<epoch>\d{9,11})(?:\.\d++)?")
_ISO: Final = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d\S*")
_OCP_LINE: Final = re.compile(r"Physical media units written\b\s*+[-:]?\s*+(?P<value>\S.*+)", re.IGNORECASE)
_SAMSUNG_LINE: Final = re.compile(r"\[\d++:\d++\](?P<name>[^:]*+):(?P<value>.*+)")
_INTEL_LINE: Final = re.compile(
    r"(?:0x[0-9a-f]{2}\s++)?(?P<name>nand_bytes_written|host_bytes_written)(?:\s*+:\s++|\s++)(?P<normalised>\d++)"
    r"(?:\s*+%\s++|\s++)(?:sectors:\s*+)?(?P<value>\d\S*+)",
    re.IGNORECASE,
)
_SOLID: Final = re.compile(r"\S")
_NEXT: Final = re.compile(r"\n(?=[{\[]|BEGIN |[A-Z][^\n]*\bdevice:|\d{4}-\d\d-\d\d[T ])")
_WITH_UNIT: Final = re.compile(r"(\d{1,30}(?:\.\d{1,30})?)\s*+(KiB|MiB|GiB|TiB)")
_UNITS: Final = {"KiB": 1 << 10, "MiB": MIB, "GiB": GIB, "TiB": GIB << 10}
_SMART_NAMES: Final = frozenset({"criticalwarning", "dataunitsread", "dataunitswritten"})


@dataclass(slots=True)
class Log:
    """One log of one drive: `values` by our names, None where it says so; `device` as its host calls it."""

    kind: str
    line: int
    device: str | None = None
    time_us: int | None = None
    values: dict[str, object] = field(default_factory=dict)
    raw: dict[str, object] = field(default_factory=dict)

    @property
    def keeps_nothing(self) -> bool:
        """Whether it says of all its counters that the drive does not keep them."""
        return bool(self.raw) and all(value is None for value in self.raw.values())


@dataclass(slots=True)
class DriveLogs:
    """Logs of a file that are of one drive and time."""

    logs: list[Log] = field(default_factory=list)

    @property
    def device(self) -> str | None:
        """What the drive's host calls it, if a log tells."""
        return next((log.device for log in self.logs if log.device is not None), None)

    def fits(self, log: Log) -> bool:
        """Whether a log may be of the same drive and time: no second of its kind, no other device."""
        if any(log.kind == other.kind or log.time_us != other.time_us for other in self.logs):
            return False
        return log.device is None or self.device is None or controller(log.device) == controller(self.device)


def blocks_of(logs: Sequence[Log]) -> list[DriveLogs]:
    """Logs by drive and time. Not every log names its device: it goes with those around it, as a loop prints them."""
    blocks: list[DriveLogs] = []
    for log in logs:
        if not blocks or not blocks[-1].fits(log):
            blocks.append(DriveLogs())
        blocks[-1].logs.append(log)
    return blocks


class _Layout(NamedTuple):
    """A kind of text: how it begins, which log it is, and what its lines say."""

    heading: re.Pattern[str]
    kind: str
    take: Callable[[Log, str], None]
    note: str | None = None


def controller(device: str) -> str | None:
    """`nvme0` of `/dev/nvme0n1`; None if it is no such name."""
    match = _CONTROLLER.fullmatch(device)
    return None if match is None else match[1]


def _take_pair(log: Log, line: str) -> None:
    name, colon, value = line.partition(":")
    if colon and name.strip():
        log.raw.setdefault(plain(name), value.strip())


def _take_intel(log: Log, line: str) -> None:
    match = _INTEL_LINE.fullmatch(line)
    if match is not None:
        is_kept = match["normalised"].strip("0") != ""  # 0 %: the drive does not keep this one
        log.raw.setdefault(plain(match["name"]), match["value"] if is_kept else None)


def _take_ocp(log: Log, line: str) -> None:
    match = _OCP_LINE.fullmatch(line)
    if match is not None:
        log.raw.setdefault(OCP_WRITTEN, match["value"].strip())


def _take_samsung(log: Log, line: str) -> None:
    match = _SAMSUNG_LINE.fullmatch(line)
    if match is not None:
        log.raw.setdefault(plain(match["name"].strip()), match["value"].strip())


def _take_nothing(log: Log, line: str) -> None:
    """A log whose unit is not certain."""


_SEAGATE: Final = "Seagate's extended log does not tell its unit: left out"
_LAYOUTS: Final = (
    _Layout(re.compile(rf"Smart Log for NVME {_DEVICE}.*+", re.I), SMART, _take_pair),
    _Layout(re.compile(rf"Additional Smart Log for NVMe {_DEVICE}.*+", re.I), VENDOR, _take_intel),
    _Layout(re.compile(rf"SMART Cloud Attributes for NVMe {_DEVICE}.*+", re.I), VENDOR, _take_ocp),
    _Layout(re.compile(r"SMART Cloud Attributes\b.*+", re.I), VENDOR, _take_ocp),
    _Layout(re.compile(rf"Vendor Log Page 0xCA for NVMe {_DEVICE}.*+", re.I), VENDOR, _take_pair),
    _Layout(re.compile(r"NVMe Identify Controller\b.*+", re.I), IDENTITY, _take_pair),
    _Layout(re.compile(r"Seagate Extended SMART Information\b.*+", re.I), VENDOR, _take_nothing, _SEAGATE),
)
HEAD: Final = re.compile(
    rb"^(?:(?:Additional )?Smart Log for NVME device|SMART Cloud Attributes|NVME Identify Controller"
    rb"|Vendor Log Page 0xCA for NVME device|\[015:000\] *Physically ?Written ?Bytes)",
    re.MULTILINE | re.IGNORECASE,
)
JSON_HEAD: Final = re.compile(
    rb'"(?:num_err_log_entries|Physical media units written|physical_media_units_written|PhysicallyWrittenBytes'
    rb'|Intel Smart log|Solidigm SMART log|tnvmcap|DevicePath)"\s*:',
    re.IGNORECASE,
)


class NvmeLogReader:
    """Reads a text of one or more logs, in any mixture of text, JSON and lines that tell the time."""

    def __init__(self, place: str, local_time: Callable[[str], int]) -> None:
        self.place = place
        self.problems: list[Problem] = []
        self.logs: list[Log] = []
        self._local_time = local_time  # microseconds from an ISO time, which may lack its zone
        self._time_us: int | None = None
        self._layout: _Layout | None = None
        self._json_end = 0

    def read(self, text: str) -> list[Log]:
        """The logs, their values in our units."""
        position = 0
        for number, line in enumerate(text.split("\n"), 1):
            if len(self.problems) > MOST_PROBLEMS:
                self.problems.append(Problem(self.place, number, "so much is wrong that the rest is not read"))
                break
            if position >= self._json_end:
                self._line(number, line.strip(), text, position)
            position += len(line) + 1
        for log in self.logs:
            self._convert(log)
        return self.logs

    def _line(self, number: int, line: str, text: str, position: int) -> None:
        if not line or self._stamp(line):
            return
        if line[0] in "{[" and not _SAMSUNG_LINE.fullmatch(line):
            self._json(number, text, position)
            return
        for layout in _LAYOUTS:
            if (match := layout.heading.fullmatch(line)) is not None:
                self._begin(layout, number, match.groupdict().get("device"))
                return
        if _SAMSUNG_LINE.fullmatch(line):
            self._continue(_take_samsung, VENDOR, number, line)
        elif self._layout is not None:
            self._layout.take(self.logs[-1], line)
        elif ":" in line and plain(line.partition(":")[0]) in _SMART_NAMES:
            self._continue(_take_pair, SMART, number, line)  # the heading was cut away

    def _begin(self, layout: _Layout, number: int, device: str | None) -> None:
        self._layout = layout
        self.logs.append(Log(layout.kind, number, device, self._time_us))
        if layout.note is not None:
            self.problems.append(Note(self.place, number, layout.note))

    def _continue(self, take: Callable[[Log, str], None], kind: str, number: int, line: str) -> None:
        """Lines that are their own heading."""
        if self._layout is None or self._layout.take is not take:
            self._begin(_Layout(re.compile(""), kind, take), number, None)
        take(self.logs[-1], line)

    def _stamp(self, line: str) -> bool:
        if (match := _BEGIN.fullmatch(line)) is not None:
            self._time_us = int(match["epoch"]) * 1_000_000
        elif _ISO.fullmatch(line):
            self._time_us = self._local_time(line)
        else:
            return False
        self._layout = None
        return True

    def _json(self, number: int, text: str, position: int) -> None:
        begin = next(_SOLID.finditer(text, position)).start()
        self._layout = None
        try:
            content, end = json.JSONDecoder().raw_decode(text, begin)
        except (ValueError, RecursionError):
            self.problems.append(Problem(self.place, number, f"not JSON: {shown(text[begin : begin + 200])}"))
            self._json_end = _next_document(text, begin)
            return
        self._json_end = end
        for document in content if isinstance(content, list) else [content]:
            logs = list(_json_logs(document, number)) if isinstance(document, Mapping) else []
            if not logs:
                self.problems.append(Problem(self.place, number, f"not a log of nvme-cli: {shown(str(document))}"))
            for log in logs:
                log.time_us = self._time_us
                self.logs.append(log)

    def _convert(self, log: Log) -> None:
        reported = ReportedValues(log.raw, self.place, log.line)
        if log.kind == SMART:
            log.values = _smart_values(reported)
        elif log.kind == IDENTITY:
            log.values = _identity_values(reported)
        else:
            log.values = self._vendor_values(reported)
        self.problems += reported.problems

    def _vendor_values(self, reported: ReportedValues) -> dict[str, object]:
        raw = dict(reported.values)
        try:
            if OCP_WRITTEN in raw:
                return {"nand": _both_words(raw[OCP_WRITTEN])}
            if "totaldatawrittentonand" in raw:
                return {"nand": _with_unit(raw["totaldatawrittentonand"])}
        except MalformedValue as error:
            reported.problems.append(
                Problem(reported.place, reported.line, f"bytes written to flash: {error}: left out")
            )
            return {}
        if SAMSUNG_WRITTEN in raw:
            return {"nand": reported.count(SAMSUNG_WRITTEN)}
        return {
            "nand": reported.count("nandbyteswritten", unit=INTEL_UNIT_BYTES),
            "vendor_host_write": reported.count("hostbyteswritten", unit=INTEL_UNIT_BYTES),
        }


def _next_document(text: str, begin: int) -> int:
    """Where to go on after damaged JSON: the next line that begins a document or a log, else the end."""
    match = _NEXT.search(text, begin)
    return len(text) if match is None else match.end()


def _smart_values(reported: ReportedValues) -> dict[str, object]:
    return {
        "host_write": reported.count("dataunitswritten", unit=DATA_UNIT_BYTES),
        "host_read": reported.count("dataunitsread", unit=DATA_UNIT_BYTES),
        "hours": reported.hours("poweronhours"),
        "wear": reported.percent("percentageused", "percentused"),
        "spare": reported.percent("availablespare", "availspare"),
        "media_errors": reported.count("mediaerrors"),
    }


def _identity_values(reported: ReportedValues) -> dict[str, object]:
    return {
        "serial": serial_of(reported.values.get("sn")),
        "model": reported.text("mn"),
        "firmware": reported.text("fr"),
        "capacity": reported.count("tnvmcap") or None,
    }


def _both_words(value: object) -> int | None:
    """The OCP log's 128 bits as two words, high and low (`0 527805403860992`), or as one number."""
    if isinstance(value, Mapping):
        words = [value.get("hi"), value.get("lo")]
    else:
        text = str(value).split()
        words = list(text) if len(text) == 2 and "," not in str(value) else [0, value]
    high, low = (_word(word) for word in words)
    if high is None or low is None:
        return None
    total = (high << 64) + low
    if total > LARGEST:
        raise MalformedValue(f"{shown(str(value))} is out of range")
    return total


def _word(value: object) -> int | None:
    number = count_in_json(value, LARGEST_UNSIGNED)
    if number is None:
        number = count_or_none(str(value)[:40], LARGEST_UNSIGNED)
    return count_of(value) if number is None else number


def _with_unit(value: object) -> int:
    match = _WITH_UNIT.fullmatch(str(value).strip())
    if match is None or (size := int(Decimal(match[1]) * _UNITS[match[2]])) > LARGEST:
        raise MalformedValue(f"{shown(str(value))} is not a size such as 1133997.9 GiB")
    return size


def _json_logs(document: Mapping[str, Any], number: int) -> Iterator[Log]:
    """Which log a document is; none if it is another's."""
    names = {plain(str(name)): value for name, value in document.items()}
    devices = document.get("Devices")
    if isinstance(devices, list):
        yield from _listed_devices(devices, number)
    elif isinstance(stats := document.get("Device stats"), Mapping):
        device = next((value for name, value in names.items() if name.endswith("smartlog")), None)
        log = Log(VENDOR, number, device if isinstance(device, str) else None)
        for name in ("nand_bytes_written", "host_bytes_written"):
            entry = stats.get(name)
            if isinstance(entry, Mapping):
                log.raw[plain(name)] = entry.get("raw") if entry.get("normalized") != 0 else None
        yield log
    elif OCP_WRITTEN in names:
        yield Log(VENDOR, number, raw=names)
    elif (samsung := _find(document, SAMSUNG_WRITTEN)) is not None:
        yield Log(VENDOR, number, raw={SAMSUNG_WRITTEN: samsung})
    elif {"sn", "mn"} <= set(names):
        yield Log(IDENTITY, number, raw=names)
    elif set(names) >= _SMART_NAMES:
        yield Log(SMART, number, raw=names)


def _find(document: Mapping[str, Any], wanted: str) -> object:
    """A value by plain name, at the top or one level below."""
    for name, value in document.items():
        if plain(str(name)) == wanted:
            return value
        if isinstance(value, Mapping) and (item := _find_flat(value, wanted)) is not None:
            return item
    return None


def _find_flat(content: Mapping[str, Any], wanted: str) -> object:
    return next((value for name, value in content.items() if plain(str(name)) == wanted), None)


def _listed_devices(devices: list[Any], number: int) -> Iterator[Log]:
    """`nvme list -o json`: who each drive is. Namespaces of one drive add up to its capacity."""
    drives: dict[str, Log] = {}
    for item in devices:
        device = str(item.get("DevicePath", "")) if isinstance(item, Mapping) else ""
        name = controller(device)
        if name is None:
            continue
        raw = {"sn": item.get("SerialNumber"), "mn": item.get("ModelNumber"), "fr": item.get("Firmware")}
        log = drives.setdefault(name, Log(IDENTITY, number, device, raw={**raw, "tnvmcap": 0}))
        try:
            log.raw["tnvmcap"] = (count_of(log.raw["tnvmcap"]) or 0) + (count_of(item.get("PhysicalSize")) or 0)
        except MalformedValue:
            log.raw["tnvmcap"] = item.get("PhysicalSize")
    yield from drives.values()
