"""Names of Lustre's parameters, their texts, and the page size of a client."""

from __future__ import annotations

import os
import re
import struct
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any, Final, NamedTuple

from iolens.errors import InputError
from iolens.records import Note
from iolens.sources.lustre.capacity import CAPACITY_LEAVES, LOCK_LEAVES
from iolens.sources.lustre.clock import snapshot_of, stamp_us
from iolens.sources.reading.bounded_input import parameter_bytes

# Names of Lustre's parameters -----------------------------------------------------------------------------------------
# Which of them are read, as what, and which are named as left out.
#
# `obdfilter.fs-OST0000.stats` (lctl) and `obdfilter/fs-OST0000/stats` (/proc, /sys) are the same parameter.

OBDFILTER, OSD, MDT, MDS, LOCKS, EXPORTS, SERVICE, NODEMAP, SERVER = (
    "obdfilter", "osd", "mdt", "mds", "ldlm", "exports", "service", "nodemap", "",
)  # fmt: skip
LLITE, OSC, MDC, CLIENT_LOCKS = "llite", "osc", "mdc", "client_ldlm"
CLIENT_FAMILIES: Final = frozenset({LLITE, OSC, MDC, CLIENT_LOCKS})
JOB_STATS, OSD_STATS, SERVICE_STATS, IO_LATENCY = "job_stats", "osd_stats", "service_stats", "io_latency_stats"
NODEMAP_STATS: Final = ("md_stats", "dt_stats")
MOUNTED_DEVICE: Final = "mntdev"  # the block device that a target is on
DEVICE: Final = "device"  # of a target: files of the kernel about its block device
_STATE_LEAVES: Final = ("recovery_status", "num_exports")
# The parameters that are read, by family; what a client did to an MDT is called after the client.
LEAVES: Final[Mapping[str, frozenset[str]]] = {
    OBDFILTER: frozenset({"stats", "brw_stats", JOB_STATS, *CAPACITY_LEAVES, *_STATE_LEAVES}),
    OSD: frozenset({OSD_STATS, "brw_stats", IO_LATENCY, MOUNTED_DEVICE, *CAPACITY_LEAVES}),
    MDT: frozenset({"md_stats", JOB_STATS, *_STATE_LEAVES}),
    MDS: frozenset({"stats", *CAPACITY_LEAVES, *_STATE_LEAVES}),  # 1.8; later `mds/MDS` is a service
    LOCKS: frozenset(LOCK_LEAVES),
    SERVICE: frozenset({SERVICE_STATS}),
    NODEMAP: frozenset(NODEMAP_STATS),
    SERVER: frozenset({"version"}),
    LLITE: frozenset({"stats", "extents_stats", "extents_stats_per_process", "read_ahead_stats"}),
    OSC: frozenset({"stats", "rpc_stats", IO_LATENCY}),
    MDC: frozenset({"stats", "rpc_stats", "md_stats"}),
}
TIMED_LEAVES: Final = frozenset({
    "stats", "md_stats", "brw_stats", OSD_STATS, SERVICE_STATS, "rpc_stats", "extents_stats",
    "extents_stats_per_process", "read_ahead_stats", "pool_stats", IO_LATENCY, "dt_stats",
})  # fmt: skip
SLOW_LEAVES: Final = frozenset({JOB_STATS, OSD_STATS, SERVICE_STATS, IO_LATENCY, *LOCK_LEAVES})
"""What an agent need not open at every tick."""
NOT_TARGETS: Final = frozenset({"MGS", "MDS", "OSS", "num_refs"})
SERVICE_FOLDERS: Final = ("ost/OSS", "mds/MDS", "mdt/MDS", "mgs/MGS", "ldlm/services")
NAMESPACES: Final = "ldlm/namespaces"
MOST_NAMES: Final = 1000
LONGEST_NAME: Final = 300

