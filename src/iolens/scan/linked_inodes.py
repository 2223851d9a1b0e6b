"""Inodes with several names: each counts once, whoever met which of its names, on whatever node."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np
from numpy.typing import NDArray

from iolens.scan.inodes import INODE, Inodes, joined
from iolens.sources.contents.inode_counts import Group

_FEWEST: Final = 65536  # names: not worth sorting before


class LinkedInodes:
    """One row per inode: who and how large it is, how many names it has (`links`) and how many of them were `seen`.

    Of names in several projects, the project counts that is first in the alphabet, no project being last: the answer
    does not depend on the order in which they were met. Codes are those of the `InodeCounts` beside it.
    """

    def __init__(self) -> None:
        self._rows: Inodes = np.empty(0, INODE)
        self._new: list[Inodes] = []
        self._new_count = 0

    def add(self, rows: Inodes, groups: Mapping[Group, int]) -> None:
        """Names just met."""
        self._new.append(rows)
        self._new_count += len(rows)
        if self._new_count > max(_FEWEST, len(self._rows)):
            self._gather(groups)

    def merge(self, other: LinkedInodes, codes: Mapping[int, int], groups: Mapping[Group, int]) -> None:
        """Names met elsewhere; `codes` gives our code for each of theirs."""
        rows = joined((other._rows, *other._new))
        if not len(rows):
            return
        ours = np.zeros(max(codes) + 1, np.int64)
        ours[list(codes)] = list(codes.values())
        rows["code"] = ours[rows["code"]]
        self.add(rows, groups)

    def rows(self, groups: Mapping[Group, int]) -> Inodes:
        """One row per inode."""
        self._gather(groups)
        return self._rows

    def _gather(self, groups: Mapping[Group, int]) -> None:
        if not self._new_count:
            return
        rows = joined((self._rows, *self._new))
        rows = rows[np.lexsort((_ranks(groups)[rows["code"]], rows["inode"], rows["device"]))]
        is_first = np.ones(len(rows), np.bool_)
        is_first[1:] = (rows["inode"][1:] != rows["inode"][:-1]) | (rows["device"][1:] != rows["device"][:-1])
        starts = np.flatnonzero(is_first)
        kept = rows[starts]
        kept["seen"] = np.add.reduceat(rows["seen"], starts)
        self._rows, self._new, self._new_count = kept, [], 0

    def split_off_complete(self, groups: Mapping[Group, int]) -> Inodes:
        """Remove and return the inodes all of whose names were seen: nobody else will meet them."""
        self._gather(groups)
        is_complete = self._rows["seen"] >= self._rows["links"]
        complete = self._rows[is_complete]
        self._rows = self._rows[~is_complete]
        return complete


def _ranks(groups: Mapping[Group, int]) -> NDArray[np.int64]:
    """The place of each code in the order in which projects are preferred."""
    preferred = sorted(
        groups, key=lambda item: (item.project is None, item.project or "", item.owner or "", item.inode_type)
    )
    ranks = np.zeros(len(groups), np.int64)
    ranks[[groups[group] for group in preferred]] = np.arange(len(groups))
    return ranks
