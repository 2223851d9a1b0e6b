"""What a Darshan log says of its run before any module, and on which file systems its files lie."""

from __future__ import annotations

import struct
import sys
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from iolens.columns import LATEST_US
from iolens.errors import InputError
from iolens.sources.darshan.library import JOB_RECORD_BYTES, MAXIMUM_MODULES, METADATA_BYTES, MODULES, LogHandle

# Packed parts of a Darshan log, unpacked with Python's own zlib -------------------------------------------------------
# Job, names, and the records of modules that lie in the log as they do in memory are taken from here: the library needs
# four times as long to unpack the modules of a small log, and asserts on some damaged parts.

_ZLIB, _BZIP2, _PLAIN = range(3)
_BLOCK: Final = 1 << 14  # bytes unpacked at once: what is left of them is copied at the end of each stream
_LARGEST_MODULE: Final = 64 << 20  # bytes of a module's records that are unpacked at once


class Region(NamedTuple):
    """Where a part of a log lies in its file; bytes."""

    offset: int
    length: int


def _bzip2_stream() -> Any:
    from bz2 import BZ2Decompressor  # late: few logs are packed so

    return BZ2Decompressor()


@dataclass(frozen=True, slots=True)
class PackedLog:
    """The bytes of a log's file, and how its parts are packed."""

    content: Any
    compression: int
    place: str

    def inflated(self, region: Region, what: str, longest: int) -> bytes:
        """One region, unpacked; several ranks may have written a packed stream each. InputError for a damaged one."""
        if not region.length:
            return b""
        if region.offset + region.length > len(self.content):
            raise InputError(self.place, f"cut off: its {what} should end at byte {region.offset + region.length}")
        packed = bytes(self.content[region.offset : region.offset + region.length])
        if self.compression == _PLAIN:
            return packed[:longest]
        pieces: list[bytes] = []
        left: bytes | memoryview = packed if len(packed) <= _BLOCK else memoryview(packed)
        try:
            while left and longest > 0:
                stream: Any = zlib.decompressobj() if self.compression == _ZLIB else _bzip2_stream()
                while left and longest > 0 and not stream.eof:
                    block = left[:_BLOCK]
                    pieces.append(stream.decompress(block, longest))
                    longest -= len(pieces[-1])
                    left = left[len(block) - len(stream.unused_data) :]
                if not stream.eof and longest > 0:
                    raise InputError(self.place, f"damaged: its {what} break off")
        except (zlib.error, OSError) as error:
            raise InputError(self.place, f"damaged: its {what} cannot be unpacked ({error})") from error
        return b"".join(pieces)

    def records(self, region: Region) -> bytes | None:
        """All of a module; None where it is damaged, cut or large: the library then reads it as far as it can."""
        if self.compression != _ZLIB:
            return None
        try:
            records = self.inflated(region, "records", _LARGEST_MODULE)
        except InputError:
            return None
        return records if len(records) < _LARGEST_MODULE else None


# What a Darshan log says of its run before any module -----------------------------------------------------------------
# Job, command, mounts, and the names of its records.
#
# These parts are decoded here and not by the library, which asserts on damaged ones, loses the command of a log without
# mounts, and clears 2 MiB for every list of names.

LONGEST_NAMES: Final = 1 << 30  # bytes of all names of a log, inflated
STREAMS: Final = frozenset({"<STDIN>", "<STDOUT>", "<STDERR>"})
"""Names of records of standard streams, which are no files."""
_FRACTIONS_SINCE: Final = (3, 41)  # format from which on times have nanoseconds
_PLACES: Final = 4 + 2 * MAXIMUM_MODULES  # offset and length of the job, of the names, and of each module
_HANDLE: Final = struct.Struct(f"@8siQi{_PLACES}Q{MAXIMUM_MODULES}I")  # all of `LogHandle`, in one call


class ModuleInfo(NamedTuple):
    """One module with data in a log."""

    name: str
    number: int
    version: int
    region: Region
    partial: bool  # the application ran out of memory for its records


@dataclass(slots=True)
class LogHead:
    """A log without its records. Times are microseconds since 1970."""

    place: str
    run_id: str
    version: str
    swapped: bool  # written by a machine of the other byte order
    uid: int
    job_id: int
    start_us: int
    end_us: int
    duration_s: float | None
    processes: int
    command: str | None
    mounts: dict[str, str]  # mount point → type
    names: dict[int, str]
    modules: list[ModuleInfo]
    incomplete: list[str] = field(default_factory=list)  # modules whose records are not all there
    unread: list[str] = field(default_factory=list)  # of them: those without a single record
    hosts: int | None = None


class LogIndex(NamedTuple):
    """What the header of an open log says: format, byte order, and where its parts lie."""

    version: str
    swapped: bool
    compression: int
    job: Region
    names: Region
    modules: list[ModuleInfo]


