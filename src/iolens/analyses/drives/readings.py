"""What the store knows of every drive (SPEC P3): its last reading, and what it did between its readings.

Counters are of a whole life. Where one falls from a reading to the next, the drive was reset or another took its name:
that stretch says nothing and is counted.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final, Literal

import narwhals as nw
import numpy as np

from iolens.store.selection import Selection
from iolens.units import DAY_US, from_epoch_us

TABLE: Final = "drives"
HOURS_PER_DAY: Final = 24.0
HOURLY_BELOW_DAYS: Final = 10  # a shorter history is shown by the hour
AS_RECENT_US: Final = 7 * DAY_US  # sources that differ by less tell of the same time

_BYTES: Final = ("host_write_bytes", "host_read_bytes", "nand_write_bytes")
_FALLING: Final = (*_BYTES, "power_on_hours")
_FACTS: Final = ("nand_write_bytes", "host_write_bytes", "capacity_bytes", "power_on_hours", "wear_pct")
_INTEGERS: Final = (*_BYTES, "capacity_bytes", "media_errors")
_DOUBLES: Final = ("power_on_hours", "wear_pct", "spare_pct")
_TEXTS: Final = ("model", "firmware", "host", "device")
_KEY: Final = ("serial", "source")


@dataclass(frozen=True, slots=True)
class DriveStretch:
    """What a drive did between its readings, where both ends are known and no counter fell."""

    days: float
    host_write_bytes: int
    host_read_bytes: int | None
    nand_write_bytes: int | None
    amplified_bytes: int | None  # host bytes of the time in which flash bytes are known
    wear_pct: float | None  # points of the rated life
    wear_days: float

    @property
    def waf(self) -> float | None:
        """Write amplification of these days."""
        return _waf(self.amplified_bytes, self.nand_write_bytes)


@dataclass(frozen=True, slots=True)
class Drive:
    """A drive at its last reading. None: not reported."""

    serial: str
    source: str
    model: str | None
    firmware: str | None
    host: str | None
    device: str | None
    first_us: int
    last_us: int
    readings: int
    falls: int
    capacity_bytes: int | None
    host_write_bytes: int | None
    host_read_bytes: int | None
    nand_write_bytes: int | None
    power_on_hours: float | None
    wear_pct: float | None
    spare_pct: float | None
    media_errors: int | None
    stretch: DriveStretch | None  # None: fewer than two readings to compare

    @property
    def waf(self) -> float | None:
        """Bytes written to flash ÷ bytes written by the host; None where either is unknown or zero."""
        return _waf(self.host_write_bytes, self.nand_write_bytes)

    @property
    def drive_writes(self) -> float | None:
        """How often the host has written the whole drive."""
        if self.host_write_bytes is None or not self.capacity_bytes:
            return None
        return self.host_write_bytes / self.capacity_bytes

    @property
    def powered_days(self) -> float | None:
        """Power-on hours as days; None where there are none."""
        return self.power_on_hours / HOURS_PER_DAY if self.power_on_hours else None

    @property
    def dwpd(self) -> float | None:
        """Drive writes per day over the life: host bytes ÷ capacity ÷ days powered."""
        if self.drive_writes is None or self.powered_days is None:
            return None
        return self.drive_writes / self.powered_days

    @property
    def window_dwpd(self) -> float | None:
        """Drive writes per day between the readings, by the calendar."""
        if self.stretch is None or not self.capacity_bytes:
            return None
        return self.stretch.host_write_bytes / self.capacity_bytes / self.stretch.days


@dataclass(frozen=True, slots=True)
class FleetReading:
    """The fleet on a day (or in an hour) with readings; `waf` and `dwpd` are since the readings before."""

    time: datetime
    readings: int
    wear_min_pct: float | None
    wear_mean_pct: float | None
    wear_max_pct: float | None
    drive_writes: float | None  # host bytes of all lives ÷ capacity
    waf: float | None
    dwpd: float | None


@dataclass(frozen=True, slots=True)
class DriveReadings:
    """All drives that were read in the window, by serial number; `read_later` only after its end."""

    filesystem: str
    drives: list[Drive]
    overlapping_rows: int
    nameless_rows: int
    read_later: frozenset[str] = frozenset()

    @property
    def amplified(self) -> list[Drive]:
        """Drives whose write amplification is known."""
        return [drive for drive in self.drives if drive.waf is not None]

    @property
    def wafs(self) -> list[float]:
        """Their write amplifications."""
        return [drive.waf for drive in self.drives if drive.waf is not None]

    @property
    def host_write_bytes(self) -> list[int]:
        """Host bytes of the same drives: what each weighs in the fleet."""
        return [drive.host_write_bytes or 0 for drive in self.amplified]

    @property
    def fleet_waf(self) -> float | None:
        """Flash bytes of those drives together ÷ their host bytes: idle ones weigh little."""
        return fleet_waf(self.drives)

    @property
    def sources(self) -> list[str]:
        """Where the readings come from."""
        return sorted({drive.source for drive in self.drives})

    @property
    def readings(self) -> int:
        """How many there are of these drives."""
        return sum(drive.readings for drive in self.drives)

    @property
    def median_capacity_bytes(self) -> float | None:
        """Of the drives that tell theirs."""
        sizes = [drive.capacity_bytes for drive in self.drives if drive.capacity_bytes]
        return float(np.median(sizes)) if sizes else None

    @property
    def extent(self) -> tuple[datetime, datetime] | None:
        """First and last reading; None without a drive."""
        if not self.drives:
            return None
        ends = min(drive.first_us for drive in self.drives), max(drive.last_us for drive in self.drives)
        return from_epoch_us(ends[0]), from_epoch_us(ends[1])

    @property
    def origin(self) -> str:
        """In words."""
        if self.extent is None:
            return f"{self.filesystem}: no drive is known"
        known = f"{len(self.wafs):,} of {len(self.drives):,} drives"
        return f"{self.filesystem}: {known}, last read on {self.extent[1]:%Y-%m-%d} ({', '.join(self.sources)})"


def drive_readings(selection: Selection, source_order: Sequence[str] = (), *, first: bool = False) -> DriveReadings:
    """Every drive of the window at its last reading, or its `first`.

    Where several sources read one, the first in order counts, else the fullest.
    """
    frame = _rows(selection)
    last = _by_key(_end(frame, 1 if first else -1))
    sums = _by_key(_sums(frame))
    known = [_drive(row, sums[key]) for key, row in last.items() if row["serial"] is not None]
    by_serial: dict[str, list[Drive]] = {}
    for drive in known:
        by_serial.setdefault(drive.serial, []).append(drive)
    chosen = [_chosen(by_serial[serial], source_order) for serial in sorted(by_serial)]
    kept = sum(drive.readings for drive in chosen)
    nameless = sum(int(row["readings"]) for (serial, _), row in sums.items() if serial is None)
    overlap = sum(drive.readings for drive in known) - kept
    return DriveReadings(selection.filesystem, chosen, overlap, nameless)


def with_later(readings: DriveReadings, later: DriveReadings) -> DriveReadings:
    """With the drives that only the later readings have. Counters are of a whole life: a later one tells of it too."""
    known = {drive.serial for drive in readings.drives}
    more = [drive for drive in later.drives if drive.serial not in known]
    drives = sorted([*readings.drives, *more], key=lambda drive: drive.serial)
    return replace(readings, drives=drives, read_later=frozenset(drive.serial for drive in more))


def fleet_over_time(selection: Selection, readings: DriveReadings) -> list[FleetReading]:
    """The fleet day by day, or hour by hour where the readings span less than ten days; of the same sources."""
    extent = readings.extent
    if extent is None:
        return []
    short = (extent[1] - extent[0]).days < HOURLY_BELOW_DAYS
    rows = _collected(_per_bucket(_of_chosen(_rows(selection), readings), DAY_US // 24 if short else DAY_US))
    return [_time(row) for row in sorted(rows, key=lambda row: int(row["last_us"]))]


def fleet_waf(drives: Iterable[Drive]) -> float | None:
    """Σ flash bytes ÷ Σ host bytes, over drives whose own ratio is known."""
    pairs = [(drive.nand_write_bytes or 0, drive.host_write_bytes or 0) for drive in drives if drive.waf is not None]
    host = sum(pair[1] for pair in pairs)
    return sum(pair[0] for pair in pairs) / host if host else None


def fleet_dwpd(drives: Iterable[Drive]) -> float | None:
    """Σ host bytes ÷ Σ (capacity · days powered), over drives whose own DWPD is known."""
    parts = [
        (drive.host_write_bytes or 0, (drive.capacity_bytes or 0) * (drive.powered_days or 0.0))
        for drive in drives
        if drive.dwpd is not None
    ]
    space = sum(part[1] for part in parts)
    return sum(part[0] for part in parts) / space if space else None


def fleet_window_waf(drives: Iterable[Drive]) -> float | None:
    """Σ flash bytes ÷ Σ host bytes between the readings."""
    stretches = [drive.stretch for drive in drives if drive.stretch is not None]
    pairs = [
        (stretch.nand_write_bytes, stretch.amplified_bytes)
        for stretch in stretches
        if stretch.amplified_bytes is not None
    ]
    host = sum(pair[1] for pair in pairs)
    return sum(pair[0] or 0 for pair in pairs) / host if host else None


def fleet_window_dwpd(drives: Iterable[Drive]) -> float | None:
    """Σ host bytes ÷ Σ (capacity · days) between the readings."""
    parts = [
        (drive.stretch.host_write_bytes, drive.capacity_bytes * drive.stretch.days)
        for drive in drives
        if drive.stretch is not None and drive.capacity_bytes
    ]
    space = sum(part[1] for part in parts)
    return sum(part[0] for part in parts) / space if space else None


def _waf(host: int | None, flash: int | None) -> float | None:
    """A drive that has written nothing to its flash does not count such writes: no ratio comes of that."""
    return flash / host if host and flash else None


# What is asked of the engine.


def _rows(selection: Selection) -> nw.LazyFrame[Any]:
    """The table in declared types, with NULL in columns a user's frame lacks."""
    frame = selection.frame(TABLE)
    if frame.implementation.is_pyarrow() or frame.implementation.is_pandas_like():
        frame = frame.collect().lazy("duckdb")  # these two know no value of the row before
    known = set(frame.collect_schema().names())

    def column(name: str, type_: type[nw.String | nw.Int64 | nw.Float64]) -> nw.Expr:
        return (nw.col(name) if name in known else nw.lit(None)).cast(type_).alias(name)

    source = nw.col("source").fill_null("unknown") if "source" in known else nw.lit("frame")
    return frame.select(
        nw.col("epoch_us").cast(nw.Int64),
        source.cast(nw.String).alias("source"),
        *(column(name, nw.String) for name in ("serial", *_TEXTS)),
        *(column(name, nw.Int64) for name in _INTEGERS),
        *(column(name, nw.Float64) for name in _DOUBLES),
    )


