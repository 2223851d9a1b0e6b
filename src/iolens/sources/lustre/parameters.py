"""Names of Lustre's parameters: which of them are read, as what, and which are named as left out.

`obdfilter.fs-OST0000.stats` (lctl) and `obdfilter/fs-OST0000/stats` (/proc, /sys) are the same parameter.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from iolens.records import Note
from iolens.sources.lustre.capacity import CAPACITY_LEAVES, LOCK_LEAVES

OBDFILTER, OSD, MDT, MDS, LOCKS, EXPORTS, SERVICE, SERVER = (
    "obdfilter", "osd", "mdt", "mds", "ldlm", "exports", "service", "",
)  # fmt: skip
JOB_STATS, OSD_STATS, SERVICE_STATS = "job_stats", "osd_stats", "service_stats"
_STATE_LEAVES: Final = ("recovery_status", "num_exports")
# The parameters that are read, by family; what a client did to an MDT is called after the client.
LEAVES: Final[Mapping[str, frozenset[str]]] = {
    OBDFILTER: frozenset({"stats", "brw_stats", JOB_STATS, *CAPACITY_LEAVES, *_STATE_LEAVES}),
    OSD: frozenset({OSD_STATS, "brw_stats", *CAPACITY_LEAVES}),
    MDT: frozenset({"md_stats", JOB_STATS, *_STATE_LEAVES}),
    MDS: frozenset({"stats", *CAPACITY_LEAVES, *_STATE_LEAVES}),  # 1.8; later `mds/MDS` is a service
    LOCKS: frozenset(LOCK_LEAVES),
    SERVICE: frozenset({SERVICE_STATS}),
    SERVER: frozenset({"version"}),
}
TIMED_LEAVES: Final = frozenset({"stats", "md_stats", "brw_stats", OSD_STATS, SERVICE_STATS})
SLOW_LEAVES: Final = frozenset({JOB_STATS, OSD_STATS, SERVICE_STATS, *LOCK_LEAVES})
"""What an agent need not open at every tick."""
NOT_TARGETS: Final = frozenset({"MGS", "MDS", "OSS", "num_refs"})
SERVICE_FOLDERS: Final = ("ost/OSS", "mds/MDS", "mdt/MDS", "mgs/MGS", "ldlm/services")
NAMESPACES: Final = "ldlm/namespaces"
MOST_NAMES: Final = 1000
LONGEST_NAME: Final = 300

_SERVICE: Final = re.compile(r"(?:ost\.OSS|mds\.MDS|mdt\.MDS|mgs\.MGS|ldlm\.services)\.(?!osd\.)([\w-]+)\.stats")
_NAMESPACE: Final = re.compile(r"ldlm\.namespaces\.(?:filter|mdt)-([\w-]+)_UUID\.(?:pool\.)?(\w+)")
_EXPORT: Final = re.compile(r"mdt\.([^.]+)\.exports\.(.+)\.stats")
_ONE_OF_MANY: Final = re.compile(
    r"(?<=^ldlm\.namespaces\.).+?(?=\.(?:pool\.)?\w+$)|(?<=\.exports\.).+(?=\.\w+$)"
    r"|(?<=^ost\.OSS\.)[^.]+(?=\.)|(?<=^md[st]\.MDS\.)[^.]+(?=\.)|(?<=^ldlm\.services\.)[^.]+(?=\.)"
)
_FIXED: Final = frozenset({"OSS", "MDS", "MGS", "services", "namespaces"})


class Parameter(NamedTuple):
    """Which text it is. For a service, `target` is the service; for an export, `leaf` is the client."""

    family: str
    target: str
    leaf: str

    @property
    def is_of_target(self) -> bool:
        """Whether it shows that an OST or MDT is on this server; locks may outlast their target."""
        return self.family not in (SERVER, SERVICE, LOCKS)

    @property
    def gives_time(self) -> bool:
        """Whether the time of a sample is taken from it: the texts that every target has."""
        return self.leaf in ("stats", "md_stats", "brw_stats")

    @property
    def is_timed(self) -> bool:
        """Whether its text begins with the time it was printed."""
        return self.leaf in TIMED_LEAVES or self.family == EXPORTS


def parameter_of(family: str, target: str, leaf: str) -> Parameter | None:
    """The parameter of a target by that name if it is one that is read, else None."""
    if family.startswith("osd-"):
        family, leaf = OSD, OSD_STATS if leaf == "stats" else leaf
    if leaf not in LEAVES.get(family, ()) or target in NOT_TARGETS:
        return None
    return Parameter(family, target.removesuffix("-osd"), leaf)


def parameter_named(name: str) -> Parameter | None:
    """The parameter that lctl calls so, if it is one that is read, else None."""
    if name == "version":
        return Parameter(SERVER, "", "version")
    if (match := _SERVICE.fullmatch(name)) is not None:
        return Parameter(SERVICE, match[1], SERVICE_STATS)
    if (match := _NAMESPACE.fullmatch(name)) is not None:
        return Parameter(LOCKS, match[1], match[2]) if match[2] in LOCK_LEAVES else None
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
