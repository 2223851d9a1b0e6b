"""Bandwidth of every target and of all together: percentiles, tails, and peaks that never come at once (SPEC S2–S4)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from iolens.analyses.intervals.tick_matrix import TickMatrix
from iolens.arrays import Floats, Integers
from iolens.models.log_sketch import LogSketch
from iolens.schema import DIRECTIONS

PERCENTILES: Final = (95.0, 99.0, 100.0)
LEAST_TARGETS: Final = 0.9  # share of the targets that must be in a tick for their sum to mean something
EVERYTHING: Final = "total"  # reads and writes together


@dataclass(frozen=True, slots=True)
class PeakAgainstSum:
    """Figure 6: all targets together at a percentile, against the sum of each at its own."""

    percentile: float
    direction: str
    aggregate_bytes_per_s: float
    sum_of_targets_bytes_per_s: float


@dataclass(slots=True)
class Bandwidths:
    """Feed matrices; rates of every target, and their sum tick by tick.

    A tick counts for the sum where at least nine in ten of the targets are in it that are `expected` there (by the end
    of a tick: all of them, unless told otherwise).
    """

    targets: int
    expected: Callable[[Integers], Integers] | None = None
    by_target: dict[str, LogSketch] = field(init=False)
    together: dict[str, LogSketch] = field(init=False)
    ticks_left_out: int = 0

    def __post_init__(self) -> None:
        self.by_target = {way: LogSketch(self.targets) for way in DIRECTIONS}
        self.together = {way: LogSketch(1) for way in (*DIRECTIONS, EVERYTHING)}

    def add(self, matrix: TickMatrix) -> None:
        """Take the next ticks."""
        rates = {way: matrix.rate(f"{way}_bytes") for way in DIRECTIONS if f"{way}_bytes" in matrix.measures}
        for way, values in rates.items():
            self.by_target[way].add(values)
        if rates:
            expected = self.targets if self.expected is None else self.expected(matrix.end_us)
            self._add_sums(rates, expected)

    def _add_sums(self, rates: dict[str, Floats], expected: int | Integers) -> None:
        known = {way: (~np.isnan(values)).sum(axis=1) for way, values in rates.items()}
        whole = np.max(list(known.values()), axis=0) >= LEAST_TARGETS * expected
        self.ticks_left_out += int((~whole).sum())
        sums = {
            way: np.where(known[way][whole] > 0, np.nansum(values[whole], axis=1), np.nan)
            for way, values in rates.items()
        }
        for way, values in sums.items():
            self.together[way].add(values[:, None])
        self.together[EVERYTHING].add(np.nansum(list(sums.values()), axis=0)[:, None])

    def peaks(self) -> list[PeakAgainstSum]:
        """For every percentile and direction that is known."""
        found = []
        for percentile in PERCENTILES:
            for way in DIRECTIONS:
                together = self.together[way].quantile(percentile / 100.0)
                alone = [self.by_target[way].quantile(percentile / 100.0, one) for one in range(self.targets)]
                if together is not None:
                    found.append(PeakAgainstSum(percentile, way, together, sum(one or 0.0 for one in alone)))
        return found
