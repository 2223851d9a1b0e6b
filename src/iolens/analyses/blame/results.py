"""Who made a file system busy, in shares of what its disks or metadata servers did (B1)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from iolens.analyses.attribution.job_sums import Method
from iolens.analyses.attribution.whose import Kind
from iolens.analyses.calibration.levels import HoldsDiskTime

Basis = Literal["disk", "metadata"]


@dataclass(frozen=True, slots=True)
class WhoShare:
    """One name. `is_known` is false where no record says whose an id is: the name is the id itself, or why it is
    nobody's by user and project, with all such ids together.
    """

    name: str
    jobs: int
    disk_seconds: float | None  # null where operations have no known cost
    share_pct: float
    read_bytes: int | None
    write_bytes: int | None
    operations: int | None
    metadata_operations: int | None
    user: str | None  # of a job
    executable: str | None  # of a job
    is_known: bool


@dataclass(frozen=True, slots=True)
class BusyTick:
    """A stretch of time: how busy, and whose share of it; what is no one's is the rest to 100 %."""

    time: datetime
    fsu_pct: float | None
    shares: Mapping[str, float]
    unattributed_pct: float


@dataclass(frozen=True, slots=True)
class BusyTarget:
    """One target, and whose share of its time."""

    target: str
    disk_seconds: float | None  # null where operations have no known cost
    metadata_operations: int | None  # where they have none: what the shares are of
    shares: Mapping[str, float]
    unattributed_pct: float


@dataclass(frozen=True, slots=True)
class BlameCoverage:
    """What the answer rests on. Percentages are of the attributed seconds."""

    targets_known: int
    targets_with_job_stats: int
    targets_without_job_stats: list[str]
    intervals: int
    assumed_pct: float | None  # disk I/Os for each RPC not known, one taken
    unmeasured_pct: float | None  # sizes of disk I/Os not known: taken as what the jobs asked for
    job_ids: int
    ids_without_record: int
    incomplete_ids: int  # cut short, or without a field
    contradictory_ids: int  # records of several users or projects
    sources: list[str]
    overlapping_rows: int
    calibrations: list[str]
    notes: list[str]


@dataclass(frozen=True, slots=True)
class Blame(HoldsDiskTime):
    """Shares of `who`, of `others` and what is unattributed add up to 100 %. Of metadata it holds no FSU."""

    filesystem: str
    window_start: datetime
    window_end: datetime
    by: Kind
    method: Method
    basis: Basis
    disk_seconds: float | None
    metadata_operations: int | None  # of all, where they have no known cost: what the shares are of
    fsu_pct: float | None
    unattributed_pct: float
    scale_factor: float | None  # what jobs asked for × this = what is attributed; null: they asked for nothing
    saturation_fsu_pct: float | None
    bucket_s: int
    who: Sequence[WhoShare]
    others: WhoShare | None  # further down the list
    series: Sequence[BusyTick]
    targets: Sequence[BusyTarget]
    coverage: BlameCoverage
