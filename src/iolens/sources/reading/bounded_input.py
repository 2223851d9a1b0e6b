"""The one way in: every source opens its files here, within bounds of line length, inflated bytes and gzip members.

Nothing is held that is longer than its format allows, so that a small file cannot take much memory or time. Standard
library only, for the sampler on a server reads through here as well.
"""

from __future__ import annotations

import errno
import hashlib
import io
import os
import stat
import zlib
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO, Final, NamedTuple, cast

from iolens.errors import InputError
from iolens.messages import DEBUG, detail
from iolens.open_files import OpenFile, is_under_way, open_file
from iolens.records import Problem

GZIP: Final = b"\x1f\x8b"
DAMAGED: Final = (OSError, EOFError, zlib.error)
HEAD_BYTES: Final = 65536

LONGEST_LINE: Final = 1 << 20
LONGEST_TEXT: Final = 64 << 20  # of what is held as a whole: results, logs of drives
LONGEST_PARAMETER: Final = 256 << 20  # one file of /proc or /sys: job_stats of a hundred thousand jobs
# A text of counters deflates to a twentieth, one of an idle server to a hundredth; zeros and blanks to a thousandth.
LARGEST_RATIO: Final = 800
RATIO_FROM: Final = 64 << 20  # inflated bytes from which on the ratio is judged
LARGEST_INFLATED: Final = 1 << 40
MOST_MEMBERS: Final = 10_000_000  # bgzip begins one every 64 KiB

_BLOCK: Final = 1 << 18
_PACKED_BLOCK: Final = 1 << 16
_LONGEST_NAME: Final = 1 << 16
_A_LINK: Final = "a symbolic link, which is not followed"
_HAS_CHECKSUM, _HAS_EXTRA, _HAS_NAME, _HAS_COMMENT = 2, 4, 8, 16  # flags of a gzip header


class Line(NamedTuple):
    """One line without its end, and its number from 1."""

    number: int
    text: str


class LongLine(NamedTuple):
    """A line that was skipped because it is longer than its format allows."""

    length: int

    def problem(self, place: str, number: int, longest: int = LONGEST_LINE) -> Problem:
        """What to say of it."""
        return Problem(place, number, f"a line of {self.length} bytes: longer than {longest >> 10} KiB, left out")


def opened_itself(path: Path) -> BinaryIO:
    """The bytes of a regular file as they are; raises OSError, also where a symbolic link has its name."""
    file = open_file(path, partial(_descriptor, path, os.O_NOFOLLOW))
    if not file.is_at(path):
        raise OSError(errno.ELOOP, _A_LINK)
    return file.stream()


def opened_packed(path: Path) -> BinaryIO:
    """The bytes of a regular file as they are; raises OSError."""
    return regular_file(path).stream()


def regular_file(path: Path) -> OpenFile:
    """A regular file, open for reading; raises OSError."""
    return open_file(path, partial(_descriptor, path))


def content_hash(path: Path) -> tuple[int, str]:
    """How many bytes a regular file has, and their SHA-256; for many small files, none of which is kept open."""
    if is_under_way(path):
        file = regular_file(path)
        return file.size, file.sha256()
    descriptor = _descriptor(path)
    try:
        digest, size = hashlib.sha256(), 0
        while block := os.read(descriptor, _PACKED_BLOCK):
            digest.update(block)
            size += len(block)
    finally:
        os.close(descriptor)
    return size, digest.hexdigest()


def opened(path: Path) -> BinaryIO:
    """The bytes of a regular file, unpacked if they are gzip."""
    try:
        stream = opened_packed(path)
        try:
            packed = stream.read(2) == GZIP
            stream.seek(0)
        except OSError:
            stream.close()
            raise
    except OSError as error:
        raise InputError(str(path), f"cannot be read: {error.strerror or error}") from error
    return inflated(stream) if packed else stream


def inflated(packed: BinaryIO) -> BinaryIO:
    """The content of a stream of gzip data, within the bounds above."""
    return cast(BinaryIO, io.BufferedReader(_Inflated(packed), _BLOCK))


def head_of(path: Path) -> bytes:
    """The first bytes of a file as they are, for its format to be recognised by."""
    try:
        with opened_packed(path) as stream:
            return stream.read(HEAD_BYTES)
    except OSError as error:
        raise InputError(str(path), f"cannot be read: {error.strerror or error}") from error


