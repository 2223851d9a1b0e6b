"""Lists that IBM Spectrum Scale's policy engine writes for a LIST rule, and how such a rule lays out its lines."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from functools import partial
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote_to_bytes

import numpy as np
from numpy.typing import NDArray

from iolens.config import ProjectRule
from iolens.errors import InputError
from iolens.records import Capture
from iolens.sources.contents.listings import (
    ATIME,
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
    Names,
    Numbers,
    PathProjects,
    PieceRead,
    listing_captures,
    owner_names,
)
from iolens.sources.contents.record_fields import RecordText, Spans
from iolens.sources.devices.block_devices import refuse_settings
from iolens.sources.reading.bounded_input import unpacked, unpacked_head
from iolens.sources.reading.local_time import QUARTER_S, find_zone
from iolens.sources.reading.options import ReadOptions
from iolens.units import KIB

# How a Spectrum Scale LIST rule lays out its lines, and the lines taken apart by it -----------------------------------
# A line is `inode generation snapshot  SHOW -- path`; some lists put `<n>` before the inode. SHOW is a chain of
# attributes between separators. With ESCAPE, bytes of SHOW and path are written `%XX`.

FILESET: Final = "fileset"
MEANINGS: Final = {
    "FILE_SIZE": SIZE, "KB_ALLOCATED": SPACE, "NLINK": LINKS, "MODE": TYPE, "USER_ID": OWNER, "FILESET_NAME": FILESET,
    "ACCESS_TIME": ATIME, "MODIFICATION_TIME": MTIME,
}  # fmt: skip
IGNORED: Final = frozenset({"", "GROUP_ID", "POOL_NAME", "MISC_ATTRIBUTES", "NAME", "FILE_HEAT", "INODE", "GENERATION"})
IGNORED_TIMES: Final = frozenset({"CREATION_TIME", "CHANGE_TIME"})
SETTINGS: Final = ("fields", "separator", "escaped", "timezone")
DEFAULT_FIELDS: Final = tuple(MEANINGS)
SEPARATORS: Final = "|;,!#*+~^$&/ \t"
NO_TIME: Final = SEPARATORS + ":"  # which every time holds
ROOT_FILESET: Final = b"root"  # what belongs to no other one
DELIMITER: Final = b" -- "
TIME_WIDTH: Final = len("2019-01-15 10:02:03")
_WHERE: Final = "[sources.gpfs-policy]"
_MESSAGE: Final = b"[I]"  # what the policy engine says of itself
_EPOCH: Final = datetime(1970, 1, 1)


@dataclass(frozen=True, slots=True)
class ListLayout:
    """What SHOW prints, in order, and what is between; whether `%XX` stands for bytes; the zone of its times."""

    fields: tuple[str, ...] = DEFAULT_FIELDS
    separator: str = "|"
    escaped: bool = True
    zone: tzinfo = UTC

    terminator = b"\n"

    def projects(self, rule: ProjectRule) -> PathProjects:
        """Projects by path, `%XX` undone."""
        return PathProjects(rule, unquote_to_bytes if self.escaped else bytes)

    def read(self, piece: bytes, projects: PathProjects) -> PieceRead:
        """A piece of whole lines."""
        return _PolicyLines(self, self._unescaped(piece)).read(projects)

    def _unescaped(self, piece: bytes) -> bytes:
        """The characters that make up a line's shape as they are, whatever the rule chose to escape."""
        if not self.escaped or b"%" not in piece:
            return piece
        for character in {*" /:@=", self.separator}:
            for code in {f"%{ord(character):02X}", f"%{ord(character):02x}"}:
                piece = piece.replace(code.encode(), character.encode())
        return piece


def layout_of(settings: Mapping[str, Any], timezone: str | None) -> ListLayout:
    """`[sources.gpfs-policy]`, checked. Times are UTC, as the policy engine has them, unless a zone is stated."""
    fields = settings.get("fields", list(DEFAULT_FIELDS))
    if not isinstance(fields, list) or not all(isinstance(field, str) for field in fields):
        raise InputError(_WHERE, f"fields = {fields!r}", 'a list of attributes, such as ["FILE_SIZE", "USER_ID"]')
    names = tuple(field.strip().upper() for field in fields)
    for name in names:
        if name not in MEANINGS and name not in IGNORED | IGNORED_TIMES:
            known = ", ".join(sorted({*MEANINGS, *IGNORED, *IGNORED_TIMES} - {""}))
            raise InputError(_WHERE, f"fields: {name!r} is not known", f'one of {known}, or "" for any other')
    reported = [name for name in names if name in MEANINGS]
    if "FILE_SIZE" not in reported or len(set(reported)) < len(reported):
        raise InputError(_WHERE, f"fields = {fields!r}", "FILE_SIZE among them, and each once")
    separator = settings.get("separator", "|")
    has_times = any(_is_time(name) for name in names)
    if not isinstance(separator, str) or len(separator) != 1 or separator not in (SEPARATORS if has_times else NO_TIME):
        raise InputError(_WHERE, f"separator = {separator!r}", f"one character that no value holds, of {SEPARATORS!r}")
    escaped = settings.get("escaped", True)
    if not isinstance(escaped, bool):
        raise InputError(_WHERE, f"escaped = {escaped!r}", "true or false: whether the list has ESCAPE '%'")
    zone = find_zone(timezone or str(settings.get("timezone", "UTC")), _WHERE)
    return ListLayout(names, separator, escaped, zone)


