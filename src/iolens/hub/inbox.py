"""Segments on disk from their arrival until the store has them: `STATE/hub/segments/HOST/NAME`.

`.part` is arriving, `.seg` is whole: its digest was right, and it is on disk with its name. Each host has a folder of
its own, so that what one agent waits for is a short listing; `late/` and `bad/` in it hold what the store did not take.
"""

from __future__ import annotations

import errno
import hashlib
import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from iolens.agent.sampling.private_files import make_private_directory, open_private
from iolens.agent.sampling.segment_loading import REASON
from iolens.agent.sampling.spool import BAD, LATE, sync_directory
from iolens.errors import InputError, IolensError
from iolens.hub.segment_names import SegmentName
from iolens.sources.spool import CLOSED, Segment

HUB: Final = "hub"  # below the state directory
SEGMENTS: Final = "segments"
PART: Final = ".part"
HASHED_AT_ONCE: Final = 1 << 20
NO_SPACE: Final = (errno.ENOSPC, errno.EDQUOT)

Refusal = Literal["wrong", "too-large", "forbidden", "conflict", "busy", "quota", "full"]


class UploadRefusedError(IolensError):
    """The hub does not take a segment, for good (wrong, too-large, forbidden) or now; `retry_after_s`: when to ask."""

    def __init__(self, kind: Refusal, reason: str, retry_after_s: float | None = None) -> None:
        self.kind, self.reason, self.retry_after_s = kind, reason, retry_after_s
        super().__init__(reason)


@dataclass(frozen=True, slots=True)
class Received:
    """How much of a segment has arrived."""

    size: int
    sha256: bytes | None = None  # of a whole one

    @property
    def is_complete(self) -> bool:
        """Whether all of it is here."""
        return self.sha256 is not None


@dataclass(frozen=True, slots=True)
class Occupancy:
    """What the folder of one agent holds: whole segments, and how many were put aside."""

    segments: int = 0
    late: int = 0
    bad: int = 0
    bytes: int = 0  # of those that wait or arrive
    waiting_bytes: int = 0  # of whole segments alone
    oldest: float | None = None  # when the segment that waits longest arrived, seconds since 1970
    oldest_aside: float | None = None  # and the first of those put aside


