"""Wear of flash drives (SPEC P3, Fig. 2 of paper P): each over its life and in the window, and all together."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final, Literal, get_args

import numpy as np

from iolens.analyses import Analysis, Options, StoreKnowledge
from iolens.analyses.drives.readings import (
    Drive,
    DriveReadings,
    FleetReading,
    drive_readings,
    fleet_dwpd,
    fleet_over_time,
    fleet_waf,
    fleet_window_dwpd,
    fleet_window_waf,
)
from iolens.errors import UsageError
from iolens.store.selection import Selection
from iolens.units import from_epoch_us
from iolens.visible_text import counted

# One drive over its life and in the window, and which drives stand out by their write amplification -------------------
# (SPEC P3).
#
# DWPD = host bytes ÷ capacity ÷ (power-on hours ÷ 24). A high WAF of a drive that is hardly used is explained by that.

DAYS_PER_YEAR: Final = 365.0  # as drives are rated
FEWEST_JUDGED: Final = 8  # drives: fewer have no usual WAF to be far from
FAR_OUT: Final = 3.0  # inter-quartile ranges above the third quartile (Tukey's outer fence)
MATTERS: Final = 1.5  # times the median: less is far only in theory
LOW_USE: Final = 0.5  # of the median lifetime writes
Reason = Literal["low use", "not explained by low use", "use not known"]


@dataclass(frozen=True, slots=True)
class DriveSpread:
    """Over the drives of which a number is known; percentiles by linear interpolation."""

    min: float | None
    median: float | None
    p95: float | None
    max: float | None
    mean: float | None
    drives: int


@dataclass(frozen=True, slots=True)
class DriveWindow:
    """What one drive did between its readings; `days` are those between readings that can be compared."""

    days: float
    host_write_bytes: int
    host_read_bytes: int | None
    nand_write_bytes: int | None
    waf: float | None
    dwpd: float | None
    wear_pct: float | None


@dataclass(frozen=True, slots=True)
class DriveLife:
    """One drive at its last reading. `years_left_…` at the pace of its life, `window_years_left_…` of the window."""

    serial: str
    model: str | None
    firmware: str | None
    host: str | None
    device: str | None
    source: str
    time: datetime
    readings: int
    capacity_bytes: int | None
    host_write_bytes: int | None
    nand_write_bytes: int | None
    host_read_bytes: int | None
    power_on_hours: float | None
    drive_writes: float | None
    waf: float | None
    dwpd: float | None
    wear_pct: float | None
    spare_pct: float | None
    media_errors: int | None
    outlier: bool
    outlier_reason: Reason | None
    counters_fell: int
    window: DriveWindow | None
    rated_used_pct: float | None
    years_left_by_wear: float | None
    years_left_by_rating: float | None
    window_years_left_by_wear: float | None
    window_years_left_by_rating: float | None


@dataclass(frozen=True, slots=True)
class WafOutliers:
    """Drives with a WAF above `waf_above` (null: too few drives to say what is usual), and whether they are idle.

    Low use is less than `drive_writes_below`, half the median; medians are of lifetime writes ÷ capacity.
    """

    waf_above: float | None
    limit_origin: str
    drive_writes_below: float | None
    drives: int
    low_use: int
    not_explained: int
    use_not_known: int
    median_drive_writes: float | None
    others_median_drive_writes: float | None


def spread(values: Iterable[float | None]) -> DriveSpread:
    """Over those values that are known."""
    known = np.array([value for value in values if value is not None], dtype=float)
    if not known.size:
        return DriveSpread(None, None, None, None, None, 0)
    middle, high = (float(value) for value in np.percentile(known, [50.0, 95.0]))
    return DriveSpread(float(known.min()), middle, high, float(known.max()), float(known.mean()), int(known.size))


@dataclass(frozen=True, slots=True)
class WafJudge:
    """A WAF above `limit` stands out; less than `low_use` lifetime writes explain it."""

    limit: float | None
    origin: str
    low_use: float | None

    @classmethod
    def of(cls, readings: DriveReadings, given: float | None) -> WafJudge:
        """By the limit given, else by the fleet's own WAFs."""
        written = [drive.drive_writes for drive in readings.amplified if drive.drive_writes is not None]
        low_use = LOW_USE * float(np.median(written)) if written else None
        if given is not None:
            return cls(given, "given", low_use)
        if len(readings.wafs) < FEWEST_JUDGED:
            return cls(None, f"fewer than {FEWEST_JUDGED} drives", low_use)
        low, middle, high = np.percentile(readings.wafs, [25.0, 50.0, 75.0])
        fence = high + FAR_OUT * (high - low)
        if fence >= MATTERS * middle:
            return cls(float(fence), f"third quartile + {FAR_OUT:g} inter-quartile ranges", low_use)
        return cls(float(MATTERS * middle), f"{MATTERS:g} times the median", low_use)

    def reason(self, drive: Drive) -> Reason | None:
        """Why the drive's WAF is high; None where it is not."""
        if drive.waf is None or self.limit is None or drive.waf <= self.limit:
            return None
        if drive.drive_writes is None or self.low_use is None:
            return "use not known"
        return "low use" if drive.drive_writes < self.low_use else "not explained by low use"

    def verdict(self, lives: Sequence[DriveLife]) -> WafOutliers:
        """How many stand out, and why."""
        reasons = [life.outlier_reason for life in lives]
        known = [life for life in lives if life.waf is not None]
        return WafOutliers(
            waf_above=self.limit,
            limit_origin=self.origin,
            drive_writes_below=self.low_use,
            drives=sum(reason is not None for reason in reasons),
            low_use=reasons.count("low use"),
            not_explained=reasons.count("not explained by low use"),
            use_not_known=reasons.count("use not known"),
            median_drive_writes=spread(life.drive_writes for life in known if life.outlier).median,
            others_median_drive_writes=spread(life.drive_writes for life in known if not life.outlier).median,
        )


