"""Heat maps of Darshan logs: bytes by module, rank and time, read as arrays, the bins with any bytes only."""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Mapping
from typing import Final

import numpy as np
from numpy.typing import NDArray

from iolens.sources.darshan.library import HeatmapRecord, library

STORED_HEATMAP: Final = 1  # version of the module whose records lie in a log as they do in memory
HEATED: Final = ("POSIX", "STDIO", "MPI-IO", "DFS")
_NAMES: Final = {"heatmap:POSIX": 0, "heatmap:STDIO": 1, "heatmap:MPIIO": 2, "heatmap:DFS": 3}
_RECORD_BYTES: Final = 81920  # what the library assumes of a buffer that it is given (DEF_MOD_BUF_SIZE)
_MOST_HELD: Final = 10_000  # records that are held with all their bins
_MOST_BINS: Final = _RECORD_BYTES // 16
_HEAD: Final = ctypes.sizeof(HeatmapRecord) // 8
_RECORD: Final = struct.Struct("@Qqdq")  # identifier, rank, seconds of a bin, bins; two pointers follow

FIELDS: Final = np.dtype(
    [("log", "i8"), ("module", "i8"), ("rank", "i8"), ("bin", "i8"), ("bin_s", "f8"), ("read", "i8"), ("write", "i8")]
)


class HeatmapBuffer:
    """Heat maps of many logs."""

    def __init__(self) -> None:
        self.known: set[tuple[int, int]] = set()  # log and place in HEATED of the maps that were read
        self._records: list[tuple[int, int, int, float]] = []  # log, place in HEATED, rank, seconds of a bin
        self._bins: list[NDArray[np.int64]] = []  # bytes by bin of each record: first written, then read
        self._pieces: list[NDArray[np.void]] = []  # of records that were taken apart
        self._buffer = ctypes.create_string_buffer(_RECORD_BYTES + 64)

    def take(self, records: bytes, log: int, names: Mapping[int, str]) -> bool:
        """Heat maps as they lie in a log; False, and none, where they are not whole."""
        numbers = np.frombuffer(records[: len(records) // 8 * 8], np.int64)
        before, place = len(self._records), 0
        while place + _HEAD <= len(numbers):
            record, rank, bin_s, bins = _RECORD.unpack_from(records, place * 8)
            end = place + _HEAD + 2 * bins
            if not 0 < bins <= _MOST_BINS or end > len(numbers):
                break
            self._add(log, _NAMES.get(names.get(record, "")), rank, bin_s, numbers[place + _HEAD : end])
            place = end
        if place * 8 < len(records):
            del self._records[before:], self._bins[before:]
            return False
        self._settle(log, before)
        return True

    def read(self, handle: int, number: int, log: int, names: Mapping[int, str]) -> bool:
        """Take the heat maps of an open log from the library; False, and none, where they are damaged."""
        base, record = ctypes.addressof(self._buffer), HeatmapRecord.from_buffer(self._buffer)
        numbers = np.frombuffer(memoryview(self._buffer).cast("B"), np.int64)
        pointer, before, get_record = ctypes.c_void_p(base), len(self._records), library().darshan_log_get_record
        address = ctypes.addressof(pointer)
        while (result := get_record(handle, number, address)) == 1:
            module = _NAMES.get(names.get(record.id, ""))
            if module is None:
                continue
            bins, reads_at = record.nbins, ((record.read_bins or 0) - base) // 8
            if not 0 < bins <= _MOST_BINS or not _HEAD <= reads_at <= len(numbers) - bins:
                result = -1
                break
            moved = np.concatenate((numbers[_HEAD : _HEAD + bins], numbers[reads_at : reads_at + bins]))
            self._add(log, module, record.rank, record.bin_width_seconds, moved)
        if result < 0:
            del self._records[before:], self._bins[before:]
        self._settle(log, before)
        return bool(result == 0)

    def _add(self, log: int, module: int | None, rank: int, bin_s: float, bins: NDArray[np.int64]) -> None:
        if module is not None:
            self._records.append((log, module, rank, bin_s))
            self._bins.append(bins)

    def _settle(self, log: int, before: int) -> None:
        """After the records of one log."""
        self.known.update((log, module) for _, module, _, _ in self._records[before:])
        if len(self._records) > _MOST_HELD:
            self._take_apart()

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
        lengths = np.array([len(bins) for bins in self._bins])
        ends, moved = np.cumsum(lengths), np.concatenate(self._bins)
        busy = np.flatnonzero(moved > 0)
        record = np.searchsorted(ends, busy, "right")
        half, first = lengths[record] // 2, ends[record] - lengths[record]
        is_read = busy - first >= half
        places, of_place = np.unique(busy - half * is_read, return_inverse=True)  # where the bin's written bytes are
        bins = np.zeros(len(places), FIELDS)
        bins["read"][of_place[is_read]], bins["write"][of_place[~is_read]] = moved[busy[is_read]], moved[busy[~is_read]]
        record = np.searchsorted(ends, places, "right")
        bins["bin"] = places - (ends - lengths)[record]
        for name, values in zip(("log", "module", "rank", "bin_s"), zip(*self._records, strict=True), strict=True):
            bins[name] = np.array(values)[record]
        self._pieces.append(bins)
        self._records, self._bins = [], []
