"""Time between requests: Δt/N for every sample with N requests, per direction over all targets (SPEC S8).

Samples are counted by N, so that a year of them takes little memory. One of another length than the tick (a sample was
missed) is left out and counted; where those are many, each is counted by its own rate, and bins stand for all.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

import numpy as np
from numpy.typing import NDArray

from iolens.analyses.intervals.tick_matrix import TickMatrix
from iolens.arrays import Floats, Integers
from iolens.models.log_sketch import BINS, bin_ends, bin_of
from iolens.models.tails import TailSample
from iolens.schema import DIRECTIONS

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