def _end(frame: nw.LazyFrame[Any], step: Literal[1, -1]) -> nw.LazyFrame[Any]:
    """The first (1) or last (-1) row of each drive and source."""
    beyond = nw.col("epoch_us").shift(step).over(*_KEY, order_by="epoch_us")
    return frame.with_columns(beyond.alias("beyond")).filter(nw.col("beyond").is_null()).drop("beyond")


def _steps(frame: nw.LazyFrame[Any]) -> nw.LazyFrame[Any]:
    """Rows with what changed since the drive's reading before; NULL where that is not known or a counter fell."""

    def before(name: str) -> nw.Expr:
        return nw.col(name).shift(1).over(*_KEY, order_by="epoch_us").alias(f"{name}_before")

    def changed(name: str, alias: str) -> nw.Expr:
        return nw.when(nw.col("falls") == 0).then(nw.col(name) - nw.col(f"{name}_before")).alias(alias)

    def where_known(name: str, value: str, alias: str) -> nw.Expr:
        return nw.when(~nw.col(name).is_null()).then(nw.col(value)).alias(alias)

    fell = [nw.when(nw.col(name) < nw.col(f"{name}_before")).then(nw.lit(1)).otherwise(nw.lit(0)) for name in _FALLING]
    any_fell = nw.when(nw.sum_horizontal(*fell) > 0).then(nw.lit(1)).otherwise(nw.lit(0)).alias("falls")
    changes = [changed(name, f"more_{name}") for name in (*_BYTES, "wear_pct", "epoch_us")]
    return (
        frame.with_columns(*(before(name) for name in (*_FALLING, "wear_pct", "epoch_us")))
        .with_columns(any_fell)
        .with_columns(*changes)
        .with_columns(
            where_known("more_host_write_bytes", "more_epoch_us", "written_us"),
            where_known("more_wear_pct", "more_epoch_us", "worn_us"),
            where_known("more_host_write_bytes", "more_nand_write_bytes", "flash"),
            where_known("more_nand_write_bytes", "more_host_write_bytes", "amplified"),
        )
    )


