"""Capacity of metadata targets from histograms of sizes (paper P, Eqs. 5–11; DEFINITIONS "DOM" and "Inodes").

A histogram tells only the bin of each file, so every answer is a band. `paper` carries the ends of the bins through
each equation; `tight` asks for the lowest and the highest answer that any files of those bins can give.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from iolens.arrays import Floats
from iolens.errors import UsageError
from iolens.models.resampling import SEED

Method = Literal["tight", "paper"]
METHODS: Final[tuple[Method, ...]] = ("tight", "paper")
INODE_BYTES: Final = 4096  # what Lustre reserves on an MDT for an inode
ROUNDS: Final = 100  # the search for the ends of a band takes about five


class AnswerRange(NamedTuple):
    """The lowest, the average and the highest answer."""

    low: float
    avg: float
    high: float


@dataclass(frozen=True, slots=True)
class Bin:
    """One row of a histogram; absent is None.

    Sizes above `above` and up to `up_to` (None: open-ended; 0: empty files); `bytes` is their sum.
    """

    above: int | None
    up_to: int | None
    count: int
    bytes: int | None = None


@dataclass(frozen=True, slots=True)
class SizeBins:
    """Inodes of one type by size, in order: smallest and largest size of a bin, its count, its bytes (NaN: unknown)."""

    low: Floats
    high: Floats
    count: Floats
    bytes: Floats

    @classmethod
    def of(cls, bins: Iterable[Bin], largest: int | None = None) -> SizeBins:
        """Bins in any order, the same one several times.

        One without a lower end begins where the one below it ends. An open-ended one needs its bytes, or the size of
        the `largest` file.
        """
        merged = _merged(bins)
        low, high, known = [], [], []
        below = -1
        for item in merged:
            least = below + 1 if item.above is None else item.above + 1 if item.up_to != 0 else 0
            low.append(float(max(least, 0)))
            high.append(_upper_end(item, low[-1], largest))
            known.append(np.nan if item.bytes is None else float(item.bytes))
            below = max(below, item.up_to or 0)
        size_bins = cls(
            np.array(low), np.array(high), np.array([float(item.count) for item in merged]), np.array(known)
        )
        size_bins._check()
        return size_bins

    @property
    def total(self) -> float:
        """Number of inodes."""
        return float(self.count.sum())

    @property
    def average(self) -> Floats:
        """Average size in each bin: known from its bytes, or the middle."""
        middle = (self.low + self.high) / 2.0
        return np.where(self.has_bytes, self._mean, middle)

    @property
    def has_bytes(self) -> NDArray[np.bool_]:
        """Which bins know their bytes."""
        return np.isfinite(self.bytes) & (self.count > 0)

    @property
    def mass(self) -> AnswerRange:
        """Bytes of all inodes together."""
        ends = (np.where(self.has_bytes, self.bytes, self.count * end) for end in (self.low, self.average, self.high))
        return AnswerRange(*(float(end.sum()) for end in ends))

    @property
    def _mean(self) -> Floats:
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray(self.bytes / self.count)

    def at_most(self, size: float) -> float:
        """Share of inodes that are surely no larger than `size`."""
        return float(self.count[self.high <= size].sum()) / self.total if self.total else 0.0

    def concave_sums(self, cap: float) -> tuple[Floats, Floats]:
        """Least and most of Σ min(size, cap) in the bins that know their bytes; NaN in the others.

        Most when all files are alike, least when they crowd at the ends of the bin.
        """
        most = np.minimum(self._mean, cap)
        least = self._chord(np.minimum(self.low, cap), np.minimum(self.high, cap))
        return self.count * least, self.count * most

    def convex_sums(self, floor: float) -> tuple[Floats, Floats]:
        """Least and most of Σ max(size, floor), in the same way."""
        least = np.maximum(self._mean, floor)
        most = self._chord(np.maximum(self.low, floor), np.maximum(self.high, floor))
        return self.count * least, self.count * most

    def _chord(self, at_low: Floats, at_high: Floats) -> Floats:
        """Mean of a function over files that have either end's size and together the bin's bytes."""
        width = self.high - self.low
        with np.errstate(divide="ignore", invalid="ignore"):
            share = np.where(width > 0, (self._mean - self.low) / width, 0.0)
        return np.asarray(at_low + share * (at_high - at_low))

    def _check(self) -> None:
        wrong = self.has_bytes & ((self.bytes < self.count * self.low) | (self.bytes > self.count * self.high))
        if wrong.any():
            place = int(np.flatnonzero(wrong)[0])
            raise UsageError(
                f"{self.count[place]:,.0f} inodes of {self.low[place]:,.0f} to {self.high[place]:,.0f} bytes "
                f"cannot have {self.bytes[place]:,.0f} bytes together"
            )


def _merged(bins: Iterable[Bin]) -> list[Bin]:
    """Each bin once and in order, empty ones left out; bytes are known only where every part knew them."""
    by_name: dict[tuple[int | None, int | None], Bin] = {}
    for item in bins:
        if item.count < 0 or (item.bytes or 0) < 0:
            raise UsageError(f"a histogram counts {item.count} inodes of {item.bytes} bytes: less than nothing")
        before = by_name.get((item.above, item.up_to), Bin(item.above, item.up_to, 0, 0))
        both = None if before.bytes is None or item.bytes is None else before.bytes + item.bytes
        by_name[item.above, item.up_to] = Bin(item.above, item.up_to, before.count + item.count, both)
    order = sorted(by_name.values(), key=lambda entry: (entry.up_to is None, entry.up_to or 0, entry.above or -1))
    return [item for item in order if item.count]


def _upper_end(item: Bin, low: float, largest: int | None) -> float:
    if item.up_to is not None:
        return float(item.up_to)
    if item.bytes is not None:  # if all the others are as small as can be
        return max(low, float(item.bytes) - (item.count - 1) * low)
    if largest is None or largest < low:
        raise UsageError(
            f"the last bin has no upper end: {item.count:,} inodes of {low:,.0f} bytes or more, whose bytes are not "
            "known; give the size of the largest file with --largest-file"
        )
    return float(largest)


def dom_band(method: Method, files: SizeBins, capacity: AnswerRange, s0: float) -> AnswerRange:
    """Bytes on the MDTs for the first `s0` bytes of every file of a system of that capacity (Eqs. 6–9)."""
    if method == "paper":
        masses, counts = _paper_masses(files, capacity), _paper_counts(files, capacity)
        if s0 == 0 and np.isfinite(masses[0]).all():
            return AnswerRange(
                0.0, 0.0, 0.0
            )  # a bin from 0 on may hold countless files, but nothing of each is nothing
        return AnswerRange(*(float(np.minimum(m, n * s0).sum()) for m, n in zip(masses, counts, strict=True)))
    low, avg, high = _tight_shares(files, s0)
    return AnswerRange(capacity.low * low, capacity.avg * avg, capacity.high * high)


def inode_band(
    method: Method,
    files: SizeBins,
    others: Mapping[str, SizeBins],
    capacity: AnswerRange,
    inode_bytes: int = INODE_BYTES,
) -> AnswerRange:
    """Bytes on the MDTs for the inodes of all types (Eqs. 10, 11): a file's is `inode_bytes`, others at least that."""
    if method == "paper":
        return _paper_inodes(files, others, capacity, inode_bytes)
    mass = files.mass
    if not mass.low:
        return AnswerRange(*[float("nan")] * 3)
    needed = _inode_sums(files, others, inode_bytes)
    return AnswerRange(
        capacity.low / mass.high * needed.low,
        capacity.avg / mass.avg * needed.avg,
        capacity.high / mass.low * needed.high,
    )


