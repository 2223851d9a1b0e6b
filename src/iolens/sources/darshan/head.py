"""What a Darshan log says of its run before any module: job, command, mounts, and the names of its records.

These parts are decoded here and not by the library, which asserts on damaged ones, loses the command of a log without
mounts, and clears 2 MiB for every list of names.
"""

from __future__ import annotations

import bz2
import struct
import sys
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from iolens.errors import InputError
from iolens.schema import LATEST_US
from iolens.sources.darshan.library import JOB_RECORD_BYTES, METADATA_BYTES, MODULES, LogHandle, LogRegion

LONGEST_NAMES: Final = 1 << 30  # bytes of all names of a log, inflated
STREAMS: Final = frozenset({"<STDIN>", "<STDOUT>", "<STDERR>"})
"""Names of records of standard streams, which are no files."""
_FRACTIONS_SINCE: Final = (3, 41)  # format from which on times have nanoseconds
_ZLIB, _BZIP2, _PLAIN = range(3)


@dataclass(frozen=True, slots=True)
class ModuleInfo:
    """One module with data in a log."""

    name: str
    number: int
    version: int
    length: int  # bytes, compressed
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


def read_head(handle: LogHandle, content: Any, place: str, run_id: str) -> LogHead:
    """The head of an opened log; `content` are the bytes of its file. InputError where it cannot be."""
    version = handle.version.decode("latin-1")
    order = "<" if (sys.byteorder == "little") != bool(handle.swap_flag) else ">"
    has_fractions = tuple(int(part) for part in version.split(".")[:2]) >= _FRACTIONS_SINCE
    job = _inflated(handle, handle.job_map, content, place, "job record", JOB_RECORD_BYTES)
    times = "qqqq" if has_fractions else "qq"
    numbers = struct.Struct(f"{order}q{times}qq")
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
        place, run_id, version, bool(handle.swap_flag), uid, job_id, start_us, end_us if has_ended else start_us,
        duration_s if has_ended and duration_s > 0 else None, processes, command, mounts, {}, _modules(handle),
    )  # fmt: skip
    try:
        packed = _inflated(handle, handle.name_map, content, place, "names", LONGEST_NAMES)
        head.names = dict(_names(packed, order, counted=version.startswith("3.00")))
    except InputError:
        head.incomplete.append("names")
    return head


def _modules(handle: LogHandle) -> list[ModuleInfo]:
    return [
        ModuleInfo(
            MODULES[number] if number < len(MODULES) else f"module {number}",
            number,
            handle.mod_ver[number],
            region.length,
            bool(handle.partial_flag >> number & 1),
        )
        for number, region in enumerate(handle.mod_map)
        if region.length
    ]


def _inflated(handle: LogHandle, region: LogRegion, content: Any, place: str, what: str, longest: int) -> bytes:
    """One region, unpacked; several ranks may have written a packed stream each."""
    if not region.length:
        return b""
    if region.offset + region.length > len(content):
        raise InputError(place, f"cut off: its {what} should end at byte {region.offset + region.length}")
    packed = bytes(content[region.offset : region.offset + region.length])
    if handle.comp_type == _PLAIN:
        return packed[:longest]
    pieces: list[bytes] = []
    try:
        while packed and longest > 0:
            stream: Any = zlib.decompressobj() if handle.comp_type == _ZLIB else bz2.BZ2Decompressor()
            pieces.append(stream.decompress(packed, longest))
            longest -= len(pieces[-1])
            if not stream.eof and longest > 0:
                raise InputError(place, f"damaged: its {what} break off")
            packed = stream.unused_data
    except (zlib.error, OSError) as error:
        raise InputError(place, f"damaged: its {what} cannot be unpacked ({error})") from error
    return b"".join(pieces)


def _command_and_mounts(text: bytes) -> tuple[str | None, dict[str, str]]:
    """The command stands in the first line; then follow lines of type, tab, mount point."""
    command, *lines = text.partition(b"\0")[0].decode("utf-8", "backslashreplace").split("\n")
    pairs = (line.split("\t", 1) for line in lines)
    return command.strip() or None, {pair[1]: pair[0] for pair in pairs if len(pair) == 2 and pair[1]}


def _names(packed: bytes, order: str, *, counted: bool) -> Iterator[tuple[int, str]]:
    """Record id and name of each; in format 3.00 a name's length precedes it, later a zero ends it."""
    identifier = struct.Struct(f"{order}Q")
    length = struct.Struct(f"{order}I")
    place = 0
    while place + identifier.size < len(packed):
        begin = place + identifier.size + (length.size if counted else 0)
        end = begin + length.unpack_from(packed, place + 8)[0] if counted else packed.find(b"\0", begin)
        if not begin <= end <= len(packed):
            return
        yield identifier.unpack_from(packed, place)[0], packed[begin:end].decode("utf-8", "backslashreplace")
        place = end if counted else end + 1
