"""Runs of the application of a random centre: how each uses the disks, and its row in the table `runs`."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from iolens.models.transaction_time import Calibration
from iolens.run_tables import ACCESS_BINS, access_column
from iolens.schema import DIRECTIONS
from iolens.simulator.client_jobs import CORES_PER_NODE
from iolens.simulator.planted_counts import Counts
from iolens.simulator.planted_jobs import PlantedJob
from iolens.simulator.workload import SIZES
from iolens.units import MIB

OPEN_S: Final = 1e-3
_BEGIN_S, _END_S = 10, 5  # of a job, before and after its run
_FIRST_UID: Final = 2000


@dataclass(frozen=True, slots=True)
class RunPattern:
    """One run: `small_share` of its bytes are moved in accesses of `small_bytes`, the others in 1 MiB."""

    job_id: str
    start_s: int
    small_share: float
    opens_per_process: int
    small_bytes: int = 65536


@dataclass(frozen=True, slots=True)
class ApplicationPattern:
    """What all runs of the application have in common. Tidy ones take `level_pct` of the time of each of its OSTs;
    performance differs by `noise`, a share, for no reason. An open takes `open_s`, and twice as long beside
    `doubling_ops_per_s` metadata operations of others; None: as the disks slow it down.
    """

    user: str
    project: str
    executable: str
    nodes: int
    osts: tuple[int, ...]
    level_pct: float
    read_share: float  # of its bytes
    length_s: int
    noise: float
    opens_per_process: int | None = None  # None: some
    open_s: float = OPEN_S
    doubling_ops_per_s: float | None = None

    @property
    def processes(self) -> int:
        """Its ranks; each has a file of its own."""
        return self.nodes * CORES_PER_NODE

    def job(self, run: RunPattern, disks: Calibration) -> PlantedJob:
        """A run as a planted job: bytes are always the same, disk time is that of its accesses."""
        tidy, ios = self._per_mib(0.0, MIB), self._per_mib(run.small_share, run.small_bytes)
        level_pct = self.level_pct * _disk_s(ios, disks) / _disk_s(tidy, disks)
        opens_per_s = run.opens_per_process * self.processes / self.length_s
        return PlantedJob(
            run.job_id, self.user, self.project, self.executable, self.nodes, run.start_s, run.start_s + self.length_s,
            level_pct=level_pct, ios=ios, osts=self.osts, metadata={"open": opens_per_s, "close": opens_per_s},
        )  # fmt: skip

    def _per_mib(self, small_share: float, small_bytes: int) -> dict[tuple[str, int], float]:
        """I/Os by direction and size for each MiB moved."""
        shares = {"read": self.read_share, "write": 1.0 - self.read_share}
        ios: dict[tuple[str, int], float] = {}
        for direction, share in shares.items():
            for size, part in ((MIB, 1.0 - small_share), (small_bytes, small_share)):
                if share * part:
                    ios[direction, size] = ios.get((direction, size), 0.0) + share * part * MIB / size
        return ios


def _disk_s(ios: dict[tuple[str, int], float], disks: Calibration) -> float:
    return sum(number * disks.of(direction).seconds(size) for (direction, size), number in ios.items())


def run_id(filesystem: str, seed: int, job_id: str) -> str:
    """What the SHA-256 of its log would be."""
    return hashlib.sha256(f"{filesystem}/{seed}/{job_id}".encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class RunSlowdown:
    """How many times as long a run's I/O takes: beside others on its OSTs, and on its slowest one; and its opens, where
    they do not wait for the disks.
    """

    by_others: float
    by_target: float = 1.0
    of_opens: float | None = None


def run_row(
    pattern: ApplicationPattern,
    run: RunPattern,
    counts: Counts,
    disk_s: float,
    slowdown: RunSlowdown,
    random: np.random.Generator,
) -> dict[str, Any]:
    """A row of `runs` without its name and times: `counts` are its accesses by direction and size.

    I/O time = disk time of one of its OSTs × its slowdown, and the time of its opens.
    """
    noise = float(np.exp(pattern.noise * random.normal()))
    io_s = disk_s / len(pattern.osts) * slowdown.by_others * slowdown.by_target * noise
    opens = run.opens_per_process * pattern.processes
    metadata_s = opens * pattern.open_s * (slowdown.of_opens or slowdown.by_others) * noise
    moved, number = counts @ np.array(SIZES), counts.sum(axis=1)
    by_direction = dict(zip(DIRECTIONS, (moved / moved.sum()).tolist(), strict=True))
    row: dict[str, Any] = {
        "processes": pattern.processes, "files": pattern.processes, "partial": False, "log_version": "3.41",
        "uid": _FIRST_UID, "user": pattern.user, "executable": pattern.executable, "project": pattern.project,
        "modules": "POSIX,LUSTRE", "opens": opens, "stats": pattern.processes, "seeks": 0, "syncs": 0,
        "read_s": io_s * pattern.processes * by_direction["read"],
        "write_s": io_s * pattern.processes * by_direction["write"],
        "metadata_s": metadata_s, "slowest_rank_s": io_s + metadata_s / pattern.processes,
        "slowest_rank": 0, "slowest_rank_method": "slowest_rank", "shared_files_overlap": False,
        "io_ranks": pattern.processes, "write_ranks": pattern.processes,
        "unique_files": pattern.processes, "posix_files": pattern.processes, "osts": len(pattern.osts),
        "written_files": pattern.processes, "new_files": pattern.processes,
        "independent_ops": 0, "collective_ops": 0, "misaligned_ops": int(counts[:, : SIZES.index(MIB)].sum()),
        "key_access_bytes": SIZES[int(counts.sum(axis=0).argmax())],
        "key_access_count": int(counts.sum(axis=0).max()), "key_access_direction": "r+w" if moved[0] else "w",
    }  # fmt: skip
    for place, direction in enumerate(DIRECTIONS):
        sequential = int(number[place] * random.uniform(0.93, 0.97))
        row |= {
            f"{direction}_bytes": int(moved[place]), f"{direction}s": int(number[place]),
            f"posix_{direction}s": int(number[place]), f"sequential_{direction}s": sequential,
            f"consecutive_{direction}s": sequential, f"unique_{direction}_bytes": int(moved[place]),
            f"posix_{direction}_bytes": int(moved[place]), **_bins(direction, counts[place]),
        }  # fmt: skip
    return row


def run_times(pattern: ApplicationPattern, run: RunPattern) -> tuple[int, int]:
    """When a run starts and ends, seconds since 1970."""
    return run.start_s + _BEGIN_S, run.start_s + pattern.length_s - _END_S


def _bins(direction: str, counts: Counts) -> dict[str, int]:
    """Accesses by Darshan's bins of sizes."""
    bins = dict.fromkeys((access_column(direction, upper) for upper in (*ACCESS_BINS, None)), 0)
    for size, count in zip(SIZES, counts.tolist(), strict=True):
        bins[access_column(direction, next(upper for upper in ACCESS_BINS if size <= upper))] += count
    return bins
