"""Directories of a scan are opened below its root: no links followed, paths of any length, access times left alone."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from typing import Final

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