def unpacked_head(path: Path) -> bytes:
    """The first bytes of a file, unpacked if it is gzip; InputError where they cannot be read."""
    try:
        with opened(path) as stream:
            return stream.read(HEAD_BYTES)
    except DAMAGED as error:
        raise InputError(str(path), f"cannot be read: {error}") from error


def unpacked(head: bytes) -> bytes:
    """The beginning of a file, unpacked if it is gzip; empty if it is damaged gzip."""
    if not head.startswith(GZIP):
        return head
    try:
        return zlib.decompressobj(wbits=31).decompress(head, HEAD_BYTES)
    except zlib.error:
        return b""


def blocks_of(stream: BinaryIO, size: int) -> Iterator[bytes]:
    """The content in blocks of about `size` bytes; what was read before damage comes before its report."""
    read = getattr(stream, "read1", stream.read)
    held: list[bytes] = []
    length = 0
    try:
        while block := read(_BLOCK):
            held.append(block)
            length += len(block)
            if length >= size:
                yield b"".join(held)
                held, length = [], 0
    except DAMAGED:
        yield b"".join(held)
        raise
    if held:
        yield b"".join(held)


def bounded_lines(stream: BinaryIO, longest: int = LONGEST_LINE, *, padded: bool = True) -> Iterator[bytes | LongLine]:
    """Every line with its end; one that is longer than `longest` is skipped and never held.

    Where lines may be `padded`, zeros around one are the padding of a copy of /sys, and go.
    """
    held: list[bytes] = []
    length = 0  # of the line that goes on in the next block
    for block in blocks_of(stream, 1):
        begin = 0
        if length > longest:
            begin = block.find(b"\n") + 1
            if not begin:
                length += len(block)
                continue
            yield LongLine(length + begin)
            length = 0
        end = block.rfind(b"\n", begin) + 1
        if end:
            whole = b"".join((*held, block[begin:end]))
            held, length = [block[end:]], len(block) - end
            is_plain = len(whole) <= longest and b"\0" not in whole
            yield from io.BytesIO(whole) if is_plain else _each(whole, longest, padded)
        else:
            held.append(block[begin:])
            length += len(block) - begin
        if length > longest:
            held = []
    if length > longest:
        yield LongLine(length)
    elif length:
        yield from _each(b"".join(held), longest, padded)


def _each(whole: bytes, longest: int, padded: bool) -> Iterator[bytes | LongLine]:
    padded = padded and b"\0" in whole
    if len(whole) <= longest and not padded:
        yield from io.BytesIO(whole)
        return
    for line in io.BytesIO(whole):
        if len(line) > longest:
            yield LongLine(len(line))
        else:
            yield _unpadded(line) if padded else line


def _unpadded(line: bytes) -> bytes:
    body = line.removesuffix(b"\n")
    return body.strip(b"\0") + line[len(body) :]


def text_of(line: bytes) -> str:
    """A line without its end; bytes that are not text are escaped."""
    return line.rstrip(b"\r\n").decode("utf-8", "backslashreplace")


def numbered_lines(path: Path, longest: int = LONGEST_LINE) -> Iterator[Line | Problem]:
    """Every line; a problem for one that is too long, and in place of the rest where the bytes break off."""
    number = 0
    try:
        with opened(path) as stream:
            for number, line in enumerate(bounded_lines(stream, longest), 1):
                if isinstance(line, LongLine):
                    yield line.problem(str(path), number, longest)
                else:
                    yield Line(number, text_of(line))
    except DAMAGED as error:
        yield Problem(str(path), number or None, f"cannot be read to its end: {error}")


def whole_text(path: Path, longest: int = LONGEST_TEXT) -> tuple[str, str | None]:
    """The whole text of a file that is held at once, and why it may be only a part of it."""
    pieces: list[bytes] = []
    length, trouble = 0, None
    try:
        with opened(path) as stream:
            for block in blocks_of(stream, 1):
                pieces.append(block)
                length += len(block)
                if length > longest:
                    break
    except DAMAGED as error:
        trouble = f"cannot be read to its end: {error}"
    if length > longest:
        trouble = f"longer than {longest >> 20} MiB: the rest is not read"
    return b"".join(pieces)[:longest].rstrip(b"\0").decode("utf-8", "backslashreplace").replace("\r\n", "\n"), trouble


def parameter_bytes(path: Path) -> bytes:
    """One file of /proc or /sys, live or copied, without the zeros that copies are padded with; raises OSError."""
    descriptor = _descriptor(path)
    try:
        pieces: list[bytes] = []
        left = LONGEST_PARAMETER
        while left > 0 and (block := os.read(descriptor, min(left, _BLOCK))):
            pieces.append(block)
            left -= len(block)
        if left <= 0:
            raise OSError(errno.EFBIG, f"longer than {LONGEST_PARAMETER >> 20} MiB")
    finally:
        os.close(descriptor)
    return b"".join(pieces).rstrip(b"\0")