def read_index(handle: LogHandle) -> LogIndex:
    """The header as the library understood it."""
    version, swapped, partial, compression, *numbers = _HANDLE.unpack(handle)
    versions = numbers[_PLACES:]
    modules = [
        ModuleInfo(
            MODULES[number] if number < len(MODULES) else f"module {number}",
            number,
            versions[number],
            Region(numbers[4 + 2 * number], length),
            bool(partial >> number & 1),
        )
        for number, length in enumerate(numbers[5:_PLACES:2])
        if length
    ]
    name = version.partition(b"\0")[0].decode("latin-1")
    return LogIndex(name, bool(swapped), compression, Region(*numbers[:2]), Region(*numbers[2:4]), modules)


def read_head(index: LogIndex, packed: PackedLog, run_id: str) -> LogHead:
    """The head of an opened log; InputError where it cannot be."""
    place = packed.place
    order = "<" if (sys.byteorder == "little") != index.swapped else ">"
    has_fractions = tuple(int(part) for part in index.version.split(".")[:2]) >= _FRACTIONS_SINCE
    job = packed.inflated(index.job, "job record", JOB_RECORD_BYTES)
    numbers = struct.Struct(f"{order}q{'qqqq' if has_fractions else 'qq'}qq")
    if len(job) < numbers.size + METADATA_BYTES:
        raise InputError(place, "damaged: the job record is cut", "a Darshan log")
    uid, *clock, processes, job_id = numbers.unpack_from(job)
    start_s, start_ns, end_s, end_ns = clock if has_fractions else (clock[0], 0, clock[1], 0)
    start_us, end_us = (seconds * 1_000_000 + ns // 1000 for seconds, ns in ((start_s, start_ns), (end_s, end_ns)))
    if not 0 < start_us < LATEST_US or not 0 < processes < 1 << 31:
        raise InputError(place, f"damaged: {processes} processes, start {start_s} s", "a Darshan log")
    has_ended = start_us <= end_us < LATEST_US
    duration_s = (end_us - start_us) / 1e6 if has_fractions else float(end_s - start_s + 1)
    command, mounts = _command_and_mounts(job[numbers.size + METADATA_BYTES :])
    head = LogHead(
        place, run_id, index.version, index.swapped, uid, job_id, start_us, end_us if has_ended else start_us,
        duration_s if has_ended and duration_s > 0 else None, processes, command, mounts, {}, index.modules,
    )  # fmt: skip
    try:
        names = packed.inflated(index.names, "names", LONGEST_NAMES)
        head.names = _names(names, order, counted=index.version.startswith("3.00"))
    except InputError:
        head.incomplete.append("names")
    return head


def _command_and_mounts(text: bytes) -> tuple[str | None, dict[str, str]]:
    """The command stands in the first line; then follow lines of type, tab, mount point."""
    command, *lines = text.partition(b"\0")[0].decode("utf-8", "backslashreplace").split("\n")
    pairs = (line.split("\t", 1) for line in lines)
    return command.strip() or None, {pair[1]: pair[0] for pair in pairs if len(pair) == 2 and pair[1]}


def _names(packed: bytes, order: str, *, counted: bool) -> dict[int, str]:
    """Names by record id; in format 3.00 a name's length precedes it, later a zero ends it."""
    names: dict[int, str] = {}
    read_identifier, read_length = struct.Struct(f"{order}Q").unpack_from, struct.Struct(f"{order}I").unpack_from
    before_name, place = 12 if counted else 8, 0
    while place + before_name < len(packed):
        begin = place + before_name
        end = begin + read_length(packed, place + 8)[0] if counted else packed.find(b"\0", begin)
        if not begin <= end <= len(packed):
            break
        names[read_identifier(packed, place)[0]] = packed[begin:end].decode("utf-8", "backslashreplace")
        place = end if counted else end + 1
    return names


# Where the files of a run lie -----------------------------------------------------------------------------------------
# Mount points of the log's own table, and file systems by the configured mounts.

_ROOT: Final = "/"


def longest_mount(path: str, mounts: Mapping[str, str]) -> str | None:
    """The longest of the mount points that the path lies below; None where it lies below none."""
    place = path
    while place:
        if place in mounts:
            return place
        place = place[: place.rfind("/")] if "/" in place else ""
    return _ROOT if path.startswith(_ROOT) and _ROOT in mounts else None


class PlaceFinder:
    """Finds the mount and the file system of paths; each directory is looked up once."""

    def __init__(self, mounts: Mapping[str, str], configured: Mapping[str, str], filesystem: str | None) -> None:
        self.mounts = mounts
        self.configured = {mount.rstrip("/") or _ROOT: name for mount, name in configured.items()}
        self.filesystem = filesystem
        self._known: dict[str, tuple[str | None, str | None, str | None]] = {}

    def place(self, path: str | None) -> tuple[str | None, str | None, str | None]:
        """Mount point, its type, and the file system's name; None: not known."""
        if path is None or path in STREAMS:
            return None, None, self.filesystem if path is None else None
        directory = path[: path.rfind("/") + 1].rstrip("/") or (_ROOT if path.startswith(_ROOT) else path)
        if path in self.mounts or path in self.configured:
            directory = path
        if directory not in self._known:
            mount = longest_mount(directory, self.mounts)
            own = longest_mount(directory, self.configured)
            self._known[directory] = (
                mount,
                None if mount is None else self.mounts[mount],
                self.filesystem if own is None else self.configured[own],
            )
        return self._known[directory]
