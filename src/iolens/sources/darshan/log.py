"""Many Darshan logs as arrays: the records of each module one after the other, and which log each is of.

Every record is read straight into the next slot of an array; nothing is done per counter.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from iolens.errors import InputError
from iolens.sources.darshan.head import LogHead, ModuleInfo, read_head
from iolens.sources.darshan.heat import HeatmapBuffer
from iolens.sources.darshan.layouts import RECORDED, RecordLayout, layout_of
from iolens.sources.darshan.library import LogHandle, LustreRecord, counter_names, library
from iolens.sources.darshan.traces import TRACED, TraceChunk, TraceStream, hosts_of
from iolens.sources.reading.bounded_input import regular_file

MAGIC: Final = 6567223
VERSIONS: Final = ("3.00", "3.10", "3.20", "3.21", "3.41")
_OPENED: Final = "a Darshan log of format 3.00 to 3.41"
_COMPRESSION_AT: Final = 16  # byte of the header that says how regions are packed
_MOST_STRIPES: Final = 1 << 20  # of one file; more is damage
_FIRST_SLOTS: Final = 256

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
    """Fixed-size records of one module."""

    def __init__(self, layout: RecordLayout) -> None:
        self.layout, self.count = layout, 0
        self.slots: NDArray[np.void] = np.zeros(_FIRST_SLOTS, layout.dtype)
        self.ends: dict[int, int] = {}  # log → how many records there are with its own

    def read(self, handle: int, log: int) -> Reading:
        """Take all records of an open log, unless they are damaged."""
        size, number, get_record = self.layout.dtype.itemsize, self.layout.number, library().darshan_log_get_record
        slot = ctypes.c_void_p()
        address, result = ctypes.addressof(slot), 1
        while result == 1:
            if self.count == len(self.slots):
                self.slots = np.concatenate((self.slots, np.zeros(len(self.slots), self.layout.dtype)))
            base = self.slots.ctypes.data
            for place in range(self.count, len(self.slots)):
                slot.value = base + place * size
                result = get_record(handle, number, address)
                if result != 1:
                    break
                self.count += 1
        self.ends[log] = self.count
        is_cut = self._clear(self.count, self.count + 1)
        if result < 0:
            self.forget(log)
            return Reading.NOTHING
        return Reading.CUT if is_cut else Reading.WHOLE

    def forget(self, log: int) -> None:
        """Leave out the records of the last log."""
        if self.ends.pop(log, None) is not None:
            end, self.count = self.count, max(self.ends.values(), default=0)
            self._clear(self.count, end + 1)

    def _clear(self, begin: int, end: int) -> bool:
        """Set slots to zero; whether anything else was in them, such as the beginning of a record that is cut."""
        slots = self.slots[begin:end].view(np.uint8)
        had_bytes = bool(slots.any())
        if had_bytes:
            slots[:] = 0
        return had_bytes

    @property
    def records(self) -> NDArray[np.void]:
        """All of them."""
        return self.slots[: self.count]

    @property
    def logs(self) -> NDArray[np.int64]:
        """Which log each is of."""
        ends = np.array([0, *self.ends.values()], np.int64)
        return np.repeat(np.fromiter(self.ends, np.int64, len(self.ends)), np.diff(ends))


@dataclass(frozen=True, slots=True)
class Striping:
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
                    reading = Reading.NOTHING if is_skipped else self._read_module(log.handle or 0, module, head)
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

    def _read_module(self, handle: int, module: ModuleInfo, head: LogHead) -> Reading:
        log = len(self.heads)
        if module.name in RECORDED:
            buffer = self.buffers.setdefault(module.name, RecordBuffer(layout_of(module.name)))
            before = buffer.count
            reading = buffer.read(handle, log)
            if head.swapped and module.name == "POSIX" and module.version < 4:
                mend_times(buffer.layout, buffer.slots[before : buffer.count])
            return reading
        is_whole = True
        if module.name == "LUSTRE":
            is_whole = self._read_stripings(handle, module.number, log)
        elif module.name == "HEATMAP":
            is_whole = self.heat.read(handle, module.number, log, head.names)
        elif module.name in TRACED:
            hosts = hosts_of(handle, module)
            is_whole = hosts is not None
            head.hosts = max(head.hosts or 0, len(hosts or ())) or None
        return Reading.WHOLE if is_whole else Reading.NOTHING

    def _read_stripings(self, handle: int, number: int, log: int) -> bool:
        """Take the Lustre records of an open log; False, and none, where they are damaged."""
        before = len(self.stripings)
        names = counter_names("lustre_comp")
        size_at, count_at = (names.index(f"LUSTRE_COMP_STRIPE_{name}") for name in ("SIZE", "COUNT"))
        width = len(names) + 2  # the name of a pool, 16 bytes, follows the counters
        pointer = ctypes.c_void_p()
        while (result := library().darshan_log_get_record(handle, number, ctypes.addressof(pointer))) == 1:
            record = LustreRecord.from_address(pointer.value or 0)
            if not (0 <= record.num_comps <= _MOST_STRIPES and 0 <= record.num_stripes <= _MOST_STRIPES):
                result = -1
                break
            components = _numbers(record.comps, record.num_comps * width).reshape(-1, width)
            osts = _numbers(record.ost_ids, record.num_stripes)
            widest = components[components[:, count_at].argmax()] if len(components) else None
            size = None if widest is None or widest[size_at] <= 0 else int(widest[size_at])
            known = dict.fromkeys(ost for ost in osts.tolist() if ost >= 0)
            self.stripings.append(Striping(log, record.id, record.rank, size, tuple(known)))
            library().darshan_free(pointer)
            pointer = ctypes.c_void_p()
        if result < 0:
            del self.stripings[before:]
        return bool(result == 0)


def _numbers(address: int | None, count: int) -> NDArray[np.int64]:
    """A copy of whole numbers that the library holds."""
    if not address or count <= 0:
        return np.zeros(0, np.int64)
    return np.frombuffer(ctypes.string_at(address, count * 8), np.int64)


class OpenLog:
    """A log that the library has open."""

    def __init__(self, path: Path, place: str, content: Any) -> None:
        self.path, self.place, self.content = path, place, content
        self.handle: int | None = None
        self.open()

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
        return read_head(LogHandle.from_address(self.handle or 0), self.content, self.place, run_id)

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
        size = file.size
    except OSError as error:
        raise InputError(place, f"cannot be read: {error.strerror or error}") from error
    if not size:
        raise InputError(place, "empty file", _OPENED)
    with file.mapped() as content:
        _refuse_strange(bytes(content[:16]), place)
        log = OpenLog(path, place, content)
        try:
            yield log
        finally:
            log.close()


def _refuse_strange(head: bytes, place: str) -> None:
    if not magic_of(head):
        raise InputError(place, "not a Darshan log: its magic number is missing", _OPENED)
    version = head[:8].partition(b"\0")[0].decode("latin-1")
    if version not in VERSIONS:
        raise InputError(place, f"Darshan log of format {version!r}, which is not known", _OPENED)


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
