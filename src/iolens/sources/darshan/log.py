"""Layout of the fixed-size records of Darshan's modules, with the counters that the library itself names."""

from __future__ import annotations

import ctypes
import hashlib
import os
import struct
import zlib
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import Enum
from functools import cache
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from iolens.errors import InputError
from iolens.sources.darshan.head import LogHead, ModuleInfo, PackedLog, read_head, read_index
from iolens.sources.darshan.heat import STORED_HEATMAP, HeatmapBuffer
from iolens.sources.darshan.library import MODULES, LogHandle, counter_names, library
from iolens.sources.darshan.traces import TRACED, TraceChunk, TraceStream, hosts_of
from iolens.sources.reading.bounded_input import GZIP, regular_file

_PREFIXES: Final = {
    "POSIX": "posix", "STDIO": "stdio", "MPI-IO": "mpiio", "H5F": "h5f", "H5D": "h5d", "PNETCDF_FILE": "pnetcdf_file",
    "PNETCDF_VAR": "pnetcdf_var", "DFS": "dfs", "DAOS": "daos",
}  # fmt: skip
_BELONGS_TO_A_FILE: Final = ("H5D", "PNETCDF_VAR")
_STORED: Final = {"POSIX": (4, 704), "STDIO": (2, 248), "MPI-IO": (3, 560)}  # version, and bytes of its record
_TRAILING_BYTES: Final = {"DFS": 32, "DAOS": 48}  # identifiers of pool, container and object

RECORDED: Final = tuple(_PREFIXES)
"""Modules with fixed-size records that are read."""


@dataclass(frozen=True, slots=True)
class RecordLayout:
    """One module's record: identifier and rank, then whole numbers, then times."""

    module: str
    number: int
    prefix: str
    counters: dict[str, int]
    times: dict[str, int]
    dtype: np.dtype[np.void]

    def is_stored(self, version: int) -> bool:
        """Whether records of this version of the module lie in a log as they do in memory, in the same byte order."""
        return _STORED.get(self.module) == (version, self.dtype.itemsize)

    def counter(self, records: NDArray[np.void], name: str) -> NDArray[np.int64] | None:
        """A counter of every record by its name without the module's prefix; None where the module has none such."""
        place = self.counters.get(name)
        return None if place is None else records["counters"][:, place]

    def time(self, records: NDArray[np.void], name: str) -> NDArray[np.float64] | None:
        """A time of every record, seconds, by its name without prefix and `F_`; None where there is none such."""
        place = self.times.get(name)
        return None if place is None else records["times"][:, place]


@cache
def layout_of(module: str) -> RecordLayout:
    """The layout of a module's records."""
    prefix = _PREFIXES[module]
    upper = f"{prefix.upper()}_"
    counters = [name.removeprefix(upper) for name in counter_names(prefix)]
    times = [name.removeprefix(f"{upper}F_") for name in counter_names(f"{prefix}_f")]
    fields: list[tuple[str, object] | tuple[str, object, tuple[int]]] = [("id", "u8"), ("rank", "i8")]
    if module in _BELONGS_TO_A_FILE:
        fields.append(("file_id", "u8"))
    fields += [("counters", "i8", (len(counters),)), ("times", "f8", (len(times),))]
    if module in _TRAILING_BYTES:
        fields.append(("identifiers", f"V{_TRAILING_BYTES[module]}"))
    return RecordLayout(
        module,
        MODULES.index(module),
        prefix,
        {name: place for place, name in enumerate(counters)},
        {name: place for place, name in enumerate(times)},
        np.dtype(fields),
    )


# Many Darshan logs as arrays ------------------------------------------------------------------------------------------
# The records of each module one after the other, and which log each is of.
#
# A module whose records lie in the log as in memory is unpacked as a whole; the library reads all others, straight into
# slots of an array. Nothing is done per counter.

MAGIC: Final = 6567223
VERSIONS: Final = ("3.00", "3.10", "3.20", "3.21", "3.41")
_OPENED: Final = "a Darshan log of format 3.00 to 3.41"
BZIP2: Final = b"BZh"
_HEAD_BYTES: Final = 1 << 20  # of which bzip2 unpacks a first block of 900 kB
_COMPRESSION_AT: Final = 16  # byte of the header that says how regions are packed
_MOST_STRIPES: Final = 1 << 20  # of one file; more is damage
_LUSTRE: Final = struct.Struct("@Qqqqqq")  # its record: identifier, rank, components, stripes, pointers to both
_FIRST_SLOTS: Final = 32

