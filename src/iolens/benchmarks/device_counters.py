"""What the disk saw while a benchmark ran: the counters of its block device, and fio's log of single requests."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from iolens.errors import InputError, IolensError
from iolens.schema import DIRECTIONS as COLUMN_DIRECTIONS
from iolens.schema import SIZE_BINS, size_column
from iolens.sources.devices.diskstats import parse_line
from iolens.sources.lustre.histograms import parse_brw_stats
from iolens.sources.lustre.lustre_proc import PLACES

# What the disk saw while a benchmark ran ------------------------------------------------------------------------------
# The counters of the block device below a path, or of a Lustre target.
#
# The kernel says which device carries a path, from the path's device number down to the disk. Where it does not
# (overlay, btrfs, network file systems) there is no observation, and the reason is given instead of a guess.

DISKSTATS: Final = "proc/diskstats"
MOUNTS: Final = "proc/self/mountinfo"


class Counts(NamedTuple):
    """Cumulative counters at one time; `sizes` by direction and bin, where the device counts sizes."""

    ops: Mapping[str, int]
    bytes: Mapping[str, int] | None
    busy_us: int | None = None
    sizes: Mapping[str, Mapping[int, int]] | None = None


class DeviceCounters(Protocol):
    """Something that counts disk I/Os."""

    @property
    def name(self) -> str:
        """Device or targets, for people."""

    def read(self) -> Counts:
        """The counters now."""


@dataclass(frozen=True, slots=True)
class BlockDeviceCounters:
    """One block device in `/proc/diskstats`."""

    name: str
    root: Path = Path("/")

    def read(self) -> Counts:
        """The counters now."""
        path = self.root / DISKSTATS
        for line in path.read_text("ascii", "replace").splitlines():
            if line.split()[2:3] == [self.name] and (device_line := parse_line(line)) is not None:
                counters = device_line.counters
                return Counts(
                    {direction: counters[f"{direction}_ops"] for direction in COLUMN_DIRECTIONS},
                    {direction: counters[f"{direction}_bytes"] for direction in COLUMN_DIRECTIONS},
                    counters["busy_us"],
                )
        raise IolensError(f"{path}: no device is called {self.name}")


@dataclass(frozen=True, slots=True)
class LustreTargetCounters:
    """The `brw_stats` of some targets of a Lustre server, live or mirrored under `root`, added up."""

    targets: tuple[str, ...]
    root: Path = Path("/")
    name: str = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "name", "+".join(self.targets))

    def read(self) -> Counts:
        """The counters now; sizes are the bins' upper bounds."""
        sizes: dict[str, dict[int, int]] = {direction: {} for direction in COLUMN_DIRECTIONS}
        for target in self.targets:
            path = self._path(target)
            histograms = parse_brw_stats(path.read_bytes(), str(path))
            if histograms.sizes is None:
                why = str(histograms.problems[0]) if histograms.problems else f"{path}: no sizes of disk I/Os"
                raise IolensError(f"{why}; expected a `disk I/O size` histogram")
            for direction, bins in sizes.items():
                for size in SIZE_BINS:
                    bins[size] = bins.get(size, 0) + histograms.sizes[size_column(direction, size)]
        ops = {direction: sum(bins.values()) for direction, bins in sizes.items()}
        return Counts(ops, None, None, sizes)

    def _path(self, target: str) -> Path:
        for place in PLACES:
            for folder in (target, f"{target}-osd"):
                path = self.root / place.directory / folder / "brw_stats"
                if path.is_file():
                    return path
        raise IolensError(f"{self.root}: no brw_stats of a target called {target}; expected a Lustre server's root")


class DeviceMovement(NamedTuple):
    """What moved between two readings, as columns of `benchmark_runs` for one direction."""

    before: Counts
    after: Counts
    window_s: float

    def columns(self, device: str, direction: str) -> dict[str, object]:
        """The device's columns of a row; a counter that ran backwards makes it none."""
        other = "read" if direction == "write" else "write"
        values: dict[str, object] = {"device": device, "device_window_s": self.window_s}
        values["device_ops"], values["device_other_ops"] = (self._ops(name) for name in (direction, other))
        values["device_bytes"], values["device_other_bytes"] = (self._bytes(name) for name in (direction, other))
        if self.before.busy_us is not None and self.after.busy_us is not None:
            values["device_busy_us"] = max(self.after.busy_us - self.before.busy_us, 0)
        return {name: value for name, value in values.items() if value is not None}

    def sizes(self, direction: str) -> dict[int, int] | None:
        """I/Os by bin, where the device counts them; None where it does not, or was reset meanwhile."""
        if self.before.sizes is None or self.after.sizes is None:
            return None
        old, new = self.before.sizes[direction], self.after.sizes[direction]
        moved = {size: count - old.get(size, 0) for size, count in new.items()}
        return {size: count for size, count in moved.items() if count} if min(moved.values()) >= 0 else None

    def _ops(self, direction: str) -> int | None:
        moved = self.after.ops[direction] - self.before.ops[direction]
        return moved if moved >= 0 else None

    def _bytes(self, direction: str) -> int | None:
        if self.before.bytes is None or self.after.bytes is None:
            return None
        moved = self.after.bytes[direction] - self.before.bytes[direction]
        return moved if moved >= 0 else None


class Underlying(NamedTuple):
    """The disk that carries a path, or why it is not known."""

    device: str | None
    why: str


def underlying_device(path: Path, root: Path = Path("/")) -> Underlying:
    """The disk below a file, a directory or a device node; a partition counts for its disk."""
    status = path.stat()
    number = status.st_rdev if path.is_block_device() else status.st_dev
    return device_of_number(f"{os.major(number)}:{os.minor(number)}", root)


