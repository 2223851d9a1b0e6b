"""What a disk I/O costs by telemetry: the time devices were busy, and one estimate out of all kinds of evidence."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import Final

import numpy as np

from iolens.arrays import Booleans, Floats, Integers
from iolens.models.resampling import SEED, interval95
from iolens.models.transaction_time import Coefficients
from iolens.schema import DIRECTIONS
from iolens.units import KIB, format_bytes

# What the telemetry of a centre says an I/O costs ---------------------------------------------------------------------
# One estimate of t = a0 + a1·b, and how sure it is.
#
# DEFINITIONS, "Calibration from telemetry": each kind of evidence (`frontier`, `busy_time`, `latency_by_size`) gives
# one of these per class of targets and direction. Intervals are 95 % of resampled days, or of shorter blocks of ticks.

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


# Coefficients from the time a device was busy (DEFINITIONS, "Calibration from telemetry": busy time) ------------------
# Where the kernel's io_ticks are known, busy seconds are a0·N + a1·B of each direction, by non-negative least squares
# over ticks with 5 % < util < 70 %: below it noise counts, above it I/Os overlap. They may overlap within a busy third
# of a tick, too: where I/Os in flight are known, ticks with more than 1.5 are left out, and what is left is the time of
# one I/O alone.
#
# A tick weighs 1/(N + B/128 KiB). Slow I/Os are few I/Os: with equal weights the fast ticks would have the say, and
# what the estimate explains would be less than the device was busy. With these weights the two are the same.

LOWEST_UTIL_PCT: Final = 5.0
HIGHEST_UTIL_PCT: Final = 70.0
FEWEST_TICKS: Final = 10
TERMS: Final = tuple((direction, what) for direction in DIRECTIONS for what in ("ios", "bytes"))  # order of the sums
EVEN_BYTES: Final = 128.0 * KIB  # of an I/O whose bytes take about as long as its latency, on disks and on flash
_EVEN: Final = np.array([1.0 if what == "ios" else 1.0 / EVEN_BYTES for _, what in TERMS])
_RARE: Final = 0.01  # of the ticks: a size with fewer says nothing


@dataclass(frozen=True, slots=True)
class BusySums:
    """Sums over the ticks of one class with 5 % < util < 70 %, by block of ticks.

    `squares` is Σ w·x·xᵀ and `products` Σ w·x·busy, with the weight w of a tick, in the order of `TERMS`; `sizes` has
    ticks by direction and the power of two that is the upper end of their mean size. `one_at_a_time`: in flight is
    known, and was at most 1.5.
    """

    squares: Floats  # blocks × 4 × 4
    products: Floats  # blocks × 4, seconds
    ticks: Floats  # blocks
    sizes: dict[str, dict[int, float]]
    targets: int
    one_at_a_time: bool = False

    @classmethod
    def of(cls, terms: Floats, busy_s: Floats, block: Integers, targets: int = 1) -> BusySums:
        """From ticks: `terms` has a row for each, in the order of `TERMS`; without an I/O it says nothing."""
        moved = terms @ _EVEN > 0
        terms, busy_s, block = terms[moved], busy_s[moved], block[moved]
        names, places = np.unique(block, return_inverse=True)
        squares = np.zeros((names.size, len(TERMS), len(TERMS)))
        products = np.zeros((names.size, len(TERMS)))
        weighted = terms / (terms @ _EVEN)[:, None]
        np.add.at(squares, places.ravel(), weighted[:, :, None] * terms[:, None, :])
        np.add.at(products, places.ravel(), weighted * busy_s[:, None])
        ticks = np.bincount(places.ravel(), minlength=names.size).astype(float)
        return cls(squares, products, ticks, {side: _sizes(terms, side) for side in DIRECTIONS}, targets)


def _sizes(terms: Floats, direction: str) -> dict[int, float]:
    ios, moved = (terms[:, TERMS.index((direction, what))] for what in ("ios", "bytes"))
    groups = np.ceil(np.log2(np.maximum(moved[ios > 0] / ios[ios > 0], 1.0)) - 1e-9).astype(int)
    names, counts = np.unique(groups, return_counts=True)
    return dict(zip(names.tolist(), counts.astype(float).tolist(), strict=True))


def busy_time(sums: BusySums, blocks_are_days: bool = True) -> dict[str, CostEstimate]:
    """The estimate of each direction that moved anything."""
    blocks = len(sums.ticks)
    moved = [side for side in DIRECTIONS if sum(sums.sizes.get(side, {}).values()) >= FEWEST_TICKS]
    used = [place for place, (side, _) in enumerate(TERMS) if side in moved]
    if not used:
        return {}
    chosen = np.ix_(range(blocks), used, used)
    squares, products = sums.squares[chosen], sums.products[:, used]
    best = not_negative(squares.sum(axis=0)[None], products.sum(axis=0)[None])[0]
    drawn = draws(blocks) if blocks > 1 else np.empty((0, blocks))
    again = not_negative(np.tensordot(drawn, squares, 1), drawn @ products)
    result = {}
    for number, side in enumerate(moved):
        pair, spread = best[2 * number : 2 * number + 2], again[:, 2 * number : 2 * number + 2]
        result[side] = _estimate(sums, side, pair, spread, blocks_are_days)
    return result


def not_negative(squares: Floats, products: Floats) -> Floats:
    """The least-squares solution with no coefficient below zero, of each row: the best of all choices of unknowns.

    With four unknowns there are fifteen choices. Columns are scaled, as bytes are a million times the I/Os.
    """
    unknowns = squares.shape[-1]
    scale = np.sqrt(np.maximum(np.einsum("...ii->...i", squares), 1e-300))
    normal = squares / (scale[:, :, None] * scale[:, None, :])
    right = products / scale
    best = np.zeros_like(right)
    smallest = np.zeros(len(right))  # of |Ax − y|² − |y|²: the solution of zeros
    for size in range(1, unknowns + 1):
        for subset in combinations(range(unknowns), size):
            some = np.zeros_like(right)
            some[:, subset] = _solved(normal[:, subset][:, :, subset], right[:, subset])
            loss = np.einsum("ri,rij,rj->r", some, normal, some) - 2 * (some * right).sum(axis=1)
            better = (some >= 0).all(axis=1) & (loss < smallest)
            best[better], smallest[better] = some[better], loss[better]
    return np.asarray(best / scale)


def _solved(matrices: Floats, right: Floats) -> Floats:
    """The solution of each; −1 everywhere where the columns are too much alike to have one."""
    solvable = np.abs(np.linalg.det(matrices)) > 1e-12 if len(matrices) else np.zeros(0, bool)
    result = np.full_like(right, -1.0)
    if solvable.any():
        result[solvable] = np.linalg.solve(matrices[solvable], right[solvable][..., None])[..., 0]
    return result


def _estimate(sums: BusySums, side: str, pair: Floats, spread: Floats, blocks_are_days: bool) -> CostEstimate:
    ends = [interval(values, float(value)) for values, value in zip(spread.T, pair, strict=True)]
    counts = sums.sizes[side]
    common = [group for group, ticks in counts.items() if ticks >= max(_RARE * sum(counts.values()), 3)]
    sizes = tuple(2.0**group for group in sorted(common or counts))
    apart = sizes[-1] >= SIZES_APART * sizes[0]
    sure = tuple(
        name
        for name, value, end in zip(COEFFICIENTS, pair, ends, strict=True)
        if apart and is_narrow(float(value), end)
    )
    words = [] if apart else [f"sizes of {size_words(sizes)} only: latency and time per byte are not separated"]
    return CostEstimate(
        evidence=BUSY_TIME,
        latency_s=float(pair[0]),
        s_per_byte=float(pair[1]),
        latency_interval_s=ends[0],
        s_per_byte_interval=ends[1],
        identified=sure,
        upper_bound=False,
        one_at_a_time=sums.one_at_a_time,
        blocks=len(sums.ticks),
        ticks=round(sum(counts.values())),
        targets=sums.targets,
        sizes_bytes=sizes,
        in_flight=None,
        note="; ".join([*words, resampled_words(len(sums.ticks), blocks_are_days)]),
    )
