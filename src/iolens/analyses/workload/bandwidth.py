"""Bandwidth of every target and of all together: percentiles, tails, and peaks that never come at once (SPEC S2–S4)."""

from __future__ import annotations

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
    """Feed matrices; rates of every target, and their sum tick by tick."""

    targets: int
    by_target: dict[str, LogSketch] = field(init=False)
    together: dict[str, LogSketch] = field(init=False)
    ticks_left_out: int = 0

    def __post_init__(self) -> None:
        self.by_target = {direction: LogSketch(self.targets) for direction in DIRECTIONS}
        self.together = {direction: LogSketch(1) for direction in (*DIRECTIONS, EVERYTHING)}

    def add(self, matrix: TickMatrix, expected: Integers | None = None) -> None:
        """Take the next ticks. One counts for the sum where at least nine in ten of the targets are in it that are
        expected there: all of them, unless given.
        """
        rates = {
            direction: matrix.rate(f"{direction}_bytes")
            for direction in DIRECTIONS
            if f"{direction}_bytes" in matrix.measures
        }
        for side, values in rates.items():
            self.by_target[side].add(values)
        if rates:
            self._add_sums(rates, self.targets if expected is None else expected)

    def take(self, later: Bandwidths) -> None:
        """Those of other ticks."""
        for mine, theirs in ((self.by_target, later.by_target), (self.together, later.together)):
            for side, sketch in mine.items():
                sketch.take(theirs[side])
        self.ticks_left_out += later.ticks_left_out

    def _add_sums(self, rates: dict[str, Floats], expected: int | Integers) -> None:
        known = {direction: (~np.isnan(values)).sum(axis=1) for direction, values in rates.items()}
        whole = np.max(list(known.values()), axis=0) >= LEAST_TARGETS * expected
        self.ticks_left_out += int((~whole).sum())
        sums = {
            direction: np.where(known[direction][whole] > 0, np.nansum(values[whole], axis=1), np.nan)
            for direction, values in rates.items()
        }
        for side, values in sums.items():
            self.together[side].add(values[:, None])
        self.together[EVERYTHING].add(np.nansum(list(sums.values()), axis=0)[:, None])

    def peaks(self) -> list[PeakAgainstSum]:
        """For every percentile and direction that is known."""
        result = []
        for percentile in PERCENTILES:
            for direction in DIRECTIONS:
                together = self.together[direction].quantile(percentile / 100.0)
                alone = [self.by_target[direction].quantile(percentile / 100.0, value) for value in range(self.targets)]
                if together is not None:
                    result.append(PeakAgainstSum(percentile, direction, together, sum(value or 0.0 for value in alone)))
        return result
