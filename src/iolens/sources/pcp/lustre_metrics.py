"""Lustre's counters as metrics of Performance Co-Pilot: names, numbers, units, help, and what instances are called.

`iolens export pcp` serves them and archives of them are read back by this one table: an instance names target, mount,
job and bin, so that every value finds the counter it came from. Needs only the standard library. Numbers of groups and
the order of a group's metrics are part of every archive: add new ones at the end, never change one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple, Protocol
from urllib.parse import quote, unquote

from iolens.histogram_names import IN_FLIGHT, IN_FLIGHT_POW2, IO_TIME

DOMAIN: Final = 398  # PCP itself has given out numbers up to 158, and some from 241 to 255; the largest is 510
ROOT: Final = "iolens"
AGENT, CLIENT, TARGET, JOB = range(4)  # clusters: what is read together
CLUSTERS: Final = ("agent", "client", "target", "job")
COUNTER, INSTANT, DISCRETE = 1, 3, 4  # semantics, as PCP numbers them
BETWEEN: Final = "::"  # parts of an instance's name
SECOND_MOUNT: Final = "#"  # `lake#2`: one more mount of the same file system
_GROUP_ITEMS: Final = 10  # numbers of metrics that each group has
_SAFE: Final = "".join(map(chr, range(0x21, 0x7F))).replace("%", "").replace('"', "").replace("'", "")


class PcpUnits(NamedTuple):
    """Dimension and scale for space, time and count."""

    dimension: tuple[int, int, int]
    scale: tuple[int, int, int] = (0, 0, 0)


BYTES: Final = PcpUnits((1, 0, 0))
MICROSECONDS: Final = PcpUnits((0, 1, 0), (0, 1, 0))
COUNT: Final = PcpUnits((0, 0, 1))
PER_SECOND: Final = PcpUnits((0, -1, 1), (0, 3, 0))
NO_UNITS: Final = PcpUnits((0, 0, 0))


class CounterShape(Protocol):
    """How a counter's name divides into a metric's key and the last part of the instance, and back."""

    @property
    def has_tail(self) -> bool:
        """Whether the instance has such a part."""

    def split(self, counter: str) -> tuple[str, str] | None:
        """Key and tail; None: the counter belongs to another group."""

    def join(self, key: str, tail: str) -> str:
        """The counter's name."""


@dataclass(frozen=True)
class Columns:
    """A metric for each counter: `read_bytes`."""

    names: frozenset[str]
    has_tail = False

    def split(self, counter: str) -> tuple[str, str] | None:
        """The counter is the key."""
        return (counter, "") if counter in self.names else None

    def join(self, key: str, tail: str) -> str:
        """The key is the counter."""
        return key


@dataclass(frozen=True)
class Operations:
    """`open`, `open:us`, `read_bytes:total`: instances are operations, and sums of bytes have a metric of their own."""

    has_tail = True

    def split(self, counter: str) -> tuple[str, str] | None:
        """What is counted, and the operation."""
        operation, _, ending = counter.partition(":")
        if ending == "total" and operation.endswith("_bytes"):
            return "bytes", operation
        return {"": "count", "us": "time", "total": "sum"}[ending], operation

    def join(self, key: str, tail: str) -> str:
        """The operation with its ending."""
        return tail + {"count": "", "time": ":us", "sum": ":total", "bytes": ":total"}[key]


@dataclass(frozen=True)
class TimedColumns:
    """`open` and `open_us`, columns of a wide table: instances are operations."""

    others: frozenset[str] = frozenset()  # counters of another group
    has_tail = True

    def split(self, counter: str) -> tuple[str, str] | None:
        """What is counted, and the operation."""
        if counter in self.others:
            return None
        return ("time", counter[: -len("_us")]) if counter.endswith("_us") else ("count", counter)

    def join(self, key: str, tail: str) -> str:
        """The column."""
        return f"{tail}_us" if key == "time" else tail


@dataclass(frozen=True)
class Bins:
    """`read:4096` or `read_ios_4096`: instances are bins, and each direction is a metric."""

    mark: str = ":"
    has_tail = True

    def split(self, counter: str) -> tuple[str, str] | None:
        """Direction and bin."""
        direction, _, bin_ = counter.partition(self.mark)
        return direction, bin_

    def join(self, key: str, tail: str) -> str:
        """The counter of one direction and bin."""
        return f"{key}{self.mark}{tail}"


