"""The raw counters of simulated Lustre targets: the lines and histograms they become, and in which files they stand."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np
from numpy.typing import NDArray

from iolens.schema import DIRECTIONS
from iolens.simulator.activity import TickBlock
from iolens.simulator.lustre_text import V1_8, V2_10, V2_12, V2_15, V2_17, BrwSection, Counter, Dialect, JobEntry
from iolens.simulator.workload import OPERATIONS, SIZES

# Where a Lustre server of each version keeps the files of its targets -------------------------------------------------

PROC: Final = "proc/fs/lustre"
SYS: Final = "sys/fs/lustre"
DEBUG: Final = "sys/kernel/debug/lustre"


@dataclass(frozen=True, slots=True)
class TreeLayout:
    """Directories (one folder per target in each) by kind of file; a kind that is absent is not printed."""

    version: str
    version_file: str
    version_text: str
    dialect: Dialect
    ost: Mapping[str, str]
    mdt: Mapping[str, str]
    services: str  # where the statistics of services are
    locks: str  # where the lock namespaces are
    mdt_stats: str = "md_stats"
    mdt_service: str = "mds/MDS/mdt"
    has_available: bool = True
    nodemaps: str = ""  # where the statistics of tenants are; empty: there are none

    def directories(self) -> set[str]:
        """Every directory that holds targets."""
        return {*self.ost.values(), *self.mdt.values()}


LAYOUTS: Final = {
    layout.version: layout
    for layout in (
        TreeLayout(
            "1.8",
            f"{PROC}/version",
            "lustre: 1.8.3\nkernel: patchless_client\n"
            "build:  1.8.3-20100409182943-PRISTINE-2.6.18-164.11.1.el5_lustre.1.8.3\n",
            V1_8,
            dict.fromkeys(("stats", "brw_stats", "recovery_status", "num_exports", "capacity", "uuid"),
                          f"{PROC}/obdfilter"),
            dict.fromkeys(("stats", "recovery_status", "capacity", "uuid"), f"{PROC}/mds"),
            PROC,
            f"{PROC}/ldlm/namespaces",
            mdt_stats="stats",
            mdt_service="mdt/MDS/mds",
            has_available=False,
        ),
        TreeLayout(
            "2.10",
            f"{SYS}/version",
            "2.10.8\n",
            V2_10,
            dict.fromkeys(("stats", "brw_stats", "job_stats", "recovery_status", "num_exports", "capacity", "uuid"),
                          f"{PROC}/obdfilter"),
            dict.fromkeys(("stats", "job_stats", "recovery_status", "num_exports", "uuid"), f"{PROC}/mdt")
            | {"capacity": f"{PROC}/osd-ldiskfs"},
            PROC,
            f"{SYS}/ldlm/namespaces",
        ),
        TreeLayout(
            "2.12",
            f"{SYS}/version",
            "2.12.9\n",
            V2_12,
            dict.fromkeys(("stats", "job_stats", "recovery_status", "num_exports"), f"{PROC}/obdfilter")
            | {"brw_stats": f"{PROC}/osd-ldiskfs", "capacity": f"{SYS}/obdfilter", "uuid": f"{SYS}/obdfilter"},
            dict.fromkeys(("stats", "job_stats", "recovery_status"), f"{PROC}/mdt")
            | {"capacity": f"{PROC}/osd-ldiskfs", "num_exports": f"{SYS}/mdt", "uuid": f"{SYS}/mdt"},
            DEBUG,
            f"{SYS}/ldlm/namespaces",
        ),
        TreeLayout(
            "2.15",
            f"{SYS}/version",
            "2.15.5\n",
            V2_15,
            dict.fromkeys(("stats", "job_stats", "recovery_status"), f"{PROC}/obdfilter")
            | dict.fromkeys(("num_exports", "capacity", "uuid"), f"{SYS}/obdfilter")
            | {"brw_stats": f"{DEBUG}/osd-ldiskfs"},
            dict.fromkeys(("stats", "job_stats", "recovery_status"), f"{PROC}/mdt")
            | {"capacity": f"{SYS}/osd-ldiskfs", "num_exports": f"{SYS}/mdt", "uuid": f"{SYS}/mdt"},
            DEBUG,
            f"{SYS}/ldlm/namespaces",
        ),
        TreeLayout(
            "2.17",
            f"{SYS}/version",
            "2.17.57\n",
            V2_17,
            dict.fromkeys(("stats", "job_stats", "recovery_status"), f"{DEBUG}/obdfilter")
            | dict.fromkeys(("num_exports", "capacity", "uuid"), f"{SYS}/obdfilter")
            | dict.fromkeys(("brw_stats", "io_latency_stats"), f"{DEBUG}/osd-ldiskfs"),
            dict.fromkeys(("stats", "job_stats", "recovery_status"), f"{DEBUG}/mdt")
            | {"capacity": f"{SYS}/osd-ldiskfs", "num_exports": f"{SYS}/mdt", "uuid": f"{SYS}/mdt"},
            DEBUG,
            f"{SYS}/ldlm/namespaces",
            nodemaps=f"{DEBUG}/nodemap",
        ),
    )
}  # fmt: skip
VERSIONS: Final = tuple(LAYOUTS)


# The raw counters of simulated Lustre targets, and which lines and histograms they become -----------------------------
# Everything printed is a sum over I/Os or grows with time, so no counter ever steps back but by a reset.

NS: Final = 1_000_000_000
PAGE: Final = 4096
ROWS: Final = 32  # buckets of an obd histogram
EXPORTS: Final = 107
READDIR_SHARE: Final = 7  # one page of a directory is read for so many getattrs
GOLDEN: Final = 0.6180339887498949  # how far the random numbers of one OST are from those of the next
DEEPEST: Final = 30  # I/Os in flight on a full disk
QUEUEING: Final = 8.0  # on a full disk an I/O takes this many times longer than alone
SPREAD: Final = 0.25  # standard deviation of the logarithm of an I/O's time about that law
LATENCY_UNIT_S: Final = 1024e-9
NODEMAP: Final = "default"
JOB_OST_COUNTERS: Final = (
    "getattr", "setattr", "punch", "sync", "destroy", "create", "statfs", "get_info", "set_info", "quotactl",
)  # fmt: skip
JOB_MDT_COUNTERS: Final = (
    "open", "close", "mknod", "link", "unlink", "mkdir", "rmdir", "rename", "getattr", "setattr", "getxattr",
    "setxattr", "statfs", "sync", "samedir_rename", "crossdir_rename",
)  # fmt: skip
OPERATION_US: Final = {name: 20 + 13 * number for number, name in enumerate(JOB_MDT_COUNTERS)}

Array = NDArray[np.int64]


def _nothing() -> Array:
    return np.zeros((2, len(SIZES)), np.int64)


def _no_rows() -> Array:
    return np.zeros((2, ROWS), np.int64)


def _no_latencies() -> Array:
    return np.zeros((2, len(SIZES), ROWS), np.int64)


@dataclass(slots=True)
class JobCounts:
    """What one job did to one target since it was first seen there."""

    start_ns: int
    last_ns: int
    counts: Array


@dataclass(slots=True)
class OstCounters:
    """One mounted OST: disk I/Os by direction and size, by time taken and by queue depth, since `start_ns`.

    `latencies`: by direction, size and row of the elapsed time, of which row n holds up to 2ⁿ units of 1,024 ns.
    """

    number: int
    start_ns: int
    counts: Array = field(default_factory=_nothing)
    times: Array = field(default_factory=_no_rows)
    in_flight: Array = field(default_factory=_no_rows)
    latencies: Array = field(default_factory=_no_latencies)
    jobs: dict[str, JobCounts] = field(default_factory=dict)


@dataclass(slots=True)
class MdtCounters:
    """One mounted MDT: operations since `start_ns`."""

    number: int
    start_ns: int
    counts: Array = field(default_factory=lambda: np.zeros(len(OPERATIONS), np.int64))
    jobs: dict[str, JobCounts] = field(default_factory=dict)


def count_ios(osts: Sequence[OstCounters], block: TickBlock, seconds: NDArray[np.float64]) -> None:
    """Add what the OSTs (the block's targets, in this order) did. The busier a disk, the longer an I/O waits."""
    load = block.fsu_pct / 100.0
    column = np.arange(len(osts)) * ROWS
    depth = column + 1 + np.minimum(DEEPEST * load, DEEPEST - 1).astype(np.int64)
    waiting = np.log2(1000.0 * (1.0 + QUEUEING * load))
    times, depths = (np.zeros((2, len(osts) * ROWS)) for _ in range(2))
    for value in range(2):
        depths[value] += _by_row(depth, block.counts[value].sum(axis=0), len(osts))
        for size, alone_s in enumerate(seconds[value]):
            row = column + np.clip(np.ceil(waiting + math.log2(alone_s)), 0, ROWS - 1).astype(np.int64)
            times[value] += _by_row(row, block.counts[value, size], len(osts))
    moved = block.counts.sum(axis=2)
    for number, ost in enumerate(osts):
        rows = slice(number * ROWS, (number + 1) * ROWS)
        ost.counts += moved[:, :, number]
        ost.times += times[:, rows].astype(np.int64)
        ost.in_flight += depths[:, rows].astype(np.int64)


def time_ios(osts: Sequence[OstCounters], block: TickBlock, seconds: NDArray[np.float64], seed: int) -> None:
    """Add how long each I/O took, by its size: the time alone, longer by the queue, with a log-normal spread.

    Of the I/Os of a tick so many fall below an edge as the law says, rounded up or down by a random number of the tick,
    so that sums have no bias and the numbers do not depend on how ticks are grouped.
    """
    factor = (1.0 + QUEUEING * block.fsu_pct / 100.0) / LATENCY_UNIT_S
    edges = np.log(2.0) * np.arange(ROWS)
    ticks = range(block.first_tick, block.first_tick + block.ticks)
    chance = np.stack([np.random.default_rng([seed, tick]).random((2, len(SIZES))) for tick in ticks])[..., np.newaxis]
    for number, ost in enumerate(osts):
        counts = np.moveaxis(block.counts[:, :, :, number], 2, 0)[..., np.newaxis]  # tick, direction, size
        centre = np.log(seconds * factor[:, number, np.newaxis, np.newaxis])[..., np.newaxis]
        below = normal_share((edges - centre) / SPREAD)
        below[..., -1] = 1.0
        reached = np.floor(counts * below + (chance + ost.number * GOLDEN) % 1.0)
        ost.latencies += np.diff(np.minimum(reached, counts), axis=3, prepend=0.0).sum(axis=0).astype(np.int64)


def latency_rows(ost: OstCounters) -> dict[tuple[str, int], list[int]]:
    """Rows of io_latency_stats: I/Os by `rd` or `wr` and smallest size, by row of their time; only what was used."""
    return {
        (direction, size): ost.latencies[number, column].tolist()
        for number, direction in enumerate(("rd", "wr"))
        for column, size in enumerate(SIZES)
        if ost.latencies[number].any() and (ost.latencies[number, column].any() or size == SIZES[0])
    }


def _doubled(in_flight: Array) -> Array:
    """Rows of 1, 2, 3, … as rows of powers of two: 3 and 4 fall into the third."""
    rows = _no_rows()
    for row in range(1, ROWS):
        rows[:, (row - 1).bit_length()] += in_flight[:, row]
    return rows


def histograms(ost: OstCounters, dialect: Dialect) -> list[BrwSection]:
    """The seven sections of brw_stats. Every RPC is one contiguous disk I/O."""
    ios = ost.counts.sum(axis=1)
    pages, sizes = ([int(math.log2(size // unit)) for size in SIZES] for unit in (PAGE, 1))
    return [
        histogram_of("pages per bulk r/w", "rpcs", placed_rows(ost.counts, pages), log2=True),
        histogram_of("discontiguous pages", "rpcs", placed_rows(ios[:, None], [0])),
        histogram_of("discontiguous blocks", "rpcs", placed_rows(ios[:, None], [0])),
        histogram_of("disk fragmented I/Os", "ios", placed_rows(ios[:, None], [1])),
        histogram_of("disk I/Os in flight", "ios", _doubled(ost.in_flight), log2=True)
        if dialect.latency_by_size
        else histogram_of("disk I/Os in flight", "ios", ost.in_flight),
        histogram_of("I/O time (1/1000s)", "ios", ost.times, log2=True),
        histogram_of("disk I/O size", "ios", placed_rows(ost.counts, sizes), log2=True),
    ]


def ost_stats(ost: OstCounters, dialect: Dialect, now_ns: int, seconds: NDArray[np.float64]) -> list[Counter]:
    """Lines of obdfilter `stats`, in the order of the version."""
    moved = byte_counters(ost.counts, with_squares=dialect.timed)
    ops = int(ost.counts.sum())
    age_s = (now_ns - ost.start_ns) // NS
    side = _side_counters(ops, int(ost.counts[1].sum()), age_s)
    if dialect.timed:
        moved += [time_counter(direction, ost.counts[n], seconds[n]) for n, direction in enumerate(DIRECTIONS)]
        return [*moved, *(constant_counter(name, side[name], 40 + len(name)) for name in dialect.ost_counters)]
    if dialect.early:
        moved += [Counter("get_page", ops, "usec", 0, 273, 3 * ops, 9 * ops, valued=True), *_cache_counters(ost)]
    return [*moved, *(Counter(name, side[name]) for name in dialect.ost_counters)]


def mdt_stats(mdt: MdtCounters, dialect: Dialect, now_ns: int) -> list[Counter]:
    """Lines of `md_stats`, or of the `stats` of a 1.8 MDS."""
    done = operation_counts(mdt.counts)
    if dialect.early:
        side = _side_counters(0, 0, (now_ns - mdt.start_ns) // NS)
        names = ("open", "close", "mknod", "link", "unlink", "mkdir", "rmdir", "rename", "getxattr",
                 "process_config", "connect", "reconnect", "disconnect", "statfs", "setattr", "getattr", "llog_init",
                 "notify", "quotactl")  # fmt: skip
        return [Counter(name, done.get(name, side.get(name, 0))) for name in names]
    lines = [operation_counter(name, done[name], dialect) for name in JOB_MDT_COUNTERS]
    if dialect.latency_by_size:
        later = {"readpage": done["getattr"] // READDIR_SHARE, "rename_trylocks": done["rename"]}
        lines += [operation_counter(name, count, dialect) for name, count in later.items()]
    return lines


@dataclass(slots=True)
class ServiceCounters:
    """Requests that a service of the server has answered since `start_ns`, whatever target they were for."""

    start_ns: int
    requests: dict[str, int] = field(default_factory=dict)
    busy_us: dict[str, int] = field(default_factory=dict)

    def add(self, request: str, count: int, busy_us: int) -> None:
        """Requests of one kind, and the time they took."""
        self.requests[request] = self.requests.get(request, 0) + count
        self.busy_us[request] = self.busy_us.get(request, 0) + busy_us

    def stats(self, dialect: Dialect) -> list[Counter]:
        """Lines of its `stats`: the queue first, then requests by kind. A busy server has more in its queue."""
        total, busy_s = sum(self.requests.values()), sum(self.busy_us.values()) // 1_000_000
        us, s = ("usecs", "secs") if dialect.timed else ("usec", "sec")
        queue = (
            ("req_waittime", us, 4, 6360, 30 * total + 1000 * busy_s),
            ("req_qdepth", "reqs", 0, 4, total // 50 + busy_s), ("req_active", "reqs", 1, 12, 2 * total),
            ("req_timeout", s, 1, 31, 2 * total), ("reqbuf_avail", "bufs", 52, 64, 62 * total),
        )  # fmt: skip
        lines = [
            Counter(name, total, unit, low, high, sum_, sum_, valued=True) for name, unit, low, high, sum_ in queue
        ]
        kinds = self.requests.items()
        return [*lines, *(Counter(name, n, us, 7, 99, self.busy_us[name], n, valued=True) for name, n in kinds)]


def lock_files(name: str, second: float) -> dict[str, str]:
    """The lock namespace of a target: files and texts by path below its folder."""
    busy = int(second) // 60 % 50
    numbers = {"lock_count": 3 * EXPORTS + busy, "resource_count": EXPORTS + busy, "lock_timeouts": 0,
               "pool/grant_rate": busy, "pool/cancel_rate": busy // 2}  # fmt: skip
    folder = f"{'mdt' if '-MDT' in name else 'filter'}-{name}_UUID"
    return {f"{folder}/{leaf}": f"{number}\n" for leaf, number in numbers.items()}


def ost_jobs(ost: OstCounters, dialect: Dialect, seconds: NDArray[np.float64]) -> list[JobEntry]:
    """Entries of an OST's job_stats."""
    result = []
    for job_id, job in ost.jobs.items():
        lines = byte_counters(job.counts, with_squares=dialect.timed)
        if dialect.timed:
            lines += [time_counter(direction, job.counts[n], seconds[n]) for n, direction in enumerate(DIRECTIONS)]
        writes = int(job.counts[1].sum())
        done = {"punch": writes // 500, "create": writes // 2000}
        names = (*JOB_OST_COUNTERS, "prealloc") if dialect.timed else JOB_OST_COUNTERS
        lines += [operation_counter(name, done.get(name, 0), dialect) for name in names]
        result.append(JobEntry(job_id, job.start_ns, job.last_ns, lines))
    return result


def mdt_jobs(mdt: MdtCounters, dialect: Dialect) -> list[JobEntry]:
    """Entries of an MDT's job_stats."""
    return [
        JobEntry(
            job_id,
            job.start_ns,
            job.last_ns,
            [operation_counter(name, count, dialect) for name, count in operation_counts(job.counts).items()],
        )
        for job_id, job in mdt.jobs.items()
    ]


def operation_counts(counts: Array) -> dict[str, int]:
    """Counts by name, with renames distinguished, in the order of md_stats."""
    done = dict(zip(OPERATIONS, (int(count) for count in counts), strict=True))
    done |= {"samedir_rename": done["rename"] - done["rename"] // 16, "crossdir_rename": done["rename"] // 16}
    return {name: done[name] for name in JOB_MDT_COUNTERS}


def normal_share(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Share of a standard normal distribution below each value."""
    table = np.linspace(-6.0, 6.0, 2401)
    shares = np.array([0.5 * math.erfc(-value / math.sqrt(2.0)) for value in table])
    between: NDArray[np.float64] = np.interp(values, table, shares, left=0.0, right=1.0)
    return between


def _by_row(rows: Array, counts: Array, osts: int) -> NDArray[np.float64]:
    return np.bincount(rows.reshape(-1), counts.reshape(-1), osts * ROWS).astype(np.float64)


def placed_rows(counts: Array, row_of: Sequence[int]) -> Array:
    """Counts by direction and size as rows of a histogram; several sizes may share a row."""
    placed = _no_rows()
    for column, row in enumerate(row_of):
        placed[:, row] += counts[:, column]
    return placed


def histogram_of(title: str, unit: str, counts: Array, *, log2: bool = False) -> BrwSection:
    """A section from rows by direction."""
    return BrwSection(title, unit, log2, counts[0].tolist(), counts[1].tolist())


def byte_counters(counts: Array, *, with_squares: bool) -> list[Counter]:
    """`read_bytes` and `write_bytes` of I/Os by direction and size."""
    lines = []
    for number, direction in enumerate(DIRECTIONS):
        ios = [(size, int(count)) for size, count in zip(SIZES, counts[number], strict=True) if count]
        total = sum(size * count for size, count in ios)
        squares = sum(size * size * count for size, count in ios) if with_squares else None
        low, high = (ios[0][0], ios[-1][0]) if ios else (0, 0)
        samples = sum(count for _, count in ios)
        lines.append(Counter(f"{direction}_bytes", samples, "bytes", low, high, total, squares, valued=True))
    return lines


def _cache_counters(ost: OstCounters) -> list[Counter]:
    pages = int(ost.counts.sum(axis=0) @ np.array(SIZES)) // PAGE
    counts = {"cache_access": pages, "cache_hit": pages // 2, "cache_miss": pages - pages // 2}
    return [Counter(name, count, "pages", 1, 1, count, valued=True) for name, count in counts.items()]


def time_counter(name: str, counts: Array, seconds: NDArray[np.float64], unit: str = "usecs") -> Counter:
    """I/Os by size as a counter of the time that each takes."""
    ios = [(round(item * 1e6), int(count)) for item, count in zip(seconds, counts, strict=True) if count]
    low, high = (ios[0][0], ios[-1][0]) if ios else (0, 0)
    total, squares = (sum(us**power * count for us, count in ios) for power in (1, 2))
    return Counter(name, sum(count for _, count in ios), unit, low, high, total, squares, valued=True)


def operation_counter(name: str, count: int, dialect: Dialect, unit: str = "reqs") -> Counter:
    """An operation, timed where the version does so, else counted in `unit`."""
    return constant_counter(name, count, OPERATION_US.get(name, 30)) if dialect.timed else Counter(name, count, unit)


def constant_counter(name: str, count: int, each_us: int, unit: str = "usecs") -> Counter:
    """A timed operation that always takes as long, or anything else that is always as large."""
    us = each_us if count else 0
    return Counter(name, count, unit, us, us, count * us, count * us * us, valued=True)


def _side_counters(ops: int, writes: int, age_s: int) -> dict[str, int]:
    """What a target counts beside its I/O."""
    return {
        "setattr": writes // 900, "punch": writes // 700, "sync": age_s // 30, "destroy": writes // 1100,
        "create": writes // 1000, "statfs": age_s // 5, "get_info": 2 + age_s // 3600, "set_info_async": 1,
        "process_config": 1, "connect": EXPORTS, "reconnect": age_s // 600, "disconnect": age_s // 900,
        "preprw": ops, "commitrw": ops, "llog_init": 1, "notify": 1, "quotactl": age_s // 60,
        "ping": age_s * EXPORTS // 25,
    }  # fmt: skip
