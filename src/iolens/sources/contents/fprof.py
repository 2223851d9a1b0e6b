"""Reports of fprof, the file system profiler of pcircle: files by size, and an epilogue of counts.

Bins are printed with their end, which is outside (`<`, earlier versions) or inside (`<=`, later ones, which also print
bytes, rounded). They are not powers of two throughout.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from iolens.records import Note, Problem
from iolens.sources.contents.histogram_bins import DIRECTORY, FILE, SIZE, SYMLINK, TOTAL, CountedBin
from iolens.sources.reading.bounded_input import Line
from iolens.sources.reading.parsed_numbers import WrongNumber, grouped_count
from iolens.units import parse_bytes

# With a share after the count: a line that was cut within its count has none.
_BIN: Final = re.compile(r"\s*+(<=?|>=?)\s++([\d.]++)\s*+([KMGTPE]i)?B\s++([\d,]++)\s[^%]*+%.*+")
_COUNT: Final = re.compile(r"\s*+([A-Z][A-Za-z ]++):\s++([\d,]++)\s*+")
_TOTAL_SIZE: Final = re.compile(r"\s*+Total file size:\s++([\d.]++ [KMGTPE]?i?B)\s*+")
HEADING: Final = re.compile(rb"^[ \t]*+Fileset [Hh]istograms?:?[ \t\r]*+$", re.MULTILINE)
FILES, DIRECTORIES, LINKS = "file count", "directory count", "sym links count"
HARD_LINKED, SPARSE, SKIPPED = "hard linked files", "sparse files", "skipped count"
REMARKS: Final = {
    HARD_LINKED: "hard-linked files: fprof counts each of their names",
    SPARSE: "sparse files: fprof counts them by what they are allocated",
    SKIPPED: "entries were skipped by fprof",
}


class _FprofBar(NamedTuple):
    line: int
    sign: str
    edge: int
    files: int


def fprof_bins(place: str, lines: Iterable[Line | Problem]) -> Iterator[CountedBin | Problem]:
    """The bins of a report; all of them or, where one may be missing or wrong, none."""
    bars: list[_FprofBar] = []
    counts: dict[str, int] = {}
    size: int | None = None
    damaged = False
    for line in lines:
        if isinstance(line, Problem):
            damaged = True
            yield line
        elif (bar := _BIN.fullmatch(line.text)) is not None:
            try:
                bars.append(_bar(line.number, bar))
            except ValueError as error:
                damaged = True
                yield Problem(place, line.number, str(error))
        elif (match := _COUNT.fullmatch(line.text)) is not None:
            try:
                counts.setdefault(match[1].lower(), grouped_count(match[2], match[1].lower()))
            except WrongNumber as error:
                yield Problem(place, line.number, str(error))
        elif (total := _TOTAL_SIZE.fullmatch(line.text)) is not None:
            try:
                size = parse_bytes(total[1])
            except ValueError as error:
                yield Problem(place, line.number, f"total file size {error}")
            else:
                yield Note(place, line.number, f"the bytes of all files are rounded: {total[1]}")
    reason = "one of its bins cannot be read" if damaged else _wrong(bars, counts)
    if reason is not None:
        yield Problem(place, None, f"the histogram is left out: {reason}")
        return
    yield from _bins(bars)
    for name, inode_type in ((FILES, FILE), (DIRECTORIES, DIRECTORY), (LINKS, SYMLINK)):
        if name in counts:
            yield CountedBin(inode_type, TOTAL, None, None, counts[name], size if inode_type == FILE else None)
    for name, remark in REMARKS.items():
        if counts.get(name):
            yield Note(place, None, f"{counts[name]} {remark}")


def _bar(number: int, match: re.Match[str]) -> _FprofBar:
    edge = parse_bytes(f"{match[2]}{match[3] or ''}B")
    return _FprofBar(number, match[1], edge, grouped_count(match[4], "count"))


def _wrong(bars: list[_FprofBar], counts: dict[str, int]) -> str | None:
    """Why the bins cannot be trusted, if so. Some versions print the last but one count twice, and lose the last."""
    edges = [bar.edge for bar in bars[:-1]]
    signs = {bar.sign for bar in bars[:-1]}
    if len(bars) < 2 or not bars[-1].sign.startswith(">") or bars[-1].edge != edges[-1]:
        return "it has no last bin, of the largest files"
    if len(signs) != 1 or not signs <= {"<", "<="} or edges != sorted(set(edges)):
        return "its bins are not in order"
    value = sum(bar.files for bar in bars)
    if counts.get(FILES, value) != value:
        return f"its bins hold {value} files, its epilogue counts {counts[FILES]}"
    return None


def _bins(bars: list[_FprofBar]) -> Iterator[CountedBin]:
    outside = 1 if bars[0].sign == "<" else 0  # whether a bin's end belongs to the next one
    below: int | None = None
    for bar in bars:
        up_to = None if bar.sign.startswith(">") else bar.edge - outside
        if bar.files:
            yield CountedBin(FILE, SIZE, below, up_to, bar.files, None)
        below = up_to
