"""The section `[hub]`: how much agents may send, how much may wait, and what is over that."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock
from typing import Any, Final

from iolens.config import POSITIVE, TEXT, TEXTS, TRUTH, Config, checked_section, parsed_value
from iolens.errors import InputError
from iolens.hub.inbox import Inbox, Occupancy, SegmentName, UploadRefusedError
from iolens.sources.spool import TargetName, is_same_host
from iolens.target_names import members_by_pattern
from iolens.units import format_bytes, parse_capacity, parse_duration

# The section `[hub]` --------------------------------------------------------------------------------------------------
# How much agents may send, how much may wait, and how the writer works.


@dataclass(frozen=True, slots=True)
class HubConfig:
    """Limits of the inbox and settings of the writer. An agent is a host that sends segments."""

    agent_bytes: int = 512 << 20  # of one agent, waiting
    agent_segments: int = 1000
    agent_bytes_per_hour: int = 2 << 30
    agents: int = 20_000
    inbox_bytes: int = 20 << 30  # of all agents
    inbox_segments: int = 100_000
    reserve_bytes: int = 1 << 30  # disk space that stays free
    segment_bytes: int = 64 << 20  # of the largest segment
    uploads: int = 64  # at once
    aside_bytes: int = 512 << 20  # of one agent, put aside; beyond it the oldest segments go
    failover: tuple[tuple[str, ...], ...] = ()  # hosts that serve each other's targets
    takeover_s: float = 900.0  # so long a server is silent before another may take over what it served
    own_host_only: bool = False  # a token sends segments of the host it is named after, no others
    batch_bytes: int = 32 << 20
    batch_segments: int = 500
    commit_every_s: float = 30.0
    writer_bytes: int = 300 << 20  # memory; a writer that has grown beyond is replaced


@dataclass(frozen=True, slots=True)
class TakeoverRules:
    """Hosts that serve each other's targets, the servers that the configuration states, and how long silence lasts."""

    pairs: tuple[tuple[str, ...], ...] = ()
    servers: Mapping[str, Mapping[str, Sequence[str]]] = field(default_factory=dict)  # by file system
    silence_s: float = 900.0

    def to_json(self) -> str:
        """For the command line of the writer."""
        return json.dumps({"pairs": self.pairs, "servers": self.servers, "silence_s": self.silence_s})

    @classmethod
    def from_json(cls, text: str) -> TakeoverRules:
        """The inverse."""
        plain = json.loads(text)
        return cls(tuple(map(tuple, plain["pairs"])), plain["servers"], plain["silence_s"])

    def partners(self, host: str) -> list[str]:
        """Hosts that may take over what this one serves; none: it is in no pair."""
        return [other for pair in self.pairs if among(host, pair) for other in pair]

    def is_stated(self, target: TargetName, host: str) -> bool:
        """Whether the configuration says that this host serves the target."""
        groups = members_by_pattern(self.servers.get(target[0], {}), [target[1]])
        return any(names and is_same_host(server, host) for server, names in groups.items())


# Key of the file → field, what it holds, and how it is read.
_KEYS: Final[dict[str, tuple[str, str, Callable[[str], float] | None]]] = {
    "agent_limit": ("agent_bytes", TEXT, parse_capacity),
    "agent_segments": ("agent_segments", POSITIVE, None),
    "aside_limit": ("aside_bytes", TEXT, parse_capacity),
    "failover": ("failover", TEXTS, None),
    "takeover_after": ("takeover_s", TEXT, parse_duration),
    "agent_limit_per_hour": ("agent_bytes_per_hour", TEXT, parse_capacity),
    "agents": ("agents", POSITIVE, None),
    "inbox_limit": ("inbox_bytes", TEXT, parse_capacity),
    "inbox_segments": ("inbox_segments", POSITIVE, None),
    "reserve": ("reserve_bytes", TEXT, parse_capacity),
    "segment_limit": ("segment_bytes", TEXT, parse_capacity),
    "uploads": ("uploads", POSITIVE, None),
    "own_host_only": ("own_host_only", TRUTH, None),
    "batch_limit": ("batch_bytes", TEXT, parse_capacity),
    "batch_segments": ("batch_segments", POSITIVE, None),
    "commit_every": ("commit_every_s", TEXT, parse_duration),
    "writer_limit": ("writer_bytes", TEXT, parse_capacity),
}
_MAY_BE_ZERO: Final = ("reserve",)


def hub_config(config: Config) -> HubConfig:
    """The section of a configuration, checked."""
    path = config.path or Path("[hub]")
    values = checked_section(path, "hub", config.hub, {key: kind for key, (_, kind, _) in _KEYS.items()})
    return HubConfig(**{_KEYS[key][0]: _read(path, key, value) for key, value in values.items()})


def _read(path: Path, key: str, value: Any) -> Any:
    _, kind, parse = _KEYS[key]
    if kind == POSITIVE and value != int(value):
        raise InputError(str(path), f"hub.{key} = {value!r} is no count", "a whole number above zero")
    if kind == TEXTS:
        return tuple(_pair(path, key, text) for text in value)
    if parse is None:
        return int(value) if kind == POSITIVE else value
    amount = parsed_value(path, f"hub.{key}", value, parse)
    if amount <= 0 and key not in _MAY_BE_ZERO:
        raise InputError(str(path), f"hub.{key} = {value!r} would take nothing", "an amount above zero")
    return amount


