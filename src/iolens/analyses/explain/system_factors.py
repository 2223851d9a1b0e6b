"""What a run did itself, and what the file system did in its time and in that of the runs before it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal

import numpy as np

from iolens.analyses.explain.history import RunAndHistory
from iolens.analyses.explain.results import OWN, SYSTEM, FactorValues, UnknownFactor
from iolens.analyses.explain.window_sums import (
    ObservedSystem,
    RunWindow,
    WindowTargetSums,
    byte_sums,
    disk_sums,
    fullness_at_middle,
    io_time_sums,
    job_step_us,
    operation_sums,
    own_disk_sums,
    own_operation_sums,
)
from iolens.analyses.latency.part import FAR, FEWEST_IN_PERIOD, FEWEST_PEERS
from iolens.analyses.runs.used_files import RunColumns, strategies
from iolens.arrays import Booleans, Floats
from iolens.run_tables import ACCESS_BINS, access_column

# What a run itself did ------------------------------------------------------------------------------------------------
# How much, in how many opens, in which sizes, in which order, by which strategy.

SMALL_BYTES: Final = 100 << 10  # an access of at most so much is small (DEFINITIONS, Findings)
DIFFERENCE: Final = 0.01  # like runs are taken to be equal within 1 %; of shares, one point of a hundred
_DIRECTIONS: Final = ("read", "write")

WHY_UNKNOWN: Final[Mapping[str, str]] = {
    "bytes": "the log has no bytes",
    "opens": "the log has no opens",
    "mean_access_bytes": "the log counts no reads and writes",
    "small_access_pct": "the log has no histogram of POSIX accesses",
    "sequential_pct": "the log counts no POSIX reads and writes",
    "strategy": "the log does not say how ranks share files",
}


def own_factors(compared: RunAndHistory) -> list[FactorValues]:
    """All of `OWN`, related to performance over runs of the same program, whatever they moved."""
    runs, place = compared.runs, compared.place
    strategy = strategies(runs.values)
    columns = {**own_columns(runs), "strategy": _is_same(strategy, place)}
    performance = compared.performance[compared.program]
    result = []
    for name in OWN:
        values = columns[name]
        is_share = name.endswith("_pct")
        result.append(
            FactorValues(
                name=name,
                value=float(values[place]),
                history=values[compared.like],
                related=values[compared.program],
                performance=performance,
                least_difference=100 * DIFFERENCE if is_share else DIFFERENCE * abs(float(values[place])),
                shown=strategy[place] if name == "strategy" else None,
            )
        )
    return result


def own_columns(runs: RunColumns) -> dict[str, Floats]:
    """Factors that are numbers, one for each run; NaN where a log does not tell."""
    moved = runs.numbers("read_bytes") + runs.numbers("write_bytes")
    accesses = [
        (upper, runs.numbers(access_column(direction, upper)))
        for direction in _DIRECTIONS
        for upper in (*ACCESS_BINS, None)
    ]
    small = np.sum([counts for upper, counts in accesses if upper is not None and upper <= SMALL_BYTES], axis=0)
    sequential = runs.numbers("sequential_reads") + runs.numbers("sequential_writes")
    return {
        "bytes": moved,
        "opens": runs.numbers("opens"),
        "mean_access_bytes": _quotient(moved, runs.numbers("reads") + runs.numbers("writes")),
        "small_access_pct": 100 * _quotient(small, np.sum([counts for _, counts in accesses], axis=0)),
        "sequential_pct": 100 * _quotient(sequential, runs.numbers("posix_reads") + runs.numbers("posix_writes")),
    }


def _is_same(names: np.ndarray[tuple[int, ...], np.dtype[np.object_]], place: int) -> Floats:
    """1 where a run has the strategy of this one, 0 where another; NaN where one of the two is not known."""
    if names[place] is None:
        return np.full(len(names), np.nan)
    return np.array([np.nan if name is None else float(name == names[place]) for name in names])


def _quotient(above: Floats, below: Floats) -> Floats:
    result = np.full(len(above), np.nan)
    np.divide(above, below, out=result, where=below > 0)
    return result


# What the file system did in the time of a run and of each run of its history -----------------------------------------
# On the OSTs of their files (B9).

LEAST_USED: Final = 0.01  # of a job's disk time: an OST with less is none of its own
LEAST_OBSERVED: Final = 0.5  # of a run's time: with less, the state of the file system is not known
LEAST_METADATA_PCT: Final = 10.0  # of the I/O time: with less, busy metadata servers do not make a run slow
FULL_PCT: Final = 80.0  # from here on an OST looks longer for free blocks
OTHERS_RATE: Final = "others_bytes_per_s"
LOADS: Final = ("fsu_others_pct", "mdt_ops_per_s", "imbalance")
LIMITS: Final = {"fullness_pct": FULL_PCT, "slowest_ost_ratio": FAR}  # what harms from a level on

Method = Literal["job_stats", "overlap"]


@dataclass(frozen=True, slots=True, eq=False)
class SystemState:
    """System factors of all windows by name, the run first; NaN is not known. `targets` are those of the run,
    or all where `targets_known` is false.

    `method`: how the run's own share of the load was found; None: no load is known.
    """

    values: dict[str, Floats]
    targets: Sequence[str]
    targets_known: bool
    method: Method | None
    unknown: Sequence[UnknownFactor]
    worst: Mapping[str, str] = field(default_factory=dict)  # the OST of the run that has the value, by factor

    def factors(self, performance: Floats, metadata_time_pct: float = np.nan) -> list[FactorValues]:
        """All of `SYSTEM`, related to the performance of the history; the run has so much metadata in its I/O time."""
        has_metadata = not metadata_time_pct < LEAST_METADATA_PCT  # not known: it may have
        return [
            FactorValues(
                name=name,
                value=float(values[0]),
                history=values[1:],
                related=values[1:],
                performance=performance,
                is_possible=has_metadata or name != "mdt_ops_per_s",
                harmful_from=_harmful_from(name, values[1:]),
                change_harmful_from=LIMITS.get(name, -np.inf),
                harms_by=-1 if name == "coverage_factor" else 1,
                target=self.worst.get(name),
                **self._others() if name == "coverage_factor" else {},
            )
            for name, values in ((name, self.values[name]) for name in SYSTEM)
        ]

    def _others(self) -> dict[str, Any]:
        """How much others did: their FSU, or their bytes per second where that is not known."""
        is_known = not np.isnan(self.values["fsu_others_pct"][0])
        rates = self.values["fsu_others_pct" if is_known else OTHERS_RATE]
        return {"others_rate": float(rates[0]), "others_rates": rates[1:]}


def _harmful_from(name: str, history: Floats) -> float:
    """Full and slow OSTs from a level on; of others' load and of imbalance only what is more than usual slows a run."""
    if name in LIMITS:
        return LIMITS[name]
    known = history[~np.isnan(history)]
    return float(np.median(known)) if name in LOADS and known.size else -np.inf


