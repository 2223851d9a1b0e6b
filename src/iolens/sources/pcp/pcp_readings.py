"""From records of a PCP archive to readings of a device that can be differenced.

pmlogger writes what is due at one time in several records, a few milliseconds apart. Two readings can only be
differenced over counters that both have. A counter of operations or bytes that pauses makes one wide interval, over
which nothing is lost; one that never returns, or of time, is unknown from then on, or meanwhile.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain, islice
from typing import Final, NamedTuple

from iolens.errors import InputError
from iolens.records import Note, Problem
from iolens.sources.pcp.pcp_archive import (
    Archive,
    ArchiveMetadata,
    DamagedArchive,
    PcpMetric,
    Values,
    pmid_text,
    read_values,
)
from iolens.sources.reading.ticks import SAMPLES_LOOKED_AT

TOGETHER_US: Final = 500_000  # records of different metrics that are this close are of one time
AGAIN_US: Final = 25_000  # and of the same metrics: nobody logs forty times a second
MOVED: Final = ("_ops", "_bytes")  # ends of the names of counters whose sums must be right over any pause
_PACE_QUANTILE: Final = 0.75  # where records come in pairs, half of the spacings are inside a pair


def again_within_us(records: Sequence[Values]) -> int:
    """How close two records with the same values must be to be of one time: a twentieth of the logging interval."""
    last: dict[tuple[int, int], int] = {}
    spacings: list[int] = []
    for record in records:
        for key in _values_of(record):
            if key in last:
                spacings.append(record.time_us - last[key])
            last[key] = record.time_us
    spacings.sort()
    pace_us = spacings[int(len(spacings) * _PACE_QUANTILE)] if spacings else 0
    return min(TOGETHER_US, max(AGAIN_US, pace_us // 20))


@dataclass(slots=True)
class RecordMerger:
    """Puts the records of one time together. Of a value that comes twice the first counts."""

    again_us: int
    pending: Values | None = None
    repeated: int = 0

    def take(self, record: Values) -> Iterator[Values]:
        """One record in; the merged record it ends out."""
        if not record.is_mark and self.pending is not None and self._belongs(record):
            for pmid, values in record.metrics.items():
                known = self.pending.metrics.get(pmid, {})
                self.repeated += len(values.keys() & known.keys())
                self.pending.metrics[pmid] = {**values, **known}
            return
        yield from self.finish()
        self.pending = None if record.is_mark else record

    def finish(self) -> Iterator[Values]:
        """The last merged record."""
        if self.pending is not None:
            yield self.pending
        self.pending = None

    def _belongs(self, record: Values) -> bool:
        assert self.pending is not None
        apart_us = record.time_us - self.pending.time_us
        if not 0 <= apart_us < TOGETHER_US:
            return False
        return apart_us < self.again_us or _values_of(record).isdisjoint(_values_of(self.pending))


@dataclass(slots=True)
class VolumeReader:
    """Reads the volumes of an archive, and remembers what there is to say in the end."""

    archive: Archive
    metadata: ArchiveMetadata
    damages: list[DamagedArchive] = field(default_factory=list)
    undescribed: Counter[int] = field(default_factory=Counter)
    marks: int = 0
    repeated: int = 0  # values that came twice at one time

    @property
    def place(self) -> str:
        """How the archive is called."""
        return str(self.archive.base)

    def merged(self, metrics: Collection[PcpMetric]) -> Iterator[Values]:
        """The values of those metrics, time by time."""
        stream = self._values(metrics)
        ahead = list(islice(stream, SAMPLES_LOOKED_AT))
        merger = RecordMerger(again_within_us(ahead))
        for values in chain(ahead, stream):
            self.marks += values.is_mark
            yield from merger.take(values)
        yield from merger.finish()
        self.repeated = merger.repeated

    def problems(self) -> Iterator[Problem]:
        """What was damaged, and what the archive does not describe."""
        yield from map(problem_of, self.damages)
        if self.undescribed:
            numbers = ", ".join(f"{pmid_text(pmid)} ({count} records)" for pmid, count in self.undescribed.items())
            yield Problem(self.place, None, f"metrics that the archive does not describe, left out: {numbers}")

    def repeated_notes(self) -> Iterator[Note]:
        """That values came twice."""
        if self.repeated:
            yield Note(self.place, None, f"{self.repeated} values logged twice at one time: the first of each counts")

    def mark_notes(self) -> Iterator[Note]:
        """That logging was interrupted."""
        if self.marks:
            reason = f"{self.marks} marks: logging was interrupted, the interval across each is wide"
            yield Note(self.place, None, reason)

    def _values(self, metrics: Collection[PcpMetric]) -> Iterator[Values]:
        for path in self.archive.volumes:
            try:
                yield from read_values(path, metrics, self.metadata.described, self.undescribed)
            except DamagedArchive as damage:
                self.damages.append(damage)
            except InputError as error:
                self.damages.append(DamagedArchive(path, 0, error.problem))


def problem_of(damage: DamagedArchive) -> Problem:
    """Where an archive breaks off."""
    return Problem(str(damage.path), None, f"byte {damage.offset}: {damage.reason}; what came before it is kept")


def _values_of(record: Values) -> set[tuple[int, int]]:
    return {(pmid, instance) for pmid, values in record.metrics.items() for instance in values}


class DeviceReading(NamedTuple):
    """The counters of one device at one time."""

    tick_us: int
    time_us: int
    counters: dict[str, int]


@dataclass(slots=True)
class Hole:
    """Readings of a device in which a counter that it had before is unknown."""

    counter: str
    begin_us: int
    readings: int = 0
    moved: int | None = None  # what it counted meanwhile; None: it has not come back


Returns = Callable[[Collection[str], int], bool]  # whether all of these counters are logged at one time after this one


@dataclass(slots=True)
class DeviceReadings:
    """Readings of one device in, readings that can be differenced out.

    One that lacks a counter waits for the next that has all, and is skipped then: the interval is longer, nothing is
    lost. If none comes within as many readings as are looked at, the counters that keep coming go on without the
    others; but not without operations or bytes that come back, however late: what they counted is in the wide interval.
    """

    expected: set[str] = field(default_factory=set)
    held: list[DeviceReading] = field(default_factory=list)
    skipped: int = 0
    apart: Counter[str] = field(default_factory=Counter)  # values that came without the counters that go on
    longest_wait: int = 0
    holes: list[Hole] = field(default_factory=list)
    _last: dict[str, tuple[int, int]] = field(default_factory=dict)  # time and value of each counter passed on
    _open: dict[str, Hole] = field(default_factory=dict)

    def take(self, reading: DeviceReading, returns: Returns) -> Iterator[DeviceReading]:
        """The next reading."""
        self.expected |= reading.counters.keys()
        if reading.counters.keys() >= self.expected:
            self.longest_wait = max(self.longest_wait, len(self.held))
            self.skipped += len(self.held)
            self.held = []
            yield self._passed(reading)
            return
        self.held.append(reading)
        if len(self.held) < SAMPLES_LOOKED_AT:
            return
        moved = self._moved()
        if any(item.counters.keys() >= moved for item in self.held) or not returns(moved, reading.time_us):
            yield from self._go_on_without()
        else:
            self.skipped += len(self.held)
            self.held = []

    def finish(self) -> Iterator[DeviceReading]:
        """The end: readings that only wait for a slower counter are left to whoever reads on."""
        if len(self.held) <= self.longest_wait:
            self.skipped += len(self.held)
        else:
            yield from self._go_on_without()

    def _moved(self) -> frozenset[str]:
        return frozenset(name for name in self.expected if name.endswith(MOVED))

    def _go_on_without(self) -> Iterator[DeviceReading]:
        """Be content with the largest set of counters that keeps coming together, with all that move if any has."""
        sets: Counter[frozenset[str]] = Counter(frozenset(reading.counters) for reading in self.held)
        moved = self._moved()
        sets = Counter({names: times for names, times in sets.items() if names >= moved}) or sets
        sizes = {names: len(names) * times for names, times in sets.items()}
        largest = max(sizes, key=lambda names: (sizes[names], sorted(names)))
        self.expected = set(largest)
        held, self.held = self.held, []
        for reading in held:
            is_whole = reading.counters.keys() >= self.expected
            self.apart.update(name for name in reading.counters if not is_whole or name not in self.expected)
            if is_whole:
                counters = {name: value for name, value in reading.counters.items() if name in self.expected}
                yield self._passed(reading._replace(counters=counters))

    def _passed(self, reading: DeviceReading) -> DeviceReading:
        """Keep account of the counters that are unknown in it, and of counters that come back."""
        for name, (time_us, value) in self._last.items():
            if name not in reading.counters:
                if name not in self._open:
                    self._open[name] = Hole(name, time_us)
                    self.holes.append(self._open[name])
                self._open[name].readings += 1
            elif name in self._open:
                self._open.pop(name).moved = max(0, reading.counters[name] - value)
        self._last |= {name: (reading.time_us, value) for name, value in reading.counters.items()}
        return reading
