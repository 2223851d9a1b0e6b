"""Scanned inodes as rows of one NumPy record: made once from what `stat` says, and the same until they are sums.

What is counted, what waits among the hard-linked, and what journals and saved parts hold of those are these rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from iolens.schema import LARGEST
from iolens.sources.contents.inode_counts import InodeCounts

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
