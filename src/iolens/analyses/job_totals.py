"""Jobs as the scheduler knows them and what their nodes counted, and which of them had company."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import Any, Final, Literal, Self

import narwhals as nw
import numpy as np
import pyarrow as pa

from iolens.analyses.job_report import NAMES, RpcSize
from iolens.arrays import Booleans, Integers
from iolens.store.selection import StoreChunk, StoreSelection
from iolens.units import DAY_US

# A job as the scheduler knows it, and what its nodes counted while it ran ---------------------------------------------

Origin = Literal["job", "nodes"]


@dataclass(frozen=True, slots=True)
class KnownJob:
    """One job; None is not known. `hosts` are its nodes by name, None where the record does not list them."""

    job_id: str
    start_us: int
    end_us: int
    cluster: str | None = None
    name: str | None = None
    user: str | None = None
    project: str | None = None
    nodes: int | None = None
    cores: int | None = None
    hosts: tuple[str, ...] | None = None
    is_running: bool = False

    @classmethod
    def of_row(cls, row: Mapping[str, Any], expand: Callable[[str], Sequence[str]]) -> Self:
        """From a row of `jobs`; `expand` turns its compact node list into names, or raises ValueError."""
        try:
            hosts = tuple(expand(row["node_list"])) if row["node_list"] else None
        except ValueError:
            hosts = None
        kept = {name: row[name] for name in ("job_id", "cluster", "name", "user", "project", "cores")}
        nodes = row["nodes"] if row["nodes"] is not None or hosts is None else len(hosts)
        is_running = row["ended"] is False
        return cls(start_us=row["start"], end_us=row["time"], nodes=nodes, hosts=hosts, is_running=is_running, **kept)

    @property
    def duration_s(self) -> float:
        """From start to end."""
        return (self.end_us - self.start_us) / 1e6


@dataclass(frozen=True, slots=True)
class JobTotals:
    """What one job did to one file system, summed over its nodes and all OSTs. What was never reported is None.

    `origin` is `job` where the sums are of samples at its begin and end, `nodes` where they are of intervals of its
    nodes. Counters belong to the node: with `shares_nodes` they hold what other jobs did there at the same time.
    """

    job: KnownJob
    origin: Origin
    nodes_sampled: int
    observed_s: float  # summed over nodes
    shares_nodes: bool | None  # None: not known
    read_bytes: int | None
    write_bytes: int | None
    rpc_sizes: Sequence[RpcSize] | None
    metadata: Mapping[str, int] | None  # operations by kind

    @property
    def observed_pct(self) -> float | None:
        """How much of its nodes' time the sums cover."""
        whole_s = self.job.duration_s * (self.job.nodes or self.nodes_sampled)
        return min(100 * self.observed_s / whole_s, 100.0) if whole_s > 0 else None

    @property
    def opens(self) -> int | None:
        """Files opened."""
        return None if self.metadata is None else self.metadata.get("open", 0)

    @property
    def closes(self) -> int | None:
        """Files closed."""
        return None if self.metadata is None else self.metadata.get("close", 0)


# The sums of many jobs, made by the engine ----------------------------------------------------------------------------
# Rows of the client tables joined with jobs, grouped by job.
#
# Two kinds of rows can be a job's. Those with its id were sampled at its begin and end, and are taken where there are
# any. Else those of its nodes: each interval of which more than half lies within the job. So an interval is never
# counted for two jobs that follow each other on a node.

TABLES: Final = ("client_io", "client_rpcs", "client_metadata")
_MARGIN_US: Final = DAY_US  # clocks of nodes differ, and prologs begin before a job
_LONGEST_US: Final = 3_600_000_000  # before a job, for intervals that reach into it
_SHORTEST_US: Final = 900_000_000
_1970: Final = date(1970, 1, 1).toordinal()

Frame = nw.LazyFrame[Any]


