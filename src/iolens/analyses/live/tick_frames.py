"""Matrices of measures × targets by time: the memory of a live view. NaN is "did not report", never zero."""

from __future__ import annotations

import bisect
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice, pairwise

import numpy as np

from iolens.arrays import Floats, Integers


@dataclass(slots=True)
class Frames:
    """One matrix per time, in time order; the number of targets may grow."""

    measures: int
    times: list[int] = field(default_factory=list)
    of: dict[int, Floats] = field(default_factory=dict)

    def put(self, time: Integers, target: Integers, measures: Mapping[int, Floats], targets: int) -> None:
        """Write rows: each has a time, the number of its target, and a value of every measure given."""
        order = np.argsort(time, kind="stable")
        starts = np.flatnonzero(np.diff(time[order], prepend=-1)).tolist()
        for begin, end in pairwise([*starts, len(order)]):
            rows = order[begin:end]
            matrix = self._matrix(int(time[rows[0]]), targets)
            for measure, values in measures.items():
                matrix[measure, target[rows]] = values[rows]

    def row(self, time_us: int, measure: int, targets: int) -> Floats:
        """One measure at one time, for all targets."""
        matrix = self.of[time_us]
        row = np.full(targets, np.nan)
        width = min(targets, matrix.shape[1])
        row[:width] = matrix[measure, :width]
        return row

    def before(self, time_us: int) -> Iterator[int]:
        """Times up to this one, the latest first."""
        return reversed(self.times[: bisect.bisect_right(self.times, time_us)])

    def last(self, time_us: int, count: int) -> list[int]:
        """The last times up to this one, in order."""
        return list(islice(self.before(time_us), count))[::-1]

    def forget(self, keep: int) -> int:
        """Drop all but the last so many; how many were dropped."""
        dropped, self.times = self.times[: max(0, len(self.times) - keep)], self.times[-keep:]
        for time_us in dropped:
            del self.of[time_us]
        return len(dropped)

    def forget_before(self, time_us: int) -> None:
        """Drop what is older than a time, but for the last of it: that may still hold then."""
        self.forget(len(self.times) - max(0, bisect.bisect_left(self.times, time_us) - 1))

    def _matrix(self, time_us: int, targets: int) -> Floats:
        values = self.of.get(time_us)
        if values is None:
            bisect.insort(self.times, time_us)
            values = np.full((self.measures, targets), np.nan)
        elif values.shape[1] < targets:
            wider = np.full((self.measures, targets), np.nan)
            wider[:, : values.shape[1]] = values
            values = wider
        self.of[time_us] = values
        return values