def life_of(drive: Drive, judge: WafJudge, rated_writes: float | None) -> DriveLife:
    """`rated_writes`: how often the drive may be overwritten in its warranted life."""
    reason = judge.reason(drive)
    worn_days, worn = (drive.stretch.wear_days, drive.stretch.wear_pct) if drive.stretch else (0.0, None)
    return DriveLife(
        serial=drive.serial,
        model=drive.model,
        firmware=drive.firmware,
        host=drive.host,
        device=drive.device,
        source=drive.source,
        time=from_epoch_us(drive.last_us),
        readings=drive.readings,
        capacity_bytes=drive.capacity_bytes,
        host_write_bytes=drive.host_write_bytes,
        nand_write_bytes=drive.nand_write_bytes,
        host_read_bytes=drive.host_read_bytes,
        power_on_hours=drive.power_on_hours,
        drive_writes=drive.drive_writes,
        waf=drive.waf,
        dwpd=drive.dwpd,
        wear_pct=drive.wear_pct,
        spare_pct=drive.spare_pct,
        media_errors=drive.media_errors,
        outlier=reason is not None,
        outlier_reason=reason,
        counters_fell=drive.falls,
        window=_drive_window(drive),
        rated_used_pct=_used_pct(drive.drive_writes, rated_writes),
        years_left_by_wear=_years(drive.wear_pct, 100.0, drive.wear_pct, drive.powered_days),
        years_left_by_rating=_years(drive.drive_writes, rated_writes, drive.drive_writes, drive.powered_days),
        window_years_left_by_wear=_years(drive.wear_pct, 100.0, worn, worn_days),
        window_years_left_by_rating=_years(drive.drive_writes, rated_writes, drive.window_dwpd, 1.0),
    )


def _drive_window(drive: Drive) -> DriveWindow | None:
    stretch = drive.stretch
    if stretch is None:
        return None
    return DriveWindow(
        days=stretch.days,
        host_write_bytes=stretch.host_write_bytes,
        host_read_bytes=stretch.host_read_bytes,
        nand_write_bytes=stretch.nand_write_bytes,
        waf=stretch.waf,
        dwpd=drive.window_dwpd,
        wear_pct=stretch.wear_pct,
    )


