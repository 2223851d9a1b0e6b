"""Calibrations: benchmark runs of files and of the store, sweeps of transfer sizes, and the light probe."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any, Final

from iolens.analyses.calibration.fit import CalibrationFit
from iolens.analyses.calibration.light import light_fit, light_record, not_determined
from iolens.analyses.calibration.stored import KnownCalibrations, chosen_record, drift, known_calibrations
from iolens.benchmarks.device_counters import (
    BlockDeviceCounters,
    DeviceCounters,
    LustreTargetCounters,
    underlying_device,
)
from iolens.benchmarks.fio_sweep import FioTool
from iolens.benchmarks.ior_sweep import IorTool
from iolens.benchmarks.light_probe import IDLE_OPS_PER_S, LightLimits, LightWatch, check_plan, had_company
from iolens.benchmarks.programs import may_raise_priority
from iolens.benchmarks.studies.plan import KINDS
from iolens.benchmarks.sweep import Plan, Tool, Values, rows_of_document, run_sweep, sweep_document, sweep_points
from iolens.config import Config
from iolens.errors import InputError, IolensError, OptionError, UsageError
from iolens.models.transaction_time import CalibrationState
from iolens.records import Capture, Problem, Row
from iolens.sources import ReadOptions, recognise
from iolens.store.store import Store
from iolens.units import epoch_us, from_epoch_us

# Calibrations ---------------------------------------------------------------------------------------------------------
# Benchmark runs of files and of the store, the fit of them, and known coefficients, stored.

SOURCE = "calibrate"  # what calibrations of our own fits say wrote them
CHOSEN = "calibrate use"  # what a person's choice says wrote it
BENCHMARKS = ("fio", "ior")  # sources of results that can be fitted

Run = dict[str, Any]


@dataclass(frozen=True, slots=True)
class RunFilter:
    """Which runs are taken; None: all."""

    tool: str | None = None
    filesystem: str | None = None
    since: datetime | None = None
    until: datetime | None = None

    @property
    def is_any(self) -> bool:
        """Whether it leaves anything out."""
        return any(value is not None for value in (self.tool, self.filesystem, self.since, self.until))

    def keeps(self, run: Run) -> bool:
        """Whether a run is taken; one without a time is not in any window."""
        time_us = run.get("time")
        if self.tool is not None and run.get("tool") != self.tool:
            return False
        if self.filesystem is not None and run.get("filesystem") != self.filesystem:
            return False
        begins = self.since is None or (time_us is not None and time_us >= epoch_us(self.since))
        return begins and (self.until is None or (time_us is not None and time_us < epoch_us(self.until)))


def benchmark_runs(
    places: Sequence[str], store: Callable[[], Store], wanted: RunFilter, say: Callable[[str], None]
) -> list[Run]:
    """Runs of files and of sweeps; without either the store's, of the last sweep or all that are wanted."""
    if places:  # a file says nothing of the file system: that of the calibration is another matter
        runs: Iterable[Run] = _named_runs(places, store, say)
        wanted = RunFilter(wanted.tool, None, wanted.since, wanted.until)
    else:
        runs = _stored_runs(store(), last_sweep=not wanted.is_any)
    return [run for run in runs if wanted.keeps(run)]


def _named_runs(places: Sequence[str], store: Callable[[], Store], say: Callable[[str], None]) -> Iterator[Run]:
    """Each place is a file, a directory or a sweep in the store."""
    stored: list[Run] | None = None
    for place in places:
        path = Path(place)
        if path.exists():
            files = sorted(file for file in path.rglob("*") if file.is_file()) if path.is_dir() else [path]
            for file in files:
                yield from _runs_of_file(file, say)
            continue
        stored = _stored_runs(store()) if stored is None else stored
        runs = [run for run in stored if run["sweep"] == place]
        if not runs:
            names = sorted({run["sweep"] for run in stored if run["sweep"]})
            raise OptionError(
                f"{place}: no such file, nor a sweep in the store; there are: {', '.join(names) or 'none'}"
            )
        yield from runs


def _runs_of_file(path: Path, say: Callable[[str], None]) -> list[Run]:
    own = rows_of_document(path.read_text("utf-8", "replace"))
    if own is not None:
        return own
    source = recognise(path)
    if source.name not in BENCHMARKS:
        raise InputError(str(path), f"this is {source.name}", "results of fio, IOR or `iolens calibrate run`")
    runs = []
    for capture in source.captures([path], ReadOptions()):
        for item in capture.items():
            if isinstance(item, Row):
                runs.append(dict(item.values))
            elif isinstance(item, Problem):
                say(str(item))
    return runs


