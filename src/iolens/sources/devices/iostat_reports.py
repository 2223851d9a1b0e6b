"""What iostat printed, report by report, without judging it: text tables of any layout, and JSON.

Tables are read by the names of their columns. A report that is cut off is a problem; those before it are kept.
"""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from iolens.records import Note, Problem
from iolens.sources.reading.bounded_input import LongLine, text_of
from iolens.sources.reading.parsed_numbers import number_in_json, real, shown

KIB: Final = 1024
# `--human` shortens what counts bytes: the value carries its own unit.
UNITS: Final = {"s": 512, "B": 1, "k": KIB, "M": KIB**2, "G": KIB**3, "T": KIB**4, "P": KIB**5}

BANNER: Final = re.compile(r"\S+ \S+ \((?P<host>[^)\s]+)\)\s+(?P<day>\d\S*)(?:\s|$)")
STAMP: Final = re.compile(
    r"(?:Time: )?(?:(?P<day>\d{1,4}[-/.]\d{1,2}[-/.]\d{1,4})[T ])?(?P<time>\d{1,2}:\d\d:\d\d)"
    r"(?: ?(?P<half>[AP]M))?(?P<zone>Z|[+-]\d\d:?\d\d)?"
)
_NUMBER: Final = re.compile(r"(\d++(?:[.,]\d++)?)([sBkMGTP%]?)")
_STATISTICS: Final = re.compile(r'"statistics"\s*+:\s*+\[')
_FIELD: Final = re.compile(r'"(nodename|date)"\s*+:\s*+"([^"]*+)"')
_PAST: Final = re.compile(r"[^ \t\r\n,]")
LARGEST_VALUE: Final = 2.0**53  # of bytes or requests per second: no device is near it
LONGEST_REPORT: Final = 16 << 20  # of ten thousand devices
LONGEST_HEADING: Final = 4096
_DEVICE_KEYS: Final = ("disk_device", "disk-device")


class Banner(NamedTuple):
    """iostat's first line: which machine, which day."""

    host: str | None = None
    day: str | None = None


@dataclass(slots=True)
class IostatReport:
    """One report: its columns by device. Bytes that carried a unit of their own are in `sized`, in bytes."""

    line: int | None = None
    stamp: str | None = None
    blank_lines: int = 0  # before it
    columns: dict[str, dict[str, float]] = field(default_factory=dict)
    sized: dict[str, dict[str, float]] = field(default_factory=dict)

    def put(self, device: str, columns: Sequence[str], texts: Sequence[str]) -> None:
        """Add one line; ValueError when a value is none."""
        result, sized = {}, {}
        for column, text in zip(columns, texts, strict=True):
            match = _NUMBER.fullmatch(text)
            if match is None:
                raise ValueError(f"{column} {shown(text)} is not a number")
            number, unit = match.groups()
            result[column] = real(number.replace(",", "."), column, largest=LARGEST_VALUE)
            if unit in UNITS:
                sized[column] = result[column] * UNITS[unit]
        self.columns.setdefault(device, {}).update(result)
        if sized:
            self.sized.setdefault(device, {}).update(sized)

    @property
    def shape(self) -> set[str]:
        """Every column it has."""
        return {name for columns in self.columns.values() for name in columns}


Parsed = Banner | IostatReport | Problem


def read_text(lines: Iterable[bytes | LongLine], place: str) -> Iterator[Parsed]:
    """The banners and reports of a text, in its order."""
    return _TextReader(place).read(lines)


@dataclass(slots=True)
class _TextReader:
    place: str
    report: IostatReport | None = None
    columns: list[str] | None = None  # of the table we are in
    name_first: bool = True
    long_name: str | None = None  # old versions give a long name a line of its own
    in_processor: bool = False
    blank_lines: int = 0
    shape: set[str] | None = None  # of the first report
    lost: bool = False

    def read(self, lines: Iterable[bytes | LongLine]) -> Iterator[Parsed]:
        number = 0
        for number, raw in enumerate(lines, 1):
            if isinstance(raw, LongLine):
                yield raw.problem(self.place, number)
                continue
            line = text_of(raw).rstrip()
            if not line:
                self.blank_lines += 1
                self.columns, self.in_processor, self.lost = None, False, False
                continue
            if not raw.endswith(b"\n"):
                yield Problem(self.place, number, "the file ends within this line: left out")
                break
            yield from self._line(line, number)
            self.blank_lines = 0
        yield from self._end(is_whole=self.blank_lines > 0, number=number)

    def _line(self, line: str, number: int) -> Iterator[Parsed]:
        words = line.split()
        if (banner := BANNER.match(line)) is not None:
            yield from self._end()
            yield Banner(banner["host"], banner["day"])
        elif STAMP.fullmatch(line.strip()) is not None:
            yield from self._begin(number)
            assert self.report is not None
            self.report.stamp = line.strip()
        elif words[0] == "avg-cpu:":
            if (
                self.report is None
                or self.report.stamp is None
                or self.report.columns
                or self.report.line != number - 1
            ):
                yield from self._begin(number)
            self.in_processor = True
        elif "Device" in (words[0].rstrip(":"), words[-1]):
            yield from self._table(words, number)
        elif self.columns is not None:
            yield from self._row(line, words, number)
        elif not self.in_processor and not self.lost:
            self.lost = True
            yield Problem(self.place, number, f"not understood: {line.strip()[:60]!r}")

    def _table(self, words: list[str], number: int) -> Iterator[Parsed]:
        self.name_first = words[0].rstrip(":") == "Device"
        columns = words[1:] if self.name_first else words[:-1]
        if self.report is None or self.report.shape & set(columns):  # `-h` prints a report as several tables
            yield from self._begin(number)
        self.columns, self.long_name = columns, None

    def _row(self, line: str, words: list[str], number: int) -> Iterator[Parsed]:
        assert self.columns is not None
        assert self.report is not None
        if len(words) == 1 and self.name_first:
            self.long_name = words[0]
            return
        if self.long_name is not None:
            words, self.long_name = [self.long_name, *words], None
        elif self.name_first and line[0] == " ":
            return  # a group (-g): its members are counted themselves
        if len(words) != len(self.columns) + 1:
            yield Problem(self.place, number, f"{len(words)} columns, expected {len(self.columns) + 1}")
            return
        name, values = (words[0], words[1:]) if self.name_first else (words[-1], words[:-1])
        try:
            self.report.put(name, self.columns, values)
        except ValueError as error:
            yield Problem(self.place, number, str(error))

    def _begin(self, number: int) -> Iterator[Parsed]:
        blank_lines = self.blank_lines
        yield from self._end()
        self.report = IostatReport(number, blank_lines=blank_lines)

    def _end(self, *, is_whole: bool = True, number: int = 0) -> Iterator[Parsed]:
        report, self.report, self.columns = self.report, None, None
        if report is None:
            return
        self.shape = self.shape or report.shape or None
        if not is_whole and self.shape is not None and report.shape != self.shape:
            yield Problem(self.place, number, "the file ends within this report: left out")
        else:
            yield report


