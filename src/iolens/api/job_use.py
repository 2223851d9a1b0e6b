"""What one job did to each file system, what that cost, and who else was there."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Final

from iolens.analyses.blame.results import Blame, WhoShare
from iolens.analyses.job_page.costs import company, disk_cost, served_totals
from iolens.analyses.job_page.results import DiskCost, JobCompany, JobUse, LayerTotals, MissingPart
from iolens.analyses.job_report.results import JobFileSystem
from iolens.api.access.store_analyses import StoreAnalyses
from iolens.api.blame import BlameOptions, blame_of
from iolens.api.stored_job import Row, StoredJob, parts_of_ids
from iolens.errors import IolensError
from iolens.store.scope import Scope
from iolens.target_names import kind_by_name
from iolens.units import from_epoch_us

EVERY: Final = 1_000_000  # lines of a blame: all there are


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
        return blame_of(opened, Scope(name, since, until, targets), BlameOptions(by="job", top=EVERY)), ""
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