def _pair(path: Path, key: str, text: str) -> tuple[str, ...]:
    """Hosts of one pair, or of a larger group."""
    hosts = tuple(text.replace(",", " ").split())
    if len(set(hosts)) < 2:
        raise InputError(str(path), f"hub.{key} = {text!r} is no pair of servers", 'such as "oss1 oss2"')
    return hosts


def among(host: str, hosts: Iterable[str]) -> bool:
    """Whether a host is one of them, by whatever of its names."""
    return any(is_same_host(host, other) for other in hosts)


# How much each agent and all together may send ------------------------------------------------------------------------
# What waits on disk, bytes per hour, uploads at once.

SOON_S: Final = 5.0  # when to ask again: an upload ends soon, the writer takes a batch later, a disk is cleared slowly
LATER_S: Final = 60.0
MUCH_LATER_S: Final = 300.0
HOUR_S: Final = 3600.0


@dataclass(slots=True)
class _Allowance:
    """Bytes an agent may still send; it fills up again within an hour."""

    bytes: float
    at: float


@dataclass(slots=True)
class Quotas:
    """What is admitted. Occupancies are read again for the agent that asks, and now and then for all."""

    inbox: Inbox
    config: HubConfig
    clock: Callable[[], float] = time.monotonic
    _occupancies: dict[str, Occupancy] = field(default_factory=dict)
    _allowances: dict[str, _Allowance] = field(default_factory=dict)
    _arriving: dict[str, int] = field(default_factory=dict)  # bytes by name of what is being sent
    _lock: Lock = field(default_factory=Lock)

    def refresh(self) -> None:
        """Read the folders of all agents again: the writer has taken some of what was there."""
        occupancies = {host: self.inbox.occupancy(host) for host in self.inbox.hosts()}
        with self._lock:
            self._occupancies = occupancies
            rate = self.config.agent_bytes_per_hour / HOUR_S
            full = [host for host, own in self._allowances.items() if (self.clock() - own.at) * rate + own.bytes
                    >= self.config.agent_bytes_per_hour]  # fmt: skip
            for host in full:
                del self._allowances[host]

    @contextmanager
    def admitted(self, name: SegmentName, size: int) -> Iterator[None]:
        """Hold the place of one upload of `size` bytes; UploadRefusedError when there is none."""
        self.check(name, size)
        with self._lock:
            if name.stem in self._arriving:
                raise UploadRefusedError("conflict", "this segment is being sent already", SOON_S)
            if len(self._arriving) >= self.config.uploads:
                busy = f"{self.config.uploads} segments are arriving now"
                raise UploadRefusedError("busy", busy, _jittered(SOON_S))
            self._arriving[name.stem] = size
        try:
            yield
        finally:
            with self._lock:
                del self._arriving[name.stem]

    def is_arriving(self, stem: str) -> bool:
        """Whether a segment is being sent now."""
        return stem in self._arriving

    def check(self, name: SegmentName, size: int) -> None:
        """UploadRefusedError when a segment of `size` bytes cannot be taken now."""
        config = self.config
        if size > config.segment_bytes:
            raise UploadRefusedError("too-large", f"a segment has at most {format_bytes(config.segment_bytes)}")
        own = self.inbox.occupancy(name.host)
        with self._lock:
            is_new = name.host not in self._occupancies
            others = [*(self._occupancies | {name.host: own}).values()]
            arriving = sum(self._arriving.values())
            arriving_of_agent = sum(
                size for stem, size in self._arriving.items() if stem.startswith(f"{name.host}~")
            )  # fmt: skip
        if is_new and len(others) > config.agents:
            raise UploadRefusedError("quota", f"segments of {config.agents} agents are here already", MUCH_LATER_S)
        if own.segments >= config.agent_segments or own.bytes + arriving_of_agent + size > config.agent_bytes:
            waits = f"{own.segments} segments of {name.host}, {format_bytes(own.bytes)}, are not in the store yet"
            raise UploadRefusedError("quota", waits, _jittered(LATER_S))
        segments, total = sum(item.segments for item in others), sum(item.bytes for item in others)
        if segments >= config.inbox_segments or total + arriving + size > config.inbox_bytes:
            waits = f"{segments} segments, {format_bytes(total)}, are not in the store yet"
            raise UploadRefusedError("busy", waits, _jittered(LATER_S))
        if self.inbox.free_bytes() - arriving - size < config.reserve_bytes:
            raise UploadRefusedError("full", "the disk of the hub is full", _jittered(LATER_S))
        self._check_rate(name.host, size)

    def _check_rate(self, host: str, size: int) -> None:
        lacking = size - self._allowance(host).bytes
        if lacking > 0:
            limit = self.config.agent_bytes_per_hour
            wait_s = min(lacking / limit * HOUR_S, HOUR_S)
            raise UploadRefusedError("quota", f"{host} has sent {format_bytes(limit)} within an hour", wait_s)

    def _allowance(self, host: str) -> _Allowance:
        limit, now = self.config.agent_bytes_per_hour, self.clock()
        with self._lock:
            own = self._allowances.setdefault(host, _Allowance(float(limit), now))
            own.bytes, own.at = min(own.bytes + (now - own.at) * limit / HOUR_S, limit), now
            return own

    def note_accepted(self, host: str) -> None:
        """Read the folder of an agent again."""
        own = self.inbox.occupancy(host)
        with self._lock:
            self._occupancies[host] = own

    def note_received(self, host: str, size: int) -> None:
        """Count bytes that have arrived, of whole segments or not."""
        self._allowance(host).bytes -= size


def _jittered(seconds: float) -> float:
    """So that agents which were refused together do not come back together."""
    return seconds * random.uniform(1.0, 1.5)  # noqa: S311 (no secret)