def read_json(blocks: Iterable[bytes], place: str) -> Iterator[Parsed]:
    """The reports of `-o JSON`, each as soon as it is complete."""
    return _JsonReader(place, iter(blocks)).read()


class _JsonReader:
    """Reads reports out of a text that is held a few at a time: a recording of a day has a hundred thousand."""

    def __init__(self, place: str, blocks: Iterator[bytes]) -> None:
        self.place, self.blocks = place, blocks
        self.utf8 = codecs.getincrementaldecoder("utf-8")("replace")
        self.decode = json.JSONDecoder().raw_decode
        self.text, self.position, self.line = "", 0, 1

    def read(self) -> Iterator[Parsed]:
        while (begin := self._next_match(_STATISTICS)) is not None:
            reported = dict(_FIELD.findall(self.text, self.position, begin.start()))
            yield Banner(reported.get("nodename"), reported.get("date"))
            self._advance(begin.end())
            yield from self._reports()

    def _reports(self) -> Iterator[Parsed]:
        while (begin := self._next_match(_PAST)) is not None:
            self._advance(begin.start())
            if self.text[self.position] != "{":
                return
            report = self._report()
            if report is None:
                yield Problem(self.place, self.line, "the report that begins here is not complete: left out")
                self._advance(self.position + 1)
                return
            yield from _from_json(report, self.place, self.line)
        yield Note(self.place, self.line, "the file ends after this report, unclosed: all reports up to here are kept")

    def _report(self) -> Any:
        """The report that begins here; None if it is no JSON, or cut, or longer than any."""
        while True:
            try:
                report, end = self.decode(self.text, self.position)
            except (ValueError, RecursionError):
                if len(self.text) - self.position > LONGEST_REPORT or not self._more():
                    return None
            else:
                self._advance(end)
                return report

    def _next_match(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        """The next place that fits; the text before it goes as far as no part of it may be needed."""
        while (match := pattern.search(self.text, self.position)) is None:
            if len(self.text) - self.position > LONGEST_REPORT:
                self._advance(len(self.text) - LONGEST_HEADING)
            if not self._more():
                return None
        return match

    def _more(self) -> bool:
        """Read at least as much again as is held, so that a long report is not decoded too often."""
        pieces = [self.text[self.position :]]
        wanted = max(len(pieces[0]), 1)
        while wanted > 0 and (block := next(self.blocks, None)) is not None:
            pieces.append(self.utf8.decode(block))
            wanted -= len(block)
        self.text, self.position = "".join(pieces), 0
        return len(pieces) > 1

    def _advance(self, end: int) -> None:
        self.line += self.text.count("\n", self.position, end)
        self.position = end


def _from_json(plain: Any, place: str, line: int) -> Iterator[Parsed]:
    stamp = plain.get("timestamp") if isinstance(plain, dict) else None
    report = IostatReport(line, stamp if isinstance(stamp, str) else None)
    disks = plain.get("disk", []) if isinstance(plain, dict) else []
    for disk in disks if isinstance(disks, list) else []:
        name = next((disk[key] for key in _DEVICE_KEYS if key in disk), None) if isinstance(disk, dict) else None
        if not isinstance(name, str):
            yield Problem(place, line, "a disk without its name")
            continue
        for column, value in disk.items():
            if isinstance(value, int | float) and not isinstance(value, bool):
                if (number := number_in_json(value, largest=LARGEST_VALUE)) is None:
                    yield Problem(place, line, f"{shown(column)} of {shown(name)} is out of range: left out")
                else:
                    report.columns.setdefault(name, {})[column] = float(number)
    yield report
