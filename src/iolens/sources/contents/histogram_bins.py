"""Bins of a histogram that somebody else counted, on their way into `contents`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from iolens.records import Rows

TABLE: Final = "contents"
FILE, DIRECTORY, SYMLINK = "file", "dir", "symlink"
SIZE, WIDTH, ATIME, MTIME, TOTAL = "size", "width", "atime", "mtime", "total"


class CountedBin(NamedTuple):
    """Inodes of one type: larger than `above` and at most `up_to`; None: no such end, or bytes not reported."""

    inode_type: str
    histogram: str
    above: int | None
    up_to: int | None
    inodes: int
    size: int | None

    @property
    def values(self) -> dict[str, object]:
        """Its columns in `contents`."""
        return dict(zip(_COLUMNS, self, strict=True))


_COLUMNS: Final = ("inode_type", "histogram", "bin_from", "bin", "count", "bytes")


def reported_by(bins: Iterable[CountedBin]) -> frozenset[tuple[str, str]]:
    """Which histograms of which types there are."""
    return frozenset((counted_bin.inode_type, counted_bin.histogram) for counted_bin in bins)


def bin_rows(bins: Sequence[CountedBin], **common: object) -> Rows:
    """Rows of `contents`, with the same values in the common columns."""
    columns = {name: [counted_bin[place] for counted_bin in bins] for place, name in enumerate(_COLUMNS)}
    return Rows(TABLE, {**columns, **common}, len(bins))