def _stored_runs(store: Store, last_sweep: bool = False) -> list[Run]:
    store.check_that_it_exists()
    runs: list[Run] = [run for run in store.benchmark_runs() if run.get("study") not in KINDS]
    if not runs:
        raise UsageError(f"{store.url} holds no benchmark runs: `iolens calibrate run`, or name files of results")
    sweeps = [run for run in runs if run["sweep"]]
    if last_sweep and sweeps:
        newest = max(sweeps, key=lambda run: run["time"] or 0)["sweep"]
        return [run for run in sweeps if run["sweep"] == newest]
    return runs


def only_filesystem(runs: Iterable[Run]) -> str | None:
    """The file system of the runs, where it is one."""
    names = {run.get("filesystem") for run in runs} - {None}
    return str(names.pop()) if len(names) == 1 else None


def save_fit(
    fit: CalibrationFit,
    store: Store,
    name: str,
    *,
    sizes: Any,
    filesystem: str | None,
    target_class: str | None,
    valid_from: datetime | None,
) -> str:
    """Store a fit as a calibration; what it rests on, in words."""
    record = fit.record(name, sizes)
    valid_us = epoch_us(valid_from) if valid_from is not None else fit.last_run_us
    add_record(store, SOURCE, filesystem, target_class, valid_us, record)
    return str(record["evidence"])


def add_calibration(
    store: Store,
    name: str,
    write: tuple[float, float],
    read: tuple[float, float],
    *,
    filesystem: str | None = None,
    target_class: str | None = None,
    valid_from: datetime | None = None,
    queue_depth: int | None = None,
    ceiling_fsu_pct: float | None = None,
    state: CalibrationState = CalibrationState.MEASURED,
    evidence: str,
) -> None:
    """Store known coefficients: latency in seconds and seconds per byte of writes and of reads.

    They are measured on such targets, or a `class`: published ones that a person chose.
    """
    record = {
        "name": name,
        "state": state.value,
        "write_latency_s": write[0],
        "write_s_per_byte": write[1],
        "read_latency_s": read[0],
        "read_s_per_byte": read[1],
        "queue_depth": queue_depth,
        "ceiling_fsu_pct": ceiling_fsu_pct,
        "evidence": evidence,
    }
    valid_us = epoch_us(valid_from) if valid_from is not None else None
    add_record(store, "command line", filesystem, target_class, valid_us, record)


@dataclass(frozen=True, slots=True)
class UsedCalibration:
    """A choice as it was stored. `valid_from`: null means all time; `state`: null where the stored one had none.

    `notes`: why it is not used yet, where the configuration says otherwise.
    """

    valid_from: datetime | None
    state: str | None
    evidence: str
    notes: tuple[str, ...] = ()


def use_calibration(
    store: Store,
    config: Config,
    name: str,
    *,
    filesystem: str,
    target_class: str | None = None,
    valid_from: datetime | None = None,
) -> UsedCalibration:
    """Store a calibration, known by its name, as that of a file system and a class of its targets.

    Without a time it takes the place of the newest one of the same targets, from the same time on.
    """
    stored = store.calibrations()
    record = chosen_record(stored, config, name, filesystem, target_class)
    if valid_from is not None:
        valid_us: int | None = epoch_us(valid_from)
    else:
        same = [row for row in stored if (row["filesystem"], row["target_class"]) == (filesystem, target_class)]
        valid_us = max((int(str(row["valid_from"])) for row in same if row["valid_from"] is not None), default=None)
    add_record(store, CHOSEN, filesystem, target_class, valid_us, record)
    since = None if valid_us is None else from_epoch_us(valid_us)
    notes = _why_not_used(config, name, filesystem, target_class)
    return UsedCalibration(since, record["state"], str(record["evidence"]), notes)


def _why_not_used(config: Config, name: str, filesystem: str, target_class: str | None) -> tuple[str, ...]:
    """What in the configuration stands before a choice."""
    known = config.filesystem(filesystem)
    notes = []
    if known.calibration not in (None, name):
        notes.append(
            f"[filesystems.{filesystem}] names the calibration {known.calibration}, which comes before stored ones:"
            " remove it there to use this choice"
        )
    if target_class is not None and target_class not in known.classes:
        notes.append(f"[filesystems.{filesystem}.classes] names no targets of class {target_class}: add their patterns")
    return tuple(notes)


