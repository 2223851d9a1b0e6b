"""Inodes by type and size, as one scan found them: the `size` histograms of table `contents`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

import narwhals as nw

from iolens.errors import UsageError
from iolens.models.dom import Bin, SizeBins
from iolens.store.selection import Selection
from iolens.units import epoch_us, from_epoch_us, iso

TABLE: Final = "contents"
HISTOGRAM: Final = "size"
FILE: Final = "file"
NEEDED: Final = frozenset({"histogram", "inode_type", "bin", "bin_from", "count"})


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
    frame = selection.frame(TABLE)
    if not set(frame.collect_schema().names()) >= NEEDED:
        return None
    rows = frame.filter(nw.col("histogram") == HISTOGRAM)
    since, until = selection.window
    if since is not None:
        rows = rows.filter(nw.col("epoch_us") >= epoch_us(since))
    if until is not None:
        rows = rows.filter(nw.col("epoch_us") < epoch_us(until))
    scans = rows.select("epoch_us", "source", "scan").unique().collect(backend="pyarrow").to_native().to_pylist()
    if not scans:
        return None
    newest = max(scans, key=lambda one: (one["epoch_us"], one["source"], str(one["scan"])))
    rows = rows.filter(nw.col("epoch_us") == newest["epoch_us"], nw.col("source") == newest["source"])
    if newest["scan"] is not None:
        rows = rows.filter(nw.col("scan") == newest["scan"])
    sums = rows.group_by("inode_type", "bin_from", "bin").agg(
        nw.col("count").sum(),
        nw.col("bytes").sum(),
        nw.col("bytes").count().alias("known"),
        nw.len().alias("rows"),
    )
    found = sums.collect(backend="pyarrow").to_native().to_pylist()
    known = [{**row, "bytes": int(row["bytes"]) if row["known"] == row["rows"] else None} for row in found]
    time = from_epoch_us(int(newest["epoch_us"]))
    words = f"{selection.filesystem}: scan of {iso(time)} ({newest['source']})"
    return _sizes(known, words, selection.filesystem, time, largest)


def sizes_of_rows(rows: Iterable[Mapping[str, Any]], origin: str, largest: int | None = None) -> InodeSizes:
    """The same from rows of `contents` that are in no store: those of one file."""
    mine = [row for row in rows if row.get("histogram") == HISTOGRAM]
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
        one = Bin(row["bin_from"], row["bin"], int(row["count"]), row.get("bytes"))
        by_type.setdefault(str(row["inode_type"]), []).append(one)
    types = {name: SizeBins.of(bins, largest) for name, bins in sorted(by_type.items())}
    files = types.pop(FILE, None)
    if files is None or not files.total:
        raise UsageError(f"{origin}: it counts no files by size")
    return InodeSizes(origin, filesystem, time, files, {name: bins for name, bins in types.items() if bins.total})
