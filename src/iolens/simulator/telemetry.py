"""A simulated centre written straight into a store, with the true utilization beside it.

Each day is a pure function of workload, seed and date, so that worker processes write days on their own; the same
order given twice adds nothing.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, field, replace
from datetime import datetime
from multiprocessing import get_context
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from iolens.errors import UsageError
from iolens.models.transaction_time import CalibrationState
from iolens.schema import DIRECTIONS, SIZE_BINS, TARGET_SERVERS, size_column
from iolens.simulator.activity import HOUR_S, Activity, Counts, Job, TickBlock, jobs_between
from iolens.simulator.capacity import ost_fullness
from iolens.simulator.client_tree import CORES_PER_NODE
from iolens.simulator.job_telemetry import MINUTE_S, job_rows, operation_parts, operation_rows
from iolens.simulator.server_names import server_names
from iolens.simulator.telemetry_columns import SOURCE, interval_columns, name_column, time_column
from iolens.simulator.truth import Truth, refuse_overlap
from iolens.simulator.workload import OPERATIONS, SIZES, SimulatedWorkload
from iolens.store.rows import to_arrow
from iolens.store.store import Store
from iolens.units import DAY_S, epoch_us, from_epoch_us, iso

CAPACITY_EVERY_S: Final = 600
ROWS_AT_ONCE: Final = 450_000  # bounds memory: one append of wide rows
LARGE: Final = ("target_sizes", "target_io", "job_io")  # appended block by block, the others once a part
SMALL: Final = 150_000  # rows that are written sooner than worker processes start


@dataclass(frozen=True, slots=True)
class SimulationOrder:
    """What to simulate: [start, end) in whole minutes since 1970."""

    store: str
    workload: SimulatedWorkload
    osts: int
    mdts: int
    seed: int
    start_s: int
    end_s: int
    with_jobs: bool = True
    origin_s: int = 0  # where growth begins

    @property
    def identity(self) -> str:
        """The same for the same numbers, whenever they are asked for."""
        return f"simulate/{self.workload.filesystem}/{self.workload.digest}/{self.seed}/{self.osts}/{self.mdts}"

    @property
    def ost_names(self) -> list[str]:
        """Names of the OSTs as Lustre gives them."""
        return [f"{self.workload.filesystem}-OST{number:04x}" for number in range(self.osts)]

    @property
    def mdt_names(self) -> list[str]:
        """Names of the MDTs as Lustre gives them."""
        return [f"{self.workload.filesystem}-MDT{number:04x}" for number in range(self.mdts)]

    @property
    def servers(self) -> dict[str, str]:
        """The server of each target: four OSTs each, and an MDT each."""
        return server_names(self.ost_names, self.mdt_names)


@dataclass(slots=True)
class Written:
    """What became of an order."""

    truth: Truth = field(default_factory=Truth)
    rows: dict[str, int] = field(default_factory=dict)

    def merge(self, other: Written) -> None:
        """Take another part in."""
        self.truth.merge(other.truth)
        for name, rows in other.rows.items():
            self.rows[name] = self.rows.get(name, 0) + rows


def order_of(
    store: str,
    workload: SimulatedWorkload,
    *,
    start: datetime,
    days: float,
    osts: int | None = None,
    mdts: int | None = None,
    seed: int = 0,
    with_jobs: bool = True,
) -> SimulationOrder:
    """An order for `days` from `start`, checked."""
    start_s, length_s = round(epoch_us(start) / 1e6), round(days * DAY_S)
    if epoch_us(start) != start_s * 1_000_000 or start_s % MINUTE_S or length_s % MINUTE_S or length_s <= 0:
        raise UsageError("a simulation starts on a whole minute and lasts whole minutes")
    if osts is not None and osts < 1:
        raise UsageError("a file system has at least one OST")
    return SimulationOrder(
        store,
        workload,
        workload.osts if osts is None else osts,
        workload.mdts if mdts is None else mdts,
        seed,
        start_s,
        start_s + length_s,
        with_jobs,
        start_s,
    )


def simulate_telemetry(
    order: SimulationOrder,
    *,
    workers: int = 2,
    progress: Callable[[str], None] | None = None,
    with_records: bool = True,
) -> Written:
    """Write the whole order, its truth and the disks' coefficients as a calibration.

    Without records of jobs where a scheduler's list of them is loaded, which has their nodes.
    """
    truth = Path(order.store) / f"truth-{order.workload.filesystem}.json"
    store = Store(order.store)
    if store.tables.is_local:
        refuse_overlap(truth, order.identity, order.start_s * 1_000_000, order.end_s * 1_000_000)
    done = Written()
    for part, written in _write_parts(order, workers):
        done.merge(written)
        if progress is not None:
            progress(iso(from_epoch_us(part.start_s * 1_000_000)))
    has_records = order.with_jobs and with_records
    ended = list(jobs_between(order.workload, order.start_s, order.end_s)) if has_records else []
    done.rows["jobs"] = append_jobs(store, order, ended)
    store_calibration(store, order)
    if store.tables.is_local:
        truth.write_text(json.dumps(truth_of(order, done), indent=2) + "\n")
    return done


def truth_of(order: SimulationOrder, written: Written) -> dict[str, Any]:
    """What the store must be found to say."""
    disks = order.workload.disks
    return {
        "filesystem": order.workload.filesystem,
        "identity": order.identity,
        "from": iso(from_epoch_us(order.start_s * 1_000_000)),
        "to": iso(from_epoch_us(order.end_s * 1_000_000)),
        "seed": order.seed,
        "osts": order.osts,
        "tick_s": order.workload.tick_s,
        "coefficients": {
            "write_latency_s": disks.write.latency_s,
            "write_s_per_byte": disks.write.s_per_byte,
            "read_latency_s": disks.read.latency_s,
            "read_s_per_byte": disks.read.s_per_byte,
        },
        **written.truth.summary(),
        "jobs": written.truth.jobs.summary(),
    }


def write_part(order: SimulationOrder) -> Written:
    """Write a part of an order, block by block; called in a worker process."""
    store, written = Store(order.store), Written()
    activity = Activity(order.workload, order.osts, order.seed)
    tick_s = order.workload.tick_s
    small: dict[str, list[pa.Table]] = {}

    def append(name: str, rows: pa.Table, start_s: int, end_s: int) -> None:
        store.append(name, rows, f"{order.identity}/{name}/{start_s}-{end_s}")
        written.rows[name] = written.rows.get(name, 0) + len(rows)

    for start_s, end_s in _blocks(order):
        block = activity.block(start_s // tick_s, (end_s - start_s) // tick_s)
        written.truth.add(block)
        for name, rows in tables_of_block(order, activity, block, written.truth):
            if name in LARGE:
                append(name, rows, start_s, end_s)
            else:
                small.setdefault(name, []).append(rows)
    small["target_servers"] = [_target_servers(order)]
    for name, pieces in small.items():
        append(name, pa.concat_tables(pieces), order.start_s, order.end_s)
    return written


def _write_parts(order: SimulationOrder, workers: int) -> Iterator[tuple[SimulationOrder, Written]]:
    parts = _parts(order, workers)
    rows = (order.end_s - order.start_s) // order.workload.tick_s * order.osts
    if workers < 2 or len(parts) < 2 or rows < SMALL:
        for part in parts:
            yield part, write_part(part)
        return
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        futures = {pool.submit(write_part, part): part for part in parts}
        for future in as_completed(futures):
            yield futures[future], future.result()


def _parts(order: SimulationOrder, workers: int) -> list[SimulationOrder]:
    """A day each, or a quarter of one where there are too few days to keep all workers busy."""
    days = (order.end_s - 1) // DAY_S - order.start_s // DAY_S + 1
    length = DAY_S if days >= 2 * workers or days % workers == 0 else DAY_S // 4
    cuts = range(order.start_s // length * length, order.end_s, length)
    return [replace(order, start_s=max(cut, order.start_s), end_s=min(cut + length, order.end_s)) for cut in cuts]


def _blocks(order: SimulationOrder) -> Iterator[tuple[int, int]]:
    """Pieces of whole hours inside one UTC day, small enough to hold in memory."""
    rows_per_hour = HOUR_S // order.workload.tick_s * order.osts
    hours = next((h for h in (24, 12, 8, 6, 4, 3, 2) if h * rows_per_hour <= ROWS_AT_ONCE), 1)
    length = hours * HOUR_S
    for cut in range(order.start_s // length * length, order.end_s, length):
        yield max(cut, order.start_s), min(cut + length, order.end_s)


def tables_of_block(
    order: SimulationOrder, activity: Activity, block: TickBlock, truth: Truth
) -> Iterator[tuple[str, pa.Table]]:
    """The rows of each table of a block within one UTC day; what is true of jobs is added to `truth`."""
    tick_s = order.workload.tick_s
    ends = (np.arange(block.first_tick, block.first_tick + block.ticks, dtype=np.int64) + 1) * tick_s
    common = interval_columns(order.workload.filesystem, np.repeat(ends, order.osts), tick_s) | {
        "target": name_column(order.ost_names, np.tile(np.arange(order.osts), block.ticks)),
        "target_kind": pa.repeat("ost", block.ticks * order.osts),
    }
    yield "target_sizes", _sizes(common, block)
    yield "target_io", _target_io(common, block)
    operations = activity.metadata_of(block.first_tick, block.ticks, order.mdts)
    if order.mdts:
        yield "metadata_ops", _metadata(order, operations, ends)
    capacity = _capacity(order, ends[ends % CAPACITY_EVERY_S == 0])
    if capacity is not None:
        yield "target_capacity", capacity
    if order.with_jobs:
        yield "job_io", _job_io(order, activity, block, operations, truth)


def _target_servers(order: SimulationOrder) -> pa.Table:
    """Who serves each target, once a part."""
    head = {"time": order.start_s * 1_000_000, "source": SOURCE, "filesystem": order.workload.filesystem}
    rows = [{**head, "target": target, "host": host} for target, host in order.servers.items()]
    return to_arrow(TARGET_SERVERS, rows)


def _sizes(common: dict[str, Any], block: TickBlock) -> pa.Table:
    none = pa.repeat(pa.scalar(0, pa.int64()), len(common["time"]))
    counts = {
        size_column(direction, size): pa.array(block.counts[number, SIZES.index(size)].reshape(-1))
        if size in SIZES
        else none
        for number, direction in enumerate(DIRECTIONS)
        for size in SIZE_BINS
    }
    return pa.table({**common, **counts, **{f"{direction}_ios_outside": none for direction in DIRECTIONS}})


def _target_io(common: dict[str, Any], block: TickBlock) -> pa.Table:
    moved: dict[str, Any] = {}
    for number, direction in enumerate(DIRECTIONS):
        moved[f"{direction}_bytes"] = np.tensordot(np.array(SIZES), block.counts[number], axes=1).reshape(-1)
        moved[f"{direction}_ops"] = block.counts[number].sum(axis=0).reshape(-1)
    return pa.table({**common, **moved})


def _job_io(order: SimulationOrder, activity: Activity, block: TickBlock, operations: Counts, truth: Truth) -> pa.Table:
    """Rows of OSTs; those of MDTs too where jobs are planted."""
    on_osts = job_rows(activity, block, order.ost_names, truth.jobs)
    parts = operation_parts(activity, block.first_tick, operations)
    for part in parts:
        truth.jobs.add_metadata(part.job, int(part.counts.sum()))
    if not order.mdts or not order.workload.planted:
        return on_osts
    on_mdts = operation_rows(order.workload.filesystem, order.mdt_names, parts)
    return pa.concat_tables([on_osts, on_mdts], promote_options="default")


def _metadata(order: SimulationOrder, done: Counts, ends: NDArray[np.int64]) -> pa.Table:
    columns = {name: done[number].reshape(-1) for number, name in enumerate(OPERATIONS)}
    renames = columns["rename"]
    columns |= {"samedir_rename": renames - renames // 16, "crossdir_rename": renames // 16}
    which = np.tile(np.arange(order.mdts), len(ends))
    common = interval_columns(order.workload.filesystem, np.repeat(ends, order.mdts), order.workload.tick_s)
    return pa.table({**common, "target": name_column(order.mdt_names, which), **columns})


def _capacity(order: SimulationOrder, times: NDArray[np.int64]) -> pa.Table | None:
    rows = [
        (int(second), name, ost_fullness(order.workload, number, int(second) - order.origin_s))
        for second in times
        for number, name in enumerate(order.ost_names)
    ]
    if not rows:
        return None
    full = np.array([fullness for _, _, fullness in rows], np.int64)
    seconds = np.array([second for second, _, _ in rows], np.int64)
    return pa.table({
        "time": time_column(seconds),
        "date": pa.array(seconds // DAY_S, pa.int32()).cast(pa.date32()),
        "filesystem": pa.repeat(order.workload.filesystem, len(rows)),
        "source": pa.repeat(SOURCE, len(rows)),
        "target": pa.array([name for _, name, _ in rows]),
        "target_kind": pa.repeat("ost", len(rows)),
        "total_bytes": full[:, 0],
        "used_bytes": full[:, 0] - full[:, 1],
        "free_bytes": full[:, 1],
        "total_inodes": full[:, 3],
        "used_inodes": full[:, 3] - full[:, 4],
        "free_inodes": full[:, 4],
        "available_bytes": full[:, 2],
    })  # fmt: skip


def append_jobs(store: Store, order: SimulationOrder, jobs: Sequence[Job]) -> int:
    """The scheduler's records of jobs; how many."""
    if not jobs:
        return 0
    starts, ends = (np.array([getattr(job, name) for job in jobs], np.int64) for name in ("start_s", "end_s"))
    rows = pa.table({
        "time": time_column(ends),
        "source": pa.repeat(SOURCE, len(jobs)),
        "filesystem": pa.repeat(order.workload.filesystem, len(jobs)),
        "cluster": pa.repeat("simulated", len(jobs)),
        "job_id": [job.job_id for job in jobs],
        "start": time_column(starts),
        "duration_s": (ends - starts).astype(np.float64),
        "user": [job.user for job in jobs],
        "project": [job.project for job in jobs],
        "name": pa.array([job.name for job in jobs], pa.string()),
        "nodes": pa.array([job.nodes for job in jobs], pa.int64()),
        "cores": pa.array([None if job.nodes is None else job.nodes * CORES_PER_NODE for job in jobs], pa.int64()),
        "state": pa.repeat("COMPLETED", len(jobs)),
        "ended": pa.repeat(pa.scalar(True), len(jobs)),
    })  # fmt: skip
    store.append("jobs", rows, f"{order.identity}/jobs/{order.start_s}-{order.end_s}")
    return len(jobs)


def store_calibration(store: Store, order: SimulationOrder) -> None:
    """The disks' own coefficients, so that analyses of this file system use them."""
    name = f"simulated-{order.workload.filesystem}"
    disks = order.workload.disks
    values: dict[str, object] = {
        "write_latency_s": disks.write.latency_s,
        "write_s_per_byte": disks.write.s_per_byte,
        "read_latency_s": disks.read.latency_s,
        "read_s_per_byte": disks.read.s_per_byte,
        "name": name,
        "filesystem": order.workload.filesystem,
        "valid_from": order.start_s * 1_000_000,
    }
    if any(all(row[key] == value for key, value in values.items()) for row in store.calibrations()):
        return
    evidence = {"source": SOURCE, "state": CalibrationState.MEASURED.value, "evidence": "the law of the simulator"}
    store.add_calibration({**values, **evidence, "time": order.start_s * 1_000_000})
