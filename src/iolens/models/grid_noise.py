"""How large a difference between two cells of a measured grid must be to be more than noise.

Tukey's honest significant difference on logarithms: repeats of a cell tell the noise, pooled over all cells, and the
quantile of the studentized range allows for the best cell being picked out of many.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from math import exp, log, sqrt
from typing import Final, NamedTuple

import numpy as np

CONFIDENCE: Final = 0.95
MOST_CELLS: Final = 100  # the quantile grows little beyond


class GridNoise(NamedTuple):
    """`factor`: two cells differ if one's mean is more than so many times the other's; None: there are no repeats."""

    factor: float | None
    noise_pct: float | None  # standard deviation of a run within its cell


def grid_noise(cells: Sequence[Sequence[float]]) -> GridNoise:
    """Of positive values by cell; cells of one value tell nothing of the noise."""
    repeated = [np.log(np.asarray(cell, float)) for cell in cells if len(cell) > 1]
    freedom = sum(len(cell) - 1 for cell in repeated)
    if not freedom or len(cells) < 2:
        return GridNoise(None, None)
    variance = sum(float(((cell - cell.mean()) ** 2).sum()) for cell in repeated) / freedom
    repeats = min(len(cell) for cell in cells)
    quantile = _range_quantile(min(len(cells), MOST_CELLS), freedom)
    return GridNoise(exp(quantile * sqrt(variance / repeats)), 100.0 * (exp(sqrt(variance)) - 1.0))


@cache
def _range_quantile(cells: int, freedom: int) -> float:
    """Of the studentized range; it takes a tenth of a second to compute, and grids of a study are of one shape."""
    from scipy.stats import studentized_range

    return float(studentized_range.ppf(CONFIDENCE, cells, freedom))


def geometric_mean(values: Sequence[float]) -> float:
    """The mean on the same scale."""
    return exp(sum(map(log, values)) / len(values))
