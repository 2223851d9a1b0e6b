"""How much each agent and all together may send: what waits on disk, bytes per hour, uploads at once."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Lock
from typing import Final

from iolens.hub.hub_config import HubConfig
from iolens.hub.inbox import Inbox, Occupancy, UploadRefusedError
from iolens.hub.segment_names import SegmentName
from iolens.units import format_bytes

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
