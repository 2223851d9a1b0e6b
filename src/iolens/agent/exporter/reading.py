"""One reading at a time, in a thread of its own, so that a file that hangs cannot hang who asks.

A reading is served again until the interval has passed. One that does not come in time is given up for this scrape,
not started twice: what hangs in the kernel cannot be ended, and must not be piled up.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, Generic, TypeVar

from iolens.messages import TroubleLog, cause

EARLY_SHARE: Final = 0.1  # a scrape this share of the interval early is on time: scrapers jitter


Values = TypeVar("Values")  # lines of Prometheus, or values of PCP by instance


@dataclass(frozen=True)
class MetricReading(Generic[Values]):
    """What a collector found, by metric, and places not understood; an error when it failed as a whole."""

    metrics: dict[str, Values]
    problems: int = 0
    error: str = ""


@dataclass(frozen=True)
class Served(Generic[Values]):
    """A reading and how it came about; `age_s` None: there is none to serve."""

    reading: MetricReading[Values]
    success: bool
    duration_s: float
    age_s: float | None


@dataclass
class _Finished(Generic[Values]):
    reading: MetricReading[Values]
    began: float
    ended: float


@dataclass(eq=False)
class MetricCollector(Generic[Values]):
    """Reads when asked, not more often than every `interval_s`."""

    name: str
    read: Callable[[], MetricReading[Values]]
    interval_s: float
    say: Callable[[str], None] = lambda line: None
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _done: threading.Event = field(default_factory=threading.Event)
    _running_since: float | None = None
    _finished: _Finished[Values] | None = None
    _troubles: TroubleLog = field(init=False)

    def __post_init__(self) -> None:
        self._troubles = TroubleLog(self.say)

    def begin(self) -> None:
        """Start a reading if one is due and none is under way."""
        with self._lock:
            now = time.monotonic()
            if self._running_since is None and self._is_due(now):
                self._running_since = now
                self._done.clear()
                threading.Thread(target=self._run, name=f"read-{self.name}", daemon=True).start()

    def result(self, deadline: float) -> Served[Values]:
        """The reading, waited for until `deadline` (monotonic); without one in time, what is known of its absence."""
        self._done.wait(max(0.0, deadline - time.monotonic()))
        with self._lock:
            now, finished = time.monotonic(), self._finished
            if self._running_since is not None:
                self._tell(f"no answer after {now - self._running_since:.1f} s")
                return Served(MetricReading({}), False, now - self._running_since, None)
            if finished is None:
                return Served(MetricReading({}), False, 0.0, None)
            duration = finished.ended - finished.began
            self._tell(finished.reading.error)
            return Served(finished.reading, not finished.reading.error, duration, now - finished.began)

    def _is_due(self, now: float) -> bool:
        finished = self._finished
        return finished is None or now - finished.began >= self.interval_s * (1.0 - EARLY_SHARE)

    def _run(self) -> None:
        began = time.monotonic()
        try:
            reading = self.read()
        except Exception as error:  # a file nobody has seen before must not end the exporter
            reading = MetricReading[Values]({}, 1, f"{type(error).__name__}: {error}")
        with self._lock:
            self._finished = _Finished(reading, began, time.monotonic())
            self._running_since = None
            self._done.set()

    def _tell(self, trouble: str) -> None:
        """Say what is wrong once, not at every scrape, and when it is over."""
        if trouble:
            self._troubles.tell(self.name, f"{self.name}: {cause(trouble)}")
        else:
            self._troubles.over(self.name, f"{self.name}: answers again")
