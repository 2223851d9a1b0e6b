"""Histograms of what a file system holds that other programs counted: CSV, fprof and fsstats."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Final, NamedTuple

from iolens.errors import InputError
from iolens.records import Capture, Item, Note, Problem
from iolens.sources.contents.fsstats import (
    DIRECTORY,
    FILE,
    SIZE,
    WIDTH,
    CountedBin,
    bin_rows,
    fprof_bins,
    fsstats_bins,
    reported_by,
)
from iolens.sources.contents.fsstats import FPROF_HEADING as FPROF_HEADING
from iolens.sources.contents.fsstats import HEADING as FSSTATS_HEADING
from iolens.sources.contents.listings import ScanTime, scan_name, scan_time_of
from iolens.sources.devices.block_devices import refuse_settings
from iolens.sources.reading.bounded_input import Line, numbered_lines, unpacked, unpacked_head
from iolens.sources.reading.captures import Lookahead, content_identity, read_each, small
from iolens.sources.reading.options import ReadOptions
from iolens.sources.reading.parsed_numbers import count, shown
from iolens.sources.reading.saved_text import cells_of, combined_identity, needed_filesystem

# CSV histograms of sizes, of either convention ------------------------------------------------------------------------
# By the inclusive end of a bin and type, or by its inclusive start.
#
# NERSC published both: `bin_size,num_files,num_dirs,…` and `size,dir,fifo,file,…` of Lustre scans, and `object
# count,…,bin start,…` of an archive. A histogram of directory widths, `bin_size,num_child_counts`, names its bins by
# their end too.

END: Final = "bin_size"
BY_END: Final = {
    "num_files": (FILE, SIZE), "num_dirs": (DIRECTORY, SIZE), "num_symlinks": ("symlink", SIZE),
    "num_blks": ("blk", SIZE), "num_chrs": ("chr", SIZE), "num_fifos": ("fifo", SIZE), "num_socks": ("sock", SIZE),
    "num_child_counts": (DIRECTORY, WIDTH),
}  # fmt: skip
# What `mysqldump2sizebytypehist` makes of a Robinhood dump: a column per type that the dump has, in alphabetical order.
TYPED_END: Final = "size"
TYPED: Final = {name: (name, SIZE) for name in ("blk", "chr", DIRECTORY, "fifo", FILE, "sock", "symlink")}
START, OBJECTS, OBJECT_BYTES = "bin start", "object count", "object size sum (bytes)"
BY_START: Final = (START, OBJECTS, OBJECT_BYTES)
EXPECTED: Final = (
    f"columns {END},num_files,… or {TYPED_END},dir,file,… or {END},num_child_counts or {','.join(BY_START)}"
)

Cells = Mapping[str, int]


class _Row(NamedTuple):
    edge: int
    cells: Cells


def is_heading(text: str) -> bool:
    """Whether a line is the heading of such a histogram."""
    return bool(_wanted(_heading(text)))


def csv_bins(place: str, lines: Iterable[Line | Problem]) -> Iterator[CountedBin | Problem]:
    """The bins that hold something; a line that cannot be read is a problem."""
    source = iter(lines)
    first = next(source, None)
    if first is None or isinstance(first, Problem):
        raise InputError(place, "empty file" if first is None else first.reason, "a histogram of sizes")
    heading = _heading(first.text)
    wanted = _wanted(heading)
    if not wanted:
        raise InputError(place, f"heading {shown(first.text)}", EXPECTED, first.number)
    rows: dict[int, _Row] = {}
    for line in source:
        if isinstance(line, Problem):
            yield line
        elif line.text.strip():
            try:
                row = _row(line, heading, wanted)
                if row.edge in rows:
                    raise ValueError(f"bin {row.edge} again")
                rows[row.edge] = row
            except ValueError as error:
                yield Problem(place, line.number, str(error))
    if not rows:
        yield Problem(place, None, "no row that could be read below the heading")
    ordered = [rows[edge] for edge in sorted(rows)]
    if wanted[0] == TYPED_END:
        yield Note(place, None, "the program that writes this heading leaves out the bin of the largest inodes")
    yield from _by_start(ordered) if START in wanted else _by_end(ordered)


def _heading(text: str) -> list[str]:
    return cells_of(text.removeprefix("\ufeff"))


def _wanted(heading: list[str]) -> list[str]:
    """The columns to read: the edge of the bins, then counts; none where this is another heading."""
    if set(BY_START) <= set(heading):
        return list(BY_START)
    if heading[:1] == [TYPED_END] and FILE in heading and set(heading[1:]) <= TYPED.keys():
        return heading
    counts = [name for name in heading if name in BY_END]
    return [END, *counts] if END in heading and counts else []


def _row(line: Line, heading: list[str], wanted: list[str]) -> _Row:
    cells = cells_of(line.text)
    if len(cells) != len(heading):
        raise ValueError(f"{len(cells)} columns, the heading has {len(heading)}")
    named = dict(zip(heading, cells, strict=True))
    numbers = {name: count(named[name], name) for name in wanted}
    return _Row(numbers[wanted[0]], numbers)


def _by_end(rows: list[_Row]) -> Iterator[CountedBin]:
    """A bin holds what is larger than the end before it and at most its own."""
    below: int | None = None
    for edge, cells in rows:
        for name, (inode_type, histogram) in (*BY_END.items(), *TYPED.items()):
            if cells.get(name):
                yield CountedBin(inode_type, histogram, below, edge, cells[name], None)
        below = edge


def _by_start(rows: list[_Row]) -> Iterator[CountedBin]:
    """A bin holds its start and what is smaller than the next one's; the last has no end."""
    ends: dict[int, int | None] = {row.edge: following.edge - 1 for row, following in pairwise(rows)}
    for edge, cells in rows:
        if cells[OBJECTS]:
            counts = cells[OBJECTS], cells[OBJECT_BYTES]
            yield CountedBin(FILE, SIZE, edge - 1 if edge else None, ends.get(edge), *counts)


