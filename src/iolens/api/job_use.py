"""What one job did to each file system, what that cost, and shares of disk time by job."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from threading import Lock
from typing import Final

from iolens.analyses.blame import Blame, WhoShare
from iolens.analyses.calibration.state import NO_FSU, RestsOnCalibration, together
from iolens.analyses.job_page import (
    DiskCost,
    JobCompany,
    JobUse,
    LayerTotals,
    MissingPart,
    company,
    disk_cost,
    served_totals,
)
from iolens.analyses.job_report import JobFileSystem
from iolens.api.blame import BlameOptions, blame_of
from iolens.api.store_analyses import StoreAnalyses
from iolens.api.stored_job import Row, StoredJob, parts_of_ids
from iolens.errors import IolensError, NotKnownError
from iolens.store.scope import Scope
from iolens.store.selection import StoreSelection
from iolens.store.tables import Tables
from iolens.target_names import kind_by_name
from iolens.units import from_epoch_us

# Shares of disk time by job, kept in this process ---------------------------------------------------------------------
# Paging, sorting and typing ask for the same ones again.

EVERY: Final = 1_000_000_000  # lines of a blame: all there are
MOST_KEPT: Final = 8
TABLES_READ: Final = ("job_io", "target_sizes", "target_io", "jobs", "runs", "calibrations")


@dataclass(frozen=True, slots=True)
class JobShares:
    """Lines by job of one file system in a window; else why they are not known."""

    filesystem: str
    lines: Sequence[WhoShare]
    why_not: str = ""
    calibration: RestsOnCalibration = RestsOnCalibration(**NO_FSU)


_kept: Final[OrderedDict[object, JobShares]] = OrderedDict()
_lock: Final = Lock()


def job_shares(opened: StoreAnalyses, selection: StoreSelection) -> JobShares:
    """Of the selection's file system and window, by job_stats of its servers."""
    if not selection.holds("job_io"):
        return JobShares(selection.filesystem, (), "no job_stats in this window")
    key = _key(opened, selection)
    with _lock:
        if key in _kept:
            _kept.move_to_end(key)
            return _kept[key]
    shares = _asked(opened, Scope(selection.filesystem, *selection.window))
    with _lock:
        _kept[key] = shares
        while len(_kept) > MOST_KEPT:
            _kept.popitem(last=False)
    return shares


def _asked(opened: StoreAnalyses, scope: Scope) -> JobShares:
    try:
        blame = blame_of(opened, scope, BlameOptions(top=EVERY, beside=False))
    except NotKnownError as error:
        return JobShares(scope.filesystem or "", (), str(error))
    calibration = RestsOnCalibration(**together([blame], has_mean=True))
    return JobShares(blame.filesystem, blame.who, calibration=calibration)


def _key(opened: StoreAnalyses, selection: StoreSelection) -> object:
    """All that the shares depend on: the state of tables, and what is configured."""
    configured = repr((opened.config.filesystem(selection.filesystem), opened.config.calibrations))
    versions = tuple(_version(selection.tables, name) for name in TABLES_READ)
    return selection.tables.url, selection.filesystem, selection.window, configured, versions


def _version(tables: Tables, name: str) -> tuple[str, int] | None:
    handle = tables.load(name)
    return None if handle is None else (str(handle.metadata().id), handle.version())


# What one job did to each file system, what that cost, and who else was there -----------------------------------------

EVERY_JOB: Final = 1_000_000  # lines of a blame: all there are


def uses_of(
    opened: StoreAnalyses, job: StoredJob, filesystems: Sequence[str], names: bool
) -> tuple[list[JobUse], list[MissingPart]]:
    """By file system: those asked for, or all that the job is known to have used; and what is not known of them."""
    telemetry = set(opened.store.targets_by_filesystem())
    by_log = {filesystem_of(row, telemetry) for row in job.runs}
    by_nodes = {part.filesystem for part in job.report.filesystems} if job.report is not None else set()
    used = sorted({*by_log, *by_nodes, *job.served} - {None}, key=str)
    used += [None] if None in by_log else []
    uses, missing = [], []
    for name in filesystems or used:
        use, more = _use(opened, job, name, telemetry, names)
        uses.append(use)
        missing += more
    return uses, missing


