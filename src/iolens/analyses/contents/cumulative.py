"""Histograms added up from the smallest bin on: shares, percentiles, and what the bins leave open.

Where a source counts inodes by size without their bytes, the ends of the bins bound each share of the bytes.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import accumulate
from typing import NamedTuple

import numpy as np

from iolens.arrays import Booleans, Floats
from iolens.models.dom import Bin


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
