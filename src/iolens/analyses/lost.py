"""Core-hours lost to slow I/O: of each run against its like, by application, project and finding."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import narwhals as nw
import numpy as np
import pyarrow as pa

from iolens.analyses.runs.asked import UNKNOWN, OverRuns, RunConditions, asked_runs, window_of
from iolens.analyses.runs.like_runs import like_groups
from iolens.arrays import Booleans, Floats, Integers
from iolens.findings.rule import Finding
from iolens.store.selection import StoreSelection

# Core-hours that each run of a window lost against the best quarter of its like ---------------------------------------
# DEFINITIONS, Was it me.
#
# Like runs are those of D8. Where there are fewer than five, runs of the same user, program and processes tell how fast
# the best quarter of them was, and what the run's bytes would have taken at that rate.

FEWEST: Final = 5  # like runs, the run itself among them
BEST: Final = 0.25  # of the I/O times of like runs
HOUR_S: Final = 3600.0

_NUMBERS: Final = ("processes", "files", "read_bytes", "write_bytes", "rate_bytes", "rate_s", "cores")
_NAMES: Final = ("run_id", "owner", "executable", "project")


@dataclass(frozen=True, slots=True, eq=False)
class RunLosses:
    """Runs whose I/O time is known, one in each place; NaN is not known.

    `expected_s` is the I/O time of the best quarter; `is_relaxed`: by the rate of runs that moved something else.
    Runs of the same `history` were compared with each other; −1 has none.
    """

    runs: int  # of the window
    names: dict[str, list[str | None]]
    io_s: Floats
    cores: Floats
    expected_s: Floats
    is_relaxed: Booleans
    history: Integers

    @property
    def slowness(self) -> Floats:
        """I/O time, of the expected one; NaN without a history."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return self.io_s / self.expected_s

    @property
    def core_hours(self) -> Floats:
        """Of I/O time."""
        return self.cores * self.io_s / HOUR_S

    @property
    def lost(self) -> Floats:
        """Core-hours beyond the expected time; NaN without a history."""
        return self.cores * np.maximum(self.io_s - self.expected_s, 0.0) / HOUR_S


def run_losses(selection: StoreSelection, like: RunConditions) -> RunLosses:
    """Runs of the selection that are as `like` says."""
    owner = nw.coalesce(nw.col("user"), nw.col("uid").cast(nw.String)).alias("owner")
    frame = asked_runs(selection, like).with_columns(owner).select(*_NAMES, *_NUMBERS)
    table: pa.Table = frame.collect(backend="pyarrow").to_native()
    table = table.sort_by([("run_id", "ascending")])  # whichever engine
    numbers = {name: _numbers(table, name) for name in _NUMBERS}
    is_timed = numbers["rate_s"] >= 0
    timed = {name: values[is_timed] for name, values in numbers.items()}
    kept = table.filter(pa.array(is_timed))
    names = {name: kept.column(name).to_pylist() for name in _NAMES}
    cores = np.where(timed["cores"] > 0, timed["cores"], timed["processes"])
    return RunLosses(len(table), names, timed["rate_s"], cores, *_expected(names, timed))


def _expected(names: dict[str, list[str | None]], numbers: dict[str, Floats]) -> tuple[Floats, Booleans, Integers]:
    """I/O time of the best quarter of like runs, else what its bytes take at the best quarter's rate; the history."""
    io_s, rated = numbers["rate_s"], numbers["rate_bytes"]
    moved = numbers["read_bytes"] + numbers["write_bytes"]
    owners, programs = (codes(names[name]) for name in ("owner", "executable"))
    has_owner = (owners >= 0) & ~np.isnan(numbers["processes"])
    expected, history = np.full(len(io_s), np.nan), np.full(len(io_s), -1)
    is_whole = has_owner & ~np.isnan(numbers["files"] + moved)
    if is_whole.any():
        same = [owners[is_whole], *(_whole(numbers[name], is_whole) for name in ("processes", "files"))]
        groups = like_groups(same, [_whole(numbers[name], is_whole) for name in ("read_bytes", "write_bytes")])
        expected[is_whole], history[is_whole] = group_quantile(groups, io_s[is_whole], BEST), groups
    rates = np.full(len(io_s), np.nan)
    np.divide(rated, io_s, out=rates, where=(io_s > 0) & (rated > 0))
    is_open = has_owner & (programs >= 0) & ~np.isnan(rates)
    relaxed, wider = np.full(len(io_s), np.nan), np.full(len(io_s), -1)
    if is_open.any():
        groups = like_groups([owners[is_open], programs[is_open], _whole(numbers["processes"], is_open)], [])
        relaxed[is_open] = rated[is_open] / group_quantile(groups, rates[is_open], 1 - BEST)
        wider[is_open] = groups + len(io_s)  # numbers that no group of like runs has
    is_relaxed = np.isnan(expected) & ~np.isnan(relaxed)
    expected_s = np.where(is_relaxed, relaxed, expected)
    return expected_s, is_relaxed, np.where(np.isnan(expected_s), -1, np.where(is_relaxed, wider, history))


def group_quantile(groups: Integers, values: Floats, share: float) -> Floats:
    """For each place the quantile of its group, by linear interpolation; NaN of groups of fewer than five."""
    order = np.lexsort((values, groups))
    firsts = np.flatnonzero(np.append(True, groups[order][1:] != groups[order][:-1]))
    counts = np.diff(np.append(firsts, len(order)))
    at = (counts - 1) * share
    low = np.floor(at).astype(np.int64)
    high = np.minimum(low + 1, counts - 1)
    ordered = values[order]
    levels = ordered[firsts + low] + (at - low) * (ordered[firsts + high] - ordered[firsts + low])
    result = np.empty(len(values))
    result[order] = np.repeat(np.where(counts >= FEWEST, levels, np.nan), counts)
    return result


def codes(names: Sequence[str | None]) -> Integers:
    """Equal names have equal numbers; −1 is not known."""
    places: dict[str | None, int] = {
        name: place for place, name in enumerate(sorted({n for n in names if n is not None}))
    }
    return np.array([places.get(name, -1) for name in names], np.int64)


def _whole(values: Floats, chosen: Booleans) -> Integers:
    whole: Integers = values[chosen].astype(np.int64)
    return whole


def _numbers(table: pa.Table, name: str) -> Floats:
    values: Any = table.column(name).cast(pa.float64()).to_numpy(zero_copy_only=False)
    return np.asarray(values, np.float64)


# Core-hours lost to slow I/O by application and project, and which fix pays most (SPEC B9) ----------------------------

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