# Histograms of what a file system holds that other programs counted ---------------------------------------------------
# CSV, fprof and fsstats reports.
#
# None of them tells when it was taken: `--at` does, else a day in the file's name, else when it was written.

_WHERE: Final = "[sources.size-histogram]"
Reading = Callable[[str, Iterable[Line | Problem]], Iterator[CountedBin | Problem]]


class SizeHistogram:
    """Histograms of sizes, ages and directory widths."""

    name = "size-histogram"
    summary = "histograms of file sizes and directory widths: CSV by bins' ends or starts, fprof and fsstats reports"

    def recognises(self, path: Path, head: bytes) -> bool:
        """Whether it begins with a heading of one of them."""
        return _reading_of(unpacked(head)) is not None

    def captures(self, paths: Sequence[Path], options: ReadOptions) -> Iterator[Capture]:
        """One capture per scan: files of one stated time that tell different histograms are its parts."""
        refuse_settings(options, "size-histogram", _WHERE, ("timezone",))
        files, refused = read_each(paths, partial(_opened, options=options))
        yield from refused
        for parts in _scans(files):
            origin = str(parts[0].path) + (f" and {len(parts) - 1} more" if len(parts) > 1 else "")
            filesystem = needed_filesystem(options, origin)
            stated = parts[0].time.time_us if parts[0].time.stated else None
            identities = [content_identity(part.path) for part in parts]
            identity = combined_identity(identities, filesystem=filesystem, moment=stated)
            yield Capture(origin, identity, _HistogramScan(parts, filesystem, scan_name(identity)).items)


SOURCE: Final = SizeHistogram()


class _HistogramFile(NamedTuple):
    path: Path
    time: ScanTime
    bins: Lookahead[CountedBin | Problem]
    reported: frozenset[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class _HistogramScan:
    parts: tuple[_HistogramFile, ...]
    filesystem: str
    name: str

    def items(self) -> Iterator[Item]:
        for part in self.parts:
            if part.time.note is not None:
                yield part.time.note
            bins: list[CountedBin] = []
            for counted_bin in part.bins:
                if isinstance(counted_bin, Problem):
                    yield counted_bin
                else:
                    bins.append(counted_bin)
            if bins:
                yield bin_rows(bins, time=part.time.time_us, filesystem=self.filesystem, scan=self.name)


def _opened(path: Path, options: ReadOptions) -> _HistogramFile:
    needed_filesystem(options, str(path))
    head = unpacked_head(path)
    reading = _reading_of(head)
    if reading is None:
        first = head.partition(b"\n")[0].decode("utf-8", "backslashreplace")
        problem = f"heading {shown(first)}" if head else "empty file"
        raise InputError(str(path), problem, f"{EXPECTED}, or a report of fprof or fsstats")
    bins = Lookahead(path, partial(_bins, path, reading), small)
    reported = reported_by(counted_bin for counted_bin in bins.look() if isinstance(counted_bin, CountedBin))
    return _HistogramFile(path, scan_time_of(path, options), bins, reported)


def _bins(path: Path, reading: Reading) -> Iterator[CountedBin | Problem]:
    return reading(str(path), numbered_lines(path))


def _reading_of(head: bytes) -> Reading | None:
    """How to read what begins like this."""
    first = head.partition(b"\n")[0].decode("utf-8", "replace")
    if is_heading(first):
        return csv_bins
    if FSSTATS_HEADING.search(head) is not None:
        return fsstats_bins
    return fprof_bins if FPROF_HEADING.search(head) is not None else None


def _scans(files: Sequence[_HistogramFile]) -> list[tuple[_HistogramFile, ...]]:
    """Files of one stated time together, unless they tell the same: then they are not of one scan."""
    groups: list[list[_HistogramFile]] = []
    for file in files:
        for group in groups:
            same = file.time.stated and group[0].time.stated and group[0].time.time_us == file.time.time_us
            if same and all(file.reported.isdisjoint(other.reported) for other in group):
                group.append(file)
                break
        else:
            groups.append([file])
    return [tuple(group) for group in sorted(groups, key=lambda group: group[0].time.time_us)]