def system_state(system: ObservedSystem, windows: Sequence[RunWindow], own_bytes: Floats) -> SystemState:
    """Of windows with the bytes their runs moved (NaN: not known); the first is the run itself."""
    step_us = job_step_us(system, windows[0])
    own_disk, own_ops, whole = None, None, windows
    if step_us is not None:
        whole = [window.widened(step_us) for window in windows]
        own_disk, own_ops = own_disk_sums(system, whole), own_operation_sums(system, whole)
        windows, whole = (_with_used_targets(some, own_disk) for some in (windows, whole))
    disk, moved = disk_sums(system, whole), byte_sums(system, windows)
    operations = operation_sums(system, whole)
    full_pct, ratios = fullness_at_middle(system, windows), _slowness(io_time_sums(system, windows))
    all_disk_s, all_bytes = _total(disk, "disk_s", whole), _total(moved, "bytes", windows)
    own_disk_s = (
        np.minimum(own_bytes / all_bytes, 1.0) * all_disk_s if own_disk is None else _own_disk_s(own_disk, disk, whole)
    )
    values = {
        "fsu_others_pct": _pct(all_disk_s - own_disk_s, _total(disk, "seconds", whole)),
        "mdt_ops_per_s": _operations(operations, own_ops, whole),
        "imbalance": _imbalance(disk, "disk_s", whole) if disk.targets else _imbalance(moved, "bytes", windows),
        "fullness_pct": _largest(full_pct, "full_pct", windows),
        "slowest_ost_ratio": _largest(ratios, "ratio", windows),
        "coverage_factor": own_bytes / all_bytes,
        OTHERS_RATE: np.maximum(all_bytes - own_bytes, 0.0) / _lengths(windows),
    }
    values = {name: _rounded(column) for name, column in values.items()}
    targets = _targets(disk if disk.targets else moved, windows[0])
    method: Method | None = None if not disk.targets else "overlap" if own_disk is None else "job_stats"
    is_known = windows[0].targets is not None
    unknown = _unknown(values, (disk, moved, operations, full_pct, ratios))
    of_one_ost = {"fullness_pct": (full_pct, "full_pct"), "slowest_ost_ratio": (ratios, "ratio")}
    worst = {name: ost for name, sums in of_one_ost.items() if (ost := _worst(*sums, windows[0])) is not None}
    return SystemState(values, targets, is_known, method, unknown, worst)


