"""Files that list inodes one by one, put together to scans: records read by meaning, when the scan was taken."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from iolens.config import ProjectRule
from iolens.errors import InputError
from iolens.records import Capture, Item, Note, Problem
from iolens.schema import LARGEST
from iolens.sources.contents.inode_counts import InodeCounts, InodeNumbers, Projects, SeenInodes
from iolens.sources.contents.record_fields import RecordText, Spans, Words, record_pieces
from iolens.sources.reading.captures import content_identity, read_each
from iolens.sources.reading.local_time import find_zone
from iolens.sources.reading.options import ReadOptions
from iolens.sources.reading.parsed_numbers import shown
from iolens.sources.reading.saved_text import combined_identity, needed_filesystem, zone_name
from iolens.units import epoch_us

# When a scan was taken, where its file does not tell ------------------------------------------------------------------
# `--at`, else the day in its name, else when it was written.

# 20190115, 2019-01-15, 2019_01_15, 2019.01.15, of the years that had file systems worth scanning.
_DAY: Final = re.compile(r"(?<!\d)((?:19|20)\d\d)([-_.]?)(\d\d)\2(\d\d)(?!\d)")


class ScanTime(NamedTuple):
    """The time, whether somebody said it (then files of one time are parts of one scan), and what to note."""

    time_us: int
    stated: bool
    note: Note | None


def scan_time_of(path: Path, options: ReadOptions) -> ScanTime:
    """The time of the scan in that file. A day without an hour is its beginning, in UTC unless a zone is stated."""
    if options.at is not None:
        return ScanTime(epoch_us(options.at), True, None)
    if (day := _day_in_name(path.name)) is not None:
        zone = zone_name(options, options.filesystem)
        time = day.replace(tzinfo=UTC if zone is None else find_zone(zone, str(path)))
        reason = f"its name dates it {day:%Y-%m-%d}; state the exact time with --at"
        return ScanTime(epoch_us(time), True, Note(str(path), None, reason))
    try:
        written_us = path.stat().st_mtime_ns // 1000
    except OSError as error:
        raise InputError(str(path), f"cannot be read: {error.strerror}") from error
    reason = "it does not tell when it was taken: when the file was last written counts; say the time with --at"
    return ScanTime(written_us, False, Note(str(path), None, reason))


def _day_in_name(name: str) -> datetime | None:
    """The only day a name holds; None where it holds none, or several."""
    days = set()
    for year, _, month, day in _DAY.findall(name):
        try:
            days.add(datetime(int(year), int(month), int(day)))
        except ValueError:
            continue
    return days.pop() if len(days) == 1 else None


def scan_name(identity: str) -> str:
    """What tells a scan from others of the same time: a piece of its content's hash."""
    return identity.rpartition("/")[2][:12]


# Inodes of a listing on their way into `contents` ---------------------------------------------------------------------
# Named types, owners and projects, hard links once, in bins.

FILE, DIRECTORY = "file", "dir"
TYPES: Final = (FILE, DIRECTORY, "symlink", "blk", "chr", "fifo", "sock")
# As `find -printf %y` and the first letter of `ls -l` call them.
TYPE_LETTERS: Final = {
    "f": "file", "-": "file", "d": "dir", "l": "symlink", "b": "blk", "c": "chr", "p": "fifo", "s": "sock",
}  # fmt: skip
UNKNOWN: Final = len(TYPES)
_BY_LETTER: Final = np.full(256, UNKNOWN, np.int64)
for _letter, _name in TYPE_LETTERS.items():
    _BY_LETTER[ord(_letter)] = TYPES.index(_name)

Numbers = NDArray[np.int64]


class Names(NamedTuple):
    """A name of every inode: the different names, and the place among them of each inode's."""

    names: Sequence[str | None]
    places: Numbers


NO_NAME: Final[Sequence[str | None]] = (None,)


@dataclass(slots=True)
class InodeColumns:
    """Some inodes, column by column; None: not reported. Types are places in `TYPES`."""

    types: Numbers
    sizes: Numbers
    allocated: Numbers | None = None
    atimes_s: Numbers | None = None
    mtimes_s: Numbers | None = None
    owners: Names | None = None
    projects: Names | None = None
    inodes: InodeNumbers | None = None
    links: Numbers | None = None
    devices: Numbers | None = None

    def of(self, chosen: NDArray[np.bool_]) -> InodeColumns:
        """Some of them, without names."""
        columns = (self.allocated, self.atimes_s, self.mtimes_s, self.links, self.devices)
        allocated, atimes_s, mtimes_s, links, devices = (
            None if column is None else column[chosen] for column in columns
        )
        inodes = None if self.inodes is None else self.inodes[chosen]
        return InodeColumns(
            self.types[chosen],
            self.sizes[chosen],
            allocated,
            atimes_s,
            mtimes_s,
            inodes=inodes,
            links=links,
            devices=devices,
        )


