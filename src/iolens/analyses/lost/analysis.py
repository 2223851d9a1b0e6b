"""Core-hours lost to slow I/O by application and project, and which fix pays most (SPEC B9)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from iolens.analyses.lost.losses import RunLosses, run_losses
from iolens.analyses.runs.asked import OverRuns, window_of
from iolens.analyses.runs.run_conditions import UNKNOWN, RunConditions
from iolens.findings.rule import Finding
from iolens.store.selection import StoreSelection

MOST_SHOWN: Final = 20
MOST_RUNS: Final = 1000  # whose findings are looked at, those that lost most


@dataclass(frozen=True, slots=True)
class LostByName:
    """Runs of an application or project. Core-hours lost are of the `runs_compared` alone."""

    name: str
    runs: int
    runs_compared: int
    io_core_hours: float | None
    core_hours_lost: float | None
    lost_pct: float | None  # of all that is lost
    worst_run: str | None  # that lost most


@dataclass(frozen=True, slots=True)
class PayingFix:
    """A finding, and what the runs that show it lost; a run that shows several counts in each."""

    code: str
    severity: str
    runs: int
    core_hours_lost: float
    lost_pct: float | None
    executable: str | None  # of the run that lost most
    run: str
    job_id: str | None
    message: str
    remedy: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LostCoreHours(OverRuns):
    """What is lost, where, and what would bring most of it back."""

    runs_compared: int  # with like runs, or runs of the same program
    runs_relaxed: int  # of them by the rate of runs of the same user, program and processes
    runs_without_history: int
    runs_without_time: int
    io_core_hours: float | None
    core_hours_lost: float | None
    applications: list[LostByName]
    projects: list[LostByName]
    applications_left_out: int
    projects_left_out: int
    fixes: list[PayingFix]
    runs_judged: int  # by findings: those that lost most
    judged_lost_pct: float | None  # what they lost, of all
    runs_without_findings: int


@dataclass(frozen=True, slots=True)
class JudgedRun:
    """The findings of one run."""

    run_id: str
    job_id: str | None
    executable: str | None
    findings: Sequence[Finding]


Judge = Callable[[Sequence[str]], Iterable[JudgedRun]]


def lost_core_hours(
    selection: StoreSelection,
    like: RunConditions | None = None,
    *,
    judge: Judge = lambda run_ids: (),
    top: int = MOST_SHOWN,
    most: int = MOST_RUNS,
) -> LostCoreHours:
    """Over runs that are as `like` says; `judge` gives the findings of runs, of which at most `most` are asked for."""
    losses = run_losses(selection, like or RunConditions())
    lost = losses.lost
    is_compared = ~np.isnan(lost)
    whole = float(lost[is_compared].sum()) if is_compared.any() else None
    applications, projects = (_by_name(losses, names) for names in ("executable", "project"))
    by_run = {str(losses.names["run_id"][place]): float(lost[place]) for place in _worst(losses, most)}
    judged = list(judge(list(by_run)))
    return LostCoreHours(
        **window_of(selection),
        runs=losses.runs,
        runs_compared=int(is_compared.sum()),
        runs_relaxed=int((losses.is_relaxed & is_compared).sum()),
        runs_without_history=int((~is_compared).sum()),
        runs_without_time=losses.runs - len(lost),
        io_core_hours=_known_sum(losses.core_hours),
        core_hours_lost=whole,
        applications=applications[:top],
        projects=projects[:top],
        applications_left_out=max(len(applications) - top, 0),
        projects_left_out=max(len(projects) - top, 0),
        fixes=_fixes(judged, by_run, whole),
        runs_judged=len(judged),
        judged_lost_pct=_pct(sum(by_run[run.run_id] for run in judged), whole),
        runs_without_findings=sum(not run.findings for run in judged),
    )


def _worst(losses: RunLosses, most: int) -> list[int]:
    """Places of runs that lost anything, most first."""
    lost = np.nan_to_num(losses.lost)
    order = np.argsort(-lost, kind="stable")[:most]
    return [int(place) for place in order if lost[place] > 0]


def _by_name(losses: RunLosses, column: str) -> list[LostByName]:
    """Most lost first; equal ones by name."""
    members: dict[str, list[int]] = {}
    for place, name in enumerate(losses.names[column]):
        members.setdefault(UNKNOWN if name is None else name, []).append(place)
    whole = _known_sum(losses.lost)
    lines = [_line(name, losses, np.array(places), whole) for name, places in members.items()]
    return sorted(lines, key=lambda line: (-(line.core_hours_lost or 0.0), line.name))


def _line(name: str, losses: RunLosses, places: Any, whole: float | None) -> LostByName:
    lost = losses.lost[places]
    is_compared = ~np.isnan(lost)
    most = places[int(np.nanargmax(lost))] if is_compared.any() and np.nanmax(lost) > 0 else None
    hours = _known_sum(lost)
    return LostByName(
        name=name,
        runs=len(places),
        runs_compared=int(is_compared.sum()),
        io_core_hours=_known_sum(losses.core_hours[places]),
        core_hours_lost=hours,
        lost_pct=_pct(hours, whole),
        worst_run=None if most is None else losses.names["run_id"][most],
    )


def _fixes(judged: Sequence[JudgedRun], lost: Mapping[str, float], whole: float | None) -> list[PayingFix]:
    by_code: dict[str, list[tuple[JudgedRun, Finding]]] = {}
    for run in judged:
        for finding in run.findings:
            by_code.setdefault(finding.code, []).append((run, finding))
    fixes = []
    for code, members in by_code.items():
        run, finding = max(members, key=lambda pair: lost[pair[0].run_id])
        ids = {run.run_id for run, _ in members}
        hours = sum(lost[run_id] for run_id in sorted(ids))
        fixes.append(
            PayingFix(
                code, finding.severity, len(ids), hours, _pct(hours, whole), run.executable, run.run_id, run.job_id,
                finding.message, finding.remedy,
            )
        )  # fmt: skip
    return sorted(fixes, key=lambda fix: (-fix.core_hours_lost, fix.code))


def _known_sum(values: Any) -> float | None:
    known = values[~np.isnan(values)]
    return float(known.sum()) if known.size else None


def _pct(part: float | None, whole: float | None) -> float | None:
    return 100.0 * part / whole if whole and part is not None else None
