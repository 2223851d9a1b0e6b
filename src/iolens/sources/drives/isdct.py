"""Intel SSD Data Center Tool (isdct): dumps of `isdct show`, and the daily CSV and JSON series pytokio makes of them.

A dump is a directory of one folder per host, or a tar archive of such; a series has one line or object per drive. Cards
with two controllers (serial numbers that end in -1 and -2) are two drives.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final, NamedTuple

from iolens.errors import InputError
from iolens.records import Capture, Item, Note, Problem
from iolens.sources.devices.block_devices import refuse_settings
from iolens.sources.drives.isdct_dump import LIST_HEAD, Dump, archive_files, directory_files, owner, text_file
from iolens.sources.drives.rows import (
    DATA_UNIT_BYTES,
    INTEL_UNIT_BYTES,
    DriveReading,
    DriveRows,
    MalformedValue,
    ReportedValues,
    epoch_time,
    plain,
    serial_of,
    stated_time,
    time_in_name,
)
from iolens.sources.reading.batches import within
from iolens.sources.reading.bounded_input import Line, head_of, numbered_lines, unpacked, whole_text
from iolens.sources.reading.captures import content_identity, read_each
from iolens.sources.reading.options import ReadOptions
from iolens.sources.reading.parsed_numbers import shown
from iolens.sources.reading.saved_text import cells_of, combined_identity, needed_filesystem, zone_name

SETTINGS: Final = ("timezone",)
SERIAL: Final = "serialnumber"
WRITTEN: Final = frozenset(
    {"dataunitswritten", "dataunitswrittenbytes", "smarthostbyteswrittenraw", "smarthostbyteswrittenbytes"}
)
SPARE: Final = ("availablespare", "availablesparenormalizedpercentageoftheremainingsparecapacityavailable")
KNOWN: Final = WRITTEN | {
    SERIAL, "timestamp", "modelnumber", "firmware", "nodename", "devicepath", "physicalsize", "dataunitsread",
    "dataunitsreadbytes", "smartnandbyteswrittenraw", "smartnandbyteswrittenbytes", "smartnandbyteswrittenid",
    "smarthostbyteswrittenid", "poweronhours", "percentageused", *SPARE, "mediaerrors",
}  # fmt: skip
INTEL_IDS: Final = {"smartnandbyteswritten": 0xF4, "smarthostbyteswritten": 0xF5}  # whose unit we know
LONGEST_DUMP_S: Final = 86400
PROBES: Final = 8

_JSON_HEAD: Final = re.compile(rb'\s*(?:\[\s*)?\{\s*(?:"[^"]{1,80}"\s*:\s*\{\s*)?"')
_JSON_NAME: Final = re.compile(rb'"(?:data_units_written|smart_(?:nand|host)_bytes_written)(?:_raw|_bytes)?"\s*:')
_SMARTCTL: Final = re.compile(rb'"(?:json_format_version|smartctl)"\s*:')
_DUMP, _ARCHIVE, _CSV, _JSON = "dump", "archive", "csv", "json"


class Isdct:
    """What the Intel SSD Data Center Tool tells of drives."""

    name = "isdct"
    summary = "Intel SSD Data Center Tool: dumps (directory, tar, tgz), and their CSV and JSON series; plain or gzip"
    whole_directories = True

    def recognises(self, path: Path, head: bytes) -> bool:
        """Whether it is a list, an archive of lists, a series, or a directory of folders with lists."""
        return _has_lists(path) if path.is_dir() else _kind_of(head) is not None

    def captures(self, paths: Sequence[Path], options: ReadOptions) -> Iterator[Capture]:
        """One capture per file of a series, per archive, and per dump in a directory."""
        refuse_settings(options, self.name, "[sources.isdct]", SETTINGS)
        groups, refused = read_each(paths, partial(_found_files, options=options))
        files = [file for known_files in groups for file in known_files]
        texts = [file.path for file in files if file.kind == _DUMP]
        series = [file for file in files if file.kind != _DUMP]
        pieces = [
            *_dumps(texts, options),
            *(_piece(known_file.kind, known_file.path, (), options) for known_file in series),
        ]
        yield from refused
        for piece in pieces:
            yield Capture(str(piece.path), piece.identity, piece.items)


SOURCE: Final = Isdct()


class _KnownFile(NamedTuple):
    """A file, and what kind it is."""

    kind: str
    path: Path


@dataclass(frozen=True, slots=True)
class _IsdctPiece:
    """One dump, archive or series, and what the user said about it."""

    kind: str
    path: Path
    files: tuple[Path, ...]  # of a dump in a directory
    filesystem: str
    options: ReadOptions
    identity: str

    def items(self) -> Iterator[Item]:
        readers = {_DUMP: _directory_dump, _ARCHIVE: _archive_dumps, _CSV: _csv_series, _JSON: _json_series}
        return within(readers[self.kind](self), self.options)

    @property
    def place(self) -> str:
        return str(self.path)


def _found_files(path: Path, options: ReadOptions) -> list[_KnownFile]:
    """The file itself, or every file below a directory: what is no archive or series is a part of a dump there."""
    needed_filesystem(options, str(path))
    if not path.is_dir():
        kind = _kind_of(_head(path))
        if kind is None:
            expected = "a list, dump, CSV or JSON series of isdct"
            raise InputError(str(path), "not of the Intel SSD Data Center Tool", expected)
        return [_KnownFile(kind, path)]
    files = [_KnownFile(_kind_of(_head_or_nothing(file)) or _DUMP, file) for file in directory_files(path)]
    if not files:
        raise InputError(str(path), "no file below this directory", "a dump of isdct")
    return files


def _dumps(texts: Sequence[Path], options: ReadOptions) -> list[_IsdctPiece]:
    """Files that belong to one dump are read as one; a series of dumps has a folder each."""
    folders: dict[str, list[Path]] = {}
    for file in texts:
        folders.setdefault(owner(file.resolve().parts)[0], []).append(file)
    if len(folders) > 1 and options.at is not None:
        first = next(iter(folders))
        raise InputError(first, f"{len(folders)} dumps, whose times --at cannot all tell", "one dump, or no --at")
    return [_piece(_DUMP, Path(folder), tuple(files), options) for folder, files in folders.items()]


def _piece(kind: str, path: Path, files: tuple[Path, ...], options: ReadOptions) -> _IsdctPiece:
    """Its identity covers the names, which may tell the host and the time."""
    filesystem = needed_filesystem(options, str(path))
    names = [str(file.resolve().relative_to(path)) for file in files]
    supplied = {
        "filesystem": filesystem,
        "zone": zone_name(options, filesystem),
        "at": options.at,
        "since": options.since,
        "until": options.until,
        "names": [path.name, *names],
    }
    identity = combined_identity([_identity(file) for file in files or (path,)], **supplied)
    return _IsdctPiece(kind, path, files, filesystem, options, identity)


def _identity(file: Path) -> str:
    try:
        return content_identity(file)
    except OSError:
        return f"unreadable/{file.name}"  # of a dump, which goes on without it


def _head(path: Path) -> bytes:
    head = head_of(path)
    if not head:
        raise InputError(str(path), "empty file", "a dump or series of isdct")
    return head


def _head_or_nothing(path: Path) -> bytes:
    try:
        return _head(path)
    except InputError:
        return b""


def _kind_of(head: bytes) -> str | None:
    text = unpacked(head)
    if _SMARTCTL.search(text):
        return None
    if text[257:262] == b"ustar":
        return _ARCHIVE if LIST_HEAD.search(text) else None
    names_one = any(word in text for word in (b"Intel", b"Solidigm", b"SMART"))
    if names_one and LIST_HEAD.search(text.replace(b"\r\n", b"\n")):
        return _DUMP
    if _JSON_HEAD.match(text) and _JSON_NAME.search(text):
        return _JSON if b'"serial_number"' in text or b'"node_name"' in text else None
    heading = _heading(text.split(b"\n", 1)[0].decode("utf-8", "replace"))
    return _CSV if SERIAL in heading and WRITTEN & set(heading) else None


def _heading(line: str) -> list[str]:
    return [plain(cell) for cell in cells_of(line.strip().lstrip("\ufeff"))]


def _has_lists(directory: Path) -> bool:
    """Whether a few files of it, or of the folders in it, begin with a list of isdct: a dump, or one host of it."""
    for folder in (directory, *_listed(directory, folders=True)[:PROBES]):
        for file in _listed(folder, folders=False)[:PROBES]:
            if file.suffix == ".txt" and LIST_HEAD.search(unpacked(_head_or_nothing(file)).replace(b"\r\n", b"\n")):
                return True
    return False


def _listed(directory: Path, *, folders: bool) -> list[Path]:
    try:
        with os.scandir(directory) as entries:
            names = [
                entry.name
                for entry in entries
                if entry.is_dir(follow_symlinks=False) == folders and entry.name[0] != "."
            ]
    except OSError:
        return []
    return [directory / name for name in sorted(names)]


def _directory_dump(piece: _IsdctPiece) -> Iterator[Item]:
    dump = Dump(piece.place)
    for file in piece.files:
        dump.take(text_file(file))
    yield from _dump_rows(piece, {dump.folder: dump})


def _archive_dumps(piece: _IsdctPiece) -> Iterator[Item]:
    dumps: dict[str, Dump] = {}
    for file in archive_files(piece.path):
        if isinstance(file, Problem):
            yield file
        else:
            dumps.setdefault(file.folder, Dump(file.folder)).take(file)
    yield from _dump_rows(piece, dumps)


def _dump_rows(piece: _IsdctPiece, dumps: Mapping[str, Dump]) -> Iterator[Item]:
    rows = DriveRows(piece.filesystem)
    for _, dump in sorted(dumps.items()):
        yield from dump.problems
        if not dump.drives:
            continue
        time_us = _dump_time(piece, dump)
        for drive in dump.drives.values():
            counters = {**drive.counters, "nodename": drive.host}
            yield from _reading(counters, drive.serial, time_us, rows, drive.place, None)
    yield from _end(rows, piece)


def _dump_time(piece: _IsdctPiece, dump: Dump) -> int:
    """When a dump was made: its stamp file, `--at`, the times of an archive's members, a date in its names."""
    if dump.stamp is not None and (stamp := time_in_name(dump.stamp)) is not None:
        return stamp.time_us(piece.options, piece.place)
    if piece.options.at is None and dump.modified_s:
        first, last = min(dump.modified_s), max(dump.modified_s)
        if last - first > LONGEST_DUMP_S:
            days = (last - first) / 86400
            raise InputError(piece.place, f"its members were written over {days:.1f} days", "--at to tell its time")
        return first * 1_000_000
    alone = (piece.files[0].name,) if len(piece.files) == 1 else ()
    return stated_time(piece.options, (*alone, Path(dump.folder).name, piece.path.resolve().name), piece.place)


