"""Percentiles of a stream of rates: exact while they are few, from logarithmic bins when they are many."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

import numpy as np

from iolens.arrays import Floats

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
