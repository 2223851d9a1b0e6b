"""One lasting change of the level of a series: where it is, and how likely chance is to make one as clear (B9)."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from iolens.arrays import Floats
from iolens.models.bootstrap import SEED, portions

LEAST_RUNS: Final = 3  # on both sides: fewer do not last
ARRANGEMENTS: Final = 4999
_NOTHING: Final = 1e-12  # of the largest value: what doubles lose is no spread


class ChangePoint(NamedTuple):
    """The level before and after as medians; `place` is that of the first value after the change."""

    place: int
    before: float
    after: float
    p: float


def change_point(values: Floats, seed: int = SEED) -> ChangePoint | None:
    """Where the means of what is before and after differ most for their numbers; None: too few values, or all equal.

    The statistic is the largest |sum of the first k, centred| ÷ √(k·(n − k)); p is the share of `ARRANGEMENTS` random
    orders, and the one there is, in which it is as large.
    """
    count = len(values)
    centred = values - values.mean() if count else values
    if count < 2 * LEAST_RUNS or np.abs(centred).max() <= _NOTHING * np.abs(values).max():
        return None
    clear = _clearness(centred[np.newaxis])[0]
    random = np.random.default_rng(seed)
    as_clear = 0
    for some in portions(ARRANGEMENTS, count):
        orders = random.permuted(np.tile(centred, (some, 1)), axis=1)
        as_clear += int((_clearness(orders).max(axis=1) >= clear.max() * (1 - 1e-9)).sum())
    place = LEAST_RUNS + int(clear.argmax())
    before, after = float(np.median(values[:place])), float(np.median(values[place:]))
    return ChangePoint(place, before, after, (1 + as_clear) / (1 + ARRANGEMENTS))


def clearest_place(values: Floats) -> int | None:
    """Where `change_point` would have a change, be it chance or not; None: too few values."""
    if len(values) < 2 * LEAST_RUNS:
        return None
    return LEAST_RUNS + int(_clearness((values - values.mean())[np.newaxis])[0].argmax())


def relative_clearness(values: Floats, place: int) -> float:
    """How clear a change at that place is, as a share of the clearest; 0 where too few values are on a side of it."""
    if not LEAST_RUNS <= place <= len(values) - LEAST_RUNS:
        return 0.0
    clear = _clearness((values - values.mean())[np.newaxis])[0]
    return float(clear[place - LEAST_RUNS] / clear.max()) if clear.max() > 0 else 0.0


def _clearness(series: Floats) -> Floats:
    """Of each series (row) at each place that has enough values on both sides."""
    count = series.shape[1]
    first = np.arange(LEAST_RUNS, count - LEAST_RUNS + 1)
    clear: Floats = np.abs(series.cumsum(axis=1)[:, first - 1]) / np.sqrt(first * (count - first))
    return clear
