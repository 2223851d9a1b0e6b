"""Steady stretches (U10): FSU that stays narrow around a level well above idle. `saturation` says which are full.

Works on a stream of ticks and keeps only what is still undecided, so that a year needs no more memory than a day.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from iolens.arrays import Booleans, Floats, Integers

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
