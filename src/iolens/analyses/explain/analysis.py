"""Was it me or the system: one run against like runs and the state of the file system at their times (SPEC B9).

Definitions are those of DEFINITIONS, "Was it me"; which runs each number is taken over stands in docs/explain.md.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Final

import numpy as np

from iolens.analyses.calibration.state import NO_FSU, HoldsDiskTime, calibration_of_result
from iolens.analyses.explain.history import IN_ALL, RunAndHistory, compared_runs, targets_of_runs
from iolens.analyses.explain.results import (
    OWN,
    SYSTEM,
    ExplainedFactor,
    FactorValues,
    HistorySeries,
    LastingChange,
    LikeHistory,
    RunLoad,
    RunNeighbour,
    RunOrder,
    RunPerformance,
    UnknownFactor,
    Verdict,
    judged,
    verdict_of,
)
from iolens.analyses.explain.system_factors import WHY_UNKNOWN, SystemState, load_of_steps, own_factors, system_state
from iolens.analyses.explain.window_sums import ObservedSystem, RunWindow
from iolens.analyses.results import not_in_json, not_nan
from iolens.analyses.runs.timeline import run_timeline
from iolens.analyses.runs.used_files import RunRecord
from iolens.arrays import Floats, Integers
from iolens.findings.rule import Finding
from iolens.models.trend import percentile_of
from iolens.store.selection import StoreSelection
from iolens.units import epoch_us, from_epoch_us

MOST_STEPS: Final = 200  # of a run's time in a figure
HOUR_S: Final = 3600.0
NO_LOG: Final = "no Darshan log of the job is stored"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunExplanation(HoldsDiskTime):
    """Why a run was slow, or that it was not. What is not known is null and listed in `not_known`."""

    run: str | None
    verdict: Verdict
    slow: bool | None
    performance: RunPerformance
    own: list[ExplainedFactor]
    system: list[ExplainedFactor]
    neighbours: list[RunNeighbour]
    neighbours_on: list[str]  # OSTs that the neighbours were on, where they are not all of `targets`
    core_hours_lost: float | None
    history: LikeHistory
    fall: LastingChange | None  # of performance, before the run or with it, if it stayed low
    filesystem: str | None
    job_id: str | None
    user: str | None
    project: str | None
    executable: str | None
    window_start: datetime
    window_end: datetime
    io_time_s: float | None  # of the slowest rank
    history_median_io_time_s: float | None
    cores: int | None
    targets: list[str]
    targets_known: bool  # false: all OSTs of the file system
    targets_from: str | None  # log, option or job_stats; null: not known
    method: str | None  # how the job's own share of the load was found: job_stats or overlap
    calibrations: list[str]
    not_known: list[UnknownFactor]
    notes: list[str]
    slow_osts: list[Finding] = field(default_factory=list)  # of its files, by their times in the log
    series: HistorySeries | None = not_in_json()
    load: RunLoad | None = not_in_json()

    @property
    def evidence(self) -> list[ExplainedFactor]:
        """The named factors: what changed for good first, then by the smallest p."""
        return sorted((line for line in (*self.own, *self.system) if line.named), key=_rank)


def _rank(line: ExplainedFactor) -> tuple[bool, float]:
    p = line.p_holm if line.change is None else line.change.p
    return line.change is None, 1.0 if p is None else p


def explained_run(
    runs: StoreSelection,
    run_id: str,
    system: ObservedSystem | None,
    why_not: str = "",
    notes: Sequence[str] = (),
    slow_osts: Sequence[Finding] = (),
) -> RunExplanation:
    """One run of the store; without a system only by its own factors, and `why_not` says what is missing."""
    compared = compared_runs(runs, run_id)
    windows = _windows(runs, system, compared)
    state = None if system is None else _state(system, compared, windows)
    order = _order(compared)
    fall = order.fall if compared.is_enough else None
    is_slow = _is_slow(compared, order, fall)
    factors = [
        *own_factors(compared),
        *([] if state is None else state.factors(_history(compared), compared.metadata_time_pct)),
    ]
    lines = judged(factors, compared.is_enough, bool(is_slow), order, fall)
    own = lines[: len(OWN)]
    by_system = lines[len(OWN) :] if state is not None else [*map(_without_value, SYSTEM)]
    io_time_s, median_s = _io_times(compared)
    return RunExplanation(
        run=run_id,
        verdict=verdict_of(own, by_system, is_slow, bool(slow_osts)),
        slow=is_slow,
        performance=_performance(compared),
        own=own,
        system=by_system,
        core_hours_lost=_core_hours_lost(compared),
        history=compared.history,
        fall=fall,
        job_id=windows[0].job_id,
        io_time_s=io_time_s,
        history_median_io_time_s=median_s,
        cores=_cores(compared),
        not_known=[
            *_unknown_performance(compared),
            *_unknown_own(own),
            *(_no_system(why_not) if state is None else state.unknown),
        ],
        notes=[*notes],
        slow_osts=[*slow_osts],
        series=_series(compared, factors),
        **_of_system(system, state, windows[0]),
        **{name: compared.value(name) for name in ("user", "project", "executable")},
    )


def explained_job(
    job: Mapping[str, Any], system: ObservedSystem | None, why_not: str = "", notes: Sequence[str] = ()
) -> RunExplanation:
    """A job whose log is not stored, by its row of `jobs`: the state of the file system in its time, and no verdict."""
    targets = None if system is None else system.targets
    window = RunWindow(job["job_id"], int(job["start"]), int(job["time"]), targets)
    state = None if system is None else system_state(system, [window], np.array([np.nan]))
    factors = [] if state is None else state.factors(np.empty(0))
    return RunExplanation(
        run=None,
        verdict="no log",
        slow=None,
        performance=RunPerformance(None, IN_ALL, None, None, None),
        own=[*map(_without_value, OWN)],
        system=judged(factors, is_enough=False, is_slow=False) if factors else [*map(_without_value, SYSTEM)],
        core_hours_lost=None,
        history=LikeHistory(0, relaxed=False, program_runs=0, left_out=0),
        fall=None,
        job_id=window.job_id,
        executable=None,
        io_time_s=None,
        history_median_io_time_s=None,
        not_known=[
            *(UnknownFactor(name, NO_LOG) for name in OWN),
            *(_no_system(why_not) if state is None else state.unknown),
        ],
        notes=[*notes],
        **_of_system(system, state, window),
        **{name: job[name] for name in ("user", "project", "cores")},
    )


def with_load(explained: RunExplanation, record: RunRecord | None, system: ObservedSystem) -> RunExplanation:
    """With what figures show of the run's time: the load of its targets, and its own activity."""
    start_us, end_us = (epoch_us(time) for time in (explained.window_start, explained.window_end))
    targets = frozenset(explained.targets) if explained.targets_known else None
    window = RunWindow(explained.job_id, start_us, end_us, targets)
    moved = next((line.value for line in explained.own if line.factor == "bytes"), None)
    own_bytes = float(moved) if isinstance(moved, int | float) else np.nan
    steps, fsu_pct, others_pct = load_of_steps(system, window, MOST_STEPS, own_bytes)
    ends_us = np.array([*(step.start_us for step in steps), steps[-1].end_us], np.int64)
    activity_us, rates = (np.zeros(1, np.int64), np.empty(0)) if record is None else _activity(record, start_us)
    return replace(explained, load=RunLoad(ends_us, fsu_pct, others_pct, activity_us, rates))


