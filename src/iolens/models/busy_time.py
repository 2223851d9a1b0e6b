"""Coefficients from the time a device was busy (DEFINITIONS, "Calibration from telemetry": busy time).

Where the kernel's io_ticks are known, busy seconds are a0·N + a1·B of each direction, by non-negative least squares
over ticks with 5 % < util < 70 %: below it noise counts, above it I/Os overlap. They may overlap within a busy third of
a tick, too: where I/Os in flight are known, ticks with more than 1.5 are left out, and what is left is the time of one
I/O alone.

A tick weighs 1/(N + B/128 KiB). Slow I/Os are few I/Os: with equal weights the fast ticks would have the say, and what
the estimate explains would be less than the device was busy. With these weights the two are the same.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import Final

import numpy as np

from iolens.arrays import Floats, Integers
from iolens.models.cost_estimate import (
    BUSY_TIME,
    COEFFICIENTS,
    SIZES_APART,
    CostEstimate,
    draws,
    interval,
    is_narrow,
    resampled_words,
    size_words,
)
from iolens.schema import DIRECTIONS
from iolens.units import KIB

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
