"""How the files of one scan are distributed: by size (Fig. 8 of paper D), by age (Fig. 9), and directories by width."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import narwhals as nw

from iolens.analyses.contents.cumulative import CumulativeHistogram
from iolens.analyses.contents.holdings import Holdings
from iolens.analyses.contents.scans import ATIME, FILE, MTIME, SIZE, WIDTH, InodeSum, sums
from iolens.analyses.quotients import pct
from iolens.analyses.results import only_if_present
from iolens.models.dom import Bin

MarkedBin = tuple[str, Bin, bool]  # of a histogram, and whether it belongs to a project that is to be removed


@dataclass(frozen=True, slots=True)
class SizePoint:
    """Files of at most `size_bytes` (None: of any size). Bounds of the bytes only where no bin tells its own."""

    size_bytes: int | None
    files: int
    bytes: int | None
    files_pct: float
    bytes_pct: float | None
    bytes_min_pct: float | None = only_if_present()
    bytes_avg_pct: float | None = only_if_present()
    bytes_max_pct: float | None = only_if_present()


@dataclass(frozen=True, slots=True)
class AgePoint:
    """Files last used, or changed, at most `age_s` before the scan (None: ever; 0: not before it)."""

    age_s: int | None
    files: int
    bytes: int | None
    files_pct: float
    bytes_pct: float | None


@dataclass(frozen=True, slots=True)
class WidthPoint:
    """Directories of at most so many entries."""

    entries: int | None
    directories: int
    directories_pct: float


@dataclass(frozen=True, slots=True)
class AtMost:
    """Share of files, and of bytes, in files of at most a size; bounds where that size is inside a bin."""

    size_bytes: int
    files_pct: float | None
    files_min_pct: float | None
    files_max_pct: float | None
    bytes_pct: float | None
    bytes_min_pct: float | None
    bytes_avg_pct: float | None
    bytes_max_pct: float | None


@dataclass(frozen=True, slots=True)
class Within:
    """Share of files, and of bytes, last used (`atime`) or changed (`mtime`) at most so long before the scan."""

    clock: str
    age_s: int
    files_pct: float | None
    files_min_pct: float | None
    files_max_pct: float | None
    bytes_pct: float | None
    bytes_min_pct: float | None
    bytes_max_pct: float | None


@dataclass(frozen=True, slots=True)
class SizeSummary:
    """Sizes of files in a few numbers; percentiles are upper ends of bins."""

    mean_bytes: float | None
    median_bytes: int | None
    p90_bytes: int | None
    p95_bytes: int | None
    p99_bytes: int | None
    largest_bytes: int | None
    most_common_above_bytes: int | None
    most_common_bytes: int | None
    most_common_files: int | None


@dataclass(frozen=True, slots=True)
class Widths:
    """Directories by number of entries; percentiles and the widest are upper ends of bins."""

    directories: int
    mean_entries: float | None
    median_entries: int | None
    p99_entries: int | None
    widest_entries: int | None
    width_cdf: list[WidthPoint]


@dataclass(frozen=True, slots=True)
class Remainder:
    """The same files without those of some projects; shares are of the whole."""

    projects: list[str]
    files: int | None
    bytes: int | None
    files_pct: float | None
    bytes_pct: float | None
    sizes: SizeSummary
    at_most: list[AtMost]
    within: list[Within]
    size_cdf: list[SizePoint]
    atime_cdf: list[AgePoint]
    mtime_cdf: list[AgePoint]


@dataclass(frozen=True, slots=True)
class ScanHistograms:
    """Histograms of one scan's files and directories."""

    sizes: CumulativeHistogram
    atimes: CumulativeHistogram
    mtimes: CumulativeHistogram
    widths: CumulativeHistogram


class Limits(NamedTuple):
    """Sizes and ages up to which shares are asked for."""

    sizes_bytes: Sequence[int]
    ages_s: Sequence[int]


def marked_bins(rows: nw.LazyFrame[Any], without: Sequence[str]) -> list[MarkedBin]:
    """Bins of a scan's files and directories by histogram, those of the projects to remove apart."""
    mine = rows.filter(nw.col("histogram").is_in([SIZE, ATIME, MTIME, WIDTH]), ~nw.col("count").is_null())
    mine = mine.filter((nw.col("inode_type") == FILE) | (nw.col("histogram") == WIDTH))
    removed: nw.Expr = nw.lit(0)
    if without:
        theirs = (~nw.col("project").is_null()) & nw.col("project").is_in(list(without))
        removed = nw.when(theirs).then(nw.lit(1)).otherwise(nw.lit(0))
    inode_sums = sums(mine.with_columns(removed.alias("removed")), "histogram", "bin_from", "bin", "removed")
    return [
        (str(name), Bin(above, up_to, inode_sum.inodes, inode_sum.bytes), bool(gone))
        for (name, above, up_to, gone), inode_sum in inode_sums
        if inode_sum.inodes
    ]


