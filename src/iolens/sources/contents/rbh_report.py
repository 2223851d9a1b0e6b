"""Saved output of Robinhood's `rbh-report`: totals by owner and type, aligned or `--csv`, with a size profile or none.

The heading tells what is there: `--user-info`, `--group-info`, `--fs-info` and `--top-users`, of versions 2 and 3.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Final

from iolens.errors import InputError
from iolens.records import Item, Note, Problem
from iolens.schema import LARGEST
from iolens.sources.contents.robinhood import Account, Accounts
from iolens.sources.contents.robinhood_entries import TYPES
from iolens.sources.reading.bounded_input import Line, numbered_lines, unpacked
from iolens.sources.reading.captures import FileSource
from iolens.sources.reading.options import ReadOptions
from iolens.sources.reading.parsed_numbers import count, count_or_none, shown
from iolens.sources.reading.saved_text import cells_of, needed_filesystem, supplied_identity
from iolens.units import SECOND_US, epoch_us

PROFILE: Final = (
    "0", "1~31", "32~1K-", "1K~31K", "32K~1M-", "1M~31M", "32M~1G-", "1G~31G", "32G~1T-", "+1T",
)  # fmt: skip
OWNER, GROUP, TYPE, COUNT, VOLUME, USED = "user", "group", "type", "count", "volume", "spc_used"
# Columns that tell nothing that is kept.
OTHERS: Final = frozenset({"rank", "status", "avg_size", "min_size", "max_size"})
KNOWN: Final = frozenset({OWNER, GROUP, TYPE, COUNT, VOLUME, USED, *OTHERS})
_HEADING_LINES: Final = 40  # a heading comes within so many lines
_UNITS: Final = {unit: 1 << 10 * power for power, unit in enumerate(("", "KB", "MB", "GB", "TB", "PB", "EB"))}
_SIZE: Final = re.compile(r"(?P<number>\d{1,19}(?:\.\d{1,6})?)(?: (?P<unit>[KMGTPE]B))?")
_TOTAL: Final = re.compile(r"Total: (?P<entries>\d++) entries\b.*+")
_FILTER: Final = re.compile(r"filter (path|class): .+", re.IGNORECASE)
_CHATTER: Final = re.compile(r"Using config file .*")


class RbhReport(FileSource):
    """Reports of Robinhood."""

    name = "rbh-report"
    summary = "saved output of Robinhood's rbh-report: totals by owner and type, text or CSV"

    def recognises(self, path: Path, head: bytes) -> bool:
        """Whether one of the first lines is a heading of such a report."""
        lines = unpacked(head).decode("utf-8", "replace").splitlines()[:_HEADING_LINES]
        return any(heading_of(line) is not None for line in lines)

    def open(self, path: Path, options: ReadOptions) -> ReportFile:
        """The file, if it can be read."""
        filesystem = needed_filesystem(options, str(path))
        if options.settings:
            raise InputError(str(path), f"unknown key sources.rbh-report.{next(iter(options.settings))}", "none")
        try:
            written_us = int(path.stat().st_mtime) * SECOND_US
            identity = supplied_identity(path, filesystem=filesystem, at=options.at)
        except OSError as error:
            raise InputError(str(path), f"cannot be read: {error.strerror}") from error
        time_us = written_us if options.at is None else epoch_us(options.at)
        return ReportFile(path, filesystem, time_us, options.at is not None, identity)


SOURCE: Final = RbhReport()


@dataclass(frozen=True, slots=True)
class Heading:
    """The columns of a report, in their order."""

    columns: tuple[str, ...]

    @property
    def has_profile(self) -> bool:
        """Whether there is a size profile."""
        return set(PROFILE) <= set(self.columns)

    @property
    def kind(self) -> str:
        """Which report it is, as the command's option calls it: different ones of one time must not be added up."""
        if OWNER in self.columns:
            return "top-users" if self.is_ranking else "user-info"
        return "group-info" if GROUP in self.columns else "fs-info"

    @property
    def is_ranking(self) -> bool:
        """Whether only the first of a ranking are listed."""
        return "rank" in self.columns


def heading_of(line: str) -> Heading | None:
    """The heading in a line, if it is one: columns that are all known, a count, and something that is counted."""
    columns = tuple(_profile_name(cell) for cell in cells_of(line))
    known = set(columns)
    if not ({TYPE, OWNER} & known and COUNT in known and {VOLUME, USED} & known):
        return None
    is_whole = known.isdisjoint(PROFILE) or known >= set(PROFILE)
    return Heading(columns) if is_whole and known <= KNOWN | set(PROFILE) and len(known) == len(columns) else None


def _profile_name(cell: str) -> str:
    """The web interface writes `32~1K` where the command writes `32~1K-`."""
    return f"{cell}-" if f"{cell}-" in PROFILE else cell