def add_record(
    store: Store,
    source: str,
    filesystem: str | None,
    target_class: str | None,
    valid_us: int | None,
    record: dict[str, Any],
) -> None:
    """Store a row of `calibrations`: what it is for, since when in microseconds, and its other columns."""
    about = {"filesystem": filesystem, "target_class": target_class, "valid_from": valid_us}
    store.add_calibration({**record, "time": time.time_ns() // 1000, "source": source, **about})


def calibrations(store: Store, config: Config, filesystem: str | None = None) -> KnownCalibrations:
    """Stored, configured and shipped calibrations, all or those of a file system, and how they changed."""
    known = known_calibrations(store.calibrations(), config)
    if filesystem is not None:
        known = [calibration for calibration in known if calibration.filesystem == filesystem]
    return KnownCalibrations(known, drift(known))


# A sweep of transfer sizes, from its checks to its runs in a file or a store ------------------------------------------


@dataclass(frozen=True, slots=True)
class ReadySweep:
    """A sweep whose checks have passed."""

    plan: Plan
    tool: Tool
    counters: DeviceCounters | None
    points: int


@dataclass(frozen=True, slots=True)
class SweepRuns:
    """The rows until the end, an interruption or a failure; whether all came, and the failure."""

    rows: list[Values]
    is_whole: bool
    failure: Exception | None = None

    @property
    def count(self) -> int:
        """A run that reads and writes at once has a row for each."""
        return len({row["run_id"] for row in self.rows})


def ready_sweep(
    plan: Plan,
    *,
    destroy_data: bool,
    with_ior: bool,
    launcher: str | None,
    lustre_root: Path | None,
    targets: tuple[str, ...] | None,
    say: Callable[[str], None],
) -> ReadySweep:
    """Refuse what would harm or mislead, find the benchmark, and say what is observed."""
    if plan.realtime and not may_raise_priority():
        raise OptionError("--realtime: this user may not run programs ahead of others (root or CAP_SYS_NICE)")
    for warning in check_plan(plan, destroy_data):
        say(f"warning: {warning}")
    tool = _tool(plan, with_ior, launcher)
    counters = _counters(plan, lustre_root, targets, say)
    return ReadySweep(plan, tool, counters, len(sweep_points(plan, tool)))


def _tool(plan: Plan, with_ior: bool, launcher: str | None) -> Tool:
    if with_ior and plan.is_device:
        raise OptionError("--ior works on files: name a directory, or leave it out to use fio on the device")
    return IorTool(plan, launcher) if with_ior else FioTool(plan)


def _counters(
    plan: Plan, lustre_root: Path | None, targets: tuple[str, ...] | None, say: Callable[[str], None]
) -> DeviceCounters | None:
    """What is observed, said in one line."""
    if (lustre_root is None) != (targets is None):
        raise OptionError("--lustre-root and --target belong together: the server's root, and its targets")
    if lustre_root is not None and targets is not None:
        lustre = LustreTargetCounters(targets, lustre_root)
        lustre.read()  # fails now, not after the first run
        say(f"observing brw_stats of {lustre.name}")
        return lustre
    below = underlying_device(plan.place)
    if below.device is None:
        say(f"warning: {below.why}; only requested sizes can be fitted")
        return None
    say(f"observing {below.why}")
    return BlockDeviceCounters(below.device)


def sweep_runs(sweep: ReadySweep, step: Callable[[str], None], may_run: Callable[[], bool] = lambda: True) -> SweepRuns:
    """The runs, as long as `may_run` says so.

    Ctrl-C and SIGTERM, a batch system's way to end us, leave those so far and no file.
    """
    rows: list[Values] = []

    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, stop)
    try:
        for row in run_sweep(sweep.plan, sweep.tool, sweep.counters, step, may_run):
            rows.append(row)  # those before an interruption are kept
    except KeyboardInterrupt:
        return SweepRuns(rows, is_whole=False)
    except (IolensError, OSError) as error:
        return SweepRuns(rows, is_whole=False, failure=error)
    finally:
        signal.signal(signal.SIGTERM, before)
    return SweepRuns(rows, is_whole=True)


def write_runs(sweep: ReadySweep, runs: SweepRuns, output: Path) -> None:
    """The runs as a JSON file for `iolens calibrate fit`."""
    from iolens.views.render import atomic

    atomic.write(output, sweep_document(sweep.plan, sweep.tool.name, runs.rows, runs.is_whole))


def store_runs(sweep: ReadySweep, runs: SweepRuns, url: str) -> str:
    """The runs into a store; its address."""
    from iolens.store.store import Store

    opened = Store(url)
    items = [Row("benchmark_runs", row) for row in runs.rows]
    capture = Capture(str(sweep.plan.place), f"sweep/{sweep.plan.sweep}", partial(iter, items))
    opened.ingest([capture], SOURCE)
    return opened.url


# The light probe ------------------------------------------------------------------------------------------------------
# A bounded sweep beside other people's work, what it determined and what not, and its calibration.

RECENT: Final = timedelta(minutes=10)  # samples of the store that say whether a target is idle now


@dataclass(frozen=True, slots=True)
class LightOutcome:
    """A probe at its end. `record`: the calibration; None where the runs do not give one. `waited_s`: for others."""

    runs: SweepRuns
    record: dict[str, Any] | None
    not_determined: list[str]
    disturbed_runs: int
    moved_bytes: int
    used_s: float
    waited_s: float
    ended_early: bool


def run_light(sweep: ReadySweep, limits: LightLimits, step: Callable[[str], None]) -> LightOutcome:
    """Run the probe: runs that others disturbed are counted and left out."""
    watch = LightWatch(sweep.counters, limits.seconds, sweep.plan.runtime_s)
    every = sweep_runs(sweep, step, watch.may_run)
    used_s = watch.used_s
    rows = [row for row in every.rows if not had_company(row)]
    fit, why = light_fit(rows)
    why = why if every.is_whole else "the probe did not come to its end"
    return LightOutcome(
        runs=replace(every, rows=rows),
        record=None if fit is None or why is not None else light_record(fit, sweep.plan.sweep),
        not_determined=not_determined(rows, sweep.plan.transfer_sizes, sweep.plan.queue_depth, why),
        disturbed_runs=len(every.rows) - len(rows),
        moved_bytes=(sweep.plan.file_bytes if every.rows else 0) + sum(int(str(row["bytes"])) for row in every.rows),
        used_s=used_s,
        waited_s=watch.waited_s,
        ended_early=watch.is_over,
    )


def check_target_is_idle(store: Store, filesystem: str, target: str, now: datetime | None = None) -> str:
    """Refuse a target that the store's newest samples show at work; else what they say, in words."""
    since = (now or datetime.now(UTC)) - RECENT
    frame = store.select(filesystem, since=since, targets=[target]).frame("target_io")
    columns = ("duration_s", "read_ops", "write_ops", "unsplit_ops")
    samples = frame.select(*columns).collect(backend="pyarrow").to_native().to_pylist()
    seconds = sum(sample["duration_s"] or 0.0 for sample in samples)
    if not seconds:
        return f"the store has no sample of {target} of the last 10 minutes: not checked there"
    ops_per_s = sum(sample[name] or 0 for sample in samples for name in columns[1:]) / seconds
    if ops_per_s > IDLE_OPS_PER_S:
        raise UsageError(
            f"{target} is at work: {ops_per_s:.0f} operations per second in the last 10 minutes (idle: at most"
            f" {IDLE_OPS_PER_S:.0f}); wait, or name an idle target"
        )
    return f"{target} was idle in the last 10 minutes: {ops_per_s:.1f} operations per second"


def one_target(targets: tuple[str, ...] | None) -> str | None:
    """The target of a probe."""
    if targets is not None and len(targets) != 1:
        raise OptionError(f"--light probes one target: --target names {len(targets)}")
    return None if targets is None else targets[0]


def store_light(store: Store, outcome: LightOutcome, filesystem: str | None, target_class: str | None) -> str | None:
    """Store the calibration of a probe; its evidence, None where there is none."""
    if outcome.record is None:
        return None
    times = [int(str(row["time"])) for row in outcome.runs.rows if row.get("time") is not None]
    add_record(store, SOURCE, filesystem, target_class, max(times, default=None), outcome.record)
    return str(outcome.record["evidence"])
