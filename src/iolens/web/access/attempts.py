"""How often something may happen: a token bucket for each address and one for all, in bounded memory."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from ipaddress import IPv6Address, ip_address
from typing import Final

MOST_ADDRESSES: Final = 10_000


@dataclass(frozen=True, slots=True)
class Pace:
    """So many at once, and then so many in a second."""

    burst: float
    per_s: float


@dataclass(slots=True)
class _Bucket:
    level: float
    filled_at: float

    def fill(self, pace: Pace, now: float) -> None:
        self.level = min(pace.burst, self.level + (now - self.filled_at) * pace.per_s)
        self.filled_at = now


@dataclass(slots=True)
class Attempts:
    """Attempts of addresses; of an IPv6 address its network of 64 bits counts, which one host can have alone."""

    each: Pace
    all: Pace
    clock: Callable[[], float] = time.monotonic
    _overall: _Bucket | None = None
    _buckets: OrderedDict[str, _Bucket] = field(default_factory=OrderedDict)

    def wait_s(self, address: str) -> float:
        """Count an attempt: 0.0 if it is within the pace, else the seconds until the next one is."""
        now = self.clock()
        self._overall = self._overall or _Bucket(self.all.burst, now)
        bucket = self._bucket(network_of(address), now)
        bucket.fill(self.each, now)
        self._overall.fill(self.all, now)
        if bucket.level >= 1 and self._overall.level >= 1:
            bucket.level -= 1
            self._overall.level -= 1
            return 0.0
        return max((1 - bucket.level) / self.each.per_s, (1 - self._overall.level) / self.all.per_s)

    def _bucket(self, key: str, now: float) -> _Bucket:
        bucket = self._buckets.setdefault(key, _Bucket(self.each.burst, now))
        self._buckets.move_to_end(key)
        if len(self._buckets) > MOST_ADDRESSES:  # the one that was silent for longest
            self._buckets.popitem(last=False)
        return bucket


def network_of(address: str) -> str:
    """The address, or the /64 of an IPv6 address."""
    try:
        parsed = ip_address(address.partition("%")[0])
    except ValueError:
        return address[:64]
    if not isinstance(parsed, IPv6Address):
        return str(parsed)
    if parsed.ipv4_mapped is not None:
        return str(parsed.ipv4_mapped)
    return str(IPv6Address(int(parsed) >> 64 << 64))
