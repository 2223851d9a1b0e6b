"""Times of files of equal work on one OST each, by OST (DEFINITIONS, Slow target)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Self

import numpy as np

from iolens.analyses.runs.like_runs import like_groups
from iolens.analyses.runs.used_files import UsedFiles
from iolens.arrays import Booleans, Floats, Integers
from iolens.findings.rule import OstTimes
from iolens.models.trend import slower_ps

WITHIN_PCT: Final = 10  # bytes of files that are equal work
FEWEST_OSTS: Final = 2
LEAST_FILES: Final = 3  # on an OST: a rank test says nothing of fewer


def ost_times(used: UsedFiles) -> Sequence[Sequence[OstTimes]]:
    """For each group of files of equal work on several OSTs of one file system what each OST took."""
    osts = np.array([_index(text) for text in used.osts], np.int64)
    moved = used.read_bytes + used.write_bytes
    known = np.flatnonzero((used.stripe_count == 1) & (osts >= 0) & (used.ranks > 0) & (moved > 0))
    if not known.size:
        return []
    _, mounts = np.unique(used.mounts[known].astype(str), return_inverse=True)
    ranks, read, written = (
        values[known].astype(np.int64) for values in (used.ranks, used.read_bytes, used.write_bytes)
    )
    numbers = like_groups([ranks, mounts], [read, written], WITHIN_PCT)
    waits = _RankTimes.of(used)
    return [_by_ost(used, osts[group], group, waits) for group in _groups(numbers, known) if _is_several(osts[group])]


@dataclass(frozen=True, slots=True, eq=False)
class _RankTimes:
    """I/O time of each rank in files of its own, and the ranks from the slowest on."""

    seconds: Floats
    slowest_first: Integers

    @classmethod
    def of(cls, used: UsedFiles) -> Self:
        is_own = used.rank >= 0
        seconds = np.bincount(used.rank[is_own].astype(np.int64), used.io_s[is_own], 1).astype(np.float64)
        return cls(seconds, np.argsort(-seconds, kind="stable"))

    def earlier_s(self, ranks: Integers, excess_s: Floats) -> float:
        """How much earlier the slowest rank would be if these ranks were faster by so much."""
        named, where = np.unique(ranks, return_inverse=True)
        affected = {*named.tolist()}
        others_s = next((self.seconds[rank] for rank in self.slowest_first.tolist() if rank not in affected), 0.0)
        left_s = self.seconds[named] - np.bincount(where, excess_s, named.size)
        return float(self.seconds.max() - max(others_s, left_s.max()))


def _groups(numbers: Integers, places: Integers) -> Iterator[Integers]:
    """Places with the same number, of each that is there more than once."""
    order = np.argsort(numbers, kind="stable")
    parts = np.split(places[order], np.flatnonzero(np.diff(numbers[order])) + 1)
    return (part for part in parts if part.size >= FEWEST_OSTS)


def _is_several(osts: Integers) -> bool:
    return np.unique(osts).size >= FEWEST_OSTS


def _by_ost(used: UsedFiles, osts: Integers, group: Integers, waits: _RankTimes) -> list[OstTimes]:
    each_s, moved = used.io_s[group] / used.ranks[group], used.read_bytes[group] + used.write_bytes[group]
    named, where = np.unique(osts, return_inverse=True)
    ps = slower_ps(each_s, where)
    result = []
    for place, ost in enumerate(named.tolist()):
        here = where == place
        if int(here.sum()) < LEAST_FILES:
            continue
        result.append(
            OstTimes(
                ost=ost,
                mount=used.mounts[group[0]],
                files=int(here.sum()),
                file_bytes=int(moved[here].mean()),
                mean_s=float(each_s[here].mean()),
                p=float(ps[place]),
                io_s=float(used.io_s[group[here]].sum()),
                lost_s=_lost_s(used.rank[group[here]], each_s, here, waits),
            )
        )
    return result


def _lost_s(ranks: Floats, each_s: Floats, here: Booleans, waits: _RankTimes) -> float:
    """What the slowest rank would gain if files here took the median time of the others; shared ones cost all ranks."""
    excess_s = np.maximum(each_s[here] - float(np.median(each_s[~here])), 0.0)
    is_own = ranks >= 0
    shared_s = float(excess_s[~is_own].sum())
    if not is_own.any():
        return shared_s
    return shared_s + waits.earlier_s(ranks[is_own].astype(np.int64), excess_s[is_own])


def _index(text: str | None) -> int:
    """Of the only OST; −1: several, or not known."""
    return int(text) if text is not None and text.isdigit() else -1
