"""Darshan logs of the jobs that a simulated file system runs, and what must be read back from them."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import cycle
from pathlib import Path
from typing import Any, Final

import numpy as np

from iolens.errors import UsageError
from iolens.models.transaction_time import Calibration, Coefficients
from iolens.simulator.activity import HOUR_S, MOST_PCT, Activity, jobs_between
from iolens.simulator.client_tree import CORES_PER_NODE, JobOnNodes, node_name, sacct_text
from iolens.simulator.darshan_logs import write_log
from iolens.simulator.darshan_runs import FileWork, SimulatedRun, Sizes, Strategy, by_rank, divided, longest_s, users_of
from iolens.simulator.job_counts import SLOWDOWN, JobPart, by_job, load_of_others_pct, operations_by_job
from iolens.simulator.workload import OPERATIONS, SIZES, nodes_of_jobs
from iolens.units import MIB

# What is true of a simulated application run, and must be read back from its Darshan log ------------------------------


@dataclass(frozen=True, slots=True)
class RunTruth:
    """What must be read back from a run's log: POSIX and STDIO together, as `runs` has it."""

    strategy: Strategy
    read_bytes: int
    write_bytes: int
    reads: int
    writes: int
    opens: int
    files: int
    read_s: float
    write_s: float
    metadata_s: float
    slowest_rank_s: float
    mib_per_s: float | None
    io_ranks: int
    osts: int
    bytes_by_ost: Mapping[int, int] = field(default_factory=dict)
    """Of files on one OST each; files striped over several are divided evenly."""


def truth_of(run: SimulatedRun) -> RunTruth:
    """By what its ranks do; files that all ranks share count with their slowest rank."""
    everything = [*run.uses, *([run.printed] if run.printed is not None else [])]
    own = everything[len(run.uses) :] if run.is_reduced else everything
    slowest = max(by_rank(own, lambda use: use.io_s).values(), default=0.0)
    if run.is_reduced:
        slowest += sum(max(use.io_s for use in uses) for uses in run.uses_by_file.values())
    moved = by_rank(everything, lambda use: use.read_bytes + use.write_bytes)
    total = sum(use.read_bytes + use.write_bytes for use in everything)
    by_ost: dict[int, int] = defaultdict(int)
    for work in run.files:
        for ost, part in zip(work.osts, divided(work.moved_bytes, len(work.osts)), strict=True):
            by_ost[ost] += part
    return RunTruth(
        strategy=run.strategy,
        read_bytes=sum(use.read_bytes for use in everything),
        write_bytes=sum(use.write_bytes for use in everything),
        reads=sum(part.count for use in everything for part in use.reads),
        writes=sum(part.count for use in everything for part in use.writes),
        opens=sum(use.opens for use in everything),
        files=len({use.path for use in everything}),
        read_s=sum(use.read_s for use in everything),
        write_s=sum(use.write_s for use in everything),
        metadata_s=sum(use.metadata_s for use in everything),
        slowest_rank_s=slowest,
        mib_per_s=total / MIB / slowest if slowest else None,
        io_ranks=sum(amount > 0 for amount in moved.values()),
        osts=len(by_ost),
        bytes_by_ost=dict(by_ost),
    )


# Darshan logs of the jobs that a simulated file system runs -----------------------------------------------------------
# Every read, write, open and stat of a job is in its log.
#
# Jobs, their nodes, their RPCs by OST and their metadata operations are those of the servers and clients of the same
# workload, seed and number of OSTs. The streams of jobs run different applications, and some are not under Darshan.

SACCT_FILE: Final = "sacct.txt"
TRUTH_FILE: Final = "runs.json"
LOGS: Final = "logs"
_BEGIN_S, _END_S = 20.0, 10.0  # of a job, before and after its run
_LONGEST_SHARE: Final = 0.8  # of a run: what its busiest rank may spend in I/O
_METADATA_S: Final = 1e-4
_USED: Final = (0.05, 0.95)  # files are open between these parts of a run
_FIRST_UID: Final = 2000


@dataclass(frozen=True, slots=True)
class Application:
    """What the jobs of a stream run, and how its ranks share the files."""

    executable: str
    strategy: Strategy
    is_random: bool = False


APPLICATIONS: Final[tuple[Application | None, ...]] = (
    Application("cesm.exe", "file_per_process"),
    Application("xgc", "shared"),
    Application("blastn", "rank0"),
    Application("su3_rmd", "collective"),
    None,
    Application("pw.x", "subset"),
    Application("lmp", "partially_shared"),
)
"""By number of the stream, in turn; None: its users do not load Darshan."""