class MetricLeaf(NamedTuple):
    """One metric of a group: the key of its counters, the end of its name, and what it is."""

    key: str
    name: str
    units: PcpUnits
    oneline: str
    semantics: int = COUNTER


# What an instance begins with, and how many parts of its name that takes.
OF_MOUNT: Final = ("a mount: lake; lake#2 is one more of the same file system", 1)
OF_MOUNT_TARGET: Final = ("a target of a mount: lake-OST0000", 1)
OF_SERVICE: Final = ("a file system and a service of this node: lake::ldlm_cbd", 2)
OF_TARGET: Final = ("a target on this server: lake-OST0000", 1)
OF_SERVER: Final = ("a file system and a service of this server: lake::oss1:ost_io", 2)
OF_JOB: Final = ("a target on this server and a job on it: lake-OST0000::4711", 2)
OF_TEXT: Final = ("a text that was read: lake::client_rpcs::osc.lake-OST0000.rpc_stats", 3)
OF_COLLECTOR: Final = ("what is read together: client, target or job", 1)


@dataclass(frozen=True)
class MetricGroup:
    """Metrics that share their instances, and the counters behind them: those of one kind of text, for one table.

    `text` is the name of the counter set, with `*` for the target; `prefix` is what its counters begin with.
    """

    number: int
    cluster: int
    name: str
    table: str
    text: str
    prefix: str
    shape: CounterShape
    head: tuple[str, int]
    tail: str  # what the last part of an instance is
    leaves: tuple[MetricLeaf, ...]
    about: str

    @property
    def serial(self) -> int:
        """The number of its instance domain."""
        return self.number

    @property
    def leaves_out_zero(self) -> bool:
        """Whether the counters behind it have no zeros: of a histogram's row that counted one way only, the other."""
        return isinstance(self.shape, Bins) and self.shape.mark == ":"

    @property
    def instances(self) -> str:
        """What its instances are, for the help text."""
        ending = f"; then :: and {self.tail}" if self.tail else ""
        return f"{self.head[0]}{ending}"


class LustreMetric(NamedTuple):
    """One metric."""

    name: str
    group: MetricGroup
    leaf: MetricLeaf
    item: int

    @property
    def text(self) -> str:
        """The long help text."""
        return f"{self.leaf.oneline}.\n{self.group.about}\nAn instance is {self.group.instances}."


def _directions(what: str) -> tuple[MetricLeaf, ...]:
    return (MetricLeaf("read", "read", COUNT, f"{what}, reads"), MetricLeaf("write", "write", COUNT, f"{what}, writes"))


def _counted(what: str) -> tuple[MetricLeaf, ...]:
    return (
        MetricLeaf("count", "count", COUNT, f"{what}: how many"),
        MetricLeaf("time", "time", MICROSECONDS, f"{what}: summed time, where it is counted"),
        MetricLeaf("sum", "sum", COUNT, f"{what}: summed values other than time and bytes"),
        MetricLeaf("bytes", "bytes", BYTES, f"{what}: summed bytes of what carries bytes"),
    )


def _io(calls: str, leaf: str, *, timed: str = "") -> tuple[MetricLeaf, ...]:
    moved = [
        MetricLeaf("read_bytes", "read.bytes", BYTES, f"Bytes read{calls}"),
        MetricLeaf("read_ops", f"read.{leaf}", COUNT, f"Reads{calls}"),
        MetricLeaf("write_bytes", "write.bytes", BYTES, f"Bytes written{calls}"),
        MetricLeaf("write_ops", f"write.{leaf}", COUNT, f"Writes{calls}"),
    ]
    if timed:
        moved += [
            MetricLeaf(f"read{timed}", "read.time", MICROSECONDS, f"Summed time of reads{calls}, Lustre 2.15 on"),
            MetricLeaf(f"write{timed}", "write.time", MICROSECONDS, f"Summed time of writes{calls}, Lustre 2.15 on"),
        ]
    return tuple(moved)


