"""Applications beside each other, and one across core counts: bytes, opens and closes, RPCs by size (N9, Figs. 2–9).

An application is what jobs of one name run. Its sums are over its jobs; what stands beside those of others is the mean
of a job, and the share of each RPC size in all its RPCs. Where jobs have Darshan logs, these tell the other attributes
of the study's survey: random or sequential, append-only, own or shared files, interface.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, Literal

import narwhals as nw

from iolens.analyses.job_report import SMALL_BYTES
from iolens.analyses.job_totals import JobTotals, KnownJob
from iolens.analyses.runs.asked import lines_of
from iolens.analyses.runs.matching import joined_runs
from iolens.run_tables import INTERFACES, PATTERNS
from iolens.schema import DIRECTIONS
from iolens.store.selection import StoreSelection
from iolens.units import from_epoch_us

By = Literal["name", "cores"]
MOST_SHOWN: Final = 10
_OFFSETS: Final = tuple(f"{kind}_{direction}s" for kind in ("posix", "sequential") for direction in DIRECTIONS)
_BYTES: Final = tuple(f"{name}_{direction}_bytes" for name in (*PATTERNS, *INTERFACES) for direction in DIRECTIONS)

JobKey = tuple[str | None, str, int]  # cluster, id, start in microseconds
LoggedSums = Mapping[str, int]  # of `runs`, by column, of the runs of one job


@dataclass(frozen=True, slots=True)
class SizeShare:
    """RPCs of up to `size_bytes` (and more than the size before), and their share of the RPCs of that direction."""

    size_bytes: int
    reads: int
    writes: int
    read_pct: float | None
    write_pct: float | None


@dataclass(frozen=True, slots=True)
class LoggedAccesses:
    """What Darshan logs tell of the accesses of an application, on whichever file system; None: nothing is known.

    Sequential is a POSIX access at a higher offset than the one before. Append-only is a file that one rank alone
    wrote, each time where it had ended before. Shares of files are of their bytes, read and written.
    """

    runs: int
    sequential_read_pct: float | None
    sequential_write_pct: float | None
    appended_write_pct: float | None  # of the bytes written, those to append-only files
    unique_pct: float | None  # of the bytes, those of files of one rank
    shared_pct: float | None  # of all ranks
    partially_shared_pct: float | None  # of some
    interface: str | None  # that most bytes went through
    interface_pct: dict[str, float]  # of the bytes, by the highest interface of each file


@dataclass(frozen=True, slots=True)
class ApplicationTotals:
    """All jobs of one name, or of one name and core count. A sum or mean is of the jobs of which it is known."""

    name: str | None
    cores: int | None  # only where core counts are kept apart
    jobs: int
    sharing_nodes: int
    cores_min: int | None
    cores_max: int | None
    duration_s_mean: float
    read_bytes: int | None
    write_bytes: int | None
    read_bytes_mean: float | None
    write_bytes_mean: float | None
    opens_mean: float | None
    closes_mean: float | None
    stats_mean: float | None
    rpc_jobs: int  # whose RPCs by size are known
    small_read_rpc_pct: float | None  # of 64 KiB or less
    small_write_rpc_pct: float | None
    rpc_sizes: list[SizeShare]
    logged_jobs: int  # with a Darshan log
    accesses: LoggedAccesses | None  # of these


@dataclass(frozen=True, slots=True)
class Applications:
    """Applications of a window, those that moved most first; one across core counts in the order of cores."""

    filesystem: str
    window_start: datetime | None
    window_end: datetime | None
    by: By
    jobs: int
    applications: list[ApplicationTotals]
    applications_left_out: int  # that moved less
    jobs_left_out: int  # of those
    jobs_unnamed: int  # no name, or no core count where these are kept apart: in no application
    jobs_without_counters: int
    jobs_running: int


def job_applications(
    filesystem: str,
    jobs: Sequence[JobTotals],
    by: By = "name",
    top: int = MOST_SHOWN,
    without_counters: int = 0,
    running: int = 0,
    logged: Mapping[JobKey, LoggedSums] | None = None,
) -> Applications:
    """Group the jobs and sum each group; at most `top` groups are kept. `logged`: what logs tell, by job."""
    named = [line for line in jobs if line.job.name is not None and (by == "name" or line.job.cores is not None)]
    groups: dict[Hashable, list[JobTotals]] = {}
    for line in named:
        groups.setdefault((line.job.name, line.job.cores if by == "cores" else None), []).append(line)
    whole = [_application(members, by, logged or {}) for members in groups.values()]
    ranked = sorted(whole, key=lambda line: (-((line.read_bytes or 0) + (line.write_bytes or 0)), str(line.name)))
    kept = ranked[:top]
    if by == "cores":
        kept.sort(key=lambda line: (str(line.name), line.cores or 0))
    return Applications(
        filesystem=filesystem,
        window_start=from_epoch_us(min(line.job.start_us for line in jobs)) if jobs else None,
        window_end=from_epoch_us(max(line.job.end_us for line in jobs)) if jobs else None,
        by=by,
        jobs=len(jobs),
        applications=kept,
        applications_left_out=len(ranked) - len(kept),
        jobs_left_out=sum(line.jobs for line in ranked[top:]),
        jobs_unnamed=len(jobs) - len(named),
        jobs_without_counters=without_counters,
        jobs_running=running,
    )


def logged_sums(selection: StoreSelection) -> dict[JobKey, LoggedSums]:
    """What the logs of the selection's runs say of their accesses, by the job that each run belongs to."""
    written = sum((nw.col(f"{pattern}_write_bytes") for pattern in PATTERNS[1:]), nw.col(f"{PATTERNS[0]}_write_bytes"))
    is_known = ~nw.col("appended_write_bytes").is_null()
    names = (*_OFFSETS, *_BYTES, "appended_write_bytes", "judged_write_bytes")
    runs = joined_runs(selection).filter(~nw.col("matched_start_us").is_null())
    key = ("matched_cluster", "matched_job_id", "matched_start_us")
    lines = lines_of(
        runs.with_columns(nw.when(is_known).then(written).alias("judged_write_bytes"))
        .group_by(*key)
        .agg(nw.len().alias("runs"), *(nw.col(name).sum().cast(nw.Int64) for name in names))
    )
    return {
        (line[key[0]], str(line[key[1]]), int(line[key[2]])): {name: line[name] or 0 for name in ("runs", *names)}
        for line in lines
    }