def _used_pct(drive_writes: float | None, rated_writes: float | None) -> float | None:
    return None if drive_writes is None or rated_writes is None else 100.0 * drive_writes / rated_writes


def _years(used: float | None, whole: float | None, gone: float | None, days: float | None) -> float | None:
    """Until `used` is the `whole`, if `gone` goes in every so many `days`; None where nothing goes or it is unknown."""
    if used is None or whole is None:
        return None
    if used >= whole:
        return 0.0
    if not gone or gone < 0 or not days:
        return None
    return (whole - used) / gone * days / DAYS_PER_YEAR


# Wear of flash drives (SPEC P3, Fig. 2 of paper P) --------------------------------------------------------------------
# Write amplification, drive writes per day and life left.
#
# Lifetime numbers are those of the last reading; DWPD = host bytes ÷ capacity ÷ (power-on hours ÷ 24). Where a drive
# was read more than once, the same numbers of the window stand beside them, by difference and by the calendar.

WARRANTY_YEARS: Final = 5.0
SILENT: Final = timedelta(days=1)

GroupBy = Literal["model", "host"]
GROUPS: Final[tuple[GroupBy, ...]] = get_args(GroupBy)


@dataclass(frozen=True, slots=True)
class FleetWindow:
    """All drives that were read more than once."""

    first_reading: datetime
    last_reading: datetime
    drives: int
    host_write_bytes: int
    host_read_bytes: int | None
    nand_write_bytes: int | None
    fleet_waf: float | None
    fleet_dwpd: float | None
    waf: DriveSpread
    dwpd: DriveSpread
    wear_pct: DriveSpread


@dataclass(frozen=True, slots=True)
class YearsLeft:
    """Over the drives of which it is known: by the wear they report, and by the rating that was given."""

    by_wear: DriveSpread
    by_rating: DriveSpread
    window_by_wear: DriveSpread
    window_by_rating: DriveSpread


@dataclass(frozen=True, slots=True)
class DriveGroup:
    """Drives of one model or host; ratios are of their sums."""

    group: str | None
    drives: int
    capacity_bytes: int
    host_write_bytes: int
    nand_write_bytes: int | None
    waf: float | None
    waf_max: float | None
    dwpd: float | None
    dwpd_max: float | None
    window_dwpd: float | None
    wear_mean_pct: float | None
    wear_max_pct: float | None
    outliers: int


@dataclass(frozen=True, slots=True)
class DriveCoverage:
    """What the drives do not tell, and what happened between readings."""

    without_host_writes: int
    without_nand_writes: int
    without_capacity: int
    without_hours: int
    without_wear: int
    never_written: int
    read_once: int
    counters_fell: list[str]
    not_read_lately: list[str]
    sources: list[str]
    overlapping_rows: int
    rows_without_serial: int


@dataclass(frozen=True, slots=True)
class Drives:
    """The drives of one file system. `drives` counts all; every spread says how many it rests on."""

    filesystem: str
    window_start: datetime | None
    window_end: datetime | None
    samples: int
    drives: int
    first_reading: datetime | None
    last_reading: datetime | None
    fleet_waf: float | None
    waf: DriveSpread
    fleet_dwpd: float | None
    dwpd: DriveSpread
    wear_pct: DriveSpread
    spare_pct: DriveSpread
    media_errors: int | None
    drive_writes: DriveSpread
    power_on_hours: DriveSpread
    capacity_bytes: int | None
    host_write_bytes: int | None
    nand_write_bytes: int | None
    host_read_bytes: int | None
    window: FleetWindow | None
    rated_dwpd: float | None
    warranty_years: float
    rated_used_pct: DriveSpread
    years_left: YearsLeft
    outliers: WafOutliers
    group_by: GroupBy
    groups: list[DriveGroup]
    over_time: list[FleetReading]
    per_drive: list[DriveLife]
    coverage: DriveCoverage
    notes: list[str]


