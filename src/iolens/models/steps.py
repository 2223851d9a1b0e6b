"""Sudden changes in a slowly moving level: where it fell or rose far beyond its usual pace (S9, Fig. 14 of paper S).

The rule. The usual pace is the median change per day between neighbouring readings, its spread 1.4826 times the median
absolute deviation. Neighbouring changes on the same side of the usual pace are a run, trimmed at both ends of changes
within two spreads of it (or within half of the run's largest, if that is less). A run is an event when what it adds up
to beyond the usual pace exceeds `SPREADS` spreads times the square root of its changes (as independent changes would),
and when the level itself moved by at least `least`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from iolens.arrays import Floats

SPREADS: Final = 4.0
TRIM_SPREADS: Final = 2.0
LEAST_SHARE: Final = 0.01  # of the capacity: what counts as an event at all
MAD_TO_SIGMA: Final = 1.4826  # makes the median absolute deviation a standard deviation where values are normal
LEAST_CHANGES: Final = 3  # fewer have no usual pace

Kind = Literal["purge", "surge"]


class LevelStep(NamedTuple):
    """The level went from reading `first` to reading `last` by `change`."""

    kind: Kind
    first: int
    last: int
    change: float


class UsualChange(NamedTuple):
    """Usual change per day, and its spread."""

    median: float
    spread: float


def usual_pace(days: Floats, values: Floats) -> UsualChange | None:
    """Median and robust spread of the changes per day; None with fewer than `LEAST_CHANGES` changes."""
    if days.size <= LEAST_CHANGES:
        return None
    rates = np.diff(values) / np.diff(days)
    median = float(np.median(rates))
    return UsualChange(median, MAD_TO_SIGMA * float(np.median(np.abs(rates - median))))


def events(days: Floats, values: Floats, least: float, broken: NDArray[np.bool_] | None = None) -> list[LevelStep]:
    """All events in time order.

    `days` ascend strictly. `broken[i]` says that the change from reading i to i + 1 means nothing, since what is
    measured was another then; no run goes across it.
    """
    pace = usual_pace(days, values)
    if pace is None:
        return []
    apart = np.diff(days)
    beyond = np.diff(values) - pace.median * apart
    spread = pace.spread * apart
    sides = np.sign(beyond).astype(np.int64)
    if broken is not None:
        sides[broken] = 0
    level_steps = (_event(values, beyond, spread, *run, least) for run in _runs(sides))
    return [event for event in level_steps if event is not None]


def _runs(sides: NDArray[np.int64]) -> Iterator[tuple[int, int]]:
    """First and last place of every run of equal sides; zeros are in none."""
    begins = np.flatnonzero(np.diff(sides, prepend=0) != 0)
    for place, begin in enumerate(begins):
        end = int(begins[place + 1]) - 1 if place + 1 < len(begins) else len(sides) - 1
        if sides[begin]:
            yield int(begin), end


def _event(values: Floats, beyond: Floats, spread: Floats, begin: int, end: int, least: float) -> LevelStep | None:
    off = np.abs(beyond[begin : end + 1])
    large = np.flatnonzero(off > np.minimum(TRIM_SPREADS * spread[begin : end + 1], 0.5 * off.max()))
    first, last = begin + int(large[0]), begin + int(large[-1])
    excess = float(beyond[first : last + 1].sum())
    noise = SPREADS * float(np.sqrt((spread[first : last + 1] ** 2).sum()))
    change = float(values[last + 1] - values[first])
    if abs(excess) <= noise or abs(change) < least or change * excess <= 0:
        return None
    return LevelStep("purge" if change < 0 else "surge", first, last + 1, change)
