"""What a format of `find -printf` says of each inode, and the records it printed taken apart by it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

import numpy as np

from iolens.errors import InputError
from iolens.sources.contents.listed_inodes import InodeColumns, Numbers, PathProjects, owner_names
from iolens.sources.contents.listed_records import (
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
    ListedRecords,
    Unread,
)
from iolens.sources.contents.record_fields import RecordText
from iolens.units import KIB

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
