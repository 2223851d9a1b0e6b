"""Inodes as rows of numbers: opened below the root, asked for many at once, so many lookups in flight."""

from __future__ import annotations

import ctypes
import errno
import os
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import chain, pairwise, repeat
from operator import attrgetter
from typing import Any, Final, TypeVar

import numpy as np
from numpy.typing import NDArray

from iolens.schema import LARGEST
from iolens.sources.contents.inode_counts import InodeCounts

# Scanned inodes as rows of one NumPy record ---------------------------------------------------------------------------
# Made once from what `stat` says, and the same until they are sums.
#
# What is counted, what waits among the hard-linked, and what journals and saved parts hold of those are these rows.

BLOCK_BYTES: Final = 512  # of st_blocks, whatever the file system's own block is
# The file type in `st_mode >> 12`.
TYPES: Final[Mapping[int, str]] = {
    0o10: "file", 0o04: "dir", 0o12: "symlink", 0o06: "blk", 0o02: "chr", 0o01: "fifo", 0o14: "sock",
}  # fmt: skip
DIRECTORY: Final = 0o04
IMPOSSIBLE: Final = -1  # an allocation that no column can hold
INODE: Final = np.dtype(
    [
        ("device", np.int64),
        ("inode", np.uint64),
        ("links", np.uint32),  # names it has
        ("seen", np.uint32),  # names of it that were met
        ("key", np.int64),  # project, user and type in a number: `group_key`
        ("code", np.int64),  # the same group in `InodeCounts`, once it is counted
        ("size", np.int64),  # bytes
        ("allocated", np.int64),  # bytes
        ("atime", np.int64),  # whole seconds since 1970
        ("mtime", np.int64),
    ]
)
SAVED: Final = ("device", "inode", "links", "seen", "code", "size", "allocated", "atime", "mtime")
_AS_STAT_SAYS: Final = ("device", "inode", "links", "size", "atime", "mtime")
_BYTES: Final = np.dtype((np.void, INODE.itemsize))
_UID_BITS: Final = 32
_TYPE_BITS: Final = 4

Inodes = NDArray[Any]  # of INODE
Numbers = NDArray[np.int64]


def group_key(project: Any, uid: Any, file_type: Any) -> Any:
    """One number for a group: numbers or arrays alike."""
    return (project << _UID_BITS | uid) << _TYPE_BITS | file_type


def of_key(key: int) -> tuple[int, int, int]:
    """Project, user and type of a group."""
    return key >> _TYPE_BITS + _UID_BITS, key >> _TYPE_BITS & (1 << _UID_BITS) - 1, type_of(key)


def type_of(key: Any) -> Any:
    """The file type of a group, or of many."""
    return key & (1 << _TYPE_BITS) - 1


def rows_of(columns: Mapping[str, Any]) -> Inodes:
    """Rows of these columns; where they are not given, `seen` is 1, `key` and `code` are 0."""
    rows = np.empty(np.size(columns["inode"]), INODE)
    for name, column in ({"seen": 1, "key": 0, "code": 0} | dict(columns)).items():
        rows[name] = column
    return rows


