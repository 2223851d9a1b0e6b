"""The rows of a random centre straight into a store: its application's runs, and targets that fall ill."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal

import numpy as np
import pyarrow as pa

from iolens.arrays import Floats
from iolens.models.transaction_time import Calibration
from iolens.run_tables import ACCESS_BINS, RUNS, access_column
from iolens.schema import DIRECTIONS
from iolens.simulator.activity import Activity, Counts, Job, TickBlock, jobs_between
from iolens.simulator.client_tree import CORES_PER_NODE
from iolens.simulator.job_counts import SLOWDOWN, weighted_load
from iolens.simulator.telemetry import SimulationOrder, append_jobs, store_calibration, tables_of_block
from iolens.simulator.telemetry_columns import SOURCE
from iolens.simulator.truth import JobTruths, Truth
from iolens.simulator.workload import SIZES, PlantedJob, SimulatedWorkload
from iolens.store.rows import to_arrow
from iolens.store.store import Store
from iolens.units import DAY_S, MIB

# An OST of a random centre that becomes slow or full at some time and stays so ----------------------------------------
# Its rows, and what runs lose by it.
#
# A slow OST takes longer for every I/O. A full one takes I/Os as before, but files on it wait for free blocks; it fills
# up in the hour before.

FILLS_S: Final = 3600
_NOISE: Final = 0.05  # of the time of the I/Os of a tick, for no reason

Illness = Literal["slow", "full"]


@dataclass(frozen=True, slots=True)
class IllTarget:
    """OST number `ost`: runs with files on it take `slowdown` times as long from `since_s` on."""

    ost: int
    illness: Illness
    since_s: int
    slowdown: float
    full_pct: float = 97.0

    def slowdown_at(self, start_s: int) -> float:
        """Of a run that starts then."""
        return self.slowdown if start_s >= self.since_s else 1.0


def with_io_times(
    rows: pa.Table, activity: Activity, block: TickBlock, ill: IllTarget | None, random: np.random.Generator
) -> pa.Table:
    """`target_io` with the summed time of its I/Os: their disk time, longer beside other I/Os and on a slow OST."""
    longer = (1.0 + SLOWDOWN * block.fsu_pct / 100.0) * np.exp(_NOISE * random.normal(size=block.fsu_pct.shape))
    if ill is not None and ill.illness == "slow":
        ends_s = (block.first_tick + 1 + np.arange(block.ticks)) * activity.tick_s
        longer[ends_s > ill.since_s, ill.ost] *= ill.slowdown
    for number, direction in enumerate(DIRECTIONS):
        took_s = np.einsum("stn,s->tn", block.counts[number], activity.seconds[number])
        rows = rows.append_column(
            f"{direction}_wait_us", pa.array((1e6 * took_s * longer).astype(np.int64).reshape(-1))
        )
    return rows


def with_fullness(rows: pa.Table, name: str, ill: IllTarget) -> pa.Table:
    """`target_capacity` with the OST `name` filling up."""
    values: dict[str, Any] = {column: rows[column].to_numpy() for column in ("total_bytes", "used_bytes")}
    seconds = rows["time"].cast(pa.int64()).to_numpy() // 1_000_000
    is_ill = np.array(rows["target"].to_pylist(), object) == name
    share = np.clip((seconds - (ill.since_s - FILLS_S)) / FILLS_S, 0.0, 1.0)
    full = (ill.full_pct / 100.0 * values["total_bytes"]).astype(np.int64)
    more = np.where(is_ill, share * np.maximum(full - values["used_bytes"], 0), 0.0).astype(np.int64)
    for column, sign in (("used_bytes", 1), ("free_bytes", -1), ("available_bytes", -1)):
        changed = np.maximum(rows[column].to_numpy() + sign * more, 0)
        rows = rows.set_column(rows.column_names.index(column), column, pa.array(changed))
    return rows


# Runs of the application of a random centre ---------------------------------------------------------------------------
# How each uses the disks, and its row in the table `runs`.

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


# The rows of a random centre, straight into a store -------------------------------------------------------------------
# Each table at once, because there may be hundreds of centres.


@dataclass(slots=True)
class WrittenCentre:
    """What is true of what was written."""

    truths: JobTruths
    run_ids: dict[str, str] = field(default_factory=dict)
    others_pct: dict[str, float] = field(default_factory=dict)


def write_random_centre(
    url: str,
    activity: Activity,
    start_s: int,
    end_s: int,
    pattern: ApplicationPattern,
    runs: Sequence[RunPattern],
    random: np.random.Generator,
    ill: IllTarget | None = None,
) -> WrittenCentre:
    """Write telemetry, jobs, runs and the calibration of the disks."""
    store, workload = Store(url), activity.workload
    order = SimulationOrder(url, workload, activity.targets, workload.mdts, activity.seed, start_s, end_s)
    order = replace(order, origin_s=start_s)
    truth, work, pieces = Truth(), RunWork(), dict[str, list[pa.Table]]()
    times = np.random.default_rng((activity.seed, 2))
    for first_s, until_s in _days(start_s, end_s):
        block = activity.block(first_s // activity.tick_s, (until_s - first_s) // activity.tick_s)
        work.add(activity, block)
        for name, rows in tables_of_block(order, activity, block, truth):
            if name == "target_io":
                rows = with_io_times(rows, activity, block, ill, times)
            if name == "target_capacity" and ill is not None and ill.illness == "full":
                rows = with_fullness(rows, order.ost_names[ill.ost], ill)
            pieces.setdefault(name, []).append(rows)
    for name, tables in pieces.items():
        store.append(name, pa.concat_tables(tables), f"{order.identity}/{name}")
    append_jobs(store, order, _known_jobs(workload, start_s, end_s))
    lines = [_row(activity, pattern, run, work, random, ill) for run in runs]
    store.append("runs", to_arrow(RUNS, lines), f"{order.identity}/runs")
    store_calibration(store, order)
    run_ids = {run.job_id: row["run_id"] for run, row in zip(runs, lines, strict=True)}
    return WrittenCentre(truth.jobs, run_ids, {run.job_id: work.others_pct(run.job_id) for run in runs})


@dataclass(slots=True)
class RunWork:
    """Disk I/Os of planted jobs by direction and size, and the load of others beside them."""

    counts: dict[str, Counts] = field(default_factory=dict)
    loads: dict[str, Floats] = field(default_factory=dict)

    def add(self, activity: Activity, block: TickBlock) -> None:
        """Take a block in."""
        for part in block.planted:
            job_id = part.job.job_id
            self.counts[job_id] = self.counts.get(job_id, 0) + part.counts.sum(axis=(2, 3))
            self.loads[job_id] = self.loads.get(job_id, 0.0) + np.array(weighted_load(activity, block, part))

    def others_pct(self, job_id: str) -> float:
        """Mean load of others, weighted with the job's disk time."""
        return float(self.loads[job_id][1] / self.loads[job_id][0])


