"""The number of files, scan by scan, and where it is heading (paper D, section 4.2)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any, Final, Literal

import narwhals as nw
import numpy as np

from iolens.analyses.capacity.outlook import DateInterval, Interval, ProjectedUsage, outlook
from iolens.analyses.capacity.readings import Readings
from iolens.analyses.contents.holdings import completed
from iolens.analyses.contents.scans import DIRECTORY, FILE, SIZE, TOTAL, InodeSum, Scan, added, collected, sums
from iolens.models.trend import Method
from iolens.store.selection import Selection
from iolens.units import DAY_US, epoch_us

YEAR_DAYS: Final = 365.25
CAPACITY: Final = "target_capacity"
INODE_KINDS: Final = ("mdt", "filesystem", "ost", "lun", "controller", "device")  # the first that tells inodes counts

Unit = Literal["files", "inodes"]


@dataclass(frozen=True, slots=True)
class ScanTotals:
    """One scan in a few numbers; None: not reported."""

    time: datetime
    scan: str | None
    files: int | None
    bytes: int | None
    directories: int | None
    inodes: int | None


@dataclass(frozen=True, slots=True)
class ExpectedCount:
    """How many to expect on a day; the ends hold 95 % of the resampled lines."""

    date: date
    count: float
    low: float | None
    high: float | None


@dataclass(frozen=True, slots=True)
class CountLine:
    """One line through the scans; `level` is where it is at the last of them."""

    method: Method
    level: float
    per_day: float
    per_day_ci95: Interval | None
    per_year: float
    per_year_pct: float | None
    limit_state: str
    limit_date: date | None
    limit_ci95: DateInterval | None
    expected: list[ExpectedCount]


@dataclass(frozen=True, slots=True)
class Projection:
    """Where the number of files, or of all inodes, is heading; `limit` is the number to look out for."""

    unit: Unit
    scans: int
    days: float
    limit: int | None
    limit_origin: str | None
    lines: list[CountLine]


def history_of(rows: nw.LazyFrame[Any], known: Sequence[Scan]) -> list[ScanTotals]:
    """Totals of those scans, in time order."""
    mine = rows.filter(nw.col("histogram").is_in([SIZE, TOTAL]))
    inode_sums: dict[tuple[Any, ...], dict[str | None, dict[str, InodeSum]]] = {}
    for (*scan, inode_type, histogram), inode_sum in sums(
        mine, "epoch_us", "source", "scan", "inode_type", "histogram"
    ):
        inode_sums.setdefault(tuple(scan), {}).setdefault(inode_type, {})[str(histogram)] = inode_sum
    return [_totals(scan, inode_sums.get((scan.time_us, scan.source, scan.scan), {})) for scan in known]


def _totals(scan: Scan, by_type: dict[str | None, dict[str, InodeSum]]) -> ScanTotals:
    types = {name: _preferred(inode_sums) for name, inode_sums in by_type.items()}
    files, everything = types.get(FILE, InodeSum(0, 0, 0)), added(list(types.values()))
    directories = types[DIRECTORY].inodes if DIRECTORY in types else None
    return ScanTotals(scan.time, scan.scan, files.inodes, files.bytes, directories, everything.inodes)


def _preferred(histograms: dict[str, InodeSum]) -> InodeSum:
    """Totals where a source has them; what they leave open the sizes may tell."""
    total, sizes = histograms.get(TOTAL), histograms.get(SIZE)
    return completed(total, sizes) if total is not None else sizes or InodeSum(0, 0, 0)


def projections_of(
    selection: Selection, history: Sequence[ScanTotals], threshold_files: float | None, whole: bool
) -> list[Projection]:
    """Lines through the numbers of files and of inodes; none unless two scans tell them.

    Inodes are held against the limit of the file system, unless only a part of it is looked at.
    """
    if len(history) < 2:
        return []
    limit = inode_limit(selection) if whole else None
    files = _projection("files", history, None if threshold_files is None else round(threshold_files), "given")
    inodes = _projection("inodes", history, limit, "target_capacity")
    return [file for file in (files, inodes) if file is not None]


def _projection(unit: Unit, history: Sequence[ScanTotals], limit: int | None, origin: str) -> Projection | None:
    reported = [scan_totals for scan_totals in history if getattr(scan_totals, unit) is not None]
    if len(reported) < 2:
        return None
    readings = _readings(
        [epoch_us(scan_totals.time) for scan_totals in reported],
        [getattr(scan_totals, unit) for scan_totals in reported],
    )
    result = outlook(readings, None if limit is None else float(limit))
    return Projection(
        unit=unit,
        scans=len(reported),
        days=float(readings.time_us[-1] - readings.time_us[0]) / DAY_US,
        limit=limit,
        limit_origin=None if limit is None else origin,
        lines=[_line(course, int(readings.used[-1])) for course in result.courses],
    )


def _readings(time_us: list[int], counts: list[int]) -> Readings:
    """Numbers over time as readings of a capacity that is not known."""
    size = len(time_us)
    unknown, zeros = np.full(size, np.nan), np.zeros(size, np.int64)
    return Readings(
        np.array(time_us, np.int64), np.array(counts, np.int64), zeros, np.zeros(size, np.bool_), unknown, unknown,
        unknown, zeros, np.ones(size, np.bool_), zeros,
    )  # fmt: skip


def _line(course: ProjectedUsage, last: int) -> CountLine:
    a_year = course.line.slope * YEAR_DAYS
    return CountLine(
        method=course.method,
        level=course.line.level,
        per_day=course.line.slope,
        per_day_ci95=course.slope_interval,
        per_year=a_year,
        per_year_pct=100.0 * a_year / last if last else None,
        limit_state=course.threshold_state,
        limit_date=course.threshold_date,
        limit_ci95=course.threshold_interval,
        expected=[
            ExpectedCount(expected.day, expected.value, *(expected.interval or (None, None)))
            for expected in course.expected
        ],
    )


def inode_limit(selection: Selection) -> int | None:
    """How many inodes the file system can hold, by the last day of readings of its targets."""
    frame = selection.frame(CAPACITY)
    if not {"total_inodes", "target", "target_kind"} <= set(frame.collect_schema().names()):
        return None
    reported = frame.filter(~nw.col("total_inodes").is_null())
    newest = {
        str(row["target_kind"]): int(row["newest"])
        for row in collected(reported.group_by("target_kind").agg(nw.col("epoch_us").max().alias("newest")))
    }
    kind = next((name for name in INODE_KINDS if name in newest), None)
    if kind is None:
        return None
    last_day = reported.filter(nw.col("target_kind") == kind, nw.col("epoch_us") > newest[kind] - DAY_US)
    last: dict[str, tuple[int, int]] = {}
    for row in collected(last_day.select("target", "epoch_us", "total_inodes")):
        reading = int(row["epoch_us"]), int(row["total_inodes"])
        last[row["target"]] = max(reading, last.get(row["target"], reading))
    return sum(total for _, total in last.values())
