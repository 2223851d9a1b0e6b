"""How much a file system gains on a day on which it gains anything (SPEC P2, Fig. 1 of paper P)."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Final

import numpy as np

from iolens.analyses import Analysis
from iolens.analyses.capacity.readings import Readings, Usage, gather, too_little
from iolens.analyses.intervals.buckets import local_days
from iolens.arrays import Integers
from iolens.errors import NotKnownError, UsageError
from iolens.models.growth import CHANGED, GAP, KEPT, METHODS, SHRANK, Changes, Method, paper_changes, strict_changes
from iolens.models.resampling import mean_interval, median_interval
from iolens.store.selection import Selection
from iolens.units import from_epoch_us

FIRST_DAY: Final = date(1970, 1, 1)


@dataclass(frozen=True, slots=True)
class DayGrowth:
    """One change; `date` is the calendar day of the later reading, `bytes_per_day` null where it is undefined."""

    date: date
    bytes_per_day: float | None
    fate: str


@dataclass(frozen=True, slots=True)
class Growth:
    """Daily growth by one method; days are counted by the later of the two readings they lie between.

    `too_little_data` says why nothing is said of a usual day: all means, percentiles and intervals are null then.
    """

    method: Method
    mean_bytes_per_day: float | None
    median_bytes_per_day: float | None
    days_with_growth: int
    days_excluded: int
    incomplete_days: int
    filesystem: str
    window_start: datetime | None
    window_end: datetime | None
    samples: int
    cutoff: date | None
    days_before_cutoff: int
    days_shrinking: int
    days_after_gap: int
    days_targets_changed: int
    mean_ci95: tuple[float, float] | None
    median_ci95: tuple[float, float] | None
    p95_bytes_per_day: float | None
    max_bytes_per_day: float | None
    capacity_bytes: int | None
    capacity_origin: str | None
    readings: str
    timezone: str
    daily: list[DayGrowth]
    sources: list[str]
    too_little_data: str | None
    warnings: list[str]
    notes: list[str]

    @property
    def kept(self) -> list[float]:
        """Growth of the days that count."""
        return [day.bytes_per_day for day in self.daily if day.fate == KEPT and day.bytes_per_day is not None]


def growth(
    selection: Selection,
    *,
    method: Method = "strict",
    capacity_bytes: int | None = None,
    cutoff: date | None = None,
    timezone: str | None = None,
) -> Growth:
    """Daily growth of one file system over a window.

    `strict` takes the last complete reading of each calendar day; `paper` every reading where they come about daily,
    complete or not, else the same. Days before `cutoff` are discarded; `timezone` says where days begin.
    """
    if method not in METHODS:
        raise UsageError(f"no growth method is called {method!r}; there are: {', '.join(METHODS)}")
    usage = gather(selection, "bytes").usage("bytes")
    numbers = local_days(usage.readings.time_us, timezone)
    incomplete = _incomplete_days(usage.readings, numbers)
    capacity, origin = _capacity(usage.readings, capacity_bytes)
    if method == "paper":
        used, changes = _by_paper(usage.readings, numbers, capacity)
    else:
        used, changes = _strictly(usage.readings, numbers)
    lacking = too_little(usage.readings if method == "paper" else usage.readings.at(usage.readings.complete))
    days = local_days(used.time_us, timezone)
    daily = [
        DayGrowth(FIRST_DAY + timedelta(days=int(days[place])), float(gain) if np.isfinite(gain) else None, fate)
        for place, gain, fate in zip(changes.places, changes.bytes_per_day, changes.fates, strict=True)
    ]
    counted = [day for day in daily if cutoff is None or day.date >= cutoff]
    said = _words(usage, used, method)
    return _result(
        selection, method, usage, counted, incomplete, (capacity, origin), cutoff, len(daily), timezone, said, lacking
    )


def _by_paper(readings: Readings, numbers: Integers, capacity: int | None) -> tuple[Readings, Changes]:
    used = readings if readings.come_daily else readings.last_of_each(numbers)
    used = used.at(np.isfinite(used.mean_pct))
    if capacity is None:
        if len(used) > 1:
            raise NotKnownError("the capacity of the reference system is not known from the store: give it")
        capacity = 0
    return used, paper_changes(used.mean_pct, float(capacity))


def _strictly(readings: Readings, numbers: Integers) -> tuple[Readings, Changes]:
    whole, days = readings.at(readings.complete), numbers[readings.complete]
    used = whole.last_of_each(days)
    return used, strict_changes(used.time_us, used.used, np.unique(days), used.target_set)


def _incomplete_days(readings: Readings, numbers: Integers) -> list[date]:
    """Days that have readings, but not one that is complete."""
    only = np.setdiff1d(numbers, numbers[readings.complete])
    return [FIRST_DAY + timedelta(days=int(item)) for item in only]


def _capacity(readings: Readings, given: int | None) -> tuple[int | None, str | None]:
    if given is not None:
        return given, "given"
    known = np.flatnonzero(readings.complete & readings.has_total)
    if not len(known):
        return None, None
    last = int(known[-1])
    return int(readings.total[last]), f"sum over targets on {from_epoch_us(int(readings.time_us[last])):%Y-%m-%d}"


def _words(usage: Usage, used: Readings, method: Method) -> str:
    daily = usage.readings.come_daily and method == "paper"
    kind = "every reading" if daily else "the last of each day"
    return f"{kind}, {len(used)} of {len(usage.readings)}"


def _result(
    selection: Selection,
    method: Method,
    usage: Usage,
    counted: list[DayGrowth],
    incomplete: list[date],
    capacity: tuple[int | None, str | None],
    cutoff: date | None,
    all_days: int,
    timezone: str | None,
    said: str,
    lacking: str | None,
) -> Growth:
    gains = np.array([day.bytes_per_day for day in counted if day.fate == KEPT], dtype=np.float64)
    kept = gains if lacking is None else gains[:0]
    warnings = [lacking] if lacking is not None and len(usage.readings) else []
    fates = [day.fate for day in counted]
    start, end = selection.window
    time_us = usage.readings.time_us
    return Growth(
        method=method,
        mean_bytes_per_day=float(kept.mean()) if kept.size else None,
        median_bytes_per_day=float(np.median(kept)) if kept.size else None,
        days_with_growth=int(gains.size),
        days_excluded=len(counted) - int(gains.size),
        incomplete_days=len([day for day in incomplete if cutoff is None or day >= cutoff]),
        filesystem=selection.filesystem,
        window_start=start or (from_epoch_us(int(time_us[0])) if len(time_us) else None),
        window_end=end or (from_epoch_us(int(time_us[-1])) if len(time_us) else None),
        samples=len(usage.readings),
        cutoff=cutoff,
        days_before_cutoff=all_days - len(counted),
        days_shrinking=fates.count(SHRANK),
        days_after_gap=fates.count(GAP),
        days_targets_changed=fates.count(CHANGED),
        mean_ci95=mean_interval(kept),
        median_ci95=median_interval(kept),
        p95_bytes_per_day=float(np.percentile(kept, 95)) if kept.size else None,
        max_bytes_per_day=float(kept.max()) if kept.size else None,
        capacity_bytes=capacity[0],
        capacity_origin=capacity[1],
        readings=said,
        timezone=timezone or "UTC",
        daily=counted,
        sources=selection.sources("target_capacity"),
        too_little_data=warnings[0] if warnings else None,
        warnings=warnings,
        notes=[*usage.notes, *_notes(usage, incomplete, method)],
    )


def _notes(usage: Usage, incomplete: list[date], method: Method) -> list[str]:
    if not incomplete:
        return []
    most = int(usage.readings.targets.max())
    rest = usage.readings.targets[~usage.readings.complete]
    what = "their mean fullness is taken for the whole, as the study did" if method == "paper" else "they are left out"
    shown = ", ".join(map(str, incomplete[:5])) + (", …" if len(incomplete) > 5 else "")
    return [f"days without a complete reading: {shown} (as few as {int(rest.min())} of {most} targets); {what}"]


ANALYSIS = Analysis("growth", "Daily growth of a file system: distribution, mean, median", growth)
