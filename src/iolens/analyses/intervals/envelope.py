"""Median, spread and maximum of ticks by bucket: what a long window looks like where single ticks cannot be seen."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

import numpy as np

from iolens.analyses.intervals.buckets import bucket_seconds
from iolens.arrays import Floats, Integers
from iolens.units import SECOND_US

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
