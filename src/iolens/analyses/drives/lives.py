"""One drive over its life and in the window, and which drives stand out by their write amplification (SPEC P3).

DWPD = host bytes ÷ capacity ÷ (power-on hours ÷ 24). A high WAF of a drive that is hardly used is explained by that.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final, Literal

import numpy as np

from iolens.analyses.drives.readings import Drive, DriveReadings
from iolens.units import from_epoch_us

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