@dataclass(frozen=True, slots=True)
class Inbox:
    """The folders of all agents."""

    directory: Path  # STATE/hub

    @property
    def segments(self) -> Path:
        """The folder of the agents' folders."""
        return self.directory / SEGMENTS

    def make(self) -> None:
        """The directories, with no rights for others."""
        make_private_directory(self.directory)
        make_private_directory(self.segments)
        sync_directory(self.directory)

    def hosts(self) -> list[str]:
        """Agents that have a folder, by name."""
        try:
            with os.scandir(self.segments) as entries:
                return sorted(entry.name for entry in entries if entry.is_dir(follow_symlinks=False))
        except FileNotFoundError:
            return []

    def waiting(self, host: str) -> list[Path]:
        """Whole segments of one agent, in the order they were sampled."""
        folder = self.segments / host
        try:
            with os.scandir(folder) as entries:
                names = sorted(entry.name for entry in entries if entry.name.endswith(CLOSED))
        except FileNotFoundError:
            return []
        return [folder / name for name in names]

    def occupancy(self, host: str) -> Occupancy:
        """What one agent's folder holds now."""
        folder = self.segments / host
        files = [*_files(folder)]
        whole = [status for name, status in files if name.endswith(CLOSED)]
        late, bad = ([*_files(folder / aside)] for aside in (LATE, BAD))
        return Occupancy(
            len(whole),
            sum(name.endswith(CLOSED) for name, _ in late),
            sum(name.endswith(CLOSED) for name, _ in bad),
            sum(status.st_size for _, status in files),
            sum(status.st_size for status in whole),
            min((status.st_mtime for status in whole), default=None),
            min((status.st_mtime for name, status in (*late, *bad) if name.endswith(CLOSED)), default=None),
        )

    def drop_aside(self, host: str, most_bytes: int) -> int:
        """Remove the oldest segments that were put aside, so that `most_bytes` of them stay; how many went."""
        aside = [
            (status.st_mtime, folder / name, status.st_size)
            for folder in (self.segments / host / LATE, self.segments / host / BAD)
            for name, status in _files(folder)
            if name.endswith(CLOSED)
        ]
        total, dropped = sum(size for *_, size in aside), 0
        for _, path, size in sorted(aside):
            if total <= most_bytes:
                break
            path.unlink(missing_ok=True)
            path.with_suffix(REASON).unlink(missing_ok=True)
            total, dropped = total - size, dropped + 1
        return dropped

    def path(self, name: SegmentName) -> Path:
        """Where a whole segment is."""
        return self.segments / name.host / f"{name.stem}{CLOSED}"

    def part(self, name: SegmentName) -> Path:
        """Where it arrives."""
        return self.segments / name.host / f"{name.stem}{PART}"

    def received(self, name: SegmentName) -> Received:
        """How much of it is here; one that the store has is not."""
        with suppress(FileNotFoundError):
            return Received(self.path(name).lstat().st_size, _sha256(self.path(name)))
        with suppress(FileNotFoundError):
            return Received(self.part(name).lstat().st_size)
        return Received(0)

    def begin(self, name: SegmentName, offset: int) -> int:
        """A descriptor to write an arriving segment with, from byte `offset` on; conflict when other bytes are here."""
        folder = self.segments / name.host
        if not offset and not folder.is_dir():
            make_private_directory(folder)
            sync_directory(self.segments)
        try:
            descriptor = open_private(self.part(name), os.O_WRONLY | (0 if offset else os.O_CREAT | os.O_TRUNC))
        except FileNotFoundError:
            raise UploadRefusedError("conflict", "nothing of this segment is here: begin with the first byte") from None
        if os.lseek(descriptor, 0, os.SEEK_END) != offset:
            here = os.lseek(descriptor, 0, os.SEEK_CUR)
            os.close(descriptor)
            raise UploadRefusedError("conflict", f"{here} bytes are here, the upload goes on at byte {offset}")
        return descriptor

    def accept(self, name: SegmentName, digest: bytes) -> None:
        """Make an arrived segment a whole one, durably; one whose SHA-256 or header is not as stated is discarded."""
        part = self.part(name)
        if _sha256(part) != digest:
            part.unlink()
            raise UploadRefusedError("conflict", "what arrived does not have the stated SHA-256: send it again")
        try:
            stated = Segment.open(part).header.stem
        except InputError as error:
            part.unlink()
            raise UploadRefusedError("wrong", error.problem) from None
        if stated != name.stem:
            part.unlink()
            raise UploadRefusedError("wrong", "the first line names another segment than the address")
        _sync(part)
        part.rename(self.path(name))
        sync_directory(part.parent)

    def holds(self, name: SegmentName, digest: bytes) -> bool:
        """Whether a whole segment of that name has this content; conflict when it has another."""
        try:
            own = _sha256(self.path(name))
        except FileNotFoundError:
            return False
        if own != digest:
            raise UploadRefusedError("wrong", "another segment of this name is here")
        return True

    def discard(self, name: SegmentName) -> None:
        """Forget what has arrived of a segment."""
        self.part(name).unlink(missing_ok=True)

    def abandoned_parts(self, before: float) -> Iterator[Path]:
        """Parts that nothing was added to since `before`, seconds since 1970."""
        for host in self.hosts():
            folder = self.segments / host
            for file, status in _files(folder):
                if file.endswith(PART) and status.st_mtime < before:
                    yield folder / file

    def free_bytes(self) -> int:
        """Space on the disk that this user may still fill."""
        status = os.statvfs(self.directory)
        return status.f_bavail * status.f_frsize


def _files(folder: Path) -> Iterator[tuple[str, os.stat_result]]:
    """Regular files of a folder; what goes away meanwhile is left out."""
    with suppress(FileNotFoundError), os.scandir(folder) as entries:
        for entry in entries:
            with suppress(FileNotFoundError):
                if entry.is_file(follow_symlinks=False):
                    yield entry.name, entry.stat(follow_symlinks=False)


def _sha256(path: Path) -> bytes:
    digest = hashlib.sha256()
    with os.fdopen(open_private(path, os.O_RDONLY), "rb", buffering=0) as stream:
        while block := stream.read(HASHED_AT_ONCE):
            digest.update(block)
    return digest.digest()


def _sync(path: Path) -> None:
    descriptor = open_private(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
