"""Tar archives read as a stream, member by member, within bounds. Nothing of an archive is ever written to disk."""

from __future__ import annotations

import tarfile
from collections.abc import Iterator
from pathlib import PurePosixPath
from typing import BinaryIO, Final, NamedTuple, cast

from iolens.records import Problem
from iolens.sources.reading.bounded_input import DAMAGED, GZIP, inflated
from iolens.sources.reading.parsed_numbers import shown

TAR_HEAD: Final = 512
MOST_MEMBERS: Final = 1_000_000
LONGEST_HEADER: Final = 1 << 20  # of a name that does not fit into the 512 bytes of a header, and of other attributes
_LONG_HEADERS: Final = frozenset({
    tarfile.GNUTYPE_LONGNAME, tarfile.GNUTYPE_LONGLINK, tarfile.XHDTYPE, tarfile.XGLTYPE, tarfile.SOLARIS_XHDTYPE,
})  # fmt: skip


class Member(NamedTuple):
    """One regular file of an archive, to be read before the next one is asked for."""

    info: tarfile.TarInfo
    stream: BinaryIO


def is_tar(head: bytes) -> bool:
    """Whether a file begins as an archive does; an empty one holds nothing but zeros."""
    return head[257:262] == b"ustar" or (len(head) == TAR_HEAD and not head.strip(b"\0"))


def archive_members(stream: BinaryIO, place: str) -> Iterator[Member | Problem]:
    """The files of an archive, hidden ones left out; a problem in place of what cannot or must not be read."""
    try:
        with tarfile.open(fileobj=stream, mode="r|", tarinfo=_Info) as archive:
            for number, info in enumerate(archive, 1):
                if number > MOST_MEMBERS:
                    yield Problem(place, None, f"more than {MOST_MEMBERS} members: the rest is not read")
                    return
                if (reason := _why_not(info)) is not None:
                    yield Problem(place, None, f"member {shown(info.name)} {reason}: left out")
                elif info.isfile() and not PurePosixPath(info.name).name.startswith("."):
                    yield Member(info, cast(BinaryIO, archive.extractfile(info)))
                archive.members = []  # type: ignore[attr-defined] # or it would remember every member there was
    except tarfile.TarError as error:
        yield Problem(place, None, f"cannot be read to its end: {error}")
    except DAMAGED as error:
        yield Problem(place, None, f"cannot be read to its end: {error}")


def unpacked_member(stream: BinaryIO) -> BinaryIO:
    """The content of a member, unpacked if it is gzip itself."""
    head = stream.read(len(GZIP))
    rest = cast(BinaryIO, _Rest(head, stream))
    return inflated(rest) if head == GZIP else rest


def _why_not(info: tarfile.TarInfo) -> str | None:
    pure = PurePosixPath(info.name)
    if info.isdir() or pure.name.startswith("."):
        return None
    if pure.is_absolute() or ".." in pure.parts:
        return "leaves the archive"
    return None if info.isfile() else "is not a plain file"


class _Info(tarfile.TarInfo):
    """A header whose long names are not longer than any name: tarfile itself reads whatever length they state."""

    def _proc_member(self, archive: tarfile.TarFile) -> tarfile.TarInfo:
        if self.type in _LONG_HEADERS and self.size > LONGEST_HEADER:
            raise tarfile.ReadError(f"a header of {self.size} bytes")
        return cast(tarfile.TarInfo, super()._proc_member(archive))  # type: ignore[misc] # not in the type stubs


class _Rest:
    """A stream whose first bytes were read already."""

    def __init__(self, head: bytes, stream: BinaryIO) -> None:
        self.head, self.stream = head, stream

    def read(self, size: int) -> bytes:
        """The next bytes."""
        head, self.head = self.head, b""
        return head or self.stream.read(size)

    def close(self) -> None:
        """Let go of the stream."""
        self.stream.close()
