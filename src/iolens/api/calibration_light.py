"""The light probe: a bounded sweep beside other people's work, what it determined and what not, and its calibration."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from iolens.analyses.calibration.light import light_fit, light_record, not_determined
from iolens.api.calibration import SOURCE, add_record
from iolens.api.calibration_sweep import ReadySweep, SweepRuns, sweep_runs
from iolens.benchmarks.light_probe import IDLE_OPS_PER_S, LightLimits, LightWatch, had_company
from iolens.errors import OptionError, UsageError
from iolens.store.store import Store

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
