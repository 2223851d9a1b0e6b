"""Times of files of equal work on one OST each, by OST (DEFINITIONS, Slow target)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from iolens.analyses.runs.like_runs import like_groups
from iolens.analyses.runs.used_files import Bools, UsedFiles
from iolens.arrays import Floats, Integers
from iolens.findings.rule import OstTimes
from iolens.models.rank_correlation import slower_p

WITHIN_PCT: Final = 10  # bytes of files that are equal work
FEWEST_OSTS: Final = 2


def ost_times(used: UsedFiles) -> Sequence[Sequence[OstTimes]]:
    """For each group of files of equal work on several OSTs of one file system what each OST took."""
    osts = np.array([_index(text) for text in used.osts])
    is_known = (used.stripe_count == 1) & (osts >= 0) & (used.ranks > 0) & (used.read_bytes + used.write_bytes > 0)
    if not is_known.any():
        return []
    _, mounts = np.unique(used.mounts.astype(str), return_inverse=True)
    ranks, read, written = (_whole(values[is_known]) for values in (used.ranks, used.read_bytes, used.write_bytes))
    numbers = np.full(len(used), -1)
    numbers[is_known] = like_groups([ranks, mounts[is_known]], [read, written], WITHIN_PCT)
    groups = [numbers == number for number in range(int(numbers.max()) + 1)]
    return [_by_ost(used, osts, group) for group in groups if len(np.unique(osts[group])) >= FEWEST_OSTS]


def _by_ost(used: UsedFiles, osts: Integers, group: Bools) -> list[OstTimes]:
    each_s = np.divide(used.io_s, used.ranks, out=np.zeros(len(used)), where=used.ranks > 0)
    result = []
    for ost in np.unique(osts[group]).tolist():
        here, elsewhere = group & (osts == ost), group & (osts != ost)
        result.append(
            OstTimes(
                ost=ost,
                mount=used.mounts[here][0],
                files=int(here.sum()),
                file_bytes=int((used.read_bytes + used.write_bytes)[here].mean()),
                mean_s=float(each_s[here].mean()),
                p=slower_p(each_s[here], each_s[elsewhere]),
                io_s=float(used.io_s[here].sum()),
                lost_s=_lost_s(used, each_s, here, float(np.median(each_s[elsewhere]))),
            )
        )
    return result


def _lost_s(used: UsedFiles, each_s: Floats, slow: Bools, usual_s: float) -> float:
    """How much earlier the slowest rank would be if these files took the usual time; shared ones cost every rank."""
    excess_s = np.where(slow, np.maximum(each_s - usual_s, 0.0), 0.0)
    is_own = used.rank >= 0
    ranks = used.rank[is_own].astype(np.int64)
    now_s, excess_of_rank_s = np.bincount(ranks, each_s[is_own]), np.bincount(ranks, excess_s[is_own])
    shared_s = float(excess_s[~is_own].sum())
    if not len(now_s):
        return shared_s
    return shared_s + float(now_s.max() - (now_s - excess_of_rank_s).max())


def _index(text: str | None) -> int:
    """Of the only OST; −1: several, or not known."""
    return int(text) if text is not None and text.isdigit() else -1


def _whole(values: Floats) -> Integers:
    whole: Integers = values.astype(np.int64)
    return whole