def _days(start_s: int, end_s: int) -> Iterator[tuple[int, int]]:
    for day_s in range(start_s // DAY_S * DAY_S, end_s, DAY_S):
        yield max(day_s, start_s), min(day_s + DAY_S, end_s)


def _known_jobs(workload: SimulatedWorkload, start_s: int, end_s: int) -> list[Job]:
    """All jobs that began in time, also those that ended later."""
    longest_s = int(max(job.length_s for job in workload.jobs))
    return [job for job in jobs_between(workload, start_s, end_s + longest_s) if job.start_s < end_s]


def _row(
    activity: Activity,
    pattern: ApplicationPattern,
    run: RunPattern,
    work: RunWork,
    random: np.random.Generator,
    ill: IllTarget | None,
) -> dict[str, Any]:
    filesystem = activity.workload.filesystem
    start_s, end_s = run_times(pattern, run)
    counts, disk_s = work.counts[run.job_id], float(work.loads[run.job_id][0])
    slower = RunSlowdown(
        1.0 + SLOWDOWN * work.others_pct(run.job_id) / 100.0,
        1.0 if ill is None else ill.slowdown_at(run.start_s),
        _metadata_slowdown(activity, pattern, run),
    )
    return {
        "time": end_s * 1_000_000,
        "date": start_s // DAY_S,
        "source": SOURCE,
        "filesystem": filesystem,
        "run_id": run_id(filesystem, activity.seed, run.job_id),
        "job_id": run.job_id,
        "start": start_s * 1_000_000,
        "duration_s": float(end_s - start_s),
        "log": f"{pattern.user}_{pattern.executable}_id{run.job_id}.darshan",
        **run_row(pattern, run, counts, disk_s, slower, random),
    }


def _metadata_slowdown(activity: Activity, pattern: ApplicationPattern, run: RunPattern) -> float | None:
    """By the operations of others in its time; None: its opens wait for the disks."""
    if pattern.doubling_ops_per_s is None:
        return None
    first, ticks, mdts = run.start_s // activity.tick_s, pattern.length_s // activity.tick_s, activity.workload.mdts
    done = int(activity.metadata_of(first, ticks, mdts).sum())
    own = (part for part in activity.planted_metadata(first, ticks, mdts) if part.job.job_id == run.job_id)
    others = done - sum(int(part.counts.sum()) for part in own)
    return 1.0 + others / pattern.length_s / pattern.doubling_ops_per_s
