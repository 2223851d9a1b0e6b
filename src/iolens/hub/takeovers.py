"""Which server's agent sends the samples of a target, when another may take it over, and what became of the segments
of each.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from datetime import timedelta
from pathlib import Path
from typing import Any, Final, NamedTuple

from iolens.agent.sampling.shipper import OfferedSegment
from iolens.agent.sampling.spool import replace_private
from iolens.hub.hub_config import TakeoverRules, among
from iolens.records import Note
from iolens.sources.reading.bounded_input import opened_itself
from iolens.sources.spool import STORED_AS, SegmentExtent, TargetName, is_same_host
from iolens.store.duckdb_engine import query
from iolens.store.store import Store
from iolens.units import from_epoch_us, iso

# What became of the segments of each agent, counted by the server and by the writer -----------------------------------
# Each in a file of its own.

UPLOADS_FILE: Final = "uploads.json"
WRITER_FILE: Final = "writer.json"
LARGEST_FILE: Final = 64 << 20
_NOT_READ: Final = (OSError, ValueError, TypeError, LookupError, AttributeError, RecursionError)


@dataclass(slots=True)
class UploadCounts:
    """What one agent sent: when last, and how much since the files of the hub were made."""

    last_seen_us: int = 0
    segments: int = 0
    bytes: int = 0
    refused: int = 0
    reason: str = ""  # of the last refusal


@dataclass(slots=True)
class StoredCounts:
    """What the writer did with the segments of one agent."""

    stored: int = 0
    late: int = 0
    bad: int = 0
    taken_over: int = 0  # targets that another server served before
    dropped: int = 0  # segments that were put aside, and went because there were too many


@dataclass(slots=True)
class WriterRecord:
    """What the writer says of itself after each batch; counts are since the files of the hub were made."""

    pid: int = 0
    started_us: int = 0
    time_us: int = 0  # when this was written
    commit_us: int | None = None  # when a batch was last stored
    batches: int = 0
    segments: int = 0
    samples: int = 0
    rows: int = 0
    cpu_s: float = 0.0  # of this process
    rss_bytes: int = 0
    trouble: str = ""
    agents: dict[str, StoredCounts] = field(default_factory=dict)

    def write(self, directory: Path) -> None:
        """Replace the file."""
        replace_private(directory / WRITER_FILE, json.dumps(asdict(self)).encode())

    @classmethod
    def read(cls, directory: Path) -> WriterRecord:
        """The file; an empty record where it is missing or damaged."""
        try:
            plain = _plain(directory / WRITER_FILE)
            agents = {str(host): _counts(StoredCounts, item) for host, item in plain.pop("agents", {}).items()}
            return cls(**_known(cls, plain), agents=agents)
        except _NOT_READ:
            return cls()


def write_uploads(directory: Path, counts: Mapping[str, UploadCounts]) -> None:
    """Replace the file of the server's counts."""
    replace_private(directory / UPLOADS_FILE, json.dumps({host: asdict(own) for host, own in counts.items()}).encode())


def read_uploads(directory: Path) -> dict[str, UploadCounts]:
    """The server's counts; none where the file is missing or damaged."""
    try:
        return {str(host): _counts(UploadCounts, item) for host, item in _plain(directory / UPLOADS_FILE).items()}
    except _NOT_READ:
        return {}


def _plain(path: Path) -> dict[str, Any]:
    with opened_itself(path) as stream:
        plain: dict[str, Any] = json.loads(stream.read(LARGEST_FILE))
    return plain


def _counts(kind: Any, plain: Mapping[str, Any]) -> Any:
    return kind(**_known(kind, plain))


def _known(kind: Any, plain: Mapping[str, Any]) -> dict[str, Any]:
    """Fields that this version has too."""
    names = {item.name for item in fields(kind)}
    return {name: value for name, value in plain.items() if name in names}


# Which server's agent sends the samples of a target, and when another may take the target over ------------------------
# A target belongs to the host whose segment left its newest baseline. After a fail-over its partner samples it: that is
# believed where the configuration pairs the two, or when the server before goes on without the target, or is silent.

GONE_US: Final = 120_000_000  # so long an agent has gone on without a target that is no longer its server's
_AGENT: Final = re.compile(r"(?:rebuild/)?agent/(?P<host>[^/]+)/")


class TargetHost(NamedTuple):
    """The host that a target belongs to, and the tick of its last sample."""

    host: str
    last_us: int


@dataclass(frozen=True, slots=True)
class Judged:
    """The segments that are loaded now, each with what is taken of it, and hosts whose segments wait, and for what."""

    ready: list[OfferedSegment]
    waiting: dict[str, str]