def type_codes(text: RecordText, spans: Spans) -> Numbers:
    """Types by the first letter of a field, as places in `TYPES`; `UNKNOWN` for any other letter."""
    return np.asarray(_BY_LETTER[text.letters(spans)])


def text_of(value: bytes) -> str:
    """A name as it can be stored: bytes that are no UTF-8 are escaped."""
    return value.decode("utf-8", "backslashreplace")


class PathProjects:
    """Projects by the beginning of a path. No more of it is looked at than the deepest rule has parts."""

    def __init__(self, rule: ProjectRule, decode: Callable[[bytes], bytes] = bytes) -> None:
        self._decode = decode
        self._projects = Projects(rule)
        self._depth = max((directory.count("/") for directory in rule.directories), default=0)
        self._known: dict[bytes, str | None] = {}

    @property
    def has_directories(self) -> bool:
        """Whether a path can tell a project at all."""
        return self._projects.has_directories

    def of_id(self, value: bytes) -> str | None:
        """The project of an id, or of what takes its place, such as a fileset."""
        return self._projects.of_id(text_of(self._decode(value)))

    def of(self, text: RecordText, paths: Spans, types: Numbers) -> Names:
        """The project of every path: a directory's own, and of anything else that of the directory it is in."""
        slashes = text.positions(b"/")
        beginning = text.first(slashes, paths, self._depth + 1)
        if slashes.size:
            last = slashes[np.maximum(np.searchsorted(slashes, paths.end) - 1, 0)]
            above = np.clip(last, paths.begin, paths.end)
            beginning = np.where(types == TYPES.index(DIRECTORY), beginning, np.minimum(beginning, above))
        words = text.words(Spans(paths.begin, beginning))
        return Names([self._of(value) for value in words.values], words.places)

    def _of(self, beginning: bytes) -> str | None:
        if beginning not in self._known:
            self._known[beginning] = self._projects.of_path(text_of(self._decode(beginning)))
        return self._known[beginning]


def owner_names(words: Words) -> Names:
    """Owners as a listing calls them; nothing at all is no name."""
    return Names([text_of(value) or None for value in words.values], words.places)


class ListedInodes:
    """Counts what one scan lists, in however many pieces and files."""

    def __init__(self, time_us: int) -> None:
        self.counts = InodeCounts(time_us)
        self.listed = 0
        self.repeated = 0
        self._seen: dict[int, SeenInodes] = {}

    def add(self, some: InodeColumns) -> None:
        """Count some inodes; of several names of one inode the first counts."""
        self.listed += len(some.sizes)
        first = self._first_names(some)
        self.repeated += int(np.count_nonzero(~first))
        columns = some.of(first)
        codes = self._codes(some)[first]
        self.counts.add(codes, columns.sizes, columns.allocated, atimes_s=columns.atimes_s, mtimes_s=columns.mtimes_s)

    def items(self, filesystem: str, place: str, scan: str) -> Iterator[Item]:
        """Rows of all that was counted."""
        if self.repeated:
            reason = f"{self.repeated} more names of hard-linked files: each file counts once"
            yield Note(place, None, reason)
        if not self.listed:
            yield Problem(place, None, "no inode is listed in it")
        yield from self.counts.rows(filesystem, scan)

    def _first_names(self, some: InodeColumns) -> NDArray[np.bool_]:
        """Which of them are not further names of a file that was counted. Directories have one name."""
        first = np.ones(len(some.sizes), np.bool_)
        if some.inodes is None:
            return first
        linked = some.types != TYPES.index(DIRECTORY)
        if some.links is not None:
            linked &= some.links > 1
        devices = np.zeros(len(first), np.int64) if some.devices is None else some.devices
        for device in np.unique(devices[linked]).tolist():
            here = np.flatnonzero(linked & (devices == device))
            first[here] = self._seen.setdefault(device, SeenInodes()).first_seen(some.inodes[here])
        return first

    def _codes(self, some: InodeColumns) -> Numbers:
        nobody = Names(NO_NAME, np.zeros(len(some.sizes), np.int64))
        owners, projects = some.owners or nobody, some.projects or nobody
        keys = (owners.places * len(projects.names) + projects.places) * len(TYPES) + some.types
        result, places = np.unique(keys, return_inverse=True)
        codes = [self._code(int(key), owners, projects) for key in result]
        return np.array(codes, np.int64)[places]

    def _code(self, key: int, owners: Names, projects: Names) -> int:
        rest, type_place = divmod(key, len(TYPES))
        owner, project = divmod(rest, len(projects.names))
        return self.counts.code(owners.names[owner], projects.names[project], TYPES[type_place])


