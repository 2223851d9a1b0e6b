"""Traces of single accesses (DXT) of a Darshan log, streamed in arrays of bounded length."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from iolens.errors import InputError
from iolens.sources.darshan.head import ModuleInfo
from iolens.sources.darshan.isolated import stream
from iolens.sources.darshan.library import LogHandle, library

# Traces of single accesses (DXT) of a Darshan log, for whoever asks ---------------------------------------------------
# Streamed from a child process.


def segments(path: str | Path) -> Iterator[TraceChunk]:
    """Every traced access of a log, in chunks, read in a child process; InputError where it cannot be read on.

    Chunks come in the order of the log: by module, record (file and rank), writes, reads. A log may have no trace.
    """
    return stream("dxt", path)


# Traces of single accesses (DXT) of a Darshan log, streamed in arrays of bounded length -------------------------------
# The library would hold a whole record at once, and a record of one file may have all segments of a run. Here a
# module's bytes are taken in pieces, so memory stays flat however long the trace is.

SEGMENTS_PER_CHUNK: Final = 100_000
TRACED: Final = ("DXT_POSIX", "DXT_MPIIO")
_HOST_BYTES: Final = 64
_RECORD: Final = np.dtype(
    [("id", "u8"), ("rank", "i8"), ("shared", "i8"), ("host", f"S{_HOST_BYTES}"), ("writes", "i8"), ("reads", "i8")]
)
_SEGMENT: Final = [("offset", "i8"), ("length", "i8"), ("start_s", "f8"), ("end_s", "f8")]
_THREADED_SINCE: Final = {"DXT_POSIX": 2, "DXT_MPIIO": 3}  # version from which on a segment names its thread
_OFFSETS_SINCE: Final = {"DXT_POSIX": 1, "DXT_MPIIO": 2}  # before it, an offset means nothing
_MOST: Final = 1 << 40  # segments of one record; more is damage


@dataclass(frozen=True, slots=True, eq=False)
class TraceChunk:
    """Some accesses of one rank to one file in one direction, in the order of the log."""

    module: str  # POSIX or MPI-IO
    record_id: int  # unsigned, as Darshan prints it
    rank: int
    hostname: str
    direction: str  # read or write
    offset: NDArray[np.int64]  # bytes; −1: not recorded
    length: NDArray[np.int64]  # bytes
    start_s: NDArray[np.float64]  # since the start of the run
    end_s: NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.length)


class TraceStream:
    """The unpacked bytes of one module."""

    def __init__(self, handle: int, module: ModuleInfo) -> None:
        self.handle, self.module = handle, module
        is_threaded = module.version >= _THREADED_SINCE[module.name]
        order = LogHandle.from_address(handle).swap_flag
        self._record = _RECORD.newbyteorder("S") if order else _RECORD
        segment = np.dtype(_SEGMENT + [("thread", "u8")] * is_threaded)
        self._segment = segment.newbyteorder("S") if order else segment

    def _taken(self, count: int, dtype: np.dtype[np.void]) -> NDArray[np.void]:
        """Up to `count` whole items; fewer at the end, after which the library would begin anew."""
        buffer = np.zeros(count, dtype)
        size = library().darshan_log_get_mod(self.handle, self.module.number, buffer.ctypes.data, buffer.nbytes)
        if size < 0:
            records = f"{self.module.name} records, of version {self.module.version},"
            raise InputError("", f"damaged: its {records} cannot be unpacked")
        return buffer[: size // dtype.itemsize]

    def chunks(self) -> Iterator[TraceChunk]:
        """Every access; InputError, without a place, where they break off."""
        name = {"DXT_POSIX": "POSIX", "DXT_MPIIO": "MPI-IO"}[self.module.name]
        while len(records := self._taken(1, self._record)):
            record = records[0]
            host = bytes(record["host"]).decode("utf-8", "backslashreplace")
            for direction in ("write", "read"):
                left = int(record[f"{direction}s"])
                if not 0 <= left < _MOST:
                    raise InputError("", f"damaged: a {self.module.name} record of {left} {direction}s")
                while left:
                    wanted = min(left, SEGMENTS_PER_CHUNK)
                    segments = self._taken(wanted, self._segment)
                    left -= wanted
                    if len(segments):
                        yield self._chunk(name, record, host, direction, segments)
                    if len(segments) < wanted:
                        raise InputError("", f"cut off within its {self.module.name} records")

    def _chunk(self, name: str, record: np.void, host: str, direction: str, segments: NDArray[np.void]) -> TraceChunk:
        offset = segments["offset"].astype(np.int64)
        if self.module.version < _OFFSETS_SINCE[self.module.name]:
            offset[:] = -1
        return TraceChunk(
            name, int(record["id"]), int(record["rank"]), host, direction, offset,
            segments["length"].astype(np.int64), segments["start_s"].astype(float), segments["end_s"].astype(float),
        )  # fmt: skip


def hosts_of(handle: int, module: ModuleInfo) -> set[str] | None:
    """Names of the hosts in an open log's trace; None where it is damaged."""
    try:
        return {chunk.hostname for chunk in TraceStream(handle, module).chunks() if chunk.hostname}
    except InputError:
        return None