def drives(
    selection: Selection,
    *,
    rated_dwpd: float | None = None,
    warranty_years: float = WARRANTY_YEARS,
    waf_limit: float | None = None,
    group_by: GroupBy = "model",
    source_order: Sequence[str] = (),
) -> Drives:
    """All drives of one file system that were read in a window."""
    for name, number in (("rated DWPD", rated_dwpd), ("warranty", warranty_years), ("limit of WAF", waf_limit)):
        if number is not None and not (number > 0 and np.isfinite(number)):
            raise UsageError(f"a {name} is above 0, not {number:g}")
    if group_by not in GROUPS:
        raise UsageError(f"drives are not grouped by {group_by!r}; there are: {', '.join(GROUPS)}")
    readings = drive_readings(selection, source_order)
    judge = WafJudge.of(readings, waf_limit)
    rating = None if rated_dwpd is None else rated_dwpd * DAYS_PER_YEAR * warranty_years
    lives = [life_of(drive, judge, rating) for drive in readings.drives]
    first, last = readings.extent or (None, None)
    start, end = selection.window
    coverage = _coverage(readings)
    return Drives(
        filesystem=selection.filesystem,
        window_start=start or first,
        window_end=end or last,
        samples=readings.readings,
        drives=len(lives),
        first_reading=first,
        last_reading=last,
        fleet_waf=readings.fleet_waf,
        waf=spread(life.waf for life in lives),
        fleet_dwpd=fleet_dwpd(readings.drives),
        dwpd=spread(life.dwpd for life in lives),
        wear_pct=spread(life.wear_pct for life in lives),
        spare_pct=spread(life.spare_pct for life in lives),
        media_errors=_total(life.media_errors for life in lives),
        drive_writes=spread(life.drive_writes for life in lives),
        power_on_hours=spread(life.power_on_hours for life in lives),
        capacity_bytes=_total(life.capacity_bytes for life in lives),
        host_write_bytes=_total(life.host_write_bytes for life in lives),
        nand_write_bytes=_total(life.nand_write_bytes for life in lives),
        host_read_bytes=_total(life.host_read_bytes for life in lives),
        window=_window(readings, lives),
        rated_dwpd=rated_dwpd,
        warranty_years=warranty_years,
        rated_used_pct=spread(life.rated_used_pct for life in lives),
        years_left=YearsLeft(
            by_wear=spread(life.years_left_by_wear for life in lives),
            by_rating=spread(life.years_left_by_rating for life in lives),
            window_by_wear=spread(life.window_years_left_by_wear for life in lives),
            window_by_rating=spread(life.window_years_left_by_rating for life in lives),
        ),
        outliers=judge.verdict(lives),
        group_by=group_by,
        groups=_groups(readings.drives, lives, group_by),
        over_time=fleet_over_time(selection, readings),
        per_drive=lives,
        coverage=coverage,
        notes=_notes(coverage, lives),
    )


def _total(values: Iterable[int | None]) -> int | None:
    known = [value for value in values if value is not None]
    return sum(known) if known else None


def _window(readings: DriveReadings, lives: Sequence[DriveLife]) -> FleetWindow | None:
    windows = [life.window for life in lives if life.window is not None]
    again = [drive for drive in readings.drives if drive.stretch is not None]
    if not windows:
        return None
    return FleetWindow(
        first_reading=from_epoch_us(min(drive.first_us for drive in again)),
        last_reading=from_epoch_us(max(drive.last_us for drive in again)),
        drives=len(windows),
        host_write_bytes=sum(window.host_write_bytes for window in windows),
        host_read_bytes=_total(window.host_read_bytes for window in windows),
        nand_write_bytes=_total(window.nand_write_bytes for window in windows),
        fleet_waf=fleet_window_waf(again),
        fleet_dwpd=fleet_window_dwpd(again),
        waf=spread(window.waf for window in windows),
        dwpd=spread(window.dwpd for window in windows),
        wear_pct=spread(window.wear_pct for window in windows),
    )


