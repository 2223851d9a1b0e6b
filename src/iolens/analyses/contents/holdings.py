"""Who holds what in one scan: sums by owner, project and type of inode, divided and put together as one likes.

Totals are those of the `total` rows of a source that has them, else the sums over its `size` histogram.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, NamedTuple

import narwhals as nw

from iolens.analyses.contents.scans import DIRECTORY, FILE, SIZE, TOTAL, InodeSum, added, sums

Name = Literal["owner", "project", "inode_type"]
NAMES: Final[tuple[Name, ...]] = ("owner", "project", "inode_type")


class Holder(NamedTuple):
    """Whose inodes, and of what type."""

    owner: str | None
    project: str | None
    inode_type: str | None


@dataclass(frozen=True, slots=True)
class Holdings:
    """Sums by holder."""

    held: dict[Holder, InodeSum]

    def where(self, chosen: Callable[[Holder], bool]) -> Holdings:
        """Those of some holders."""
        return Holdings({holder: inode_sum for holder, inode_sum in self.held.items() if chosen(holder)})

    def without(self, projects: Sequence[str]) -> Holdings:
        """All but those of some projects."""
        return self.where(lambda holder: holder.project not in projects)

    def with_name(self, name: Name) -> Holdings:
        """Those whose owner, or project, is reported."""
        return self.where(lambda holder: getattr(holder, name) is not None)

    def of_type(self, inode_type: str) -> InodeSum:
        """All inodes of one type."""
        return added([inode_sum for holder, inode_sum in self.held.items() if holder.inode_type == inode_type])

    @property
    def directories(self) -> int | None:
        """Their number; None where there is none, for a listing may leave them out and every tree has one."""
        return self.of_type(DIRECTORY).inodes if DIRECTORY in self.names("inode_type") else None

    @property
    def everything(self) -> InodeSum:
        """All inodes."""
        return added(list(self.held.values()))

    def names(self, name: Name) -> set[str]:
        """Owners, projects or types there are."""
        return {value for holder in self.held if (value := getattr(holder, name)) is not None}

    def by(self, name: Name) -> list[tuple[str | None, Holdings]]:
        """Divided by owner, project or type, those with most bytes first; by files where bytes are not reported."""
        inode_sums: dict[str | None, dict[Holder, InodeSum]] = {}
        for holder, inode_sum in self.held.items():
            inode_sums.setdefault(getattr(holder, name), {})[holder] = inode_sum
        parts = [(value, Holdings(held)) for value, held in inode_sums.items()]
        return sorted(parts, key=lambda part: (*_weight(part[1], name), str(part[0])))


def _weight(part: Holdings, name: Name) -> tuple[int, int]:
    whole = part.everything if name == "inode_type" else part.of_type(FILE)
    first, second = (whole.inodes, whole.bytes) if name == "inode_type" else (whole.bytes, whole.inodes)
    return -(first or 0), -(second or 0)


def holdings_of(rows: nw.LazyFrame[Any]) -> Holdings:
    """Sums over the rows of one scan."""
    mine = rows.filter(nw.col("histogram").is_in([SIZE, TOTAL]))
    by_histogram: dict[str, dict[Holder, InodeSum]] = {SIZE: {}, TOTAL: {}}
    for (owner, project, inode_type, histogram), inode_sum in sums(mine, *NAMES, "histogram"):
        by_histogram[str(histogram)][Holder(owner, project, inode_type)] = inode_sum
    return Holdings(_merged(by_histogram[SIZE], by_histogram[TOTAL]))


def _merged(sizes: dict[Holder, InodeSum], totals: dict[Holder, InodeSum]) -> dict[Holder, InodeSum]:
    """For each type of inode the totals, where there are any; what they leave open the sizes may tell."""
    by_total = {holder.inode_type for holder in totals}
    inode_sums = {holder: size for holder, size in sizes.items() if holder.inode_type not in by_total}
    for holder, total in totals.items():
        inode_sums[holder] = completed(total, sizes.get(holder))
    return inode_sums


def completed(inode_sum: InodeSum, other: InodeSum | None) -> InodeSum:
    """A sum with what it does not tell taken from another of the same inodes."""
    if other is None:
        return inode_sum
    return InodeSum(*(mine if mine is not None else theirs for mine, theirs in zip(inode_sum, other, strict=True)))
