"""Groups of like runs (DEFINITIONS, Like jobs): same user, processes and files; bytes read and written within 1 %.

Runs are sorted by bytes and cut where one has more than 1.01 times the bytes of the first of its group, so that no two
of a group differ by more. Zero matches only zero.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from iolens.arrays import Integers
from iolens.findings.rule import LIKE_RUNS, Finding


def like_groups(same: Sequence[Integers], within: Sequence[Integers], within_pct: int = 1) -> Integers:
    """A group number for each run: `same` are equal in a group, `within` cut it one after the other."""
    groups = _numbered(np.lexsort(tuple(same)), same)
    for values in within:
        groups = _cut(groups, values, within_pct)
    return groups


def _numbered(order: Integers, columns: Sequence[Integers]) -> Integers:
    """Numbers of equal rows, given an order in which they stand together."""
    differs = np.zeros(order.size, dtype=bool)
    for column in columns:
        differs[1:] |= column[order][1:] != column[order][:-1]
    numbers = np.empty(order.size, dtype=np.int64)
    numbers[order] = np.cumsum(differs)
    return numbers


def _cut(groups: Integers, values: Integers, within_pct: int) -> Integers:
    """Each group cut where a value exceeds the smallest of its part by more than a per cent; values are whole numbers.

    Every place knows where the part that starts there would end; then all groups follow these steps side by side. A
    group has at most some 4,400 parts, since each is 1 % larger than the one before.
    """
    if not groups.size:
        return groups
    order = np.lexsort((values, groups))
    sorted_groups, sorted_values = groups[order], values[order]
    levels = np.unique(sorted_values)
    width = levels.size + 1
    keys = sorted_groups * width + np.searchsorted(levels, sorted_values)
    most = sorted_values + sorted_values // 100 * within_pct  # x > 1.01 y of whole numbers, without overflow
    most += sorted_values % 100 * within_pct // 100
    next_part = np.searchsorted(keys, sorted_groups * width + np.searchsorted(levels, most, "right"), "left")
    starts = np.zeros(order.size, dtype=bool)
    is_first = np.append(True, sorted_groups[1:] != sorted_groups[:-1])
    ends = np.append(np.flatnonzero(is_first)[1:], order.size)
    place = np.flatnonzero(is_first)
    while place.size:
        starts[place] = True
        following = next_part[place]
        goes_on = following < ends
        place, ends = following[goes_on], ends[goes_on]
    numbers = np.empty(order.size, dtype=np.int64)
    numbers[order] = np.cumsum(starts) - 1
    return numbers


# What better runs of the same application reached ---------------------------------------------------------------------
# The measured part of an estimated gain.

FEWEST: Final = 5  # like runs that a gain is estimated from
LEAST_GAIN: Final = 1.05  # a run that is nearly as fast as the best quartile has nothing to gain from being like them


@dataclass(frozen=True, slots=True)
class LikeRates:
    """Runs of the same user, program and number of processes, and the rate that a quarter of them reaches."""

    runs: int
    best_quartile_mib_per_s: float


def like_rates(rates_mib_per_s: Sequence[float]) -> LikeRates | None:
    """Of the rates of other runs; None: too few to say."""
    known = [rate for rate in rates_mib_per_s if rate is not None and np.isfinite(rate)]
    return LikeRates(len(known), float(np.percentile(known, 75))) if len(known) >= FEWEST else None


def with_gain(findings: Sequence[Finding], like: LikeRates | None, rate_mib_per_s: float | None) -> tuple[Finding, ...]:
    """Findings with the gain that like runs show; where they show none, with that of the study, if any."""
    if like is None or not rate_mib_per_s:
        return tuple(findings)
    gain = like.best_quartile_mib_per_s / rate_mib_per_s
    if gain < LEAST_GAIN:
        return tuple(findings)
    return tuple(replace(finding, estimated_gain=gain, gain_from=LIKE_RUNS) for finding in findings)