def _is_time(name: str) -> bool:
    return name in IGNORED_TIMES or MEANINGS.get(name) in (ATIME, MTIME)


class _PolicyLines:
    """Lines of one piece of a list."""

    def __init__(self, layout: ListLayout, piece: bytes) -> None:
        self._layout = layout
        self._text = text = RecordText(piece, ListLayout.terminator)
        self._terminated = len(text.records.begin)
        said = np.isin(text.records.begin, text.positions(_MESSAGE))
        places = np.flatnonzero((text.records.width > 0) & ~said)
        records = text.records.of(places)
        fields, whole = self._fields(records)
        expected = f"a line of `inode generation snapshot  {layout.separator.join(layout.fields)} -- path`"
        self._records = ListedRecords(text, records, places, fields, whole, expected)

    def read(self, projects: PathProjects) -> PieceRead:
        """What the lines list."""
        records = self._records
        everything = InodeColumns(
            types=records.types(one_letter=False),
            sizes=records.sizes(),
            allocated=records.numbers(SPACE, KIB),
            atimes_s=self._seconds(ATIME),
            mtimes_s=self._seconds(MTIME),
            inodes=records.inodes(),
            links=records.numbers(LINKS),
        )
        good = records.good
        listed = everything.of(good)
        if OWNER in records.fields:
            listed.owners = owner_names(self._text.words(records.fields[OWNER].of(good)))
        listed.projects = self._projects(projects, good, listed.types)
        return PieceRead(listed, records.unread(), self._terminated)

    def _fields(self, records: Spans) -> tuple[dict[str, Spans], NDArray[np.bool_]]:
        text = self._text
        delimiter = text.first(text.positions(DELIMITER), records)
        blanks = text.positions(b" ")
        begin = records.begin
        numbered = text.letters(records) == ord("<")
        begin = np.where(numbered, text.first(blanks, records) + 1, begin)
        head = Spans(begin, np.maximum(delimiter, begin))
        inode_end, snapshot_end = text.first(blanks, head), text.first(blanks, head, 2)
        show = self._trimmed(Spans(np.minimum(snapshot_end + 1, head.end), head.end))
        pieces, whole = text.split(show, self._layout.separator.encode(), self._pieces, 0, False)
        fields = {INODE: Spans(begin, inode_end), PATH: Spans(np.minimum(delimiter + 4, records.end), records.end)}
        whole &= delimiter < records.end
        place = 0
        for name in self._layout.fields:
            last = place + self._width(name) - 1
            if name in MEANINGS:
                fields[MEANINGS[name]] = self._unlabelled(Spans(pieces[place].begin, pieces[last].end))
            place = last + 1
        return fields, whole

    @property
    def _pieces(self) -> int:
        return sum(self._width(name) for name in self._layout.fields)

    def _width(self, name: str) -> int:
        """How many pieces between separators an attribute takes: a time has a blank within."""
        return 2 if _is_time(name) and self._layout.separator == " " else 1

    def _trimmed(self, spans: Spans) -> Spans:
        """Without the blank that may precede or follow SHOW."""
        begin = spans.begin + (self._text.letters(spans) == ord(" "))
        last = np.maximum(spans.end - 1, 0)
        return Spans(begin, spans.end - ((spans.end > begin) & (self._text.bytes[last] == ord(" "))))

    def _unlabelled(self, spans: Spans) -> Spans:
        """The value after `name=`, where a rule writes such."""
        sign = self._text.first(self._text.positions(b"="), spans)
        return Spans(np.where(sign < spans.end, sign + 1, spans.begin), spans.end)

    def _seconds(self, meaning: str) -> Numbers | None:
        if meaning not in self._records.fields:
            return None
        local_s, good = _local_seconds(self._text, self._records.fields[meaning])
        self._records.check(meaning, good)
        return local_s - _offsets(np.where(good, local_s, 0), self._layout.zone)

    def _projects(self, projects: PathProjects, good: NDArray[np.bool_], types: Numbers) -> Names | None:
        """By path where a rule finds one, else by fileset."""
        fields = self._records.fields
        by_path = projects.of(self._text, fields[PATH].of(good), types) if projects.has_directories else None
        if FILESET not in fields:
            return by_path
        words = self._text.words(fields[FILESET].of(good))
        by_fileset = Names(
            [None if value == ROOT_FILESET else projects.of_id(value) for value in words.values], words.places
        )
        if by_path is None:
            return by_fileset
        keys = by_path.places * len(by_fileset.names) + by_fileset.places
        result, places = np.unique(keys, return_inverse=True)
        pairs = (divmod(int(key), len(by_fileset.names)) for key in result)
        return Names([by_path.names[path] or by_fileset.names[fileset] for path, fileset in pairs], places)


