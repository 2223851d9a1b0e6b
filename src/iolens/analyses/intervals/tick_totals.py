"""Everything reported of a file system as a whole, tick by tick; its peak, and steady stretches of it (U10)."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from iolens.analyses import Options, StoreKnowledge
from iolens.analyses.intervals.buckets import BucketQuantiles, bucket_seconds, envelope_bucket_us
from iolens.analyses.intervals.target_rows import joined
from iolens.arrays import Booleans, Columns, Floats, Integers
from iolens.models.transaction_time import BUSY_ABOVE_PCT, IDLE_BELOW_PCT
from iolens.store.selection import Selection
from iolens.units import parse_rate

# Steady stretches (U10) -----------------------------------------------------------------------------------------------
# FSU that stays narrow around a level well above idle. `saturation` says which are full.
#
# Works on a stream of ticks and keeps only what is still undecided, so that a year needs no more memory than a day.

MINIMUM_S: Final = 600.0
MAXIMUM_SPREAD: Final = 0.25
MINIMUM_MEDIAN_PCT: Final = 30.0
FEWEST_TICKS: Final = 8
AWAY_S: Final = 60.0
_GAP_TICKS: Final = 2.5
_BLOCK: Final = 8192

Ticks = Integers


@dataclass(frozen=True, slots=True)
class TickStretch:
    """From the start of the first to the end of the last tick, in microseconds."""

    start_us: int
    end_us: int
    median: float


@dataclass(slots=True)
class PlateauFinder:
    """Feed ticks in time order; `finish` tells the stretches."""

    tick_us: int
    minimum_s: float = MINIMUM_S
    maximum_spread: float = MAXIMUM_SPREAD
    minimum_median: float = MINIMUM_MEDIAN_PCT
    stretches: list[TickStretch] = field(default_factory=list)
    _time_us: Ticks = field(default_factory=lambda: np.empty(0, np.int64))
    _fsu: Floats = field(default_factory=lambda: np.empty(0))

    @property
    def length(self) -> int:
        """Ticks in the shortest plateau."""
        return max(int(np.ceil(self.minimum_s * 1e6 / self.tick_us)), 1)

    @property
    def is_possible(self) -> bool:
        """Whether ticks are short enough to tell anything of a stretch of the minimum length."""
        return self.length >= FEWEST_TICKS

    def feed(self, time_us: Ticks, fsu: Floats) -> None:
        """Take the next ticks and settle all stretches that cannot grow any more."""
        self._time_us = np.concatenate([self._time_us, time_us])
        self._fsu = np.concatenate([self._fsu, fsu])
        self._settle(final=False)

    def finish(self) -> list[TickStretch]:
        """Settle the rest."""
        self._settle(final=True)
        return self.stretches

    def _settle(self, *, final: bool) -> None:
        if not self.is_possible:
            return
        keep_from = len(self._time_us)
        breaks = np.flatnonzero(np.diff(self._time_us) > _GAP_TICKS * self.tick_us) + 1
        bounds = [0, *breaks.tolist(), len(self._time_us)]
        for low, high in itertools.pairwise(bounds):
            runs = self._runs(low, high)
            if high == len(self._time_us) and not final:
                keep_from = max(low, high - self.length + 1)
                if runs and runs[-1][1] >= keep_from:
                    keep_from = runs.pop()[0]
            for run in runs:
                self._cut(*run)
        self._time_us, self._fsu = self._time_us[keep_from:], self._fsu[keep_from:]

    def _runs(self, low: int, high: int) -> list[tuple[int, int]]:
        """Unions of overlapping windows of the minimum length that qualify, as index ranges [from, to)."""
        starts = low + np.flatnonzero(self._qualifying(self._fsu[low:high]))
        if not len(starts):
            return []
        splits = np.flatnonzero(np.diff(starts) > self.length) + 1
        return [(int(part[0]), int(part[-1]) + self.length) for part in np.split(starts, splits)]

    def _qualifying(self, fsu: Floats) -> Booleans:
        """For each window of the minimum length, whether it is a plateau by itself."""
        length = self.length
        if len(fsu) < length:
            return np.zeros(0, np.bool_)
        high_enough = np.concatenate([[0], np.cumsum(fsu >= self.minimum_median)])
        likely = np.flatnonzero(2 * (high_enough[length:] - high_enough[:-length]) >= length)
        windows = np.lib.stride_tricks.sliding_window_view(fsu, length)
        result = np.zeros(len(windows), np.bool_)
        for begin in range(0, len(likely), _BLOCK):
            block = likely[begin : begin + _BLOCK]
            lower, median, upper = np.percentile(windows[block], [25, 50, 75], axis=1)
            result[block] = (median >= self.minimum_median) & (upper - lower <= self.maximum_spread * median)
        return result

    def _cut(self, low: int, high: int) -> None:
        """Cut a run into the longest stretches that are plateaus as a whole."""
        while high - low >= self.length:
            end = self._longest(low, high)
            if end == low:
                low += 1
                continue
            first, last = self._trimmed(low, end)
            self._cut(low, first)  # what was trimmed may be a plateau at a level of its own
            median = float(np.median(self._fsu[first:last]))
            start_us = int(self._time_us[first]) - self.tick_us
            self.stretches.append(TickStretch(start_us, int(self._time_us[last - 1]), median))
            low = last

    def _trimmed(self, low: int, high: int) -> tuple[int, int]:
        """The longest part without a minute far from its level, at the ends or within, which quartiles do not see."""
        fsu = self._fsu[low:high]
        level = float(np.median(fsu))
        near = low + np.flatnonzero(np.abs(fsu - level) <= self.maximum_spread * level)
        away = max(int(np.ceil(AWAY_S * 1e6 / self.tick_us)), 2)
        parts = np.split(near, np.flatnonzero(np.diff(near) > away) + 1)
        first, last = max(((int(part[0]), int(part[-1]) + 1) for part in parts), key=lambda part: part[1] - part[0])
        return (first, last) if last - first >= self.length and self._is_plateau(first, last) else (low, high)

    def _longest(self, low: int, high: int) -> int:
        """The end of the longest plateau found from `low` by doubling and halving; `low` when there is none."""
        if self._is_plateau(low, high):
            return high
        if not self._is_plateau(low, low + self.length):
            return low
        good, bad = low + self.length, high
        while bad - good > 1:
            middle = min(good + max(good - low, 1), (good + bad + 1) // 2)
            if middle >= bad:
                break
            if self._is_plateau(low, middle):
                good = middle
            else:
                bad = middle
        return good

    def _is_plateau(self, low: int, high: int) -> bool:
        lower, median, upper = np.percentile(self._fsu[low:high], [25, 50, 75])
        return bool(median >= self.minimum_median and upper - lower <= self.maximum_spread * median)


# The peak bandwidth of a file system: as given, else as configured ----------------------------------------------------


def peak_options(known: StoreKnowledge, selection: Selection, options: Options) -> Options:
    """`peak` of the options in bytes per second, and where it is from where it was not given."""
    given, configured = options.pop("peak", None), known.config.filesystem(selection.filesystem).peak_bytes_per_s
    if given is not None:
        return {"peak_bytes_per_s": parse_rate(given) if isinstance(given, str) else float(given)}
    return {} if configured is None else {"peak_bytes_per_s": configured, "peak_origin": "configured"}


# Everything reported of a file system as a whole, gathered from tick sums in time order -------------------------------
# An observation is one tick: the unweighted mean FSU of the targets that report in it.

BIN_PCT: Final = 2.0
BINS: Final = 100
MOST_SERIES_POINTS: Final = 5_000  # beyond a figure with three curves is slow to load and zoom
SPREADS: Final = ("fsu", "read_rate", "write_rate", "util")
FIRST_TICKS: Final = 17_280  # tell how far apart ticks are: a day of 5 s


@dataclass(slots=True)
class HeldBack:
    """Ticks at the end of a chunk, whose sums may not be complete: a row is of the day its interval starts in."""

    columns: Columns = field(default_factory=dict)

    def merge(self, new: Columns, complete_until_us: int | None) -> Columns:
        """Add the sums of equal ticks; give out those that are complete, in time order, and hold the others."""
        parts = [part for part in (self.columns, new) if part]
        ticks, where = np.unique(np.concatenate([part["epoch_us"] for part in parts]), return_inverse=True)
        merged: Columns = {"epoch_us": ticks}
        for name in dict.fromkeys(name for part in parts for name in part if name != "epoch_us"):
            values = np.concatenate([part.get(name, np.zeros(len(part["epoch_us"]))) for part in parts])
            merged[name] = np.bincount(where, weights=np.nan_to_num(values), minlength=len(ticks))
        done = ticks <= complete_until_us if complete_until_us is not None else np.ones(len(ticks), np.bool_)
        self.columns = {name: values[~done] for name, values in merged.items()}
        return {name: values[done] for name, values in merged.items()}


@dataclass(slots=True)
class PeakWatch:
    """The largest tick, and the time above 30 % of a peak that may be known only at the end.

    Keeps just the ticks that can still count: those above 30 % of the largest seen so far.
    """

    known_peak: float | None
    largest: float = 0.0
    seconds: float = 0.0
    rates: Floats = field(default_factory=lambda: np.empty(0))
    lengths: Floats = field(default_factory=lambda: np.empty(0))

    def add(self, rates: Floats, lengths: Floats) -> None:
        """Take the next ticks."""
        self.largest = max(self.largest, float(rates.max(initial=0.0)))
        self.seconds += float(lengths.sum())
        rates, lengths = np.concatenate([self.rates, rates]), np.concatenate([self.lengths, lengths])
        keep = rates > self._threshold(self.known_peak or self.largest)
        self.rates, self.lengths = rates[keep], lengths[keep]

    def busy_time_pct(self, peak: float | None) -> float | None:
        """Share of time with more than 30 % of `peak`."""
        if not peak or not self.seconds:
            return None
        return 100.0 * float(self.lengths[self.rates > self._threshold(peak)].sum()) / self.seconds

    @staticmethod
    def _threshold(peak: float) -> float:
        return BUSY_ABOVE_PCT / 100.0 * peak


@dataclass(slots=True)
class SeriesBuckets:
    """FSU, bandwidth and %util over time: every tick of a short window, bucket means of a long one."""

    first_us: int
    bucket_us: int
    sums: Floats  # rows: fsu·s, s of fsu, read bytes, write bytes, s of bytes, util·s, s of util

    @classmethod
    def over(cls, extent_us: tuple[int, int], tick_us: int) -> SeriesBuckets:
        """Buckets of one tick while that is few enough to draw."""
        span = extent_us[1] - extent_us[0]
        bucket = (
            tick_us if span / tick_us <= MOST_SERIES_POINTS else bucket_seconds(span, MOST_SERIES_POINTS) * 1_000_000
        )
        first = extent_us[0] // bucket
        return cls(first * bucket, bucket, np.zeros((7, (extent_us[1] - 1) // bucket - first + 2)))

    def add(self, rows: slice, time_us: Integers, weights: Floats, *values: Floats) -> None:
        """Add rates weighted by time to the given rows, and the time itself to the row after them."""
        where = np.clip((time_us - 1 - self.first_us) // self.bucket_us, 0, self.sums.shape[1] - 1)
        for row, value in zip(self.sums[rows], [*(value * weights for value in values), weights], strict=True):
            row += np.bincount(where, weights=value, minlength=len(row))

    def columns(self) -> tuple[Integers, Floats, Floats, Floats, Floats]:
        """Time (end of bucket), FSU, read and write bytes per second, %util; NaN where nothing was reported."""
        fsu, fsu_s, read, write, bytes_s, util, util_s = self.sums
        some = (fsu_s > 0) | (bytes_s > 0)
        time_us = self.first_us + (np.flatnonzero(some) + 1) * self.bucket_us
        with np.errstate(invalid="ignore", divide="ignore"):
            means = fsu / fsu_s, read / bytes_s, write / bytes_s, util / util_s
        return time_us, *(mean[some] for mean in means)


@dataclass(slots=True)
class TickTotals:
    """Feed the ticks of one part after the other, then `finish`."""

    make_finder: Callable[[int], PlateauFinder]
    extent_us: tuple[int, int] | None
    known_peak: float | None
    samples: int = 0
    target_samples: int = 0
    most_targets: int = 0
    seconds: float = 0.0
    fsu_seconds: float = 0.0
    busy_s: float = 0.0
    optimal_busy_s: float = 0.0
    util_seconds: float = 0.0
    util_s: float = 0.0
    observations: Integers = field(default_factory=lambda: np.zeros(BINS + 1, np.int64))
    category_counts: Integers = field(default_factory=lambda: np.zeros(3, np.int64))
    tick_us: int | None = None
    series: SeriesBuckets | None = None
    spreads: dict[str, BucketQuantiles] = field(default_factory=dict)  # none while every tick can be seen
    plateaus: list[TickStretch] | None = field(default_factory=list)  # None: ticks too long to look for any
    bandwidth: PeakWatch = field(init=False)
    _finder: PlateauFinder | None = None
    _sizes: Columns = field(default_factory=dict)  # not in the series yet
    _io: Columns = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.bandwidth = PeakWatch(self.known_peak)

    @property
    def extent_of_ticks(self) -> tuple[int | None, int | None]:
        """What the log says of the data's extent."""
        return self.extent_us or (None, None)

    def add(self, sizes: Columns, io: Columns) -> None:
        """Take the next ticks: FSU, seconds and number of targets, and bandwidth, seconds and %util."""
        self._count(known_ticks(sizes))
        self._count_io(io)
        self._sizes, self._io = joined(self._sizes, sizes), joined(self._io, io)
        if max(len(self._sizes["epoch_us"]), len(self._io["epoch_us"])) >= FIRST_TICKS:
            self._draw()

    def finish(self) -> None:
        """Draw the rest and settle the plateaus."""
        if self._sizes:
            self._draw()
        if self._finder is not None:
            self.plateaus = self._finder.finish() if self._finder.is_possible else None

    def _count(self, sizes: Columns) -> None:
        targets, seconds, fsu = (sizes[name] for name in ("targets", "seconds", "fsu"))
        self.samples += len(fsu)
        self.target_samples += int(targets.sum())
        self.most_targets = max(self.most_targets, int(targets.max(initial=0)))
        self.seconds += float(seconds.sum())
        self.fsu_seconds += float((fsu * seconds).sum())
        self.busy_s += float(seconds[fsu > BUSY_ABOVE_PCT].sum())
        self.optimal_busy_s += float(seconds[sizes["optimal_is_busy"]].sum())
        self.observations += np.bincount(np.minimum((fsu / BIN_PCT).astype(np.int64), BINS), minlength=BINS + 1)
        self.category_counts += np.bincount(category_of(fsu), minlength=3)

    def _count_io(self, io: Columns) -> None:
        self.bandwidth.add(io["read_rate"] + io["write_rate"], io["seconds"])
        if "util" in io:
            counted = _known(io, ~np.isnan(io["util"]))
            self.util_seconds += float((counted["util"] * counted["util_s"]).sum())
            self.util_s += float(counted["util_s"].sum())

    def _draw(self) -> None:
        """Give the ticks that wait to the series and the plateaus, whose tick is that of the first ticks."""
        sizes, io = self._sizes, self._io
        if self.tick_us is None and self.extent_us is not None:
            self.tick_us = _spacing(sizes, io)
            if self.tick_us is not None:
                self._finder = self.make_finder(self.tick_us)
                self.series = SeriesBuckets.over(self.extent_us, self.tick_us)
                width_us = envelope_bucket_us(self.extent_us, self.tick_us)
                if width_us is not None:
                    self.spreads = {name: BucketQuantiles.over(self.extent_us, width_us) for name in SPREADS}
        if self._finder is not None and self.series is not None:
            known = known_ticks(sizes)
            self._finder.feed(known["epoch_us"], known["fsu"])
            self.series.add(slice(0, 2), known["epoch_us"], known["seconds"], known["fsu"])
            self.series.add(slice(2, 5), io["epoch_us"], io["seconds"], io["read_rate"], io["write_rate"])
            self._spread(known, "fsu")
            self._spread(io, "read_rate", "write_rate")
            if "util" in io:
                counted = _known(io, ~np.isnan(io["util"]))
                self.series.add(slice(5, 7), counted["epoch_us"], counted["util_s"], counted["util"])
                self._spread(counted, "util")
        self._sizes, self._io = {}, {}

    def _spread(self, ticks: Columns, *names: str) -> None:
        for name in names:
            if name in self.spreads:
                self.spreads[name].add(ticks["epoch_us"], ticks[name])