_CALLS, _TARGET_IO, _JOB_IO = (
    _io(" by applications", "calls"), _io(" by a target", "ops", timed="_wait_us"), _io(" by a job", "ops", timed="_us")
)  # fmt: skip
_TARGET_IO += (MetricLeaf("busy_us", "busy.time", MICROSECONDS, "Time the block device of an OST was busy"),)
_OPERATION, _BIN = "the operation, as Lustre calls it", "the bin's label"
_RPC_SECTIONS: Final = {
    "rpcs_in_flight": ("in_flight", "RPCs by how many were in flight when they were sent"),
    "offset_pages": ("offset", "RPCs by their offset into the object, in pages"),
    "rpc_latency_us": ("latency", "RPCs by the time they took, in microseconds, where Lustre counts it"),
}
_BRW_SECTIONS: Final = {
    "pages_per_bulk": "Bulk RPCs by pages",
    "discontiguous_pages": "Bulk RPCs by breaks in the file",
    "discontiguous_blocks": "Bulk RPCs by breaks on disk",
    "disk_fragmented_ios": "Bulk RPCs by disk I/Os they became",
    IN_FLIGHT: "Disk I/Os by how many were in flight",
    IO_TIME: "Disk I/Os by the time they took, in milliseconds",
    "block_maps_ms": "Block mappings by the time they took, in milliseconds",
    IN_FLIGHT_POW2: "Disk I/Os by how many were in flight, in powers of two: Lustre 2.17.51 on",
}
_RPC_TEXT: Final = "From {}.*.rpc_stats; bins are labelled as there, powers of two with their upper bound."


def _keys(leaves: tuple[MetricLeaf, ...]) -> frozenset[str]:
    return frozenset(leaf.key for leaf in leaves)


def _rpc_groups() -> Iterator[MetricGroup]:
    for first, family in ((20, "osc"), (30, "mdc")):
        yield MetricGroup(
            first, CLIENT, f"client.{family}.rpcs", "client_rpcs", f"{family}.*.rpc_stats", "*:", Bins(),
            OF_MOUNT_TARGET, "pages per RPC, upper bound", _directions("RPCs by pages per RPC"),
            _RPC_TEXT.format(family),
        )  # fmt: skip
        for number, (section, (name, about)) in enumerate(_RPC_SECTIONS.items(), first + 1):
            yield MetricGroup(
                number, CLIENT, f"client.{family}.{name}", "client_histograms", f"{family}.*.rpc_stats.{section}",
                f"*:{section}:", Bins(), OF_MOUNT_TARGET, _BIN, _directions(about), _RPC_TEXT.format(family),
            )  # fmt: skip
        yield MetricGroup(
            first + 4, CLIENT, f"client.{family}.requests", "client_ops", f"{family}.*.stats", "*:", Operations(),
            OF_MOUNT_TARGET, _OPERATION, _counted(f"Requests of an {family.upper()}"), f"From {family}.*.stats.",
        )  # fmt: skip


def _brw_groups() -> Iterator[MetricGroup]:
    for number, (section, about) in enumerate(_BRW_SECTIONS.items(), 52):
        yield MetricGroup(
            number, TARGET, f"target.brw.{section}", "target_histograms", section, "", Bins(), OF_TARGET, _BIN,
            _directions(about), "From brw_stats; bins are labelled as there, powers of two with their upper bound.",
        )  # fmt: skip


