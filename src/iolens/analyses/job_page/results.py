"""What the page of a job says. Names of other users are not in it unless they were asked for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Literal

from iolens.analyses.calibration.levels import HoldsDiskTime
from iolens.analyses.runs.advise import AdviceLine

if TYPE_CHECKING:
    from iolens.analyses.explain.analysis import RunExplanation

Layer = Literal["log", "nodes", "servers"]
CostMethod = Literal["job_stats", "overlap", "both"]
TimesFrom = Literal["record", "log", "nodes", "servers"]


@dataclass(frozen=True, slots=True)
class LayerTotals:
    """What one layer counted: the program's log, the nodes' clients or the servers. None: it does not count that."""

    layer: Layer
    read_bytes: int | None
    write_bytes: int | None
    opens: int | None = None
    metadata_operations: int | None = None
    requests: int | None = None  # for data, to the servers


@dataclass(frozen=True, slots=True)
class DiskCost(HoldsDiskTime):
    """Disk time of a job or user on a file system in a window, and its share of all disk time then.

    `overlap`: by bytes at the same time, an association; `both`: some of the time so, some by job_stats.
    """

    method: CostMethod
    disk_seconds: float | None
    share_pct: float
    bytes_share_pct: float | None  # of the bytes that all jobs moved
    fsu_pct: float | None  # of all the disks, for everyone
    others_pct: float  # share of other jobs
    unattributed_pct: float
    calibrations: Sequence[str]


@dataclass(frozen=True, slots=True)
class PageNeighbour:
    """Another job. Id, user and program are None unless names were asked for, or it is the same user's."""

    is_of_same_user: bool | None  # None: whose one of them is, is not known
    job_id: str | None
    user: str | None
    executable: str | None
    share_pct: float
    disk_seconds: float | None


@dataclass(frozen=True, slots=True)
class JobCompany:
    """Who else kept the disks of the job's OSTs busy while it ran; all OSTs where its own are not known."""

    targets: Sequence[str]  # empty: not known
    targets_in_all: int
    own_pct: float
    neighbours: Sequence[PageNeighbour]  # the largest
    more_jobs: int  # beyond those
    more_pct: float
    unattributed_pct: float


@dataclass(frozen=True, slots=True)
class JobUse:
    """What the job did to one file system; None: the log does not name it."""

    filesystem: str | None
    layers: Sequence[LayerTotals]
    cost: DiskCost | None
    company: JobCompany | None


@dataclass(frozen=True, slots=True)
class MissingPart:
    """What the page cannot say, and why."""

    what: str
    reason: str


@dataclass(frozen=True, slots=True)
class JobPage:
    """One job; None is not known."""

    job_id: str
    cluster: str | None
    user: str | None
    project: str | None
    name: str | None
    programs: Sequence[str]
    state: str | None
    start: datetime
    end: datetime | None  # None: it was still running
    times_from: TimesFrom
    nodes: int | None
    cores: int | None
    processes: int | None
    core_hours: float | None
    runs: int  # with a log
    io_core_hours: float | None  # in I/O calls, by the logs
    uses: Sequence[JobUse]
    advice: Sequence[AdviceLine]
    is_judged: bool  # rules for advice had something to look at
    explanation: RunExplanation | None
    missing: Sequence[MissingPart]
    notes: Sequence[str]