def _activity(record: RunRecord, start_us: int) -> tuple[Integers, Floats]:
    timeline = run_timeline(record)
    ends_us = start_us + np.rint(np.arange(timeline.bins + 1) * timeline.bin_s * 1e6).astype(np.int64)
    moved = np.array(timeline.read_bytes, float) + np.array(timeline.write_bytes, float)
    return ends_us, moved / timeline.bin_s


def _windows(runs: StoreSelection, system: ObservedSystem | None, compared: RunAndHistory) -> list[RunWindow]:
    """The times of the run and of each run of its history, in this order, and the OSTs of their files."""
    places = [compared.place, *compared.like.tolist()]
    columns = compared.runs.values
    starts_us = {str(columns["run_id"][place]): int(columns["start_us"][place]) for place in places}
    known = () if system is None else system.selection.known_targets()
    targets = targets_of_runs(runs, starts_us, known)
    return [
        RunWindow(
            columns["matched_job_id"][place] or columns["job_id"][place],
            int(columns["start_us"][place]),
            int(columns["epoch_us"][place]),
            targets.get(str(columns["run_id"][place]), None if system is None else system.targets),
        )
        for place in places
    ]


def _state(system: ObservedSystem, compared: RunAndHistory, windows: Sequence[RunWindow]) -> SystemState:
    moved = compared.runs.numbers("read_bytes") + compared.runs.numbers("write_bytes")
    return system_state(system, windows, moved[[compared.place, *compared.like]])


