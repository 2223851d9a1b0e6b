"""Heat maps of Darshan logs: bytes by module, rank and time, read as arrays, the bins with any bytes only."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from typing import Final

import numpy as np
from numpy.typing import NDArray

from iolens.sources.darshan.library import HeatmapRecord, library

HEATED: Final = ("POSIX", "STDIO", "MPI-IO")
_NAMES: Final = {"heatmap:POSIX": 0, "heatmap:STDIO": 1, "heatmap:MPIIO": 2}
_RECORD_BYTES: Final = 81920  # what the library assumes of a buffer that it is given (DEF_MOD_BUF_SIZE)
_MOST_HELD: Final = 10_000  # records that are held with all their bins
_HEAD: Final = ctypes.sizeof(HeatmapRecord) // 8

FIELDS: Final = np.dtype(
    [("log", "i8"), ("module", "i8"), ("rank", "i8"), ("bin", "i8"), ("bin_s", "f8"), ("read", "i8"), ("write", "i8")]
)


class HeatmapBuffer:
    """Heat maps of many logs."""

    def __init__(self) -> None:
        self.known: set[tuple[int, int]] = set()  # log and place in HEATED of the maps that were read
        self._records: list[tuple[int, int, int, float]] = []  # log, place in HEATED, rank, seconds of a bin
        self._reads: list[NDArray[np.int64]] = []  # bytes by bin, of each record
        self._writes: list[NDArray[np.int64]] = []
        self._pieces: list[NDArray[np.void]] = []  # of records that were taken apart
        self._buffer = ctypes.create_string_buffer(_RECORD_BYTES + 64)

    def read(self, handle: int, number: int, log: int, names: Mapping[int, str]) -> bool:
        """Take the heat maps of an open log; False, and none, where they are damaged."""
        base, record = ctypes.addressof(self._buffer), HeatmapRecord.from_buffer(self._buffer)
        numbers = np.frombuffer(memoryview(self._buffer).cast("B"), np.int64)
        pointer, before, get_record = ctypes.c_void_p(base), len(self._records), library().darshan_log_get_record
        address = ctypes.addressof(pointer)
        while (result := get_record(handle, number, address)) == 1:
            module = _NAMES.get(names.get(record.id, ""))
            if module is None:
                continue
            bins, reads_at = record.nbins, ((record.read_bins or 0) - base) // 8
            if not 0 < bins <= _RECORD_BYTES // 16 or not _HEAD <= reads_at <= len(numbers) - bins:
                result = -1
                break
            self._records.append((log, module, record.rank, record.bin_width_seconds))
            self._writes.append(numbers[_HEAD : _HEAD + bins].copy())
            self._reads.append(numbers[reads_at : reads_at + bins].copy())
        if result < 0:
            del self._records[before:], self._reads[before:], self._writes[before:]
        self.known.update((log, module) for _, module, _, _ in self._records[before:])
        if len(self._records) > _MOST_HELD:
            self._take_apart()
        return bool(result == 0)

    def forget(self, log: int) -> None:
        """Leave out the last log."""
        self._take_apart()
        self._pieces = [piece[piece["log"] != log] for piece in self._pieces]
        self.known = {pair for pair in self.known if pair[0] != log}

    @property
    def bins(self) -> NDArray[np.void]:
        """Every bin with bytes, in the order of logs."""
        self._take_apart()
        self._pieces = [np.concatenate((np.zeros(0, FIELDS), *self._pieces))]
        return self._pieces[0]

    def _take_apart(self) -> None:
        if not self._records:
            return
        lengths = [len(bins) for bins in self._reads]
        reads, writes = np.concatenate(self._reads), np.concatenate(self._writes)
        busy = np.flatnonzero((writes > 0) | (reads > 0))
        of_record = np.repeat(np.arange(len(lengths)), lengths)[busy]
        bins = np.zeros(len(busy), FIELDS)
        for name, values in zip(("log", "module", "rank", "bin_s"), zip(*self._records, strict=True), strict=True):
            bins[name] = np.array(values)[of_record]
        bins["bin"] = busy - np.cumsum([0, *lengths[:-1]])[of_record]
        bins["read"], bins["write"] = np.maximum(reads[busy], 0), np.maximum(writes[busy], 0)
        self._pieces.append(bins)
        self._records, self._reads, self._writes = [], [], []
