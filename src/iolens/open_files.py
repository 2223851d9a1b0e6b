"""Captured files that are under way: each is opened once, and recognised, hashed and parsed from that opening.

What is held is bounded: small files as bytes, larger ones as a descriptor; a file for which there is no space is opened
again when it is read again. Standard library only, for the sampler on a server reads files as well.
"""

from __future__ import annotations

import io
import mmap
import os
import stat
import weakref
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from typing import Any, Final

LARGEST_HELD: Final = 4 << 20  # bytes of one file that is held as a whole
LARGEST_READ: Final = 1 << 18  # bytes of one file that are read sooner than they are mapped
MOST_HELD: Final = 64 << 20  # bytes of all such files
MOST_DESCRIPTORS: Final = 64
MOST_KEPT: Final = 64 << 20  # bytes of what was parsed of them ahead
_BLOCK: Final = 1 << 18


class OpenFile:
    """A file that was opened once; any number of streams read it, each from its own position."""

    def __init__(self, descriptor: int) -> None:
        self.descriptor, self.content = descriptor, b""
        self.is_held = False  # all of it is in `content`, and the descriptor is closed
        self._status = os.fstat(descriptor)
        self._hash: str | None = None
        self._close = weakref.finalize(self, os.close, descriptor)

    def __getstate__(self) -> dict[str, object]:
        """For another process, where there is only what is held."""
        state = {"content": self.content, "is_held": self.is_held, "_status": self._status, "_hash": self._hash}
        return {"descriptor": -1, **state}

    @property
    def size(self) -> int:
        """Bytes it had when it was opened."""
        return len(self.content) if self.is_held else self._status.st_size

    def hold(self) -> None:
        """Take its content into memory; where reading fails or it has grown meanwhile, it stays open instead."""
        try:
            pieces = [os.pread(self.descriptor, self.size + 1, 0)]
            while pieces[-1] and sum(map(len, pieces)) <= self.size:
                pieces.append(os.pread(self.descriptor, self.size + 1, sum(map(len, pieces))))
        except OSError:
            return  # whoever reads it will see how far it can be read
        content = b"".join(pieces)
        if content and len(content) == self.size:
            self.content, self.is_held = content, True
            self._close()

    def stream(self) -> io.BytesIO | io.BufferedReader:
        """Its bytes from the first on."""
        return io.BytesIO(self.content) if self.is_held else io.BufferedReader(_Bytes(self), _BLOCK)

    def mapped(self) -> AbstractContextManager[mmap.mmap | bytes]:
        """Its content as it lies in memory, a small one as bytes; ValueError where there is none."""
        if self.is_held and self.content:
            return nullcontext(self.content)
        if 0 < self.size <= LARGEST_READ and len(content := os.pread(self.descriptor, self.size, 0)) == self.size:
            return nullcontext(content)
        return mmap.mmap(self.descriptor, 0, access=mmap.ACCESS_READ)

    def sha256(self) -> str:
        """The hash of its content."""
        if self._hash is None:
            import hashlib

            with self.stream() as stream:
                self._hash = hashlib.file_digest(stream, "sha256").hexdigest()
        return self._hash

    def is_at(self, path: str | os.PathLike[str]) -> bool:
        """Whether it is the regular file of that name, and not what a symbolic link of that name leads to."""
        now = os.lstat(path)
        same = (now.st_dev, now.st_ino) == (self._status.st_dev, self._status.st_ino)
        return stat.S_ISREG(now.st_mode) and same


class _Bytes(io.RawIOBase):
    """The bytes of an open file, by position: streams of one descriptor do not disturb each other."""

    def __init__(self, file: OpenFile) -> None:
        self._file, self._position = file, 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def fileno(self) -> int:
        return self._file.descriptor

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        base = {os.SEEK_SET: 0, os.SEEK_CUR: self._position, os.SEEK_END: os.fstat(self._file.descriptor).st_size}
        self._position = base[whence] + offset
        return self._position

    def close(self) -> None:
        super().close()
        del self._file  # which closes the descriptor, unless the file is under way

    def readinto(self, buffer: Any) -> int:
        count = os.preadv(self._file.descriptor, [buffer], self._position)
        self._position += count
        return count


class OpenFiles:
    """The files of one ingest, by path."""

    def __init__(self) -> None:
        self._files: dict[str, OpenFile] = {}
        self._held_bytes = self._descriptors = self.kept_bytes = 0
        self._last: tuple[str, OpenFile] | None = None  # one for which there is no space, while it is the last

    def __contains__(self, path: str) -> bool:
        return path in self._files

    def get(self, path: str) -> OpenFile | None:
        """The file, if it is open."""
        if self._last is not None and self._last[0] == path:
            return self._last[1]
        return self._files.get(path)

    def add(self, path: str, file: OpenFile) -> None:
        """A file that was opened just now."""
        if not file.is_held and file.size <= min(LARGEST_HELD, MOST_HELD - self._held_bytes):
            file.hold()
        if file.is_held or self._descriptors < MOST_DESCRIPTORS:
            self._files[path] = file
            self._count(file, 1)
        else:
            self._last = (path, file)

    def drop(self, path: str) -> OpenFile | None:
        """Let go of a file that has been read."""
        file = self._files.pop(path, None)
        if file is not None:
            self._count(file, -1)
        return file

    def _count(self, file: OpenFile, sign: int) -> None:
        self._held_bytes += sign * file.size * file.is_held
        self._descriptors += sign * (not file.is_held)


_UNDER_WAY: ContextVar[OpenFiles | None] = ContextVar("files under way", default=None)


@contextmanager
def each_file_opened_once() -> Iterator[None]:
    """While this lasts, a file that is read again is not opened again."""
    token = _UNDER_WAY.set(OpenFiles())
    try:
        yield
    finally:
        _UNDER_WAY.reset(token)


def open_file(path: str | os.PathLike[str], opener: Callable[[], int]) -> OpenFile:
    """The file of that name as it was opened before, else by `opener`, which returns a descriptor or raises OSError."""
    files = _UNDER_WAY.get()
    file = None if files is None else files.get(os.fspath(path))
    if file is None:
        file = OpenFile(opener())
        if files is not None:
            files.add(os.fspath(path), file)
    return file


def is_under_way(path: str | os.PathLike[str]) -> bool:
    """Whether the file is open, and stays so until it has been read."""
    files = _UNDER_WAY.get()
    return files is not None and os.fspath(path) in files


def may_keep(size: int) -> bool:
    """Whether so many more bytes (fewer, where negative) of what was parsed may be kept until it is read."""
    files = _UNDER_WAY.get()
    if files is None or files.kept_bytes + size > MOST_KEPT:
        return False
    files.kept_bytes += size
    return True


def release(path: str) -> OpenFile | None:
    """Let go of a file that has been read, or is read elsewhere."""
    files = _UNDER_WAY.get()
    return None if files is None else files.drop(path)


def receive(path: str, file: OpenFile | None) -> None:
    """Take a file over from the process that opened it."""
    files = _UNDER_WAY.get()
    if files is not None and file is not None and file.is_held:
        files.add(path, file)
