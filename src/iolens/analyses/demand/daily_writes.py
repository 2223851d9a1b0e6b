"""Bytes written to a file system day by day (SPEC P3, Fig. 3 of paper P), and how much of each day was observed.

A row belongs to the UTC day in which its interval starts. Data targets count (OSTs; else LUNs, controllers, devices);
rows that already are a sum over the file system serve on days without them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, datetime
from typing import Final

import narwhals as nw
import numpy as np

from iolens.analyses.capacity.readings import gather
from iolens.analyses.intervals.bucket_sums import BucketSums
from iolens.analyses.intervals.days import covered_pct, day_of, is_complete
from iolens.analyses.intervals.fsu_sums import collect
from iolens.arrays import Columns
from iolens.part_form import PartForm
from iolens.schema import DATA_KINDS, SIZE_BINS, SUM_KINDS, size_column
from iolens.store.frames import FrameSelection
from iolens.store.parts import Days, EngineParts
from iolens.store.selection import Selection
from iolens.units import DAY_S, DAY_US, from_epoch_us

TABLE: Final = "target_io"
UNKNOWN: Final = "unknown"
KEYS: Final = ("target", "kind", "length_us", "bucket")
RANKED: Final = (*DATA_KINDS, UNKNOWN, *SUM_KINDS)  # the first there is that day


@dataclass(frozen=True, slots=True)
class DayWrites:
    """Bytes written on one UTC day; `covered_pct` is the share of its samples that its targets took."""

    date: date
    write_bytes: float
    covered_pct: float

    @property
    def complete(self) -> bool:
        """Whether it counts in means and medians."""
        return is_complete(self.covered_pct)


@dataclass(frozen=True, slots=True)
class DailyWrites:
    """Days with any report, in order. A day without one is not among them: it is unknown, not zero."""

    filesystem: str
    days: list[DayWrites]
    kinds: list[str]
    sources: list[str]

    @property
    def origin(self) -> str:
        """In words."""
        if not self.days:
            return f"{self.filesystem}: no bytes written are known"
        ends = f"{self.days[0].date} to {self.days[-1].date}"
        return f"{self.filesystem}: {len(self.days)} days with reports, {ends} ({', '.join(self.sources)})"


@dataclass(frozen=True, slots=True)
class SystemCapacity:
    """Capacity of a file system, and where that is known from."""

    bytes: int
    origin: str


@dataclass(frozen=True, slots=True)
class SystemUsage:
    """Bytes used and in all at the last complete reading of a file system."""

    filesystem: str
    time: datetime
    used_bytes: int
    total_bytes: int | None


def daily_writes(selection: Selection) -> DailyWrites:
    """Bytes written by day."""
    columns = _whole(selection, writes_part, WRITES_FORM, TABLE)
    columns["tick_s"] = columns["length_us"] / 1e6
    days: dict[int, DayWrites] = {}
    used = []
    for name in RANKED:
        mine = columns["kind"] == name
        writes = _days({column: values[mine] for column, values in columns.items()})
        if writes.keys() - days.keys():
            used.append(name)
        days = writes | days
    return DailyWrites(selection.filesystem, [days[day] for day in sorted(days)], used, selection.sources(TABLE))


def system_capacity(selection: Selection) -> SystemCapacity | None:
    """The sum over all data targets at the last complete reading of the window."""
    readings = gather(selection, "bytes").usage("bytes").readings
    known = np.flatnonzero(readings.complete & readings.has_total & (readings.total > 0))
    if not len(known):
        return None
    last = int(known[-1])
    when = from_epoch_us(int(readings.time_us[last]))
    return SystemCapacity(
        int(readings.total[last]),
        f"{selection.filesystem}: reading of {when:%Y-%m-%d} ({', '.join(selection.sources('target_capacity'))})",
    )


def system_usage(selection: Selection) -> SystemUsage | None:
    """What its data targets held at the last complete reading of the window."""
    readings = gather(selection, "bytes").usage("bytes").readings
    known = np.flatnonzero(readings.complete)
    if not len(known):
        return None
    last = int(known[-1])
    total = int(readings.total[last]) if readings.has_total[last] else None
    return SystemUsage(
        selection.filesystem, from_epoch_us(int(readings.time_us[last])), int(readings.used[last]), total
    )


def write_sizes(selection: Selection) -> dict[int, float]:
    """Disk writes by size (upper end of the bin, bytes), where servers keep a histogram."""
    columns = {size_column("write", size): size for size in SIZE_BINS}
    if not selection.live_columns("target_sizes", list(columns)):
        return {}
    sums = _whole(selection, write_sizes_part, SIZES_FORM, "target_sizes")
    counts = {size: float(sums[name].sum()) for name, size in columns.items() if name in sums}
    return {size: count for size, count in sorted(counts.items()) if count}


def _whole(selection: Selection, make: Callable[[Days], BucketSums], form: PartForm, table: str) -> Columns:
    """Sums by day of the whole window."""
    parts = list(selection.parts(EngineParts(make, form, (table,))))
    whole = parts[0] if parts else make(FrameSelection({}))
    for part in parts[1:]:
        whole.take(part)
    return whole.rows()


def write_sizes_part(days: Days) -> BucketSums:
    """Disk writes of some days by size and UTC day."""
    frame = days.frame("target_sizes")
    known = frame.collect_schema().names()
    names = [name for name in (size_column("write", size) for size in SIZE_BINS) if name in known]
    rows = frame.select(_day(), *(nw.col(name).cast(nw.Float64) for name in names))
    return BucketSums.of(
        collect(rows.group_by("bucket").agg(*(nw.col(name).sum() for name in names))), DAY_S, ("bucket",), names
    )


def writes_part(days: Days) -> BucketSums:
    """Bytes written on some days, by target, its kind, length of its rows and UTC day."""
    frame = days.frame(TABLE)
    has_kind = "target_kind" in frame.collect_schema().names()
    kind = nw.col("target_kind") if has_kind else nw.lit(None, nw.String)
    rows = frame.filter(nw.col("duration_s") > 0, ~nw.col("write_bytes").is_null()).select(
        _day(),
        "target",
        kind.fill_null(UNKNOWN).alias("kind"),
        nw.col("write_bytes").cast(nw.Float64),
        "duration_s",
        (nw.col("epoch_us") - nw.col("start_us")).alias("length_us"),
    )
    sums = rows.group_by(*KEYS).agg(
        *(nw.col(name).sum() for name in ("write_bytes", "duration_s")), nw.len().alias("rows")
    )
    return BucketSums.of(collect(sums), DAY_S, KEYS, ("write_bytes", "duration_s", "rows"))


def _day() -> nw.Expr:
    return (nw.col("start_us") // DAY_US).alias("bucket")


WRITES_FORM: Final = PartForm("daily-writes", 1, (BucketSums,))
SIZES_FORM: Final = PartForm("write-sizes", 1, (BucketSums,))


def _days(columns: Columns) -> dict[int, DayWrites]:
    """Sums over targets."""
    if not len(columns["bucket"]):
        return {}
    days, where = np.unique(columns["bucket"], return_inverse=True)
    written = np.bincount(where, weights=columns["write_bytes"])
    covered = covered_pct([columns])
    return {
        day: DayWrites(day_of(day), float(amount), covered[day])
        for day, amount in zip(days.tolist(), written, strict=True)
    }
