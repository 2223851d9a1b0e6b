"""How long targets were idle: runs of samples without a request, per target and direction (SPEC S8).

A run ends with the next request. One that touches an end of the window or a gap (a missing sample, or one that is not
one tick long) may have been longer: it is counted apart.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

import numpy as np

from iolens.arrays import Booleans, Integers, rearranged
from iolens.models.heavy_tail import multiples
from iolens.models.tails import TailSample

WHOLE, AT_GAP, AT_END = range(3)  # what a run touches: nothing, a gap, an end of the window


@dataclass(slots=True)
class EdgeRuns:
    """Of every column the run at one edge of some rows: whether there is one, its length so far, what it touches."""

    present: Booleans
    length: Integers
    touches: Integers

    @classmethod
    def none(cls, columns: int) -> EdgeRuns:
        """No run in any column."""
        return cls(np.zeros(columns, np.bool_), np.zeros(columns, np.int64), np.zeros(columns, np.int64))

    def rearranged(self, columns: Integers) -> EdgeRuns:
        """Of other columns, by their places in this one; −1 has no run."""
        return EdgeRuns(*(rearranged(values, columns) for values in (self.present, self.length, self.touches)))

    def put(self, chosen: Booleans, length: Integers, touches: Integers) -> None:
        """Runs of the chosen columns."""
        self.present = self.present | chosen
        self.length, self.touches = np.where(chosen, length, self.length), np.where(chosen, touches, self.touches)


@dataclass(slots=True)
class Runs:
    """Maximal runs of true values down the columns of matrices that come one after the other.

    `unknown` is neither true nor false: a gap. Lengths are in ticks, of all columns together. `at_ends` and `at_gaps`
    are censored: the known lengths of runs that touch either. A run at the first row (`head`) or the last one (`tail`)
    may go on in the rows before or after, so it is counted when those are known; one that has no end yet on either side
    is a head that `reaches` the last row.
    """

    columns: int
    lengths: Counter[int] = field(default_factory=Counter)
    at_ends: Counter[int] = field(default_factory=Counter)
    at_gaps: Counter[int] = field(default_factory=Counter)
    rows: int = 0
    head: EdgeRuns = field(init=False)
    tail: EdgeRuns = field(init=False)
    reaches: Booleans = field(init=False)
    first_unknown: Booleans = field(init=False)
    last_unknown: Booleans = field(init=False)

    def __post_init__(self) -> None:
        self.head, self.tail = EdgeRuns.none(self.columns), EdgeRuns.none(self.columns)
        self.reaches = np.zeros(self.columns, np.bool_)
        self.first_unknown, self.last_unknown = (np.zeros(self.columns, np.bool_) for _ in range(2))

    @classmethod
    def of(cls, true: Booleans, unknown: Booleans, follows: Booleans, ticks: Integers | None = None) -> Runs:
        """Of rows × columns; a row that does not follow the one before it comes after a gap.

        `ticks` is how many ticks each sample covers, one unless given: what is not one tick long spans a gap.
        """
        result = cls(true.shape[1])
        result.rows = len(true)
        if not result.rows:
            return result
        on = np.ascontiguousarray((true & ~unknown).T)
        column, first, last = _runs_of(on, follows)
        lengths, touches = last - first, np.full(first.size, WHOLE)
        if ticks is not None:
            lengths = _sums(np.where(on, ticks.T, 0), column, first, last)
            touches[_sums((on & (ticks.T != 1)).astype(np.int64), column, first, last) > 0] = AT_GAP
        if unknown.any() or not follows[1:].all():
            cut = _cuts(unknown, follows)
            touches[cut[column, first] | cut[column, last]] = AT_GAP
        begins, ends = first == 0, last == result.rows
        for edge, mine in ((result.head, begins), (result.tail, ends & ~begins)):
            edge.present[column[mine]] = True
            edge.length[column[mine]], edge.touches[column[mine]] = lengths[mine], touches[mine]
        result.reaches[column[begins & ends]] = True
        result.first_unknown, result.last_unknown = unknown[0].copy(), unknown[-1].copy()
        result._count(lengths[~begins & ~ends], touches[~begins & ~ends])
        return result

    def add(self, true: Booleans, unknown: Booleans, follows: Booleans, ticks: Integers | None = None) -> None:
        """The next rows; whether they follow those so far is in the first of `follows`."""
        if len(true):
            self.take(Runs.of(true, unknown, follows, ticks), bool(follows[0]))

    def take(self, later: Runs, follows: bool) -> None:
        """The runs of later rows, which follow right after these or come after a gap."""
        for mine, theirs in ((self.lengths, later.lengths), (self.at_gaps, later.at_gaps)):
            mine.update(theirs)
        if not later.rows:
            return
        if not self.rows:
            self._begin_as(later)
            return
        gap = np.where(~np.bool_(follows) | self.last_unknown | later.first_unknown, AT_GAP, WHOLE)
        before = EdgeRuns.none(self.columns)  # the run at the border, on this side of it
        before.put(self.tail.present, self.tail.length, self.tail.touches)
        before.put(self.reaches, self.head.length, self.head.touches)
        after = later.head
        both = before.present & after.present & follows
        length, touches = before.length + after.length, np.maximum(before.touches, after.touches)
        ended = np.maximum(before.touches, gap)
        tail = EdgeRuns.none(self.columns)
        tail.put(later.tail.present, later.tail.length, later.tail.touches)
        self.head.put(self.reaches & both, length, touches)
        self.head.put(self.reaches & ~both, before.length, ended)
        self._count_chosen(before.present & ~self.reaches & ~both, before.length, ended)
        self._count_chosen(both & ~self.reaches & ~later.reaches, length, touches)
        tail.put(both & ~self.reaches & later.reaches, length, touches)
        begun, alone = np.maximum(after.touches, gap), after.present & ~both
        self._count_chosen(alone & ~later.reaches, after.length, begun)
        tail.put(alone & later.reaches, after.length, begun)
        self.reaches = self.reaches & both & later.reaches
        self.tail, self.last_unknown, self.rows = tail, later.last_unknown, self.rows + later.rows

    def rearranged(self, columns: Integers) -> Runs:
        """Of other columns, by their places in this one; of −1 nothing is known."""
        result = Runs(columns.size, self.lengths, self.at_ends, self.at_gaps, self.rows)
        result.head, result.tail = self.head.rearranged(columns), self.tail.rearranged(columns)
        result.reaches = rearranged(self.reaches, columns)
        result.first_unknown, result.last_unknown = (
            rearranged(values, columns, fill=True) for values in (self.first_unknown, self.last_unknown)
        )
        return result

    def finish(self) -> None:
        """The runs at the edges touch an end of the window."""
        for edge in (self.head, self.tail):
            self.at_ends.update(edge.length[edge.present].tolist())

    def _begin_as(self, later: Runs) -> None:
        self.rows, self.head, self.tail, self.reaches = later.rows, later.head, later.tail, later.reaches
        self.first_unknown, self.last_unknown = later.first_unknown, later.last_unknown

    def _count_chosen(self, chosen: Booleans, length: Integers, touches: Integers) -> None:
        self._count(length[chosen], touches[chosen])

    def _count(self, lengths: Integers, touches: Integers) -> None:
        for kind, counter in ((WHOLE, self.lengths), (AT_GAP, self.at_gaps)):
            values, counts = np.unique(lengths[touches == kind], return_counts=True)
            counter.update(dict(zip(values.tolist(), counts.tolist(), strict=True)))


def _cuts(unknown: Booleans, follows: Booleans) -> Booleans:
    """Columns × borders between rows, from that before the first to that after the last: whether a gap is there."""
    gap = np.zeros((unknown.shape[1], len(unknown) + 1), np.bool_)
    gap[:, :-1] |= unknown.T | ~follows
    gap[:, 1:] |= unknown.T
    gap[:, 0] = False  # that depends on what came before
    return gap


def _runs_of(on: Booleans, follows: Booleans) -> tuple[Integers, Integers, Integers]:
    """Column, first row and the row after the last of every run; one that meets a gap between rows is cut in two."""
    columns, rows = on.shape
    place = np.arange(rows) + 1  # of each row, where one more stands before the first, after a gap and at the end
    place[1:] += np.cumsum(~follows[1:])
    framed = np.zeros((columns, place[-1] + 2), np.bool_)
    framed[:, place] = on
    changes = np.flatnonzero(framed.ravel()[1:] != framed.ravel()[:-1]) + 1  # a run begins and ends, in turn
    row = np.searchsorted(place, np.arange(framed.shape[1]))
    column, first = np.divmod(changes[::2], framed.shape[1])
    return column, row[first], row[changes[1::2] % framed.shape[1] - 1] + 1


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
