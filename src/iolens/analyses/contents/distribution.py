"""How the files of one scan are distributed: by size and age, by owner, project and type."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, Final, Literal, NamedTuple

import narwhals as nw
import numpy as np

from iolens.analyses.contents.scans import ATIME, DIRECTORY, FILE, MTIME, SIZE, TOTAL, WIDTH, InodeSum, added, sums
from iolens.analyses.results import only_if_present, pct
from iolens.arrays import Booleans, Floats
from iolens.models.dom import Bin

# Who holds what in one scan -------------------------------------------------------------------------------------------
# Sums by owner, project and type of inode, divided and put together as one likes.
#
# Totals are those of the `total` rows of a source that has them, else the sums over its `size` histogram.

Name = Literal["owner", "project", "inode_type"]
NAMES: Final[tuple[Name, ...]] = ("owner", "project", "inode_type")


class Holder(NamedTuple):
    """Whose inodes, and of what type."""

    owner: str | None
    project: str | None
    inode_type: str | None


@dataclass(frozen=True, slots=True)
class Holdings:
    """Sums by holder."""

    held: dict[Holder, InodeSum]

    def where(self, chosen: Callable[[Holder], bool]) -> Holdings:
        """Those of some holders."""
        return Holdings({holder: inode_sum for holder, inode_sum in self.held.items() if chosen(holder)})

    def without(self, projects: Sequence[str]) -> Holdings:
        """All but those of some projects."""
        return self.where(lambda holder: holder.project not in projects)

    def with_name(self, name: Name) -> Holdings:
        """Those whose owner, or project, is reported."""
        return self.where(lambda holder: getattr(holder, name) is not None)

    def of_type(self, inode_type: str) -> InodeSum:
        """All inodes of one type."""
        return added([inode_sum for holder, inode_sum in self.held.items() if holder.inode_type == inode_type])

    @property
    def directories(self) -> int | None:
        """Their number; None where there is none, for a listing may leave them out and every tree has one."""
        return self.of_type(DIRECTORY).inodes if DIRECTORY in self.names("inode_type") else None

    @property
    def everything(self) -> InodeSum:
        """All inodes."""
        return added(list(self.held.values()))

    def names(self, name: Name) -> set[str]:
        """Owners, projects or types there are."""
        return {value for holder in self.held if (value := getattr(holder, name)) is not None}

    def by(self, name: Name) -> list[tuple[str | None, Holdings]]:
        """Divided by owner, project or type, those with most bytes first; by files where bytes are not reported."""
        inode_sums: dict[str | None, dict[Holder, InodeSum]] = {}
        for holder, inode_sum in self.held.items():
            inode_sums.setdefault(getattr(holder, name), {})[holder] = inode_sum
        parts = [(value, Holdings(held)) for value, held in inode_sums.items()]
        return sorted(parts, key=lambda part: (*_weight(part[1], name), str(part[0])))


def _weight(part: Holdings, name: Name) -> tuple[int, int]:
    whole = part.everything if name == "inode_type" else part.of_type(FILE)
    first, second = (whole.inodes, whole.bytes) if name == "inode_type" else (whole.bytes, whole.inodes)
    return -(first or 0), -(second or 0)


def holdings_of(rows: nw.LazyFrame[Any]) -> Holdings:
    """Sums over the rows of one scan."""
    mine = rows.filter(nw.col("histogram").is_in([SIZE, TOTAL]))
    by_histogram: dict[str, dict[Holder, InodeSum]] = {SIZE: {}, TOTAL: {}}
    for (owner, project, inode_type, histogram), inode_sum in sums(mine, *NAMES, "histogram"):
        by_histogram[str(histogram)][Holder(owner, project, inode_type)] = inode_sum
    return Holdings(_merged(by_histogram[SIZE], by_histogram[TOTAL]))


def _merged(sizes: dict[Holder, InodeSum], totals: dict[Holder, InodeSum]) -> dict[Holder, InodeSum]:
    """For each type of inode the totals, where there are any; what they leave open the sizes may tell."""
    by_total = {holder.inode_type for holder in totals}
    inode_sums = {holder: size for holder, size in sizes.items() if holder.inode_type not in by_total}
    for holder, total in totals.items():
        inode_sums[holder] = completed(total, sizes.get(holder))
    return inode_sums


def completed(inode_sum: InodeSum, other: InodeSum | None) -> InodeSum:
    """A sum with what it does not tell taken from another of the same inodes."""
    if other is None:
        return inode_sum
    return InodeSum(*(mine if mine is not None else theirs for mine, theirs in zip(inode_sum, other, strict=True)))


# Histograms added up from the smallest bin on -------------------------------------------------------------------------
# Shares, percentiles, and what the bins leave open.
#
# Where a source counts inodes by size without their bytes, the ends of the bins bound each share of the bytes.


class Share(NamedTuple):
    """A part of all bytes in per cent: at least, by the middle of the bins, at most; None: not known."""

    low: float | None
    middle: float | None
    high: float | None


@dataclass(frozen=True, slots=True)
class CumulativeHistogram:
    """Bins in order, each upper end once. `total_bytes` is their sum where it is reported, by the bins or otherwise."""

    bins: tuple[Bin, ...]
    total_bytes: int | None

    @classmethod
    def of(cls, bins: Iterable[Bin], total_bytes: int | None = None) -> CumulativeHistogram:
        """Bins in any order, the same one several times; one without a lower end begins where the one below ends."""
        by_name: dict[int | None, Bin] = {}
        for item in bins:
            before = by_name.get(item.up_to, Bin(item.above, item.up_to, 0, 0))
            above = None if item.above is None or before.above is None else min(item.above, before.above)
            both = None if item.bytes is None or before.bytes is None else item.bytes + before.bytes
            by_name[item.up_to] = Bin(above, item.up_to, item.count + before.count, both)
        ordered = sorted(by_name.values(), key=lambda entry: (entry.up_to is None, entry.up_to or 0))
        reported = [item.bytes for item in ordered if item.bytes is not None]
        return cls(tuple(ordered), sum(reported) if len(reported) == len(ordered) else total_bytes)

    @property
    def total(self) -> int:
        """All inodes."""
        return sum(item.count for item in self.bins)

    @property
    def has_bytes(self) -> bool:
        """Whether every bin tells its bytes."""
        return all(item.bytes is not None for item in self.bins)

    @property
    def counts(self) -> list[int]:
        """Inodes up to the end of each bin."""
        return list(accumulate(item.count for item in self.bins))

    @property
    def bytes(self) -> list[int] | list[None]:
        """Bytes up to the end of each bin; None, all of them, where one bin does not tell."""
        if not self.has_bytes:
            return [None] * len(self.bins)
        return list(accumulate(item.bytes or 0 for item in self.bins))

    def percentile(self, pct: float) -> int | None:
        """Upper end of the first bin whose cumulative share reaches `pct`; None where that bin has no end."""
        total = self.total
        reached = (
            item.up_to
            for item, count in zip(self.bins, self.counts, strict=True)
            if total and 100 * count >= pct * total
        )
        return next(reached, None)

    @property
    def most_common(self) -> Bin | None:
        """The bin with most inodes, the smallest of several; its lower end is reported."""
        if not self.total:
            return None
        place = max(range(len(self.bins)), key=lambda value: self.bins[value].count)
        item = self.bins[place]
        return Bin(self._above(place), item.up_to, item.count, item.bytes)

    def files_at_most(self, size: int) -> tuple[float | None, float | None]:
        """Share of the inodes that are no larger, in per cent: at least and at most, by the bins."""
        total = self.total
        if not total:
            return None, None
        surely, perhaps = self._up_to(size)
        counts = np.array([item.count for item in self.bins])
        low, high = int(counts[surely].sum()), int(counts[perhaps].sum())
        return 100.0 * low / total, 100.0 * high / total

    def bytes_at_most(self, size: int) -> Share:
        """Share of the bytes that are in inodes no larger; no middle where the size is inside a bin."""
        surely, perhaps = self._up_to(size)
        least, most = self.byte_share(surely), self.byte_share(perhaps)
        return Share(least.low, least.middle if (surely == perhaps).all() else None, most.high)

    def known_bytes_at_most(self, value: int) -> tuple[float | None, float | None]:
        """The same by reported bytes alone, for bins that are of something else than size."""
        if not self.has_bytes:
            return None, None
        surely, perhaps = self._up_to(value)
        return self.byte_share(surely).low, self.byte_share(perhaps).high

    def byte_shares(self) -> list[Share]:
        """Bounds of the share of the bytes up to the end of each bin."""
        places = np.arange(len(self.bins))
        return [self.byte_share(places <= place) for place in places]

    def byte_share(self, chosen: Booleans) -> Share:
        """Share of the bytes in some of the bins, whatever the sizes within the bins are."""
        if self.has_bytes:
            reported = sum(item.bytes or 0 for item, mine in zip(self.bins, chosen, strict=True) if mine)
            exact = 100.0 * reported / self.total_bytes if self.total_bytes else None
            return Share(exact, exact, exact)
        least, most = self._byte_bounds()
        (in_least, in_most), (out_least, out_most) = (
            (float(least[some].sum()), float(most[some].sum())) for some in (chosen, ~chosen)
        )
        total = self.total_bytes
        if total is None:
            low, high = _ratio(in_least, out_most), _ratio(in_most, out_least)
        else:
            low = _ratio(max(in_least, total - out_most), min(out_most, total - in_least))
            high = _ratio(min(in_most, total - out_least), max(out_least, total - in_most))
        return Share(low, self._middle(chosen, low, high), high)

    def byte_range(self) -> tuple[int | None, int | None, int | None]:
        """Bytes of all bins together: at least, with every inode in the middle of its bin, at most."""
        least, most = (float(ends.sum()) for ends in self._byte_bounds())
        if not np.isfinite(most):
            return round(least), None, None
        return round(least), round((least + most) / 2.0), round(most)

    def _middle(self, chosen: Booleans, low: float | None, high: float | None) -> float | None:
        """With all sizes at the same place in their bins: the middle, or where they add up to the total reported."""
        least, most = self._byte_bounds()
        if low is None or high is None or (self.total_bytes is None and not np.isfinite(most).all()):
            return None
        place = 0.5
        if self.total_bytes is not None:
            free = max(self.total_bytes - float(least.sum()), 0.0)
            most = np.minimum(most, least + free)  # an open bin may hold all that is left
            space = float((most - least).sum())
            place = free / space if space else 0.0
        sizes = least + min(place, 1.0) * (most - least)
        share = _ratio(float(sizes[chosen].sum()), float(sizes[~chosen].sum()))
        return None if share is None else min(max(share, low), high)

    def _byte_bounds(self) -> tuple[Floats, Floats]:
        """Least and most bytes of each bin; alike where it tells them."""
        least, most = [], []
        for place, item in enumerate(self.bins):
            if item.bytes is not None or not item.count:
                least.append(float(item.bytes or 0))
                most.append(float(item.bytes or 0))
            else:
                above = self._above(place)
                least.append(0.0 if item.up_to == 0 or above is None else float(item.count) * (above + 1))
                most.append(np.inf if item.up_to is None else float(item.count) * item.up_to)
        return np.array(least), np.array(most)

    def _above(self, place: int) -> int | None:
        """What a bin's inodes are larger than; None for the first of all where nothing is said."""
        item = self.bins[place]
        return self.bins[place - 1].up_to if item.above is None and place else item.above

    def _up_to(self, size: int) -> tuple[Booleans, Booleans]:
        """Bins that hold only inodes of at most that size, and those that may hold some."""
        ends = np.array([np.inf if item.up_to is None else item.up_to for item in self.bins])
        starts = np.array([-1 if (above := self._above(place)) is None else above for place in range(len(self.bins))])
        return ends <= size, (ends <= size) | (starts < size)


def _ratio(part: float, rest: float) -> float | None:
    """A part in per cent of itself and the rest; None of nothing."""
    if np.isinf(part):
        return 100.0
    whole = part + rest
    return 100.0 * part / whole if whole else None


# How the files of one scan are distributed ----------------------------------------------------------------------------
# By size (Fig. 8 of paper D), by age (Fig. 9), and directories by width.

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
