"""The calibration sweep of paper U (SPEC U3): random transfers of 4 KiB to 4 MiB, writes then reads, again and again.

At the end a saturating test: reads and writes of all sizes at once, at the same queue depth. Its FSU is the ceiling.
Here is the plan and the loop; `safety` checks before anything is written, `fio_sweep` and `ior_sweep` know their tools.
"""

from __future__ import annotations

import json
import shutil
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, NamedTuple, Protocol

from iolens.benchmarks.device_counters import DeviceCounters, DeviceMovement, memory_bytes
from iolens.errors import IolensError
from iolens.schema import DIRECTIONS
from iolens.units import KIB, MIB, format_bytes

TRANSFER_SIZES: Final = tuple(4 * KIB << power for power in range(11))  # 4 KiB … 4 MiB
REPEATS: Final = 3
GUARD_TRANSFER: Final = MIB
GUARD_STEPS: Final = 5  # aggregate sizes of the cache guard, each twice the one before
GUARD_SMALLEST: Final = 16 * MIB
SATURATION: Final = "saturation"

Values = dict[str, object]


def new_name() -> str:
    """A name no other sweep has."""
    return f"sweep-{time.strftime('%Y%m%dT%H%M%S', time.gmtime())}-{uuid.uuid4().hex[:6]}"


class SweepPoint(NamedTuple):
    """One run of the sweep."""

    study: str  # transfer_size, aggregate_size for the cache guard, saturation for all sizes at once
    direction: str
    transfer_bytes: int
    aggregate_bytes: int
    repeat: int

    @property
    def is_saturating(self) -> bool:
        """Whether all sizes are read and written at once; then `direction` and `transfer_bytes` mean nothing."""
        return self.study == SATURATION

    @property
    def directions(self) -> tuple[str, ...]:
        """What a result must have."""
        return DIRECTIONS if self.is_saturating else (self.direction,)

    def __str__(self) -> str:
        what = "saturating mix" if self.is_saturating else f"{self.direction} {format_bytes(self.transfer_bytes)}"
        return f"{what} of {format_bytes(self.aggregate_bytes)}"


