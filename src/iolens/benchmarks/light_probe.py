"""A sweep bounded in time and bytes beside other people's work, and what is checked before anything is written."""

from __future__ import annotations

import json
import mmap
import os
import shutil
import stat
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from iolens.benchmarks.device_counters import Counts, DeviceCounters, memory_bytes, mounted_kind, users_of_device
from iolens.benchmarks.sweep import Plan, Values, new_name
from iolens.errors import OptionError, UsageError
from iolens.units import GIB, KIB, MIB, format_bytes

# Before a sweep writes anything ---------------------------------------------------------------------------------------
# Is this a disk, is there space, is nobody using it, can memory be kept out of it.

IN_MEMORY: Final = ("tmpfs", "ramfs")
MARGIN_SHARE: Final = 0.1
MARGIN_BYTES: Final = 64 * MIB


def check_plan(plan: Plan, destroy_data: bool, root: Path = Path("/")) -> list[str]:
    """Refuse what would harm or mislead; returns what the user should know."""
    if not plan.place.exists():
        raise UsageError(f"{plan.place}: no such directory or device")
    if max(plan.transfer_sizes) > plan.file_bytes:
        raise UsageError(f"--size {format_bytes(plan.file_bytes)} is smaller than a transfer of the sweep")
    if plan.is_device:
        _check_device(plan, destroy_data, root)
    elif plan.place.is_dir():
        _check_directory(plan, root)
    else:
        raise UsageError(f"{plan.place}: neither a directory nor a block device")
    warnings = [] if plan.direct else ["buffered I/O: the machine's memory is measured as much as the disk"]
    if (why := memory_warning(plan.file_bytes, root)) is not None:
        warnings.append(f"{why}; the fit shows whether bandwidth settles (figure asymptote)" if plan.guard else why)
    return warnings


def memory_warning(file_bytes: int, root: Path = Path("/")) -> str | None:
    """What to know of a file that memory could hold; None where it is larger."""
    memory = memory_bytes(root)
    if memory is None or file_bytes >= memory:
        return None
    return (
        f"the file ({format_bytes(file_bytes)}) is smaller than this machine's memory ({format_bytes(memory)}):"
        " a cache of that size on the way to the disk would answer instead of it"
    )


def _check_device(plan: Plan, destroy_data: bool, root: Path) -> None:
    number = plan.place.stat().st_rdev
    users = users_of_device(str(plan.place), f"{os.major(number)}:{os.minor(number)}", root)
    if users:
        raise UsageError(f"{plan.place} is in use ({'; '.join(users)}): it is not touched")
    if not destroy_data:
        raise UsageError(
            f"{plan.place} is a device: the sweep writes all over it, and everything on it is lost."
            " Say --destroy-data if that is meant"
        )
    size = device_bytes(plan.place)
    if plan.file_bytes > size:
        raise UsageError(f"{plan.place} has {format_bytes(size)}, less than --size {format_bytes(plan.file_bytes)}")


def device_bytes(device: Path) -> int:
    """Size of a block device."""
    descriptor = os.open(device, os.O_RDONLY)
    try:
        return os.lseek(descriptor, 0, os.SEEK_END)
    finally:
        os.close(descriptor)


def _check_directory(plan: Plan, root: Path) -> None:
    number = plan.place.stat().st_dev
    kind = mounted_kind(f"{os.major(number)}:{os.minor(number)}", root)
    if kind in IN_MEMORY:
        raise UsageError(f"{plan.place} is {kind}: memory, not a disk")
    free = shutil.disk_usage(plan.place).free
    margin = max(round(MARGIN_SHARE * plan.file_bytes), MARGIN_BYTES)
    if free < plan.file_bytes + margin:
        raise UsageError(
            f"{plan.place} has {format_bytes(free)} free; the sweep needs {format_bytes(plan.file_bytes)}"
            f" and leaves at least {format_bytes(margin)}: name a smaller --size"
        )
    if plan.direct and (why := direct_io_trouble(plan.place)) is not None:
        raise UsageError(
            f"{plan.place}: O_DIRECT does not work here ({why}), so memory would be measured instead of the disk;"
            " --buffered does it all the same"
        )


def direct_io_trouble(directory: Path) -> str | None:
    """Why a file here cannot be written around the page cache; None if it can."""
    path = directory / f".iolens-direct-{uuid.uuid4().hex}"
    try:
        descriptor = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_DIRECT, stat.S_IRUSR | stat.S_IWUSR)
        try:
            with mmap.mmap(-1, 4096) as page:  # O_DIRECT wants memory that begins at a page
                os.write(descriptor, page)
        finally:
            os.close(descriptor)
    except OSError as error:
        return error.strerror or str(error)
    finally:
        path.unlink(missing_ok=True)
    return None


# A sweep that is bounded in time and bytes, for a target that others use too ------------------------------------------
# Its plan, and who may stop it.
#
# A run begins only while the target is idle, and a run that somebody else took part in is left out.

