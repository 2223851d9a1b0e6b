"""Rows of `contents` as sums that can be compared."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from iolens.records import Item
from tests.sources.stored import rows_of

Sums = dict[tuple[Any, ...], tuple[int, int | None, int | None]]


def sums_of(items: Sequence[Item]) -> Sums:
    """Count, bytes and allocation by owner, project, type, histogram and the ends of the bin.

    Each bin occurs once, but for those whose bytes take several numbered rows.
    """
    sums: Sums = {}
    seen: set[tuple[Any, ...]] = set()
    for row in rows_of(items, "contents"):
        names = ("owner", "project", "inode_type", "histogram", "bin_from", "bin")
        key = tuple(row.get(name) for name in names)
        assert (*key, row.get("piece")) not in seen
        seen.add((*key, row.get("piece")))
        count, *sizes = sums.get(key, (0, 0, 0))
        new = (row.get("bytes"), row.get("allocated_bytes"))
        total = (None if old is None or more is None else old + more for old, more in zip(sizes, new, strict=True))
        sums[key] = (count + row["count"], *total)  # type: ignore[assignment]
    return sums


def totals_of(items: Sequence[Item], histogram: str = "size") -> dict[str, tuple[int, int]]:
    """Inodes and bytes by type."""
    values: dict[str, list[int]] = defaultdict(lambda: [0, 0])
    for row in rows_of(items, "contents"):
        if row["histogram"] == histogram:
            values[row["inode_type"]][0] += row["count"]
            values[row["inode_type"]][1] += row["bytes"] or 0
    return {name: (count, size) for name, (count, size) in values.items()}