def _csv_series(piece: _IsdctPiece) -> Iterator[Item]:
    rows = DriveRows(piece.filesystem)
    lines = numbered_lines(piece.path)
    first = next(lines)
    heading = _heading(first.text) if isinstance(first, Line) else []
    columns = [(place, name) for place, name in enumerate(heading) if name in KNOWN]
    for line in lines:
        if isinstance(line, Problem):
            yield line
        elif line.text.strip():
            yield from _csv_line(piece, len(heading), columns, line, rows)
    yield from _end(rows, piece)


def _csv_line(
    piece: _IsdctPiece, width: int, columns: Sequence[tuple[int, str]], line: Line, rows: DriveRows
) -> Iterator[Item]:
    cells = cells_of(line.text)
    if len(cells) != width:
        yield Problem(piece.place, line.number, f"{len(cells)} columns, the heading has {width}")
        return
    named: dict[str, object] = {}
    for place, name in columns:
        if named.setdefault(name, cells[place]) != cells[place]:
            both = f"{shown(str(named[name]))} and {shown(cells[place])}"
            yield Problem(piece.place, line.number, f"{name} is there twice, as {both}")
            return
    yield from _series_reading(piece, named, rows, line.number)


def _json_series(piece: _IsdctPiece) -> Iterator[Item]:
    rows = DriveRows(piece.filesystem)
    text, trouble = whole_text(piece.path)
    if trouble is not None:
        yield Problem(piece.place, None, trouble)
    for entry in _entries(text, piece.place):
        if isinstance(entry, Problem):
            yield entry
        else:
            counters = {plain(name): value for name, value in entry.counters.items()}
            if entry.name is not None and serial_of(counters.get(SERIAL)) is None:
                counters[SERIAL] = entry.name
            yield from _series_reading(piece, counters, rows, entry.line)
    yield from _end(rows, piece)


