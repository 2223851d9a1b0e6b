"""Ticks on the clock: multiples of the interval since 1970, never drifting, never caught up in a burst."""

from __future__ import annotations

import os
import select
import signal
import time
from dataclasses import dataclass
from typing import Final, Protocol

LONGEST_WAIT_S: Final = 10.0  # so that a clock that was set back is noticed
LATE_SHARE: Final = 10  # a sample that begins more than a tenth of the interval after its tick is late
MISSED_SHARE: Final = 2  # more than half: that tick is missed


class Clock(Protocol):
    """Wall time and waiting; tests have one of their own."""

    def now_us(self) -> int:
        """Microseconds since 1970."""

    def wait(self, seconds: float) -> bool:
        """Wait that long, or shorter; True when asked to stop."""


class SystemClock:
    """The machine's clock; SIGTERM and SIGINT end a wait at once."""

    def __init__(self) -> None:
        self.stopped = False
        self._wake, self._woken = os.pipe()
        os.set_blocking(self._woken, False)

    def listen(self) -> None:
        """Take SIGTERM and SIGINT as a request to stop."""
        signal.set_wakeup_fd(self._woken)
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._stop)

    def _stop(self, number: int, frame: object) -> None:
        self.stopped = True

    def now_us(self) -> int:
        """Microseconds since 1970."""
        return time.time_ns() // 1000

    def wait(self, seconds: float) -> bool:
        """Wait that long, or shorter; True when asked to stop."""
        if not self.stopped:
            select.select([self._wake], [], [], max(seconds, 0.0))
        return self.stopped


@dataclass(slots=True)
class Metronome:
    """Gives each tick at its time and counts those that came late or not at all."""

    clock: Clock
    interval_us: int
    late: int = 0
    missed: int = 0
    stepped_back: int = 0
    _last: int | None = None

    def floor(self, time_us: int) -> int:
        """The tick at or before a time."""
        return time_us // self.interval_us * self.interval_us

    def next_tick(self) -> int | None:
        """Wait for the next tick and return its nominal time; None when asked to stop."""
        while True:
            due = self._wait()
            if due is None:
                return None
            now = self.clock.now_us()
            tick = max(self.floor(now), due)
            self.missed += (tick - due) // self.interval_us
            self._last = tick
            if now - tick > self.interval_us // MISSED_SHARE:
                self.missed += 1
                continue
            self.late += now - tick > self.interval_us // LATE_SHARE
            return tick

    def _wait(self) -> int | None:
        due = self._due()
        while (ahead := due - self.clock.now_us()) > 0:
            if ahead > 2 * self.interval_us:  # the clock was set back: go on with its new time
                self.stepped_back += 1
                self._last = None
                due = self._due()
            elif self.clock.wait(min(ahead / 1e6, LONGEST_WAIT_S)):
                return None
        return None if self.clock.wait(0.0) else due

    def _due(self) -> int:
        last = self._last if self._last is not None else self.floor(self.clock.now_us())
        return last + self.interval_us
