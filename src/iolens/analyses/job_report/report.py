"""The report of one job, from rows of the client tables and what is known of the job."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace

from iolens.analyses.job_report.results import (
    ByDirection,
    JobDetails,
    JobFileSystem,
    JobReport,
    MissingNode,
    RpcSize,
)
from iolens.analyses.job_report.totals import LEAST_SIZES, SHOWN_FIRST, FileSystemTotals
from iolens.findings import Thresholds, evaluate
from iolens.findings.rule import Finding, NotEvaluated


def job_report(
    job: JobDetails,
    totals: Mapping[str, FileSystemTotals],
    missing: Sequence[MissingNode] = (),
    notes: Sequence[str] = (),
    thresholds: Thresholds | None = None,
) -> JobReport:
    """Put the report together, and ask every rule about every file system."""
    findings: list[Finding] = []
    not_evaluated: dict[NotEvaluated, None] = {}
    for name, sums in sorted(totals.items()):
        evaluation = evaluate(sums.inputs(job.processes), thresholds)
        findings += [
            replace(finding, evidence={"filesystem": name, **finding.evidence}) for finding in evaluation.findings
        ]
        not_evaluated |= dict.fromkeys(evaluation.not_evaluated)
    if not totals:
        not_evaluated |= dict.fromkeys(evaluate({}, thresholds).not_evaluated)
    seconds = [second for sums in totals.values() for second in sums.seconds.values()]
    duration_s = (job.end - job.start).total_seconds() if job.start and job.end else max(seconds, default=None)
    return JobReport(
        **asdict(job),
        duration_s=duration_s,
        missing_nodes=tuple(missing),
        filesystems=tuple(_filesystem(name, sums, duration_s) for name, sums in sorted(totals.items())),
        findings=tuple(findings),
        not_evaluated=tuple(not_evaluated),
        notes=tuple(notes),
    )


def _filesystem(name: str, sums: FileSystemTotals, job_s: float | None) -> JobFileSystem:
    sizes = sorted({*LEAST_SIZES, *sums.rpcs}) if sums.has_rpcs else []
    operations = [*SHOWN_FIRST, *sorted(set(sums.metadata) - set(SHOWN_FIRST))] if sums.has_metadata else []
    return JobFileSystem(
        name,
        len(sums.seconds),
        sums.read_bytes,
        sums.write_bytes,
        _rate(sums.read_bytes, job_s),
        _rate(sums.write_bytes, job_s),
        sums.rpc_bytes_max("read", "write"),
        sums.rpc_bytes_max("read"),
        sums.rpc_bytes_max("write"),
        tuple(
            RpcSize(size, counts["read"], counts["write"]) for size in sizes if (counts := sums.rpcs.get(size, _NONE))
        ),
        {operation: sums.metadata[operation] for operation in operations},
        ByDirection(sums.small_pct("read"), sums.small_pct("write")),
        max(sums.seconds.values(), default=None),
    )


_NONE = {"read": 0, "write": 0}


def _rate(moved: int | None, seconds: float | None) -> float | None:
    return moved / seconds if moved is not None and seconds else None
