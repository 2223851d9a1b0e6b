"""Values of many columns (targets) in bounded memory: kept as they are while they are few, else in logarithmic bins.

Bins are the same however the values were divided, so that sketches of parts add up. A percentile from bins is off by
half a bin at most, which is said.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

import numpy as np

from iolens.arrays import Floats, Integers, rearranged
from iolens.models.tails import TailSample

EXACT_AT_MOST: Final = 2_000_000  # values of all columns together
RATIO: Final = 1.01  # of the ends of a bin
ERROR_PCT: Final = 0.5
LOWEST, HIGHEST = 1e-9, 1e18  # beyond, values count in the outermost bins
_LOG: Final = float(np.log(RATIO))
_FIRST: Final = int(np.floor(np.log(LOWEST) / _LOG))
BINS: Final = int(np.ceil(np.log(HIGHEST) / _LOG)) - _FIRST + 1


@dataclass(slots=True)
class LogSketch:
    """Feed matrices of values × columns, zero or more; NaN is no value."""

    columns: int
    exact_at_most: int = field(default_factory=lambda: EXACT_AT_MOST)
    counts: Integers = field(init=False)  # of values that are no longer kept: columns × bins
    zeros: Integers = field(init=False)
    smallest: Floats = field(init=False)  # positive, by column
    largest: Floats = field(init=False)
    kept: list[Floats] = field(default_factory=list)
    size: int = 0  # values taken, and places without one

    def __post_init__(self) -> None:
        self.counts = np.zeros((self.columns, 0), np.int64)
        self.zeros = np.zeros(self.columns, np.int64)
        self.smallest = np.full(self.columns, np.inf)
        self.largest = np.zeros(self.columns)

    @property
    def is_exact(self) -> bool:
        """Whether every value is still there."""
        return not self.counts.size

    @property
    def error_pct(self) -> float:
        """How far a percentile may be off."""
        return 0.0 if self.is_exact else ERROR_PCT

    def add(self, values: Floats) -> None:
        """Take the next rows, one value per column."""
        if not len(values):
            return
        self.zeros += np.count_nonzero(values == 0, axis=0)
        positive, column = self._positive_cells(values)
        np.minimum.at(self.smallest, column, positive)
        np.maximum.at(self.largest, column, positive)
        self.size += values.size
        if self.size > self.exact_at_most or self.counts.size:
            self._condense()
            self._count(positive, column)
        else:
            self.kept.append(np.where(values > 0, values, np.nan))

    def take(self, other: LogSketch) -> None:
        """The values of another sketch of the same columns."""
        self.zeros += other.zeros
        self.smallest = np.fmin(self.smallest, other.smallest)
        self.largest = np.fmax(self.largest, other.largest)
        self.size += other.size
        self.kept += other.kept
        if other.counts.size:
            self.counts = self.counts + other.counts if self.counts.size else other.counts
        if self.size > self.exact_at_most or self.counts.size:
            self._condense()

    def rearranged(self, columns: Integers) -> LogSketch:
        """With other columns: each as that of this place, or without a value where it is −1."""
        result = LogSketch(columns.size, self.exact_at_most)
        result.counts = rearranged(self.counts, columns)
        result.zeros = rearranged(self.zeros, columns)
        result.smallest = rearranged(self.smallest, columns, np.inf)
        result.largest = rearranged(self.largest, columns)
        result.kept = [rearranged(values, columns, np.nan, axis=1) for values in self.kept]
        result.size = self.size // self.columns * columns.size if self.columns else 0
        return result

    def count(self, column: int | None = None) -> int:
        """How many values, zeros among them."""
        zeros = int(self.zeros[_chosen(column)].sum())
        if self.is_exact:
            return zeros + sum(int((~np.isnan(values[:, _chosen(column)])).sum()) for values in self.kept)
        return zeros + int(self.counts[_chosen(column)].sum())

    def quantile(self, share: float, column: int | None = None) -> float | None:
        """Of one column or of all values together; None without any."""
        return self.quantiles([share], column)[0]

    def quantiles(self, shares: list[float], column: int | None = None) -> list[float | None]:
        """Several at once: by interpolation at (n − 1)·p while exact, else the middle of the bin that reaches p."""
        total = self.count(column)
        if not total:
            return [None] * len(shares)
        zeros = int(self.zeros[_chosen(column)].sum())
        if self.is_exact:
            everything = np.concatenate([np.zeros(zeros), self._positive(column)])
            return [float(item) for item in np.quantile(everything, shares)]
        reached = zeros + np.cumsum(self.counts[_chosen(column)].sum(axis=0))
        largest, smallest = self.largest[_chosen(column)].max(), self.smallest[_chosen(column)].min()
        values: list[float | None] = []
        for share in shares:
            needed = share * (total - 1)
            if zeros > needed:
                values.append(0.0)
            else:
                place = int(np.searchsorted(reached, needed, side="right"))
                middle = np.exp((place + _FIRST + 0.5) * _LOG)
                values.append(float(largest if share >= 1.0 else np.clip(middle, smallest, largest)))
        return values

    def sample(self, column: int | None = None) -> TailSample:
        """What the tail models take."""
        zeros = int(self.zeros[_chosen(column)].sum())
        if self.is_exact:
            return TailSample.of_values(np.concatenate([np.zeros(zeros), self._positive(column)]))
        counts = self.counts[_chosen(column)].sum(axis=0)
        some = np.flatnonzero(counts)
        lower, upper = bin_ends(some)
        lower[:1] = self.smallest[_chosen(column)].min()
        upper[-1:] = np.maximum(self.largest[_chosen(column)].max(), lower[-1:])
        return TailSample.of_bins(lower, upper, counts[some], zeros)

    def cumulative(self, column: int | None = None, points: int = 400) -> tuple[Floats, Floats]:
        """Values and the share of all at or below them, for a figure."""
        shares = np.unique(np.concatenate([np.linspace(0.0, 1.0, points), 1.0 - np.logspace(-1.0, -5.0, points // 4)]))
        values = [quantile if quantile is not None else np.nan for quantile in self.quantiles(shares.tolist(), column)]
        return np.array(values), shares

    def _positive(self, column: int | None) -> Floats:
        parts = [values[:, _chosen(column)].ravel() for values in self.kept]
        together = np.concatenate(parts) if parts else np.empty(0)
        return together[~np.isnan(together)]

    def _condense(self) -> None:
        if not self.counts.size:
            self.counts = np.zeros((self.columns, BINS), np.int64)
        for values in self.kept:
            self._count(*self._positive_cells(values))
        self.kept = []

    def _positive_cells(self, values: Floats) -> tuple[Floats, Integers]:
        """The values above zero, and the column of each."""
        cells = np.flatnonzero(values > 0)  # several times as fast as an index of truth values
        return values.ravel()[cells], cells % self.columns

    def _count(self, positive: Floats, column: Integers) -> None:
        """In bins."""
        place = bin_of(positive) + column * BINS
        self.counts += np.bincount(place, minlength=self.counts.size).reshape(self.counts.shape)


def bin_of(values: Floats) -> Integers:
    """The place of the bin each positive value is in."""
    return np.clip(np.floor(np.log(values) / _LOG).astype(np.int64) - _FIRST, 0, BINS - 1)


def bin_ends(places: Integers) -> tuple[Floats, Floats]:
    """Where bins begin and end."""
    return np.exp((places + _FIRST) * _LOG), np.exp((places + _FIRST + 1) * _LOG)


def _chosen(column: int | None) -> slice:
    return slice(None) if column is None else slice(column, column + 1)
