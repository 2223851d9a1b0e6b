"""`io_latency_stats` of Lustre 2.17: how long bulk I/Os took, by their size; of an OSD and of an OSC.

`rd_64K: { 32us: 5, 64us: 1, }` is not what it seems to be. The size is the smallest one of its row: 64K holds I/Os of
16 to 31 pages of 4 KiB. The time is a lower bound in units of 1,024 ns: 64us holds more than 64 and at most 128 of
them, 0us at most one. And a count was multiplied by 1.024 on its way, with whole numbers: 1,000 is printed as 1024.
Counts are taken back to what they were before anything is computed from them; a number that no count is printed as is
refused. The time of an I/O is from its start to its end, waiting included.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final, NamedTuple

from iolens.histogram_names import LATENCY_HISTOGRAMS
from iolens.records import Problem
from iolens.sources.lustre.clock import stamp_us, whole_number

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
