"""Daily CSV files in the manner of TOKIO: bytes read and written, OST fullness, and Spectrum Scale's `mmdf`.

The first two tell sums over a whole file system (`target_kind` filesystem, never to be added to its targets), the third
each disk. NERSC's and ALCF's published data sets are of these shapes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta, tzinfo
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple

from iolens.errors import InputError
from iolens.records import Item, Problem
from iolens.schema import LARGEST
from iolens.sources.reading.batches import ROWS_PER_BATCH, RowBatch, within
from iolens.sources.reading.bounded_input import Line, numbered_lines, unpacked
from iolens.sources.reading.captures import FileSource, Lookahead, line_size
from iolens.sources.reading.options import ReadOptions
from iolens.sources.reading.parsed_numbers import WrongNumber, count_or_none, real, shown
from iolens.sources.reading.saved_text import cells_of, needed_filesystem, stated_zone, supplied_identity
from iolens.units import KIB, epoch_us

EARLIEST_YEAR, LATEST_YEAR = 1970, 2100
LATEST_S: Final = 4_102_444_800  # the year 2100
DAY_TEXT: Final = len("2016-01-13")
SUM: Final = "filesystem"  # the target_kind of a sum

Cells = Mapping[str, str]
Values = dict[str, object]


class MalformedLine(ValueError):
    """A line that does not hold what its heading promises."""


class Shape(NamedTuple):
    """One kind of file: the columns that tell it, whether it lacks the file system and a zone, how a line is read."""

    table: str
    columns: frozenset[str]
    names_filesystem: bool
    has_epoch: bool
    read: Callable[[Cells, str, tzinfo | None], Values]


def _daily_rates(cells: Cells, filesystem: str, zone: tzinfo | None) -> Values:
    """Bytes of one local day, of the whole file system."""
    begin, end = _day(cells["date"], zone)
    moved = {name: _whole(cells[name], name) for name in ("read_bytes", "write_bytes")}
    return {
        "time": end,
        "start": begin,
        "duration_s": (end - begin) / 1e6,  # 23 or 25 hours where clocks change
        "filesystem": filesystem,
        "target": filesystem,
        "target_kind": SUM,
        **moved,
    }


def _fullness(cells: Cells, filesystem: str, zone: tzinfo | None) -> Values:
    """The sum over the OSTs that answered: their mean times their number; capacity follows from the percentage."""
    time_s, count = _whole(cells["ost_actual_timestamp"], "time"), _whole(cells["ost_count"], "ost_count")
    average_kib = _whole(cells["ost_avg_full_kib"], "ost_avg_full_kib")
    if time_s is None or not 0 < time_s < LATEST_S:
        raise MalformedLine(f"ost_actual_timestamp {shown(cells['ost_actual_timestamp'])} is not a time")
    if not count or average_kib is None:
        raise MalformedLine("ost_count or ost_avg_full_kib is missing")
    full_pct = _number(cells["ost_avg_full_pct"], "ost_avg_full_pct")
    total_kib = round(average_kib * 100 / full_pct) if full_pct and 0 < full_pct <= 100 else None
    used = _bytes(average_kib * count)
    total = None if total_kib is None else _bytes(total_kib * count)
    return {
        "time": time_s * 1_000_000,
        "filesystem": filesystem,
        "target": filesystem,
        "target_kind": SUM,
        "total_bytes": total,
        "used_bytes": used,
        "free_bytes": None if total is None else total - used,
        "targets": count,
    }


def _disk_free(cells: Cells, filesystem: str, zone: tzinfo | None) -> Values:
    """One disk (NSD) of `mmdf`: free space lies in full blocks and in fragments."""
    sizes = [_whole(cells[name], name) for name in ("disk_size", "free_kib_blocks", "free_kib_frags")]
    total, blocks, fragments = (None if size is None else _bytes(size) for size in sizes)
    free = None if blocks is None or fragments is None else blocks + fragments
    if total is not None and free is not None and free > total:
        raise MalformedLine(f"{shown(cells['disk_name'])} has more free than its size")
    return {
        "time": _day(cells["date"], zone)[0],
        "filesystem": cells["file_system"],
        "target": cells["disk_name"],
        "target_kind": "lun",
        "total_bytes": total,
        "used_bytes": None if total is None or free is None else total - free,
        "free_bytes": free,
    }


SHAPES: Final = (
    Shape("target_io", frozenset({"date", "read_bytes", "write_bytes"}), False, False, _daily_rates),
    Shape(
        "target_capacity",
        frozenset({"ost_actual_timestamp", "ost_avg_full_kib", "ost_avg_full_pct", "ost_count"}),
        False,
        True,
        _fullness,
    ),
    Shape(
        "target_capacity",
        frozenset({"date", "file_system", "disk_name", "disk_size", "free_kib_blocks", "free_kib_frags"}),
        True,
        False,
        _disk_free,
    ),
)
_ONLY: Final = SHAPES[0]  # so plain that further columns make it another format


def shape_of(heading: Sequence[str]) -> Shape | None:
    """Which kind of file begins with this heading."""
    names = frozenset(heading)
    if names == _ONLY.columns:
        return _ONLY
    return next((shape for shape in SHAPES[1:] if shape.columns <= names), None)


class TokioCsv(FileSource):
    """Daily CSV files of TOKIO."""

    name = "tokio-csv"
    summary = "daily CSV files of TOKIO: bytes per day, OST fullness, mmdf; plain or gzip"

    def recognises(self, path: Path, head: bytes) -> bool:
        """Whether its first line is one of the headings."""
        first = unpacked(head).split(b"\n", 1)[0]
        return b"," in first and shape_of(cells_of(first.decode("utf-8", "replace").strip())) is not None

    def open(self, path: Path, options: ReadOptions) -> _HeadedFile:
        """The file, if it can be read."""
        place = str(path)
        lines = Lookahead(path, partial(numbered_lines, path), line_size)
        first = next(lines.look(), None)
        if first is None:
            raise InputError(place, "empty file", "a daily CSV file of TOKIO")
        if isinstance(first, Problem):
            raise InputError(place, first.reason)
        heading = tuple(cells_of(first.text))
        shape = shape_of(heading)
        if shape is None:
            expected = " or ".join(",".join(sorted(shape.columns)) for shape in SHAPES)
            raise InputError(place, f"heading {shown(first.text)}", f"columns {expected}", 1)
        filesystem = "" if shape.names_filesystem else needed_filesystem(options, place)
        zone = None if shape.has_epoch else stated_zone(options, filesystem, place)
        said = {"filesystem": filesystem, "zone": zone, "since": options.since, "until": options.until}
        return _HeadedFile(path, heading, shape, filesystem, zone, options, lines, supplied_identity(path, **said))


SOURCE: Final = TokioCsv()


@dataclass(frozen=True, slots=True)
class _HeadedFile:
    """One file whose heading is understood."""

    path: Path
    heading: tuple[str, ...]
    shape: Shape
    filesystem: str
    zone: tzinfo | None
    options: ReadOptions
    lines: Lookahead[Line | Problem]
    identity: str

    def items(self) -> Iterator[Item]:
        return within(self._all(), self.options)

    def _all(self) -> Iterator[Item]:
        batch, has_rows = RowBatch(), False
        lines = iter(self.lines)
        next(lines)  # the heading
        for line in lines:
            yield from [line] if isinstance(line, Problem) else self._line(line, batch)
            has_rows = has_rows or batch.count > 0
            if batch.count >= ROWS_PER_BATCH:
                yield from batch.flush()
        if not has_rows:
            yield Problem(str(self.path), None, "no row that could be read below the heading")
        yield from batch.flush()

    def _line(self, line: Line, batch: RowBatch) -> Iterator[Item]:
        if not line.text.strip():
            return
        cells = cells_of(line.text)
        try:
            if len(cells) != len(self.heading):
                raise MalformedLine(f"{len(cells)} columns, the heading has {len(self.heading)}")
            named = dict(zip(self.heading, cells, strict=True))
            batch.add(self.shape.table, self.shape.read(named, self.filesystem, self.zone))
        except MalformedLine as error:
            yield Problem(str(self.path), line.number, str(error))


def _day(text: str, zone: tzinfo | None) -> tuple[int, int]:
    """Beginning and end of a local day, microseconds."""
    try:
        day = date.fromisoformat(text[:DAY_TEXT])
    except ValueError:
        day = date.min
    if not EARLIEST_YEAR <= day.year < LATEST_YEAR:
        raise MalformedLine(f"{shown(text)} is not a day such as 2016-01-13")
    both = (day, day + timedelta(days=1))
    begin, end = (epoch_us(datetime(day.year, day.month, day.day, tzinfo=zone)) for day in both)
    return begin, end


def _number(text: str, name: str) -> float | None:
    """A number, None where the cell is empty or says NaN."""
    if text.lower() in ("", "nan", "none", "null"):
        return None
    try:
        return real(text, name)
    except WrongNumber as error:
        raise MalformedLine(str(error)) from None


def _whole(text: str, name: str) -> int | None:
    exact = count_or_none(text)  # where a double would round
    if exact is not None:
        return exact
    number = _number(text, name)
    return None if number is None else round(number)


def _bytes(kib: int) -> int:
    if kib * KIB > LARGEST:
        raise MalformedLine(f"{kib} KiB is more than any file system holds")
    return kib * KIB
