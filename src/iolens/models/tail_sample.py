"""Positive values as the tail models see them: exact, quantised by a sampling interval, or counted in bins.

However many there are, they end up in at most `MOST_BINS` bins in rising order, so that a year of samples is compared
with a model in milliseconds. What a bin knows of its values decides which likelihood is right.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

from iolens.arrays import Floats

MOST_BINS: Final = 2000
PERMILLES: Final = np.arange(1, 1000) / 1000.0

Rounding = Literal["down", "nearest", "up"]
ROUNDINGS: Final[dict[Rounding, float]] = {"nearest": 0.5, "down": 0.0, "up": 1.0}  # how much below it was


@dataclass(frozen=True, slots=True, eq=False)
class TailSample:
    """Bins in rising order: ends, counts, and the mean logarithm of what is in them.

    `values` are the values themselves, rising, where they are known exactly: then a bin's ends are the smallest and the
    largest value in it. Otherwise a value lies anywhere between its bin's ends (the last may be infinite); `observed`
    is what was seen in each bin where measuring rounds to it, and `least` the smallest value seen.
    """

    lower: Floats
    upper: Floats
    counts: Floats
    mean_log: Floats
    zeros: int = 0
    values: Floats | None = None
    observed: Floats | None = None
    least: float | None = None

    @classmethod
    def of_values(cls, values: NDArray[np.floating]) -> TailSample:
        """Values known exactly, zeros among them."""
        array = _checked(values)
        ordered = np.sort(array[array > 0])
        logs = np.log(ordered)
        starts = _starts(logs)
        ends = np.append(starts[1:], ordered.size)[: starts.size]
        counts = (ends - starts).astype(np.float64)
        means = np.add.reduceat(logs, starts) / counts if ordered.size else logs
        return cls(ordered[starts], ordered[ends - 1], counts, means, array.size - ordered.size, ordered)

    @classmethod
    def of_multiples(
        cls,
        values: NDArray[np.floating],
        quantum: float,
        rounded: Rounding = "nearest",
        often: NDArray[np.integer] | None = None,
    ) -> TailSample:
        """Lengths seen as whole multiples of a sampling interval, which stand for anything that rounds to them.

        The smallest is where the distribution begins (DEFINITIONS "Pareto"), unless it was rounded up to it. `often`
        tells how often each value was seen, if not once.
        """
        array = _checked(values)
        steps, where = np.unique(np.rint(array / quantum), return_inverse=True)
        counts = np.bincount(where, weights=often, minlength=steps.size)
        below = ROUNDINGS[rounded]
        zeros = int(counts[steps == 0].sum())
        steps, counts = steps[steps > 0], counts[steps > 0]
        lower = steps - below if rounded == "up" else np.maximum(steps - below, steps[:1])
        observed = steps * quantum
        return cls.of_bins(lower * quantum, (steps + 1.0 - below) * quantum, counts, zeros, observed, observed[:1])

    @classmethod
    def of_spacings(
        cls,
        interval_s: float,
        requests: NDArray[np.integer] | NDArray[np.floating],
        samples: NDArray[np.integer],
        most: float | None = None,
    ) -> TailSample:
        """Inter-arrival times Δt/N, given how many samples had N requests: each N is known to half a request.

        Where N stands for several numbers near it, `most` is the largest of all.
        """
        order = np.argsort(-requests)
        number = requests[order].astype(np.float64)
        number, counts = number[number > 0], samples[order][number > 0]
        upper = np.where(number > 1, interval_s / np.maximum(number - 0.5, 0.5), np.inf)
        least = interval_s / np.maximum(number[:1], most or 0.0)
        lower = np.maximum(interval_s / (number + 0.5), least)
        return cls.of_bins(lower, upper, counts, int(samples.sum() - counts.sum()), interval_s / number, least)

    @classmethod
    def of_bins(
        cls,
        lower: NDArray[np.floating],
        upper: NDArray[np.floating],
        counts: NDArray[np.integer] | NDArray[np.floating],
        zeros: int = 0,
        observed: NDArray[np.floating] | None = None,
        least: NDArray[np.floating] | None = None,
    ) -> TailSample:
        """A histogram or a sketch; where measuring rounds, `observed` is what was seen in each bin."""
        some = np.asarray(counts) > 0
        low, high = (np.asarray(end, np.float64)[some] for end in (lower, upper))
        number = np.asarray(counts, np.float64)[some]
        if np.any(low <= 0) or np.any(high < low):
            raise ValueError("bins of positive values have ends above zero, in order")
        seen = None if observed is None else np.asarray(observed, np.float64)[some]
        middle = np.sqrt(low * np.where(np.isfinite(high), high, low)) if seen is None else seen
        smallest = None if least is None or not least.size else float(least[0])
        return cls(low, high, number, np.log(middle), zeros, observed=seen, least=smallest)

    @property
    def size(self) -> int:
        """How many positive values."""
        return int(self.counts.sum())

    @property
    def smallest(self) -> float:
        """The smallest positive value, or where the first bin begins."""
        return float(self.lower[0])

    @property
    def smallest_seen(self) -> float:
        """The smallest positive value as it was measured: x_m by DEFINITIONS "Pareto"."""
        return self.smallest if self.least is None else self.least

    @property
    def largest(self) -> float:
        """The largest value, or where the last bin ends (begins, if it has no end)."""
        return float(self.upper[-1] if np.isfinite(self.upper[-1]) else self.lower[-1])

    @property
    def zero_share_pct(self) -> float | None:
        """Share of zeros among all values; None when there are none at all."""
        everything = self.size + self.zeros
        return 100.0 * self.zeros / everything if everything else None

    def quantiles(self, shares: Floats) -> Floats:
        """Of the positive values as measured, by interpolation at (n − 1)·p; of bins, what was seen or the middle."""
        if self.values is not None:
            exact: Floats = np.quantile(self.values, shares)
            return exact
        each = np.exp(self.mean_log) if self.observed is None else self.observed
        rank = shares * (self.counts.sum() - 1.0)
        reached, below = np.cumsum(self.counts), np.floor(rank)
        low, high = (
            each[np.minimum(np.searchsorted(reached, place, side="right"), each.size - 1)]
            for place in (below, below + 1.0)
        )
        between: Floats = low + (rank - below) * (high - low)
        return between

    def bin_ends(self) -> tuple[Floats, Floats, Floats]:
        """Ends of the bins that have one, the share of values up to each, and how many permilles lie in the bin."""
        reached = np.cumsum(self.counts) / self.counts.sum()
        places = np.minimum(np.searchsorted(reached, PERMILLES, side="left"), self.counts.size - 1)
        number = np.bincount(places, minlength=self.counts.size)[np.isfinite(self.upper)].astype(np.float64)
        return self.upper[np.isfinite(self.upper)], reached[np.isfinite(self.upper)], number

    def rest(self, place: int) -> TailSample:
        """The bins from that one on, without the values themselves."""
        return TailSample(self.lower[place:], self.upper[place:], self.counts[place:], self.mean_log[place:])

    def tail(self, start: float) -> TailSample:
        """The part from `start` on, which is the beginning of a bin (or a value)."""
        keep = self.lower >= start
        values = None if self.values is None else self.values[np.searchsorted(self.values, start) :]
        return TailSample(self.lower[keep], self.upper[keep], self.counts[keep], self.mean_log[keep], 0, values)


def _checked(values: NDArray[np.floating]) -> Floats:
    array = np.asarray(values, np.float64)
    if array.ndim != 1 or not np.all(np.isfinite(array)) or np.any(array < 0):
        raise ValueError("a sample is one row of finite numbers, zero or more")
    return array


def _starts(logs: Floats) -> NDArray[np.int64]:
    """Where bins begin: one per distinct value while those are few, else of equal width on a logarithmic scale."""
    if not logs.size:
        return np.empty(0, np.int64)
    changes = np.flatnonzero(np.diff(logs, prepend=-np.inf))
    if changes.size <= MOST_BINS:
        return changes
    number = ((logs - logs[0]) * (MOST_BINS / (logs[-1] - logs[0]))).astype(np.int64)
    return np.flatnonzero(np.diff(np.minimum(number, MOST_BINS - 1), prepend=-1))
