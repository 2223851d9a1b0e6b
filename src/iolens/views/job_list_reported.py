"""Jobs in the report: those that moved most, and what the first of them did, with findings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from iolens.units import format_bytes, format_bytes_si
from iolens.views import job_list as listed
from iolens.views.render import tables as t
from iolens.views.render.section import Answer, Part, ReportSection
from iolens.visible_text import counted
from iolens.visible_text import listed as listed_names

if TYPE_CHECKING:
    from iolens.analyses.job_list import ListedJob
    from iolens.analyses.job_list_reported import ReportedJobs
    from iolens.analyses.job_report import JobFileSystem, JobReport


REPORT_ORDER: Final = 60
WELL_OBSERVED_PCT: Final = 99.0
NAMED: Final = 3


def report_answers(result: ReportedJobs) -> list[Answer]:
    """Who moved most."""
    most = max(map(_moved, result.listed.jobs), default=0)
    if not most:
        return []
    first = [_words(job) for job in result.listed.jobs if _moved(job) == most]
    words = f"Of {counted(result.listed.jobs_known, 'job')} with counters, {listed_names(first, NAMED)} moved most."
    return [Answer("who", (words,), is_detail=True)]


def report_sections(result: ReportedJobs) -> list[ReportSection]:
    """The list, then a section for each job that is reported in full."""
    if not result.listed.jobs:
        return []
    return [
        ReportSection("Jobs", tuple(listed.tables(result.listed)), "who"),
        *(
            _section(result.filesystem, job, report)
            for job, report in zip(result.listed.jobs, result.reports, strict=False)
        ),
    ]


def report_methods(results: Sequence[ReportedJobs]) -> list[ReportSection]:
    """Where the numbers of jobs come from."""
    if not any(result.listed.jobs for result in results):
        return []
    return [
        ReportSection(
            "Jobs",
            (
                "Bytes and opens of a job are those its nodes counted, from samples at its begin and end where there"
                " are any, else from intervals of its nodes while it ran. They include what the clients' caches served;"
                " RPCs are what went over the network. Counters belong to a node, not to a job: jobs that shared a node"
                " count what the others did there.",
            ),
        )
    ]


def _moved(job: ListedJob) -> int:
    return (job.read_bytes or 0) + (job.write_bytes or 0)


def _words(job: ListedJob) -> str:
    owner = f" of {job.user}" if job.user else ""
    return f"job {job.jobid} ({job.name or 'no name'}{owner}, {format_bytes_si(_moved(job))})"


def _section(filesystem: str, job: ListedJob, report: JobReport) -> ReportSection:
    """One job on this file system."""
    parts: list[Part] = []
    if job.observed_pct is not None and job.observed_pct < WELL_OBSERVED_PCT:
        parts.append(f"The counters cover {t.show_whole_percent(job.observed_pct)} % of the time of its nodes.")
    parts += [f"Not complete: {item.node}: {item.reason}." for item in report.missing_nodes[:4]]
    for part in report.filesystems:
        if part.filesystem == filesystem:
            parts += [_sizes(part), *([_operations(part)] if part.metadata else [])]
    parts += [
        f"{finding.severity.capitalize()}: {finding.message}. {finding.remedy}"
        for finding in report.findings
        if finding.evidence["filesystem"] == filesystem
    ]
    return ReportSection(f"Job {report.jobid}: {report.name or 'no name'}", tuple(parts), "who")


def _sizes(part: JobFileSystem) -> t.TableView:
    columns = (t.text("size", "RPC size, up to"), t.count("reads", "Reads"), t.count("writes", "Writes"))
    rows = [(format_bytes(size.size_bytes), size.reads, size.writes) for size in part.rpc_sizes]
    moved = " and ".join(
        f"{format_bytes_si(count)} {word}"
        for count, word in ((part.read_bytes, "read"), (part.write_bytes, "written"))
        if count is not None
    )
    return t.TableView("RPCs by size", columns, rows, f"{moved}." if moved else "")


def _operations(part: JobFileSystem) -> t.TableView:
    columns = (t.text("operation", "Operation"), t.count("count", "Count"))
    return t.TableView("Metadata operations", columns, list(part.metadata.items()))
