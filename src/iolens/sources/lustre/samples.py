"""Which texts of a long capture belong to one sample of a server.

A parameter that comes again begins a new sample only if it is a new time: some captures print a file twice.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from iolens.records import Problem
from iolens.sources.lustre.parameter_texts import ParameterText
from iolens.sources.lustre.parameters import JOB_STATS, Parameter

SAME_TIME_US: Final = 500_000


@dataclass(slots=True)
class ServerSample:
    """The texts of one time. `marker_us`: the time a marker line before them gave."""

    marker_us: int | None = None
    readings: dict[Parameter, ParameterText] = field(default_factory=dict)
    stamps: dict[Parameter, int] = field(default_factory=dict)

    @property
    def series(self) -> str:
        """Samples of the same server have the same series; empty where there is nothing of a target or service."""
        names = [parameter.target for parameter in self.readings if parameter.is_of_target or parameter.is_of_client]
        return min(names or [parameter.target for parameter in self.readings], default="")

    @property
    def has_target(self) -> bool:
        """Whether anything here is of an OST or MDT."""
        return any(parameter.is_of_target for parameter in self.readings)

    @property
    def has_client(self) -> bool:
        """Whether anything here is of a mounted file system."""
        return any(parameter.is_of_client for parameter in self.readings)

    @property
    def times(self) -> list[int]:
        """The times its targets' own texts give; those of services and clients only where there are no others."""
        mine = [stamp for parameter, stamp in self.stamps.items() if parameter.gives_time]
        return mine or list(self.stamps.values())

    def snapshot_us(self, at_us: int | None) -> int | None:
        """When it was taken: the earliest time a text gives, else the marker or `at_us`, else the last job activity."""
        if self.stamps:
            return min(self.times)
        if self.marker_us is not None or at_us is not None:
            return self.marker_us if self.marker_us is not None else at_us
        active = (reading.last_activity_us for reading in self.readings.values() if reading.parameter.leaf == JOB_STATS)
        return max((stamp for stamp in active if stamp is not None), default=None)

    def nominal_us(self, at_us: int | None) -> int | None:
        """The time its tick is made of: the marker's where there is one."""
        return self.marker_us if self.marker_us is not None else self.snapshot_us(at_us)

    def add(self, reading: ParameterText, stamp: int | None) -> None:
        """Take a text into this sample; the first of a name counts."""
        if reading.parameter not in self.readings:
            self.readings[reading.parameter] = reading
            if stamp is not None:
                self.stamps[reading.parameter] = stamp


@dataclass(slots=True)
class SampleSplitter:
    """Takes texts in the order of the file and gives back each sample when the next one begins.

    Texts without a time that come again wait (`pending`) until a text with a time tells which sample they are of.
    """

    current: ServerSample = field(default_factory=ServerSample)
    pending: dict[Parameter, ParameterText] = field(default_factory=dict)

    def take(self, reading: ParameterText) -> Iterator[ServerSample | Problem]:
        """One text; yields the sample it ends, and what cannot be placed."""
        stamp = reading.stamp_us
        if stamp is None:
            yield from self._take_untimed(reading)
            return
        if self._is_later(reading.parameter, stamp):
            yield self._turn()
        self._settle()
        self.current.add(reading, stamp)

    def mark(self, time_us: int) -> Iterator[ServerSample]:
        """A line that gives the time of what follows."""
        yield from self.finish()
        self.current = ServerSample(time_us)

    def finish(self) -> Iterator[ServerSample]:
        """The end of the file."""
        self._settle()
        if self.current.readings:
            yield self.current
        self.current = ServerSample()

    def _is_later(self, parameter: Parameter, stamp: int) -> bool:
        stamps = self.current.stamps
        if parameter in stamps:
            return abs(stamp - stamps[parameter]) > SAME_TIME_US
        return bool(self.pending) and bool(stamps) and stamp - max(stamps.values()) > SAME_TIME_US

    def _take_untimed(self, reading: ParameterText) -> Iterator[ServerSample | Problem]:
        known = self.current.readings.get(reading.parameter)
        if known is None and not self.pending:
            self.current.add(reading, None)
        elif self.current.stamps:
            self.pending.setdefault(reading.parameter, reading)
        elif known is not None and self._job_went_on(known, reading):
            yield self._turn()
            self.current.add(reading, None)
        elif known is not None and known.data != reading.data:
            name = ".".join(reading.parameter)
            yield Problem(reading.place, reading.line, f"{name} again, and no time tells when: left out")

    def _job_went_on(self, known: ParameterText, reading: ParameterText) -> bool:
        if reading.parameter.leaf != JOB_STATS:
            return False
        before, now = known.last_activity_us, reading.last_activity_us
        return before is not None and now is not None and now - before > SAME_TIME_US

    def _turn(self) -> ServerSample:
        finished, self.current = self.current, ServerSample()
        self._settle()
        return finished

    def _settle(self) -> None:
        for reading in self.pending.values():
            self.current.add(reading, None)
        self.pending = {}
