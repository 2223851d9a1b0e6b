"""Every file system of a store on a line: targets, time of its data, fullness, and what else is stored of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import date, datetime


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
