"""The section `[hub]`: how much agents may send, how much may wait, and how the writer works."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from iolens.config import POSITIVE, TEXT, TRUTH, Config, checked_section, parsed_value
from iolens.errors import InputError
from iolens.units import parse_capacity, parse_duration


@dataclass(frozen=True, slots=True)
class HubConfig:
    """Limits of the inbox and settings of the writer. An agent is a host that sends segments."""

    agent_bytes: int = 512 << 20  # of one agent, waiting and put aside
    agent_segments: int = 1000
    agent_bytes_per_hour: int = 2 << 30
    agents: int = 20_000
    inbox_bytes: int = 20 << 30  # of all agents
    inbox_segments: int = 100_000
    reserve_bytes: int = 1 << 30  # disk space that stays free
    segment_bytes: int = 64 << 20  # of the largest segment
    uploads: int = 64  # at once
    own_host_only: bool = False  # a token sends segments of the host it is named after, no others
    batch_bytes: int = 32 << 20
    batch_segments: int = 500
    commit_every_s: float = 30.0
    writer_bytes: int = 300 << 20  # memory; a writer that has grown beyond is replaced


# Key of the file → field, what it holds, and how it is read.
_KEYS: Final[dict[str, tuple[str, str, Callable[[str], float] | None]]] = {
    "agent_limit": ("agent_bytes", TEXT, parse_capacity),
    "agent_segments": ("agent_segments", POSITIVE, None),
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
    if parse is None:
        return int(value) if kind == POSITIVE else value
    amount = parsed_value(path, f"hub.{key}", value, parse)
    if amount <= 0 and key not in _MAY_BE_ZERO:
        raise InputError(str(path), f"hub.{key} = {value!r} would take nothing", "an amount above zero")
    return amount