_SERVICE: Final = re.compile(r"(?:ost\.OSS|mds\.MDS|mdt\.MDS|mgs\.MGS|ldlm\.services)\.(?!osd\.)([\w-]+)\.stats")
_NAMESPACE: Final = re.compile(r"ldlm\.namespaces\.(?:filter|mdt)-([\w-]+)_UUID\.(?:pool\.)?(\w+)")
_CLIENT_POOL: Final = re.compile(r"ldlm\.namespaces\.([\w-]+)\.pool\.stats")
_DEVICE: Final = re.compile(r"(.+)-(OST|MDT)([0-9a-fA-F]{4,})-(osc|mdc)-([0-9a-f]{8,16})")
_MOUNT: Final = re.compile(r"(.+)-([0-9a-f]{8,16})")
_EXPORT: Final = re.compile(r"mdt\.([^.]+)\.exports\.(.+)\.stats")
_ONE_OF_MANY: Final = re.compile(
    r"(?<=^ldlm\.namespaces\.).+?(?=\.(?:pool\.)?\w+$)|(?<=\.exports\.).+(?=\.\w+$)"
    r"|(?<=^ost\.OSS\.)[^.]+(?=\.)|(?<=^md[st]\.MDS\.)[^.]+(?=\.)|(?<=^ldlm\.services\.)[^.]+(?=\.)"
)
_FIXED: Final = frozenset({"OSS", "MDS", "MGS", "services", "namespaces"})


class ClientMount(NamedTuple):
    """What the name of a client's parameter says: the file system, the OST or MDT, and which mount it is."""

    filesystem: str
    target: str  # empty: the file system as a whole
    instance: str  # an address in the kernel, another one after every mount; empty: not in the name


class Parameter(NamedTuple):
    """Which text it is. For a service or nodemap, `target` is its name; for an export, `leaf` is the client."""

    family: str
    target: str
    leaf: str

    @property
    def is_of_target(self) -> bool:
        """Whether it shows that an OST or MDT is on this server; locks may outlast their target."""
        return self.family not in (SERVER, SERVICE, NODEMAP, LOCKS, DEVICE) and not self.is_of_client

    @property
    def is_of_client(self) -> bool:
        """Whether it shows that a file system is mounted here."""
        return self.family in CLIENT_FAMILIES

    @property
    def mount(self) -> ClientMount:
        """The mount that a client's parameter is of."""
        return _mount_called(self.target)

    @property
    def gives_time(self) -> bool:
        """Whether the time of a sample is taken from it: the texts that every target has."""
        return self.leaf in ("stats", "md_stats", "brw_stats") and self.family != NODEMAP

    @property
    def is_timed(self) -> bool:
        """Whether its text begins with the time it was printed."""
        return self.leaf in TIMED_LEAVES or self.family == EXPORTS


@lru_cache(maxsize=4096)
def _mount_called(name: str) -> ClientMount:
    if (match := _DEVICE.fullmatch(name)) is not None:
        return ClientMount(match[1], f"{match[1]}-{match[2]}{match[3]}", match[5])
    match = _MOUNT.fullmatch(name)
    return ClientMount(match[1], "", match[2]) if match is not None else ClientMount(name, "", "")


def parameter_of(family: str, target: str, leaf: str) -> Parameter | None:
    """The parameter of a target by that name if it is one that is read, else None."""
    if family.startswith("osd-"):
        family, leaf = OSD, OSD_STATS if leaf == "stats" else leaf
    if leaf not in LEAVES.get(family, ()) or target in NOT_TARGETS:
        return None
    if family in (OSC, MDC) and client_family(target) != family:  # `fs-OST0000-osc-MDT0000`: an MDT's own
        return None
    return Parameter(family, target.removesuffix("-osd"), leaf)


def client_family(name: str) -> str | None:
    """llite, osc or mdc: whose parameters are called so; None: not a client's."""
    if (match := _DEVICE.fullmatch(name)) is not None:
        return match[4] if (match[2], match[4]) in (("OST", OSC), ("MDT", MDC)) else None
    return LLITE if _MOUNT.fullmatch(name) is not None else None