@dataclass(frozen=True, slots=True)
class Plan:
    """What to run, and where."""

    place: Path
    file_bytes: int
    transfer_sizes: tuple[int, ...] = TRANSFER_SIZES
    repeats: int = REPEATS
    runtime_s: float = 5.0
    queue_depth: int = 4  # per job
    jobs: int = 1
    direct: bool = True
    realtime: bool = False
    guard: bool = True
    saturate: bool = True  # at the end all sizes at once
    run_bytes: int | None = None  # most bytes that a run moves; None: as many as it can in its time
    layout_s: float | None = None  # longest time for writing the file
    filesystem: str | None = None
    sweep: str = field(default_factory=new_name)

    @property
    def is_device(self) -> bool:
        """Whether the place is a block device, not a directory."""
        return self.place.is_block_device()

    @property
    def file(self) -> Path:
        """What is written and read."""
        return self.place if self.is_device else self.place / f"iolens-{self.sweep}.dat"

    def points(self) -> list[SweepPoint]:
        """Every run: the cache guard, then all sizes once per repeat, so that a busy minute spoils no size alone."""
        smallest = min(self.transfer_sizes)
        steps = [self.file_bytes >> step for step in reversed(range(GUARD_STEPS))]
        guarded = [size // smallest * smallest for size in steps if size >= GUARD_SMALLEST]
        transfer = max((size for size in self.transfer_sizes if size <= GUARD_TRANSFER), default=smallest)
        points = [
            SweepPoint("aggregate_size", direction, transfer, aggregate, 0)
            for direction in ("write", "read")
            for aggregate in (guarded if self.guard and len(guarded) > 1 else [])
        ]
        points += [
            SweepPoint("transfer_size", direction, size, self.file_bytes, repeat)
            for repeat in range(self.repeats)
            for direction in ("write", "read")
            for size in self.transfer_sizes
        ]
        return points

    def saturating_points(self) -> list[SweepPoint]:
        """The saturating test, as often as every size."""
        return [SweepPoint(SATURATION, "mixed", 0, self.file_bytes, repeat) for repeat in range(self.repeats)]


class Tool(Protocol):
    """A benchmark program; `mixes`: it can read and write several sizes at once."""

    name: str
    mixes: bool

    def lay_out(self) -> None:
        """Write the file in full, so that reads find blocks and writes do not allocate them."""

    def run(self, point: SweepPoint) -> list[Values]:
        """Run one point; columns of `benchmark_runs`."""


def sweep_points(plan: Plan, tool: Tool) -> list[SweepPoint]:
    """Every run, the saturating ones last."""
    return [*plan.points(), *(plan.saturating_points() if tool.mixes and plan.saturate else [])]


def run_sweep(
    plan: Plan,
    tool: Tool,
    counters: DeviceCounters | None,
    progress: Callable[[str], None] | None = None,
    may_run: Callable[[], bool] = lambda: True,
) -> Iterator[Values]:
    """Rows as they come; the file is removed whatever happens, also when the caller stops listening.

    `may_run` is asked before the file is written and before each run; the sweep ends where it says no.
    """
    say = progress or (lambda text: None)
    common: Values = {
        "sweep": plan.sweep,
        "filesystem": plan.filesystem,
        "memory_bytes": memory_bytes(),
        "fullness_pct": None if plan.is_device else _fullness_pct(plan.place),
        "repetitions": plan.repeats,
    }
    try:
        if not may_run():
            return
        say(f"laying out {format_bytes(plan.file_bytes)}")
        tool.lay_out()
        for number, point in enumerate(sweep_points(plan, tool)):
            if not may_run():
                return
            say(str(point))
            for values in _observed_run(tool, point, counters):
                run_id = f"{plan.sweep}/{number}"
                known = {"study": point.study, "iteration": point.repeat, "aggregate_bytes": point.aggregate_bytes}
                everything = {**values, **common, **known, "run_id": run_id}
                yield {name: value for name, value in everything.items() if value is not None}
    finally:
        if not plan.is_device:
            plan.file.unlink(missing_ok=True)


def _observed_run(tool: Tool, point: SweepPoint, counters: DeviceCounters | None) -> Iterator[Values]:
    before, began = (counters.read() if counters is not None else None), time.monotonic()
    rows = tool.run(point)
    for direction in point.directions:
        if not any(values.get("direction") == direction for values in rows):
            raise IolensError(f"{tool.name} gave no {direction} result for {point}")
    if counters is None or before is None:
        yield from rows
        return
    seen = DeviceMovement(before, counters.read(), time.monotonic() - began)
    for values in rows:
        direction = str(values["direction"])
        columns = seen.columns(counters.name, direction)
        sizes = seen.sizes(direction)
        if sizes:
            columns["device_sizes"] = json.dumps({str(size): count for size, count in sorted(sizes.items())})
        yield {**{name: value for name, value in values.items() if not name.startswith("device")}, **columns}


def _fullness_pct(directory: Path) -> float:
    usage = shutil.disk_usage(directory)
    return 100.0 * usage.used / (usage.used + usage.free) if usage.used + usage.free else 0.0


FORMAT: Final = "iolens calibration sweep, version 1"


def sweep_document(plan: Plan, tool: str, rows: Sequence[Values], complete: bool) -> str:
    """A sweep as a file that `calibrate fit` reads."""
    document = {"format": FORMAT, "sweep": plan.sweep, "tool": tool, "complete": complete, "runs": list(rows)}
    return json.dumps(document, indent=1, allow_nan=False) + "\n"


def rows_of_document(text: str) -> list[dict[str, Any]] | None:
    """The runs of such a file; None if it is something else."""
    try:
        document = json.loads(text)
    except ValueError:
        return None
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        return None
    runs = document.get("runs")
    return [run for run in runs if isinstance(run, dict)] if isinstance(runs, list) else []