def scanned(stats: Mapping[str, NDArray[Any]], projects: Numbers) -> Inodes:
    """Rows of what `stat` says, column by column, each with the code of its project."""
    blocks = stats["blocks"]
    allocated = (blocks * BLOCK_BYTES).astype(np.int64)
    allocated[(blocks < 0) | (blocks > LARGEST // BLOCK_BYTES)] = IMPOSSIBLE
    keys = group_key(projects, stats["uid"], stats["mode"] >> 12)
    return rows_of({name: stats[name] for name in _AS_STAT_SAYS} | {"allocated": allocated, "key": keys})


def copy_rows(rows: Inodes, place: Inodes) -> None:
    """As plain bytes, for NumPy copies records field by field."""
    place.view(_BYTES)[:] = rows.view(_BYTES)


def joined(parts: Sequence[Inodes]) -> Inodes:
    """All rows in one array."""
    return np.concatenate([part.view(_BYTES) for part in parts]).view(INODE)


def count(rows: Inodes, counts: InodeCounts) -> None:
    """Count each inode once, by its size and its ages."""
    counts.add(rows["code"], rows["size"], rows["allocated"], atimes_s=rows["atime"], mtimes_s=rows["mtime"])


# How many lookups a process has in flight -----------------------------------------------------------------------------
# One where the file system answers at once, several where it takes its time.
#
# A lookup that asks a metadata server takes 0.5 to 1 ms, nearly all of it waiting. Threads wait side by side. Lookups
# are timed in turns: if one alone takes longer than `SLOW_S`, the number doubles as long as each takes hardly longer
# than one alone, and halves where they only queue. A few are made alone now and then, so that the number follows a file
# system that answers faster or slower than before.

SLOW_S: Final = 100e-6  # a lookup in a local file system takes some microseconds
FREE_RATIO: Final = 1.5  # lookups that take up to so many times as long as one alone: more may be made
CROWDED_RATIO: Final = 3.0  # from here on they wait for each other
IN_PROCESS: Final = 32  # more threads than this wait for the interpreter
IN_ALL: Final = 128  # of all processes of a scan together
TURN_S: Final = 0.010  # about how long the lookups of a turn take
FIRST, FEWEST = 16, 4  # lookups of the first turn, and of each thread in any other
REVIEW_TURNS: Final = 64  # how often lookups are made alone while several are in flight
_ALONE, _TOGETHER = 5, 3  # turns of which the median counts

Item = TypeVar("Item")
Answer = TypeVar("Answer")


def most_lookups(workers: int) -> int:
    """How many each of so many processes may have in flight."""
    return max(1, min(IN_PROCESS, IN_ALL // workers))


class Lookups:
    """The lookups of one process."""

    def __init__(self, most: int, now: Callable[[], float] = time.perf_counter) -> None:
        self.most, self.in_flight, self._now = most, 1, now
        self._alone: deque[float] = deque(maxlen=_ALONE)  # seconds of a lookup, by turn
        self._together: deque[float] = deque(maxlen=_TOGETHER)  # the same with as many in flight as now
        self._latest_s = TURN_S / FIRST
        self._turns = 0
        self._pool: ThreadPoolExecutor | None = None

    def close(self) -> None:
        """End the threads."""
        if self._pool is not None:
            self._pool.shutdown()

    def apart(self, function: Callable[[Item], Answer], items: Sequence[Item]) -> list[Answer]:
        """Call a function for each item, as many at once as may be in flight."""
        if self.in_flight == 1 or len(items) == 1:
            return [function(item) for item in items]
        return list(self._threads().map(function, items))

    def timed(self, function: Callable[..., Sequence[Answer]], *columns: Sequence[Any]) -> list[Answer]:
        """The answers of a function that looks up one entry after another, for columns of what it needs of each."""
        answers: list[Answer] = []
        count, begin = len(columns[0]), 0
        while begin < count:
            self._turns += 1
            threads = 1 if self._turns % REVIEW_TURNS == 0 else self.in_flight
            end = min(count, begin + threads * max(FEWEST, int(TURN_S / self._latest_s)))
            threads = min(threads, end - begin)
            began = self._now()
            if threads == 1:
                answers += function(*[column[begin:end] for column in columns])
            else:
                answers += chain.from_iterable(self._threads().map(function, *_shares(columns, begin, end, threads)))
            self._note(threads, (self._now() - began) * threads / (end - begin))
            begin = end
        return answers

    def _note(self, threads: int, lookup_s: float) -> None:
        """How long each lookup of a turn took: what follows for the next."""
        self._latest_s = max(lookup_s, 1e-9)
        if self.in_flight == 1 and lookup_s <= SLOW_S:
            self._alone.clear()  # slow ones between such were turns in which this process waited for a processor
            return
        (self._alone if threads == 1 else self._together).append(lookup_s)
        if len(self._alone) < _ALONE:
            return
        alone_s = _median(self._alone)
        if alone_s <= SLOW_S:
            self._alone.clear()
            self._set(1)
        elif self.in_flight == 1:
            self._set(2)
        elif len(self._together) == _TOGETHER:
            ratio = _median(self._together) / alone_s
            if ratio <= FREE_RATIO:
                self._set(2 * self.in_flight)
            elif ratio >= CROWDED_RATIO:
                self._set(self.in_flight // 2)

    def _set(self, in_flight: int) -> None:
        in_flight = min(in_flight, self.most)
        if in_flight != self.in_flight:
            self.in_flight = in_flight
            self._together.clear()

    def _threads(self) -> ThreadPoolExecutor:
        if self._pool is None:
            self._pool = ThreadPoolExecutor(self.most, "lookup")
        return self._pool


def _shares(columns: Sequence[Sequence[Any]], begin: int, end: int, count: int) -> Iterator[list[Sequence[Any]]]:
    """A range of each column in so many pieces of nearly the same length."""
    ends = [begin + (end - begin) * number // count for number in range(count + 1)]
    for column in columns:
        yield [column[first:last] for first, last in pairwise(ends)]


def _median(values: deque[float]) -> float:
    return sorted(values)[len(values) // 2]


# What `stat` says of many names at once, as rows of numbers -----------------------------------------------------------
# No Python object per name.
#
# `statx` of the C library fills records in a row, which NumPy reads as they lie. That takes three quarters of the time
# of `DirEntry.stat`. Where it cannot be called (an old kernel or C library, a container that forbids it), `usable` says
# so.

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


# Directories of a scan are opened below its root ----------------------------------------------------------------------
# No links followed, paths of any length, access times left alone.

_PATH_BYTES: Final = 4000  # safely below PATH_MAX
_OPEN: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class OpenedTree:
    """The root of a scan, held open."""

    def __init__(self, root: str) -> None:
        self.descriptor = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        self._no_atime = os.O_NOATIME

    def close(self) -> None:
        """Let go of the root."""
        os.close(self.descriptor)

    def open(self, directory: str) -> int:
        """A descriptor of a directory, whose path is relative to the root."""
        try:
            return self._open_from(self.descriptor, directory or ".")
        except OSError as error:
            if error.errno != errno.ENAMETOOLONG:
                raise
        return self._open_far(directory)

    def stat(self, directory: str) -> os.stat_result:
        """Of a directory that cannot be opened."""
        above, _, name = directory.rpartition("/")
        if not name:
            return os.fstat(self.descriptor)
        descriptor = self.open(above)
        try:
            return os.stat(name, dir_fd=descriptor, follow_symlinks=False)
        finally:
            os.close(descriptor)

    def _open_far(self, directory: str) -> int:
        """A path that is longer than the kernel takes, in pieces."""
        descriptor = os.dup(self.descriptor)
        for piece in _pieces(directory):
            try:
                inner = self._open_from(descriptor, piece)
            finally:
                os.close(descriptor)
            descriptor = inner
        return descriptor

    def _open_from(self, descriptor: int, path: str) -> int:
        """Open without changing the directory's access time, where that is ours to ask."""
        no_atime = self._no_atime  # another thread may learn meanwhile that it is not
        try:
            return os.open(path, _OPEN | no_atime, dir_fd=descriptor)
        except PermissionError as error:
            if error.errno != errno.EPERM or not no_atime:
                raise
            self._no_atime = 0
            return os.open(path, _OPEN, dir_fd=descriptor)


def _pieces(directory: str) -> Iterator[str]:
    """A long path in pieces the kernel takes one by one."""
    piece: list[str] = []
    length = 0
    for name in directory.split("/"):
        size = len(os.fsencode(name)) + 1
        if length + size > _PATH_BYTES:
            yield "/".join(piece)
            piece, length = [], 0
        piece.append(name)
        length += size
    yield "/".join(piece)
