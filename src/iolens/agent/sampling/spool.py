"""The spool directory: append-only segments, each tick on disk before the next, thinned when full.

`HOST~RUN~SEQUENCE.open` is being written, `.seg` is finished, `.taken` is being shipped and is never changed again:
the store may have a part of it. `late/` and `bad/` hold what the store would not take.
"""

from __future__ import annotations

import errno
import fcntl
import os
import secrets
import shutil
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from iolens.agent.sampling.private_files import make_private_directory, open_private
from iolens.agent.sampling.thinning import thin_segment
from iolens.errors import InputError, IolensError
from iolens.records import Item
from iolens.sources.spool import (
    CLOSED,
    OPEN,
    TAKEN,
    Segment,
    SegmentHeader,
    Tick,
    check,
    encode_header,
    encode_tick,
    fit_for_file,
    in_lines,
)

SEGMENT_BYTES: Final = 4 << 20
RESERVE: Final = "reserve"  # space to thin in when the disk is full
LATE, BAD = "late", "bad"
SAMPLER_LOCK, SHIP_LOCK, CHANGE_LOCK = "sampler.lock", "ship.lock", "change.lock"
_NO_SPACE: Final = (errno.ENOSPC, errno.EDQUOT)


def new_run() -> str:
    """A name no other start of any agent has; sorts by time, so that segments are shipped as they were written."""
    seconds, nanoseconds = divmod(time.time_ns(), 1_000_000_000)
    timestamp = time.strftime("%Y%m%dT%H%M%S", time.gmtime(seconds))
    return f"{timestamp}.{nanoseconds // 1000:06d}-{secrets.token_hex(4)}"


def host_name() -> str:
    """The machine's name, fit for a file name."""
    return fit_for_file(os.uname().nodename)


@contextmanager
def locked(directory: Path, name: str, *, wait: bool = True) -> Iterator[bool]:
    """Hold a lock of the spool; False when another process has it and `wait` is not set."""
    descriptor = open_private(directory / name, os.O_RDWR | os.O_CREAT)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        except BlockingIOError:
            yield False
        else:
            yield True
    finally:
        os.close(descriptor)


def sync_directory(directory: Path) -> None:
    """Make new and changed names in a directory outlive a crash."""
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def waiting(directory: Path) -> list[Path]:
    """Finished segments that are not in the store yet, oldest first."""
    return sorted((path for path in directory.iterdir() if path.suffix in (CLOSED, TAKEN)), key=lambda item: item.stem)


@dataclass(slots=True)
class SegmentWriter:
    """One open segment."""

    path: Path
    descriptor: int
    began: float
    size: int = 0
    ticks: int = 0

    @classmethod
    def begin(cls, directory: Path, header: SegmentHeader) -> SegmentWriter:
        """A new segment with its header on disk."""
        path = directory / f"{header.stem}{OPEN}"
        descriptor = open_private(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND)
        writer = cls(path, descriptor, time.monotonic())
        try:
            writer.write(encode_header(header))
            sync_directory(directory)
        except OSError:
            os.close(writer.descriptor)
            path.unlink(missing_ok=True)
            raise
        return writer

    def write(self, line: bytes) -> None:
        """Append one line and have it on disk; a line that does not fit leaves no trace."""
        try:
            rest = memoryview(line)
            while rest:
                rest = rest[os.write(self.descriptor, rest) :]
            os.fsync(self.descriptor)
        except OSError:
            with suppress(OSError):
                os.ftruncate(self.descriptor, self.size)
            raise
        self.size += len(line)

    def close(self) -> Path | None:
        """Finish the segment; its new name, or None when it held nothing."""
        os.close(self.descriptor)
        return finish(self.path, empty=self.ticks == 0)


def finish(path: Path, *, empty: bool) -> Path | None:
    """Give an open segment its final name; one without a tick goes."""
    if empty:
        path.unlink(missing_ok=True)
        return None
    closed = path.with_suffix(CLOSED)
    path.rename(closed)
    sync_directory(path.parent)
    return closed