_TEXT_LEAVES: Final = (
    MetricLeaf("counters", "counters", COUNT, "Counters that a text shows", INSTANT),
    MetricLeaf("start_us", "start_time", MICROSECONDS, "When a text began to count, since 1970, 2.15 on", DISCRETE),
)
_TEXT_ABOUT: Final = "What tells a reader of an archive whether all counters of a text are in it, and of a reset."
_CAPACITY: Final = (
    MetricLeaf("total_bytes", "total.bytes", BYTES, "Size of a target", DISCRETE),
    MetricLeaf("free_bytes", "free.bytes", BYTES, "Free bytes of a target", INSTANT),
    MetricLeaf("available_bytes", "available.bytes", BYTES, "Bytes of a target free to ordinary users", INSTANT),
    MetricLeaf("used_bytes", "used.bytes", BYTES, "Bytes of a target in use", INSTANT),
    MetricLeaf("total_inodes", "total.inodes", COUNT, "Inodes or objects that a target has space for", INSTANT),
    MetricLeaf("free_inodes", "free.inodes", COUNT, "Free inodes or objects of a target", INSTANT),
    MetricLeaf("used_inodes", "used.inodes", COUNT, "Inodes or objects of a target in use", INSTANT),
)
_STATE: Final = (
    MetricLeaf("exports", "exports", COUNT, "Clients connected to a target", INSTANT),
    MetricLeaf("completed_clients", "recovery.completed", COUNT, "Clients that completed recovery", INSTANT),
    MetricLeaf("expected_clients", "recovery.expected", COUNT, "Clients expected in recovery", INSTANT),
    MetricLeaf("locks", "locks.granted", COUNT, "Locks of a target granted and not cancelled", INSTANT),
    MetricLeaf("lock_resources", "locks.resources", COUNT, "Objects of a target that have locks", INSTANT),
    MetricLeaf("lock_timeouts", "locks.timeouts", COUNT, "Clients that did not give back a lock in time"),
    MetricLeaf("lock_grants_per_s", "locks.grant_rate", PER_SECOND, "Locks granted in the last second", INSTANT),
    MetricLeaf("lock_cancels_per_s", "locks.cancel_rate", PER_SECOND, "Locks cancelled in the last second", INSTANT),
)
_MOUNT: Final = (
    MetricLeaf("mount", "mount", NO_UNITS, "The kernel's number of a mount: another one after each mount", DISCRETE),
    MetricLeaf("page_bytes", "page_size", BYTES, "Page size of the client, which RPCs are counted in", DISCRETE),
)
_NOW: Final = (
    MetricLeaf("read_rpcs", "read_rpcs", COUNT, "RPCs that read, in flight now", INSTANT),
    MetricLeaf("write_rpcs", "write_rpcs", COUNT, "RPCs that write, in flight now", INSTANT),
    MetricLeaf("dio_rpcs", "dio_rpcs", COUNT, "RPCs of direct I/O in flight now, where it is counted", INSTANT),
    MetricLeaf("pending_read_pages", "pending_read_pages", COUNT, "Pages that wait to be read now", INSTANT),
    MetricLeaf("pending_write_pages", "pending_write_pages", COUNT, "Pages that wait to be written now", INSTANT),
    MetricLeaf("modify_rpcs", "modify_rpcs", COUNT, "Requests in flight now that change an MDT", INSTANT),
)
_COLLECTOR: Final = (
    MetricLeaf("success", "success", NO_UNITS, "1 when the last reading was whole and in time", INSTANT),
    MetricLeaf("problems", "problems", COUNT, "Places not readable or not understood in the last reading", INSTANT),
    MetricLeaf("time", "time", MICROSECONDS, "How long the last reading took", INSTANT),
)
_LISTED: Final = (
    MetricLeaf("listed", "listed", COUNT, "Jobs that job_stats of a target lists", INSTANT),
    MetricLeaf("left_out", "left_out", COUNT, "Jobs of a target that are listed and not served here", INSTANT),
)

# In place of a table: what is known about the reading.
TEXT, JOB_TEXT, JOB_SIZE_TEXT, LISTED, MOUNTS, COLLECTORS, NOW = (
    "text", "job_text", "job_size_text", "listed", "mounts", "collectors", "now",
)  # fmt: skip
_BLANK: Final = "%blank"  # a blank job id: no quoted name is like it
WITHOUT_NAME: Final = "-"  # a counter set that has no name, where an instance needs one