def _with_used_targets(windows: Sequence[RunWindow], own: WindowTargetSums) -> list[RunWindow]:
    """Runs whose logs name no OST with those that job_stats say their jobs used, but for a little."""
    seconds = np.nan_to_num(own.sums["disk_s"])
    is_used = (seconds > 0) & (seconds >= LEAST_USED * seconds.sum(axis=1, keepdims=True))
    names = np.array(own.targets, object)
    return [
        replace(window, targets=frozenset(names[is_used[row]]))
        if window.targets is None and is_used[row].any()
        else window
        for row, window in enumerate(windows)
    ]


def steps_of(window: RunWindow, most: int) -> list[RunWindow]:
    """The time of a run in at most so many equal steps of whole seconds."""
    step_us = max(-(-(window.end_us - window.start_us) // most), 1_000_000)
    step_us = -(-step_us // 1_000_000) * 1_000_000
    return [
        RunWindow(window.job_id, first, min(first + step_us, window.end_us), window.targets)
        for first in range(window.start_us, max(window.end_us, window.start_us + 1), step_us)
    ]


def load_of_steps(
    system: ObservedSystem, window: RunWindow, most: int, own_bytes: float
) -> tuple[list[RunWindow], Floats, Floats]:
    """Steps of the run's time, the FSU of its targets in each, and that of others; NaN: not known."""
    step_us = job_step_us(system, window)
    whole = window if step_us is None else window.widened(step_us)
    if step_us is not None:
        most = max(min(most, (whole.end_us - whole.start_us) // step_us), 1)
    steps = steps_of(whole, most)
    disk = disk_sums(system, steps)
    all_s, seconds = _total(disk, "disk_s", steps), _total(disk, "seconds", steps)
    if step_us is not None:
        own_s = _own_disk_s(own_disk_sums(system, steps), disk, steps, absent=0.0)
    else:
        moved = _total(byte_sums(system, [window]), "bytes", [window])
        own_s = all_s * np.minimum(own_bytes / moved[0], 1.0)
    return steps, _pct(all_s, seconds), _pct(all_s - own_s, seconds)


def _own_disk_s(
    own: WindowTargetSums, disk: WindowTargetSums, windows: Sequence[RunWindow], absent: float = np.nan
) -> Floats:
    """Disk time of the run's job; not known where job_stats do not name it, or lack a count."""
    values, unknown = (own.over(disk.targets, name) for name in ("disk_s", "unknown"))
    chosen = _chosen(disk, windows)
    is_named = (~np.isnan(unknown) & chosen).any(axis=1)
    lacks_count = (np.nan_to_num(unknown) > 0).any(axis=1)
    seconds = np.where(chosen, np.nan_to_num(values), 0.0).sum(axis=1)
    return np.where(lacks_count, np.nan, np.where(is_named, seconds, absent))


def _operations(all_ops: WindowTargetSums, own: WindowTargetSums | None, windows: Sequence[RunWindow]) -> Floats:
    """Operations of others per second, summed over MDTs; of everybody where job_stats do not tell whose they were."""
    seconds, ops = all_ops.sums["seconds"], all_ops.sums["ops"]
    mine = np.zeros(ops.shape) if own is None else np.nan_to_num(own.over(all_ops.targets, "ops"))
    rates = np.full(ops.shape, np.nan)
    np.divide(np.maximum(ops - mine, 0.0), seconds, out=rates, where=seconds > 0)
    summed = np.where(np.isnan(rates).all(axis=1), np.nan, np.nansum(rates, axis=1))
    return np.where(_is_observed(all_ops, windows, np.ones(ops.shape, np.bool_)), summed, np.nan)


def _imbalance(sums: WindowTargetSums, measure: str, windows: Sequence[RunWindow]) -> Floats:
    """Standard deviation (n − 1) ÷ mean of the targets' load; NaN of fewer than two, or without any load."""
    chosen = _chosen(sums, windows)
    seconds, values = sums.sums["seconds"], sums.sums[measure]
    result = np.full(len(windows), np.nan)
    for row in range(len(windows)):
        known = chosen[row] & (seconds[row] > 0)
        load = values[row][known] / seconds[row][known]
        if len(load) > 1 and load.sum() > 0:
            result[row] = load.std(ddof=1) / load.mean()
    return result


def _slowness(sums: WindowTargetSums) -> WindowTargetSums:
    """Mean time of an I/O on each OST ÷ the median of the other OSTs; NaN of few I/Os, or fewer than two others."""
    has_enough = np.nan_to_num(sums.sums["ios"]) >= FEWEST_IN_PERIOD
    means = np.full(has_enough.shape, np.nan)
    np.divide(sums.sums["io_us"], sums.sums["ios"], out=means, where=has_enough)
    ratio = np.full(means.shape, np.nan)
    for row, column in zip(*np.nonzero(means > 0), strict=True):
        others = np.delete(means[row], column)
        others = others[others > 0]
        if others.size >= FEWEST_PEERS - 1:
            ratio[row, column] = means[row, column] / np.median(others)
    return WindowTargetSums(sums.targets, {"ratio": ratio})


def _largest(sums: WindowTargetSums, measure: str, windows: Sequence[RunWindow]) -> Floats:
    """That of the OST of each run that has most of it; NaN where none is known."""
    if not sums.targets:
        return np.full(len(windows), np.nan)
    largest: Floats = np.fmax.reduce(np.where(_chosen(sums, windows), sums.sums[measure], np.nan), axis=1)
    return largest


def _worst(sums: WindowTargetSums, measure: str, window: RunWindow) -> str | None:
    """The OST of the run, which is the first of the windows, that has most of it."""
    if not sums.targets:
        return None
    values = np.where(_chosen(sums, [window])[0], sums.sums[measure][0], np.nan)
    return None if np.isnan(values).all() else sums.targets[int(np.nanargmax(values))]


def _total(sums: WindowTargetSums, measure: str, windows: Sequence[RunWindow]) -> Floats:
    """Summed over the targets of each run; NaN where they did not report half of its time."""
    chosen = _chosen(sums, windows) & ~np.isnan(sums.sums[measure])
    totals = np.where(chosen, sums.sums[measure], 0.0).sum(axis=1)
    return np.where(_is_observed(sums, windows, chosen), totals, np.nan)


def _is_observed(sums: WindowTargetSums, windows: Sequence[RunWindow], chosen: Booleans) -> Booleans:
    """Whether at least one of the targets reported half of the time."""
    if not sums.targets:
        return np.zeros(len(windows), np.bool_)
    seconds = np.where(chosen, np.nan_to_num(sums.sums["seconds"]), 0.0).max(axis=1)
    observed: Booleans = seconds >= LEAST_OBSERVED * _lengths(windows)
    return observed


def _chosen(sums: WindowTargetSums, windows: Sequence[RunWindow]) -> Booleans:
    """Which targets count in which window: those of the run's files, else all."""
    chosen = np.ones((len(windows), len(sums.targets)), np.bool_)
    for row, window in enumerate(windows):
        if window.targets is not None:
            chosen[row] = [target in window.targets for target in sums.targets]
    return chosen


def _targets(sums: WindowTargetSums, window: RunWindow) -> list[str]:
    return [target for target in sums.targets if window.targets is None or target in window.targets]


def _lengths(windows: Sequence[RunWindow]) -> Floats:
    return np.array([max(window.end_us - window.start_us, 1) / 1e6 for window in windows])


def _pct(part: Floats, whole: Floats) -> Floats:
    result = np.full(len(part), np.nan)
    np.divide(100.0 * np.maximum(part, 0.0), whole, out=result, where=whole > 0)
    return result


def _rounded(values: Floats) -> Floats:
    """To 12 digits: engines add in any order, and equal values must stay equal to be ranked alike."""
    size = np.abs(np.where(values == 0, 1.0, values))
    scale = 10.0 ** (11 - np.floor(np.log10(size)))
    rounded: Floats = np.round(values * scale) / scale
    return rounded


def _unknown(values: dict[str, Floats], tables: Sequence[WindowTargetSums]) -> list[UnknownFactor]:
    """Why a factor of the run has no value."""
    disk, moved, operations, used, timed = (bool(sums.targets) for sums in tables)
    absent = {
        "fsu_others_pct": "the store has no sizes of disk I/Os (brw_stats) of that time" if not disk
        else "job_stats do not say what the job did" if not np.isnan(values["imbalance"][0])
        else "less than half of that time was observed",
        "mdt_ops_per_s": "the store has no metadata operations of that time" if not operations
        else "less than half of that time was observed",
        "imbalance": "the store has no load of OSTs at that time" if not (disk or moved)
        else "fewer than two of its OSTs had a load that is known",
        "fullness_pct": "the store has no fullness of OSTs of that day" if not used
        else "no fullness of its OSTs is known",
        "slowest_ost_ratio": "the store has no times of I/Os on OSTs of that time" if not timed
        else f"its OSTs, or two others, had fewer than {FEWEST_IN_PERIOD} I/Os whose time is known",
        "coverage_factor": "the store has no bytes of OSTs of that time" if not moved
        else "less than half of that time was observed, or the run's bytes are not known",
    }  # fmt: skip
    return [UnknownFactor(name, absent[name]) for name in SYSTEM if np.isnan(values[name][0])]
