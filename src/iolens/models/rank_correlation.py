"""Tests by rank: Spearman's correlation, Mann and Whitney's test, Holm's correction, a value's place among others."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from iolens.arrays import Floats, Integers


def ranks(values: Floats) -> Floats:
    """Ranks from 1; equal values share the mean of theirs."""
    _, where, counts = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    shared: Floats = (last - (counts - 1) / 2.0)[where]
    return shared


def spearman(first: Floats, second: Floats) -> tuple[float, float] | None:
    """ρ and its two-sided p by Student's t with n − 2 degrees; None: fewer than 3 pairs, or one does not vary.

    p is at least 2/n!, that of a perfect order: the approximation gives 0 there.
    """
    count = len(first)
    if count < 3:
        return None
    left, right = (ranks(values) - (count + 1) / 2.0 for values in (first, second))
    spread = math.sqrt(float(left @ left) * float(right @ right))
    if spread == 0.0:
        return None
    rho = min(max(float(left @ right) / spread, -1.0), 1.0)
    return rho, max(_two_sided_p(rho, count), 2.0 / math.factorial(min(count, 100)))


def _two_sided_p(rho: float, count: int) -> float:
    from scipy.special import stdtr

    if abs(rho) >= 1.0:
        return 0.0
    t = rho * math.sqrt((count - 2) / ((1.0 - rho) * (1.0 + rho)))
    return min(2.0 * float(stdtr(count - 2, -abs(t))), 1.0)


def slower_ps(values: Floats, groups: Integers) -> Floats:
    """One-sided p for each group, numbered from 0, that its values are larger than all others by chance.

    Mann and Whitney's test by the normal approximation, corrected for ties and for continuity; 1 where nothing differs.
    """
    counts, whole = np.bincount(groups).astype(float), len(values)
    _, tied = np.unique(values, return_counts=True)
    ties = float((tied.astype(float) ** 3 - tied).sum()) / max(whole * (whole - 1), 1)
    others = whole - counts
    spread = np.sqrt(np.maximum(counts * others / 12.0 * (whole + 1 - ties), 0.0))
    larger = np.bincount(groups, ranks(values)) - counts * (counts + 1) / 2.0
    beyond = larger - counts * others / 2.0 - 0.5
    pairs = zip(beyond.tolist(), spread.tolist(), strict=True)
    return np.array([0.5 * math.erfc(more / width / math.sqrt(2.0)) if width else 1.0 for more, width in pairs])


def holm(p_values: Sequence[float]) -> list[float]:
    """Each p corrected for the number of tests (Holm, 1979), in the order given."""
    order = sorted(range(len(p_values)), key=lambda place: p_values[place])
    corrected = [1.0] * len(p_values)
    largest = 0.0
    for step, place in enumerate(order):
        largest = max(largest, min((len(p_values) - step) * p_values[place], 1.0))
        corrected[place] = largest
    return corrected


def percentile_of(value: float, others: Floats) -> float | None:
    """Per cent of the others that are smaller, equal ones as half; None of nothing, or where it is not known."""
    known = others[~np.isnan(others)]
    if not known.size or math.isnan(value):
        return None
    return 100.0 * float((known < value).sum() + 0.5 * (known == value).sum()) / known.size
