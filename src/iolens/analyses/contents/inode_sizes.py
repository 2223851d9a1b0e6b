"""Inodes by type and size, as one scan found them: the `size` histograms of table `contents`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import narwhals as nw

from iolens.analyses.contents.scans import FILE, SIZE, newest, scan_rows, sums
from iolens.errors import UsageError
from iolens.models.dom import Bin, SizeBins
from iolens.store.selection import Selection
from iolens.units import iso


@dataclass(frozen=True, slots=True)
class InodeSizes:
    """Files, and every other type of inode, by size; `origin` in words."""

    origin: str
    filesystem: str | None
    time: datetime | None
    files: SizeBins
    others: Mapping[str, SizeBins]


def inode_sizes(selection: Selection, largest: int | None = None) -> InodeSizes | None:
    """The newest scan of the window, all owners together; None without one."""
    rows = scan_rows(selection)
    if rows is None:
        return None
    rows = rows.filter(nw.col("histogram") == SIZE, ~nw.col("count").is_null())
    scan = newest(selection, rows)
    if scan is None:
        return None
    records = [
        {
            "inode_type": inode_type,
            "bin_from": above,
            "bin": up_to,
            "count": inode_sum.inodes or 0,
            "bytes": inode_sum.bytes,
        }
        for (inode_type, above, up_to), inode_sum in sums(scan.of(rows), "inode_type", "bin_from", "bin")
    ]
    words = f"{selection.filesystem}: scan of {iso(scan.time)} ({scan.source})"
    return _sizes(records, words, selection.filesystem, scan.time, largest)


def sizes_of_rows(rows: Iterable[Mapping[str, Any]], origin: str, largest: int | None = None) -> InodeSizes:
    """The same from rows of `contents` that are in no store: those of one file."""
    mine = [row for row in rows if row.get("histogram") == SIZE]
    return _sizes(mine, origin, None, None, largest)


def _sizes(
    rows: list[Mapping[str, Any]] | list[dict[str, Any]],
    origin: str,
    filesystem: str | None,
    time: datetime | None,
    largest: int | None,
) -> InodeSizes:
    by_type: dict[str, list[Bin]] = {}
    for row in rows:
        item = Bin(row["bin_from"], row["bin"], int(row["count"]), row.get("bytes"))
        by_type.setdefault(str(row["inode_type"]), []).append(item)
    types = {name: SizeBins.of(bins, largest) for name, bins in sorted(by_type.items())}
    files = types.pop(FILE, None)
    if files is None or not files.total:
        raise UsageError(f"{origin}: it counts no files by size")
    return InodeSizes(origin, filesystem, time, files, {name: bins for name, bins in types.items() if bins.total})