@dataclass(frozen=True, slots=True)
class WrittenRuns:
    """What was written: jobs of the window, and the runs that have logs."""

    jobs: int
    runs: tuple[SimulatedRun, ...]
    logs: tuple[Path, ...]


def write_job_logs(
    folder: Path,
    activity: Activity,
    *,
    mdts: int,
    nodes: int,
    start_s: int,
    end_s: int,
    progress: Callable[[str], None] = lambda text: None,
) -> WrittenRuns:
    """Logs of all jobs that begin and end in the window, below `folder`/logs, the list of these jobs as `sacct -P`
    prints it, and what is true of each run.
    """
    jobs = jobs_in(activity, mdts, nodes, start_s, end_s, progress)
    runs, logs = [], []
    for stream, job in jobs:
        run = run_of(activity, stream, job)
        if run is not None:
            progress(f"job {job.job.job_id}")
            runs.append(run)
            logs.append(write_log(folder / LOGS, run))
    folder.mkdir(parents=True, exist_ok=True)
    (folder / SACCT_FILE).write_text(sacct_text([job for _, job in jobs], end_s))
    (folder / TRUTH_FILE).write_text(json.dumps({"runs": [_named_truth(run) for run in runs]}, indent=1) + "\n")
    return WrittenRuns(len(jobs), tuple(runs), tuple(logs))


def _named_truth(run: SimulatedRun) -> dict[str, Any]:
    """What is true of a run, as JSON writes it."""
    names = {"jobid": str(run.job_id), "user": run.user, "executable": run.executable, "processes": run.processes}
    return {**names, **asdict(truth_of(run))}


def jobs_in(
    activity: Activity, mdts: int, nodes: int, start_s: int, end_s: int, progress: Callable[[str], None]
) -> list[tuple[int, JobOnNodes]]:
    """Number and job of all that begin and end in the window, by start, with everything they did.

    The number is that of its stream; planted jobs are numbered after the streams.
    """
    workload = activity.workload
    if nodes < 1 or not workload.jobs:
        raise UsageError("jobs need at least one node, and a workload with jobs")
    whole = {job.job_id for job in jobs_between(workload, start_s, end_s) if job.start_s >= start_s}
    placement = [tuple(node_name(number) for number in numbers) for numbers in nodes_of_jobs(workload, nodes)]
    jobs: dict[str, tuple[int, JobOnNodes]] = {}

    def known(part: JobPart) -> JobOnNodes:
        if part.job.job_id not in jobs:
            rpcs = np.zeros((2, len(SIZES), activity.targets), np.int64)
            operations = np.zeros((len(OPERATIONS), mdts), np.int64)
            cached = np.zeros(len(SIZES), np.int64)  # Darshan sees all reads; these logs have those of disks
            on_nodes = JobOnNodes(part.job, placement[part.number], rpcs, operations, cached)
            jobs[part.job.job_id] = (part.number, on_nodes)
        return jobs[part.job.job_id][1]

    for first, ticks in _hours(activity, start_s, end_s):
        progress(f"{(first * activity.tick_s - start_s) // HOUR_S} h")
        for part in by_job(workload, activity.block(first, ticks)):
            if part.job.job_id in whole:
                known(part).rpcs += part.counts.sum(axis=2)
        for part in operations_by_job(activity, first, ticks, mdts):
            if part.job.job_id in whole:
                known(part).operations += part.counts.sum(axis=1)
    return sorted(jobs.values(), key=lambda item: (item[1].job.start_s, item[0]))