_SUMMED: Final = ("more_host_write_bytes", "more_host_read_bytes", "flash", "amplified", "written_us", "worn_us")


def _sums(frame: nw.LazyFrame[Any]) -> nw.LazyFrame[Any]:
    """Over all readings of each drive and source."""
    return (
        _steps(frame)
        .group_by(*_KEY)
        .agg(
            nw.len().alias("readings"),
            nw.col("epoch_us").min().alias("first_us"),
            nw.col("falls").sum().cast(nw.Int64),
            nw.col("more_wear_pct").sum(),
            nw.col("more_wear_pct").count().alias("worn_times"),
            *(nw.col(name).sum().cast(nw.Int64) for name in _SUMMED),
            *(nw.col(name).count().alias(f"{name}_times") for name in _SUMMED),
        )
    )


def _of_chosen(frame: nw.LazyFrame[Any], readings: DriveReadings) -> nw.LazyFrame[Any]:
    """Without the rows of sources that do not count for a drive."""
    frame = frame.filter(~nw.col("serial").is_null())
    if not readings.overlapping_rows:
        return frame
    wanted: nw.Expr | None = None
    for source in readings.sources:
        serials = [drive.serial for drive in readings.drives if drive.source == source]
        mine = (nw.col("source") == source) & nw.col("serial").is_in(serials)
        wanted = mine if wanted is None else wanted | mine
    assert wanted is not None
    return frame.filter(wanted)