def known_ticks(sizes: Columns) -> Columns:
    """Those in which any target reports sizes."""
    return _known(sizes, sizes["targets"] > 0)


def _known(ticks: Columns, is_known: Booleans) -> Columns:
    return {name: values[is_known] for name, values in ticks.items()}


def category_of(fsu: Floats) -> Integers:
    """0 where it is idle, 1 moderate, 2 busy."""
    categories: Integers = (fsu >= IDLE_BELOW_PCT).astype(np.int64) + (fsu > BUSY_ABOVE_PCT)
    return categories


def _spacing(sizes: Columns, io: Columns) -> int | None:
    """Of the first ticks of both, the same however they were divided into parts; None without any."""
    times = [sizes["epoch_us"], io["epoch_us"]]
    last = min((ticks[FIRST_TICKS - 1] for ticks in times if len(ticks) >= FIRST_TICKS), default=None)
    first = times if last is None else [ticks[ticks <= last] for ticks in times]
    spacings = np.concatenate([np.diff(ticks) for ticks in first])
    if len(spacings):
        return max(int(np.median(spacings)), 1)
    lengths = [float(ticks["seconds"][0]) for ticks in (sizes, io) if len(ticks["seconds"])]
    return max(round(lengths[0]) * 1_000_000, 1) if lengths else None
