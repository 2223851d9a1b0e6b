"""The page of one job, out of whatever the store has of it: record, logs, counters of nodes, job_stats of servers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

from iolens.analyses.blame.results import Blame, WhoShare
from iolens.analyses.job_page.costs import company, disk_cost, served_totals
from iolens.analyses.job_page.results import (
    DiskCost,
    JobCompany,
    JobPage,
    JobUse,
    LayerTotals,
    MissingPart,
    TimesFrom,
)
from iolens.analyses.job_page.served import PartsOf, ServedJob, parts_by, served_ids, served_job
from iolens.analyses.job_report.results import JobFileSystem, JobReport
from iolens.analyses.runs.advise import RunAdvice
from iolens.api.access.store_analyses import StoreAnalyses
from iolens.api.blame import BlameOptions, blame_of
from iolens.api.page_advice import advice_lines, advice_of, thresholds_of
from iolens.api.page_names import check_filesystems, names_in_runs, unknown_name
from iolens.api.page_verdict import WHAT, verdict_of
from iolens.api.stored_job_report import report_of_opened_job
from iolens.api.stored_runs import StoredRuns
from iolens.errors import InputError, IolensError, UsageError
from iolens.store.scope import Scope
from iolens.target_names import kind_by_name
from iolens.units import epoch_us, from_epoch_us

if TYPE_CHECKING:
    from iolens.analyses.explain.analysis import RunExplanation

EVERY: Final = 1_000_000  # lines of a blame: all there are
SLACK_US: Final = 60_000_000  # clocks of schedulers and nodes differ
AROUND_US: Final = 3_600_000_000  # job_stats are looked for so long before and after the job
HOUR_S: Final = 3600.0

Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class JobPageOptions:
    """File systems (empty: all the job used), the cluster where several have such an id, and whether to name others."""

    filesystems: tuple[str, ...] = ()
    cluster: str | None = None
    names: bool = False


@dataclass(frozen=True, slots=True)
class StoredJob:
    """All the store has of a job; times in microseconds since 1970."""

    job_id: str
    record: Row | None
    runs: Sequence[Row]
    report: JobReport | None  # by counters of its nodes
    served: Mapping[str, ServedJob]  # by file system
    notes: list[str] = field(default_factory=list)

    @property
    def times(self) -> tuple[int, int, TimesFrom]:
        """Start and end by the record, else by the logs, the samples of nodes or job_stats; and by which of them."""
        if self.record is not None:
            return self.record["start"], self.record["time"], "record"
        if self.runs:
            return min(row["start"] for row in self.runs), max(row["time"] for row in self.runs), "log"
        if self.report is not None and self.report.start is not None and self.report.end is not None:
            return epoch_us(self.report.start), epoch_us(self.report.end), "nodes"
        served = self.served.values()
        return min(item.start_us for item in served), max(item.end_us for item in served), "servers"

    @property
    def user(self) -> str | None:
        """By the record, else by a log."""
        named = [row["user"] for row in (*([self.record] if self.record else []), *self.runs) if row["user"]]
        return str(named[0]) if named else None


def job_page(
    opened: StoreAnalyses, job_id: str, scope: Scope | None = None, options: JobPageOptions | None = None
) -> JobPage:
    """The page; the scope's window chooses among several jobs of one id."""
    asked, chosen = scope or Scope(), options or JobPageOptions()
    check_filesystems(chosen.filesystems, {*opened.store.targets_by_filesystem(), *names_in_runs(opened, "filesystem")})
    job = _stored_job(opened, job_id, asked, chosen)
    advice = advice_of(opened, job.runs)
    uses, missing = _uses(opened, job, chosen)
    explanation, why_not = _verdict(opened, job, uses, chosen.names)
    counted = job.report.findings if job.report is not None else ()
    return JobPage(
        uses=uses,
        advice=advice_lines(advice, counted),
        is_judged=advice is not None or (job.report is not None and bool(job.report.filesystems)),
        runs=len(job.runs),
        io_core_hours=None if advice is None else advice.core_hours,
        explanation=explanation,
        missing=[*_missing_layers(job), *missing, *why_not, *_not_judged(advice, job.report)],
        notes=[*job.notes, *(job.report.notes if job.report is not None else ())],
        **_identity(job),
    )


def _stored_job(opened: StoreAnalyses, job_id: str, asked: Scope, options: JobPageOptions) -> StoredJob:
    record, notes = _record(opened, job_id, asked, options.cluster)
    runs = [row for row in StoredRuns(opened.store).named(job_id) if row["job_id"] == job_id and _is_of(row, record)]
    report = _report(opened, job_id, record, options)
    served = _served(opened, job_id, record)
    if record is None and not runs and report is None and not served:
        raise unknown_name(opened, "job", job_id, _known_jobs(opened))
    return StoredJob(job_id, record, runs, report, served, notes)


