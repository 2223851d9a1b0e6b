"""The page of one job, out of whatever the store has of it: record, logs, counters of nodes, job_stats of servers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from iolens.analyses.job_page import JobPage, JobUse, MissingPart
from iolens.analyses.job_report import JobReport
from iolens.analyses.runs.advise import RunAdvice
from iolens.api.explain import WHAT, verdict_of
from iolens.api.job_use import filesystem_of, uses_of
from iolens.api.page_parts import advice_lines, advice_of, check_filesystems
from iolens.api.store_analyses import StoreAnalyses
from iolens.api.stored_job import StoredJob, stored_job
from iolens.store.scope import Scope
from iolens.units import from_epoch_us
from iolens.visible_text import counted

if TYPE_CHECKING:
    from iolens.analyses.explain.analysis import RunExplanation

HOUR_S: Final = 3600.0


@dataclass(frozen=True, slots=True)
class JobPageOptions:
    """File systems (empty: all the job used), the cluster where several have such an id, and whether to name others."""

    filesystems: tuple[str, ...] = ()
    cluster: str | None = None
    names: bool = False


def job_page(
    opened: StoreAnalyses, job_id: str, scope: Scope | None = None, options: JobPageOptions | None = None
) -> JobPage:
    """The page; the scope's window chooses among several jobs of one id."""
    asked, chosen = scope or Scope(), options or JobPageOptions()
    check_filesystems(opened, chosen.filesystems)
    job = stored_job(opened, job_id, asked, chosen.cluster, chosen.names)
    advice = advice_of(opened, job.runs)
    uses, missing = uses_of(opened, job, chosen.filesystems, chosen.names)
    explanation, why_not = _verdict(opened, job, uses, chosen.names)
    by_nodes = job.report.findings if job.report is not None else ()
    return JobPage(
        uses=uses,
        advice=advice_lines(advice, by_nodes),
        is_judged=advice is not None or (job.report is not None and bool(job.report.filesystems)),
        runs=len(job.runs),
        io_core_hours=None if advice is None else advice.core_hours,
        explanation=explanation,
        missing=[*_missing_layers(job), *missing, *why_not, *_not_judged(advice, job.report)],
        notes=[*job.notes, *(job.report.notes if job.report is not None else ())],
        **_identity(job),
    )


def _verdict(
    opened: StoreAnalyses, job: StoredJob, uses: Sequence[JobUse], names: bool
) -> tuple[RunExplanation | None, list[MissingPart]]:
    if not job.runs and job.record is None:
        return None, [MissingPart(WHAT, "neither a log nor a scheduler's record of it is stored")]
    result, why_not = verdict_of(opened, *_explained(opened, job, uses), names)
    if result is not None and result.run is not None and not job.runs:  # somebody's run whose id begins so
        return None, [MissingPart(WHAT, "no Darshan log of the job is stored")]
    return result, why_not


def _explained(opened: StoreAnalyses, job: StoredJob, uses: Sequence[JobUse]) -> tuple[str, Scope]:
    """What is explained: the longest run, else the job; on its file system, else the one with most disk time."""
    telemetry = set(opened.store.targets_by_filesystem())
    by_cost = sorted(uses, key=lambda use: use.cost.disk_seconds or 0.0 if use.cost else -1.0, reverse=True)
    names = [use.filesystem for use in by_cost if use.filesystem in telemetry]
    if not job.runs:
        return job.job_id, Scope(names[0] if names else None)
    longest = max(job.runs, key=lambda row: row["duration_s"] or 0.0)
    own = filesystem_of(longest, telemetry)
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
    elif job.report.missing_nodes:
        nodes = job.report.missing_nodes
        missing.append(MissingPart(f"what {counted(len(nodes), 'node')} of it did in all", nodes[0].reason))
    if not job.served:
        missing.append(MissingPart("what the servers counted of it", "job_stats do not name it, or are not stored"))
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