def filesystem_of(run: Row, telemetry: set[str]) -> str | None:
    """That of the log; where it names none, the only one there is."""
    return run["filesystem"] or (next(iter(telemetry)) if len(telemetry) == 1 else None)


def _use(
    opened: StoreAnalyses, job: StoredJob, name: str | None, telemetry: set[str], names: bool
) -> tuple[JobUse, list[MissingPart]]:
    logged = _logged([row for row in job.runs if filesystem_of(row, telemetry) == name])
    parts = job.report.filesystems if job.report is not None else ()
    counted = [_counted(part) for part in parts if part.filesystem == name]
    if name is None or name not in telemetry:
        where = "of a file system that its log does not name" if name is None else f"on {name}"
        reason = "nothing of its servers is stored"
        return JobUse(name, [*logged, *counted], None, None), [MissingPart(f"its disk time {where}", reason)]
    blame, why_not = _blame(opened, job, name)
    if blame is None:
        return JobUse(name, [*logged, *counted], None, None), [MissingPart(f"its disk time on {name}", why_not)]
    cost, served, beside = _shares(opened, job, name, blame, names)
    missing = (
        [] if cost is not None else [MissingPart(f"its disk time on {name}", "the shares of disk time do not name it")]
    )
    return JobUse(name, [*logged, *counted, *([served] if served else [])], cost, beside), missing


def _logged(rows: Sequence[Row]) -> list[LayerTotals]:
    if not rows:
        return []
    return [LayerTotals("log", *(_sum(rows, name) for name in ("read_bytes", "write_bytes", "opens")))]


def _sum(rows: Sequence[Row], name: str) -> int | None:
    known = [int(row[name]) for row in rows if row[name] is not None]
    return sum(known) if known else None


def _counted(part: JobFileSystem) -> LayerTotals:
    metadata = part.metadata
    requests = sum(size.reads + size.writes for size in part.rpc_sizes) if part.rpc_sizes else None
    opens, operations = (metadata.get("open", 0), sum(metadata.values())) if metadata else (None, None)
    return LayerTotals("nodes", part.read_bytes, part.write_bytes, opens, operations, requests)


def _window(job: StoredJob, name: str) -> tuple[datetime, datetime]:
    """The job's time, with the whole of the intervals of job_stats that it began and ended in."""
    start_us, end_us, _ = job.times
    served = job.served.get(name)
    if served is not None:
        start_us, end_us = min(start_us, served.start_us), max(end_us, served.end_us)
    return from_epoch_us(start_us), from_epoch_us(max(end_us, start_us + 1))


def _blame(opened: StoreAnalyses, job: StoredJob, name: str, targets: tuple[str, ...] = ()) -> tuple[Blame | None, str]:
    since, until = _window(job, name)
    try:
        return blame_of(opened, Scope(name, since, until, targets), BlameOptions(by="job", top=EVERY_JOB)), ""
    except IolensError as error:
        return None, str(error)


def _shares(
    opened: StoreAnalyses, job: StoredJob, name: str, blame: Blame, names: bool
) -> tuple[DiskCost | None, LayerTotals | None, JobCompany]:
    parts_of = parts_of_ids(opened, name)

    def is_own(line: WhoShare) -> bool:
        return line.name == job.job_id or parts_of(line.name).job_id == job.job_id

    served = job.served.get(name)
    osts = [target for target in (served.targets if served else ()) if kind_by_name(target) == "ost"]
    there = blame
    if osts and len(osts) < len(blame.targets):
        there = _blame(opened, job, name, tuple(osts))[0] or blame
    beside = company(there, is_own, job.user, osts, names)
    return disk_cost([blame], is_own), served_totals(blame, is_own), beside