Watch = Callable[[int], object]


def magic_of(head: bytes) -> bool:
    """Whether a file begins as a Darshan log does, in either byte order."""
    return head[8:16] in (MAGIC.to_bytes(8, "little"), MAGIC.to_bytes(8, "big"))


class Reading(Enum):
    """How far the records of a module could be read."""

    WHOLE = "whole"
    CUT = "cut"  # whole records, and the beginning of one more
    NOTHING = "nothing"  # damaged: the checksum stands at the end, so no record can be trusted


class RecordBuffer:
    """Fixed-size records of one module: those of each log in a piece."""

    def __init__(self, layout: RecordLayout) -> None:
        self.layout = layout
        self._pieces: dict[int, NDArray[np.uint8]] = {}  # by log

    def take(self, records: bytes, log: int) -> bool:
        """Records as they lie in a log; False, and none, where the last one is not whole."""
        if len(records) % self.layout.dtype.itemsize:
            return False
        self._pieces[log] = np.frombuffer(records, np.uint8)
        return True

    def read(self, handle: int, log: int, *, mend: bool = False) -> Reading:
        """Take all records of an open log from the library, unless they are damaged."""
        slots, count, result = np.zeros(_FIRST_SLOTS, self.layout.dtype), 0, 1
        slot, get_record = ctypes.c_void_p(), library().darshan_log_get_record
        address = ctypes.addressof(slot)
        while result == 1:
            if count == len(slots):
                slots = np.concatenate((slots, np.zeros(len(slots), self.layout.dtype)))
            base = slots.ctypes.data
            for place in range(count, len(slots)):
                slot.value = base + place * self.layout.dtype.itemsize
                result = get_record(handle, self.layout.number, address)
                if result != 1:
                    break
                count += 1
        if result < 0:
            return Reading.NOTHING
        if mend:
            mend_times(self.layout, slots[:count])
        self._pieces[log] = slots[:count].view(np.uint8)
        return Reading.CUT if slots[count : count + 1].view(np.uint8).any() else Reading.WHOLE

    def forget(self, log: int) -> None:
        """Leave out the records of a log."""
        self._pieces.pop(log, None)

    @property
    def records(self) -> NDArray[np.void]:
        """All of them."""
        pieces = [*self._pieces.values()] or [np.zeros(0, np.uint8)]
        return (pieces[0] if len(pieces) == 1 else np.concatenate(pieces)).view(self.layout.dtype)

    @property
    def logs(self) -> NDArray[np.int64]:
        """Which log each is of."""
        lengths = [len(piece) // self.layout.dtype.itemsize for piece in self._pieces.values()]
        return np.repeat(np.fromiter(self._pieces, np.int64, len(lengths)), lengths)


class Striping(NamedTuple):
    """One Lustre record: over which OSTs a file is striped."""

    log: int
    record_id: int
    rank: int
    stripe_bytes: int | None
    osts: tuple[int, ...]


@dataclass(slots=True)
class LogBatch:
    """Some logs, read together."""

    heads: list[LogHead] = field(default_factory=list)
    buffers: dict[str, RecordBuffer] = field(default_factory=dict)
    stripings: list[Striping] = field(default_factory=list)
    heat: HeatmapBuffer = field(default_factory=HeatmapBuffer)

    def read(
        self,
        path: Path,
        place: str,
        run_id: str | None = None,
        skipped: Collection[str] = (),
        watch: Watch = lambda module: None,
    ) -> None:
        """Take one more log; InputError where it is none, or not that of the `run_id` any more.

        Modules `skipped` are named as incomplete. `watch` hears the number of each module before it is read.
        """
        try:
            with opened(path, place) as log:
                found_id = hashlib.sha256(log.content).hexdigest()
                if run_id not in (None, found_id):
                    raise InputError(place, "changed while logs were loaded: load it again")
                head = log.head(found_id)
                for module in head.modules:
                    watch(module.number)
                    is_skipped = module.name in skipped
                    reading = Reading.NOTHING if is_skipped else self._read_module(log, module, head)
                    if reading is not Reading.WHOLE:
                        head.incomplete.append(module.name)
                        log.open()
                    head.unread += [module.name] * (reading is Reading.NOTHING)
            if head.modules and len(head.unread) == len(head.modules):
                raise InputError(place, f"cut off or damaged: no records of {', '.join(head.unread)} can be read")
        except BaseException:
            self._forget()
            raise
        self.heads.append(head)

    def _forget(self) -> None:
        """Leave out what was read of a log that is refused after all."""
        log = len(self.heads)
        for buffer in self.buffers.values():
            buffer.forget(log)
        self.stripings = [striping for striping in self.stripings if striping.log != log]
        self.heat.forget(log)

    def _read_module(self, log: OpenLog, module: ModuleInfo, head: LogHead) -> Reading:
        number, handle = len(self.heads), log.handle or 0
        is_whole = True
        if module.name in RECORDED:
            return self._read_records(log, module, head)
        if module.name == "HEATMAP":
            stored = None if head.swapped or module.version != STORED_HEATMAP else log.packed.records(module.region)
            is_whole = (stored is not None and self.heat.take(stored, number, head.names)) or self.heat.read(
                handle, module.number, number, head.names
            )
        elif module.name == "LUSTRE":
            is_whole = self._read_stripings(handle, module.number, number)
        elif module.name in TRACED:
            hosts = hosts_of(handle, module)
            is_whole = hosts is not None
            head.hosts = max(head.hosts or 0, len(hosts or ())) or None
        return Reading.WHOLE if is_whole else Reading.NOTHING

    def _read_records(self, log: OpenLog, module: ModuleInfo, head: LogHead) -> Reading:
        """As they lie in the log where that is how they lie in memory, else as the library converts them."""
        buffer = self.buffers.setdefault(module.name, RecordBuffer(layout_of(module.name)))
        if not head.swapped and buffer.layout.is_stored(module.version):
            stored = log.packed.records(module.region)
            if stored is not None and buffer.take(stored, len(self.heads)):
                return Reading.WHOLE
        is_to_mend = head.swapped and module.name == "POSIX" and module.version < 4
        return buffer.read(log.handle or 0, len(self.heads), mend=is_to_mend)

    def _read_stripings(self, handle: int, number: int, log: int) -> bool:
        """Take the Lustre records of an open log; False, and none, where they are damaged."""
        before = len(self.stripings)
        names = counter_names("lustre_comp")
        size_at, count_at = (names.index(f"LUSTRE_COMP_STRIPE_{name}") for name in ("SIZE", "COUNT"))
        width = len(names) + 2  # the name of a pool, 16 bytes, follows the counters
        pointer, get_record, free = ctypes.c_void_p(), library().darshan_log_get_record, library().darshan_free
        address = ctypes.addressof(pointer)
        while (result := get_record(handle, number, address)) == 1:
            record = ctypes.string_at(pointer.value or 0, _LUSTRE.size)
            record_id, rank, component_count, stripes, components_at, osts_at = _LUSTRE.unpack(record)
            if not (0 <= component_count <= _MOST_STRIPES and 0 <= stripes <= _MOST_STRIPES):
                result = -1
                break
            components = _numbers(components_at, component_count * width)
            counts = components[count_at::width]
            size = components[counts.index(max(counts)) * width + size_at] if counts else 0
            known = dict.fromkeys(ost for ost in _numbers(osts_at, stripes) if ost >= 0)
            self.stripings.append(Striping(log, record_id, rank, size if size > 0 else None, tuple(known)))
            free(pointer)
            pointer.value = None
        if result < 0:
            del self.stripings[before:]
        return bool(result == 0)


def _numbers(address: int, count: int) -> tuple[int, ...]:
    """A copy of whole numbers that the library holds."""
    if not address or count <= 0:
        return ()
    return struct.unpack(f"={count}q", ctypes.string_at(address, count * 8))


class OpenLog:
    """A log that the library has open."""

    def __init__(self, path: Path, place: str, content: Any) -> None:
        self.path, self.place, self.content = path, place, content
        self.handle: int | None = None
        self.open()
        self.index = read_index(LogHandle.from_address(self.handle or 0))
        self.packed = PackedLog(content, self.index.compression, place)

    def open(self) -> None:
        """Open it, again if need be: after damage the library unpacks nothing more through the same handle."""
        self.close()
        self.handle = library().darshan_log_open(os.fsencode(self.path))
        if not self.handle:
            raise InputError(self.place, self._why_not(), _OPENED)

    def _why_not(self) -> str:
        if len(self.content) > _COMPRESSION_AT and self.content[_COMPRESSION_AT] == 1:
            return "packed with bzip2, which this libdarshan-util cannot unpack: rewrite it with darshan-convert"
        return f"cut off or damaged: {len(self.content)} bytes without a whole header"

    def head(self, run_id: str) -> LogHead:
        """What it says before its modules."""
        return read_head(self.index, self.packed, run_id)

    def close(self) -> None:
        """Let go of it."""
        if self.handle:
            library().darshan_log_close(self.handle)
        self.handle = None


@contextmanager
def opened(path: Path, place: str) -> Iterator[OpenLog]:
    """The log in a file; InputError where it is none."""
    try:
        file = regular_file(path)
        mapped = file.mapped() if file.size else None
    except OSError as error:
        raise InputError(place, f"cannot be read: {error.strerror or error}") from error
    if mapped is None:
        raise InputError(place, "empty file", _OPENED)
    with mapped as content:
        _refuse_strange(content, place)
        log = OpenLog(path, place, content)
        try:
            yield log
        finally:
            log.close()


def _refuse_strange(content: Any, place: str) -> None:
    head = bytes(content[:16])
    if not magic_of(head):
        head = _unpacked_head(bytes(content[:_HEAD_BYTES]))  # logs of Darshan 2 are packed as a whole
    if not magic_of(head):
        raise InputError(place, "not a Darshan log: its magic number is missing", _OPENED)
    version = head[:8].partition(b"\0")[0].decode("latin-1")
    if version.startswith(("1.", "2.")):
        wrong = f"a log of Darshan {version[0]} (format {version}): only the tools of Darshan {version[0]} read it"
        raise InputError(place, wrong, _OPENED)
    if version not in VERSIONS:
        raise InputError(place, f"Darshan log of format {version!r}, which is not known", _OPENED)


def _unpacked_head(packed: bytes) -> bytes:
    """The first bytes of what gzip or bzip2 packed; none where it is neither, or damaged."""
    try:
        if packed[:2] == GZIP:
            return zlib.decompressobj(zlib.MAX_WBITS | 16).decompress(packed, 16)
        if packed[:3] == BZIP2:
            from bz2 import BZ2Decompressor  # late: few logs are packed so

            return BZ2Decompressor().decompress(packed, 16)
    except (zlib.error, OSError):
        pass
    return b""


def mend_times(layout: RecordLayout, records: NDArray[np.void]) -> None:
    """Swap the bytes of times that the library forgets to swap in POSIX records before version 4.

    libdarshan-util up to 3.5.0 leaves out those whose places are the numbers of three renaming counters. A value that
    makes no sense as it is, and does when swapped, is one of them: a library that has been mended is not disturbed.
    """
    for name in ("RENAME_SOURCES", "RENAME_TARGETS", "RENAMED_FROM"):
        place = layout.counters.get(name)
        if place is None:
            continue
        values = records["times"][:, place].copy()
        swapped = values.byteswap()
        records["times"][:, place] = np.where(~_is_duration(values) & _is_duration(swapped), swapped, values)


def _is_duration(values: NDArray[np.float64]) -> NDArray[np.bool_]:
    with np.errstate(invalid="ignore"):
        return np.asarray((values == 0) | ((values > 1e-12) & (values < 1e12)))


def trace_chunks(path: Path, place: str) -> Iterator[TraceChunk]:
    """Every traced access of a log (DXT), in chunks."""
    with opened(path, place) as log:
        try:
            for module in log.head("").modules:
                if module.name in TRACED:
                    yield from TraceStream(log.handle or 0, module).chunks()
        except InputError as error:
            raise InputError(place, error.problem) from error