@dataclass(slots=True)
class _JobSums:
    """One job so far."""

    nodes: int = 0
    observed_s: float = 0.0
    moved: dict[str, int] = field(default_factory=dict)  # bytes, where any row has them
    rpcs: dict[int, Counter[str]] = field(default_factory=dict)  # by size in bytes and direction
    metadata: Counter[str] | None = None


def job_totals(
    selection: StoreSelection, jobs: Sequence[KnownJob], shares_nodes: Sequence[bool | None] | None = None
) -> list[JobTotals]:
    """The totals of those jobs that left any counters, in the order of `jobs`; `shares_nodes` is passed on."""
    if not jobs:
        return []
    first_us = max(min(job.start_us for job in jobs) - _MARGIN_US, 0)
    window = selection.between(first_us, max(job.end_us for job in jobs) + _MARGIN_US)
    shares = shares_nodes or [None] * len(jobs)
    own: dict[int, _JobSums] = {}
    _collect(window, own, lambda chunk: _by_id(window, chunk, jobs))
    rest = [number for number, job in enumerate(jobs) if number not in own and job.hosts]
    by_node: dict[int, _JobSums] = {}
    if rest:
        hosts = _hosts_as_stored({number: jobs[number].hosts or () for number in rest}, _stored_nodes(window))
        _collect(window, by_node, lambda chunk: _by_node(window, chunk, jobs, hosts))
    origins: tuple[tuple[Origin, dict[int, _JobSums]], ...] = (("job", own), ("nodes", by_node))
    both = {number: _totals(jobs[number], shares[number], origin, sums)
            for origin, part in origins for number, sums in part.items()}  # fmt: skip
    return [both[number] for number in sorted(both)]


def sampled_jobs(selection: StoreSelection, job_ids: Sequence[str] = ()) -> list[KnownJob]:
    """Jobs that were sampled at begin and end, as their rows tell where there is no record: id, when, nodes."""
    rows = selection.frame("client_io").filter(~nw.col("job_id").is_null())
    if job_ids:
        rows = rows.filter(nw.col("job_id").is_in(list(job_ids)))
    by_id = rows.group_by("job_id").agg(
        nw.col("start_us").min().alias("first_us"), nw.col("epoch_us").max(), nw.col("node").n_unique().alias("nodes")
    )
    lines = by_id.collect(backend="pyarrow").to_native().to_pylist()
    jobs = [KnownJob(line["job_id"], line["first_us"], line["epoch_us"], nodes=line["nodes"]) for line in lines]
    return sorted(jobs, key=lambda job: (job.start_us, job.job_id))


def _hosts_as_stored(hosts: Mapping[int, Sequence[str]], stored: Iterable[str]) -> dict[int, list[str]]:
    """Nodes as client rows call them, by job: schedulers often leave out the domain, or kernels do."""
    names: dict[str, list[str]] = {}
    for name in stored:
        names.setdefault(_short(name), []).append(name)
    return {number: [name for host in own for name in _known_as(host, names)] for number, own in hosts.items()}


def _known_as(host: str, names: Mapping[str, list[str]]) -> list[str]:
    known = names.get(_short(host), [])
    return [host] if host in known else known if len(known) == 1 else []


def _short(name: str) -> str:
    """A host's name without its domain; an address stays as it is."""
    head = name.partition(".")[0].lower()
    return name if head.isdigit() else head


def _stored_nodes(selection: StoreSelection) -> list[str]:
    """Every node with rows in the window."""
    frame = selection.frame("client_io").select("node").unique()
    return sorted(frame.collect(backend="pyarrow").to_native().column("node").to_pylist())


def _collect(
    selection: StoreSelection, sums: dict[int, _JobSums], joined: Callable[[StoreChunk], Callable[[str], Frame]]
) -> None:
    """Add up the window chunk by chunk; `joined` gives the rows of a table with the number of their job."""
    for chunk in selection.chunks(*TABLES):
        rows = joined(chunk)
        _add_bytes(sums, rows("client_io"))
        _add_rpcs(sums, rows("client_rpcs"))
        _add_operations(sums, rows("client_metadata"))


