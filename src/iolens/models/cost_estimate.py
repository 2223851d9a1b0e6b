"""What the telemetry of a centre says an I/O costs: one estimate of t = a0 + a1·b, and how sure it is.

DEFINITIONS, "Calibration from telemetry": each kind of evidence (`frontier`, `busy_time`, `latency_by_size`) gives one
of these per class of targets and direction. Intervals are 95 % of resampled days, or of shorter blocks of ticks.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from iolens.arrays import Booleans, Floats, Integers
from iolens.models.bootstrap import SEED, interval95
from iolens.models.transaction_time import Coefficients
from iolens.units import format_bytes

FRONTIER: Final = "frontier"
BUSY_TIME: Final = "busy_time"
LATENCY: Final = "latency"
EVIDENCE: Final = (FRONTIER, BUSY_TIME, LATENCY)  # that of the limit first: it holds however many are served at once
RESAMPLES: Final = 1000
FEWEST_DAYS: Final = 5  # below, blocks of ticks are resampled
SIZES_APART: Final = 8.0  # sizes that tell latency from time per byte differ at least by this factor
WIDEST: Final = 1.0  # of an interval, relative to the coefficient, that still counts as identified


@dataclass(frozen=True, slots=True)
class TelemetryTicks:
    """Ticks of one class of targets and direction, or cells of `count` ticks that are alike.

    `ios_per_s` is N/T, `size_bytes` B/N, `in_flight` the mean number of disk I/Os in flight (NaN: not known), `is_full`
    whether the device's io_ticks are 95 % of the tick or more. Blocks are days, or shorter where there are few days.
    """

    block: Integers
    target: Integers
    count: Floats
    ios_per_s: Floats
    size_bytes: Floats
    in_flight: Floats
    is_full: Booleans

    def where(self, chosen: Booleans | Integers) -> TelemetryTicks:
        """Some of them."""
        return TelemetryTicks(
            self.block[chosen],
            self.target[chosen],
            self.count[chosen],
            self.ios_per_s[chosen],
            self.size_bytes[chosen],
            self.in_flight[chosen],
            self.is_full[chosen],
        )

    @property
    def ticks(self) -> int:
        """How many ticks the cells are of."""
        return round(float(self.count.sum()))


@dataclass(frozen=True, slots=True)
class CostEstimate:
    """Coefficients of one direction by one kind of evidence, the ends of their intervals, and what it rests on.

    None: the evidence says nothing of it. With `upper_bound` the coefficients give at least the true FSU, and the
    targets may be able to do more. `one_at_a_time`: the time of one I/O alone; a target that serves k at once needs a
    k-th of it. `time_s` is the time of an I/O of `time_at_bytes` where that alone is known.
    """

    evidence: str
    latency_s: float | None
    s_per_byte: float | None
    latency_interval_s: tuple[float, float] | None
    s_per_byte_interval: tuple[float, float] | None
    identified: tuple[str, ...]
    upper_bound: bool
    one_at_a_time: bool
    blocks: int
    ticks: int
    targets: int
    sizes_bytes: tuple[float, ...]
    in_flight: float | None
    note: str
    time_s: float | None = None
    time_at_bytes: float | None = None

    @property
    def is_identified(self) -> bool:
        """Whether both coefficients are."""
        return len(self.identified) == len(COEFFICIENTS)

    @property
    def coefficients(self) -> Coefficients | None:
        """Both, where there are both."""
        if self.latency_s is None or self.s_per_byte is None:
            return None
        return Coefficients(self.latency_s, self.s_per_byte)


COEFFICIENTS: Final = ("latency", "s_per_byte")


def draws(blocks: int, resamples: int = RESAMPLES, seed: int = SEED) -> Floats:
    """How often each block is in each resample of as many blocks (resamples × blocks)."""
    random = np.random.default_rng(seed)
    return random.multinomial(blocks, np.full(blocks, 1.0 / blocks), resamples).astype(float)


def numbered(blocks: Integers) -> tuple[Integers, int]:
    """The place of each among the distinct ones, and how many there are."""
    names, places = np.unique(blocks, return_inverse=True)
    return np.asarray(places.ravel(), np.int64), int(names.size)


def interval(values: Floats, estimate: float) -> tuple[float, float] | None:
    """The middle 95 % of the resampled values, with the estimate in it; None where fewer than half can be made."""
    usable = values[np.isfinite(values)]
    if usable.size * 2 < values.size or usable.size < 2:
        return None
    low, high = interval95(usable)
    return min(low, estimate), max(high, estimate)


def is_narrow(estimate: float | None, ends: tuple[float, float] | None) -> bool:
    """Whether an interval says something of the coefficient: above zero, and no wider than the coefficient."""
    if estimate is None or ends is None or estimate <= 0:
        return False
    return ends[0] > 0 and ends[1] - ends[0] <= WIDEST * estimate


def weighted_quantile(values: Floats, weights: Floats, share: float) -> float:
    """The smallest value below or at which that share of the weight lies; half-way where the share ends between two."""
    order = np.argsort(values, kind="stable")
    cumulative = np.cumsum(weights[order])
    wanted = share * cumulative[-1]
    place = int(np.searchsorted(cumulative, wanted * (1 - 1e-12)))
    place = min(place, values.size - 1)
    value = float(values[order[place]])
    if abs(cumulative[place] - wanted) <= 1e-9 * cumulative[-1] and place + 1 < values.size:
        return 0.5 * (value + float(values[order[place + 1]]))
    return value


def size_group(size_bytes: Floats) -> Integers:
    """The power of two that is the upper end of each size."""
    return np.ceil(np.log2(np.maximum(size_bytes, 1.0)) - 1e-9).astype(np.int64)


def resampled_words(blocks: int, are_days: bool) -> str:
    """What the interval was made of."""
    if are_days:
        return f"interval from {blocks} days"
    if blocks < 2:
        return "no interval: too few ticks"
    return f"fewer than {FEWEST_DAYS} days: interval from {blocks} blocks of ticks"


def size_words(sizes: tuple[float, ...]) -> str:
    """`4 KiB to 1 MiB`, by powers of two."""
    ends = [format_bytes(2 ** int(group)) for group in size_group(np.array([min(sizes), max(sizes)]))]
    return ends[0] if ends[0] == ends[1] else f"{ends[0]} to {ends[1]}"