def _hours(activity: Activity, start_s: int, end_s: int) -> Iterator[tuple[int, int]]:
    """First tick and number of ticks of each hour, or part of it."""
    tick, end = start_s // activity.tick_s, end_s // activity.tick_s
    while tick < end:
        until = min(end, (tick // activity.ticks_per_hour + 1) * activity.ticks_per_hour)
        yield tick, until - tick
        tick = until


def run_of(activity: Activity, number: int, job: JobOnNodes) -> SimulatedRun | None:
    """The run of a job; None where it is not under Darshan."""
    application = _application(activity, number)
    if application is None:
        return None
    processes = len(job.nodes) * CORES_PER_NODE
    run = SimulatedRun(
        executable=application.executable,
        user=job.job.user,
        uid=_FIRST_UID + number,
        job_id=int(job.job.job_id),
        start_s=job.job.start_s + _BEGIN_S,
        end_s=job.job.end_s - _END_S,
        processes=processes,
        strategy=application.strategy,
        files=_files(activity.workload.filesystem, application, job, processes, _osts(activity, number)),
        cost=activity.workload.disks,
        metadata_s=_METADATA_S,
        subset_ranks=max(2, processes // 8),
        is_random=application.is_random,
        collective_buffer_bytes=None,
        mounts=(("/", "ext4"), (f"/{activity.workload.filesystem}", "lustre")),
        nodes=job.nodes,
    )
    streams = len(activity.workload.jobs)
    if number < streams:
        return _fitted(run)
    others_pct = load_of_others_pct(activity, activity.workload.planted[number - streams])
    return _slowed(_fitted(run, slower=1.0 + SLOWDOWN * MOST_PCT / 100.0), others_pct)


def _application(activity: Activity, number: int) -> Application | None:
    streams = len(activity.workload.jobs)
    if number < streams:
        return APPLICATIONS[number % len(APPLICATIONS)]
    planted = activity.workload.planted[number - streams]
    if planted.strategy is None:
        return None
    return Application(planted.executable, planted.strategy, planted.is_random)


def _slowed(run: SimulatedRun, others_pct: float) -> SimulatedRun:
    """Every access takes longer by the load of others on the OSTs of the run."""
    longer = 1.0 + SLOWDOWN * others_pct / 100.0
    cost = Calibration(run.cost.name, *(_faster(run.cost.of(direction), longer) for direction in ("write", "read")))
    return replace(run, cost=cost)


def _osts(activity: Activity, number: int) -> Sequence[int]:
    streams = len(activity.workload.jobs)
    planted = None if number < streams else activity.workload.planted[number - streams].osts
    return range(activity.targets) if planted is None else planted


def _files(
    filesystem: str, application: Application, job: JobOnNodes, processes: int, osts: Sequence[int]
) -> tuple[FileWork, ...]:
    """A file on each OST, or several where every process has its own; together they have all that the job did."""
    per_ost = -(-processes // len(osts)) if application.strategy == "file_per_process" else 1
    kinds = {name: int(job.operations[OPERATIONS.index(name)].sum()) for name in ("open", "getattr")}
    folder = f"/{filesystem}/{job.job.project}/{job.job.job_id}"
    files = len(osts) * per_ost
    return tuple(
        FileWork(
            f"{folder}/{application.executable}.{number:04}",
            (ost,),
            reads=_part(job.rpcs[0, :, ost], number // len(osts), per_ost),
            writes=_part(job.rpcs[1, :, ost], number // len(osts), per_ost),
            opens=_share(kinds["open"], number, files),
            stats=_share(kinds["getattr"], number, files),
        )
        for number, ost in zip(range(files), cycle(osts), strict=False)
    )


def _part(counts: Any, part: int, parts: int) -> Sizes:
    shares = [(size, _share(int(count), part, parts)) for size, count in zip(SIZES, counts, strict=True)]
    return tuple((size, count) for size, count in shares if count)


def _share(total: int, part: int, parts: int) -> int:
    """One of almost equal parts that add up."""
    return total * (part + 1) // parts - total * part // parts


def _fitted(run: SimulatedRun, slower: float = 1.0) -> SimulatedRun:
    """With the times of its files: files that all ranks share one after another, others all along. An RPC takes what
    the disks take, or less, as if several were in flight, where one rank could not do so much in its time; so little
    that it would fit if everything were `slower` times slower.
    """
    needed = [longest_s(run, number) for number in range(len(run.files))]
    busiest_s = sum(needed) if run.is_reduced else max(_by_rank(run, needed).values(), default=0.0)
    faster = min(1.0, _LONGEST_SHARE * run.duration_s / slower / busiest_s) if busiest_s else 1.0
    begin_s, end_s = (share * run.duration_s for share in _USED)
    times: Sequence[tuple[float, float]] = [(begin_s, end_s)] * len(run.files)
    if run.is_reduced:
        edges = begin_s + (end_s - begin_s) * np.cumsum([0.0, *needed]) / max(sum(needed), 1e-9)
        times = list(zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True))
    files = tuple(replace(work, start_s=begin, end_s=end) for work, (begin, end) in zip(run.files, times, strict=True))
    cost = Calibration(run.cost.name, *(_faster(run.cost.of(direction), faster) for direction in ("write", "read")))
    return replace(run, files=files, cost=cost, metadata_s=run.metadata_s * faster)


def _by_rank(run: SimulatedRun, needed: Sequence[float]) -> dict[int, float]:
    """Seconds of each rank in all its files, at most."""
    sums: dict[int, float] = defaultdict(float)
    for number, seconds in enumerate(needed):
        for rank in users_of(run, number):
            sums[rank] += seconds
    return sums


def _faster(cost: Coefficients, factor: float) -> Coefficients:
    return Coefficients(*(part * factor for part in (cost.latency_s, cost.s_per_byte)))
