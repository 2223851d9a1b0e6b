"""The page of a job: what it cost, on which targets servers saw it, and what is said of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final, Literal

import narwhals as nw

from iolens.analyses.attribution.whose import JobIdForm, JobIdParts, guessed_parts
from iolens.analyses.blame import Blame, WhoShare
from iolens.analyses.calibration.state import HoldsDiskTime, together
from iolens.analyses.runs.advise import AdviceLine
from iolens.store.selection import StoreSelection

if TYPE_CHECKING:
    from iolens.analyses.explain.analysis import RunExplanation


# What the page of a job says. Names of other users are not in it unless they were asked for ---------------------------

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


# Of the shares of a window --------------------------------------------------------------------------------------------
# Those of one job or user, and of its neighbours, named only where that is allowed.

SHOWN: Final = 5  # neighbours

IsOwn = Callable[[WhoShare], bool]


def disk_cost(blames: Sequence[Blame], is_own: IsOwn) -> DiskCost | None:
    """The sum of the lines that are its own, over all the windows; None: there is none. Blames must hold every line."""
    own = [[line for line in blame.who if is_own(line)] for blame in blames]
    if not any(own):
        return None
    took_s = [blame.disk_seconds or 0.0 for blame in blames]
    shares = [sum(line.share_pct for line in lines) for lines in own]
    known = [sum(line.share_pct for line in blame.who) for blame in blames]
    moved = _moved([line for lines in own for line in lines])
    in_all = _moved([line for blame in blames for line in blame.who])
    own_pct, known_pct = _mean(shares, took_s), _mean(known, took_s)
    fsu_pct = _busy_pct(blames)
    return DiskCost(
        **together(blames, has_mean=fsu_pct is not None),
        method=_method([blame for blame, lines in zip(blames, own, strict=True) if lines]),
        disk_seconds=_seconds([line for lines in own for line in lines]),
        share_pct=own_pct,
        bytes_share_pct=100.0 * moved / in_all if moved is not None and in_all else None,
        fsu_pct=fsu_pct,
        others_pct=max(known_pct - own_pct, 0.0),
        unattributed_pct=_mean([blame.unattributed_pct for blame in blames], took_s),
        calibrations=sorted({name for blame in blames for name in blame.coverage.calibrations}),
    )


def _method(blames: Sequence[Blame]) -> CostMethod:
    methods = {blame.method for blame in blames}
    return methods.pop() if len(methods) == 1 else "both"


def _mean(shares_pct: Sequence[float], took_s: Sequence[float]) -> float:
    """Of shares of disk time, each weighed by the disk time it is of."""
    whole_s = sum(took_s)
    return sum(share * seconds for share, seconds in zip(shares_pct, took_s, strict=True)) / whole_s if whole_s else 0.0


def _busy_pct(blames: Sequence[Blame]) -> float | None:
    """FSU over all the windows: disk time ÷ the time of all targets, which is disk time ÷ FSU in each of them."""
    pairs = [(blame.disk_seconds, blame.fsu_pct) for blame in blames if blame.disk_seconds and blame.fsu_pct]
    targets_s = sum(seconds / fsu_pct for seconds, fsu_pct in pairs)
    return sum(seconds for seconds, _ in pairs) / targets_s if targets_s else None


def served_totals(blame: Blame, is_own: IsOwn) -> LayerTotals | None:
    """What the servers counted; None where no job_stats name it."""
    own = [line for line in blame.who if is_own(line)]
    if not own or blame.method != "job_stats":
        return None
    names = ("read_bytes", "write_bytes", "metadata_operations", "operations")
    read, written, metadata, requests = (_total([getattr(line, name) for line in own]) for name in names)
    return LayerTotals("servers", read, written, None, metadata, requests)


def company(blame: Blame, is_own: IsOwn, user: str | None, targets: Sequence[str], names: bool) -> JobCompany:
    """The other jobs of a window, those that took most first. `names`: say whose they are."""
    others = [line for line in blame.who if not is_own(line)]
    rest = others[SHOWN:]
    return JobCompany(
        targets=targets,
        targets_in_all=len({target.target for target in blame.targets}) or blame.coverage.targets_known,
        own_pct=sum(line.share_pct for line in blame.who if is_own(line)),
        neighbours=[_neighbour(line, user, names) for line in others[:SHOWN]],
        more_jobs=len(rest),
        more_pct=sum(line.share_pct for line in rest),
        unattributed_pct=blame.unattributed_pct,
    )


def _neighbour(line: WhoShare, user: str | None, names: bool) -> PageNeighbour:
    is_same = None if user is None or line.user is None else line.user == user
    if not names and not is_same:
        return PageNeighbour(is_same, None, None, None, line.share_pct, line.disk_seconds)
    return PageNeighbour(is_same, line.name, line.user, line.executable, line.share_pct, line.disk_seconds)


def _seconds(lines: Sequence[WhoShare]) -> float | None:
    known = [line.disk_seconds for line in lines if line.disk_seconds is not None]
    return sum(known) if known else None


def _moved(lines: Sequence[WhoShare]) -> int | None:
    return _total([value for line in lines for value in (line.read_bytes, line.write_bytes)])


def _total(values: Sequence[int | None]) -> int | None:
    """The sum of what is known; None: nothing is."""
    known = [value for value in values if value is not None]
    return sum(known) if known else None


# What servers know of a job -------------------------------------------------------------------------------------------
# On which targets job_stats name it, and when.

PartsOf = Callable[[str], JobIdParts]


@dataclass(frozen=True, slots=True)
class ServedJob:
    """Targets that served a job, and from when to when, in microseconds since 1970."""

    targets: Sequence[str]
    start_us: int
    end_us: int


def parts_by(form: str | None) -> PartsOf:
    """How ids of job_stats are taken apart: by the file system's `jobid_name`, else by what they look like."""
    return JobIdForm(form).parts if form else guessed_parts


def served_job(
    selection: StoreSelection, job_id: str, parts_of: PartsOf, ran_us: tuple[int, int] | None = None
) -> ServedJob | None:
    """By intervals that meet `ran_us`, the time of the job; None: job_stats of the selection do not name it then."""
    if not selection.holds("job_io"):
        return None
    ids = [text for text in served_ids(selection) if text == job_id or parts_of(text).job_id == job_id]
    if not ids:
        return None
    own = selection.frame("job_io").filter(nw.col("job_id").is_in(ids))
    if ran_us is not None:
        own = own.filter((nw.col("epoch_us") > ran_us[0]) & (nw.col("start_us") < ran_us[1]))
    by_target = own.group_by("target")
    rows = _rows(by_target.agg(nw.col("start_us").min().alias("first_us"), nw.col("epoch_us").max().alias("last_us")))
    if not rows:
        return None
    first_us, last_us = min(row["first_us"] for row in rows), max(row["last_us"] for row in rows)
    return ServedJob(sorted(row["target"] for row in rows), int(first_us), int(last_us))


def served_ids(selection: StoreSelection) -> list[str]:
    """Every id of job_stats."""
    return [row["job_id"] for row in _rows(selection.frame("job_io").select("job_id").unique())]


def _rows(frame: nw.LazyFrame[Any]) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = frame.collect(backend="pyarrow").to_native().to_pylist()
    return rows
