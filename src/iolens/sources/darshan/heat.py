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
_HEAD: Final = ctypes.sizeof(HeatmapRecord) // 8

FIELDS: Final = np.dtype(
    [("log", "i8"), ("module", "i8"), ("rank", "i8"), ("bin", "i8"), ("bin_s", "f8"), ("read", "i8"), ("write", "i8")]
)


class HeatmapBuffer:
    """Bins with bytes of many logs."""

    def __init__(self) -> None:
        self._pieces: list[NDArray[np.void]] = []
        self.known: set[tuple[int, int]] = set()  # log and place in HEATED of the maps that were read
        self._buffer = ctypes.create_string_buffer(_RECORD_BYTES + 64)

    def read(self, handle: int, number: int, log: int, names: Mapping[int, str]) -> bool:
        """Take the heat maps of an open log; False where they break off."""
        base = ctypes.addressof(self._buffer)
        pointer = ctypes.c_void_p(base)
        record = HeatmapRecord.from_buffer(self._buffer)
        numbers = np.frombuffer(memoryview(self._buffer).cast("B"), np.int64)
        rows: list[tuple[int, int, float, NDArray[np.int64], NDArray[np.int64]]] = []
        while (result := library().darshan_log_get_record(handle, number, ctypes.addressof(pointer))) == 1:
            module = _NAMES.get(names.get(record.id, ""))
            if module is None:
                continue
            self.known.add((log, module))
            bins, reads_at = record.nbins, ((record.read_bins or 0) - base) // 8
            if not 0 < bins <= _RECORD_BYTES // 16 or not _HEAD <= reads_at <= len(numbers) - bins:
                return False
            both = numbers[_HEAD : _HEAD + bins], numbers[reads_at : reads_at + bins]
            if both[0].any() or both[1].any():
                rows.append((module, record.rank, record.bin_width_seconds, both[0].copy(), both[1].copy()))
        if rows:
            self._pieces.append(_busy_bins(log, rows))
        return bool(result == 0)

    def forget(self, log: int) -> None:
        """Leave out the last log."""
        self._pieces = [piece for piece in self._pieces if piece["log"][0] != log]
        self.known = {pair for pair in self.known if pair[0] != log}

    @property
    def bins(self) -> NDArray[np.void]:
        """Every bin with bytes, in the order of logs."""
        return np.concatenate((np.zeros(0, FIELDS), *self._pieces))


def _busy_bins(log: int, rows: list[tuple[int, int, float, NDArray[np.int64], NDArray[np.int64]]]) -> NDArray[np.void]:
    lengths = [len(row[3]) for row in rows]
    writes, reads = np.concatenate([row[3] for row in rows]), np.concatenate([row[4] for row in rows])
    busy = np.flatnonzero((writes > 0) | (reads > 0))
    source = np.repeat(np.arange(len(rows)), lengths)[busy]
    firsts = np.repeat(np.cumsum([0, *lengths[:-1]]), lengths)
    bins = np.zeros(len(busy), FIELDS)
    bins["log"], bins["bin"] = log, (np.arange(len(writes)) - firsts)[busy]
    for name, place in (("module", 0), ("rank", 1), ("bin_s", 2)):
        bins[name] = np.array([row[place] for row in rows])[source]
    bins["read"], bins["write"] = np.maximum(reads[busy], 0), np.maximum(writes[busy], 0)
    return bins
