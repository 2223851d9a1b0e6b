"""Names of Lustre's parameters: which of them are read, as what, and which are named as left out.

`obdfilter.fs-OST0000.stats` (lctl) and `obdfilter/fs-OST0000/stats` (/proc, /sys) are the same parameter.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final, NamedTuple

from iolens.records import Note
from iolens.sources.lustre.capacity import CAPACITY_LEAVES, LOCK_LEAVES

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
