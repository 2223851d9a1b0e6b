"""The section `[hub]`: how much agents may send, how much may wait, and how the writer works."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from iolens.config import POSITIVE, TEXT, TEXTS, TRUTH, Config, checked_section, parsed_value
from iolens.errors import InputError
from iolens.sources.spool import TargetName, is_same_host
from iolens.target_names import members_by_pattern
from iolens.units import parse_capacity, parse_duration


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
