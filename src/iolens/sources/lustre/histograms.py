"""Histograms of what a target did to its disk: `brw_stats`, and `io_latency_stats` of Lustre 2.17."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import pairwise
from typing import Final, NamedTuple

from iolens.histogram_names import IN_FLIGHT, IN_FLIGHT_POW2, IO_TIME, LAST_IN_FLIGHT, LATENCY_HISTOGRAMS
from iolens.records import Problem
from iolens.schema import DIRECTIONS, SIZE_BINS, size_column
from iolens.sources.lustre.clock import stamp_us, whole_number

# Lustre `brw_stats` ---------------------------------------------------------------------------------------------------
# Up to eight histograms of what a target did to its disk, Lustre 1.8 to 2.17.
#
# Rows are `label: count % cum% | count % cum%`, read then write; the percentages are rounded and ignored. A section
# that holds anything not understood is refused as a whole, because a missing bin would look like a zero.
#
# "disk I/Os in flight" has rows for 1, 2, 3, … up to 2.17.50, for powers of two later: a histogram of its own.

DISK_IO_SIZE: Final = "disk_io_size"
SECTIONS: Final = {
    "pages per bulk r/w": "pages_per_bulk",
    "discontiguous pages": "discontiguous_pages",
    "discontiguous blocks": "discontiguous_blocks",
    "disk fragmented I/Os": "disk_fragmented_ios",
    "disk I/Os in flight": IN_FLIGHT,
    "I/O time (1/1000s)": IO_TIME,
    "disk I/O size": DISK_IO_SIZE,
    "block maps msec": "block_maps_ms",
}
_HEAD_WORDS: Final = ("rpcs", "ios", "maps")
_SUFFIXES: Final = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}
_SIZE_COLUMNS: Final = {d: {size: size_column(d, size) for size in SIZE_BINS} for d in DIRECTIONS}
_NO_IOS: Final = {name: 0 for columns in _SIZE_COLUMNS.values() for name in columns.values()} | {
    f"{direction}_ios_outside": 0 for direction in DIRECTIONS
}


@dataclass(slots=True)
class Histograms:
    """A parsed brw_stats. `sizes`: counters of `target_sizes`; `sets`: the other histograms by name."""

    place: str
    snapshot_us: int | None = None
    start_us: int | None = None
    sizes: dict[str, int] | None = None
    sets: dict[str, dict[str, int]] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)
    pow2_in_flight: bool = False  # where the rows do not tell


class SectionRows(NamedTuple):
    """The rows of a section, column by column: labels as numbers, I/Os read and written."""

    labels: list[int]
    read: list[int]
    write: list[int]


@dataclass(slots=True)
class _HistogramSection:
    name: str | None  # None: a header of no known version, its rows are skipped
    ranges: list[tuple[int, int]] = field(default_factory=list)
    refused: bool = False


def parse_brw_stats(data: bytes, place: str, first_line: int = 1, *, pow2_in_flight: bool = False) -> Histograms:
    """Read a brw_stats text; sections that are not understood, or may be cut, become problems.

    `pow2_in_flight`: what the version says of the rows of I/Os in flight, for a text whose rows do not tell.
    """
    histograms = Histograms(place, pow2_in_flight=pow2_in_flight)
    lines = data.decode("ascii", "replace").split("\n")
    sections = _divide(lines, histograms, first_line)
    if not sections and not histograms.problems:
        problem = "no histogram" if data.strip() else "empty file"
        histograms.problems.append(Problem(place, None, f"{problem}, expected brw_stats sections"))
    for section in sections:
        may_be_cut = bool(lines[-1]) and section is sections[-1]
        if section.name is not None and not section.refused:
            _take_section(section, lines, histograms, first_line, may_be_cut)
    return histograms


def _take_section(
    section: _HistogramSection, lines: list[str], histograms: Histograms, first_line: int, may_be_cut: bool
) -> None:
    bins = _bins_at_once(section, lines)
    if bins is None or may_be_cut:
        try:
            bins = _bins_one_by_one(section, lines, may_be_cut)
        except _BadRowError as bad:
            reason = f"section {section.name!r} refused: {bad}"
            histograms.problems.append(Problem(histograms.place, first_line + bad.index, reason))
            return
    if section.name == DISK_IO_SIZE:
        histograms.sizes = _sizes(bins)
    elif section.name == IN_FLIGHT:
        is_pow2 = _in_powers_of_two(bins.labels)
        is_pow2 = histograms.pow2_in_flight if is_pow2 is None else is_pow2
        histograms.sets[IN_FLIGHT_POW2 if is_pow2 else IN_FLIGHT] = _counters(bins)
    elif section.name is not None:
        histograms.sets[section.name] = _counters(bins)


def _in_powers_of_two(labels: list[int]) -> bool | None:
    """Whether rows of I/Os in flight double from one to the next; None: 1 and 2, or a single row, can be either.

    Lustre prints every row between the first and the last that counted.
    """
    if any(label & (label - 1) for label in labels):
        return False
    has_gap = any(later != earlier + 1 for earlier, later in pairwise(labels))
    return True if has_gap or max(labels, default=0) > LAST_IN_FLIGHT else None


def _sizes(bins: SectionRows) -> dict[str, int]:
    counters = dict(_NO_IOS)
    for direction in DIRECTIONS:
        columns, outside = _SIZE_COLUMNS[direction], f"{direction}_ios_outside"
        for label, count in zip(bins.labels, getattr(bins, direction), strict=True):
            counters[columns.get(label, outside)] += count
    return counters


def _counters(bins: SectionRows) -> dict[str, int]:
    names = _BIN_NAMES["read"]
    counters = {names[label]: count for label, count in zip(bins.labels, bins.read, strict=True) if count}
    names = _BIN_NAMES["write"]
    return counters | {names[label]: count for label, count in zip(bins.labels, bins.write, strict=True) if count}


class _BinNames(dict[int, str]):
    """`read:4096` and its like, made once: there are few of them, and every row needs one."""

    def __init__(self, direction: str) -> None:
        self.direction = direction

    def __missing__(self, label: int) -> str:
        name = f"{self.direction}:{label}"
        if len(self) < _NAMES_KEPT:
            self[label] = name
        return name


_NAMES_KEPT: Final = 1024
_BIN_NAMES: Final = {direction: _BinNames(direction) for direction in DIRECTIONS}


class _Divider:
    """Which lines are rows of which section. A header follows a `read | write` line; anything else is damage."""

    def __init__(self, histograms: Histograms, first_line: int) -> None:
        self.histograms, self.first_line = histograms, first_line
        self.sections: list[_HistogramSection] = []
        self.is_open = False

    def take_text(self, index: int, text: str) -> None:
        """A line that is no row; one that does not belong there spoils the section it stands in."""
        kind, name = _kind(text)
        reason: str | None = None
        if kind == "time" and not self.sections:
            reason = _take_time(self.histograms, text)
        elif kind == "directions":
            self.is_open = False
        elif kind == "header":
            reason = self._open(name)
        elif self.is_open:
            self.sections[-1].refused = True
            reason = f"section {self.sections[-1].name!r} refused: line not understood: {text[:60]!r}"
        else:
            self._open(None)
            reason = f"unknown section {text[:60]!r}"
        if reason:
            self._report(index, reason)

    def take_rows(self, start: int, stop: int) -> None:
        """Lines that begin with a digit."""
        if self.is_open:
            self.sections[-1].ranges.append((start, stop))
        else:
            self._report(start, "row outside any section")

    def _open(self, name: str | None) -> str | None:
        twice = name is not None and any(section.name == name for section in self.sections)
        self.sections.append(_HistogramSection(None if twice else name))
        self.is_open = True
        return f"section {name!r} occurs twice" if twice else None

    def _report(self, index: int, reason: str) -> None:
        self.histograms.problems.append(Problem(self.histograms.place, self.first_line + index, reason))


def _divide(lines: list[str], histograms: Histograms, first_line: int) -> list[_HistogramSection]:
    divider = _Divider(histograms, first_line)
    marks = [index for index, line in enumerate(lines) if not line[:1].isdigit()]
    for mark, following in zip([-1, *marks], [*marks, len(lines)], strict=True):
        text = lines[mark].strip() if mark >= 0 else ""
        if text:
            divider.take_text(mark, text)
        if following > mark + 1:
            divider.take_rows(mark + 1, following)
    return divider.sections


@lru_cache(maxsize=256)
def _kind(text: str) -> tuple[str, str]:
    """What a line that is no row is: a time, the `read | write` line, or the header of a section."""
    words = text.split()
    if words in (["read", "|", "write"], ["read", "write"]):
        return "directions", ""
    if words[0].rstrip(":") in ("snapshot_time", "start_time", "elapsed_time"):
        return "time", ""
    at = next((index for index, word in enumerate(words[:-1]) if word in _HEAD_WORDS and words[index + 1] == "%"), 0)
    heads = [word for word in words[at:] if word != "|"]
    name = SECTIONS.get(" ".join(words[:at]))
    if name is None or heads != [*heads[:1], "%", "cum", "%"] * 2:
        return "other", ""
    return "header", name


def _take_time(histograms: Histograms, text: str) -> str | None:
    name = text.split()[0]
    stamp = stamp_us(text.removeprefix(name))
    if stamp is None:
        return f"not a time: {text[:60]!r}"
    if name.startswith("snapshot_time"):
        histograms.snapshot_us = stamp
    elif name.startswith("start_time"):
        histograms.start_us = stamp
    return None


# An agent reads 64 brw_stats every few seconds: all rows of a section are checked and taken in a few calls,
# about four times faster than row by row. Whatever does not fit goes through the careful reader below.
_WIDTH: Final = 8  # label: n % cum | n % cum
_ROW_BYTES: Final = b"0123456789 \t\r\n|:KMGT"


def _bins_at_once(section: _HistogramSection, lines: list[str]) -> SectionRows | None:
    rows = lines[slice(*section.ranges[0])] if len(section.ranges) == 1 else [lines[i] for i in _indexes(section)]
    text = "\n".join(rows)
    words = text.split()
    if len(words) != len(rows) * _WIDTH or words[4::_WIDTH].count("|") != len(rows) or text.count(":") != len(rows):
        return None
    if text.encode("ascii", "replace").translate(None, _ROW_BYTES):
        return None
    labels = [label for label in map(bin_label, words[0::_WIDTH]) if label is not None]
    try:
        bins = SectionRows(labels, list(map(int, words[1::_WIDTH])), list(map(int, words[5::_WIDTH])))
    except ValueError:
        return None
    in_order = len(labels) == len(rows) and sorted(set(labels)) == labels
    return bins if in_order and max(bins.read + bins.write, default=0) < 1 << 64 else None


class _BadRowError(Exception):
    def __init__(self, index: int, reason: str) -> None:
        super().__init__(reason)
        self.index = index


def _bins_one_by_one(section: _HistogramSection, lines: list[str], may_be_cut: bool) -> SectionRows:
    bins = SectionRows([], [], [])
    ended = False
    for index in _indexes(section):
        words = [word for word in lines[index].split() if word != "|"]
        label = bin_label(words[0])
        numbers = [whole_number(word) for word in words[1:]]
        if label is None or len(numbers) != 6 or None in numbers or lines[index].count("|") > 1:
            raise _BadRowError(index, f"row not understood: {lines[index].strip()[:60]!r}")
        if bins.labels and label <= bins.labels[-1]:
            raise _BadRowError(index, f"label {words[0]!r} is out of order")
        for column, value in zip(bins, (label, numbers[0], numbers[3]), strict=True):
            column.append(value or 0)
        ended = {words[3], words[6]} <= {"0", "100"}
    if may_be_cut and not ended:
        # Lustre ends a section when both cumulative shares reach their end: anything less was cut.
        raise _BadRowError(len(lines) - 1, "the file ends in the middle of it")
    return bins


def _indexes(section: _HistogramSection) -> Iterator[int]:
    for start, stop in section.ranges:
        yield from range(start, stop)


@lru_cache(maxsize=1024)
def bin_label(word: str) -> int | None:
    """`4K:` is 4096; None if it is no label."""
    if word[-1] != ":":
        return None
    factor = _SUFFIXES.get(word[-2:-1], 0)
    number = whole_number(word[:-2] if factor else word[:-1])
    label = None if number is None else number * (factor or 1)
    return label if label is not None and label < 1 << 63 else None


# `io_latency_stats` of Lustre 2.17 ------------------------------------------------------------------------------------
# How long bulk I/Os took, by their size; of an OSD and of an OSC.
#
# `rd_64K: { 32us: 5, 64us: 1, }` is not what it seems to be. The size is the smallest one of its row: 64K holds I/Os of
# 16 to 31 pages of 4 KiB. The time is a lower bound in units of 1,024 ns: 64us holds more than 64 and at most 128 of
# them, 0us at most one. And a count was multiplied by 1.024 on its way, with whole numbers: 1,000 is printed as 1024.
# Counts are taken back to what they were before anything is computed from them; a number that no count is printed as is
# refused. The time of an I/O is from its start to its end, waiting included.

UNIT_NS: Final = 1024
LAST_ROW: Final = 31  # of the 32 rows of an obd histogram
_HEADING: Final = "io_latency_by_size:"
_TIMES: Final = ("snapshot_time", "start_time", "elapsed_time")
_DIRECTIONS: Final = {"rd": "read", "wr": "write"}
_ROW: Final = re.compile(r"(rd|wr)_(\d{1,12})([KMG]?): *+\{ *+([^{}]*+)\}")
_BIN: Final = re.compile(r"(\d{1,12})us: *+(\d{1,20})")
_FACTORS: Final = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}
_UNUSED: Final = "uninit"
_LONGEST_BITS: Final = 63  # of a count, as all counters of a row


@dataclass(slots=True)
class LatencyHistograms:
    """A parsed io_latency_stats. `sets`: I/Os by histogram (one for each size) and bin, `read:131072`.

    Of a whole text every size is there: what it does not print has not counted. One that is not understood is absent.
    """

    place: str
    snapshot_us: int | None = None
    start_us: int | None = None
    sets: dict[str, dict[str, int]] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)


def true_count(printed: int) -> int | None:
    """The count that is printed so: `c // 1000 * 1024 + c % 1000 * 1024 // 1000`; None: no count is."""
    thousands, rest = divmod(printed, UNIT_NS)
    units = -(-rest * 1000 // 1024)
    return thousands * 1000 + units if units < 1000 and units * 1024 // 1000 == rest else None


@lru_cache(maxsize=256)
def upper_bound_ns(label: str) -> int | None:
    """Upper bound, in nanoseconds, of the bin with this lower bound in units of 1,024 ns; None: there is none."""
    lower = whole_number(label)
    if lower is None or lower & (lower - 1) or lower >= 1 << LAST_ROW:
        return None
    return max(2 * lower, 1) * UNIT_NS


class _SizeRow(NamedTuple):
    """One line: I/Os of a size and direction by bin. `reason`: what is not understood of it."""

    size: int
    direction: str
    bins: dict[str, int]
    reason: str | None = None


def parse_io_latency(data: bytes, place: str, first_line: int = 1) -> LatencyHistograms:
    """Read an io_latency_stats text; a size of which anything is not understood is left out, and a problem."""
    parsed = LatencyHistograms(place)
    lines = data.decode("ascii", "replace").split("\n")
    reader = _LatencyReader(parsed)
    for number, line in enumerate(lines, first_line):
        if text := line.strip():
            reader.take(text, number)
    reader.finish(cut=bool(lines[-1].strip()), last_line=first_line + len(lines) - 1)
    return parsed


@dataclass(slots=True)
class _LatencyReader:
    parsed: LatencyHistograms
    rows: dict[tuple[int, str], dict[str, int]] = field(default_factory=dict)  # by size and direction
    refused: set[int] = field(default_factory=set)
    is_whole: bool = True

    def take(self, text: str, number: int) -> None:
        """One line that is not empty."""
        name = text.split()[0].rstrip(":")
        if name in _TIMES:
            self._take_time(name, text.removeprefix(name).lstrip(": "), text, number)
        elif text.startswith(("rd_", "wr_")):
            self._take_row(_row(text), text, number)
        elif text != _HEADING:
            self.is_whole = False
            self._problem(number, f"line not understood: {text[:60]!r}")

    def finish(self, *, cut: bool, last_line: int) -> None:
        """What the rows hold; of a text that may be cut nothing, because a row that is missing would look like zero."""
        parsed = self.parsed
        if parsed.snapshot_us is None and not self.rows:
            self._problem(None, "no latency by size, expected io_latency_by_size and rows such as rd_4K")
        elif cut:
            self._problem(last_line, "the text ends within a line: latencies left out")
        elif self.is_whole:
            for size, histogram in LATENCY_HISTOGRAMS.items():
                if size not in self.refused:
                    parsed.sets[histogram] = self._both(size)
        else:
            sizes = {size for size, _ in self.rows} - self.refused
            parsed.sets = {LATENCY_HISTOGRAMS[size]: self._both(size) for size in sorted(sizes)}

    def _both(self, size: int) -> dict[str, int]:
        return {name: count for side in _DIRECTIONS for name, count in self.rows.get((size, side), {}).items()}

    def _take_time(self, name: str, value: str, text: str, number: int) -> None:
        stamp = stamp_us(value)
        if stamp is None:
            self._problem(number, f"not a time: {text[:60]!r}")
        elif name == "snapshot_time":
            self.parsed.snapshot_us = stamp
        elif name == "start_time":
            self.parsed.start_us = stamp

    def _take_row(self, row: _SizeRow | None, text: str, number: int) -> None:
        if row is None:
            self.is_whole = False
            self._problem(number, f"row not understood: {text[:60]!r}")
            return
        reason = row.reason
        if (row.size, row.direction) in self.rows:
            reason = reason or "the same row once more"
        self.rows[row.size, row.direction] = row.bins
        if reason is not None:
            self.refused.add(row.size)
            self._problem(number, f"I/Os from {row.size} bytes on refused: {reason}: {text[:60]!r}")

    def _problem(self, number: int | None, reason: str) -> None:
        self.parsed.problems.append(Problem(self.parsed.place, number, reason))


def _row(text: str) -> _SizeRow | None:
    """A line of the text; None where it does not even tell its size."""
    match = _ROW.fullmatch(text)
    size = _size(text) if match is None else int(match[2]) * _FACTORS[match[3]]
    if size not in LATENCY_HISTOGRAMS:
        return None
    if match is None:
        return _SizeRow(size, text[:2], {}, "not a row")
    bins: dict[str, int] = {}
    for reason in _take_bins(match[4], _DIRECTIONS[match[1]], bins):
        return _SizeRow(size, match[1], {}, reason)
    return _SizeRow(size, match[1], bins)


def _size(text: str) -> int | None:
    """The size that a damaged row still tells."""
    match = re.match(r"(?:rd|wr)_(\d{1,12})([KMG]?):", text)
    return None if match is None else int(match[1]) * _FACTORS[match[2]]


def _take_bins(text: str, direction: str, bins: dict[str, int]) -> Iterator[str]:
    """Fill the bins of a row; yields what is wrong with one of them."""
    words = [word.strip() for word in text.split(",")]
    if words[-1] == "":
        words.pop()
    if words == [_UNUSED]:
        return
    for word in words:
        match = _BIN.fullmatch(word)
        bound = None if match is None else upper_bound_ns(match[1])
        if match is None or bound is None:
            yield f"{word[:30]!r} is no bin"
            return
        count = true_count(int(match[2]))
        if count is None or count.bit_length() > _LONGEST_BITS:
            yield f"{match[2]} is printed for no count"
            return
        name = f"{direction}:{bound}"
        if name in bins:
            yield f"{match[1]}us occurs twice"
            return
        if count:
            bins[name] = count