def _local_seconds(text: RecordText, spans: Spans) -> tuple[Numbers, NDArray[np.bool_]]:
    """Seconds since 1970 on the clock that `2019-01-15 10:02:03.000000` was read from, and which fields are such."""
    good = spans.width >= TIME_WIDTH
    begin = np.where(good, spans.begin, 0)
    parts = []
    for first, last in ((0, 4), (5, 7), (8, 10), (11, 13), (14, 16), (17, 19)):
        values, digits = text.numbers(Spans(begin + first, begin + last), 4)
        parts.append(values.astype(np.int64))
        good &= digits
    for place in (4, 7):
        good &= text.bytes[begin + place] == ord("-")
    year, month, day, hour, minute, second = parts
    good &= (month >= 1) & (month <= 12) & (day >= 1) & (hour < 24) & (minute < 60) & (second <= 60)
    months = (np.where(good, year, 1970) - 1970) * 12 + np.where(good, month, 1) - 1
    days = months.astype("datetime64[M]").astype("datetime64[D]").astype(np.int64) + day - 1
    good &= (months + 1).astype("datetime64[M]").astype("datetime64[D]").astype(np.int64) > days
    return np.where(good, days * 86_400 + hour * 3600 + minute * 60 + second, 0), good


def _offsets(local_s: Numbers, zone: tzinfo) -> Numbers:
    """Seconds that local time is ahead of UTC. Of an hour that the clock gave twice it is the first one."""
    if zone is UTC:
        return np.zeros(len(local_s), np.int64)
    quarters, places = np.unique(local_s // QUARTER_S, return_inverse=True)
    offsets = [zone.utcoffset(_EPOCH + timedelta(seconds=int(quarter) * QUARTER_S)) for quarter in quarters]
    return np.array([0 if item is None else round(item.total_seconds()) for item in offsets], np.int64)[places]


# Lists that IBM Spectrum Scale's policy engine writes for a LIST rule -------------------------------------------------
# `mmapplypolicy -I defer -f PREFIX`.
#
# By default SHOW prints what `contrib/gpfs-policy.rules` asks for; other rules are reported in `[sources.gpfs-policy]`.
# Written from the public documentation: no list of a real system was at hand.

TRIED_LINES: Final = 100
_LINE: Final = re.compile(rb"(?:<\d+> )?\d+ \d+ \d+ (?:.* )?-- (?:/|%2[Ff])", re.DOTALL)


class GpfsPolicy:
    """Lists of the policy engine."""

    name = "gpfs-policy"
    summary = "lists that a LIST rule of IBM Spectrum Scale's `mmapplypolicy -I defer` writes; plain or gzip"

    def recognises(self, path: Path, head: bytes) -> bool:
        """Whether most of the first lines are `inode generation snapshot … -- /path`."""
        return _is_list(unpacked(head))

    def captures(self, paths: Sequence[Path], options: ReadOptions) -> Iterator[Capture]:
        """One capture per scan: files of one stated time are its parts."""
        refuse_settings(options, "gpfs-policy", _WHERE, SETTINGS)
        layout = layout_of(options.settings, options.timezone)
        said = {"layout": layout if layout != ListLayout() else None}
        yield from listing_captures(paths, options, partial(_reader, layout=layout), said)


SOURCE: Final = GpfsPolicy()


def _reader(path: Path, layout: ListLayout) -> ListLayout:
    """The layout, if the file is such a list at all."""
    head = unpacked_head(path)
    if not _is_list(head):
        problem = "its first lines are none of a policy list" if head else "empty file"
        raise InputError(str(path), problem, "lines of `inode generation snapshot  SHOW -- /path`")
    return layout


def _is_list(head: bytes) -> bool:
    lines = [line for line in head.split(b"\n")[:-1][:TRIED_LINES] if line.strip() and not line.startswith(b"[I]")]
    return 2 * sum(_LINE.match(line) is not None for line in lines) > len(lines)