@dataclass(slots=True)
class Spool:
    """The directory as its one writer sees it."""

    directory: Path
    host: str
    run: str
    limit_bytes: int
    segment_bytes: int = SEGMENT_BYTES
    sequence: int = 0
    thinned_samples: int = 0
    lost_ticks: int = 0
    trouble: str = ""  # the last reason a tick was lost
    writer: SegmentWriter | None = None
    _exhausted: set[str] = field(default_factory=set)  # segments that cannot be thinned further
    _levels: dict[str, int] = field(default_factory=dict)

    @classmethod
    @contextmanager
    def open(cls, directory: Path, limit_bytes: int, host: str | None = None) -> Iterator[Spool]:
        """The spool for its only writer; what an earlier one left open is finished first."""
        make_private_directory(directory)
        with locked(directory, SAMPLER_LOCK, wait=False) as mine:
            if not mine:
                raise IolensError(f"{directory}: another `iolens collect` writes here; give each its own --spool")
            spool = cls(directory, host or host_name(), new_run(), limit_bytes)
            spool.fit()
            spool.recover()
            try:
                yield spool
            finally:
                spool.close_segment()

    def fit(self) -> None:
        """Stay within the disk as it is now, and cut segments small enough that thinning one makes a difference."""
        space = self.size() + shutil.disk_usage(self.directory).free * 9 // 10
        self.limit_bytes = min(self.limit_bytes, space)
        self.segment_bytes = max(min(SEGMENT_BYTES, self.limit_bytes // 16), 4096)

    def recover(self) -> None:
        """Finish what a killed writer left."""
        for beside in self.directory.glob("*.thin"):
            beside.unlink()
        for path in self.directory.glob(f"*{OPEN}"):
            with suppress(OSError):  # a symbolic link is left where it is
                finish(path, empty=check(path).good == 0)
        self._keep_reserve()

    def append(self, time_us: int, items: Iterable[Item]) -> bool:
        """Spool one tick; False when there was no space for it, which costs resolution, not bytes."""
        line = b"".join(encode_tick(Tick(time_us, part)) for part in in_lines(items))
        if not line:
            return True
        if self.size() + len(line) > self.limit_bytes and not self._thin_somehow():
            return self._lose(f"{self.directory} has reached its limit of {self.limit_bytes} bytes")
        for last_try in (False, True):
            try:
                self._write(line)
            except OSError as error:
                if last_try or error.errno not in _NO_SPACE or not self._thin_in_reserve():
                    return self._lose(f"{self.directory}: {error.strerror}")
            else:
                return True
        return False

    def close_segment(self) -> Path | None:
        """Finish the open segment so that it can be shipped."""
        writer, self.writer = self.writer, None
        return writer.close() if writer is not None else None

    def size(self) -> int:
        """Bytes of everything spooled, the reserve included."""
        total = 0
        for folder in (self.directory, self.directory / LATE, self.directory / BAD):
            with suppress(FileNotFoundError), os.scandir(folder) as entries:
                for entry in entries:
                    with suppress(FileNotFoundError):
                        is_file = entry.is_file(follow_symlinks=False)
                        total += entry.stat(follow_symlinks=False).st_size if is_file else 0
        return total

    def thin(self) -> bool:
        """Thin the oldest of the least thinned segments that nobody ships; False when none can be thinned."""
        with locked(self.directory, CHANGE_LOCK):
            for path in self._thinnable():
                try:
                    done = thin_segment(path)
                except (InputError, FileNotFoundError):
                    done = None
                self._levels.pop(path.name, None)
                if done is not None and done.samples:
                    self.thinned_samples += done.samples
                    return True
                self._exhausted.add(path.name)
        return False

    def _thinnable(self) -> list[Path]:
        paths = [*self.directory.glob(f"*{CLOSED}"), *(self.directory / LATE).glob(f"*{CLOSED}")]
        names = {path.name for path in paths}
        self._exhausted &= names
        left = [path for path in paths if path.name not in self._exhausted]
        return sorted(left, key=lambda path: (self._level(path), path.name))

    def _level(self, path: Path) -> int:
        if path.name not in self._levels:
            try:
                self._levels[path.name] = Segment.open(path).header.thinned
            except InputError:
                return 0
        return self._levels[path.name]

    def _thin_somehow(self) -> bool:
        try:
            return self.thin()
        except OSError:  # not even space for the thinned copy
            return self._thin_in_reserve()

    def _thin_in_reserve(self) -> bool:
        """Thin with the space the reserve held, then hold it again."""
        (self.directory / RESERVE).unlink(missing_ok=True)
        try:
            return self.thin()
        except OSError:
            return False
        finally:
            self._keep_reserve()

    def _keep_reserve(self) -> None:
        path = self.directory / RESERVE
        try:
            if not os.path.lexists(path) or path.lstat().st_size != self.segment_bytes:
                path.unlink(missing_ok=True)
                descriptor = open_private(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
                try:
                    os.posix_fallocate(descriptor, 0, self.segment_bytes)
                finally:
                    os.close(descriptor)
        except OSError:
            path.unlink(missing_ok=True)

    def _write(self, line: bytes) -> None:
        if self.writer is not None and self.writer.ticks and self.writer.size + len(line) > self.segment_bytes:
            self.close_segment()
        if self.writer is None:
            self.sequence += 1
            self.writer = SegmentWriter.begin(self.directory, SegmentHeader(self.host, self.run, self.sequence))
        self.writer.write(line)
        self.writer.ticks += 1

    def _lose(self, reason: str) -> bool:
        self.lost_ticks += 1
        self.trouble = reason
        return False
