"""The raw counters of a simulated Lustre client: where they are kept, which lines and histograms they become."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from iolens.schema import DIRECTIONS
from iolens.simulator.lustre_counters import (
    DEBUG,
    LAYOUTS,
    NS,
    PROC,
    ROWS,
    Array,
    ServiceCounters,
    byte_counters,
    constant_counter,
    histogram_of,
    operation_counter,
    placed_rows,
    time_counter,
)
from iolens.simulator.lustre_text import (
    V1_8,
    V2_10,
    V2_12,
    V2_15,
    BrwSection,
    Counter,
    Dialect,
    histogram_rows,
    histogram_times,
    share_pct,
    stats_text,
)
from iolens.simulator.workload import OPERATIONS, SIZES

# Where a Lustre client of each version keeps its files, and how it spells what it counts ------------------------------


@dataclass(frozen=True, slots=True)
class ClientLayout:
    """Base directories by kind of file, and what differs between versions beside the dialect."""

    version: str
    version_file: str
    version_text: str
    dialect: Dialect
    places: Mapping[str, str]  # of llite, stats, rpc_stats, md_stats, locks, services
    call_unit: str  # of calls that are not timed; [regs] was a slip that lived long
    has_osc_calls: bool = False  # llite has osc_read and osc_write
    has_modify: bool = True  # an MDC counts requests that change something by how many are in flight
    has_data_on_mdt: bool = False  # an MDC has the histograms of an OSC too
    counts_call_sizes: bool = False  # somebody switched extents_stats on
    first_in_flight: int = 0  # the first row of RPCs in flight


def _everywhere(base: str, **others: str) -> dict[str, str]:
    return dict.fromkeys(("llite", "stats", "rpc_stats", "md_stats", "locks", "services"), base) | others


CLIENT_LAYOUTS: Final = {
    layout.version: layout
    for layout in (
        ClientLayout(
            "2.5",
            f"{PROC}/version",
            "lustre: 2.5.3\nkernel: patchless_client\nbuild:  2.5.3-gd0b1a9c-PRISTINE-2.6.32-431.el6.x86_64\n",
            replace(V1_8, tabs=True),
            _everywhere(PROC),
            "regs",
            has_osc_calls=True,
            has_modify=False,
        ),
        ClientLayout(
            "2.10", LAYOUTS["2.10"].version_file, LAYOUTS["2.10"].version_text, V2_10, _everywhere(PROC), "regs"
        ),
        ClientLayout(
            "2.12",
            LAYOUTS["2.12"].version_file,
            LAYOUTS["2.12"].version_text,
            V2_12,
            _everywhere(DEBUG, rpc_stats=PROC),
            "reqs",
            counts_call_sizes=True,
        ),
        ClientLayout(
            "2.15",
            LAYOUTS["2.15"].version_file,
            LAYOUTS["2.15"].version_text,
            V2_15,
            _everywhere(DEBUG, rpc_stats=PROC),
            "reqs",
            has_data_on_mdt=True,
            counts_call_sizes=True,
            first_in_flight=1,
        ),
    )
}
CLIENT_VERSIONS: Final = tuple(CLIENT_LAYOUTS)


# The texts that only a Lustre client prints ---------------------------------------------------------------------------
# Rpc_stats, extents_stats, read_ahead_stats.
#
# Formats are those of captured clients (2.10, 2.16) and of the sources of Lustre; only numbers and names are ours.

DISABLED: Final = "disabled\n write anything to this file to activate, then '0' or 'disable' to deactivate\n"
_BLANKS: Final = {"readahead_to_eof": "read-ahead to EOF"}  # else a blank for each underscore, to 2.12
_ROWS: Final = 32
_SMALLEST_CALL: Final = 12  # log2: the first row of extents_stats ends at 4 KiB
_CALL_ROWS: Final = 28


class RpcHistograms(NamedTuple):
    """RPCs of one OSC by row, read and write: by pages, by how many were in flight, and by offset in pages."""

    pages: BrwSection
    in_flight: BrwSection
    offsets: BrwSection


def rpc_stats_text(
    layout: ClientLayout, now_ns: int, start_ns: int, histograms: RpcHistograms | None, modify: Sequence[int] = ()
) -> str:
    """`rpc_stats` of an OSC; of an MDC, with the requests that change something by how many were in flight."""
    lines = histogram_times(layout.dialect, now_ns, start_ns)
    if modify:
        lines += ["modify_RPCs_in_flight:  0", "", "\t\t\tmodify", "rpcs in flight        rpcs   % cum %"]
        lines += [*_single_rows(modify), ""]
    if histograms is not None:
        lines += [
            "read RPCs in flight:  0",
            "write RPCs in flight: 0",
            "pending write pages:  0",
            "pending read pages:   0",
        ]
        lines += _sections(histograms, layout.first_in_flight)
    return "\n".join(lines) + "\n"


def extents_stats_text(layout: ClientLayout, now_ns: int, start_ns: int, calls: Mapping[int, tuple[int, int]]) -> str:
    """Calls by size: `calls` has reads and writes by size in bytes. A row ends below its upper bound."""
    counts = [[0] * _CALL_ROWS for _ in range(2)]
    for size, by_direction in calls.items():
        row = min(max(size.bit_length() - _SMALLEST_CALL, 0), _CALL_ROWS - 1)
        for direction, count in enumerate(by_direction):
            counts[direction][row] += count
    lines = [*histogram_times(layout.dialect, now_ns, start_ns), f"{'':31}read{'':7}|{'':16}write",
             f"{'':6}extents            calls    % cum%  |          calls    % cum%"]  # fmt: skip
    return "\n".join([*lines, *_call_rows(*counts)]) + "\n"


def read_ahead_text(layout: ClientLayout, now_ns: int, start_ns: int, pages: Mapping[str, int]) -> str:
    """`read_ahead_stats`; names are those of 2.15, before it they had blanks."""
    names = (
        pages if layout.dialect.timed else {_BLANKS.get(name, name.replace("_", " ")): pages[name] for name in pages}
    )
    counters = [Counter(name, count, "pages") for name, count in names.items()]
    return stats_text(layout.dialect, now_ns, start_ns, counters)


def _sections(histograms: RpcHistograms, first_in_flight: int) -> Iterator[str]:
    pages, in_flight, offsets = histograms
    depths = BrwSection(*in_flight[:3], in_flight.read[first_in_flight:], in_flight.write[first_in_flight:])
    labels = (
        [str(1 << row) for row in range(_ROWS)],
        [str(row) for row in range(first_in_flight, _ROWS)],
        ["0", *(str(1 << row) for row in range(_ROWS - 1))],
    )
    for section, rows in zip((pages, depths, offsets), labels, strict=True):
        yield from ("", "\t\t\tread\t\t\twrite", f"{section.title:<22}rpcs   % cum % |       rpcs   % cum %")
        yield from histogram_rows(section, rows, write_width=10)


def _single_rows(counts: Sequence[int]) -> Iterator[str]:
    total, so_far = sum(counts), 0
    for row, count in enumerate(counts):
        so_far += count
        yield f"{row}:\t\t{count:>10} {share_pct(count, total):>3} {share_pct(so_far, total):>3}"
        if so_far == total:
            return


def _call_rows(reads: Sequence[int], writes: Sequence[int]) -> Iterator[str]:
    totals, read, written = (sum(reads), sum(writes)), 0, 0
    for row, (here, there) in enumerate(zip(reads, writes, strict=True)):
        read, written = read + here, written + there
        lower, upper = _bound(row - 1, 512) if row else "0K", _bound(row, 1024)
        left = f"{here:>14} {share_pct(here, totals[0]):>4} {share_pct(read, totals[0]):>4}"
        right = f"{there:>14} {share_pct(there, totals[1]):>4} {share_pct(written, totals[1]):>4}"
        yield f"{lower:>5} - {upper:>5} : {left}  | {right}"
        if (read, written) == totals:
            return


def _bound(row: int, largest_kib: int) -> str:
    """The end of a row: 4K, 8K, … 1024K, 2M, …; where the next begins, 1024K is 1M."""
    size_kib = 4 << row
    return f"{size_kib}K" if size_kib <= largest_kib else f"{size_kib >> 10}M"


# The raw counters of a simulated Lustre client, and which lines and histograms they become ----------------------------
# Everything is a sum over the RPCs and operations that the node's jobs did, or grows with time, so that summed over
# nodes it is what the servers count. Reads that the node's cache answered are calls, and no RPCs: only llite counts
# them.

REQUEST_US: Final = 150
CACHED_US: Final = 1
MODIFYING: Final = ("mknod", "link", "unlink", "mkdir", "rmdir", "rename", "setattr", "setxattr")
# What llite calls an operation where the MDT calls it otherwise.
CALLS: Final = {"sync": "fsync"}
_MD_OPERATIONS: Final = {
    "close": ("close",), "create": ("mknod", "mkdir"), "intent_lock": ("open", "getattr"), "link": ("link",),
    "rename": ("rename",), "setattr": ("setattr",), "fsync": ("sync",), "unlink": ("unlink", "rmdir"),
    "setxattr": ("setxattr",), "getxattr": ("getxattr",),
}  # fmt: skip
_MDC_REQUESTS: Final = {
    "mds_close": ("close",), "mds_statfs": ("statfs",), "mds_sync": ("sync",), "mds_getxattr": ("getxattr",),
}  # fmt: skip
_RPCS_PER_LOCK: Final = 10
_DEEPEST: Final = 8  # max_rpcs_in_flight


@dataclass(slots=True)
class ClientCounters:
    """One mount since `start_ns`: RPCs by direction, size and OST; operations by kind and MDT."""

    start_ns: int
    rpcs: Array
    operations: Array
    page_bytes: int
    cached_reads: Array = field(default_factory=lambda: np.zeros(len(SIZES), np.int64))  # by size

    def read_from_cache(self, new_reads: Array, hits_per_rpc: float) -> Array:
        """Reads by size that the cache answers beside those that are about to be RPCs; they are counted here.

        Whole reads: what is left of one is carried on, so that the share holds over any time.
        """
        before = self.rpcs[0].sum(axis=1)
        hits: Array = np.floor((before + new_reads) * hits_per_rpc).astype(np.int64)
        hits -= np.floor(before * hits_per_rpc).astype(np.int64)
        self.cached_reads += hits
        return hits

    def calls_by_size(self) -> Array:
        """Reads and writes of applications by direction and size: RPCs, and reads that the cache answered."""
        calls: Array = self.rpcs.sum(axis=2)
        calls[0] += self.cached_reads
        return calls

    @classmethod
    def nothing(cls, start_ns: int, osts: int, mdts: int, page_bytes: int) -> ClientCounters:
        """As just mounted."""
        rpcs, operations = np.zeros((2, len(SIZES), osts), np.int64), np.zeros((len(OPERATIONS), mdts), np.int64)
        return cls(start_ns, rpcs, operations, page_bytes)

    def calls(self) -> dict[str, int]:
        """Operations on all MDTs by name."""
        return dict(zip(OPERATIONS, self.operations.sum(axis=1).tolist(), strict=True))

    def call_sizes(self) -> dict[int, tuple[int, int]]:
        """Reads and writes of applications by size in bytes."""
        reads, writes = self.calls_by_size().tolist()
        return dict(zip(SIZES, zip(reads, writes, strict=True), strict=True))

    def age_s(self, now_ns: int) -> int:
        """Whole seconds since the mount."""
        return (now_ns - self.start_ns) // NS


def llite_stats(client: ClientCounters, layout: ClientLayout, seconds: NDArray[np.float64]) -> list[Counter]:
    """Lines of llite `stats`."""
    dialect, rpcs, moved = layout.dialect, client.rpcs.sum(axis=2), client.calls_by_size()
    lines = byte_counters(moved, with_squares=dialect.timed)
    if layout.has_osc_calls:
        of_rpcs = byte_counters(rpcs, with_squares=dialect.timed)
        lines += [line._replace(name=name) for line, name in zip(of_rpcs, ("osc_read", "osc_write"), strict=True)]
    if dialect.timed:
        lines += [_timed_calls(name, rpcs[n], moved[n] - rpcs[n], seconds[n]) for n, name in enumerate(DIRECTIONS)]
    calls = client.calls()
    named = {CALLS.get(name, name): count for name, count in calls.items()}
    named["inode_permission"] = calls["open"] + calls["getattr"]
    return [*lines, *(operation_counter(name, count, dialect, layout.call_unit) for name, count in named.items())]


def _timed_calls(name: str, rpcs: Array, cached: Array, seconds: NDArray[np.float64]) -> Counter:
    """Calls with the time that each took; one that the cache answered took a microsecond."""
    line = time_counter(name, rpcs, seconds)
    hits = int(cached.sum())
    if not hits:
        return line
    high = line.maximum or CACHED_US
    return line._replace(
        samples=line.samples + hits, minimum=CACHED_US, maximum=high, total=line.total + hits * CACHED_US,
        sumsq=None if line.sumsq is None else line.sumsq + hits * CACHED_US**2,
    )  # fmt: skip


def read_ahead(client: ClientCounters) -> dict[str, int]:
    """Pages that were there when they were asked for, and the first of each RPC, which was not."""
    reads = client.calls_by_size()[0]
    pages = int(reads @ np.array([_pages(size, client.page_bytes) for size in SIZES]))
    rpcs = int(client.rpcs[0].sum())
    return {"hits": pages - rpcs, "misses": rpcs, "readpage_not_consecutive": rpcs // 8, "readahead_to_eof": rpcs // 4}


def osc_stats(
    client: ClientCounters, ost: int, layout: ClientLayout, now_ns: int, seconds: NDArray[np.float64]
) -> list[Counter]:
    """Lines of the `stats` of an OSC: requests, their times, and the bytes that RPCs carried."""
    rpcs, us, age_s = client.rpcs[:, :, ost], _microseconds(layout.dialect), client.age_s(now_ns)
    requests = [time_counter(name, rpcs[n], seconds[n], us) for n, name in enumerate(("ost_read", "ost_write"))]
    requests += _background(("ost_statfs", "obd_ping"), age_s, us)
    locks = int(rpcs.sum()) // _RPCS_PER_LOCK
    enqueued = constant_counter("ldlm_extent_enqueue", locks, 1, "reqs")
    return [*_waiting(requests, us), enqueued, *byte_counters(rpcs, with_squares=True), *requests]


def mdc_stats(client: ClientCounters, mdt: int, layout: ClientLayout, now_ns: int) -> list[Counter]:
    """Lines of the `stats` of an MDC."""
    us = _microseconds(layout.dialect)
    requests = [constant_counter(name, count, REQUEST_US, us) for name, count in _summed(client, mdt, _MDC_REQUESTS)]
    requests += _background(("obd_ping",), client.age_s(now_ns), us)
    enqueued = sum(count for _, count in _summed(client, mdt, {"ldlm_ibits_enqueue": ("open", "getattr")}))
    return [*_waiting(requests, us), constant_counter("ldlm_ibits_enqueue", enqueued, 1, "reqs"), *requests]


def md_stats(client: ClientCounters, mdt: int) -> list[Counter]:
    """Lines of the `md_stats` of an MDC."""
    return [Counter(name, count) for name, count in _summed(client, mdt, _MD_OPERATIONS)]


def modify_in_flight(client: ClientCounters, mdt: int) -> list[int]:
    """Requests that change something, by how many were in flight: rarer kinds are deeper."""
    rows = [0] * (2 + len(MODIFYING) // 2)
    for number, name in enumerate(MODIFYING):
        rows[1 + number // 2] += int(client.operations[OPERATIONS.index(name), mdt])
    return rows


def rpc_histograms(client: ClientCounters, ost: int | None) -> RpcHistograms:
    """Histograms of one OSC; the larger an RPC, the more were in flight, and it lies at a multiple of its size."""
    rpcs = np.zeros((2, len(SIZES)), np.int64) if ost is None else client.rpcs[:, :, ost]
    pages = [_pages(size, client.page_bytes).bit_length() - 1 for size in SIZES]
    depths = [1 + row * (_DEEPEST - 1) // (len(SIZES) - 1) for row in range(len(SIZES))]
    return RpcHistograms(
        histogram_of("pages per rpc", "rpcs", placed_rows(rpcs, pages)),
        histogram_of("rpcs in flight", "rpcs", placed_rows(rpcs, depths)),
        histogram_of("offset", "rpcs", placed_rows(rpcs, [min(row + 4, ROWS - 1) for row in pages])),
    )


def lock_pool(client: ClientCounters, requests: int, now_ns: int) -> list[Counter]:
    """Lines of the `pool/stats` of a lock namespace."""
    locks, age_s = requests // _RPCS_PER_LOCK, client.age_s(now_ns)
    lines = [constant_counter(name, locks, 1, "locks") for name in ("granted", "grant")]
    return [
        *lines,
        constant_counter("cancel", locks // 2, 1, "locks"),
        constant_counter("recalc_timing", age_s // 10, 1, "sec"),
    ]


def callbacks(client: ClientCounters, dialect: Dialect) -> list[Counter]:
    """Lines of `ldlm_cbd`: locks that servers asked back."""
    count = int(client.rpcs.sum()) // (4 * _RPCS_PER_LOCK)
    return ServiceCounters(client.start_ns, {"ldlm_bl_callback": count}, {"ldlm_bl_callback": 11 * count}).stats(
        dialect
    )


def _pages(size: int, page_bytes: int) -> int:
    return max(1, size // page_bytes)


def _microseconds(dialect: Dialect) -> str:
    return "usecs" if dialect.timed else "usec"


def _background(names: tuple[str, ...], age_s: int, us: str) -> list[Counter]:
    """Requests that are sent now and then whatever the jobs do."""
    return [constant_counter(name, 1 + age_s // 25, REQUEST_US, us) for name in names]


def _waiting(requests: list[Counter], us: str) -> list[Counter]:
    total = sum(request.samples for request in requests)
    waited = sum(request.total for request in requests)
    squares = sum(request.sumsq or 0 for request in requests)
    high = max(request.maximum for request in requests)
    low = min(request.minimum for request in requests if request.samples)
    return [Counter("req_waittime", total, us, low, high, waited, squares, valued=True),
            constant_counter("req_active", total, 1, "reqs")]  # fmt: skip


def _summed(client: ClientCounters, mdt: int, names: Mapping[str, tuple[str, ...]]) -> list[tuple[str, int]]:
    of_mdt = client.operations[:, mdt]
    return [(name, sum(int(of_mdt[OPERATIONS.index(part)]) for part in parts)) for name, parts in names.items()]