def device_of_number(number: str, root: Path = Path("/")) -> Underlying:
    """The same from `major:minor`."""
    if number.startswith("0:"):
        kind = mounted_kind(number, root)
        return Underlying(None, f"{kind} has no block device of its own: what the disk saw is not known")
    folder = (root / "sys/dev/block" / number).resolve()
    if not folder.is_dir():
        return Underlying(None, f"the kernel knows no block device {number}")
    return _descend(folder)


def _descend(folder: Path) -> Underlying:
    """From a partition to its disk, from a stacked device to what carries it, if that is one disk."""
    via = ""
    while True:
        if (folder / "partition").is_file():
            folder = folder.parent
        below = sorted(folder.glob("slaves/*"))
        if not below:
            return Underlying(folder.name, f"disk {folder.name}{via}")
        if len(below) > 1:
            names = ", ".join(path.name for path in below)
            return Underlying(folder.name, f"{folder.name}, which spreads over {names}: sizes are those before that")
        via += f" below {folder.name}"
        folder = below[0].resolve()


def mounted_kind(number: str, root: Path = Path("/")) -> str:
    """File system type mounted from `major:minor`."""
    for line in (root / MOUNTS).read_text("utf-8", "replace").splitlines():
        fields, _, origin = line.partition(" - ")
        if fields.split()[2:3] == [number]:
            return origin.split()[0]
    return "this file system"


def users_of_device(device: str, number: str, root: Path = Path("/")) -> list[str]:
    """Who uses a block device or a part of it: mount points, swap, stacked devices."""
    folder = (root / "sys/dev/block" / number).resolve()
    parts = [folder, *(part.parent for part in folder.glob("*/partition"))]
    numbers = {number} | {(part / "dev").read_text().strip() for part in parts if (part / "dev").is_file()}
    users = [
        f"mounted on {line.split()[4]}"
        for line in (root / MOUNTS).read_text("utf-8", "replace").splitlines()
        if line.split()[2:3] and line.split()[2] in numbers
    ]
    names = {f"/dev/{part.name}" for part in parts} | {device}
    swaps = root / "proc/swaps"
    lines = swaps.read_text("utf-8", "replace").splitlines()[1:] if swaps.is_file() else []
    users += [f"used for swap as {line.split()[0]}" for line in lines if line.split() and line.split()[0] in names]
    users += [f"part of {path.name}" for part in parts for path in sorted(part.glob("holders/*"))]
    return users


def memory_bytes(root: Path = Path("/")) -> int | None:
    """Memory of this machine."""
    for line in (root / "proc/meminfo").read_text("ascii", "replace").splitlines():
        if line.startswith("MemTotal:"):
            return int(line.split()[1]) * 1024
    return None


# fio's log of single requests (`write_lat_log` with `log_offset`) -----------------------------------------------------
# When, how long, read or written, how large.
#
# The check of a made-up load: whether what was asked for is what the tested system got.

DIRECTIONS: Final = ("read", "write")  # fio's 0 and 1; 2 is a trim
COLUMNS: Final = 5  # ms, ns, direction, bytes, offset; later versions append a priority and more
LATENCIES: Final = "*_lat.*.log"  # beside `_clat` and `_slat`


@dataclass(frozen=True, slots=True, eq=False)
class RequestLog:
    """Requests of all logs, one after the other: latency [s], direction (0 read, 1 write) and size [bytes]."""

    latency_s: NDArray[np.float64]
    direction: NDArray[np.int64]
    size_bytes: NDArray[np.int64]

    def count(self, direction: str) -> int:
        """Requests of that direction."""
        return int((self.direction == DIRECTIONS.index(direction)).sum())

    @property
    def read_requests_pct(self) -> float | None:
        """None where there is no request."""
        return 100.0 * self.count("read") / len(self.direction) if len(self.direction) else None

    def size_shares(self, direction: str) -> dict[int, float]:
        """Share of the direction's requests by size."""
        sizes, counts = np.unique(self.size_bytes[self.direction == DIRECTIONS.index(direction)], return_counts=True)
        total = counts.sum()
        return {int(size): float(count / total) for size, count in zip(sizes, counts, strict=True)}

    def latency_percentile_s(self, direction: str, percent: float) -> float | None:
        """From issue to completion; None where there is no request."""
        mine = self.latency_s[self.direction == DIRECTIONS.index(direction)]
        return float(np.percentile(mine, percent)) if mine.size else None


def read_logs(paths: Iterable[Path]) -> RequestLog:
    """All requests of these logs; a line that is none is refused."""
    tables = [_read_log(path) for path in paths]
    whole = np.concatenate(tables) if tables else np.empty((0, COLUMNS), np.int64)
    moved = whole[whole[:, 2] < len(DIRECTIONS)]
    return RequestLog(moved[:, 1] / 1e9, moved[:, 2], moved[:, 3])


def largest_deviation_points(wanted: Mapping[int, float], got: Mapping[int, float]) -> float:
    """The size whose share differs most, in points of a hundred."""
    return max((100.0 * abs(wanted.get(size, 0.0) - got.get(size, 0.0)) for size in {*wanted, *got}), default=0.0)


def _read_log(path: Path) -> NDArray[np.int64]:
    rows = []
    for number, line in enumerate(path.read_text("ascii", "replace").splitlines(), 1):
        words = line.split(",")[:COLUMNS]
        try:
            row = [int(word) for word in words]
        except ValueError:
            row = []
        if len(row) != COLUMNS or min(row) < 0 or max(row) >= 1 << 63:
            raise InputError(
                str(path), repr(line[:80]), "milliseconds, nanoseconds, direction, bytes, offset (log_offset=1)", number
            )
        rows.append(row)
    return np.array(rows, np.int64).reshape(-1, COLUMNS)