class _SeriesEntry(NamedTuple):
    """One drive of a JSON series, and the line it begins on."""

    line: int
    name: str | None
    counters: dict[str, Any]


_BETWEEN: Final = re.compile(r"[\s,]*")
_COLON: Final = re.compile(r"\s*:\s*")


def _entries(text: str, place: str) -> Iterator[_SeriesEntry | Problem]:
    """The drives of `{"SERIAL": {…}, …}` or `[{…}, …]`, one by one, so that a cut file costs only its last."""
    decode = json.JSONDecoder().raw_decode
    text = text.lstrip()
    is_object, position, line = text.startswith("{"), 1, 1
    while True:
        match = _BETWEEN.match(text, position)
        assert match is not None
        line += text.count("\n", position, match.end())
        position = match.end()
        if text[position : position + 1] == ("}" if is_object else "]"):
            return
        try:
            name, end = decode(text, position) if is_object else (None, position)
            colon = _COLON.match(text, end) if is_object else None
            if is_object and colon is None:
                raise ValueError("no colon")
            counters, end = decode(text, colon.end() if colon else end)
        except (ValueError, RecursionError):
            yield Problem(place, line, f"not JSON from here on: {shown(text[position : position + 200])}")
            return
        if isinstance(counters, dict) and isinstance(name, str | None):
            yield _SeriesEntry(line, name, counters)
        else:
            yield Problem(place, line, f"not a drive: {shown(text[position:end])}")
        line += text.count("\n", position, end)
        position = end