@dataclass(slots=True)
class _Text:
    """A report while it is read."""

    place: str
    accounts: Accounts
    heading: Heading | None = None
    is_other: bool = False  # within a second report of another kind
    seen: set[tuple[str, ...]] = field(default_factory=set)
    rounded: bool = False
    since_total: int = 0

    def take(self, line: Line) -> Iterator[Problem]:
        """One line that is not blank."""
        heading, stripped = heading_of(line.text), line.text.strip()
        if heading is not None:
            yield from self._begin(heading, line)
        elif match := _TOTAL.fullmatch(stripped):
            yield from self._end(match["entries"], line)
        elif _FILTER.fullmatch(stripped):
            raise InputError(self.place, f"a report of a part only: {stripped}", "one without a filter", line.number)
        elif _CHATTER.fullmatch(stripped) or self.is_other:
            return
        elif self.heading is None:
            yield Problem(self.place, line.number, f"before the heading: {shown(line.text)}")
        else:
            try:
                self._row(self.heading, line.text)
            except ValueError as error:
                yield Problem(self.place, line.number, str(error))

    def _begin(self, heading: Heading, line: Line) -> Iterator[Problem]:
        self.is_other = self.heading is not None and heading != self.heading
        if self.is_other:
            reason = "another report in the same file: left out, it needs a file of its own"
            yield Problem(self.place, line.number, reason)
        else:
            self.heading, self.since_total = heading, 0

    def _end(self, entries: str, line: Line) -> Iterator[Problem]:
        """The report's own total: where it differs, rows are missing."""
        if not self.is_other and count_or_none(entries) != self.since_total:
            reason = f"the report's total is {entries[:20]} entries, its rows have {self.since_total}"
            yield Problem(self.place, line.number, reason)
        self.since_total = 0

    def _row(self, heading: Heading, text: str) -> None:
        cells = cells_of(text)
        if len(cells) != len(heading.columns):
            raise ValueError(f"{len(cells)} columns, the heading has {len(heading.columns)}: {shown(text)}")
        row = dict(zip(heading.columns, cells, strict=True))
        key = tuple(row.get(name, "") for name in (OWNER, GROUP, TYPE, "status"))
        if key in self.seen:
            raise ValueError(f"{' '.join(filter(None, key))} comes twice: {shown(text)}")
        inode_type = row.get(TYPE, "file")  # rankings of users count files alone
        if inode_type not in TYPES:
            raise ValueError(f"type {shown(inode_type)} is not known")
        inodes = count(row[COUNT], COUNT)
        profile = [count(row[name], name) for name in PROFILE] if heading.has_profile else None
        account = Account(inodes, self._size(row, VOLUME), self._size(row, USED), profile)
        self.seen.add(key)
        self.since_total += inodes
        if inodes:
            self.accounts.add((row.get(OWNER) or None, inode_type), account)

    def _size(self, row: dict[str, str], name: str) -> int | None:
        if name not in row:
            return None
        match = _SIZE.fullmatch(row[name])
        if match is None:
            raise ValueError(f"{name} {shown(row[name])} is no size")
        size = round(Decimal(match["number"]) * _UNITS[match["unit"] or ""])
        if size > LARGEST:
            raise ValueError(f"{name} {shown(row[name])} is more than a number can hold")
        self.rounded |= match["unit"] is not None
        return size


@dataclass(frozen=True, slots=True)
class ReportFile:
    """One file, and how to read it again."""

    path: Path
    filesystem: str
    time_us: int
    is_stated: bool
    identity: str

    def items(self) -> Iterator[Item]:
        """Rows of `contents`, and what was not understood."""
        place = str(self.path)
        text = _Text(place, Accounts(place))
        for line in numbered_lines(self.path):
            if isinstance(line, Problem):
                yield line
            elif line.text.strip():
                yield from text.take(line)
        if text.heading is None:
            expected = "a heading such as: user, type, count, volume, spc_used, avg_size"
            raise InputError(place, "no report of rbh-report", expected)
        yield from self._notes(text, text.heading)
        yield from text.accounts.rows(self.filesystem, self.time_us, text.heading.kind)
        if not text.accounts.accounts:
            yield Problem(place, None, "no row that could be read below the heading")

    def _notes(self, text: _Text, heading: Heading) -> Iterator[Note]:
        if not self.is_stated:
            reason = "a report does not tell its time: taken for that of the file; supply it with --at"
            yield Note(text.place, None, reason)
        if text.rounded:
            yield Note(text.place, None, "sizes are rounded to two decimals: rbh-report --csv prints them in full")
        if heading.is_ranking:
            yield Note(text.place, None, "a ranking lists the first owners only, and files alone")
        if GROUP in heading.columns:
            yield Note(text.place, None, "groups are added up: there is no place for them")
