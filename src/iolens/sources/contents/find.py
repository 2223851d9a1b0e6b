"""Listings of `find -printf`: every inode by type, size, allocation, ages, owner and project."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

import numpy as np

from iolens.config import ProjectRule
from iolens.errors import InputError
from iolens.records import Capture
from iolens.sources.contents.listings import (
    ATIME,
    DEVICE,
    INODE,
    LINKS,
    MTIME,
    OWNER,
    PATH,
    SIZE,
    SPACE,
    TYPE,
    InodeColumns,
    ListedRecords,
    Numbers,
    PathProjects,
    PieceRead,
    Unread,
    listing_captures,
    owner_names,
)
from iolens.sources.contents.record_fields import RecordText
from iolens.sources.devices.block_devices import refuse_settings
from iolens.sources.reading.bounded_input import unpacked, unpacked_head
from iolens.sources.reading.options import ReadOptions
from iolens.units import KIB

# What a format of `find -printf` says of each inode, and the records it printed taken apart by it ---------------------

BLOCK: Final = 512
OTHER: Final = ""  # reported, and not kept
MEANINGS: Final = {
    "%y": TYPE, "%M": TYPE, "%s": SIZE, "%b": SPACE, "%k": SPACE, "%i": INODE, "%n": LINKS, "%D": DEVICE, "%u": OWNER,
    "%U": OWNER, "%A@": ATIME, "%T@": MTIME, "%p": PATH, "%P": OTHER, "%f": OTHER, "%h": OTHER, "%H": OTHER,
    "%l": OTHER, "%g": OTHER, "%G": OTHER, "%m": OTHER, "%d": OTHER, "%F": OTHER, "%S": OTHER, "%C@": OTHER,
    "%B@": OTHER, "%Y": OTHER,
}  # fmt: skip
ANYTHING: Final = frozenset({"%p", "%P", "%f", "%h", "%H", "%l"})  # file names may hold the separator
_ESCAPES: Final = {r"\t": "\t", r"\n": "\n", r"\0": "\0", r"\\": "\\"}
_PIECE: Final = re.compile(r"(%[ATCB]?[a-zA-Z@+])")


@dataclass(frozen=True, slots=True)
class Format:
    """Directives in order, the byte between them, and the byte after each record."""

    text: str
    directives: tuple[str, ...]
    separator: bytes
    terminator: bytes

    @property
    def free(self) -> int | None:
        """Which field may itself hold the separator."""
        return next((place for place, directive in enumerate(self.directives) if directive in ANYTHING), None)


def parse_format(text: str, place: str) -> Format:
    """A format as given to `find -printf`; InputError names what cannot be read back. No terminator is a newline."""
    plain = re.sub(r"\\[tn0\\]", lambda match: _ESCAPES[match[0]], text)
    pieces = _PIECE.split(plain)
    directives = tuple(pieces[1::2])
    begin, between, end = pieces[0], pieces[2:-1:2], pieces[-1]
    for directive in directives:
        if directive not in MEANINGS:
            known = " ".join(MEANINGS)
            raise InputError(place, f"format {text!r}: {directive} cannot be read back", f"directives among {known}")
    meanings = [MEANINGS[directive] for directive in directives if MEANINGS[directive]]
    if begin or SIZE not in meanings:
        raise InputError(place, f"format {text!r}", "directives from its beginning on, and %s among them")
    if len(set(meanings)) < len(meanings):
        raise InputError(place, f"format {text!r}", "each field once")
    if len(set(between)) > 1 or not all(_separates(name) for name in between):
        raise InputError(place, f"format {text!r}", "one and the same character between all directives, such as \\t")
    if end not in ("", "\n", "\0"):
        raise InputError(place, f"format {text!r} ends with {end!r}", r"\n or \0 after the last directive")
    if sum(directive in ANYTHING for directive in directives) > 1:
        raise InputError(place, f"format {text!r}", f"one of {' '.join(sorted(ANYTHING))}: names hold any character")
    separator = between[0].encode() if between else b"\t"
    return Format(text, directives, separator, b"\0" if end == "\0" else b"\n")


def _separates(text: str) -> bool:
    return len(text) == 1 and text.isascii() and not text.isalnum() and text not in "\n\0"


class FoundRecords:
    """Records of one piece of a listing, read as the format says."""

    def __init__(self, format_: Format, piece: bytes) -> None:
        text = RecordText(piece, format_.terminator)
        self.terminated = len(text.records.begin)
        places = np.flatnonzero(text.records.width > 0)  # blank lines tell nothing
        records = text.records.of(places)
        count, free = len(format_.directives), format_.free
        before = count if free is None else free
        after = 0 if free is None else count - free - 1
        fields, whole = text.split(records, format_.separator, before, after, free is not None)
        reported = {MEANINGS[directive]: spans for directive, spans in zip(format_.directives, fields, strict=True)}
        reported.pop(OTHER, None)
        self._records = ListedRecords(text, records, places, reported, whole, f"a record of {format_.text!r}")
        self._listed = self._read(format_)

    def __len__(self) -> int:
        return len(self._records)

    @property
    def good(self) -> int:
        """How many records fit the format."""
        return int(np.count_nonzero(self._records.good))

    def unread(self) -> list[Unread]:
        """Those that do not."""
        return self._records.unread()

    def listed(self, projects: PathProjects) -> InodeColumns:
        """What could be read."""
        text, fields, good = self._records.text, self._records.fields, self._records.good
        columns = self._listed.of(good)
        if OWNER in fields:
            columns.owners = owner_names(text.words(fields[OWNER].of(good)))
        if projects.has_directories and PATH in fields:
            columns.projects = projects.of(text, fields[PATH].of(good), columns.types)
        return columns

    def _read(self, format_: Format) -> InodeColumns:
        records = self._records
        return InodeColumns(
            types=records.types(one_letter="%y" in format_.directives),
            sizes=records.sizes(),
            allocated=records.numbers(SPACE, KIB if "%k" in format_.directives else BLOCK),
            atimes_s=self._seconds(ATIME),
            mtimes_s=self._seconds(MTIME),
            inodes=records.inodes(),
            links=records.numbers(LINKS),
            devices=records.numbers(DEVICE),
        )

    def _seconds(self, meaning: str) -> Numbers | None:
        if meaning not in self._records.fields:
            return None
        values, good = self._records.text.seconds(self._records.fields[meaning])
        self._records.check(meaning, good)
        return values


# Listings of `find -printf` -------------------------------------------------------------------------------------------
# Every inode by type, size, allocation, ages, owner and project, hard links once.
#
# Formats in `KNOWN` are recognised; any other is described in `[sources.find]`. Records end with a newline or, safe for
# any file name, with NUL. Nothing of a path is kept but the project that a rule finds in it.

RECOMMENDED: Final = r"%y\t%s\t%b\t%n\t%i\t%u\t%A@\t%T@\t%p\0"
SIZES_ONLY: Final = r"%s\n"
KNOWN: Final = (RECOMMENDED, RECOMMENDED.replace(r"\0", r"\n"), r"%y %s %b %i %A@ %T@ %p\n", SIZES_ONLY)
SETTINGS: Final = ("format", "timezone")
TRIED_RECORDS: Final = 100
_WHERE: Final = "[sources.find]"
_FORMATS: Final = tuple(parse_format(name, _WHERE) for name in KNOWN)


class Find:
    """Listings of `find -printf`."""

    name = "find"
    summary = "listings of `find -printf`, or of sizes alone; plain or gzip, records ended by newline or NUL"

    def recognises(self, path: Path, head: bytes) -> bool:
        """Whether the first records fit one of the known formats."""
        return _format_of(unpacked(head)) is not None

    def captures(self, paths: Sequence[Path], options: ReadOptions) -> Iterator[Capture]:
        """One capture per scan: files of one stated time are its parts."""
        format_ = _configured(options)
        said = {"format": options.settings.get("format")}
        yield from listing_captures(paths, options, partial(_reader, format_=format_), said)


SOURCE: Final = Find()


@dataclass(frozen=True, slots=True)
class _FindReader:
    format_: Format

    @property
    def terminator(self) -> bytes:
        return self.format_.terminator

    def projects(self, rule: ProjectRule) -> PathProjects:
        return PathProjects(rule)

    def read(self, piece: bytes, projects: PathProjects) -> PieceRead:
        records = FoundRecords(self.format_, piece)
        return PieceRead(records.listed(projects), records.unread(), records.terminated)


def _configured(options: ReadOptions) -> Format | None:
    refuse_settings(options, "find", _WHERE, SETTINGS)
    text = options.settings.get("format")
    if text is None:
        return None
    if not isinstance(text, str):
        raise InputError(_WHERE, f"format = {text!r}", "what `find -printf` was given, in quotes")
    return parse_format(text, _WHERE)


def _reader(path: Path, format_: Format | None) -> _FindReader:
    return _FindReader(format_ or _reported_by(path))


def _reported_by(path: Path) -> Format:
    head = unpacked_head(path)
    result = _format_of(head)
    if result is None:
        what = "its first records fit none of the known formats" if head else "empty file"
        raise InputError(str(path), what, f"{' or '.join(KNOWN)}, or format in {_WHERE}")
    return result


def _format_of(head: bytes) -> Format | None:
    """The known format that most of the first records fit; sizes alone must all be such."""
    for format_, text in zip(_FORMATS, KNOWN, strict=True):
        records = _first_records(head, format_.terminator)
        if not records or (len(format_.directives) > 1 and format_.separator not in records):
            continue
        found_records = FoundRecords(format_, records)
        everything = len(found_records) > 1 and found_records.good == len(found_records)
        if everything if text == SIZES_ONLY else 2 * found_records.good > len(found_records):
            return format_
    return None


def _first_records(head: bytes, terminator: bytes) -> bytes:
    """The first whole records."""
    end = 0
    for _ in range(TRIED_RECORDS):
        value = head.find(terminator, end)
        if value < 0:
            break
        end = value + 1
    return head[:end]
