"""Saved output of `lfs df` and `lfs df -i`: how full each OST and MDT is, once or as a stamped series.

Several file systems may follow one another. A line `BEGIN <epoch seconds>`, or an ISO-8601 time alone on a line, says
when the lists after it were taken; bytes and inodes of one time become one row.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, NamedTuple
from zoneinfo import ZoneInfo

from iolens.records import Item, Note, Problem
from iolens.schema import LARGEST
from iolens.sources.reading.batches import ROWS_PER_BATCH, RowBatch, within
from iolens.sources.reading.bounded_input import Line, numbered_lines, unpacked
from iolens.sources.reading.captures import FileSource, refuse_empty
from iolens.sources.reading.options import ReadOptions
from iolens.sources.reading.parsed_numbers import count_or_none, shown
from iolens.sources.reading.saved_text import supplied_identity
from iolens.units import KIB, epoch_us, parse_local_time

BLOCKS, INODES, HUMAN = "1K-blocks", "Inodes", "bytes"  # what the second column of the heading says

_HEADING: Final = re.compile(
    r"UUID\s++(1K-blocks|Inodes|bytes)\s++I?Used\s++(?:Available|IFree)\s++I?Use%\s++Mounted on\s*+"
)
_HEADING_HEAD: Final = re.compile(
    rb"^UUID\s++(?:1K-blocks|Inodes|bytes)\s++I?Used\s++\w++\s++I?Use%\s++Mounted on", re.MULTILINE
)
_TARGET: Final = re.compile(r"(\S++)\s++(\d++)\s++(\d++)\s++(\d++)\s++(?:\d++%|-)\s++(\S.*+)")
_TARGET_END: Final = re.compile(r"(OST|MDT):\d++[^\]]*+\][\sA-Za-z]*+")  # after the last bracket of a line
_SUMMARY: Final = re.compile(r"filesystem[ _]summary:\s++(\d++)\s++(\d++)\s++(\d++)\s++(?:\d++%|-)\s++(\S.*+)")
_SUMMARY_START: Final = re.compile(r"filesystem[ _]summary:")
_BEGIN: Final = re.compile(r"BEGIN\s++(\d{9,11})(?:\.(\d{1,9}))?\s*+")
_ISO: Final = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d\S*")
_NAME: Final = re.compile(r"(?:(.+)-)?((?:OST|MDT)[0-9a-fA-F]{4})")


class LineSizes(NamedTuple):
    """The three numbers of a line: KiB, or inodes."""

    total: int
    used: int
    available: int


@dataclass(slots=True)
class _List:
    """One list from its heading to its summary."""

    unit: str
    line: int
    sums: list[int] = field(default_factory=lambda: [0, 0, 0])
    targets: int = 0
    complete: bool = True


class LfsDf(FileSource):
    """Saved output of `lfs df`."""

    name = "lfs-df"
    summary = "saved output of `lfs df` and `lfs df -i`, single or with `BEGIN <epoch>` lines; plain or gzip"

    def recognises(self, path: Path, head: bytes) -> bool:
        """Whether some line is the heading of such a list."""
        text = unpacked(head)
        return b"Mounted on" in text and _HEADING_HEAD.search(text) is not None

    def open(self, path: Path, options: ReadOptions) -> _SavedLists:
        """The file, if it can be read."""
        refuse_empty(path, "output of `lfs df`")
        supplied = {"filesystem": options.filesystem, "at": options.at, "timezone": options.timezone}
        identity = supplied_identity(path, **supplied, since=options.since, until=options.until)
        return _SavedLists(path, options, identity)


SOURCE: Final = LfsDf()


@dataclass(frozen=True, slots=True)
class _SavedLists:
    path: Path
    options: ReadOptions
    identity: str

    def items(self) -> Iterator[Item]:
        return within(_ListReader(str(self.path), self.options).items(numbered_lines(self.path)), self.options)


class _ListReader:
    """Reads lists line by line; a new time ends the rows of the one before."""

    def __init__(self, place: str, options: ReadOptions) -> None:
        self.place, self.options = place, options
        self.time_us = epoch_us(options.at) if options.at is not None else None
        self.open: _List | None = None
        self.lists = 0
        self.rows: dict[tuple[str, str], dict[str, object]] = {}  # of this time, by file system and target
        self.mounts: dict[tuple[str, str, str], str] = {}  # where each target and unit was first listed
        self.batch = RowBatch()

    def items(self, lines: Iterator[Line | Problem]) -> Iterator[Item]:
        for line in lines:
            yield from [line] if isinstance(line, Problem) else self._line(line)
            if self.batch.count >= ROWS_PER_BATCH:
                yield from self.batch.flush()
        yield from self._close_list()
        yield from self._close_reading()
        yield from self.batch.flush()
        if not self.lists:
            yield Problem(self.place, None, "no list of `lfs df` in it: no heading `UUID 1K-blocks Used Available …`")

    def _line(self, line: Line) -> Iterator[Item]:
        text = line.text
        if self.open is not None and (target := _target(text)) is not None:
            yield from self._target(line.number, target)
        elif not text.strip():
            return
        elif (heading := _HEADING.fullmatch(text)) is not None:
            yield from self._begin_list(heading[1], line.number)
        elif (stamp := self._stamp(text)) is not None:
            yield from self._begin_time(stamp)
        elif _SUMMARY_START.match(text):
            yield from self._end_list(line)
        else:
            yield from self._other(line)

    def _other(self, line: Line) -> Iterator[Item]:
        if self.open is not None:
            self.open.complete = False
            name, colon, why = line.text.partition(": ")
            if colon and why.strip() and len(name.split()) == 1:
                reason = f"{shown(name)} did not answer: {shown(why)}; it has no row"
                yield Note(self.place, line.number, reason)
                return
            if self.open.unit == HUMAN:
                return  # said once, at the heading
        yield Problem(self.place, line.number, f"not a line of `lfs df`: {shown(line.text)}")

    def _stamp(self, text: str) -> int | None:
        if (match := _BEGIN.fullmatch(text)) is not None:
            return int(match[1]) * 1_000_000 + int((match[2] or "")[:6].ljust(6, "0"))
        if _ISO.fullmatch(text.strip()) is None:
            return None
        try:
            time = parse_local_time(text)
        except ValueError:
            return None
        return epoch_us(time if time.tzinfo is not None else self._in_zone(time))

    def _in_zone(self, time: datetime) -> datetime:
        return time.replace(tzinfo=ZoneInfo(self.options.timezone) if self.options.timezone else UTC)

    def _begin_time(self, stamp: int) -> Iterator[Item]:
        yield from self._close_list()
        yield from self._close_reading()
        self.time_us = stamp

    def _close_reading(self) -> Iterator[Item]:
        if self.rows and self.time_us is None:
            yield Problem(self.place, None, "nothing here tells the time: supply it with --at")
        elif self.time_us is not None:
            for row in self.rows.values():
                self.batch.add("target_capacity", {"time": self.time_us, **row})
        self.rows, self.mounts = {}, {}

    def _begin_list(self, unit: str, number: int) -> Iterator[Item]:
        yield from self._close_list()
        self.open = _List(unit, number)
        self.lists += 1
        if unit == HUMAN:
            self.open.complete = False
            yield Problem(self.place, number, "sizes of `lfs df -h` are rounded: left out; capture it without -h")

    def _close_list(self) -> Iterator[Item]:
        """A list that no summary ended: the capture was cut, or another list begins within it."""
        if self.open is not None and self.open.unit != HUMAN:
            yield Problem(self.place, self.open.line, "this list has no summary: it may be cut, and lack targets")
        self.open = None

    def _end_list(self, line: Line) -> Iterator[Item]:
        ended, self.open = self.open, None
        if ended is None or ended.unit == HUMAN:
            return
        match = _SUMMARY.fullmatch(line.text)
        if match is None:
            yield Problem(self.place, line.number, f"summary not understood: {shown(line.text)}")
        elif ended.unit == BLOCKS and ended.complete:
            yield from self._check(ended, [count_or_none(match[place]) for place in (1, 2, 3)], line.number)

    def _check(self, ended: _List, summary: list[int | None], number: int) -> Iterator[Item]:
        """The summary adds up the OSTs; each line may be rounded down by a KiB."""
        for what, said, value in zip(("total", "used", "available"), summary, ended.sums, strict=True):
            if said is None or abs(said - value) > ended.targets:
                reason = f"the summary says {said} KiB {what}, the OSTs above add up to {value}"
                yield Problem(self.place, number, reason)

    def _target(self, number: int, target: _ListedTarget) -> Iterator[Item]:
        current = self.open
        if current is None or current.unit == HUMAN:
            return
        name, mount, kind = target.name.removesuffix("_UUID"), target.mount, target.kind
        total, used, available = (count_or_none(size, LARGEST // KIB) for size in target.sizes)
        named = _NAME.fullmatch(name)
        filesystem = (named[1] if named else None) or self.options.filesystem
        if total is None or used is None or available is None or max(used, available) > total:
            current.complete = False
            yield Problem(self.place, number, f"{shown(name)}: impossible sizes {shown(', '.join(target.sizes))}")
        elif filesystem is None:
            yield Problem(
                self.place, number, f"{shown(name)} does not name its file system: supply it with --filesystem"
            )
        else:
            if kind == "ost":
                current.targets += 1
                current.sums = [
                    value + more for value, more in zip(current.sums, (total, used, available), strict=True)
                ]
            sizes = LineSizes(total, used, available)
            yield from self._row(current.unit, filesystem, name, kind, mount, sizes, number)

    def _row(
        self, unit: str, filesystem: str, name: str, kind: str, mount: str, sizes: LineSizes, number: int
    ) -> Iterator[Item]:
        seen = self.mounts.setdefault((unit, filesystem, name), mount)
        row = self.rows.setdefault(
            (filesystem, name), {"filesystem": filesystem, "target": name, "target_kind": kind}
        )  # fmt: skip
        columns = _columns(unit, sizes)
        if columns.keys().isdisjoint(row):
            row.update(columns)
        elif seen == mount:  # the same file system at another mount point says the same once more
            reason = f"{name} again, and no time tells when: left out; put `BEGIN <epoch>` lines between the lists"
            yield Problem(self.place, number, reason)


class _ListedTarget(NamedTuple):
    """One line of a list, taken apart."""

    name: str
    sizes: tuple[str, str, str]
    mount: str
    kind: str


def _target(text: str) -> _ListedTarget | None:
    """A line such as `lake-OST0000_UUID 2000 500 1400 27% /lake[OST:0]`; None for any other."""
    line, bracket, end = text.rpartition("[")
    tail = _TARGET_END.fullmatch(end) if bracket else None
    match = _TARGET.fullmatch(line) if tail else None
    if tail is None or match is None:
        return None
    return _ListedTarget(match[1], (match[2], match[3], match[4]), match[5], tail[1].lower())


def _columns(unit: str, sizes: LineSizes) -> Mapping[str, object]:
    if unit == INODES:
        return {"total_inodes": sizes.total, "used_inodes": sizes.used, "free_inodes": sizes.available}
    return {
        "total_bytes": sizes.total * KIB,
        "used_bytes": sizes.used * KIB,
        "free_bytes": (sizes.total - sizes.used) * KIB,
        "available_bytes": sizes.available * KIB,
    }
