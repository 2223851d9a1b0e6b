"""Segments on disk from their arrival until the store has them: their names and their streams."""

from __future__ import annotations

import errno
import hashlib
import os
import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final, Literal

from deltalake import DeltaTable

from iolens.agent.sampling.shipper import REASON, OfferedSegment
from iolens.agent.sampling.spool import BAD, LATE, make_private_directory, open_private, sync_directory
from iolens.errors import InputError, IolensError
from iolens.records import Capture
from iolens.sources.spool import CLOSED, Segment, SegmentHeader
from iolens.store.duckdb_engine import query
from iolens.store.store import Store
from iolens.store.tables import PARTS_PER_SEQUENCE

# Names of segments that agents send -----------------------------------------------------------------------------------
# `HOST~RUN~SEQUENCE`, in letters that are safe in a path.

_NAME: Final = re.compile(
    r"(?P<host>[A-Za-z0-9_][A-Za-z0-9._-]{0,127})~(?P<run>[A-Za-z0-9_][A-Za-z0-9._-]{0,63})~(?P<sequence>[0-9]{8,12})"
)


@dataclass(frozen=True, slots=True)
class SegmentName:
    """A name that was checked: only such names become paths."""

    host: str
    run: str
    sequence: int

    @property
    def stem(self) -> str:
        """As agents and files write it."""
        return f"{self.host}~{self.run}~{self.sequence:08d}"

    @classmethod
    def parse(cls, text: str) -> SegmentName | None:
        """None when it is not the name of a segment, or another way to write one."""
        match = _NAME.fullmatch(text)
        name = None if match is None else cls(match["host"], match["run"], int(match["sequence"]))
        return name if name is not None and name.stem == text else None


# How the store knows the segments of one agent's run ------------------------------------------------------------------
# As one stream with a sequence, not as a batch each.
#
# Every table keeps a mark for each batch it has. 500 agents make 144,000 segments a day, and looking for a mark takes
# longer the more there are (25 ms among 144,000); a stream has one mark, which moves on. It tells only what came in
# order: a segment that comes after a later one, or that was begun as a batch of its own, is loaded as such a batch.


def stream_of(header: SegmentHeader) -> str:
    """The identity that all segments of an agent's run share."""
    return f"agent/{header.host}/{header.run}"


@dataclass(slots=True)
class StreamMarks:
    """What the store knows of streams before a batch is loaded."""

    store: Store
    baselines: DeltaTable | None
    batches: DeltaTable | None
    _reached: dict[str, int] = field(default_factory=dict)  # by stream: the last segment that was begun

    @classmethod
    def of(cls, store: Store) -> StreamMarks:
        """As the tables are now."""
        return cls(store, store.tables.load("baselines"), store.tables.load("batches"))

    def capture(self, segment: OfferedSegment) -> Capture:
        """A segment under the identity that it was begun with, or else that of its stream."""
        header, own = segment.segment.header, segment.capture()
        if header.run.isdecimal() or self._is_begun_alone(own.identity):  # a number would be taken for that of a piece
            return own
        stream = stream_of(header)
        if header.sequence <= self._last(stream) and not self._is_in_stream(stream, header.sequence):
            return own
        return replace(own, identity=stream, sequence=header.sequence)

    def _is_begun_alone(self, identity: str) -> bool:
        return _version(self.baselines, identity) >= 0 or _version(self.batches, f"{identity}/complete") >= 0

    def _last(self, stream: str) -> int:
        if stream not in self._reached:
            claimed = _version(self.baselines, stream) // PARTS_PER_SEQUENCE
            self._reached[stream] = max(claimed, _version(self.batches, f"{stream}/complete"))
        return self._reached[stream]

    def _is_in_stream(self, stream: str, sequence: int) -> bool:
        """Whether the tables have, or expect, this very segment."""
        first = sequence * PARTS_PER_SEQUENCE
        sql = "SELECT count(*) FROM stored WHERE batch = ? AND part BETWEEN ? AND ?"
        values = [stream, first, first + PARTS_PER_SEQUENCE - 1]
        named = (("batches", self.batches), ("baselines", self.baselines))
        return any(
            handle is not None and query(self.store.tables, handle, name, sql, values)[0][0] for name, handle in named
        )


def _version(handle: DeltaTable | None, identity: str) -> int:
    """The highest number that a table has under an identity, -1 for none."""
    version = None if handle is None else handle.transaction_version(identity)
    return -1 if version is None else version


# Segments on disk from their arrival until the store has them ---------------------------------------------------------
# `STATE/hub/segments/HOST/NAME`.
#
# `.part` is arriving, `.seg` is whole: its digest was right, and it is on disk with its name. Each host has a folder of
# its own, so that what one agent waits for is a short listing; `late/` and `bad/` in it hold what the store did not
# take.

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
