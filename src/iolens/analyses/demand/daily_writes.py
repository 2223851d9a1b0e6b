"""Bytes written to a file system day by day (SPEC P3, Fig. 3 of paper P), and how much of each day was observed.

A row belongs to the UTC day in which its interval starts. Data targets count (OSTs; else LUNs, controllers, devices);
rows that already are a sum over the file system serve on days without them.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime
from typing import Any, Final

import narwhals as nw
import numpy as np

from iolens.analyses.capacity.readings import gather
from iolens.analyses.intervals.days import covered_pct, day_of, is_complete, tick_length
from iolens.analyses.intervals.fsu_sums import collect
from iolens.arrays import Columns
from iolens.schema import DATA_KINDS, SIZE_BINS, SUM_KINDS, size_column
from iolens.store.selection import Selection
from iolens.units import DAY_US, from_epoch_us

TABLE: Final = "target_io"
UNKNOWN: Final = "unknown"
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
    parts = [collect(_by_day_and_target(chunk.frame(TABLE))) for chunk in selection.chunks(TABLE)]
    if not parts or not sum(len(part["bucket"]) for part in parts):
        return DailyWrites(selection.filesystem, [], [], selection.sources(TABLE))
    columns = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    kind = np.array([UNKNOWN if column is None else str(column) for column in columns["kind"]], dtype=object)
    days: dict[int, DayWrites] = {}
    used = []
    for name in RANKED:
        mine = kind == name
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
    live = selection.live_columns("target_sizes", list(columns))
    sums: dict[int, float] = {}
    for chunk in selection.chunks("target_sizes") if live else ():
        counts = [nw.col(name).cast(nw.Float64).sum() for name in live]
        for name, values in collect(chunk.frame("target_sizes").select(*counts)).items():
            sums[columns[name]] = sums.get(columns[name], 0.0) + float(np.nansum(values))
    return {size: count for size, count in sorted(sums.items()) if count}


def _by_day_and_target(frame: nw.LazyFrame[Any]) -> nw.LazyFrame[Any]:
    has_kind = "target_kind" in frame.collect_schema().names()
    kind = nw.col("target_kind") if has_kind else nw.lit(None, nw.String)
    rows = frame.filter(nw.col("duration_s") > 0, ~nw.col("write_bytes").is_null()).select(
        (nw.col("start_us") // DAY_US).alias("bucket"),
        "target",
        kind.alias("kind"),
        nw.col("write_bytes").cast(nw.Float64),
        "duration_s",
        tick_length(),
    )
    return rows.group_by("bucket", "target", "kind", "tick_s").agg(
        nw.len().alias("rows"), nw.col("write_bytes").sum(), nw.col("duration_s").sum()
    )


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