def _record(opened: StoreAnalyses, job_id: str, asked: Scope, cluster: str | None) -> tuple[Row | None, list[str]]:
    """The last record of the id in the window, and what is to be said of others."""
    found: list[dict[str, Any]] = opened.store.jobs(asked.since, asked.until, job_id=job_id)
    rows = [row for row in found if cluster in (None, row["cluster"])]
    clusters = sorted({str(row["cluster"]) for row in rows})
    if len(clusters) > 1:
        raise UsageError(f"several clusters have a job {job_id}: {', '.join(clusters)}; choose with --cluster")
    notes = [f"the id was used {len(rows)} times: this is the last"] if len(rows) > 1 else []
    return (rows[-1] if rows else None), notes


def _is_of(run: Row, record: Row | None) -> bool:
    """Whether a run began in the time of the record."""
    return record is None or record["start"] - SLACK_US <= run["start"] <= record["time"] + SLACK_US


def _report(opened: StoreAnalyses, job_id: str, record: Row | None, options: JobPageOptions) -> JobReport | None:
    """By counters of the job's nodes; None: there are none."""
    cluster = None if record is None else record["cluster"]
    try:
        report = report_of_opened_job(opened.store, job_id, cluster, thresholds_of(opened), name_others=options.names)
    except InputError:
        return None
    return report if report.filesystems and _is_in(report.start, record) else None


def _is_in(start: datetime | None, record: Row | None) -> bool:
    """Whether a report is of the same start of the job as the record."""
    if record is None or start is None:
        return True
    return bool(record["start"] - SLACK_US <= epoch_us(start) <= record["time"] + SLACK_US)


def _served(opened: StoreAnalyses, job_id: str, record: Row | None) -> dict[str, ServedJob]:
    """What job_stats tell, by file system."""
    result = {}
    for name in sorted(opened.store.targets_by_filesystem()):
        parts_of = _parts_of(opened, name)
        scope = Scope(name)
        if record is not None:
            first_us, last_us = max(record["start"] - AROUND_US, 0), record["time"] + AROUND_US
            scope = Scope(name, from_epoch_us(first_us), from_epoch_us(last_us))
        served = opened.ask(lambda selection, parts_of=parts_of: served_job(selection, job_id, parts_of), scope)
        if served is not None and (record is None or served.end_us > record["start"] - SLACK_US):
            result[name] = served
    return result


def _parts_of(opened: StoreAnalyses, filesystem: str) -> PartsOf:
    return parts_by(opened.config.filesystem(filesystem).jobid_name)


def _known_jobs(opened: StoreAnalyses) -> set[str]:
    """Ids of records, logs and job_stats."""
    ids = {str(row["job_id"]) for row in opened.store.jobs()} | names_in_runs(opened, "job_id")
    for name in opened.store.targets_by_filesystem():
        parts_of = _parts_of(opened, name)
        served = opened.ask(lambda selection: served_ids(selection) if selection.holds("job_io") else [], name)
        ids |= {job for text in served if (job := parts_of(text).job_id) is not None}
    return ids


def _uses(opened: StoreAnalyses, job: StoredJob, options: JobPageOptions) -> tuple[list[JobUse], list[MissingPart]]:
    """By file system: those asked for, or all that the job is known to have used."""
    telemetry = set(opened.store.targets_by_filesystem())
    by_log = {_filesystem_of(row, telemetry) for row in job.runs}
    by_nodes = {part.filesystem for part in job.report.filesystems} if job.report is not None else set()
    names = sorted({*by_log, *by_nodes, *job.served} - {None}, key=str)
    names += [None] if None in by_log and not options.filesystems else []
    uses, missing = [], []
    for name in options.filesystems or names:
        use, more = _use(opened, job, name, telemetry, options.names)
        uses.append(use)
        missing += more
    return uses, missing


def _filesystem_of(run: Row, telemetry: set[str]) -> str | None:
    """That of the log; where it names none, the only one there is."""
    return run["filesystem"] or (next(iter(telemetry)) if len(telemetry) == 1 else None)