def parameter_named(name: str) -> Parameter | None:
    """The parameter that lctl calls so, if it is one that is read, else None."""
    if name == "version":
        return Parameter(SERVER, "", "version")
    if (match := _SERVICE.fullmatch(name)) is not None:
        return Parameter(SERVICE, match[1], SERVICE_STATS)
    if (match := _NAMESPACE.fullmatch(name)) is not None:
        return Parameter(LOCKS, match[1], match[2]) if match[2] in LOCK_LEAVES else None
    if (match := _CLIENT_POOL.fullmatch(name)) is not None:
        return Parameter(CLIENT_LOCKS, match[1], "pool_stats") if client_family(match[1]) in (OSC, MDC) else None
    if (match := _EXPORT.fullmatch(name)) is not None:
        return Parameter(EXPORTS, match[1], match[2])
    words = name.split(".")
    return parameter_of(*words) if len(words) == 3 else None


def pattern_of(name: str) -> str:
    """The name with `*` for the target, client or device: `mdt.*.exports.*.uuid`."""
    first, _, rest = _ONE_OF_MANY.sub("*", name[:LONGEST_NAME]).partition(".")
    if not rest:
        return first
    if first == "mgc":  # the address in its name has dots
        return f"{first}.*.{rest.rpartition('.')[2]}"
    second, dot, leaf = rest.partition(".")
    return f"{first}.{second if second in _FIXED or not dot else '*'}{dot}{leaf}"


@dataclass(slots=True)
class LeftOut:
    """Names of what a capture holds and no table of ours has, each once."""

    place: str
    names: set[str] = field(default_factory=set)
    more: int = 0
    reasons: dict[str, None] = field(default_factory=dict)

    def add(self, name: str) -> None:
        """One parameter, or one row of a text, by its pattern."""
        if name not in self.names and len(self.names) >= MOST_NAMES:
            self.more += 1
        else:
            self.names.add(name)

    def say(self, reason: str) -> None:
        """Something that is left out for a reason of its own."""
        self.reasons[reason] = None

    def notes(self) -> Iterator[Note]:
        """One note for all names, and one for each reason."""
        yield from (Note(self.place, None, f"left out: {reason}") for reason in self.reasons)
        if not self.names:
            return
        leaves: dict[str, list[str]] = {}
        for name in sorted(self.names):
            above, dot, leaf = name.rpartition(".")
            leaves.setdefault(above + dot, []).append(leaf)
        named = [above + (some[0] if len(some) == 1 else "{" + ", ".join(some) + "}") for above, some in leaves.items()]
        more = f", and {self.more} others" if self.more else ""
        yield Note(self.place, None, f"left out, not kept by iolens: {', '.join(named)}{more}")


# One raw text of a parameter, as a server or a client printed it ------------------------------------------------------

_JOB_TIME: Final = re.compile(rb"^[ \t]++snapshot_time:([^\n]*)", re.MULTILINE)


class ParameterText(NamedTuple):
    """One raw text and where it was found."""

    parameter: Parameter
    data: bytes
    place: str
    line: int = 1

    @property
    def stamp_us(self) -> int | None:
        """The time the server printed it, where it says so (job_stats only tells the last activity)."""
        return snapshot_of(self.data) if self.parameter.is_timed else None

    @property
    def last_activity_us(self) -> int | None:
        """The latest `snapshot_time` of any job in a job_stats."""
        stamps = (stamp_us(result.decode("ascii", "replace")) for result in _JOB_TIME.findall(self.data))
        return max((stamp for stamp in stamps if stamp is not None), default=None)


# The page size of a client, which its RPC histograms count in (DEFINITIONS, "RPC pages") ------------------------------
# Read from the node or given; checked against the bytes of `osc.*.stats`, never those of llite, which include cache
# hits.

USUAL: Final = 4096
PAGE_SIZES: Final = (4096, 8192, 16384, 32768, 65536)
_AUXV: Final = ("proc/self/auxv", "proc/1/auxv")
_SMAPS: Final = ("proc/self/smaps", "proc/1/smaps")
_AT_PAGESZ: Final = 6
_KERNEL_PAGE: Final = re.compile(rb"^(?:Kernel|MMU)PageSize: +(\d{1,5}) kB$", re.MULTILINE)
_FULL_PAGES: Final = 4  # fewer bytes per page than this part of it: most pages were nearly empty, or are smaller