TRANSFER_SIZES: Final = tuple(4 * KIB << power for power in range(0, 10, 2))  # 4 KiB … 1 MiB
REPEATS: Final = 2
LAYOUT_SHARE: Final = 0.25  # of the bytes and of the seconds, for writing the file
LOOK_S: Final = 0.5  # how long the target is watched before a run
STARTING_S: Final = 0.5  # what a run costs beside its time: programs start, files are synchronised
SHORTEST_RUN_S: Final = 0.2
SMALLEST_FILE: Final = 16 * MIB
IDLE_BUSY_SHARE: Final = 0.1  # of the time: a journal's commits are less
IDLE_OPS_PER_S: Final = 10.0  # disk I/Os, where the target does not count its busy time
OTHER_DIRECTION: Final = 0.05  # of the bytes of a run: more are somebody else's
OWN_DIRECTION: Final = 1.5  # times the bytes asked for: read-ahead and upper bounds of bins are less


@dataclass(frozen=True, slots=True)
class LightLimits:
    """What a probe may use in all: seconds, and bytes written and read together."""

    seconds: float = 120.0
    bytes: int = 4 * GIB


def light_plan(
    plan: Plan, limits: LightLimits, transfer_sizes: tuple[int, ...] | None = None, repeats: int | None = None
) -> Plan:
    """The plan within the limits: a quarter of the bytes is the file, the rest is shared out to the runs evenly."""
    transfer_sizes, repeats = transfer_sizes or TRANSFER_SIZES, repeats or REPEATS
    largest, runs = max(transfer_sizes), 2 * repeats * len(transfer_sizes)
    file_bytes = round(LAYOUT_SHARE * limits.bytes) // largest * largest
    run_bytes = (limits.bytes - file_bytes) // runs // largest * largest
    if file_bytes < SMALLEST_FILE or run_bytes < largest:
        raise OptionError(
            f"--gib {limits.bytes / GIB:g} is too little for {runs} runs of up to {format_bytes(largest)}"
        )
    layout_s = LAYOUT_SHARE * limits.seconds
    runtime_s = (limits.seconds - layout_s) / runs - LOOK_S - STARTING_S
    if runtime_s < SHORTEST_RUN_S:
        least = runs * (SHORTEST_RUN_S + LOOK_S + STARTING_S) / (1 - LAYOUT_SHARE)
        raise OptionError(f"--seconds {limits.seconds:g} is too short for {runs} runs: at least {least:.0f}")
    return replace(
        plan, file_bytes=file_bytes, transfer_sizes=transfer_sizes, repeats=repeats, runtime_s=runtime_s, guard=False,
        saturate=False, run_bytes=run_bytes, layout_s=layout_s, sweep=new_name().replace("sweep-", "light-"),
    )  # fmt: skip


@dataclass(slots=True)
class LightWatch:
    """Whether the next run may begin: there is time for it, and the target is idle. `waited_s`: for others."""

    counters: DeviceCounters | None
    limit_s: float
    runtime_s: float
    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep
    waited_s: float = 0.0
    is_over: bool = False
    _began: float = field(init=False)

    def __post_init__(self) -> None:
        self._began = self.clock()

    def may_run(self) -> bool:
        """True once the target is idle; False when there is no time left for a run."""
        while self.clock() - self._began + LOOK_S + self.runtime_s <= self.limit_s:
            began = self.clock()
            if self.counters is None or self._is_idle(self.counters):
                return True
            self.waited_s += self.clock() - began
        self.is_over = True
        return False

    @property
    def used_s(self) -> float:
        """Seconds since the probe began."""
        return self.clock() - self._began

    def _is_idle(self, counters: DeviceCounters) -> bool:
        before, began = counters.read(), self.clock()
        self.sleep(LOOK_S)
        return is_idle(before, counters.read(), self.clock() - began)


def is_idle(before: Counts, after: Counts, seconds: float) -> bool:
    """Whether a target did next to nothing between two readings: by its busy time, else by its I/Os."""
    if before.busy_us is not None and after.busy_us is not None:
        return after.busy_us - before.busy_us <= IDLE_BUSY_SHARE * seconds * 1e6
    ios = sum(after.ops.values()) - sum(before.ops.values())
    return ios <= IDLE_OPS_PER_S * seconds


def had_company(row: Values) -> bool:
    """Whether the target moved more than the run explains: somebody else was at work."""
    moved, asked = _bytes_at_disk(row), row.get("bytes")
    if not isinstance(asked, int) or moved is None:
        return False
    other, other_ops, ops = (row.get(name) for name in ("device_other_bytes", "device_other_ops", "device_ops"))
    if isinstance(other, int):
        return other > OTHER_DIRECTION * asked or moved > OWN_DIRECTION * asked
    is_mixed = isinstance(other_ops, int) and isinstance(ops, int) and other_ops > OTHER_DIRECTION * ops
    return is_mixed or moved > OWN_DIRECTION * asked


def _bytes_at_disk(row: Values) -> int | None:
    """Bytes of the run's direction at the disk; by the upper bounds of the bins where only sizes are counted."""
    if isinstance(moved := row.get("device_bytes"), int):
        return moved
    sizes = row.get("device_sizes")
    return sum(int(size) * count for size, count in json.loads(sizes).items()) if isinstance(sizes, str) else None
