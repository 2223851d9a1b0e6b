"""Files that list inodes one by one, put together to scans: each format only says how to read a piece of its text."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import NamedTuple, Protocol

from iolens.config import ProjectRule
from iolens.records import Capture, Item, Problem
from iolens.sources.contents.listed_inodes import InodeColumns, ListedInodes, PathProjects
from iolens.sources.contents.listed_records import Unread
from iolens.sources.contents.record_fields import record_pieces
from iolens.sources.contents.scan_time import ScanTime, scan_name, scan_time_of
from iolens.sources.reading.captures import content_identity, read_each
from iolens.sources.reading.options import ReadOptions
from iolens.sources.reading.saved_text import combined_identity, needed_filesystem


class PieceRead(NamedTuple):
    """What a piece of text lists, what in it could not be read, and how many records it has."""

    listed: InodeColumns
    unread: list[Unread]
    records: int


class ListingReader(Protocol):
    """How to read one file."""

    @property
    def terminator(self) -> bytes:
        """The byte after each record."""

    def projects(self, rule: ProjectRule) -> PathProjects:
        """Projects by the paths as this file writes them."""

    def read(self, piece: bytes, projects: PathProjects) -> PieceRead:
        """A piece of whole records."""


@dataclass(frozen=True, slots=True)
class _Part:
    path: Path
    time: ScanTime
    reader: ListingReader


@dataclass(frozen=True, slots=True)
class _ListingScan:
    parts: tuple[_Part, ...]
    rule: ProjectRule
    filesystem: str
    origin: str
    name: str

    def items(self) -> Iterator[Item]:
        inodes = ListedInodes(self.parts[0].time.time_us)
        for part in self.parts:
            if part.time.note is not None:
                yield part.time.note
            yield from _counted(part, self.rule, inodes)
        yield from inodes.items(self.filesystem, self.origin, self.name)


def listing_captures(
    paths: Sequence[Path],
    options: ReadOptions,
    reader_of: Callable[[Path], ListingReader],
    said: Mapping[str, object],
) -> Iterator[Capture]:
    """One capture per scan. Files of one stated time are its parts; `said` changes what they mean."""
    files, refused = read_each(paths, partial(_opened, options=options, reader_of=reader_of))
    yield from refused
    rule = options.projects if options.projects.directories or options.projects.ids else None
    for parts in _scans(files):
        origin = str(parts[0].path) + (f" and {len(parts) - 1} more" if len(parts) > 1 else "")
        filesystem = needed_filesystem(options, origin)
        stated = parts[0].time.time_us if parts[0].time.stated else None
        supplied = {**said, "filesystem": filesystem, "moment": stated, "projects": rule}
        identity = combined_identity([content_identity(part.path) for part in parts], **supplied)
        scan = _ListingScan(parts, options.projects, filesystem, origin, scan_name(identity))
        yield Capture(origin, identity, scan.items)


def _opened(path: Path, options: ReadOptions, reader_of: Callable[[Path], ListingReader]) -> _Part:
    needed_filesystem(options, str(path))
    return _Part(path, scan_time_of(path, options), reader_of(path))


def _scans(files: Sequence[_Part]) -> list[tuple[_Part, ...]]:
    """Files of one stated time together, in the order in which they were named; any other alone."""
    groups: dict[object, list[_Part]] = {}
    for place, file in enumerate(files):
        groups.setdefault(file.time.time_us if file.time.stated else (place,), []).append(file)
    return [tuple(group) for group in sorted(groups.values(), key=lambda group: group[0].time.time_us)]


def _counted(part: _Part, rule: ProjectRule, inodes: ListedInodes) -> Iterator[Item]:
    """Count the inodes of a file; what cannot be read comes out as problems."""
    projects = part.reader.projects(rule)
    number = 1
    for piece in record_pieces(part.path, part.reader.terminator):
        if isinstance(piece, Problem):
            yield piece
            continue
        read = part.reader.read(piece, projects)
        for unread in read.unread:
            yield Problem(str(part.path), number + unread.place, unread.reason)
        inodes.add(read.listed)
        number += read.records
