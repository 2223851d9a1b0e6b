"""Listings of `find -printf`: every inode by type, size, allocation, ages, owner and project, hard links once.

Formats in `KNOWN` are recognised; any other is described in `[sources.find]`. Records end with a newline or, safe for
any file name, with NUL. Nothing of a path is kept but the project that a rule finds in it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

from iolens.config import ProjectRule
from iolens.errors import InputError
from iolens.records import Capture
from iolens.sources.contents.find_format import Format, FoundRecords, parse_format
from iolens.sources.contents.listed_inodes import PathProjects
from iolens.sources.contents.listing_scans import PieceRead, listing_captures
from iolens.sources.devices.block_devices import refuse_settings
from iolens.sources.reading.bounded_input import unpacked, unpacked_head
from iolens.sources.reading.options import ReadOptions

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