def bins_of(marked: Iterable[MarkedBin], files: InodeSum, *, keep_removed: bool) -> ScanHistograms:
    """The histograms; what is removed leaves its bins empty, so that the rest has the bins of the whole."""
    bins: dict[str, list[Bin]] = {}
    for name, item, removed in marked:
        kept = item if keep_removed or not removed else Bin(item.above, item.up_to, 0, 0)
        bins.setdefault(name, []).append(kept)
    sizes = CumulativeHistogram.of(bins.get(SIZE, ()), files.bytes)
    return ScanHistograms(sizes, *(CumulativeHistogram.of(bins.get(name, ())) for name in (ATIME, MTIME, WIDTH)))


def remainder(marked: Iterable[MarkedBin], whole: Holdings, without: Sequence[str], limits: Limits) -> Remainder:
    """The distributions without some projects, and how much of the whole is left."""
    all_files, files = whole.of_type(FILE), whole.without(without).of_type(FILE)
    bins = bins_of(marked, files, keep_removed=False)
    return Remainder(
        projects=list(without),
        files=files.inodes,
        bytes=files.bytes,
        files_pct=pct(files.inodes, all_files.inodes),
        bytes_pct=pct(files.bytes, all_files.bytes),
        sizes=size_summary(bins.sizes, files),
        at_most=at_most(bins.sizes, limits.sizes_bytes),
        within=within(bins, limits.ages_s),
        size_cdf=size_points(bins.sizes),
        atime_cdf=age_points(bins.atimes),
        mtime_cdf=age_points(bins.mtimes),
    )


def size_points(sizes: CumulativeHistogram) -> list[SizePoint]:
    """The cumulative distribution of sizes."""
    whole = sizes.total
    if not whole:
        return []
    points = []
    for item, count, size, share in zip(sizes.bins, sizes.counts, sizes.bytes, sizes.byte_shares(), strict=True):
        bounds = (None, None, None) if sizes.has_bytes else share
        known = (pct(size, sizes.total_bytes), *bounds)
        points.append(SizePoint(item.up_to, count, size, 100.0 * count / whole, *known))
    return points


def age_points(ages: CumulativeHistogram) -> list[AgePoint]:
    """The cumulative distribution of ages."""
    whole = ages.total
    pairs = zip(ages.bins, ages.counts, ages.bytes, strict=True) if whole else ()
    return [
        AgePoint(item.up_to, count, size, 100.0 * count / whole, pct(size, ages.total_bytes))
        for item, count, size in pairs
    ]


def size_summary(sizes: CumulativeHistogram, files: InodeSum) -> SizeSummary:
    """Sizes in a few numbers; the mean is that of `files`, whose bytes may be reported where those of bins are not."""
    common = sizes.most_common
    held = [item for item in sizes.bins if item.count]
    return SizeSummary(
        mean_bytes=mean_size(files),
        median_bytes=sizes.percentile(50),
        p90_bytes=sizes.percentile(90),
        p95_bytes=sizes.percentile(95),
        p99_bytes=sizes.percentile(99),
        largest_bytes=held[-1].up_to if held else None,
        most_common_above_bytes=common.above if common else None,
        most_common_bytes=common.up_to if common else None,
        most_common_files=common.count if common else None,
    )


def at_most(sizes: CumulativeHistogram, limits: Sequence[int]) -> list[AtMost]:
    """Shares up to each of those sizes."""
    result = []
    for size in limits if sizes.total else ():
        files, share = sizes.files_at_most(size), sizes.bytes_at_most(size)
        exact = [low if low == high else None for low, high in (files, (share.low, share.high))]
        result.append(AtMost(size, exact[0], *files, exact[1], *share))
    return result


def within(bins: ScanHistograms, limits: Sequence[int]) -> list[Within]:
    """Shares up to each of those ages, by both clocks as far as they are reported."""
    result = []
    for clock, ages in ((ATIME, bins.atimes), (MTIME, bins.mtimes)):
        for age in limits if ages.total else ():
            files, low, high = ages.files_at_most(age), *ages.known_bytes_at_most(age)
            exact = [value if value == other else None for value, other in (files, (low, high))]
            result.append(Within(clock, age, exact[0], *files, exact[1], low, high))
    return result


def widths_of(widths: CumulativeHistogram, whole: Holdings) -> Widths | None:
    """Every inode is an entry of one directory, so their number over that of the directories is the mean width."""
    if not widths.total:
        return None
    directories, inodes = whole.directories, whole.everything.inodes
    points = [
        WidthPoint(item.up_to, count, 100.0 * count / widths.total)
        for item, count in zip(widths.bins, widths.counts, strict=True)
    ]
    held = [item for item in widths.bins if item.count]
    mean = inodes / directories if directories and inodes is not None else None
    return Widths(widths.total, mean, widths.percentile(50), widths.percentile(99), held[-1].up_to, points)


def mean_size(files: InodeSum) -> float | None:
    """Bytes per file, where both are reported."""
    return files.bytes / files.inodes if files.inodes and files.bytes is not None else None