def resampled_totals(
    files: SizeBins, others: Mapping[str, SizeBins], capacity: Floats, s0: float, inode_bytes: int = INODE_BYTES
) -> Floats:
    """The average answer for C_DOM + C_inode with other files drawn from the same bins: one per value of `capacity`.

    Every inode is there as often as a Poisson variable of mean 1 says: it shows how far a few huge files matter.
    """
    random = np.random.default_rng(SEED)
    resamples = capacity.size
    size = files.average
    counts = random.poisson(files.count, (resamples, files.count.size)).astype(np.float64)
    mass = counts @ size
    needed = counts @ np.minimum(size, s0) + inode_bytes * counts.sum(axis=1)
    for bins in others.values():
        drawn = random.poisson(bins.count, (resamples, bins.count.size))
        needed = needed + drawn @ np.maximum(bins.average, inode_bytes)
    return np.asarray(capacity * needed / np.where(mass > 0, mass, np.nan))


def thresholds_of(files: SizeBins, smallest: int = INODE_BYTES) -> list[int]:
    """Powers of two from `smallest` to the largest file."""
    largest = float(files.high.max(initial=smallest))
    values = [smallest]
    while values[-1] < largest:
        values.append(2 * values[-1])
    return values


def knee(benefit: Floats, cost: Floats) -> int | None:
    """Where a benefit that saturates is furthest ahead of its cost, both as shares of their own range.

    None where either does not rise.
    """
    if benefit.size < 3 or not np.ptp(benefit) > 0 or not np.ptp(cost) > 0:
        return None
    ahead = (benefit - benefit.min()) / np.ptp(benefit) - (cost - cost.min()) / np.ptp(cost)
    return int(np.argmax(ahead))


# The published way: Eq. 6 with shares of the mass, Eq. 8 for counts. A bin whose files have size zero has no mass,
# hence no count; N · S equals M for the size that Eq. 8 divides by, so that is the size Eq. 9 compares with S0.


def _paper_masses(files: SizeBins, capacity: AnswerRange) -> tuple[Floats, Floats, Floats]:
    low, high = files.count * files.low, files.count * files.high
    avg = (low + high) / 2.0
    if not low.sum():
        return (np.full(low.shape, np.nan),) * 3
    return low / high.sum() * capacity.low, avg / avg.sum() * capacity.avg, high / low.sum() * capacity.high


