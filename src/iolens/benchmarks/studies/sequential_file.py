"""One process writes and reads one file from beginning to end, block by block: SWR of paper N (SPEC N4)."""

from __future__ import annotations

import mmap
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

CHECK_EVERY_S: Final = 0.2  # how often the time that is left is looked at


@dataclass(frozen=True, slots=True)
class TimedPass:
    """One pass over the file: bytes, calls of read or write, seconds; those of opening and closing are in it."""

    bytes: int
    calls: int
    seconds: float


def write_file(path: Path, size: int, block: int, *, direct: bool, fsync: bool, check: Callable[[], None]) -> TimedPass:
    """Make the file and write it in full, in blocks; the seconds are until it is closed, `fsync`: after an fsync."""
    with _block_of(block) as buffer, memoryview(buffer) as whole:
        began = time.perf_counter()
        descriptor = os.open(path, os.O_CREAT | os.O_NOFOLLOW | os.O_WRONLY | _direct(direct), 0o600)
        try:
            calls = _write_all(descriptor, whole, size, check)
            if fsync:
                os.fsync(descriptor)
        finally:
            os.close(descriptor)
        return TimedPass(size, calls, time.perf_counter() - began)


def read_file(path: Path, size: int, block: int, *, direct: bool, check: Callable[[], None]) -> TimedPass:
    """Read the whole file in blocks."""
    with _block_of(block) as buffer:
        began = time.perf_counter()
        descriptor = os.open(path, os.O_RDONLY | _direct(direct))
        try:
            calls = moved = 0
            look = began + CHECK_EVERY_S
            while moved < size:
                count = os.readv(descriptor, [buffer])
                if not count:
                    raise OSError(f"{path}: ends after {moved} of {size} bytes")
                moved += count
                calls += 1
                if time.perf_counter() > look:
                    check()
                    look = time.perf_counter() + CHECK_EVERY_S
        finally:
            os.close(descriptor)
        return TimedPass(moved, calls, time.perf_counter() - began)


def drop_from_cache(path: Path) -> None:
    """Write the file's dirty pages and ask the kernel to forget the clean ones; of this file only."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
    finally:
        os.close(descriptor)


def _write_all(descriptor: int, block: memoryview, size: int, check: Callable[[], None]) -> int:
    calls = moved = 0
    look = time.perf_counter() + CHECK_EVERY_S
    while moved < size:
        moved += os.write(descriptor, block[: min(len(block), size - moved)])
        calls += 1
        if time.perf_counter() > look:
            check()
            look = time.perf_counter() + CHECK_EVERY_S
    return calls


def _direct(wanted: bool) -> int:
    return os.O_DIRECT if wanted else 0


def _block_of(size: int) -> mmap.mmap:
    """A block that begins at a page, as O_DIRECT wants it, of bytes that do not compress to nothing."""
    buffer = mmap.mmap(-1, size)
    piece = os.urandom(min(size, 1 << 20))
    for place in range(0, size, len(piece)):
        buffer[place : place + len(piece)] = piece[: size - place]
    return buffer
