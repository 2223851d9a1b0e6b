"""How long imbalance lasts and how far apart its periods are (SPEC S11, Fig. 17 of paper S); gaps break both."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from iolens.analyses.imbalance.stretches import runs_of
from iolens.arrays import Booleans, Integers


@dataclass(frozen=True, slots=True)
class Durations:
    """Percentiles of a set of durations; None without any."""

    count: int
    mean_s: float | None
    p50_s: float | None
    p90_s: float | None
    p99_s: float | None
    max_s: float | None

    @classmethod
    def of(cls, ticks: Integers, tick_s: float) -> Durations:
        """Of lengths in ticks."""
        if not ticks.size:
            return cls(0, None, None, None, None, None)
        seconds = ticks * tick_s
        mean, most = float(seconds.mean()), float(seconds.max())
        middle, p90, p99 = (float(item) for item in np.quantile(seconds, [0.5, 0.9, 0.99]))
        return cls(seconds.size, mean, middle, p90, p99, most)


@dataclass(frozen=True, slots=True, eq=False)
class Periods:
    """Lengths in ticks. A period that meets a gap or an end of the window is `cut`: it may have been longer."""

    lifetimes: Integers
    distances: Integers  # from the end of a period to the start of the next, where nothing is missing between them
    cut: int


def periods(unbalanced: Booleans, follows: Booleans) -> Periods:
    """Maximal runs of unbalanced ticks; a tick that does not follow the one before it comes after a gap."""
    _, first, last = runs_of(unbalanced[None, :], follows)
    part = np.cumsum(~follows)  # between two gaps
    near = part[first[1:]] == part[last[:-1]]
    begins_open = ~follows[first] | (first == 0)
    ends_open = ~np.append(follows[1:], False)[last]
    return Periods(last - first + 1, (first[1:] - last[:-1] - 1)[near], int((begins_open | ends_open).sum()))