GROUPS: Final = (
    MetricGroup(
        1, AGENT, "agent.reading", COLLECTORS, "", "", Columns(_keys(_COLLECTOR)), OF_COLLECTOR, "", _COLLECTOR,
        "About the agent itself. A reading that fails or hangs has no values, and never ends the agent.",
    ),
    MetricGroup(
        10, CLIENT, "client", MOUNTS, "", "", Columns(_keys(_MOUNT)), OF_MOUNT, "", _MOUNT,
        "For who reads an archive: what the node had mounted, and what a page of its RPCs is.",
    ),
    MetricGroup(
        11, CLIENT, "client.text", TEXT, "", "", Columns(_keys(_TEXT_LEAVES)), OF_TEXT, "", _TEXT_LEAVES, _TEXT_ABOUT,
    ),
    MetricGroup(
        12, CLIENT, "client", "client_io", "llite.stats", "", Columns(_keys(_CALLS)), OF_MOUNT, "", _CALLS,
        "From llite.*.stats: what applications asked for, hits of the page cache included.",
    ),
    MetricGroup(
        13, CLIENT, "client.metadata", "client_metadata", "llite.stats", "", Operations(), OF_MOUNT, _OPERATION,
        _counted("Metadata operations of applications")[:2],
        "From llite.*.stats: open, close, getattr (a stat), statfs, mkdir, …",
    ),
    MetricGroup(
        14, CLIENT, "client.other", "client_ops", "llite.stats", "llite:", Operations(), OF_MOUNT, _OPERATION,
        _counted("Other calls of applications"), "From llite.*.stats: mmap, page faults, direct I/O, …",
    ),
    MetricGroup(
        15, CLIENT, "client.read_ahead", "client_ops", "llite.read_ahead_stats", "read_ahead:", Operations(), OF_MOUNT,
        "what happened, as Lustre calls it", _counted("Pages of read-ahead"), "From llite.*.read_ahead_stats.",
    ),
    MetricGroup(
        16, CLIENT, "client.call_size", "client_histograms", "llite.extents_stats", "llite:call_size_bytes:", Bins(),
        OF_MOUNT, "the size in bytes, upper bound", _directions("Calls of applications by size"),
        "From llite.*.extents_stats, where it is enabled.",
    ),
    *_rpc_groups(),
    MetricGroup(
        35, CLIENT, "client.mdc.modify_in_flight", "client_histograms", "mdc.*.rpc_stats.modify_rpcs_in_flight",
        "*:modify_rpcs_in_flight:", Bins(), OF_MOUNT_TARGET, _BIN,
        (MetricLeaf("modify", "count", COUNT, "Requests that change an MDT by how many were in flight"),),
        _RPC_TEXT.format("mdc"),
    ),
    MetricGroup(
        36, CLIENT, "client.mdc.metadata", "client_ops", "mdc.*.md_stats", "*:", Operations(), OF_MOUNT_TARGET,
        _OPERATION, _counted("Metadata requests of an MDC"), "From mdc.*.md_stats.",
    ),
    MetricGroup(
        37, CLIENT, "client.ldlm.pool", "client_ops", "client_ldlm.*.pool_stats", "*:lock_pool_", Operations(),
        OF_MOUNT_TARGET, _OPERATION, _counted("Locks that a client holds on a target"),
        "From ldlm.namespaces.*.pool.stats.",
    ),
    MetricGroup(
        38, CLIENT, "client.ldlm.service", "client_ops", "*", "*:", Operations(), OF_SERVICE, _OPERATION,
        _counted("Requests that servers sent to this node about locks"),
        "From ldlm.services.*.stats. They are of the node, and stand under each file system.",
    ),
    MetricGroup(
        25, CLIENT, "client.osc.now", NOW, "osc", "", Columns(_keys(_NOW[:5])), OF_MOUNT_TARGET, "", _NOW[:5],
        "From the head of osc.*.rpc_stats: true only now, and not read back from archives.",
    ),
    MetricGroup(
        39, CLIENT, "client.mdc.now", NOW, "mdc", "", Columns(_keys(_NOW)), OF_MOUNT_TARGET, "", _NOW,
        "From the head of mdc.*.rpc_stats: true only now, and not read back from archives.",
    ),
    MetricGroup(
        40, TARGET, "target.text", TEXT, "", "", Columns(_keys(_TEXT_LEAVES)), OF_TEXT, "", _TEXT_LEAVES, _TEXT_ABOUT,
    ),
    MetricGroup(
        41, TARGET, "target", "target_io", "", "", Columns(_keys(_TARGET_IO)), OF_TARGET, "", _TARGET_IO,
        "From obdfilter.*.stats; of an MDT from mdt.*.md_stats, once it holds file data.",
    ),
    MetricGroup(
        42, TARGET, "target.metadata", "metadata_ops", "", "", TimedColumns(), OF_TARGET, _OPERATION,
        _counted("Metadata operations of an MDT")[:2],
        "From mdt.*.md_stats. An MDT of Lustre 2.0 counts them by client: there are no values then.",
    ),
    MetricGroup(
        43, TARGET, "target.other", "server_ops", "", "", Operations(), OF_TARGET, _OPERATION,
        _counted("Other operations of a target"), "From obdfilter.*.stats and mdt.*.md_stats.",
    ),
    MetricGroup(
        44, TARGET, "target.osd", "server_ops", "osd", "", Operations(), OF_TARGET, _OPERATION,
        _counted("Operations of a target's disk layer"), "From osd-*.*.stats.",
    ),
    MetricGroup(
        45, TARGET, "target.service", "server_ops", "service", "", Operations(), OF_SERVER, _OPERATION,
        _counted("Requests of a service of this server"),
        "From ost.OSS.*.stats, mds.MDS.*.stats, ldlm.services.*.stats. They stand under each file system served here.",
    ),
    MetricGroup(
        46, TARGET, "target.capacity", "target_capacity", "", "", Columns(_keys(_CAPACITY)), OF_TARGET, "", _CAPACITY,
        "From kbytes* and files*.",
    ),
    MetricGroup(
        47, TARGET, "target.state", "target_state", "", "", Columns(_keys(_STATE)), OF_TARGET, "", _STATE,
        "From num_exports, recovery_status and ldlm.namespaces.*.",
    ),
    MetricGroup(
        51, TARGET, "target.brw.disk_io_size", "target_sizes", "", "", Bins("_ios_"), OF_TARGET,
        "the size in bytes, upper bound, or outside: below 8 B or above 64 MiB", _directions("Disk I/Os by size"),
        "From brw_stats.",
    ),
    *_brw_groups(),
    MetricGroup(
        70, JOB, "job", "job_io", "job", "", Columns(_keys(_JOB_IO)), OF_JOB, "", _JOB_IO,
        "From job_stats, for the busiest jobs.",
    ),
    MetricGroup(
        71, JOB, "job.metadata", "job_io", "job", "", TimedColumns(_keys(_JOB_IO)), OF_JOB, _OPERATION,
        _counted("Operations of a job")[:2], "From job_stats, for the busiest jobs.",
    ),
    MetricGroup(
        72, JOB, "job", LISTED, "", "", Columns(_keys(_LISTED)), OF_TARGET, "", _LISTED,
        "A job that no longer has its place among the busiest has no values, though it goes on.",
    ),
    MetricGroup(
        73, JOB, "job.text", JOB_TEXT, "", "", Columns(_keys(_TEXT_LEAVES)), OF_JOB, "", _TEXT_LEAVES, _TEXT_ABOUT,
    ),
    MetricGroup(
        74, JOB, "job.size", "job_sizes", "job", "", Bins(), OF_JOB, "the size in bytes, upper bound",
        _directions("I/Os of a job by size"), "From job_stats of Lustre 2.16 and later, for the busiest jobs.",
    ),
    MetricGroup(
        75, JOB, "job.size_text", JOB_SIZE_TEXT, "", "", Columns(_keys(_TEXT_LEAVES)), OF_JOB, "", _TEXT_LEAVES,
        _TEXT_ABOUT,
    ),
)  # fmt: skip