def _use(
    opened: StoreAnalyses, job: StoredJob, name: str | None, telemetry: set[str], names: bool
) -> tuple[JobUse, list[MissingPart]]:
    logged = _logged([row for row in job.runs if _filesystem_of(row, telemetry) == name])
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
    parts_of = _parts_of(opened, name)

    def is_own(line: WhoShare) -> bool:
        return line.name == job.job_id or parts_of(line.name).job_id == job.job_id

    served = job.served.get(name)
    osts = [target for target in (served.targets if served else ()) if kind_by_name(target) == "ost"]
    there = blame
    if osts and len(osts) < len(blame.targets):
        there = _blame(opened, job, name, tuple(osts))[0] or blame
    beside = company(there, is_own, job.user, osts, names)
    return disk_cost([blame], is_own), served_totals(blame, is_own), beside


def _verdict(
    opened: StoreAnalyses, job: StoredJob, uses: Sequence[JobUse], names: bool
) -> tuple[RunExplanation | None, list[MissingPart]]:
    if not job.runs and job.record is None:
        return None, [MissingPart(WHAT, "neither a log nor a scheduler's record of it is stored")]
    return verdict_of(opened, *_explained(opened, job, uses), names)


def _explained(opened: StoreAnalyses, job: StoredJob, uses: Sequence[JobUse]) -> tuple[str, Scope]:
    """What is explained: the longest run, else the job; on its file system, else the one with most disk time."""
    telemetry = set(opened.store.targets_by_filesystem())
    by_cost = sorted(uses, key=lambda use: use.cost.disk_seconds or 0.0 if use.cost else -1.0, reverse=True)
    names = [use.filesystem for use in by_cost if use.filesystem in telemetry]
    if not job.runs:
        return job.job_id, Scope(names[0] if names else None)
    longest = max(job.runs, key=lambda row: row["duration_s"] or 0.0)
    own = _filesystem_of(longest, telemetry)
    return str(longest["run_id"]), Scope(own if own in telemetry else None)


def _identity(job: StoredJob) -> dict[str, Any]:
    record, runs = job.record, job.runs
    start_us, end_us, times_from = job.times
    is_running = record is not None and record["ended"] is False
    known = {name: None if record is None else record[name] for name in ("cluster", "project", "name", "state")}
    sizes = {name: _size(job, name) for name in ("nodes", "processes")}
    cores = None if record is None else record["cores"]
    return {
        **known,
        **sizes,
        "job_id": job.job_id,
        "user": job.user,
        "programs": sorted({str(row["executable"]) for row in runs if row["executable"]}),
        "start": from_epoch_us(start_us),
        "times_from": times_from,
        "end": None if is_running else from_epoch_us(end_us),
        "cores": cores,
        "core_hours": _core_hours(job, cores),
    }


def _size(job: StoredJob, name: str) -> int | None:
    """By the record, else by the largest run, else by the samples of nodes."""
    if job.record is not None and job.record[name] is not None:
        return int(job.record[name])
    known = [row[name] for row in job.runs if row[name] is not None]
    if known:
        return int(max(known))
    return None if job.report is None else getattr(job.report, name)


def _core_hours(job: StoredJob, cores: int | None) -> float | None:
    """Cores × time; without a record, processes × time of the runs."""
    if cores is not None:
        start_us, end_us, _ = job.times
        return cores * (end_us - start_us) / 1e6 / HOUR_S
    known = [row["processes"] * row["duration_s"] for row in job.runs if row["processes"] and row["duration_s"]]
    return sum(known) / HOUR_S if known else None


def _missing_layers(job: StoredJob) -> list[MissingPart]:
    missing = []
    if job.record is None:
        missing.append(MissingPart("its project, state and cores", "no scheduler's record of the job is stored"))
    if not job.runs:
        what = "which files it used, in which accesses, and how long it waited for them"
        missing.append(MissingPart(what, "no Darshan log of the job is stored"))
    if job.report is None:
        missing.append(MissingPart("what its nodes counted", "no samples of its nodes are stored"))
    if not job.served:
        missing.append(
            MissingPart("which servers it used", "job_stats of the servers do not name it, or are not stored")
        )
    return missing


def _not_judged(advice: RunAdvice | None, report: JobReport | None) -> list[MissingPart]:
    """Rules that neither a log nor counters could answer."""
    by_log = {item.code: item.reason for item in (advice.not_evaluated if advice is not None else ())}
    by_nodes = {item.code: item.reason for item in (report.not_evaluated if report is not None else ())}
    if advice is None or report is None:
        open_ = by_log | by_nodes
    else:
        open_ = {code: reason for code, reason in by_log.items() if code in by_nodes}
    return (
        [MissingPart(f"whether {', '.join(sorted(open_))} applies", "the counters for it are not stored")]
        if open_
        else []
    )