def _paper_counts(files: SizeBins, capacity: AnswerRange) -> tuple[Floats, Floats, Floats]:
    divisors = (files.high, (files.low + files.high) / 2.0, files.low)
    low, avg, high = (
        np.divide(mass, size, out=np.where(mass > 0, np.inf, mass), where=size > 0)
        for mass, size in zip(_paper_masses(files, capacity), divisors, strict=True)
    )
    return low, avg, high


def _paper_inodes(
    files: SizeBins, others: Mapping[str, SizeBins], capacity: AnswerRange, inode_bytes: int
) -> AnswerRange:
    """Types other than files in proportion to the files of the same bin; those in bins without files are lost."""
    result = []
    for counts, end in zip(_paper_counts(files, capacity), ("low", "middle", "high"), strict=True):
        new_by_old = {
            (low, high): new / old
            for low, high, new, old in zip(files.low, files.high, counts, files.count, strict=True)
        }
        total = float(counts.sum()) * inode_bytes
        for bins in others.values():
            middle = (bins.low + bins.high) / 2.0
            sizes = {"low": bins.low, "middle": middle, "high": bins.high}[end]
            ratios = np.array([new_by_old.get(ends, 0.0) for ends in zip(bins.low, bins.high, strict=True)])
            total += float((bins.count * ratios * np.maximum(sizes, inode_bytes)).sum())
        result.append(total if np.isfinite(total) else float("nan"))
    return AnswerRange(*result)


# Our way: the ratio Σ min(s, S0) ÷ Σ s, with s chosen per bin.


def _tight_shares(files: SizeBins, s0: float) -> AnswerRange:
    mass = files.mass.avg
    if not mass:
        return AnswerRange(*[float("nan")] * 3)
    known = files.has_bytes
    least, most = (np.where(known, sums, 0.0) for sums in files.concave_sums(s0))
    middle = np.where(known, (least + most) / 2.0, files.count * np.minimum(files.average, s0))
    average = float(middle.sum()) / mass
    return AnswerRange(
        _extreme_share(files, s0, float(least.sum()), average, highest=False),
        average,
        _extreme_share(files, s0, float(most.sum()), average, highest=True),
    )


def _extreme_share(files: SizeBins, s0: float, known_sum: float, start: float, highest: bool) -> float:
    """The least or the largest Σ min(s, S0) ÷ Σ s over all files of the bins (Dinkelbach's method).

    For a given ratio r, each bin's part of Σ min(s, S0) − r·s is extreme at an end of the bin, or at S0 inside it.
    """
    known = files.has_bytes
    low, high, count = files.low[~known], files.high[~known], files.count[~known]
    known_bytes = float(files.bytes[known].sum())
    sizes = np.stack([low, high, np.clip(s0, low, high)])
    parts = np.minimum(sizes, s0)
    pick = np.argmax if highest else np.argmin
    share = start
    for _ in range(ROUNDS):
        chosen = pick(parts - share * sizes, axis=0), np.arange(count.size)
        bytes_ = float((count * sizes[chosen]).sum()) + known_bytes
        if not bytes_:  # as good as the files of no bytes that were chosen are those that gave this share
            return share
        value = (float((count * parts[chosen]).sum()) + known_sum) / bytes_
        if np.isclose(value, share, rtol=1e-14, atol=0.0):
            return value
        share = value
    return share


def _inode_sums(files: SizeBins, others: Mapping[str, SizeBins], inode_bytes: int) -> AnswerRange:
    """Bytes of the reference system's inodes."""
    low = avg = high = files.total * inode_bytes
    for bins in others.values():
        known = bins.has_bytes
        least, most = bins.convex_sums(inode_bytes)
        low += float(np.where(known, least, bins.count * np.maximum(bins.low, inode_bytes)).sum())
        high += float(np.where(known, most, bins.count * np.maximum(bins.high, inode_bytes)).sum())
        middle = np.where(known, (least + most) / 2.0, bins.count * np.maximum(bins.average, inode_bytes))
        avg += float(middle.sum())
    return AnswerRange(low, avg, high)


# What writes smaller than a stripe cost (paper P, section IV.A) -------------------------------------------------------
# Whole blocks, and parity with each of them.


def stripe_bytes_written(size: int, data: int, parity: int, block_bytes: int) -> int:
    """Bytes that reach the drives for one aligned write of `size` bytes, if nothing is merged with its neighbours."""
    blocks = -(-size // block_bytes)
    stripes, rest = divmod(blocks, data)
    return (stripes * (data + parity) + (rest + parity if rest else 0)) * block_bytes


def read_modify_write_factor(writes: Mapping[int, float], data: int, parity: int, block_bytes: int) -> float | None:
    """Bytes that reach the drives ÷ those of full stripes, over writes by size; None without any.

    An upper estimate: a write-back cache that fills stripes brings it down to 1.
    """
    ideal = sum(count * size for size, count in writes.items()) * (data + parity) / data
    written = sum(count * stripe_bytes_written(size, data, parity, block_bytes) for size, count in writes.items())
    return written / ideal if ideal else None
