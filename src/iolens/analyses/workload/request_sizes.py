"""How large requests are, and how fast large ones are: PDF and CDF, and size against bandwidth (SPEC S6, S7).

Sizes come from linear bins of 16 KiB where a controller counts them (`target_histograms`), else from the disk I/Os by
power-of-two size (`target_sizes`). A bin is labelled with its upper end.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from math import gcd
from typing import Any, Final

import narwhals as nw
import numpy as np

from iolens.analyses.intervals.fsu_sums import data_targets
from iolens.analyses.intervals.tick_matrix import MINUTE_US, TickMatrix, places_of
from iolens.arrays import Booleans, Floats, Integers
from iolens.models.transaction_time import SIZE_COLUMNS
from iolens.part_form import PartForm
from iolens.schema import DIRECTIONS
from iolens.store.parts import Days, EngineParts
from iolens.store.selection import Selection

LONG, WIDE = "target_histograms", "target_sizes"
HISTOGRAM: Final = "request_size"
WINDOW_US: Final = MINUTE_US
SHARE: Final = 0.99  # percentile of sizes and of bandwidth in a window
MOST_POINTS: Final = 20_000
MOST_KEPT: Final = 2 * MOST_POINTS  # of a direction: sizes are not known in all of them
FASTEST: Final = 1_000  # windows of a direction with the largest bandwidth: kept however many windows there are
Peaks = tuple[Integers, Integers, Floats]  # windows, places of targets, and bytes per second
PEAK_SHARE: Final = 0.05  # of a direction's requests: a bin with less is no peak worth naming


@dataclass(frozen=True, slots=True)
class RequestSize:
    """One bin of one direction: share of its requests in it, and of those no larger."""

    direction: str
    size_bytes: int
    requests: int
    pdf: float
    cdf: float


@dataclass(frozen=True, slots=True)
class SizePeak:
    """A bin that holds at least one in twenty of a direction's requests, and more than the bins beside it."""

    direction: str
    size_bytes: int
    requests_pct: float


@dataclass(frozen=True, slots=True)
class SizeBandwidth:
    """Windows of 60 s of a target in which 99 % of a direction's requests are at most that large (S7).

    Bandwidth is the 99th percentile of a window's samples.
    """

    direction: str
    size_bytes: int
    windows: int  # of those taken evenly: one of `taken_every`
    taken_every: int
    median_bytes_per_s: float | None  # of these
    max_bytes_per_s: float  # of them, and of the 1,000 fastest of all windows