def _by_id(selection: StoreSelection, chunk: StoreChunk, jobs: Sequence[KnownJob]) -> Callable[[str], Frame]:
    columns = {
        "job": pa.array(range(len(jobs)), pa.int64()),
        "member_id": pa.array([job.job_id for job in jobs], pa.string()),
        "from_us": pa.array([job.start_us for job in jobs], pa.int64()),
        "to_us": pa.array([job.end_us for job in jobs], pa.int64()),
    }
    members = selection.beside(pa.table(columns))
    overlaps = (nw.col("start_us") <= nw.col("to_us")) & (nw.col("epoch_us") >= nw.col("from_us"))

    def rows(table: str) -> Frame:
        sampled = chunk.frame(table).filter(~nw.col("job_id").is_null())
        return sampled.join(members, left_on=["job_id"], right_on=["member_id"]).filter(overlaps)

    return rows


def _by_node(
    selection: StoreSelection, chunk: StoreChunk, jobs: Sequence[KnownJob], hosts: Mapping[int, Sequence[str]]
) -> Callable[[str], Frame]:
    """Joined by node and a stretch of time about as long as a job, so that an interval meets only jobs near it."""
    width_us = _stretch_us([jobs[number] for number in hosts])
    first_us = (chunk.first.toordinal() - _1970) * DAY_US
    members = selection.beside(_members(jobs, hosts, width_us, (first_us // width_us, chunk.end_us // width_us)))
    within_us = nw.min_horizontal("epoch_us", "to_us") - nw.max_horizontal("start_us", "from_us")
    is_mostly_within = 2 * within_us > nw.col("epoch_us") - nw.col("start_us")

    def rows(table: str) -> Frame:
        of_nodes = chunk.frame(table).filter(nw.col("job_id").is_null())
        placed = of_nodes.with_columns((nw.col("start_us") // width_us).alias("stretch"))
        met = placed.join(members, left_on=["node", "stretch"], right_on=["member_node", "member_stretch"])
        return met.filter(is_mostly_within)

    return rows


def _stretch_us(jobs: Sequence[KnownJob]) -> int:
    """As long as a job is on average: short ones would repeat each job often, long ones would hold many jobs."""
    mean_us = sum(job.end_us - job.start_us for job in jobs) // len(jobs)
    return min(max(mean_us, _SHORTEST_US), DAY_US)


def _members(
    jobs: Sequence[KnownJob], hosts: Mapping[int, Sequence[str]], width_us: int, stretches: tuple[int, int]
) -> pa.Table:
    """A row for each node and each stretch of time of each job, of those from the first to the last of `stretches`."""
    names: list[str] = []
    parts: list[tuple[int, int, int, int]] = []  # job, stretch, first host and how many
    for number, own in hosts.items():
        job = jobs[number]
        # An interval that is mostly within a job begins less than the job's length before it.
        earliest_us = job.start_us - min(job.end_us - job.start_us, _LONGEST_US)
        first, last = max(earliest_us // width_us, stretches[0]), min(job.end_us // width_us, stretches[1])
        if first <= last:
            parts += [(number, stretch, len(names), len(own)) for stretch in range(first, last + 1)]
            names += own
    numbers, stretch, begin, length = np.array(parts, dtype=np.int64).reshape(-1, 4).T
    owner = np.repeat(numbers, length)
    place = np.arange(owner.size) - np.repeat(np.cumsum(length) - length - begin, length)
    starts, ends = (np.array([getattr(job, name) for job in jobs], dtype=np.int64) for name in ("start_us", "end_us"))
    return pa.table(
        {
            "job": owner,
            "member_node": pa.array(names, pa.string()).take(pa.array(place)),
            "member_stretch": np.repeat(stretch, length),
            "from_us": starts[owner],
            "to_us": ends[owner],
        }
    )


def _lines(frame: Frame) -> list[dict[str, Any]]:
    lines: list[dict[str, Any]] = frame.collect(backend="pyarrow").to_native().to_pylist()
    return lines


def _add_bytes(sums: dict[int, _JobSums], rows: Frame) -> None:
    moved = ("read_bytes", "write_bytes")
    answer = rows.group_by("job").agg(
        nw.col("node").n_unique().alias("nodes"),
        nw.col("duration_s").sum().alias("observed_s"),
        *(nw.col(name).sum().cast(nw.Int64) for name in moved),
        *(nw.col(name).count().alias(f"{name}_known") for name in moved),
    )
    for line in _lines(answer):
        job = sums.setdefault(line["job"], _JobSums())
        job.nodes = max(job.nodes, line["nodes"])
        job.observed_s += line["observed_s"] or 0.0
        for name in moved:
            if line[f"{name}_known"]:
                job.moved[name] = job.moved.get(name, 0) + line[name]


def _add_rpcs(sums: dict[int, _JobSums], rows: Frame) -> None:
    sized = rows.with_columns((nw.col("pages") * nw.col("page_bytes")).alias("size_bytes"))
    answer = sized.group_by("job", "size_bytes", "direction").agg(nw.col("rpcs").sum().cast(nw.Int64))
    for line in _lines(answer):
        job = sums.setdefault(line["job"], _JobSums())
        job.rpcs.setdefault(line["size_bytes"], Counter())[line["direction"]] += line["rpcs"]


def _add_operations(sums: dict[int, _JobSums], rows: Frame) -> None:
    answer = rows.group_by("job", "operation").agg(nw.col("count").sum().cast(nw.Int64).alias("operations"))
    for line in _lines(answer):
        job = sums.setdefault(line["job"], _JobSums())
        job.metadata = Counter() if job.metadata is None else job.metadata
        job.metadata[NAMES.get(line["operation"], line["operation"])] += line["operations"]


def _totals(job: KnownJob, shares_nodes: bool | None, origin: Origin, sums: _JobSums) -> JobTotals:
    sizes = [RpcSize(size, counts["read"], counts["write"]) for size, counts in sorted(sums.rpcs.items())]
    return JobTotals(
        job, origin, sums.nodes, sums.observed_s, shares_nodes, sums.moved.get("read_bytes"),
        sums.moved.get("write_bytes"), tuple(sizes) or None, None if sums.metadata is None else dict(sums.metadata),
    )  # fmt: skip


# Which jobs had company -----------------------------------------------------------------------------------------------
# Another job on one of their nodes at the same time.

_BEFORE_ALL: Final = -1


def sharing_jobs(jobs: Sequence[KnownJob]) -> Booleans:
    """For each job, whether another of `jobs` overlaps with it on some node, by full seconds."""
    shares = np.zeros(len(jobs), dtype=bool)
    numbers: dict[str, int] = {}
    hosts = [[numbers.setdefault(host, len(numbers)) for host in job.hosts or ()] for job in jobs]
    if not numbers:
        return shares
    owner = np.repeat(np.arange(len(jobs)), [len(part) for part in hosts])
    node = np.concatenate([np.array(part, dtype=np.int64) for part in hosts])
    starts, ends = (
        np.array([getattr(job, name) // 1_000_000 for job in jobs], dtype=np.int64)[owner]
        for name in ("start_us", "end_us")
    )
    order = np.lexsort((starts, node))
    owner, node, starts, ends = owner[order], node[order], starts[order], ends[order]
    shares[owner[starts < _latest_end_before(node, ends)]] = True
    is_overtaken = (node[1:] == node[:-1]) & (starts[1:] < ends[:-1])  # the next on its node starts before it ends
    shares[owner[:-1][is_overtaken]] = True
    return shares


def _latest_end_before(node: Integers, ends: Integers) -> Integers:
    """The latest end of the jobs that started earlier on the same node; rows are in the order of node and start."""
    span = int(ends.max()) + 1  # keeps the nodes apart, so that one running maximum serves all of them
    running = np.maximum.accumulate(node * span + ends)
    latest = np.full(ends.size, _BEFORE_ALL, dtype=np.int64)
    latest[1:] = np.where(node[1:] == node[:-1], running[:-1] - node[1:] * span, _BEFORE_ALL)
    return latest
