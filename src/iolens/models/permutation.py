"""Whether two groups differ, by permuting their members: DEFINITIONS, "Jobs before and after" (N3).

The statistic of a measure is the difference of the group means divided by its pooled standard error. Its p-value is
the share of arrangements of the members in which the largest statistic of all measures is at least as large (max-T):
it holds for the whole family of measures at once.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations, islice
from math import comb
from typing import Final

import numpy as np

from iolens.arrays import Booleans, Floats
from iolens.models.bootstrap import SEED, portions

MOST_ARRANGEMENTS: Final = 20_000
FEWEST_MEMBERS: Final = 2  # in a group, of those that have the measure
_NOTHING: Final = 1e-12  # of the largest value: what doubles lose is no spread


@dataclass(frozen=True, slots=True)
class GroupDifferences:
    """Two groups, measure by measure; NaN is undefined.

    A statistic is infinite where neither group has any spread. `p` is family-wise and two-sided.
    """

    first_mean: Floats
    second_mean: Floats
    difference: Floats  # second less first
    statistic: Floats
    p: Floats
    arrangements: int  # 0: nothing could be tested
    is_exhaustive: bool
    smallest_p: float | None  # that so many members can reach


def group_differences(values: Floats, is_second: Booleans, seed: int = SEED) -> GroupDifferences:
    """`values` has a row for each member and a column for each measure; NaN: the member does not have it."""
    known = np.isfinite(values)
    counts = np.array([known[~is_second].sum(axis=0), known[is_second].sum(axis=0)], dtype=float)
    sums = np.array([np.where(known, values, 0.0)[group].sum(axis=0) for group in (~is_second, is_second)])
    first, second = (np.where(counts > 0, sums, np.nan) / np.maximum(counts, 1)).reshape(2, -1)
    family = _Family(values, known)
    tested = (counts >= FEWEST_MEMBERS).all(axis=0)
    undefined = np.full(values.shape[1], np.nan)
    if not tested.any():
        return GroupDifferences(first, second, second - first, undefined, undefined.copy(), 0, False, None)
    statistic = np.where(tested, family.statistics(is_second[np.newaxis].astype(float))[0], np.nan)
    members, seconds = is_second.size, int(is_second.sum())
    is_exhaustive = comb(members, seconds) <= MOST_ARRANGEMENTS
    arrangements = comb(members, seconds) if is_exhaustive else MOST_ARRANGEMENTS
    threshold = np.abs(np.where(tested, statistic, np.inf)) * (1 - 1e-9)  # equal up to what doubles lose
    reached = np.zeros(values.shape[1])
    for labels in _labels(members, seconds, is_exhaustive, seed):
        largest = np.abs(family.statistics(labels)[:, tested]).max(axis=1)
        reached += (largest[:, np.newaxis] >= threshold).sum(axis=0)
    itself = 0 if is_exhaustive else 1  # the arrangement there is, which chance draws need not hold
    p = np.where(tested, (reached + itself) / (arrangements + itself), np.nan)
    mirrored = 2 if is_exhaustive and 2 * seconds == members else 1
    return GroupDifferences(
        first, second, second - first, statistic, p, arrangements, is_exhaustive, mirrored / (arrangements + itself)
    )


class _Family:
    """All measures of all members, ready for many arrangements at once."""

    def __init__(self, values: Floats, known: Booleans) -> None:
        self.known = known.astype(float)
        self.counts = self.known.sum(axis=0)
        plain = np.where(known, values, 0.0)
        means = plain.sum(axis=0) / np.maximum(self.counts, 1)
        self.centred = np.where(known, values - means, 0.0)
        self.squares = (self.centred**2).sum(axis=0)
        scale = np.abs(plain).max(axis=0, initial=0.0)
        self.has_spread = (self.counts >= 3) & (self.squares > self.counts * (_NOTHING * scale) ** 2)

    def statistics(self, labels: Floats) -> Floats:
        """A row for each arrangement: 1 for members of the second group, 0 for the others.

        The squares between the groups and those within them add up to the same in every arrangement, so that sums are
        enough. 0 where a measure has no spread, or an arrangement leaves one group without it.
        """
        second = labels @ self.known
        sums = labels @ self.centred
        pairs = second * (self.counts - second)
        can = self.has_spread & (pairs > 0.5)
        between = np.divide(sums**2 * self.counts, pairs, out=np.zeros_like(sums), where=can)
        share = np.divide(between, self.squares, out=np.zeros_like(sums), where=can)
        within = np.where(1.0 - share > _NOTHING, 1.0 - share, 0.0)
        with np.errstate(divide="ignore"):
            size = np.sqrt(np.where(share > 0, share * np.maximum(self.counts - 2, 0) / within, 0.0))
        statistic: Floats = np.sign(sums) * size
        return statistic


def _labels(members: int, seconds: int, is_exhaustive: bool, seed: int) -> Iterator[Floats]:
    """Arrangements, as many at a time as fit into memory."""
    if is_exhaustive:
        chosen = combinations(range(members), seconds)
        for count in portions(comb(members, seconds), members):
            yield _marked(np.array(list(islice(chosen, count)), dtype=np.intp).reshape(count, seconds), members)
        return
    random = np.random.default_rng(seed)
    for count in portions(MOST_ARRANGEMENTS, members):
        keys = random.random((count, members), dtype=np.float32)
        yield _marked(np.argpartition(keys, seconds - 1, axis=1)[:, :seconds], members)


def _marked(chosen: np.ndarray[tuple[int, int], np.dtype[np.intp]], members: int) -> Floats:
    labels = np.zeros((chosen.shape[0], members))
    np.put_along_axis(labels, chosen, 1.0, axis=1)
    return labels
