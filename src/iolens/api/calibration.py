"""Calibrations: benchmark runs of files and of the store, the fit of them, and known coefficients, stored."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from iolens.analyses.calibration.fit import CalibrationFit
from iolens.analyses.calibration.stored import KnownCalibrations, chosen_record, drift, known_calibrations
from iolens.benchmarks.studies.plan import KINDS
from iolens.benchmarks.sweep import rows_of_document
from iolens.config import Config
from iolens.errors import InputError, OptionError, UsageError
from iolens.models.transaction_time import CalibrationState
from iolens.records import Problem, Row
from iolens.sources import ReadOptions, recognise
from iolens.store.store import Store
from iolens.units import epoch_us, from_epoch_us

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