def _metrics() -> Iterator[LustreMetric]:
    for group in GROUPS:
        for place, leaf in enumerate(group.leaves):
            yield LustreMetric(f"{ROOT}.{group.name}.{leaf.name}", group, leaf, group.number * _GROUP_ITEMS + place)


METRICS: Final[Mapping[str, LustreMetric]] = {metric.name: metric for metric in _metrics()}


def groups_by_text() -> dict[tuple[str, str], list[MetricGroup]]:
    """The groups of each table and text."""
    groups: dict[tuple[str, str], list[MetricGroup]] = {}
    for group in GROUPS:
        groups.setdefault((group.table, group.text), []).append(group)
    return groups


def instance_name(*parts: str) -> str:
    """The parts as one name without blanks or quotes, which PCP's tools would stumble over; `%blank` for none."""
    return BETWEEN.join(quote(part, safe=_SAFE) or _BLANK for part in parts)


def instance_parts(name: str, group: MetricGroup) -> tuple[str, ...] | None:
    """The parts of an instance's name, its tail last, or empty; None: it is no instance of that group.

    Only a job's name may have the mark in it, and that is the second part.
    """
    tail = ""
    if group.shape.has_tail:
        name, _, tail = name.rpartition(BETWEEN)
    parts = name.split(BETWEEN, group.head[1] - 1)
    if len(parts) != group.head[1] or not all(parts) or group.shape.has_tail != bool(tail):
        return None
    if group.head is not OF_JOB and any(BETWEEN in part for part in parts):
        return None
    return tuple("" if part == _BLANK else unquote(part) for part in (*parts, tail))


def mount_label(name: str, place: int) -> str:
    """A file system or target as the mount in that place sees it, counted from 1."""
    return name if place == 1 else f"{name}{SECOND_MOUNT}{place}"


def named_mount(label: str) -> tuple[str, int]:
    """The inverse of `mount_label`."""
    name, mark, place = label.rpartition(SECOND_MOUNT)
    return (name, int(place)) if mark and place.isdecimal() and len(place) < 5 else (label, 1)
