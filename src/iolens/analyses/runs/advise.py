"""What to change first, over one run or many: findings by user and program, ranked by the core-hours they are about.

Findings of one run may be about the same time: their core-hours do not add up, and none has more than the run spent in
I/O. A finding stands before those that it explains (DEFINITIONS, Order of findings).
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal

from iolens.analyses.runs.summary import RunSummary
from iolens.findings import SEVERITIES
from iolens.findings.rule import Finding, NotEvaluated

HOUR_S: Final = 3600.0

Order = Literal["core-hours", "severity"]


NEAR: Final = 2.0  # findings of a program that are about at least half of its largest time stand by importance


@dataclass(frozen=True, slots=True)
class AdviceCase:
    """One run that shows a finding on something that others use as well, such as an OST."""

    run_id: str | None
    jobid: str | None
    user: str | None
    executable: str | None
    message: str


@dataclass(frozen=True, slots=True)
class AdviceLine:
    """One finding of one user's program, over the runs that show it."""

    code: str
    severity: str
    user: str | None
    executable: str | None
    runs: int
    core_hours: float | None  # that these runs spent in the I/O it is about; other lines may be about the same
    core_hours_lost: float | None  # of them, by the estimated gain; None: no gain is known
    estimated_gain: float | None  # the median of the runs that have one
    gain_from: str | None
    jobid: str | None  # of the run that is shown: that with most core-hours
    run_id: str | None
    message: str
    evidence: Mapping[str, float | int | str]
    remedy: str
    reference: str
    shares_time_with: Sequence[str] = ()  # codes of lines of the same runs that are about the same time
    subject: str | None = None  # what it is about where that is not a program, such as an OST
    cases: Sequence[AdviceCase] = ()  # then: its runs


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
    groups: dict[Hashable, list[_SeenFinding]] = {}
    for run in runs:
        for place, finding in enumerate(run.findings):
            who = (finding.subject, run.filesystem) if finding.subject else (None, run.user, run.executable)
            groups.setdefault((finding.code, who), []).append(_SeenFinding(run, finding, place))
    lines = [_RankedLine.of(seen) for seen in groups.values()]
    beside = _beside(lines)
    hours = [run.io_core_hours for run in runs if run.io_core_hours is not None]
    return RunAdvice(
        len(runs),
        sum(not run.findings for run in runs),
        left_out,
        order,
        sum(hours) if hours else None,
        [_shared(line, beside) for line in sorted(lines, key=lambda line: _key(line, beside, order))],
        list(dict.fromkeys(item for run in runs for item in run.not_evaluated)),
    )


@dataclass(frozen=True, slots=True)
class _SeenFinding:
    """A finding of a run, and its place among those of the run."""

    run: RunSummary
    finding: Finding
    place: int

    @property
    def core_hours(self) -> float | None:
        return None if self.finding.io_s is None else self.finding.io_s / HOUR_S


@dataclass(frozen=True, slots=True, eq=False)
class _RankedLine:
    """A line with what its order needs."""

    advice: AdviceLine
    runs: frozenset[int]
    kinds: frozenset[str]
    explained_by: frozenset[str]
    place: int  # the least of its runs

    @classmethod
    def of(cls, seen: Sequence[_SeenFinding]) -> _RankedLine:
        kinds, codes = ({name for shown in seen for name in names(shown.finding)} for names in (_kinds, _reasons))
        return cls(
            _advice(seen),
            frozenset(id(shown.run) for shown in seen),
            frozenset(kinds),
            frozenset(codes),
            min(shown.place for shown in seen),
        )

    @property
    def hours(self) -> float:
        return self.advice.core_hours or 0.0


def _kinds(finding: Finding) -> Sequence[str]:
    return finding.io_kinds


def _reasons(finding: Finding) -> Sequence[str]:
    return finding.explained_by


def _beside(lines: Sequence[_RankedLine]) -> dict[_RankedLine, list[_RankedLine]]:
    """For each line those, itself among them, that some of its runs show as well."""
    by_run: dict[int, list[_RankedLine]] = {}
    for line in lines:
        for run in line.runs:
            by_run.setdefault(run, []).append(line)
    return {line: [*dict.fromkeys(other for run in line.runs for other in by_run[run])] for line in lines}


def _shared(line: _RankedLine, beside: Mapping[_RankedLine, Sequence[_RankedLine]]) -> AdviceLine:
    """With the codes of lines that are about the same time."""
    others = (other.advice.code for other in beside[line] if other is not line and line.kinds & other.kinds)
    return replace(line.advice, shares_time_with=tuple(dict.fromkeys(others)))


def _key(line: _RankedLine, beside: Mapping[_RankedLine, Sequence[_RankedLine]], order: Order) -> tuple[float, ...]:
    severity = SEVERITIES.index(line.advice.severity)
    hours = _ranked_hours(line, beside)
    return (severity, -hours, line.place) if order == "severity" else (-hours, line.place, severity)


def _ranked_hours(line: _RankedLine, beside: Mapping[_RankedLine, Sequence[_RankedLine]]) -> float:
    """Those of the largest line of its runs where it has about as many, or of what it explains."""
    largest = max(other.hours for other in beside[line])
    if NEAR * line.hours >= largest:
        return largest
    explained = (other for other in beside[line] if line.advice.code in other.explained_by)
    return max([line.hours, *(_ranked_hours(other, beside) for other in explained)])


def _advice(seen: Sequence[_SeenFinding]) -> AdviceLine:
    known = [shown.core_hours for shown in seen if shown.core_hours is not None]
    first = max(seen, key=lambda shown: shown.core_hours or 0.0)
    run, finding = first.run, first.finding
    gains = sorted(shown.finding.estimated_gain for shown in seen if shown.finding.estimated_gain is not None)
    lost = [
        shown.core_hours * (1 - 1 / shown.finding.estimated_gain)
        for shown in seen
        if shown.core_hours is not None and shown.finding.estimated_gain
    ]
    return AdviceLine(
        finding.code,
        finding.severity,
        _common({shown.run.user for shown in seen}),
        _common({shown.run.executable for shown in seen}),
        len({id(shown.run) for shown in seen}),
        sum(known) if known else None,
        sum(lost) if lost else None,
        gains[len(gains) // 2] if gains else None,
        next((shown.finding.gain_from for shown in seen if shown.finding.gain_from), None),
        run.jobid,
        run.run_id,
        finding.message,
        finding.evidence,
        finding.remedy,
        finding.reference,
        subject=finding.subject,
        cases=[_case(shown) for shown in seen] if finding.subject else [],
    )


def _case(seen: _SeenFinding) -> AdviceCase:
    run = seen.run
    return AdviceCase(run.run_id, run.jobid, run.user, run.executable, seen.finding.message)


def _common(names: set[str | None]) -> str | None:
    """The name that all have."""
    return next(iter(names)) if len(names) == 1 else None
