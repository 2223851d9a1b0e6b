"""Time buckets that nest in a UTC day: percentiles and the spread of ticks by bucket, and how much of a day was
observed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, time, timedelta
from math import gcd
from typing import Any, Final
from zoneinfo import ZoneInfo

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from iolens.arrays import Floats, Integers
from iolens.errors import UsageError
from iolens.units import DAY_S as SECONDS_A_DAY
from iolens.units import DAY_US, SECOND_US, from_epoch_us

# Time buckets that nest in a UTC day, chosen so that a window has about as many as a figure can show ------------------

USUAL_SHARE: Final = 0.9
MOST_GIVEN: Final = 5_000
PART_S: Final = 3600  # the widest buckets of a part of days, whatever window it was asked in
_WIDTHS_S: Final = (
    5,
    10,
    15,
    20,
    30,
    60,
    120,
    300,
    600,
    900,
    1800,
    3600,
    7200,
    10800,
    14400,
    21600,
    43200,
    SECONDS_A_DAY,
)


def bucket_seconds(span_us: int, most: int, least_s: float = 0.0) -> int:
    """The narrowest width from `least_s` on that needs at most `most` buckets for the span; a day at the widest."""
    fits = (width for width in _WIDTHS_S if span_us / 1e6 / width <= most and width >= least_s)
    return next(fits, _WIDTHS_S[-1])


def common_width(span_us: int, most: int) -> int:
    """Seconds that divide every width the span may get, however long its rows' intervals are."""
    narrowest = bucket_seconds(span_us, most)
    return gcd(*(width for width in _WIDTHS_S if width >= narrowest))


def rows_by_width(length_us: Integers, rows: Integers | Floats) -> Integers:
    """Rows by the narrowest width that is no narrower than their interval; the last are wider than any."""
    places = np.searchsorted(np.array(_WIDTHS_S) * SECOND_US, length_us)
    return np.bincount(places, weights=rows, minlength=len(_WIDTHS_S) + 1).astype(np.int64)


def usual_width(rows: Integers, span_us: int, most: int) -> int:
    """The narrowest width that is no narrower than nine tenths of the intervals: rows of `rows_by_width`."""
    usual = int((rows.cumsum() >= USUAL_SHARE * rows.sum()).argmax())
    return bucket_seconds(span_us, most, [*_WIDTHS_S, SECONDS_A_DAY][usual] if rows.any() else 0.0)


def checked_width(seconds: float, extent_us: tuple[int, int] | None) -> int:
    """A width somebody asked for, if buckets of it nest in a day and are not too many."""
    width = round(seconds)
    if width != seconds or width < 1 or SECONDS_A_DAY % width:
        raise UsageError(f"{seconds:g} s does not divide a day evenly; take 5min, 1h, 6h or 1d")
    if extent_us is not None and (extent_us[1] - extent_us[0]) / 1e6 / width > MOST_GIVEN:
        raise UsageError(f"buckets of {width} s are more than {MOST_GIVEN:,} in this window; take wider ones")
    return width


# How much of each day was observed ------------------------------------------------------------------------------------
# One with less than 95 % of its samples is listed, and left out of means.
#
# A row belongs to the day in which its interval starts. An interval that is longer than a target's others (samples were
# missed in it) counts as one sample: its bytes are known, when they moved is not.

DAY_S: Final = 86_400.0
FIRST_DAY: Final = date(1970, 1, 1)
QUARTER_S: Final = 900  # clocks change on quarter-hours: days of every zone are made of these
QUARTER_US: Final = QUARTER_S * 1_000_000
COMPLETE_PCT: Final = 95.0
OBSERVED: Final = ("bucket", "target", "tick_s", "rows", "duration_s")  # columns of days


def is_complete(covered_pct: float) -> bool:
    """Whether a day counts in means and medians."""
    return covered_pct >= COMPLETE_PCT


def day_of(number: int) -> date:
    """The date of a day counted from 1970."""
    return FIRST_DAY + timedelta(days=number)


