"""CSV histograms of sizes, of either convention: by the inclusive end of a bin and type, or by its inclusive start.

NERSC published both: `bin_size,num_files,num_dirs,…` of a Lustre scan, and `object count,…,bin start,…` of an archive.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Final

from iolens.errors import InputError
from iolens.records import Problem, Row
from iolens.sources.saved_text import Line, cells_of, numbered_lines, shown

LARGEST: Final = 2**63 - 1
TYPES: Final = {
    "num_files": "file", "num_dirs": "dir", "num_symlinks": "symlink", "num_blks": "blk", "num_chrs": "chr",
    "num_fifos": "fifo", "num_socks": "sock",
}  # fmt: skip
BY_END: Final = frozenset({"bin_size", "num_files"})
BY_START: Final = frozenset({"bin start", "object count", "object size sum (bytes)"})

Cells = Mapping[str, int]
Bins = list[tuple[int, Cells]]


def size_rows(path: Path) -> Iterator[Row | Problem]:
    """Rows of `contents`, as far as a histogram tells them; a line that cannot be read is a problem."""
    lines = numbered_lines(path)
    first = next(lines, None)
    if first is None or isinstance(first, Problem):
        raise InputError(str(path), "empty file" if first is None else first.reason, "a histogram of sizes")
    heading = cells_of(first.text)
    found = next((read for columns, read in _SHAPES if columns <= set(heading)), None)
    if found is None:
        expected = " or ".join(",".join(sorted(columns)) for columns, _ in _SHAPES)
        raise InputError(str(path), f"heading {shown(first.text)}", f"columns {expected}", 1)
    wanted = [name for name in heading if name in TYPES or name in BY_END | BY_START]
    bins: Bins = []
    for line in lines:
        if isinstance(line, Problem):
            yield line
        elif line.text.strip():
            try:
                bins.append(_numbers(line, heading, wanted))
            except ValueError as error:
                yield Problem(str(path), line.number, str(error))
    if not bins:
        yield Problem(str(path), None, "no row that could be read below the heading")
    yield from found(bins)


def _numbers(line: Line, heading: list[str], wanted: list[str]) -> tuple[int, Cells]:
    cells = cells_of(line.text)
    if len(cells) != len(heading):
        raise ValueError(f"{len(cells)} columns, the heading has {len(heading)}")
    named = dict(zip(heading, cells, strict=True))
    numbers = {name: _whole(named[name], name) for name in wanted}
    return numbers["bin_size" if "bin_size" in numbers else "bin start"], numbers


def _whole(text: str, name: str) -> int:
    if not text.isascii() or not text.isdigit() or int(text) > LARGEST:
        raise ValueError(f"{name} {shown(text)} is not a count")
    return int(text)


def _by_end(bins: Bins) -> Iterator[Row]:
    """A bin holds what is larger than the end before it and at most its own."""
    ends = [None, *(end for end, _ in sorted(bins, key=lambda one: one[0]))]
    below = dict(zip(ends[1:], ends[:-1], strict=True))
    for end, cells in bins:
        for name, count in cells.items():
            if name in TYPES:
                yield _row(TYPES[name], below[end], end, count, None)


def _by_start(bins: Bins) -> Iterator[Row]:
    """A bin holds its start and what is smaller than the next one's; the last has no end."""
    ordered = sorted(bins, key=lambda one: one[0])
    nexts: dict[int, int | None] = {start: after - 1 for (start, _), (after, _) in pairwise(ordered)}
    for start, cells in ordered:
        counts = cells["object count"], cells["object size sum (bytes)"]
        yield _row("file", start - 1 if start else None, nexts.get(start), *counts)


def _row(inode_type: str, above: int | None, up_to: int | None, count: int, size: int | None) -> Row:
    values = {"bin_from": above, "bin": up_to, "count": count, "bytes": size}
    return Row("contents", {"inode_type": inode_type, "histogram": "size", **values})


_SHAPES: Final[tuple[tuple[frozenset[str], Callable[[Bins], Iterator[Row]]], ...]] = (
    (BY_END, _by_end),
    (BY_START, _by_start),
)
