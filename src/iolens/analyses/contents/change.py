"""Two scans side by side, and the number of files scan by scan: where it is heading."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import Any, Final, Literal

import narwhals as nw
import numpy as np

from iolens.analyses.capacity.readings import DateInterval, Interval, ProjectedUsage, Readings, outlook
from iolens.analyses.contents.distribution import Holdings, Name, completed
from iolens.analyses.contents.scans import DIRECTORY, FILE, SIZE, TOTAL, InodeSum, Scan, added, collected, sums
from iolens.errors import UsageError
from iolens.models.trend import Method
from iolens.store.selection import Selection
from iolens.times import last_utc_time
from iolens.units import DAY_US, epoch_us, iso

# Two scans side by side -----------------------------------------------------------------------------------------------
# The whole, every project and every owner, with the change (Table V of paper D).

FIRST: Final = "first"
PREVIOUS: Final = "previous"
LISTED: Final = 8


@dataclass(frozen=True, slots=True)
class AmountChange:
    """An amount in both scans. `share_pct` is the part of the whole's growth; None where the whole did not grow."""

    before: int | None
    after: int | None
    change: int | None
    change_pct: float | None
    share_pct: float | None


@dataclass(frozen=True, slots=True)
class TotalChange:
    """The whole, or what is left of it."""

    files: AmountChange
    bytes: AmountChange
    allocated_bytes: AmountChange
    directories: AmountChange
    inodes: AmountChange


@dataclass(frozen=True, slots=True)
class ProjectChange:
    """A project; what a scan does not have of it is zero there."""

    project: str | None
    files: AmountChange
    bytes: AmountChange


@dataclass(frozen=True, slots=True)
class OwnerChange:
    """An owner, in the same way."""

    owner: str | None
    files: AmountChange
    bytes: AmountChange


@dataclass(frozen=True, slots=True)
class EarlierScan:
    """The scan that the newest one is compared with."""

    time: datetime
    source: str | None
    scan: str | None


@dataclass(frozen=True, slots=True)
class ScanComparison:
    """Changes since an earlier scan, most files gained first. Empty lists: not reported by both scans."""

    earlier: EarlierScan
    days: float
    total: TotalChange
    without: TotalChange | None
    by_project: list[ProjectChange]
    by_owner: list[OwnerChange]


def earlier_scan(known: Sequence[Scan], scan: Scan, compare: str | datetime | None) -> Scan | None:
    """The scan to compare with: of the same source where there is one.

    Neither `first` nor `previous` may exist; a time before all scans is an error.
    """
    before = [item for item in known if item.time_us < scan.time_us]
    same = [item for item in before if item.source == scan.source]
    if compare is None:
        return None
    if compare == FIRST:
        return _of_time(same, same[0].time_us) if same else None
    if compare == PREVIOUS:
        return same[-1] if same else None
    latest = epoch_us(_time(compare))
    for candidates in (same, before):
        if scans := [candidate for candidate in candidates if candidate.time_us <= latest]:
            return scans[-1]
    there = ", ".join(iso(scan.time) for scan in before[:LISTED]) or "none"
    raise UsageError(f"there is no scan up to {iso(_time(compare))} to compare with; before the newest: {there}")


def _of_time(known: Sequence[Scan], time_us: int) -> Scan:
    return [scan for scan in known if scan.time_us == time_us][-1]


def _time(compare: str | datetime) -> datetime:
    if isinstance(compare, str):
        try:
            compare = last_utc_time(compare)
        except ValueError as error:
            raise UsageError(f"compare with {FIRST}, {PREVIOUS} or a time: {error}") from None
    return compare.replace(tzinfo=UTC) if compare.tzinfo is None else compare


def compared(earlier: Scan, before: Holdings, scan: Scan, after: Holdings, without: Sequence[str]) -> ScanComparison:
    """The change from one scan to the other."""
    whole = _total(before, after, None)
    rest = _total(before.without(without), after.without(without), whole) if without else None
    return ScanComparison(
        earlier=EarlierScan(earlier.time, earlier.source, earlier.scan),
        days=(scan.time_us - earlier.time_us) / DAY_US,
        total=whole,
        without=rest,
        by_project=[ProjectChange(name, *changes) for name, *changes in _parts("project", before, after, whole)],
        by_owner=[OwnerChange(name, *changes) for name, *changes in _parts("owner", before, after, whole)],
    )


def _total(before: Holdings, after: Holdings, whole: TotalChange | None) -> TotalChange:
    pairs = {
        "files": (before.of_type(FILE).inodes, after.of_type(FILE).inodes),
        "bytes": (before.of_type(FILE).bytes, after.of_type(FILE).bytes),
        "allocated_bytes": (before.of_type(FILE).allocated_bytes, after.of_type(FILE).allocated_bytes),
        "directories": (before.directories, after.directories),
        "inodes": (before.everything.inodes, after.everything.inodes),
    }
    return TotalChange(
        **{name: _change(*pair, getattr(whole, name) if whole is not None else None) for name, pair in pairs.items()}
    )


def _parts(
    name: Name, before: Holdings, after: Holdings, whole: TotalChange
) -> list[tuple[str | None, AmountChange, AmountChange]]:
    """By project or owner, where both scans name some."""
    if not before.names(name) or not after.names(name):
        return []
    nothing = Holdings({})
    old, new = dict(before.by(name)), dict(after.by(name))
    results: list[tuple[str | None, AmountChange, AmountChange]] = []
    for text in dict.fromkeys([*new, *old]):
        was, is_ = (side.get(text, nothing).of_type(FILE) for side in (old, new))
        results.append((text, _change(was.inodes, is_.inodes, whole.files), _change(was.bytes, is_.bytes, whole.bytes)))
    return sorted(results, key=lambda part: (-(part[1].change or 0), -(part[2].change or 0), str(part[0])))


def _change(before: int | None, after: int | None, whole: AmountChange | None) -> AmountChange:
    change = None if before is None or after is None else after - before
    of_whole = whole.change if whole is not None else change
    return AmountChange(
        before,
        after,
        change,
        100.0 * change / before if change is not None and before else None,
        100.0 * change / of_whole if change is not None and of_whole is not None and of_whole > 0 else None,
    )


# The number of files, scan by scan, and where it is heading (paper D, section 4.2) ------------------------------------

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
