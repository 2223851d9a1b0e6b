"""How long targets were idle: runs of samples without a request, per target and direction (SPEC S8).

A run ends with the next request. One that touches an end of the window or a gap (a missing sample, or one that is not
one tick long) may have been longer: it is counted apart.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np

from iolens.arrays import Booleans, Integers
from iolens.models.heavy_tail import multiples
from iolens.models.tail_sample import TailSample

WHOLE, AT_GAP, AT_END = range(3)  # what a run touches: nothing, a gap, an end of the window


@dataclass(slots=True)
class Runs:
    """Maximal runs of true values down the columns of matrices that come one after the other.

    `unknown` is neither true nor false: a gap. Lengths are in ticks; `lengths` are by column, so that one target can
    be distinguished from another. `at_ends` and `at_gaps` are censored: the known lengths of runs that touch either.
    """

    columns: int
    lengths: list[Counter[int]] = field(init=False)
    at_ends: Counter[int] = field(default_factory=Counter)
    at_gaps: Counter[int] = field(default_factory=Counter)
    _open: Integers = field(init=False)  # length of the run each column is in
    _is_open: Booleans = field(init=False)
    _touches: Integers = field(init=False)  # what that run touches so far
    _after_gap: Booleans = field(init=False)  # whether the last sample of a column is not known
    _begun: bool = False

    def __post_init__(self) -> None:
        self.lengths = [Counter() for _ in range(self.columns)]
        self._open = np.zeros(self.columns, np.int64)
        self._is_open = np.zeros(self.columns, np.bool_)
        self._touches = np.zeros(self.columns, np.int64)
        self._after_gap = np.zeros(self.columns, np.bool_)

    def add(self, true: Booleans, unknown: Booleans, follows: Booleans, ticks: Integers | None = None) -> None:
        """Rows × columns; a row that does not follow the one before it comes after a gap.

        `ticks` is how many ticks each sample covers, one unless given: what is not one tick long spans a gap.
        """
        if not len(true):
            return
        on = (true & ~unknown).T
        cut = self._cuts(unknown, follows)
        column, first, last = _runs_of(on, follows)
        lengths = _sums(np.ones(on.shape, np.int64) if ticks is None else np.where(on, ticks.T, 0), column, first, last)
        odd = 0 * lengths if ticks is None else _sums((on & (ticks.T != 1)).astype(np.int64), column, first, last)
        touches = np.where(odd > 0, AT_GAP, np.where(cut[column, first] | cut[column, last], AT_GAP, WHOLE))
        if not self._begun:
            touches[first == 0] = AT_END
        goes_on = (first == 0) & self._is_open[column] & bool(follows[0])
        lengths += np.where(goes_on, self._open[column], 0)
        touches = np.maximum(touches, np.where(goes_on, self._touches[column], WHOLE))
        self._close(column[goes_on], cut[:, 0])
        done = last < len(true)
        self._count(column[done], lengths[done], touches[done])
        self._open[:], self._is_open[:], self._touches[:] = 0, False, WHOLE
        self._open[column[~done]], self._is_open[column[~done]] = lengths[~done], True
        self._touches[column[~done]] = touches[~done]
        self._after_gap, self._begun = unknown[-1], True

    def finish(self) -> None:
        """The runs that are still open touch the end of the window."""
        self._touches[:] = AT_END
        self._close([], np.zeros(self.columns, np.bool_))

    def pooled(self) -> Counter[int]:
        """Lengths of all columns together, without those that are censored."""
        return sum(self.lengths, Counter())

    def _cuts(self, unknown: Booleans, follows: Booleans) -> Booleans:
        """Columns × borders between rows, from that before the first to that after the last: whether a gap is there."""
        gap = np.zeros((self.columns, len(unknown) + 1), np.bool_)
        gap[:, :-1] |= unknown.T | ~follows
        gap[:, 1:] |= unknown.T
        gap[:, 0] |= self._after_gap
        return gap

    def _close(self, going_on: Iterable[int], gap: Booleans) -> None:
        """The open runs have ended but for those that go on; a gap is where some of them end."""
        ended = self._is_open.copy()
        ended[list(going_on)] = False
        touches = np.maximum(self._touches, np.where(gap, AT_GAP, WHOLE))
        self._count(np.flatnonzero(ended), self._open[ended], touches[ended])
        self._is_open[ended] = False

    def _count(self, column: Integers, lengths: Integers, touches: Integers) -> None:
        for kind, censored in ((AT_END, self.at_ends), (AT_GAP, self.at_gaps)):
            censored.update(lengths[touches == kind].tolist())
        whole = touches == WHOLE
        for number in np.unique(column[whole]).tolist():
            mine, counts = np.unique(lengths[whole & (column == number)], return_counts=True)
            self.lengths[number].update(dict(zip(mine.tolist(), counts.tolist(), strict=True)))


def _runs_of(on: Booleans, follows: Booleans) -> tuple[Integers, Integers, Integers]:
    """Column, first row and the row after the last of every run; one that meets a gap between rows is cut in two."""
    columns, rows = on.shape
    framed = np.zeros((columns, rows + 2), np.bool_)
    framed[:, 1:-1] = on
    begins = framed[:, 1:] & ~framed[:, :-1]
    ends = ~framed[:, 1:] & framed[:, :-1]
    gaps = np.flatnonzero(~follows[1:]) + 1
    begins[:, gaps] |= framed[:, gaps + 1]
    ends[:, gaps] |= framed[:, gaps]
    column, first = np.nonzero(begins)
    return column, first, np.nonzero(ends)[1]


def _sums(values: Integers, column: Integers, first: Integers, last: Integers) -> Integers:
    """Of each run."""
    reached = np.zeros((values.shape[0], values.shape[1] + 1), np.int64)
    np.cumsum(values, axis=1, out=reached[:, 1:])
    sums: Integers = reached[column, last] - reached[column, first]
    return sums


def run_sample(lengths: Counter[int], tick_s: float) -> TailSample:
    """Lengths in seconds, as the tail models take them."""
    keys = np.array(sorted(lengths), np.float64)
    return multiples(keys * tick_s, tick_s, np.array([lengths[int(key)] for key in keys], np.int64))