def _descriptor(path: Path, flags: int = 0) -> int:
    """A regular file, open for reading. A pipe would block, and a device never end: both are refused."""
    try:
        detail(f"reading {path}", DEBUG)
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | flags)
    except OSError as error:
        if error.errno == errno.ELOOP and flags & os.O_NOFOLLOW:
            raise OSError(errno.ELOOP, _A_LINK) from error
        raise
    mode = os.fstat(descriptor).st_mode
    if not stat.S_ISREG(mode):
        os.close(descriptor)
        if stat.S_ISDIR(mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
        raise OSError(errno.EINVAL, "not a regular file: save it to one first")
    return descriptor


class _Inflated(io.RawIOBase):
    """gzip data inflated piece by piece, member after member. What comes before damage is given first."""

    def __init__(self, packed: BinaryIO) -> None:
        self._packed = packed
        self._held = b""  # packed bytes that were read and not inflated
        self._inflater: Any = None  # of the member being read
        self._ended = False  # a member's data has ended, and its checksum follows
        self._sum = self._size = 0  # of the member
        self._taken = self._given = self._members = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        piece = self._next(min(len(buffer), _PACKED_BLOCK))
        buffer[: len(piece)] = piece
        return len(piece)

    def close(self) -> None:
        self._packed.close()
        super().close()

    def _next(self, most: int) -> bytes:
        while True:
            if self._ended:
                self._end_member()
            if self._inflater is None and not self._begin_member():
                return b""
            piece: bytes = self._inflater.decompress(self._held, most)
            self._ended = self._inflater.eof
            self._held = self._inflater.unused_data if self._ended else self._inflater.unconsumed_tail
            if piece:
                self._count(piece)
                return piece
            if not self._ended and not self._held and not self._fill():
                raise EOFError("it ends within its gzip data")

    def _fill(self) -> bool:
        block = self._packed.read(_PACKED_BLOCK)
        self._taken += len(block)
        self._held += block
        return bool(block)

    def _count(self, piece: bytes) -> None:
        self._sum = zlib.crc32(piece, self._sum)
        self._size += len(piece)
        self._given += len(piece)
        if self._given > RATIO_FROM and self._given > LARGEST_RATIO * (self._taken - len(self._held)):
            raise OSError(f"it inflates beyond {LARGEST_RATIO} times its size: unpack it first, if it is what it seems")
        if self._given > LARGEST_INFLATED:
            raise OSError(f"it inflates beyond {LARGEST_INFLATED >> 40} TiB")

    def _begin_member(self) -> bool:
        """Read a header; False at the end of the file, before which there may be zeros."""
        self._held = self._held.lstrip(b"\0")
        while not self._held:
            if not self._fill():
                return False
            self._held = self._held.lstrip(b"\0")
        head = self._take(10)
        if head[:2] != GZIP or head[2] != 8:
            raise OSError("what follows is not gzip data")
        self._members += 1
        if self._members > MOST_MEMBERS:
            raise OSError(f"more than {MOST_MEMBERS} gzip members")
        if head[3] & _HAS_EXTRA:
            self._take(int.from_bytes(self._take(2), "little"))
        for flag in (_HAS_NAME, _HAS_COMMENT):
            if head[3] & flag:
                self._skip_text()
        if head[3] & _HAS_CHECKSUM:
            self._take(2)
        self._inflater, self._sum, self._size = zlib.decompressobj(wbits=-zlib.MAX_WBITS), 0, 0
        return True

    def _end_member(self) -> None:
        self._ended, self._inflater = False, None
        if self._take(8) != self._sum.to_bytes(4, "little") + (self._size & 0xFFFFFFFF).to_bytes(4, "little"):
            raise OSError("the checksum of its gzip data is not right")

    def _take(self, count: int) -> bytes:
        while len(self._held) < count:
            if not self._fill():
                raise EOFError("it ends within its gzip data")
        taken, self._held = self._held[:count], self._held[count:]
        return taken

    def _skip_text(self) -> None:
        while (end := self._held.find(b"\0")) < 0:
            if len(self._held) > _LONGEST_NAME or not self._fill():
                raise OSError("what follows is not gzip data")
        self._held = self._held[end + 1 :]
