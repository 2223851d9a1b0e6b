"""The text `mmperfmon query` prints: a legend of numbered columns, then tables that hold them a few at a time.

Columns become series in UTC; which of them are kept, and of what they tell, is said here.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from iolens.records import Problem
from iolens.schema import LARGEST
from iolens.sources.reading.bounded_input import DAMAGED, LongLine, text_of
from iolens.sources.reading.local_time import LocalClock, local_text
from iolens.sources.reading.parsed_numbers import WrongNumber, real, shown
from iolens.units import SECOND_US

# Spectrum Scale prints kB for 1,024 bytes: mem_total of a node of 32 GiB is 31371.0 MB.
UNITS: Final = {"B": 1, "kB": 1 << 10, "KB": 1 << 10, "MB": 1 << 20, "GB": 1 << 30, "TB": 1 << 40, "PB": 1 << 50}
NOTHING: Final = frozenset({"-", "null", "None", "N/A", "nan"})

NSD, SERVER, CLIENT, CALLS, LOAD = "nsd", "server", "client", "calls", "load"
# Metric → of what it tells, and the column it becomes. Counts are of the bucket, loads are means over it.
METRICS: Final[Mapping[str, tuple[str, str]]] = {
    "gpfs_nsdds_bytes_read": (NSD, "read_bytes"),
    "gpfs_nsdds_bytes_written": (NSD, "write_bytes"),
    "gpfs_nsdds_read_ops": (NSD, "read_ops"),
    "gpfs_nsdds_write_ops": (NSD, "write_ops"),
    "gpfs_nsdfs_bytes_read": (SERVER, "read_bytes"),
    "gpfs_nsdfs_bytes_written": (SERVER, "write_bytes"),
    "gpfs_nsdfs_read_ops": (SERVER, "read_ops"),
    "gpfs_nsdfs_write_ops": (SERVER, "write_ops"),
    "gpfs_fs_bytes_read": (CLIENT, "read_bytes"),
    "gpfs_fs_bytes_written": (CLIENT, "write_bytes"),
    "gpfs_fs_read_ops": (CLIENT, "read_ops"),
    "gpfs_fs_write_ops": (CLIENT, "write_ops"),
    "gpfs_fis_bytes_read": (CALLS, "read_bytes"),
    "gpfs_fis_bytes_written": (CALLS, "write_bytes"),
    "gpfs_fis_read_calls": (CALLS, "read_ops"),
    "gpfs_fis_write_calls": (CALLS, "write_ops"),
    "cpu_user": (LOAD, "cpu_user"),
    "cpu_sys": (LOAD, "cpu_system"),
    "cpu_system": (LOAD, "cpu_system"),
    "mem_total": (LOAD, "memory_total"),
    "mem_memtotal": (LOAD, "memory_total"),
    "mem_free": (LOAD, "memory_free"),
    "mem_memfree": (LOAD, "memory_free"),
}
# How many names stand between host and metric: `host|sensor|…|metric`.
_NAMES: Final = {NSD: 1, SERVER: 1, CLIENT: 2, CALLS: 2, LOAD: 0}

_LEGEND: Final = re.compile(r"(\d++):\s++([^|\s]++)\|([^|]++)\|(.++)")
_HEADING: Final = re.compile(r"Row\s++Timestamp(\s.*+)")
_ROW: Final = re.compile(r"\d++\s++(\d{4})-(\d\d)-(\d\d)-(\d\d):(\d\d):(\d\d)(?:\s++(.*+))?")

Numbers = NDArray[np.float64]
Times = NDArray[np.int64]


class Subject(NamedTuple):
    """What a column tells of: a disk behind a server, a server, a client's file system, or a host's load."""

    kind: str
    host: str
    names: tuple[str, ...]


class SensorSeries(NamedTuple):
    """One column over time: stamps in UTC microseconds and values, NaN where there was none."""

    subject: Subject
    column: str
    time_us: Times
    values: Numbers


class Legend(NamedTuple):
    """One entry of a legend."""

    metric: str
    subject: Subject | None  # None: not kept
    column: str = ""


@dataclass(slots=True)
class Text:
    """One output of `mmperfmon query`, read."""

    place: str
    series: list[SensorSeries] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    left_out: dict[str, int] = field(default_factory=dict)  # metrics that are not kept, with the line of the first
    bucket_us: int | None = None


class TextReader:
    """Reads one output: columns of successive tables follow the legend in order."""

    def __init__(self, place: str, clock: LocalClock) -> None:
        self.place, self.clock = place, clock
        self.legend: list[Legend] = []
        self.columns: list[Legend] = []  # of the table being read
        self.next_column = 0
        self.local_s: list[int] = []
        self.cells: list[list[float]] = []
        self.text = Text(place)
        self.strange = False  # within a run of lines not understood, reported once

    def read(self, lines: Iterable[bytes | LongLine]) -> Text:
        """Everything in one output; what was not understood is among its problems."""
        is_empty = True
        try:
            for number, line in enumerate(lines, 1):
                if isinstance(line, LongLine):
                    self.text.problems.append(line.problem(self.place, number))
                else:
                    is_empty = is_empty and not line.strip()
                    self._line(number, text_of(line))
        except DAMAGED as error:
            self._problem(None, f"cannot be read to its end: {error}")
        self._end_table()
        if not self.legend:
            problem = "empty" if is_empty else "no legend of metrics"
            self._problem(None, f"{problem}, expected output of `mmperfmon query`")
        elif self.next_column < len(self.legend):
            missing = len(self.legend) - self.next_column
            self._problem(None, f"{missing} columns of the legend have no table: the output is cut")
        self.text.bucket_us = _bucket_us(self.text.series)
        return self.text

    def _line(self, number: int, line: str) -> None:
        line = line.strip()
        if self.columns and (row := _ROW.fullmatch(line)) is not None:
            self._row(number, row)
        elif (legend := _LEGEND.fullmatch(line)) is not None:
            self._legend(number, legend)
        elif (heading := _HEADING.fullmatch(line)) is not None:
            self._begin_table(number, heading[1].split())
        elif line and line != "Legend:":
            if not self.strange:
                self._problem(number, f"not a line of `mmperfmon query`: {shown(line)}")
            self.strange = True
            return
        self.strange = False

    def _legend(self, number: int, match: re.Match[str]) -> None:
        if match[1] == "1":  # another output in the same file
            self._end_table()
            self.legend, self.next_column = [], 0
        if match[1] != str(len(self.legend) + 1):
            self._problem(number, f"legend entry {match[1][:20]} where {len(self.legend) + 1} was expected")
        *names, metric = match[4].split("|")
        kind, column = METRICS.get(metric, ("", ""))
        kept = bool(kind) and len(names) >= _NAMES[kind]
        subject = Subject(kind, match[2], tuple(names[len(names) - _NAMES[kind] :])) if kept else None
        if subject is None:
            self.text.left_out.setdefault(metric, number)
        self.legend.append(Legend(metric, subject, column))

    def _begin_table(self, number: int, names: list[str]) -> None:
        self._end_table()
        columns = self.legend[self.next_column : self.next_column + len(names)]
        if [column.metric for column in columns] != names:
            expected = ", ".join(column.metric for column in columns) or "no more columns"
            self._problem(number, f"columns {shown(' '.join(names))} where the legend has {shown(expected)}")
            return
        self.columns, self.next_column = columns, self.next_column + len(names)

    def _row(self, number: int, match: re.Match[str]) -> None:
        local_s = _local_seconds(match)
        if local_s is None:
            self._problem(number, f"{shown(match[0])}: no such time")
            return
        values = _values(match[7] or "")
        if isinstance(values, str):
            self._problem(number, values)
        elif len(values) != len(self.columns):
            self._problem(number, f"{len(values)} values, the table has {len(self.columns)} columns: left out")
        else:
            self.local_s.append(local_s)
            self.cells.append(values)

    def _end_table(self) -> None:
        if self.columns and self.local_s:
            times, cells = self._in_utc(np.array(self.local_s, np.int64), np.array(self.cells, np.float64))
            for place, column in enumerate(self.columns):
                if column.subject is not None:
                    self.text.series.append(SensorSeries(column.subject, column.column, times, cells[:, place]))
        self.columns, self.local_s, self.cells = [], [], []

    def _in_utc(self, local_s: Times, cells: Numbers) -> tuple[Times, Numbers]:
        offsets = self.clock.offsets(local_s)
        self.clock.finish()
        unknown = np.ma.getmaskarray(offsets)
        if unknown.any():
            first = local_text(int(local_s[unknown][0]))
            self._problem(None, f"{first} does not exist in that zone: {int(unknown.sum())} rows left out")
        known = ~unknown
        return (local_s - np.ma.getdata(offsets))[known] * SECOND_US, cells[known]

    def _problem(self, number: int | None, reason: str) -> None:
        self.text.problems.append(Problem(self.place, number, reason))


def _local_seconds(match: re.Match[str]) -> int | None:
    year, month, day, hour, minute, second = (int(match[place]) for place in range(1, 7))
    if not (1970 <= year < 2100 and 1 <= month <= 12 and 1 <= day <= 31 and hour < 24 and minute < 60 and second < 60):
        return None
    try:
        days = np.datetime64(f"{year:04d}-{month:02d}-{day:02d}").astype(np.int64)
    except ValueError:
        return None
    return int(days) * 86400 + hour * 3600 + minute * 60 + second


def _values(text: str) -> list[float] | str:
    """The values of a row, in bytes where they carry a unit; what is wrong otherwise."""
    values: list[float] = []
    factor_may_follow = False
    for token in text.split():
        if factor_may_follow and token in UNITS:
            values[-1] *= UNITS[token]
            if values[-1] > LARGEST:
                return f"{values[-1]:g} bytes is out of range: row left out"
            factor_may_follow = False
            continue
        try:
            values.append(np.nan if token in NOTHING else real(token, "value"))
        except WrongNumber as error:
            return f"{error}: row left out"
        factor_may_follow = True
    return values


def _bucket_us(series: Sequence[SensorSeries]) -> int | None:
    """The spacing of rows that occurs most."""
    spacings = [np.diff(subject.time_us) for subject in series[:1]]
    together = np.concatenate(spacings) if spacings else np.array([], np.int64)
    result, counts = np.unique(together[together > 0], return_counts=True)
    return int(result[np.argmax(counts)]) if result.size else None