def _series_reading(
    piece: _IsdctPiece, counters: Mapping[str, object], rows: DriveRows, line: int | None
) -> Iterator[Item]:
    serial = serial_of(counters.get(SERIAL))
    if serial is None:
        yield Problem(piece.place, line, "a drive without a serial number")
        return
    try:
        time_us = epoch_time(counters.get("timestamp"))
    except MalformedValue as error:
        yield Problem(piece.place, line, f"timestamp {error}")
        return
    if time_us is None:
        time_us = stated_time(piece.options, (piece.path.resolve().name,), piece.place)
    yield from _reading(counters, serial, time_us, rows, piece.place, line)


def _reading(
    counters: Mapping[str, object], serial: str, time_us: int, rows: DriveRows, place: str, line: int | None
) -> Iterator[Item]:
    """One drive of a dump or series: the same names either way."""
    reported = ReportedValues(counters, place, line)
    nand, vendor_host = (_vendor_bytes(reported, name) for name in INTEL_IDS)
    reading = DriveReading(
        serial,
        time_us,
        model=reported.text("modelnumber"),
        firmware=reported.text("firmware"),
        host=reported.text("nodename"),
        device=reported.text("devicepath"),
        capacity_bytes=reported.count("physicalsize"),
        host_write_bytes=_data_units(reported, "dataunitswritten"),
        vendor_host_write_bytes=vendor_host,
        host_read_bytes=_data_units(reported, "dataunitsread"),
        nand_write_bytes=nand,
        power_on_hours=reported.hours("poweronhours"),
        wear_pct=reported.percent("percentageused"),
        spare_pct=reported.percent(*SPARE),
        media_errors=reported.count("mediaerrors"),
    )
    yield from reported.problems
    yield from rows.take(reading, place, line)


def _data_units(reported: ReportedValues, name: str) -> int | None:
    raw = reported.count(name, unit=DATA_UNIT_BYTES)
    return reported.count(name + "bytes") if raw is None else raw


def _vendor_bytes(reported: ReportedValues, name: str) -> int | None:
    """Bytes of one of Intel's own counters, if it is the attribute whose unit we know."""
    number = reported.count(name + "id")
    if number is not None and number != INTEL_IDS[name]:
        reported.problems.append(
            Note(reported.place, reported.line, f"SMART attribute {number:X} of this name has no known unit")
        )
        return None
    raw = reported.count(name + "raw", unit=INTEL_UNIT_BYTES)
    return reported.count(name + "bytes") if raw is None else raw


def _end(rows: DriveRows, piece: _IsdctPiece) -> Iterator[Item]:
    if not rows.has_rows:
        yield Problem(piece.place, None, "no drive in it that could be read")
    yield from rows.flush()
