"""The rows of a random centre, straight into a store: each table at once, because there may be hundreds of centres."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa

from iolens.arrays import Floats
from iolens.run_tables import RUNS
from iolens.simulator.activity import Activity, TickBlock
from iolens.simulator.ill_targets import IllTarget, with_fullness, with_io_times
from iolens.simulator.job_truth import JobTruths
from iolens.simulator.jobs import Job, jobs_between
from iolens.simulator.planted_counts import Counts
from iolens.simulator.planted_load import SLOWDOWN, weighted_load
from iolens.simulator.random_runs import ApplicationPattern, RunPattern, RunSlowdown, run_id, run_row, run_times
from iolens.simulator.telemetry import SimulationOrder, append_jobs, store_calibration, tables_of_block
from iolens.simulator.telemetry_columns import SOURCE
from iolens.simulator.truth import Truth
from iolens.simulator.workload import SimulatedWorkload
from iolens.store.rows import to_arrow
from iolens.store.store import Store
from iolens.units import DAY_S


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