@dataclass(slots=True)
class Takeovers:
    """The judge of one batch. `last_arrival_us` says when something last came from a host, by the clock of the hub."""

    store: Store
    rules: TakeoverRules
    now_us: int
    last_arrival_us: Callable[[str], int]
    holders: dict[TargetName, TargetHost] = field(default_factory=dict)
    newest: dict[tuple[TargetName, str], int] = field(default_factory=dict)  # last tick in the batch, by host
    heard: dict[str, int] = field(default_factory=dict)  # last tick of anything in the batch, by host

    def judge(self, extents: Sequence[tuple[OfferedSegment, SegmentExtent]]) -> Judged:
        """In the order of their first ticks, so that a target goes from hand to hand as it did."""
        self._look(extent for _, extent in extents)
        waiting: dict[str, str] = {}
        admitted: dict[Path, OfferedSegment] = {}
        for segment, extent in sorted(extents, key=lambda pair: _begin(pair[1])):
            if extent.host not in waiting and (known := self._admitted(segment, extent, waiting)) is not None:
                admitted[segment.path] = known
        ready = [admitted[segment.path] for segment, extent in extents if extent.host not in waiting]
        return Judged(ready, waiting)

    def _look(self, extents: Iterable[SegmentExtent]) -> None:
        targets: set[TargetName] = set()
        for extent in extents:
            self.heard[extent.host] = max(self.heard.get(extent.host, 0), extent.last_us)
            for target, (_, last_us) in extent.targets.items():
                targets.add(target)
                key = (target, extent.host)
                self.newest[key] = max(self.newest.get(key, 0), last_us)
        self.holders = stored_holders(self.store, targets)

    def _admitted(
        self, segment: OfferedSegment, extent: SegmentExtent, waiting: dict[str, str]
    ) -> OfferedSegment | None:
        """The segment with what is refused of it and noted; None: it waits."""
        refused: dict[TargetName, str] = {}
        moved: dict[TargetName, str] = {}
        for target, ends in sorted(extent.targets.items()):
            holder = self._holder(target)
            if holder is None or is_same_host(holder.host, extent.host) or ends[1] <= holder.last_us:
                continue  # its own, or older than what is stored: samples of before a take-over come late
            why, verdict = self._verdict(target, ends, holder, extent.host)
            if verdict == "wait":
                waiting[extent.host] = f"{target[1]} was served by {holder.host}; {why}"
                return None
            if verdict == "taken":
                moved[target] = f"{extent.host} takes it over from {holder.host}: {why}"
            else:
                refused[target] = f"it is served by {holder.host}: {why}"
        for target, (_, last_us) in extent.targets.items():
            holder = self._holder(target)
            if target not in refused and (holder is None or last_us > holder.last_us or target in moved):
                self.holders[target] = TargetHost(extent.host, last_us)
        notes = [Note(str(segment.path), None, f"{name} of {fs}: {why}") for (fs, name), why in moved.items()]
        own = segment.admission
        return replace(segment, admission=replace(own, refused=refused, notes=(*own.notes, *notes)))

    def _holder(self, target: TargetName) -> TargetHost | None:
        """With what its host brings in this batch."""
        holder = self.holders.get(target)
        if holder is None:
            return None
        return holder._replace(last_us=max(holder.last_us, self.newest.get((target, holder.host), 0)))

    def _verdict(self, target: TargetName, ends: tuple[int, int], holder: TargetHost, host: str) -> tuple[str, str]:
        """Why, and `taken`, `refused` or `wait`."""
        if self.rules.is_stated(target, host):
            return "the configuration says that it serves it", "taken"
        if partners := self.rules.partners(holder.host):
            is_pair = among(host, partners)
            return ("they are a fail-over pair", "taken") if is_pair else ("they are no fail-over pair", "refused")
        if ends[0] <= holder.last_us:
            return f"both send it, {holder.host} until {iso(from_epoch_us(holder.last_us))}", "refused"
        heard_us = max(self.heard.get(holder.host, 0), last_tick(self.store, holder.host))
        if heard_us - holder.last_us >= GONE_US:
            return f"{holder.host} goes on without it since {iso(from_epoch_us(holder.last_us))}", "taken"
        silent_us = self.now_us - max(heard_us, self.last_arrival_us(holder.host))
        if silent_us >= self.rules.silence_s * 1e6:
            return f"{holder.host} is silent for {timedelta(seconds=silent_us // 1_000_000)}", "taken"
        return f"waiting until that is heard without it, or silent for {self.rules.silence_s:g} s", "wait"


def stored_holders(store: Store, targets: Iterable[TargetName]) -> dict[TargetName, TargetHost]:
    """By the newest baselines; targets that no agent has brought have no holder."""
    wanted, handle = sorted(targets), store.tables.load("baselines")
    if not wanted or handle is None:
        return {}
    keys = ", ".join("(?, ?)" for _ in wanted)
    sql = f"""SELECT filesystem, target, arg_max(batch, position), max(epoch_us(time)) FROM stored
              WHERE source = ? AND (filesystem, target) IN ({keys}) GROUP BY ALL"""  # noqa: S608 (only placeholders)
    rows = query(store.tables, handle, "baselines", sql, [STORED_AS, *(part for key in wanted for part in key)])
    return {
        (filesystem, target): TargetHost(match["host"], time_us)
        for filesystem, target, batch, time_us in rows
        if (match := _AGENT.match(batch)) is not None
    }


def last_tick(store: Store, host: str) -> int:
    """The last tick of anything that an agent has brought, microseconds since 1970; 0: it has brought nothing."""
    handle = store.tables.load("batches")
    sql = "SELECT max(epoch_us(last_time)) FROM stored WHERE starts_with(batch, ?)"
    rows: list[tuple[Any, ...]] = [] if handle is None else query(
        store.tables, handle, "batches", sql, [f"agent/{host}/"]
    )  # fmt: skip
    return int(rows[0][0] or 0) if rows else 0


def _begin(extent: SegmentExtent) -> int:
    return min((first for first, _ in extent.targets.values()), default=extent.last_us)