def local_days(time_us: Integers, zone: str | None) -> Integers:
    """The calendar day of each time in a time zone (UTC without one), as days since 1970."""
    if is_utc(zone) or not len(time_us):
        return time_us // DAY_US
    there = ZoneInfo(zone or "UTC")
    quarters, where = np.unique(time_us // QUARTER_US, return_inverse=True)
    dates = [from_epoch_us(quarter * QUARTER_US).astimezone(there).date() for quarter in quarters.tolist()]
    return np.array([(day - FIRST_DAY).days for day in dates], dtype=np.int64)[where]


def day_seconds(days: Integers, zone: str | None) -> Floats:
    """How long each day lasts in a time zone: 23 or 25 hours where clocks change."""
    if is_utc(zone):
        return np.full(len(days), DAY_S)
    there = ZoneInfo(zone or "UTC")
    starts, ends = (
        [datetime.combine(day_of(day), time(), there).timestamp() for day in numbers.tolist()]
        for numbers in (days, days + 1)
    )
    return np.subtract(ends, starts, dtype=np.float64)


def is_utc(zone: str | None) -> bool:
    """Whether days are those of the store."""
    return zone is None or zone == "UTC"


def joined(*extents_us: tuple[int, int] | None) -> tuple[int, int] | None:
    """From the first start to the last end; None where there is nothing."""
    known = [extent for extent in extents_us if extent is not None]
    return (min(low for low, _ in known), max(high for _, high in known)) if known else None


def tick_length() -> nw.Expr:
    """Seconds of a row by its ticks, as `tick_s`."""
    return ((nw.col("epoch_us") - nw.col("start_us")).cast(nw.Float64) / nw.lit(1e6, nw.Float64)).alias("tick_s")


def covered_pct(parts: Sequence[Mapping[str, NDArray[Any]]], zone: str | None = None) -> dict[int, float]:
    """By day: samples taken ÷ samples expected, from rows and seconds by target, day (`bucket`) and length of a row.

    A sample is as long as the median row of its target and day. A target is expected from its first to its last day.
    Days are numbers of `local_days`.
    """
    if not parts:
        return {}
    day, target, tick_s, rows, seconds = (np.concatenate([part[name] for part in parts]) for name in OBSERVED)
    days, of_day = np.unique(day, return_inverse=True)
    code = {name: number for number, name in enumerate(dict.fromkeys(target.tolist()))}
    number = np.fromiter((code[name] for name in target), np.int64, len(target))
    order = np.lexsort((tick_s, number, of_day))
    pairs, pair = np.unique((of_day * len(code) + number)[order], return_inverse=True)
    sampled = np.minimum(
        np.bincount(pair, seconds[order]), np.bincount(pair, rows[order]) * _medians(tick_s[order], rows[order], pair)
    )
    seconds_of, place = day_seconds(days, zone), pairs // len(code)
    covered = np.bincount(place, np.minimum(sampled, seconds_of[place]), len(days))
    shares = 100.0 * covered / (seconds_of * _expected(days, day, target.tolist()))
    return dict(zip(days.tolist(), np.minimum(shares, 100.0).tolist(), strict=True))


def _medians(values: NDArray[Any], weights: NDArray[Any], group: NDArray[Any]) -> Floats:
    """Of each group the first value that half of its weight has reached; values rise within a group."""
    total = np.bincount(group, weights)
    before = np.concatenate([[0.0], np.cumsum(total)[:-1]])
    reached = np.flatnonzero(2 * (np.cumsum(weights) - before[group]) >= total[group])
    _, first = np.unique(group[reached], return_index=True)
    medians: Floats = values[reached[first]]
    return medians


def _expected(days: Integers, buckets: Integers, targets: Sequence[str]) -> Integers:
    """How many targets there were on each day."""
    first: dict[str, int] = {}
    last: dict[str, int] = {}
    for day, target in zip(buckets.tolist(), targets, strict=True):
        first[target] = min(day, first.get(target, day))
        last[target] = max(day, last.get(target, day))
    begins, ends = np.sort(list(first.values())), np.sort(list(last.values()))
    return np.asarray(np.searchsorted(begins, days, "right") - np.searchsorted(ends, days, "left"))


# Percentiles of a stream of rates -------------------------------------------------------------------------------------
# Exact while they are few, from logarithmic bins when they are many.

EXACT_AT_MOST: Final = 150_000  # values of 8 bytes; a week of 5 s ticks is 120,960
BIN_WIDTH: Final = 1.01  # ratio of neighbouring bins; a percentile is off by half of that at most
ERROR_PCT: Final = 0.5


@dataclass(slots=True)
class Percentiles:
    """Feed values of zero or more; memory stays bounded, and bins are the same however the values were divided."""

    count: int = 0
    largest: float = 0.0
    _values: list[Floats] = field(default_factory=list)
    _bins: dict[int, int] = field(default_factory=dict)
    _zeros: int = 0

    @property
    def error_pct(self) -> float:
        """How far an answer may be off: 0 while it is exact."""
        return 0.0 if self.count <= EXACT_AT_MOST else ERROR_PCT

    def add(self, values: Floats) -> None:
        """Take the next values."""
        self.count += len(values)
        self.largest = max(self.largest, float(values.max(initial=0.0)))
        self._values.append(values)
        if self.error_pct:
            self._condense()

    def take(self, later: Percentiles) -> None:
        """Take the values of another stream."""
        self.count += later.count
        self.largest = max(self.largest, later.largest)
        self._values += later._values
        self._zeros += later._zeros
        for number, count in later._bins.items():
            self._bins[number] = self._bins.get(number, 0) + count
        if self.error_pct and self._values:
            self._condense()

    def at(self, share: float) -> float | None:
        """The value below which `share` of all lie; None when there are none."""
        if not self.count:
            return None
        if not self.error_pct:
            return float(np.quantile(np.concatenate(self._values), share))
        return self._from_bins(share)

    def _condense(self) -> None:
        values = np.concatenate(self._values)
        self._values = []
        positive = values[values > 0]
        self._zeros += len(values) - len(positive)
        numbers, counts = np.unique(np.rint(np.log(positive) / np.log(BIN_WIDTH)).astype(np.int64), return_counts=True)
        for number, count in zip(numbers.tolist(), counts.tolist(), strict=True):
            self._bins[number] = self._bins.get(number, 0) + count

    def _from_bins(self, share: float) -> float:
        needed = share * (self.count - 1)
        reached = self._zeros
        if reached > needed:
            return 0.0
        for number in sorted(self._bins):
            reached += self._bins[number]
            if reached > needed:
                return min(BIN_WIDTH**number, self.largest)
        return self.largest


# Median, spread and maximum of ticks by bucket ------------------------------------------------------------------------
# What a long window looks like where single ticks cannot be seen.

SHARES: Final = (0.5, 0.05, 0.95, 1.0)
MOST_TICKS: Final = 600  # more than these cannot be seen apart on an axis
MOST_BUCKETS: Final = 400


@dataclass(frozen=True, slots=True)
class BucketSpread:
    """Median, 5th and 95th percentile and maximum of the ticks of each bucket; NaN where there was none."""

    median: Floats
    p5: Floats
    p95: Floats
    max: Floats


@dataclass(slots=True)
class BucketQuantiles:
    """The spread of one quantity; ticks come in time order, and only those of the last bucket are held."""

    first_us: int
    bucket_us: int
    levels: Floats  # a row for each of `SHARES`
    _buckets: Integers = field(default_factory=lambda: np.empty(0, np.int64))
    _values: Floats = field(default_factory=lambda: np.empty(0))

    @classmethod
    def over(cls, extent_us: tuple[int, int], bucket_us: int) -> BucketQuantiles:
        """Buckets that cover the extent, from a multiple of their width on."""
        first = extent_us[0] // bucket_us
        return cls(
            first * bucket_us, bucket_us, np.full((len(SHARES), (extent_us[1] - 1) // bucket_us - first + 1), np.nan)
        )

    @property
    def starts_us(self) -> Integers:
        """Of every bucket."""
        return self.first_us + np.arange(self.levels.shape[1]) * self.bucket_us

    def add(self, time_us: Integers, values: Floats) -> None:
        """Take the next ticks, by their ends."""
        buckets = np.clip((time_us - 1 - self.first_us) // self.bucket_us, 0, self.levels.shape[1] - 1)
        buckets, values = np.concatenate([self._buckets, buckets]), np.concatenate([self._values, values])
        done = int(np.searchsorted(buckets, buckets[-1])) if len(buckets) else 0
        self._settle(buckets[:done], values[:done])
        self._buckets, self._values = buckets[done:], values[done:]

    def finish(self) -> BucketSpread | None:
        """The spread of every bucket; None where no tick was counted."""
        self._settle(self._buckets, self._values)
        return BucketSpread(*self.levels) if np.isfinite(self.levels[0]).any() else None

    def _settle(self, buckets: Integers, values: Floats) -> None:
        if not len(buckets):
            return
        ordered = values[np.lexsort((values, buckets))]
        places, firsts, counts = np.unique(buckets, return_index=True, return_counts=True)
        for row, share in zip(self.levels, SHARES, strict=True):
            at = (counts - 1) * share
            low = np.floor(at).astype(np.int64)
            below, above = ordered[firsts + low], ordered[firsts + np.minimum(low + 1, counts - 1)]
            row[places] = below + (at - low) * (above - below)


def envelope_bucket_us(extent_us: tuple[int, int], tick_us: int) -> int | None:
    """Width of the buckets; None while every tick can be seen."""
    span = extent_us[1] - extent_us[0]
    return bucket_seconds(span, MOST_BUCKETS) * SECOND_US if span / tick_us > MOST_TICKS else None
