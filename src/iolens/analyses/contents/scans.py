"""Scans of a file system (table `contents`): which there are, and what one found by age and by size."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, Literal, NamedTuple

import narwhals as nw
import numpy as np

from iolens.errors import UsageError
from iolens.models.dom import Bin, SizeBins
from iolens.models.growth import AgeDistribution
from iolens.store.selection import Selection
from iolens.units import from_epoch_us, iso

# Scans of a file system (table `contents`) ----------------------------------------------------------------------------
# Which there are, which one counts, and exact sums over it.

TABLE: Final = "contents"
SIZE, TOTAL, ATIME, MTIME, WIDTH = "size", "total", "atime", "mtime", "width"
FILE, DIRECTORY = "file", "dir"
NEEDED: Final = frozenset({"inode_type", "histogram", "count"})
_TEXTS: Final = ("source", "scan", "owner", "project")
_SIZES: Final = ("bytes", "allocated_bytes")
_WHOLE: Final = ("bin_from", "bin", *_SIZES)
_HALF: Final = 1 << 32


@dataclass(frozen=True, slots=True)
class Scan:
    """One scan: its time, who brought it, its name where it has one, the histograms it has, in how many rows."""

    time_us: int
    source: str | None
    scan: str | None
    histograms: frozenset[str]
    rows: int

    @property
    def time(self) -> datetime:
        """When it was taken."""
        return from_epoch_us(self.time_us)

    def of(self, rows: nw.LazyFrame[Any]) -> nw.LazyFrame[Any]:
        """Its rows."""
        mine = rows.filter(nw.col("epoch_us") == self.time_us)
        for name in ("source", "scan"):
            value = getattr(self, name)
            mine = mine.filter(nw.col(name).is_null() if value is None else nw.col(name) == value)
        return mine


class InodeSum(NamedTuple):
    """Inodes and their bytes; None where some of them are not reported."""

    inodes: int | None
    bytes: int | None
    allocated_bytes: int | None


def scan_rows(selection: Selection) -> nw.LazyFrame[Any] | None:
    """The rows of all scans of the window, with every column; None where the frame is no table of scans."""
    frame = selection.frame(TABLE)
    known = set(frame.collect_schema().names())
    if not known >= NEEDED:
        return None
    lacking = [nw.lit(None, nw.String).alias(name) for name in _TEXTS if name not in known]
    lacking += [nw.lit(None, nw.Int64).alias(name) for name in _WHOLE if name not in known]
    return frame.with_columns(*lacking) if lacking else frame


def scans(selection: Selection, rows: nw.LazyFrame[Any]) -> list[Scan]:
    """The scans that those rows belong to, in time order.

    Of several at one time the last counts: the one whose source the configuration names first, else the one that
    tells most, else by name.
    """
    numbers: dict[tuple[int, str | None, str | None], dict[str, int]] = {}
    for row in collected(rows.group_by("epoch_us", "source", "scan", "histogram").agg(nw.len().alias("rows"))):
        mine = numbers.setdefault((int(row["epoch_us"]), row["source"], row["scan"]), {})
        mine[str(row["histogram"])] = int(row["rows"])
    ranks = {source: place for place, source in enumerate(selection.source_order)}
    known = sorted(
        (Scan(*key, frozenset(counts), sum(counts.values())) for key, counts in numbers.items()),
        key=lambda scan: (
            ranks.get(str(scan.source), len(ranks)),
            -len(scan.histograms),
            str(scan.source),
            str(scan.scan),
        ),
        reverse=True,
    )
    return sorted(known, key=lambda item: item.time_us)


def newest(selection: Selection, rows: nw.LazyFrame[Any]) -> Scan | None:
    """The scan that counts when one is asked for."""
    results = scans(selection, rows)
    return results[-1] if results else None


def one_per_time(known: Iterable[Scan]) -> list[Scan]:
    """Of several scans at one time the one that counts."""
    return list({scan.time_us: scan for scan in known}.values())


def sums(rows: nw.LazyFrame[Any], *keys: str) -> list[tuple[tuple[Any, ...], InodeSum]]:
    """Sums by those columns, exact however large."""
    halves = [half for name in _SIZES for half in (f"{name}_low", f"{name}_high")]
    known = (nw.col(name).count().alias(f"{name}_known") for name in ("count", *_SIZES))
    whole = (nw.col(name).sum().alias(f"{name}_sum") for name in ("count", *halves))
    parts = rows.with_columns(*(half for name in _SIZES for half in _halves(name)))
    grouped = parts.group_by(*keys).agg(nw.len().alias("rows"), *known, *whole)
    return [(tuple(row[key] for key in keys), _sum(row)) for row in collected(grouped)]


def _halves(name: str) -> tuple[nw.Expr, nw.Expr]:
    """Two parts to add up apart, because all bytes of a file system may be more than an integer column can hold.

    What is divided is a multiple of 2³², so that the engines that divide as doubles are exact too.
    """
    low = nw.col(name) % _HALF
    high = (nw.col(name) - low) // _HALF
    return low.alias(f"{name}_low"), high.alias(f"{name}_high")


def _sum(row: dict[str, Any]) -> InodeSum:
    sizes = (
        int(row[f"{name}_high_sum"]) * _HALF + int(row[f"{name}_low_sum"])
        if row[f"{name}_known"] == row["rows"]
        else None
        for name in _SIZES
    )
    return InodeSum(int(row["count_sum"]) if row["count_known"] == row["rows"] else None, *sizes)


def plus(value: int | None, other: int | None) -> int | None:
    """A sum is known where all of it is."""
    return None if value is None or other is None else value + other


def added(parts: Sequence[InodeSum]) -> InodeSum:
    """All together; zero where there is nothing."""
    whole = InodeSum(0, 0, 0)
    for part in parts:
        whole = InodeSum(*(plus(value, other) for value, other in zip(whole, part, strict=True)))
    return whole


def collected(frame: nw.LazyFrame[Any]) -> list[dict[str, Any]]:
    """A small answer of the engine, row by row."""
    rows: list[dict[str, Any]] = frame.collect(backend="pyarrow").to_native().to_pylist()
    return rows


# How old the bytes of a file system's files are, by the age histograms of its newest scan -----------------------------
# Table `contents`.

DAY_S: Final = 86_400.0

Clock = Literal["atime", "mtime"]
CLOCKS: Final[tuple[Clock, ...]] = ("atime", "mtime")


@dataclass(frozen=True, slots=True)
class Ages:
    """Bytes by age since last access or modification, as one scan found them."""

    clock: Clock
    time: datetime
    scan: str | None
    source: str | None
    distribution: AgeDistribution


def ages(selection: Selection, clock: Clock) -> Ages | None:
    """Ages of files by one clock from the newest scan of the window that has them; None without one."""
    rows = scan_rows(selection)
    if rows is None:
        return None
    rows = rows.filter(nw.col("histogram") == clock, nw.col("inode_type") == FILE, ~nw.col("bytes").is_null())
    scan = newest(selection, rows)
    if scan is None:
        return None
    bins = [
        (above, up_to, float(inode_sum.bytes or 0))
        for (above, up_to), inode_sum in sums(scan.of(rows), "bin_from", "bin")
    ]
    return Ages(clock, scan.time, scan.scan, scan.source, _distribution(bins))


def _distribution(bins: list[tuple[int | None, int | None, float]]) -> AgeDistribution:
    """Bins in order, in days; a bin without a lower bound begins where the one before it ends."""
    days = [(above, np.inf if up_to is None else up_to / DAY_S, size) for above, up_to, size in bins]
    days.sort(key=lambda item: (item[1], -1 if item[0] is None else item[0]))
    ends = np.array([end for _, end, _ in days])
    before = np.concatenate([[0.0], ends[:-1]])
    starts = [low if above is None else above / DAY_S for (above, _, _), low in zip(days, before, strict=True)]
    return AgeDistribution(np.minimum(starts, ends), ends, np.array([size for *_, size in days]))


# Inodes by type and size, as one scan found them ----------------------------------------------------------------------
# The `size` histograms of table `contents`.


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
