"""Time between requests: Δt/N for every sample with N requests, per direction over all targets (SPEC S8).

Samples are counted by N, so that a year of them takes no room. A sample of another length than the tick (one was
missed) is counted by its own rate; where those are many, bins stand for all.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

import numpy as np
from numpy.typing import NDArray

from iolens.analyses.tick_matrix import TickMatrix
from iolens.models.log_sketch import BINS, bin_ends, bin_of
from iolens.models.tail_sample import TailSample
from iolens.schema import DIRECTIONS

REGULAR: Final = 0.01  # how far a sample's length may be off the tick
MOST_IRREGULAR: Final = 0.1  # share of samples up to which the irregular ones are left out
EXACT_UP_TO: Final = 4096  # requests; above, neighbours count together
STEP: Final = 0.002  # their width, as a logarithm

Integers = NDArray[np.int64]


@dataclass(slots=True)
class Spacings:
    """One direction: samples by number of requests, 0 among them."""

    tick_s: float
    regular: Integers = field(default_factory=lambda: np.zeros(0, np.int64))  # by code of N
    irregular: Integers = field(default_factory=lambda: np.zeros((2, BINS), np.int64))  # samples, requests; by spacing
    irregular_samples: int = 0

    def add(self, requests: NDArray[np.float64], duration_s: NDArray[np.float64]) -> None:
        """Take samples; NaN is none."""
        known = ~np.isnan(requests)
        requests, duration_s = requests[known], duration_s[known]
        on_beat = np.abs(duration_s - self.tick_s) <= REGULAR * self.tick_s
        counted = np.bincount(_codes(requests[on_beat]))
        size = max(self.regular.size, counted.size)
        self.regular = np.pad(self.regular, (0, size - self.regular.size)) + np.pad(counted, (0, size - counted.size))
        odd, length = requests[~on_beat], duration_s[~on_beat]
        self.irregular_samples += odd.size
        length, odd = length[odd > 0], odd[odd > 0]
        for weights, mine in zip((np.ones(odd.size), odd), self.irregular, strict=True):
            mine += np.rint(np.bincount(bin_of(length / odd), weights, BINS)).astype(np.int64)

    @property
    def samples(self) -> int:
        """All of them, with and without requests."""
        return int(self.regular.sum()) + self.irregular_samples

    def sample(self, by_requests: bool = False) -> TailSample:
        """What the tail models take; every sample once, or `by_requests` as often as it had requests."""
        requests, counts = self._regular()
        weights = counts * requests if by_requests else counts
        if self.irregular_samples <= MOST_IRREGULAR * max(self.samples, 1):
            return TailSample.of_spacings(self.tick_s, requests, np.where(requests > 0, weights, counts))
        return self._binned(requests, counts, weights, int(by_requests))

    def _regular(self) -> tuple[Integers, Integers]:
        codes = np.flatnonzero(self.regular)
        above = EXACT_UP_TO * np.exp((codes - EXACT_UP_TO) * STEP)
        return np.where(codes <= EXACT_UP_TO, codes, np.rint(above)).astype(np.int64), self.regular[codes]

    def _binned(self, requests: Integers, counts: Integers, weights: Integers, weighted: int) -> TailSample:
        some = requests > 0
        everything = self.irregular[weighted] + np.rint(
            np.bincount(bin_of(self.tick_s / requests[some]), weights[some], BINS)
        ).astype(np.int64)
        places = np.flatnonzero(everything)
        zeros = self.samples - int(counts[some].sum()) - int(self.irregular[0].sum())
        return TailSample.of_bins(*bin_ends(places), everything[places], zeros)


@dataclass(slots=True)
class Arrivals:
    """Both directions, fed by matrices."""

    tick_s: float
    of: dict[str, Spacings] = field(init=False)

    def __post_init__(self) -> None:
        self.of = {way: Spacings(self.tick_s) for way in DIRECTIONS}

    def add(self, matrix: TickMatrix) -> None:
        """Take the next ticks."""
        for way, spacings in self.of.items():
            if f"{way}_ops" in matrix.measures:
                spacings.add(matrix.measures[f"{way}_ops"].ravel(), matrix.duration_s.ravel())


def _codes(requests: NDArray[np.float64]) -> Integers:
    """N itself while it is small, then its logarithm in steps."""
    small = requests <= EXACT_UP_TO
    with np.errstate(divide="ignore"):
        above = EXACT_UP_TO + np.rint(np.log(requests / EXACT_UP_TO) / STEP)
    return np.where(small, requests, above).astype(np.int64)
