"""What a Darshan log says of its run before any module: job, command, mounts, and the names of its records.

These parts are decoded here and not by the library, which asserts on damaged ones, loses the command of a log without
mounts, and clears 2 MiB for every list of names.
"""

from __future__ import annotations

import struct
import sys
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from iolens.columns import LATEST_US
from iolens.errors import InputError
from iolens.sources.darshan.library import JOB_RECORD_BYTES, MAXIMUM_MODULES, METADATA_BYTES, MODULES, LogHandle
from iolens.sources.darshan.regions import PackedLog, Region

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
