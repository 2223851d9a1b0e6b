"""The throttle of a scan: so many entries a second over all its processes, to spare a metadata server."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Final, Protocol

LARGEST_CHUNK: Final = 4096
SMOOTHNESS_S: Final = 0.05  # entries are asked for in pieces that take about this long


class SharedTime(Protocol):
    """A number all processes see."""

    value: float


class ScanPace:
    """Hands out entries no faster than `rate` a second; what was not used is not saved up for a burst.

    `free_at` is the time from which the next entry may be had, shared with `lock` by all who take.
    """

    def __init__(
        self,
        rate: float,
        free_at: SharedTime,
        lock: AbstractContextManager[object],
        now: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], object] = time.sleep,
    ) -> None:
        self.rate = rate
        self.chunk = max(1, min(LARGEST_CHUNK, int(rate * SMOOTHNESS_S)))
        self._free_at, self._lock, self._now, self._sleep = free_at, lock, now, sleep

    def take(self, entries: int) -> None:
        """Wait until so many entries may be looked at."""
        with self._lock:
            now = self._now()
            begin = max(now, self._free_at.value)
            self._free_at.value = begin + entries / self.rate
        if begin > now:
            self._sleep(begin - now)
