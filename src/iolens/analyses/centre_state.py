"""Every file system of a store on a line: targets, time of its data, fullness, and what else is stored of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import date, datetime

from iolens.schema import DATA_KINDS
from iolens.units import DAY_US


@dataclass(frozen=True, slots=True)
class RollupSpan:
    """Days that a rollup (`60s` or `1h`) has of one file system."""

    resolution: str
    first_day: date
    last_day: date


@dataclass(frozen=True, slots=True)
class FileSystemState:
    """One file system; None is not known. Times are those of load and metadata rows, by the log of their tables.

    Capacity and usage are those of the last reading in which all targets answered.
    """

    filesystem: str
    targets: int
    targets_by_kind: dict[str, int]  # "unknown" where neither the name nor the last day tells
    servers: list[str] | None
    first_time: datetime | None
    last_time: datetime | None
    capacity_time: datetime | None
    capacity_bytes: int | None
    used_bytes: int | None
    fullness_pct: float | None
    peak_bytes_per_s: float | None  # as configured
    has_sizes: bool  # of disk I/Os: without them there is no FSU
    has_metadata: bool
    has_job_stats: bool
    has_client_counters: bool
    has_contents: bool
    has_drives: bool
    rollups: list[RollupSpan]


@dataclass(frozen=True, slots=True)
class CentreState:
    """File systems by name, and whether scheduler records and Darshan runs are stored beside them."""

    store: str = field(metadata={"json": False})  # for the title of the table
    has_jobs: bool
    has_runs: bool
    filesystems: list[FileSystemState]


# How full a file system is now ----------------------------------------------------------------------------------------
# The last reading of each target, where it is no more than a day older than the newest.
#
# The targets are those that `iolens capacity` adds up: data targets of the first kind there is, else sums of the whole.

WHOLE = "filesystem"


@dataclass(frozen=True, slots=True)
class LastReading:
    """Of one target: bytes it has and bytes used; None where it never says its total."""

    target_kind: str | None
    time_us: int
    total_bytes: int | None
    used_bytes: int


@dataclass(frozen=True, slots=True)
class LatestFullness:
    """Of a file system."""

    time_us: int
    total_bytes: int | None
    used_bytes: int


def latest_fullness(readings: Sequence[LastReading]) -> LatestFullness | None:
    """The sum over targets; its total is known where each of them tells its own."""
    by_kind = ([reading for reading in readings if reading.target_kind == kind] for kind in (*DATA_KINDS, WHOLE))
    of_kind = next(filter(None, by_kind), None)
    if of_kind is None:
        return None
    newest_us = max(reading.time_us for reading in of_kind)
    recent = [reading for reading in of_kind if reading.time_us > newest_us - DAY_US]
    if of_kind[0].target_kind == WHOLE:
        recent = [max(recent, key=lambda reading: reading.time_us)]
    totals = [reading.total_bytes for reading in recent if reading.total_bytes is not None]
    total = sum(totals) if len(totals) == len(recent) else None
    return LatestFullness(newest_us, total, sum(reading.used_bytes for reading in recent))