def _groups(result: Sequence[Drive], lives: Sequence[DriveLife], group_by: GroupBy) -> list[DriveGroup]:
    """Hot spots first: by drive writes per day in the window where there are any, else over the life."""
    members: dict[str | None, list[tuple[Drive, DriveLife]]] = {}
    for drive, life in zip(result, lives, strict=True):
        members.setdefault(getattr(life, group_by), []).append((drive, life))
    groups = [_group(name, pairs) for name, pairs in members.items()]
    heat = "dwpd" if all(group.window_dwpd is None for group in groups) else "window_dwpd"
    return sorted(groups, key=lambda drive_group: (-(getattr(drive_group, heat) or 0.0), drive_group.group or ""))


def _group(name: str | None, members: Sequence[tuple[Drive, DriveLife]]) -> DriveGroup:
    results, lives = [drive for drive, _ in members], [life for _, life in members]
    wear = spread(life.wear_pct for life in lives)
    return DriveGroup(
        group=name,
        drives=len(lives),
        capacity_bytes=_total(life.capacity_bytes for life in lives) or 0,
        host_write_bytes=_total(life.host_write_bytes for life in lives) or 0,
        nand_write_bytes=_total(life.nand_write_bytes for life in lives),
        waf=fleet_waf(results),
        waf_max=spread(life.waf for life in lives).max,
        dwpd=fleet_dwpd(results),
        dwpd_max=spread(life.dwpd for life in lives).max,
        window_dwpd=fleet_window_dwpd(results),
        wear_mean_pct=wear.mean,
        wear_max_pct=wear.max,
        outliers=sum(life.outlier for life in lives),
    )


def _coverage(readings: DriveReadings) -> DriveCoverage:
    every = readings.drives
    newest = max((drive.last_us for drive in every), default=0)
    late = newest - SILENT // timedelta(microseconds=1)
    return DriveCoverage(
        without_host_writes=sum(drive.host_write_bytes is None for drive in every),
        without_nand_writes=sum(not drive.nand_write_bytes for drive in every),
        without_capacity=sum(not drive.capacity_bytes for drive in every),
        without_hours=sum(not drive.power_on_hours for drive in every),
        without_wear=sum(drive.wear_pct is None for drive in every),
        never_written=sum(drive.host_write_bytes == 0 for drive in every),
        read_once=sum(drive.readings == 1 for drive in every),
        counters_fell=[drive.serial for drive in every if drive.falls],
        not_read_lately=[drive.serial for drive in every if drive.last_us < late],
        sources=readings.sources,
        overlapping_rows=readings.overlapping_rows,
        rows_without_serial=readings.nameless_rows,
    )


def _notes(coverage: DriveCoverage, lives: Sequence[DriveLife]) -> list[str]:
    unworn = sum(life.wear_pct == 0 for life in lives)
    causes = [
        (sum(bool(life.media_errors) for life in lives), "reported media errors: data that could not be recovered"),
        (
            len(coverage.counters_fell),
            "had a counter that fell between readings: reset, or replaced under its name",
        ),
        (len(coverage.not_read_lately), "had no reading in the last day; --from leaves out those that are gone"),
        (unworn, "report no wear yet: below one per cent, wear tells nothing of the years left"),
    ]
    notes = [f"{counted(count, 'drive')} {what}" for count, what in causes if count]
    if coverage.overlapping_rows:
        notes.append(f"{coverage.overlapping_rows:,} readings by other sources of the same drives are left out")
    if coverage.rows_without_serial:
        notes.append(f"{coverage.rows_without_serial:,} readings without a serial number are left out")
    return notes


def defaults(known: StoreKnowledge, selection: Selection, options: Options) -> Options:
    """Sources are believed in the configured order."""
    return {"source_order": known.config.filesystem(selection.filesystem).sources, **options}


ANALYSIS = Analysis("drives", "Write amplification, drive writes per day and wear of flash drives", drives, defaults)
