"""Bandwidth of every target and of all together: percentiles, tails, and peaks that never come at once (SPEC S2–S4)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

import numpy as np
from numpy.typing import NDArray

from iolens.analyses.intervals.tick_matrix import TickMatrix
from iolens.arrays import Booleans, Floats, Integers, known_counts, known_sums
from iolens.models.log_sketch import EXACT_AT_MOST, LogSketch
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
class TickSums:
    """Tick by tick: bytes per second of all targets together, and in how many of them they are known."""

    tick_us: int
    first: int | None = None  # number of the first tick
    numbers: list[NDArray[np.int32]] = field(default_factory=list)  # since the first
    reporting: list[NDArray[np.int32]] = field(default_factory=list)
    rates: dict[str, list[Floats]] = field(default_factory=lambda: {direction: [] for direction in DIRECTIONS})

    def add(self, end_us: Integers, rates: dict[str, Floats]) -> None:
        """The next ticks; `rates` are ticks × targets. A direction that no target tells is NaN."""
        known = {direction: known_counts(values, axis=1) for direction, values in rates.items()}
        numbers = end_us // self.tick_us
        self.first = int(numbers[0]) if self.first is None else self.first
        self.numbers.append((numbers - self.first).astype(np.int32))
        self.reporting.append(np.max(list(known.values()), axis=0).astype(np.int32))
        for direction, pieces in self.rates.items():
            values = rates.get(direction)
            nothing = np.full(end_us.size, np.nan)
            pieces.append(
                nothing if values is None else np.where(known[direction] > 0, known_sums(values, axis=1), nothing)
            )

    def take(self, later: TickSums) -> None:
        """Of later ticks."""
        if later.first is None:
            return
        self.first = later.first if self.first is None else self.first
        self.numbers += [piece + np.int32(later.first - self.first) for piece in later.numbers]
        self.reporting += later.reporting
        for direction, pieces in self.rates.items():
            pieces += later.rates[direction]

    def whole(self, expected: Callable[[Integers], Integers]) -> tuple[Booleans, dict[str, Floats]]:
        """Which ticks have at least nine in ten of the targets expected at their ends, and the rates of all ticks."""
        end_us = (np.concatenate(self.numbers).astype(np.int64) + (self.first or 0)) * self.tick_us
        reporting = np.concatenate(self.reporting)
        rates = {direction: np.concatenate(pieces) for direction, pieces in self.rates.items()}
        return reporting >= LEAST_TARGETS * expected(end_us), rates


@dataclass(slots=True)
class Bandwidths:
    """Feed matrices; rates of every target, and their sum tick by tick: `together`, once `settle` was called."""

    targets: int
    tick_us: int
    exact_at_most: int = EXACT_AT_MOST  # values of single targets
    by_target: dict[str, LogSketch] = field(init=False)
    sums: TickSums = field(init=False)
    together: dict[str, LogSketch] = field(init=False)
    ticks_left_out: int = 0

    def __post_init__(self) -> None:
        self.by_target = {direction: LogSketch(self.targets, self.exact_at_most) for direction in DIRECTIONS}
        self.sums = TickSums(self.tick_us)
        self.together = {direction: LogSketch(1) for direction in (*DIRECTIONS, EVERYTHING)}

    def add(self, matrix: TickMatrix) -> None:
        """Take the next ticks."""
        rates = {
            direction: matrix.rate(f"{direction}_bytes")
            for direction in DIRECTIONS
            if f"{direction}_bytes" in matrix.measures
        }
        for side, values in rates.items():
            self.by_target[side].add(values)
        if rates:
            self.sums.add(matrix.end_us, rates)

    def take(self, later: Bandwidths) -> None:
        """Those of later ticks."""
        for side, sketch in self.by_target.items():
            sketch.take(later.by_target[side])
        self.sums.take(later.sums)

    def rearranged(self, columns: Integers) -> Bandwidths:
        """Of other targets, by their places among these; −1 has no sample."""
        result = Bandwidths(columns.size, self.tick_us, self.exact_at_most)
        result.by_target = {side: sketch.rearranged(columns) for side, sketch in self.by_target.items()}
        result.sums = self.sums
        return result

    def settle(self, expected: Callable[[Integers], Integers]) -> None:
        """Sum up the ticks with at least nine in ten of the targets that are expected at their ends."""
        if self.sums.first is None:
            return
        whole, rates = self.sums.whole(expected)
        self.ticks_left_out = int((~whole).sum())
        for side, values in rates.items():
            self.together[side].add(values[whole][:, None])
        self.together[EVERYTHING].add(np.nansum(list(rates.values()), axis=0)[whole][:, None])
        self.sums = TickSums(self.tick_us)

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
