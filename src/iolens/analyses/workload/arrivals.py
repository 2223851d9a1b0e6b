"""Time between requests, and how long targets were idle."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Final

import numpy as np
from numpy.typing import NDArray

from iolens.analyses.intervals.tick_matrix import TickMatrix
from iolens.arrays import Booleans, Floats, Integers, rearranged
from iolens.models.heavy_tail import multiples
from iolens.models.log_sketch import BINS, bin_ends, bin_of
from iolens.models.tails import TailSample
from iolens.schema import DIRECTIONS

# Time between requests ------------------------------------------------------------------------------------------------
# Δt/N for every sample with N requests, per direction over all targets (SPEC S8).
#
# Samples are counted by N, so that a year of them takes little memory. One of another length than the tick (a sample
# was missed) is left out and counted; where those are many, each is counted by its own rate, and bins stand for all.

REGULAR: Final = 0.01  # how far a sample's length may be off the tick
MOST_IRREGULAR: Final = 0.1  # share of samples up to which the irregular ones are left out
EXACT_UP_TO: Final = 4096  # requests; above, neighbours count together
STEP: Final = 0.002  # their width, as a logarithm


@dataclass(slots=True)
class Spacings:
    """One direction: samples by number of requests, 0 among them."""

    tick_s: float
    regular: Integers = field(default_factory=lambda: np.zeros((2, 0), np.int64))  # samples, requests; by code of N
    most: float = 0.0  # requests in a sample
    irregular: Integers = field(default_factory=lambda: np.zeros((2, BINS), np.int64))  # samples, requests; by spacing
    irregular_samples: int = 0
    least_s: float = np.inf  # between the requests of an irregular sample

    def add(self, requests: Floats, duration_s: Floats) -> None:
        """Take samples; NaN is none."""
        on_beat = np.abs(duration_s - self.tick_s) <= REGULAR * self.tick_s
        known = ~np.isnan(requests)
        if known.all() and on_beat.all():
            self._add_regular(requests)
            return
        self._add_regular(requests[known & on_beat])
        odd, length = requests[known & ~on_beat], duration_s[known & ~on_beat]
        self.irregular_samples += odd.size
        length, odd = length[odd > 0], odd[odd > 0]
        self.least_s = float((length / odd).min(initial=self.least_s))
        for weights, mine in zip((np.ones(odd.size), odd), self.irregular, strict=True):
            mine += _whole_sums(bin_of(length / odd), weights, BINS)

    def take(self, other: Spacings) -> None:
        """Those of other samples."""
        self._widen(other.regular.shape[1])
        self.regular[:, : other.regular.shape[1]] += other.regular
        self.most = max(self.most, other.most)
        self.irregular = self.irregular + other.irregular
        self.irregular_samples += other.irregular_samples
        self.least_s = min(self.least_s, other.least_s)

    def _widen(self, size: int) -> None:
        self.regular = np.pad(self.regular, ((0, 0), (0, max(0, size - self.regular.shape[1]))))

    def _add_regular(self, requests: Floats) -> None:
        codes = _codes(requests)
        self._widen(int(codes.max(initial=-1)) + 1)
        size = self.regular.shape[1]
        self.regular += np.bincount(codes, minlength=size), _whole_sums(codes, requests, size)
        self.most = float(requests.max(initial=self.most))

    @property
    def samples(self) -> int:
        """All of them, with and without requests."""
        return int(self.regular[0].sum()) + self.irregular_samples

    @property
    def left_out(self) -> int:
        """Samples that `sample` does without: their length is not the tick, and they are few."""
        few = self.irregular_samples <= MOST_IRREGULAR * max(self.samples, 1)
        return self.irregular_samples if few else 0

    def sample(self, by_requests: bool = False) -> TailSample:
        """What the tail models take; every sample once, or `by_requests` as often as it had requests."""
        counts, requests = self.regular[:, np.flatnonzero(self.regular[0])]
        weights = np.where(requests > 0, requests, counts) if by_requests else counts
        if self.left_out == self.irregular_samples:
            return TailSample.of_spacings(self.tick_s, requests / counts, weights, self.most)
        return self._binned(requests / counts, weights, int(by_requests))

    def _binned(self, requests: Floats, weights: Integers, weighted: int) -> TailSample:
        some = requests > 0
        regular = _whole_sums(bin_of(self.tick_s / requests[some]), weights[some], BINS)
        everything = self.irregular[weighted] + regular
        places = np.flatnonzero(everything)
        zeros = int(weights[~some].sum()) + self.irregular_samples - int(self.irregular[0].sum())
        lower, upper = bin_ends(places)
        lower[:1] = min(self.least_s, self.tick_s / self.most if self.most else np.inf)
        return TailSample.of_bins(lower, upper, everything[places], zeros)


@dataclass(slots=True)
class Arrivals:
    """Both directions, fed by matrices."""

    tick_s: float
    of: dict[str, Spacings] = field(init=False)

    def __post_init__(self) -> None:
        self.of = {direction: Spacings(self.tick_s) for direction in DIRECTIONS}

    def add(self, matrix: TickMatrix) -> None:
        """Take the next ticks."""
        for direction, spacings in self.of.items():
            if f"{direction}_ops" in matrix.measures:
                spacings.add(matrix.measures[f"{direction}_ops"].ravel(), matrix.duration_s.ravel())

    def take(self, other: Arrivals) -> None:
        """Those of other ticks."""
        for direction, spacings in self.of.items():
            spacings.take(other.of[direction])


def _codes(requests: Floats) -> Integers:
    """N itself while it is small, then its logarithm in steps."""
    codes = requests.astype(np.int64)
    large = np.flatnonzero(requests > EXACT_UP_TO)
    codes[large] = EXACT_UP_TO + np.rint(np.log(requests[large] / EXACT_UP_TO) / STEP).astype(np.int64)
    return codes


def _whole_sums(places: Integers, weights: NDArray[np.floating] | Integers, size: int) -> Integers:
    """Sums of whole numbers by place: exact below 2⁵³."""
    return np.rint(np.bincount(places, weights, size)).astype(np.int64)


# How long targets were idle -------------------------------------------------------------------------------------------
# Runs of samples without a request, per target and direction (SPEC S8).
#
# A run ends with the next request. One that touches an end of the window or a gap (a missing sample, or one that is not
# one tick long) may have been longer: it is counted apart.

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
