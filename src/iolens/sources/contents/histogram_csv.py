"""CSV histograms of sizes, of either convention: by the inclusive end of a bin and type, or by its inclusive start.

NERSC published both: `bin_size,num_files,num_dirs,…` and `size,dir,fifo,file,…` of Lustre scans, and
`object count,…,bin start,…` of an archive. A histogram of directory widths, `bin_size,num_child_counts`, names its bins
by their end too.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import pairwise
from typing import Final, NamedTuple

from iolens.errors import InputError
from iolens.records import Note, Problem
from iolens.sources.contents.histogram_bins import DIRECTORY, FILE, SIZE, WIDTH, CountedBin
from iolens.sources.reading.bounded_input import Line
from iolens.sources.reading.parsed_numbers import count, shown
from iolens.sources.reading.saved_text import cells_of

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