def _key(job: KnownJob) -> JobKey:
    return job.cluster, job.job_id, job.start_us


def _accesses(sums: Sequence[LoggedSums]) -> LoggedAccesses | None:
    if not sums:
        return None
    total = {name: sum(line[name] for line in sums) for name in sums[0]}

    def moved(name: str) -> int:
        return sum(total[f"{name}_{direction}_bytes"] for direction in DIRECTIONS)

    whole, through = sum(map(moved, PATTERNS)), {name: moved(name) for name in INTERFACES if moved(name)}
    return LoggedAccesses(
        runs=total["runs"],
        sequential_read_pct=_pct(total["sequential_reads"], total["posix_reads"]),
        sequential_write_pct=_pct(total["sequential_writes"], total["posix_writes"]),
        appended_write_pct=_pct(total["appended_write_bytes"], total["judged_write_bytes"]),
        unique_pct=_pct(moved("unique"), whole),
        shared_pct=_pct(moved("shared"), whole),
        partially_shared_pct=_pct(moved("partially_shared"), whole),
        interface=max(through, key=through.__getitem__, default=None),
        interface_pct={name: 100 * count / sum(through.values()) for name, count in through.items()},
    )


def _application(members: Sequence[JobTotals], by: By, logged: Mapping[JobKey, LoggedSums]) -> ApplicationTotals:
    job = members[0].job
    cores = [line.job.cores for line in members if line.job.cores is not None]
    sizes = _sizes(members)
    reads = _known(members, lambda line: line.read_bytes)
    writes = _known(members, lambda line: line.write_bytes)
    of_logs = [logged[_key(line.job)] for line in members if _key(line.job) in logged]
    return ApplicationTotals(
        name=job.name,
        cores=job.cores if by == "cores" else None,
        jobs=len(members),
        sharing_nodes=sum(line.shares_nodes is True for line in members),
        cores_min=min(cores, default=None),
        cores_max=max(cores, default=None),
        duration_s_mean=sum(line.job.duration_s for line in members) / len(members),
        read_bytes=sum(reads) if reads else None,
        write_bytes=sum(writes) if writes else None,
        read_bytes_mean=_mean(reads),
        write_bytes_mean=_mean(writes),
        opens_mean=_mean(_known(members, lambda line: line.opens)),
        closes_mean=_mean(_known(members, lambda line: line.closes)),
        stats_mean=_mean(_known(members, lambda line: None if line.metadata is None else line.metadata.get("stat", 0))),
        rpc_jobs=sum(line.rpc_sizes is not None for line in members),
        small_read_rpc_pct=_small(sizes, "read"),
        small_write_rpc_pct=_small(sizes, "write"),
        rpc_sizes=sizes,
        logged_jobs=len(of_logs),
        accesses=_accesses(of_logs),
    )


def _known(members: Iterable[JobTotals], of: Callable[[JobTotals], int | None]) -> list[int]:
    return [value for line in members if (value := of(line)) is not None]


def _mean(values: Sequence[int]) -> float | None:
    return sum(values) / len(values) if values else None


def _sizes(members: Iterable[JobTotals]) -> list[SizeShare]:
    counts: dict[str, Counter[int]] = {direction: Counter() for direction in DIRECTIONS}
    for line in members:
        for size in line.rpc_sizes or ():
            counts["read"][size.size_bytes] += size.reads
            counts["write"][size.size_bytes] += size.writes
    wholes = {direction: counts[direction].total() for direction in DIRECTIONS}
    return [
        SizeShare(
            size,
            *(counts[name][size] for name in DIRECTIONS),
            *(_pct(counts[name][size], wholes[name]) for name in DIRECTIONS),
        )
        for size in sorted(counts["read"])
    ]


def _pct(part: int, whole: int) -> float | None:
    return 100 * part / whole if whole else None


def _small(sizes: Sequence[SizeShare], direction: str) -> float | None:
    shares: list[Any] = [getattr(size, f"{direction}_pct") for size in sizes if size.size_bytes <= SMALL_BYTES]
    known = [size for size in sizes if getattr(size, f"{direction}_pct") is not None]
    return sum(shares) if known else None
