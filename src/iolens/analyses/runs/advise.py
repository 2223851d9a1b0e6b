"""What to change first, over one run or many: findings by user and program, ranked by the core-hours they are about."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from iolens.analyses.runs.summary import RunSummary
from iolens.findings import SEVERITIES
from iolens.findings.rule import Finding, NotEvaluated

HOUR_S: Final = 3600.0

Order = Literal["core-hours", "severity"]


def _io(run: RunSummary, finding: Finding) -> float | None:
    return run.io_core_hours


def _metadata(run: RunSummary, finding: Finding) -> float | None:
    return None if run.metadata_s is None else run.metadata_s / HOUR_S


def _written(run: RunSummary, finding: Finding) -> float | None:
    return None if run.write_s is None else run.write_s / HOUR_S


def _read(run: RunSummary, finding: Finding) -> float | None:
    return None if run.read_s is None else run.read_s / HOUR_S


def _waited(run: RunSummary, finding: Finding) -> float | None:
    """All ranks wait for the slowest."""
    slowest_s, mean_s = (float(finding.evidence[name]) for name in ("slowest_rank_s", "mean_rank_s"))
    return (slowest_s - mean_s) * int(finding.evidence["processes"]) / HOUR_S


def _of_direction(run: RunSummary, finding: Finding) -> float | None:
    return _BY_ACCESSES[str(finding.evidence["accesses"])](run, finding)


CoreHours = Callable[[RunSummary, Finding], "float | None"]

_BY_ACCESSES: Final[Mapping[str, CoreHours]] = {"reads": _read, "writes": _written, "reads and writes": _io}
ABOUT: Final[Mapping[str, CoreHours]] = {
    "metadata-bound": _metadata,
    "file-per-process": _metadata,
    "many-opens": _metadata,
    "rank-imbalance": _waited,
    "single-writer": _written,
    "redundant-reads": _read,
    "small-accesses": _of_direction,
    "random-access": _of_direction,
}
"""The part of a run's I/O that a finding is about; the whole of it where a rule is not named here."""


@dataclass(frozen=True, slots=True)
class AdviceLine:
    """One finding of one user's program, over the runs that show it."""

    code: str
    severity: str
    user: str | None
    executable: str | None
    runs: int
    core_hours: float | None  # that these runs spent in the I/O it is about
    core_hours_lost: float | None  # of them, by the estimated gain; None: no gain is known
    estimated_gain: float | None  # the median of the runs that have one
    gain_from: str | None
    jobid: str | None  # of the run that is shown: that with most core-hours
    run_id: str | None
    message: str
    evidence: Mapping[str, float | int | str]
    remedy: str
    reference: str


@dataclass(frozen=True, slots=True)
class RunAdvice:
    """Lines in order; what could not be judged, by code, with the number of runs."""

    runs: int
    runs_without_findings: int
    left_out: int  # runs with the least I/O time, beyond the number that was looked at
    order: Order
    core_hours: float | None  # of all runs in I/O calls
    lines: Sequence[AdviceLine]
    not_evaluated: Sequence[NotEvaluated]


def run_advice(runs: Sequence[RunSummary], order: Order = "core-hours", left_out: int = 0) -> RunAdvice:
    """Findings of all runs, those of the same user, program and code as one."""
    groups: dict[tuple[str, str | None, str | None], list[tuple[RunSummary, Finding]]] = {}
    for run in runs:
        for finding in run.findings:
            groups.setdefault((finding.code, run.user, run.executable), []).append((run, finding))
    lines = [_line(members) for members in groups.values()]
    hours = [run.io_core_hours for run in runs if run.io_core_hours is not None]
    return RunAdvice(
        len(runs),
        sum(not run.findings for run in runs),
        left_out,
        order,
        sum(hours) if hours else None,
        sorted(lines, key=_KEYS[order]),
        list(dict.fromkeys(item for run in runs for item in run.not_evaluated)),
    )


def _line(members: Sequence[tuple[RunSummary, Finding]]) -> AdviceLine:
    hours = [ABOUT.get(finding.code, _io)(run, finding) for run, finding in members]
    known = [value for value in hours if value is not None]
    run, finding = max(zip(hours, members, strict=True), key=lambda pair: pair[0] or 0.0)[1]
    gains = sorted(finding.estimated_gain for _, finding in members if finding.estimated_gain is not None)
    lost = [
        value * (1 - 1 / finding.estimated_gain)
        for value, (_, finding) in zip(hours, members, strict=True)
        if value is not None and finding.estimated_gain
    ]
    return AdviceLine(
        finding.code,
        finding.severity,
        run.user,
        run.executable,
        len({id(run) for run, _ in members}),
        sum(known) if known else None,
        sum(lost) if lost else None,
        gains[len(gains) // 2] if gains else None,
        next((finding.gain_from for _, finding in members if finding.gain_from), None),
        run.jobid,
        run.run_id,
        finding.message,
        finding.evidence,
        finding.remedy,
        finding.reference,
    )


def _by_hours(line: AdviceLine) -> tuple[float, int]:
    return -(line.core_hours or 0.0), SEVERITIES.index(line.severity)


def _by_severity(line: AdviceLine) -> tuple[int, float]:
    return SEVERITIES.index(line.severity), -(line.core_hours or 0.0)


_KEYS: Final[Mapping[Order, Callable[[AdviceLine], tuple[float, float]]]] = {
    "core-hours": _by_hours,
    "severity": _by_severity,
}