@dataclass(frozen=True, slots=True, eq=False)
class SizesAgainstBandwidth:
    """One direction: the 99th percentile of request size and of bandwidth in the same 60 s of the same target."""

    direction: str
    size_bytes: Integers
    bytes_per_s: Floats
    is_even: Booleans  # taken evenly; the others are there because they are fast
    taken_every: int

    def lines(self) -> Iterator[SizeBandwidth]:
        """By size."""
        for size in np.unique(self.size_bytes).tolist():
            fast = self.bytes_per_s[here := self.size_bytes == size]
            even = fast[self.is_even[here]]
            median = float(np.median(even)) if even.size else None
            yield SizeBandwidth(self.direction, size, even.size, self.taken_every, median, float(fast.max()))

    def thinned(self) -> SizesAgainstBandwidth:
        """At most so many points that were taken evenly, and the fastest and the slowest of each size."""
        step = max(1, -(-int(self.is_even.sum()) // MOST_POINTS))
        order = np.lexsort((self.bytes_per_s, self.size_bytes))
        is_other = np.diff(self.size_bytes[order]) != 0
        kept = ~self.is_even
        kept[np.flatnonzero(self.is_even)[::step]] = True
        kept[order[np.append(True, is_other)]] = kept[order[np.append(is_other, True)]] = True
        return replace(
            self, size_bytes=self.size_bytes[kept], bytes_per_s=self.bytes_per_s[kept], is_even=self.is_even[kept]
        )


def holds_requests(selection: Selection) -> bool:
    """Whether a controller counted requests by size."""
    return selection.holds(LONG, "histogram", [HISTOGRAM])


def request_sizes(selection: Selection) -> list[RequestSize]:
    """All targets together; empty where no sizes are known."""
    counts = _counts(selection)
    result = []
    for direction in DIRECTIONS:
        total, reached = sum(counts.get(direction, {}).values()), 0
        for size, count in sorted(counts.get(direction, {}).items()):
            if count:
                reached += count
                result.append(RequestSize(direction, size, count, count / total, reached / total))
    return result


@dataclass(frozen=True, slots=True)
class SampledSizes:
    """Who tells sizes: targets, their samples, the commonest length of one, and from when to when they are."""

    targets: list[str]
    samples: int
    tick_us: int
    extent_us: tuple[int, int]


def sampled_sizes(selection: Selection) -> SampledSizes:
    """Of rows that have sizes; at least one has."""
    frame = data_targets(selection.frame(WIDE))
    if holds_requests(selection):
        frame = selection.frame(LONG).filter(nw.col("histogram") == HISTOGRAM)
    samples = frame.select("target", "start_us", "epoch_us").unique()
    lengths = samples.with_columns(length_us=nw.col("epoch_us") - nw.col("start_us"))
    grouped = lengths.group_by("target", "length_us").agg(
        samples=nw.len(), first_us=nw.col("start_us").min(), last_us=nw.col("epoch_us").max()
    )
    rows = grouped.collect(backend="pyarrow").to_native().to_pylist()
    counts: Counter[int] = Counter()
    for row in rows:
        counts[int(row["length_us"])] += int(row["samples"])
    tick_us = min(counts, key=lambda length: (-counts[length], length))
    extent_us = min(int(row["first_us"]) for row in rows), max(int(row["last_us"]) for row in rows)
    return SampledSizes(sorted({str(row["target"]) for row in rows}), counts.total(), tick_us, extent_us)


def _counts(selection: Selection) -> dict[str, Counter[int]]:
    whole = RequestCounts()
    for part in selection.parts(LONG_PARTS if holds_requests(selection) else WIDE_PARTS):
        whole.take(part)
    return whole.counts


def size_peaks(sizes: Sequence[RequestSize], linear: bool) -> list[SizePeak]:
    """Where requests cluster; `linear` bins are as wide as the largest width that all their ends are multiples of."""
    result = []
    step = gcd(*(size.size_bytes for size in sizes))
    for direction in DIRECTIONS:
        shares = {size.size_bytes: size.pdf for size in sizes if size.direction == direction}
        for size, share in shares.items():
            beside = (size - step, size + step) if linear else (size // 2, size * 2)
            if share >= PEAK_SHARE and share > shares.get(beside[0], 0.0) and share >= shares.get(beside[1], 0.0):
                result.append(SizePeak(direction, size, 100.0 * share))
    return result


@dataclass(slots=True)
class RequestCounts:
    """Requests by direction and size."""

    counts: dict[str, Counter[int]] = field(default_factory=dict)

    def take(self, other: RequestCounts) -> None:
        """Those of other days."""
        for direction, counts in other.counts.items():
            self.counts.setdefault(direction, Counter()).update(counts)


def long_counts(days: Days) -> RequestCounts:
    """Where a controller has linear bins."""
    rows = _requests(days).select("direction", "bin", "count")
    sums = rows.group_by("direction", "bin").agg(nw.col("count").sum()).collect(backend="pyarrow").to_native()
    result = RequestCounts()
    for row in sums.to_pylist():
        result.take(RequestCounts({str(row["direction"]): Counter({int(row["bin"]): int(row["count"])})}))
    return result


def wide_counts(days: Days) -> RequestCounts:
    """Of disk I/Os."""
    live = days.live_columns(WIDE, list(SIZE_COLUMNS))
    result = RequestCounts()
    if live:
        rows = data_targets(days.frame(WIDE)).select(*(nw.col(name).cast(nw.Float64).sum() for name in live))
        for name, value in rows.collect(backend="pyarrow").to_native().to_pylist()[0].items():
            direction, size = SIZE_COLUMNS[name]
            result.take(RequestCounts({direction: Counter({size: round(value or 0.0)})}))
    return result


LONG_PARTS: Final = EngineParts(long_counts, PartForm("request-sizes", 1, (RequestCounts,)), (LONG,), is_kept=True)
WIDE_PARTS: Final = EngineParts(wide_counts, PartForm("disk-sizes", 1, (RequestCounts,)), (WIDE,), is_kept=True)


def _requests(days: Days) -> nw.LazyFrame[Any]:
    return days.frame(LONG).filter(nw.col("histogram") == HISTOGRAM)


@dataclass(slots=True)
class WindowSizes:
    """By direction: windows, places of targets, and the upper end of the first bin that reaches 99 % of requests."""

    targets: tuple[str, ...]
    pieces: dict[str, tuple[Integers, Integers, Integers]]


WINDOW_SIZES: Final = PartForm("window-sizes", 1, (WindowSizes,))


def window_sizes(days: Days, every: int, others: tuple[int, ...] = ()) -> WindowSizes:
    """Of the bins of each target and window that is drawn: one of so many, and others."""
    window = (nw.col("epoch_us") - 1) // WINDOW_US
    is_drawn, ends = window % every == 0, days.ends
    if here := [
        other for other in others if ends.after_us < (other + 1) * WINDOW_US and other * WINDOW_US < ends.until_us
    ]:
        is_drawn |= window.is_in(here)
    rows = _requests(days).select("target", "direction", "epoch_us", "bin", "count").filter(is_drawn)
    table = rows.collect(backend="pyarrow").to_native()
    targets = tuple(sorted(set(table.column("target").to_pylist())))
    key = (table.column("epoch_us").to_numpy() - 1) // WINDOW_US * len(targets)
    key, side = key + places_of(table.column("target"), targets), places_of(table.column("direction"), DIRECTIONS)
    size, count = (table.column(name).to_numpy() for name in ("bin", "count"))
    pieces = {}
    for place, direction in enumerate(DIRECTIONS):
        mine = side == place
        where, large = _large(key[mine], size[mine], count[mine].astype(np.float64))
        pieces[direction] = (*np.divmod(where, max(len(targets), 1)), large)
    return WindowSizes(targets, pieces)


@dataclass(slots=True)
class WindowPeaks:
    """Feed matrices: the 99th percentile of each target's samples in every 60 s, for as many windows as are drawn, and
    for the fastest of all.
    """

    every: int = 1  # only windows whose number is a multiple of this power of two
    parts: dict[str, list[Peaks]] = field(default_factory=dict)  # by direction, and `read fastest`

    def add(self, matrix: TickMatrix) -> None:
        """Take the next ticks."""
        window = (matrix.end_us - 1) // WINDOW_US
        for direction in DIRECTIONS:
            if f"{direction}_bytes" in matrix.measures and window.size:
                peaks = _high(window, matrix.rate(f"{direction}_bytes"))
                self.parts.setdefault(direction, []).append(_of_windows(peaks, peaks[0] % self.every == 0))
                self.parts.setdefault(_fastest(direction), []).append(_fastest_of([peaks]))
        self._thin(self.every)

    def take(self, later: WindowPeaks) -> None:
        """Those of later ticks."""
        for direction, parts in later.parts.items():
            self.parts.setdefault(direction, []).extend(parts)
        self._thin(max(self.every, later.every))

    def rearranged(self, columns: Integers) -> WindowPeaks:
        """Of other targets, by their places among these."""
        there = np.flatnonzero(columns >= 0)
        place = np.full(int(columns.max(initial=-1)) + 1, -1)
        place[columns[there]] = there
        result = WindowPeaks(self.every)
        for direction, parts in self.parts.items():
            result.parts[direction] = [(window, place[target], fast) for window, target, fast in parts]
        return result

    def _thin(self, every: int) -> None:
        """Evenly, where there are very many; the same windows however the ticks were divided."""
        evenly = [direction for direction in DIRECTIONS if direction in self.parts]
        while every > self.every or any(
            sum(window.size for window, *_ in self.parts[direction]) > MOST_KEPT for direction in evenly
        ):
            self.every = max(every, 2 * self.every)
            for direction in evenly:
                self.parts[direction] = [_of_windows(part, part[0] % self.every == 0) for part in self.parts[direction]]
        for name in map(_fastest, evenly):
            if name in self.parts and sum(window.size for window, *_ in self.parts[name]) > 2 * FASTEST:
                self.parts[name] = [_fastest_of(self.parts[name])]

    def against(self, selection: Selection, targets: tuple[str, ...]) -> list[SizesAgainstBandwidth]:
        """Figure 9: every window in which sizes and bandwidth are known, or so many of them, and the fastest."""
        pairs, drawn = [], self._drawn()
        fast_windows = {
            int(number) for window, *_ in drawn.values() for number in np.unique(window[window % self.every != 0])
        }
        sizes = self._sizes(selection, targets, tuple(sorted(fast_windows))) if drawn else {}
        for direction, (window, target, fast) in drawn.items():
            where, large = sizes[direction]
            _, left, right = np.intersect1d(window * len(targets) + target, where, return_indices=True)
            if left.size:
                is_even = window[left] % self.every == 0
                pairs.append(SizesAgainstBandwidth(direction, large[right], fast[left], is_even, self.every))
        return pairs

    def _drawn(self) -> dict[str, Peaks]:
        """By direction, those taken evenly and the fastest together."""
        drawn = {}
        for direction in DIRECTIONS:
            if parts := self.parts.get(direction):
                fastest = self.parts.get(_fastest(direction), [])
                window, target, fast = _joined([*parts, *([_fastest_of(fastest)] if fastest else [])])
                drawn[direction] = window, target, fast
        return drawn

    def _sizes(
        self, selection: Selection, targets: tuple[str, ...], others: tuple[int, ...]
    ) -> dict[str, tuple[Integers, Integers]]:
        """By direction: windows of targets, and their sizes."""
        result: dict[str, list[tuple[Integers, Integers]]] = {direction: [] for direction in DIRECTIONS}
        places = {name: number for number, name in enumerate(targets)}
        for part in selection.parts(EngineParts(window_sizes, WINDOW_SIZES, (LONG,), (self.every, others))):
            place = np.array([places.get(name, -1) for name in part.targets], np.int64)
            for direction, (window, target, large) in part.pieces.items():
                known = place[target] >= 0
                result[direction].append(((window * len(targets) + place[target])[known], large[known]))
        nothing = [(np.empty(0, np.int64), np.empty(0, np.int64))]
        return {
            direction: (np.concatenate([pair[0] for pair in pairs]), np.concatenate([pair[1] for pair in pairs]))
            for direction, pairs in ((direction, pairs or nothing) for direction, pairs in result.items())
        }


def _fastest(direction: str) -> str:
    return f"{direction} fastest"


def _of_windows(peaks: Peaks, kept: Booleans) -> Peaks:
    window, target, fast = peaks
    return window[kept], target[kept], fast[kept]


def _joined(parts: Sequence[Peaks]) -> Peaks:
    window, target, fast = (np.concatenate(column) for column in zip(*parts, strict=True))
    return window, target, fast


def _fastest_of(parts: Sequence[Peaks]) -> Peaks:
    """The same however the parts were divided: of equal ones the earliest."""
    window, target, fast = _joined(parts)
    kept = np.lexsort((target, window, -fast))[:FASTEST]
    return window[kept], target[kept], fast[kept]


def _high(window: Integers, rates: Floats) -> tuple[Integers, Integers, Floats]:
    """Windows, places of targets, and the percentile of the samples of each, by interpolation at (n − 1)·p."""
    windows, starts, sizes = np.unique(window, return_index=True, return_counts=True)
    shape = windows.size, int(sizes.max()), rates.shape[1]
    if (sizes == shape[1]).all():
        cube = np.sort(rates.reshape(shape), axis=1)  # NaN comes last
    else:
        cube = np.full(shape, np.nan)
        line = np.repeat(np.arange(windows.size), sizes)
        cube[line, np.arange(window.size) - starts[line]] = rates
        cube.sort(axis=1)
    known = shape[1] - np.count_nonzero(np.isnan(cube), axis=1)
    place = np.maximum(known - 1, 0) * SHARE
    low = np.floor(place).astype(np.int64)
    high = np.minimum(low + 1, np.maximum(known - 1, 0))
    below, above = (np.take_along_axis(cube, item[:, None, :], axis=1)[:, 0] for item in (low, high))
    value = below + (above - below) * (place - low)
    row, column = np.nonzero(known)
    return windows[row], column, value[row, column]


def _large(key: Integers, size: Integers, count: Floats) -> tuple[Integers, Integers]:
    if not key.size:
        return key, size
    order = np.lexsort((size, key))
    key, size, count = key[order], size[order], count[order]
    starts = np.flatnonzero(np.diff(key, prepend=-1))
    group = np.repeat(np.arange(starts.size), np.diff(np.append(starts, key.size)))
    running = np.cumsum(count)
    reached = running - (running[starts] - count[starts])[group]
    first = np.flatnonzero(reached >= (SHARE - 1e-12) * np.add.reduceat(count, starts)[group])
    leading = first[np.diff(group[first], prepend=-1) != 0]
    return key[leading], size[leading]
