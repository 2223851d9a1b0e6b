"""A sweep of transfer sizes, from its checks to its runs in a file or a store."""

from __future__ import annotations

import signal
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from iolens.benchmarks.device_counters import (
    BlockDeviceCounters,
    DeviceCounters,
    LustreTargetCounters,
    underlying_device,
)
from iolens.benchmarks.fio_sweep import FioTool
from iolens.benchmarks.ior_sweep import IorTool
from iolens.benchmarks.light_probe import check_plan
from iolens.benchmarks.programs import may_raise_priority
from iolens.benchmarks.sweep import Plan, Tool, Values, run_sweep, sweep_document, sweep_points
from iolens.errors import IolensError, OptionError
from iolens.records import Capture, Row

SOURCE = "calibrate"  # what rows of our own sweeps say wrote them


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