def _per_bucket(frame: nw.LazyFrame[Any], bucket_us: int) -> nw.LazyFrame[Any]:
    """Sums over drives; a change counts where it ends."""
    size = nw.when(nw.col("capacity_bytes") > 0).then(nw.col("capacity_bytes").cast(nw.Float64))
    days = nw.col("written_us").cast(nw.Float64) / nw.lit(float(DAY_US), nw.Float64)
    wear = nw.col("wear_pct")
    return (
        _steps(frame)
        .with_columns((nw.col("epoch_us") // bucket_us).alias("bucket"), size.alias("size"))
        .with_columns(
            nw.when(~nw.col("size").is_null()).then(nw.col("host_write_bytes").cast(nw.Float64)).alias("written"),
            nw.when(~nw.col("host_write_bytes").is_null()).then(nw.col("size")).alias("sized"),
            nw.when(~nw.col("size").is_null()).then(nw.col("more_host_write_bytes").cast(nw.Float64)).alias("more"),
            (days * nw.col("size")).alias("sized_days"),
            nw.col("flash").cast(nw.Float64),
            nw.col("amplified").cast(nw.Float64),
        )
        .group_by("bucket")
        .agg(
            nw.col("epoch_us").max().alias("last_us"),
            nw.len().alias("readings"),
            wear.min().alias("wear_min"),
            wear.mean().alias("wear_mean"),
            wear.max().alias("wear_max"),
            nw.col("written").sum(),
            nw.col("sized").sum(),
            nw.col("more").sum().alias("rewritten"),
            nw.col("sized_days").sum(),
            nw.col("flash").sum(),
            nw.col("amplified").sum(),
        )
    )


# What it answered.


def _collected(frame: nw.LazyFrame[Any]) -> list[dict[str, Any]]:
    """Rows as plain values; NaN is not known either."""
    rows: list[dict[str, Any]] = frame.collect(backend="pyarrow").to_native().to_pylist()
    return [
        {name: None if isinstance(value, float) and math.isnan(value) else value for name, value in row.items()}
        for row in rows
    ]


def _by_key(frame: nw.LazyFrame[Any]) -> dict[tuple[str | None, str], dict[str, Any]]:
    return {(row["serial"], row["source"]): row for row in _collected(frame)}


def _drive(row: dict[str, Any], sums: dict[str, Any]) -> Drive:
    return Drive(
        serial=row["serial"],
        source=row["source"],
        first_us=int(sums["first_us"]),
        last_us=int(row["epoch_us"]),
        readings=int(sums["readings"]),
        falls=int(sums["falls"]),
        **{name: row[name] for name in (*_TEXTS, *_INTEGERS, *_DOUBLES)},
        stretch=_stretch(sums),
    )


def _stretch(sums: dict[str, Any]) -> DriveStretch | None:
    if not sums["written_us"]:
        return None

    def total(name: str) -> int | None:
        return int(sums[name]) if sums[f"{name}_times"] else None

    return DriveStretch(
        days=int(sums["written_us"]) / DAY_US,
        host_write_bytes=int(sums["more_host_write_bytes"]),
        host_read_bytes=total("more_host_read_bytes"),
        nand_write_bytes=total("flash"),
        amplified_bytes=total("amplified"),
        wear_pct=float(sums["more_wear_pct"]) if sums["worn_times"] else None,
        wear_days=int(sums["worn_us"]) / DAY_US,
    )


def _time(row: dict[str, Any]) -> FleetReading:
    return FleetReading(
        time=from_epoch_us(int(row["last_us"])),
        readings=int(row["readings"]),
        wear_min_pct=row["wear_min"],
        wear_mean_pct=row["wear_mean"],
        wear_max_pct=row["wear_max"],
        drive_writes=row["written"] / row["sized"] if row["sized"] else None,
        waf=row["flash"] / row["amplified"] if row["amplified"] and row["flash"] else None,
        dwpd=row["rewritten"] / row["sized_days"] if row["sized_days"] else None,
    )


def _chosen(same: Sequence[Drive], order: Sequence[str]) -> Drive:
    """One of several readings of a drive by source: as configured, else the one that tells most and is not old."""
    newest = max(drive.last_us for drive in same)
    ranks = {name: place for place, name in enumerate(order)}

    def rank(drive: Drive) -> tuple[int, bool, int, int, str]:
        reported = sum(getattr(drive, fact) is not None for fact in _FACTS)
        old = newest - drive.last_us > AS_RECENT_US
        return ranks.get(drive.source, len(ranks)), old, -reported, -drive.last_us, drive.source

    return min(same, key=rank)