class PageSize(NamedTuple):
    """Bytes, and where that is known from."""

    bytes: int
    origin: str


class RpcVolume(NamedTuple):
    """One direction of one target: bytes and RPCs by `stats`, RPCs and the most pages by `rpc_stats`."""

    moved_bytes: int
    counted: int
    rpcs: int
    pages: int

    @property
    def comparable(self) -> bool:
        """Whether both texts count the same RPCs: each can be cleared alone."""
        return self.pages > 0 and abs(self.counted - self.rpcs) <= max(16, self.rpcs // 100)


class Verdict(NamedTuple):
    """The page size to use, whether the known one cannot be, and what there is to say."""

    bytes: int
    wrong: str | None
    note: str | None


def judged(known: PageSize | None, volumes: Iterable[RpcVolume], setting: str) -> Verdict:
    """The page size, given what is known of it and what `osc.*.stats` say."""
    comparable = [volume for volume in volumes if volume.comparable]
    per_page = max((volume.moved_bytes / volume.pages for volume in comparable), default=None)
    supply = f"; set page_size of [{setting}]"
    if per_page is None:
        said = f"{known.bytes} bytes ({known.origin})" if known else f"{USUAL} bytes, assumed"
        note = f"page size {said}: could not be checked, for no osc.*.stats has bytes of the same RPCs"
        return Verdict(known.bytes if known else USUAL, None, note + ("" if known else supply))
    measured = next((size for size in PAGE_SIZES if per_page <= size), None)
    if measured is None:
        wrong = f"osc.*.stats have {per_page:.0f} bytes per page of rpc_stats: more than any page size"
        return Verdict(known.bytes if known else USUAL, wrong, None)
    if known is None:
        return Verdict(measured, None, f"page size {measured} bytes, by the bytes of osc.*.stats{supply} to be sure")
    if measured > known.bytes:
        wrong = f"page size {known.bytes} bytes ({known.origin}) cannot be: osc.*.stats have {per_page:.0f} per page"
        return Verdict(measured, f"{wrong}; {measured} is used", None)
    note = f"page size {known.bytes} bytes ({known.origin}), but osc.*.stats have only {per_page:.0f} per page"
    return Verdict(known.bytes, None, note if per_page * _FULL_PAGES < known.bytes else None)


def page_size_of_node(root: Path) -> PageSize | None:
    """The page size as the files below `root` give it; of the machine this runs on for `/`."""
    if str(root.absolute()) == "/":
        return PageSize(os.sysconf("SC_PAGE_SIZE"), "of this node")
    return next((PageSize(size, place) for place, size in _said(root) if _is_page_size(size)), None)


def page_size_setting(settings: Mapping[str, Any], source: str) -> PageSize | None:
    """`page_size` of `[sources.NAME]`."""
    given = settings.get("page_size")
    if given is None:
        return None
    if type(given) is not int or not _is_page_size(given):
        raise InputError(f"sources.{source}.page_size", f"{given!r} is no page size", "bytes, such as 4096 or 65536")
    return PageSize(given, "given")


def _is_page_size(size: int) -> bool:
    return 1024 <= size <= 1 << 24 and size & (size - 1) == 0


def _said(root: Path) -> Iterator[tuple[str, int]]:
    for place in _AUXV:
        data = _text(root / place)
        data += bytes(-len(data) % 16)  # what a copy is padded with was taken off
        for order in "<>":
            pairs = struct.iter_unpack(f"{order}QQ", data)
            yield from ((place, value) for key, value in pairs if key == _AT_PAGESZ)
    for place in _SMAPS:
        yield from ((place, int(size) * 1024) for size in _KERNEL_PAGE.findall(_text(root / place))[:1])


def _text(path: Path) -> bytes:
    try:
        return parameter_bytes(path) if path.is_file() else b""
    except OSError:
        return b""
