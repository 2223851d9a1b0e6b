"""Histograms of what a file system holds that other programs counted: CSV, fprof and fsstats reports.

None of them tells when it was taken: `--at` does, else a day in the file's name, else when it was written.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple

from iolens.errors import InputError
from iolens.records import Capture, Item, Problem
from iolens.sources.contents.fprof import HEADING as FPROF_HEADING
from iolens.sources.contents.fprof import fprof_bins
from iolens.sources.contents.fsstats import HEADING as FSSTATS_HEADING
from iolens.sources.contents.fsstats import fsstats_bins
from iolens.sources.contents.histogram_bins import CountedBin, bin_rows, reported_by
from iolens.sources.contents.histogram_csv import EXPECTED, csv_bins, is_heading
from iolens.sources.contents.scan_time import ScanTime, scan_name, scan_time_of
from iolens.sources.devices.block_devices import refuse_settings
from iolens.sources.reading.bounded_input import (
    Line,
    numbered_lines,
    unpacked,
    unpacked_head,
)
from iolens.sources.reading.captures import content_identity, read_each
from iolens.sources.reading.lookahead import Lookahead, small
from iolens.sources.reading.options import ReadOptions
from iolens.sources.reading.parsed_numbers import shown
from iolens.sources.reading.saved_text import combined_identity, needed_filesystem

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
