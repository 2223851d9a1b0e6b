"""What `stat` says of many names at once, as rows of numbers: no Python object per name.

`statx` of the C library fills records in a row, which NumPy reads as they lie. That takes three quarters of the time of
`DirEntry.stat`. Where it cannot be called (an old kernel or C library, a container that forbids it), `usable` says so.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Sequence
from itertools import chain, repeat
from operator import attrgetter
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from iolens.scan.inodes import Inodes, Numbers, scanned
from iolens.scan.lookups import Lookups

ROWS: Final = 2048  # half a megabyte of records: they stay in a processor's cache
# Where a stat result has what is counted, of its ten fields.
_PLACES: Final = {"mode": 0, "inode": 1, "device": 2, "links": 3, "uid": 4, "size": 6, "atime": 7, "mtime": 8}
_FIELDS: Final = 10
_blocks = attrgetter("st_blocks")
_RECORD_BYTES: Final = 256  # struct statx, on every architecture
_RECORD: Final = np.dtype(
    {
        "names": ["links", "uid", "mode", "inode", "size", "blocks", "atime", "mtime", "major", "minor"],
        "formats": ["=u4", "=u4", "=u2", "=u8", "=u8", "=u8", "=i8", "=i8", "=u4", "=u4"],
        "offsets": [16, 20, 28, 32, 40, 48, 64, 112, 136, 140],
        "itemsize": _RECORD_BYTES,
    }
)
_TAKEN: Final = ("mode", "inode", "links", "uid", "size", "blocks", "atime", "mtime")
_FLAGS: Final = 0x100 | 0x800  # AT_SYMLINK_NOFOLLOW, AT_NO_AUTOMOUNT: as lstat does
_BASIC: Final = 0x7FF  # STATX_BASIC_STATS: what stat tells


def usable(descriptor: int) -> bool:
    """Whether it can be called here, and says of an open directory what `fstat` says."""
    try:
        batch = BatchStat(Lookups(1))
        if batch.take([descriptor], [b"."], [0], [1]):
            return False
    except (AttributeError, OSError):
        return False
    of_fstat = EntryStats()
    of_fstat.add([os.fstat(descriptor)], 0)
    expected, answer = of_fstat.rows(), batch.rows()
    return all((answer[name] == expected[name]).all() for name in ("key", "inode", "device", "size"))


class BatchStat:
    """Records of names looked at since the last `rows`."""

    def __init__(self, lookups: Lookups) -> None:
        self._lookups = lookups
        # Letting other threads go on meanwhile takes time, which is lost where there are none.
        self._statx: Any = ctypes.PyDLL(None).statx
        self._statx_of_many: Any = ctypes.CDLL(None).statx
        self._records = np.zeros(ROWS, _RECORD)
        begin = self._records.ctypes.data
        self._places = [ctypes.c_void_p(begin + number * _RECORD_BYTES) for number in range(ROWS)]
        self._projects: list[int] = []
        self._runs: list[int] = []
        self.held = 0

    def take(
        self, descriptors: Sequence[int], names: Sequence[bytes], projects: list[int], runs: list[int]
    ) -> list[int]:
        """Look at names below open directories, not more than `ROWS` in all; which of them failed.

        Nothing of those is kept. Each project is that of a run of names.
        """
        places = self._places[self.held : self.held + len(names)]
        codes = self._lookups.timed(self._look, descriptors, names, places)
        failed: list[int] = []
        if any(codes):
            failed = [place for place, code in enumerate(codes) if code]
            projects = self._close_gaps(np.array(codes) == 0, _repeated(projects, runs))
            runs = [1] * len(projects)
        self.held += len(names) - len(failed)
        self._projects += projects
        self._runs += runs
        return failed

    def _look(self, descriptors: Sequence[int], names: Sequence[bytes], places: Sequence[ctypes.c_void_p]) -> list[int]:
        statx = self._statx if self._lookups.in_flight == 1 else self._statx_of_many
        return list(map(statx, descriptors, names, repeat(_FLAGS), repeat(_BASIC), places))

    def _close_gaps(self, succeeded: NDArray[np.bool_], projects: Numbers) -> list[int]:
        """Move the last records together where lookups failed between them; the projects of those that are left."""
        last = self._records[self.held : self.held + len(succeeded)].view((np.void, _RECORD_BYTES))
        last[: succeeded.sum()] = last[succeeded]
        return list(projects[succeeded])

    def rows(self) -> Inodes:
        """All of them; and forget them."""
        records = self._records[: self.held]
        stats = {name: records[name] for name in _TAKEN}
        stats["device"] = _device(records["major"].astype(np.int64), records["minor"].astype(np.int64))
        rows = scanned(stats, _repeated(self._projects, self._runs))
        self.held, self._projects, self._runs = 0, [], []
        return rows


def _repeated(projects: list[int], runs: list[int]) -> Numbers:
    return np.repeat(np.array(projects, np.int64), np.array(runs, np.int64))


def _device(major: Numbers, minor: Numbers) -> Numbers:
    """`os.makedev`, of many."""
    return (major & 0xFFFFF000) << 32 | (major & 0xFFF) << 8 | (minor & 0xFFFFFF00) << 12 | minor & 0xFF


class EntryStats:
    """What `os.stat` said of neighbours in the tree, with the project of each, in the same rows."""

    def __init__(self) -> None:
        self.stats: list[os.stat_result] = []
        self._projects: list[int] = []
        self._runs: list[int] = []

    def add(self, stats: list[os.stat_result], project: int) -> None:
        """Some of one project."""
        if stats:
            self.stats += stats
            self._projects.append(project)
            self._runs.append(len(stats))

    def rows(self) -> Inodes:
        """All of them; and forget them."""
        fields = _fields(self.stats)
        stats = {name: fields[place] for name, place in _PLACES.items()}
        stats["blocks"] = np.fromiter(map(_blocks, self.stats), np.int64, len(self.stats))
        rows = scanned(stats, _repeated(self._projects, self._runs))
        self.stats, self._projects, self._runs = [], [], []
        return rows


def _fields(stats: list[os.stat_result]) -> Numbers:
    """The ten fields of stat results, a column of each."""
    count = len(stats)
    try:
        flat = np.fromiter(chain.from_iterable(stats), np.int64, _FIELDS * count)
    except OverflowError:  # an inode number of 64 bits: it keeps its bits, and is read without a sign
        signed = ((number + 2**63) % 2**64 - 2**63 for about in stats for number in about)
        flat = np.fromiter(signed, np.int64, _FIELDS * count)
    return flat.reshape(count, _FIELDS).T
