"""Captures saved as text, plain or gzip: their lines with numbers, and what makes a capture the same one again."""

from __future__ import annotations

import csv
import gzip
import hashlib
import zlib
from collections.abc import Iterator
from datetime import tzinfo
from pathlib import Path
from typing import BinaryIO, Final, NamedTuple, cast

from iolens.errors import InputError
from iolens.records import Problem
from iolens.sources import ReadOptions, content_identity
from iolens.sources.local_time import find_zone

GZIP: Final = b"\x1f\x8b"
DAMAGED: Final = (OSError, EOFError, zlib.error)
HEAD_BYTES: Final = 65536
_SHOWN: Final = 60


class Line(NamedTuple):
    """One line without its end, and its number from 1."""

    number: int
    text: str


def opened(path: Path) -> BinaryIO:
    """The bytes of a file, unpacked if they are gzip."""
    try:
        with path.open("rb") as stream:
            packed = stream.read(2) == GZIP
        return cast(BinaryIO, gzip.open(path, "rb")) if packed else path.open("rb")
    except OSError as error:
        raise InputError(str(path), f"cannot be read: {error.strerror}") from error


def unpacked(head: bytes) -> bytes:
    """The beginning of a file, unpacked if it is gzip; empty if it is damaged gzip."""
    if not head.startswith(GZIP):
        return head
    try:
        return zlib.decompressobj(wbits=31).decompress(head, HEAD_BYTES)
    except zlib.error:
        return b""


def numbered_lines(path: Path) -> Iterator[Line | Problem]:
    """Every line; where the bytes break off, a problem in place of the rest. Bytes that are not text are escaped."""
    number = 0
    try:
        with opened(path) as stream:
            for number, line in enumerate(stream, 1):
                yield Line(number, line.rstrip(b"\r\n").decode("utf-8", "backslashreplace"))
    except DAMAGED as error:
        yield Problem(str(path), number or None, f"cannot be read to its end: {error}")


def cells_of(text: str, delimiter: str = ",") -> list[str]:
    """The cells of one line of CSV, without blanks around them; the line itself where it is none."""
    try:
        return [cell.strip() for cell in next(csv.reader([text], delimiter=delimiter), [])]
    except csv.Error:
        return [text]


def shown(text: str) -> str:
    """A piece of input as a message quotes it."""
    text = text.strip()
    return repr(text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…")


def supplied_identity(path: Path, **supplied: object) -> str:
    """The content's hash; what the user had to supply is part of it, for it changes what the content means."""
    return combined_identity([content_identity(path)], **supplied)


def combined_identity(identities: list[str], **supplied: object) -> str:
    """One identity for several contents that are read as one, in whatever order they were named."""
    said = [f"{name}={value}" for name, value in sorted(supplied.items()) if value is not None]
    if len(identities) == 1 and not said:
        return identities[0]
    return "file/" + hashlib.sha256("\0".join([*sorted(identities), *said]).encode()).hexdigest()


def zone_name(options: ReadOptions, filesystem: str | None) -> str | None:
    """The zone of local times: `--timezone`, else the configuration's for the source or the file system."""
    name = options.timezone or options.settings.get("timezone") or options.zones.get(filesystem or "")
    return None if name is None else str(name)


def stated_zone(options: ReadOptions, filesystem: str | None, place: str) -> tzinfo:
    """The zone of local times, where nothing can be read without it."""
    name = zone_name(options, filesystem)
    if name is None:
        expected = "--timezone, such as America/Los_Angeles, or timezone in [filesystems.NAME] of the configuration"
        raise InputError(place, "its times are local and name no zone", expected)
    return find_zone(name, place)


def needed_filesystem(options: ReadOptions, place: str) -> str:
    """The file system, where a format never names it."""
    if options.filesystem is None:
        raise InputError(place, "nothing here tells the file system", "--filesystem")
    return options.filesystem