# Records of a listing whose fields are known by their meaning ---------------------------------------------------------
# Read as numbers, what cannot be read set aside.

TYPE, SIZE, SPACE, ATIME, MTIME = "type", "size", "allocation", "time of access", "time of modification"
INODE, LINKS, DEVICE, OWNER, PATH = "inode", "number of links", "device", "owner", "path"
INODE_DIGITS: Final = 20  # an unsigned number of 64 bits
_SHAPE: Final = -1


class Unread(NamedTuple):
    """A record that could not be read: its place among all, from 0, and why."""

    place: int
    reason: str


class ListedRecords:
    """Some records and their fields. Each column covers all records; `good` says which of them can be used.

    `whole` says which have the fields at all, `expected` what a record looks like, `places` where each stands.
    """

    def __init__(
        self,
        text: RecordText,
        records: Spans,
        places: NDArray[np.int64],
        fields: Mapping[str, Spans],
        whole: NDArray[np.bool_],
        expected: str,
    ) -> None:
        self.text, self.fields = text, fields
        self._records, self._places, self._expected = records, places, expected
        self._meanings = tuple(fields)
        self._failed = np.where(whole, 0, _SHAPE)  # the first field that cannot be read, from 1

    def __len__(self) -> int:
        return len(self._places)

    @property
    def good(self) -> NDArray[np.bool_]:
        """Records of which every field that was asked for could be read."""
        return np.asarray(self._failed == 0)

    def check(self, meaning: str, good: NDArray[np.bool_]) -> None:
        """Set aside records whose field is not `good`."""
        self._failed[(self._failed == 0) & ~good] = self._meanings.index(meaning) + 1

    def types(self, one_letter: bool) -> Numbers:
        """Types by the first letter, or the only one; without such a field all are files."""
        if TYPE not in self.fields:
            return np.zeros(len(self), np.int64)
        values = type_codes(self.text, self.fields[TYPE])
        known = values != UNKNOWN
        self.check(TYPE, known & (self.fields[TYPE].width == 1) if one_letter else known)
        return np.where(known, values, 0)

    def numbers(self, meaning: str, unit: int = 1) -> Numbers | None:
        """Numbers of so many bytes each; None where the field is not reported."""
        if meaning not in self.fields:
            return None
        values, good = self.text.numbers(self.fields[meaning], len(str(LARGEST)))
        self.check(meaning, good & (values <= np.uint64(LARGEST // unit)))
        return values.astype(np.int64) * unit

    def sizes(self) -> Numbers:
        """Sizes in bytes, without which a record counts for nothing."""
        values = self.numbers(SIZE)
        if values is None:
            raise ValueError("a listing tells sizes")
        return values

    def inodes(self) -> InodeNumbers | None:
        """Inode numbers; None where they are not reported."""
        if INODE not in self.fields:
            return None
        values, good = self.text.numbers(self.fields[INODE], INODE_DIGITS)
        self.check(INODE, good)
        return values

    def unread(self) -> list[Unread]:
        """Records that were set aside."""
        return [self._unread(int(place)) for place in np.flatnonzero(self._failed)]

    def _unread(self, place: int) -> Unread:
        failed = int(self._failed[place])
        spans = self._records if failed == _SHAPE else self.fields[self._meanings[failed - 1]]
        value = shown(self.text.of(spans, place).decode("utf-8", "backslashreplace"))
        if failed == _SHAPE:
            return Unread(int(self._places[place]), f"not {self._expected}: {value}")
        return Unread(int(self._places[place]), f"{self._meanings[failed - 1]} {value} cannot be read")


# Files that list inodes one by one, put together to scans -------------------------------------------------------------
# Each format only says how to read a piece of its text.


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
