"""Core-hours lost to slow I/O by application and project, and which fix pays most (SPEC B9)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from iolens.analyses.lost.losses import FEWEST, HOUR_S, RunLosses, run_losses
from iolens.analyses.runs.asked import OverRuns, window_of
from iolens.analyses.runs.run_conditions import UNKNOWN, RunConditions
from iolens.findings.rule import Finding
from iolens.store.selection import StoreSelection

MOST_SHOWN: Final = 20
MOST_RUNS: Final = 1000  # whose findings are looked at, those that lost most
SAMPLE: Final = 50  # runs of one history that tell how slow those without a finding are


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
    """A finding, and what the runs that show it lost; a run that shows several counts in each.

    A run regains the time beyond what it would take if it were as slow as runs of its history without the finding.
    """

    code: str
    severity: str
    runs: int
    core_hours_lost: float
    lost_pct: float | None
    core_hours_regained: (
        float | None
    )  # of the `runs_measured`; None: no run has five of its history without the finding
    runs_measured: int
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
    worst = _worst(losses, most)
    sample = _sample(losses, worst, most)
    places = list(dict.fromkeys([*worst, *sample]))
    by_id = {run.run_id: run for run in judge([str(losses.names["run_id"][place]) for place in places])}
    seen = {place: by_id[run_id] for place in places if (run_id := losses.names["run_id"][place]) in by_id}
    judged = {place: seen[place] for place in worst if place in seen}
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
        fixes=_fixes(judged, {place: seen[place] for place in sample if place in seen}, losses, whole),
        runs_judged=len(judged),
        judged_lost_pct=_pct(float(lost[list(judged)].sum()), whole),
        runs_without_findings=sum(not run.findings for run in judged.values()),
    )


def _worst(losses: RunLosses, most: int) -> list[int]:
    """Places of runs that lost anything, most first."""
    lost = np.nan_to_num(losses.lost)
    order = np.argsort(-lost, kind="stable")[:most]
    return [int(place) for place in order if lost[place] > 0]


def _sample(losses: RunLosses, worst: Sequence[int], most: int) -> list[int]:
    """Of the histories of the worst, at most `most` runs: the first by id, which is as good as drawn."""
    chosen: list[int] = []
    for history in dict.fromkeys(losses.history[list(worst)].tolist()):
        chosen += np.flatnonzero(losses.history == history)[:SAMPLE].tolist()
    return chosen[:most]


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


def _fixes(
    judged: Mapping[int, JudgedRun], sample: Mapping[int, JudgedRun], losses: RunLosses, whole: float | None
) -> list[PayingFix]:
    """What is known to bring most back first, then that whose runs lost most."""
    by_code: dict[str, dict[int, Finding]] = {}
    importance: dict[str, int] = {}  # the best place that a finding has among those of a run
    for place, run in judged.items():
        for number, finding in enumerate(run.findings):
            by_code.setdefault(finding.code, {})[place] = finding
            importance[finding.code] = min(number, importance.get(finding.code, number))
    lost = losses.lost
    fixes = []
    for code, members in by_code.items():
        most = max(members, key=lambda place: lost[place])
        run, finding, hours = judged[most], members[most], float(lost[list(members)].sum())
        regained = _regained(code, list(members), sample, losses)
        fixes.append(
            PayingFix(
                code, finding.severity, len(members), hours, _pct(hours, whole), sum(regained) if regained else None,
                len(regained), run.executable, run.run_id, run.job_id, finding.message, finding.remedy,
            )
        )  # fmt: skip
    return sorted(
        fixes, key=lambda fix: (-(fix.core_hours_regained or 0.0), -fix.core_hours_lost, importance[fix.code], fix.code)
    )


def _regained(code: str, places: Sequence[int], sample: Mapping[int, JudgedRun], losses: RunLosses) -> list[float]:
    """Core-hours of each run whose history has enough runs without the finding in the sample."""
    slowness, hours = losses.slowness, []
    without: dict[int, list[float]] = {}
    for place, run in sample.items():
        if np.isfinite(slowness[place]) and code not in {finding.code for finding in run.findings}:
            without.setdefault(int(losses.history[place]), []).append(float(slowness[place]))
    usual = {history: float(np.median(values)) for history, values in without.items() if len(values) >= FEWEST}
    for place in places:
        if (factor := usual.get(int(losses.history[place]))) is not None:
            beyond_s = losses.io_s[place] - factor * losses.expected_s[place]
            hours.append(float(losses.cores[place] * max(beyond_s, 0.0)) / HOUR_S)
    return hours


def _known_sum(values: Any) -> float | None:
    known = values[~np.isnan(values)]
    return float(known.sum()) if known.size else None


def _pct(part: float | None, whole: float | None) -> float | None:
    return 100.0 * part / whole if whole and part is not None else None
