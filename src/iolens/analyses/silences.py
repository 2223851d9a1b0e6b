"""How long targets were idle: runs of samples without a request, per target and direction (SPEC S8).

A run ends with the next request, or where a sample is missing. One that touches an end of the window may have been
longer: it is counted apart.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from iolens.models.heavy_tail import multiples
from iolens.models.tail_sample import TailSample

Booleans = NDArray[np.bool_]
Integers = NDArray[np.int64]


@dataclass(slots=True)
class Runs:
    """Maximal runs of true values down the columns of matrices that come one after the other.

    `unknown` is neither true nor false and ends a run. Lengths are in rows; `lengths` are by column, so that one target
    can be told from another.
    """

    columns: int
    lengths: list[Counter[int]] = field(init=False)
    censored: Counter[int] = field(default_factory=Counter)
    _open: Integers = field(init=False)  # length of the run each column is in, 0: none
    _from_start: Booleans = field(init=False)  # whether that run began with the window
    _begun: bool = False

    def __post_init__(self) -> None:
        self.lengths = [Counter() for _ in range(self.columns)]
        self._open = np.zeros(self.columns, np.int64)
        self._from_start = np.zeros(self.columns, np.bool_)

    def add(self, true: Booleans, unknown: Booleans, follows: Booleans) -> None:
        """Rows × columns; a row that does not follow the one before it comes after a gap."""
        if not len(true):
            return
        if not self._begun:
            self._from_start = np.ones(self.columns, np.bool_)
            self._begun = True
        elif not follows[0]:
            self._close(np.ones(self.columns, np.bool_))
        rows = len(true)
        on = np.zeros((self.columns, rows + 2), np.bool_)
        on[:, 1:-1] = (true & ~unknown).T
        gaps = np.flatnonzero(~follows[1:]) + 1  # a run that meets a gap is cut in two
        begins = on[:, 1:] & ~on[:, :-1]
        ends = ~on[:, 1:] & on[:, :-1]
        begins[:, gaps] |= on[:, gaps + 1]
        ends[:, gaps] |= on[:, gaps]
        column, first = np.nonzero(begins)
        _, last = np.nonzero(ends)
        self._take(column, first, last, rows)

    def finish(self) -> None:
        """The runs that are still open touch the end of the window."""
        for length in self._open[self._open > 0].tolist():
            self.censored[length] += 1
        self._open[:] = 0

    def pooled(self) -> Counter[int]:
        """Lengths of all columns together."""
        return sum(self.lengths, Counter())

    def _take(self, column: Integers, first: Integers, last: Integers, rows: int) -> None:
        lengths = last - first
        goes_on = first == 0
        before = np.where(goes_on, self._open[column], 0)
        from_start = goes_on & self._from_start[column]
        going = np.zeros(self.columns, np.bool_)
        going[column[goes_on]] = True
        self._close(~going)
        lengths = lengths + before
        reaches_end = last == rows
        done = ~reaches_end
        self._count(column[done], lengths[done], from_start[done])
        still = np.zeros(self.columns, np.int64)
        still[column[reaches_end]] = lengths[reaches_end]
        starts = np.zeros(self.columns, np.bool_)
        starts[column[reaches_end]] = from_start[reaches_end]
        self._open, self._from_start = still, starts

    def _close(self, which: Booleans) -> None:
        """The open runs of some columns have ended."""
        ended = which & (self._open > 0)
        self._count(np.flatnonzero(ended), self._open[ended], self._from_start[ended])
        self._open[which] = 0
        self._from_start[which] = False

    def _count(self, column: Integers, lengths: Integers, from_start: Booleans) -> None:
        for length, count in zip(*np.unique(lengths[from_start], return_counts=True), strict=True):
            self.censored[int(length)] += int(count)
        whole = ~from_start
        for one in np.unique(column[whole]).tolist():
            mine, counts = np.unique(lengths[whole & (column == one)], return_counts=True)
            self.lengths[one].update(dict(zip(mine.tolist(), counts.tolist(), strict=True)))


def run_sample(lengths: Counter[int], tick_s: float) -> TailSample:
    """Lengths in seconds, as the tail models take them."""
    keys = np.array(sorted(lengths), np.float64)
    return multiples(keys * tick_s, tick_s, np.array([lengths[int(key)] for key in keys], np.int64))