def _of_system(system: ObservedSystem | None, state: SystemState | None, window: RunWindow) -> dict[str, Any]:
    """What the answer says of the file system."""
    times = {"window_start": from_epoch_us(window.start_us), "window_end": from_epoch_us(window.end_us)}
    if system is None or state is None:
        nothing: dict[str, Any] = {
            "filesystem": None,
            "targets": [],
            "targets_known": False,
            "targets_from": None,
            "method": None,
            "calibrations": [],
            **NO_FSU,
        }
        return {**times, **nothing, "neighbours": [], "neighbours_on": []}
    return {
        **times,
        **(NO_FSU if state.method is None else calibration_of_result(system.applied, list(state.targets), None)),
        "filesystem": system.selection.filesystem,
        "targets": list(state.targets),
        "targets_known": state.targets_known,
        "targets_from": _origin(system, state, window),
        "method": state.method,
        "calibrations": [] if state.method is None else system.calibrations,
        "neighbours": [],
        "neighbours_on": [],
    }


def _origin(system: ObservedSystem, state: SystemState, window: RunWindow) -> str | None:
    """How the OSTs of the run are known."""
    if not state.targets_known:
        return None
    if window.targets is None:
        return "job_stats"
    return "option" if window.targets == system.targets else "log"


def _history(compared: RunAndHistory) -> Floats:
    return compared.performance[compared.like]


def _places(compared: RunAndHistory) -> Integers:
    """The places of the history and the run itself in the order of time."""
    return np.insert(compared.like, compared.itself, compared.place)


def _order(compared: RunAndHistory) -> RunOrder:
    start_us = compared.runs.numbers("start_us").astype(np.int64)
    places = _places(compared)
    return RunOrder(start_us[places], compared.itself, compared.performance[places])


def _is_slow(compared: RunAndHistory, order: RunOrder, fall: LastingChange | None) -> bool | None:
    """Below the first quartile of the history, or of what of it came before a lasting fall; None: not known."""
    value = float(compared.performance[compared.place])
    if not compared.is_enough or np.isnan(value):
        return None
    is_slow = bool(value < np.percentile(_history(compared), 25))
    if is_slow or fall is None:
        return is_slow
    return bool(value < np.percentile(order.performance[: order.place(fall)], 25))


def _performance(compared: RunAndHistory) -> RunPerformance:
    value = float(compared.performance[compared.place])
    if not compared.is_enough:
        return RunPerformance(not_nan(value), compared.unit, None, None, None)
    first, median = (float(level) for level in np.percentile(_history(compared), [25, 50]))
    return RunPerformance(not_nan(value), compared.unit, percentile_of(value, _history(compared)), first, median)


def _io_times(compared: RunAndHistory) -> tuple[float | None, float | None]:
    """I/O time of the slowest rank, of the run and in the median of its history."""
    seconds = compared.runs.numbers("rate_s")
    median_s = float(np.median(seconds[compared.like])) if compared.is_enough else None
    return not_nan(float(seconds[compared.place])), median_s


def _cores(compared: RunAndHistory) -> int | None:
    cores = compared.value("cores") or compared.value("processes")
    return None if cores is None else int(cores)


def _core_hours_lost(compared: RunAndHistory) -> float | None:
    """Cores × the I/O time beyond the history's median; None where one is not known."""
    (io_time_s, median_s), cores = _io_times(compared), _cores(compared)
    if io_time_s is None or median_s is None or cores is None:
        return None
    return cores * max(0.0, io_time_s - median_s) / HOUR_S


def _without_value(name: str) -> ExplainedFactor:
    return ExplainedFactor(name, None, None, None, None, None, 0, named=False)


def _unknown_performance(compared: RunAndHistory) -> list[UnknownFactor]:
    is_known = not np.isnan(compared.performance[compared.place])
    return [] if is_known else [UnknownFactor("performance", "the log has no bytes, or no I/O time")]


def _unknown_own(own: Sequence[ExplainedFactor]) -> list[UnknownFactor]:
    return [UnknownFactor(line.factor, WHY_UNKNOWN[line.factor]) for line in own if line.value is None]


def _no_system(reason: str) -> list[UnknownFactor]:
    return [UnknownFactor(name, reason) for name in SYSTEM]


def _series(compared: RunAndHistory, factors: Sequence[FactorValues]) -> HistorySeries:
    """The history with the run in its place by time."""
    order = _order(compared)
    values = {factor.name: order.series(factor) for factor in factors}
    is_run = (_places(compared) == compared.place).astype(np.int64)
    return HistorySeries(order.start_us, is_run, order.performance, values)
