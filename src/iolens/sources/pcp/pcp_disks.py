"""Archives of Performance Co-Pilot: the metrics `disk.dev.*` of the host that pmlogger watched.

Counters stay raw; units are those of each metric's description. Where logging was interrupted (a mark) the archive does
not tell whether counting began anew: the store's rule for resets judges, as for any two samples far apart.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import chain, islice
from typing import Final, NamedTuple

from iolens.records import Item, Note, Problem
from iolens.schema import LARGEST
from iolens.sources.devices.block_devices import (
    NAMED_LEFT_OUT,
    Choice,
    DeviceSeries,
    choose,
    devices_by_name,
    is_asked_for,
    left_out_notes,
)
from iolens.sources.pcp.pcp_archive import (
    COUNTER,
    Archive,
    ArchiveMetadata,
    PcpMetric,
    Values,
)
from iolens.sources.pcp.pcp_readings import DeviceReading, DeviceReadings, Hole, VolumeReader
from iolens.sources.reading.options import ReadOptions
from iolens.sources.reading.ticks import SAMPLES_LOOKED_AT, Ticker, grid_of
from iolens.units import from_epoch_us, iso

SPACE, TIME, COUNT = (1, 0, 0), (0, 1, 0), (0, 0, 1)
BLOCK_BYTES: Final = 512

# The measure a metric gives, what it is counted in, and what one is worth beyond its units. Of two metrics for one
# measure the first that the archive has counts.
METRICS: Final[dict[str, tuple[str, tuple[int, int, int], int]]] = {
    "disk.dev.read": ("read_ops", COUNT, 1),
    "disk.dev.write": ("write_ops", COUNT, 1),
    "disk.dev.read_bytes": ("read_bytes", SPACE, 1),
    "disk.dev.write_bytes": ("write_bytes", SPACE, 1),
    "disk.dev.blkread": ("read_bytes", COUNT, BLOCK_BYTES),
    "disk.dev.blkwrite": ("write_bytes", COUNT, BLOCK_BYTES),
    "disk.dev.read_rawactive": ("read_wait_us", TIME, 1),
    "disk.dev.write_rawactive": ("write_wait_us", TIME, 1),
    "disk.dev.avactive": ("busy_us", TIME, 1),
    "disk.dev.aveq": ("queue_us", TIME, 1),
}
_UNITS: Final = {"ops": "operations", "bytes": "bytes", "us": "microseconds"}  # by the end of a counter's name
_TIME_SCALES_US: Final = (0.001, 1, 1_000, 1_000_000, 60_000_000, 3_600_000_000)  # ns, us, ms, s, min, h


def samples(
    archive: Archive, metadata: ArchiveMetadata, options: ReadOptions, wanted: Mapping[int, PcpMeasure]
) -> Iterator[Item]:
    """Every sample of every device, and what there is to say about them."""
    host = metadata.label.host or "unknown"
    series = DeviceSeries(options.filesystem or host, host, forgets=True)
    tally = _Tally(
        metadata,
        options,
        VolumeReader(archive, metadata),
        {measure.name: measure.metric.name for measure in wanted.values()},
    )
    logged = _LoggedTogether(archive, tally, wanted)
    stream = tally.samples(wanted)
    ahead = list(islice(stream, SAMPLES_LOOKED_AT))
    ticker = Ticker(grid_of({host: [sample.time_us for sample in ahead]}, options.interval_s))
    for sample in chain(ahead, stream):
        if not is_asked_for(sample.time_us, options):
            continue
        tick = ticker.tick(sample.time_us, host)
        kept = tally.kept(sample.devices)
        for device, counters in sample.devices.items():
            if (shown := kept.get(device)) is not None:
                returns = partial(logged.returns, device)
                for reading in tally.readings[shown].take(DeviceReading(tick, sample.time_us, counters), returns):
                    series.add(shown, *reading)
        yield from series.take()
    for shown, readings in tally.readings.items():
        for reading in readings.finish():
            series.add(shown, *reading)
    yield from series.take(at_end=True)
    yield from tally.items()


class PcpMeasure(NamedTuple):
    """A metric that is read, as one of our counters."""

    name: str
    metric: PcpMetric
    worth: float


class _Sample(NamedTuple):
    """The counters of every device at one time."""

    time_us: int
    devices: dict[str, dict[str, int]]


@dataclass(slots=True)
class _Tally:
    """Reads the volumes and remembers what there is to say in the end."""

    metadata: ArchiveMetadata
    options: ReadOptions
    volumes: VolumeReader
    metric_of: Mapping[str, str]  # by counter
    impossible: int = 0  # values that are negative, no number or beyond any counter
    nameless: int = 0  # values of instances that no instance domain names
    devices: dict[str, None] = field(default_factory=dict)
    choice: Choice = field(default_factory=lambda: Choice({}, {}))
    readings: defaultdict[str, DeviceReadings] = field(default_factory=lambda: defaultdict(DeviceReadings))

    def kept(self, devices: Mapping[str, object]) -> dict[str, str]:
        """The devices to measure, of all that were seen."""
        if not self.devices.keys() >= devices.keys():
            self.devices |= dict.fromkeys(devices)
            self.choice = choose(devices_by_name(self.devices), self.options.devices)
        return self.choice.kept

    def samples(self, wanted: Mapping[int, PcpMeasure]) -> Iterator[_Sample]:
        """What each device shows, time by time."""
        for values in self.volumes.merged([measure.metric for measure in wanted.values()]):
            yield self._sample(values, wanted)

    def items(self) -> Iterator[Item]:
        """What was damaged, and what was left out by rule."""
        place = self.volumes.place
        if self.impossible:
            yield Problem(place, None, f"{self.impossible} values that no counter can have: left out")
        if self.nameless:
            yield Problem(place, None, f"{self.nameless} values of instances that have no name: left out")
        yield from self.volumes.problems()
        yield from self._notes(place)
        yield from left_out_notes(place, self.choice.left_out)

    def _notes(self, place: str) -> Iterator[Note]:
        yield from self.volumes.repeated_notes()
        if skipped := sum(readings.skipped for readings in self.readings.values()):
            yield Note(
                place,
                None,
                f"{skipped} readings lack some of the metrics: skipped, the interval to the next whole one is longer",
            )
        for counter, metric in self.metric_of.items():
            if apart := sum(readings.apart[counter] for readings in self.readings.values()):
                yield Note(place, None, f"{metric} was logged apart from the others: {apart} values left out")
            every = {
                shown: [hole for hole in readings.holes if hole.counter == counter]
                for shown, readings in self.readings.items()
            }
            if holes := {shown: some for shown, some in every.items() if some}:
                yield Note(place, None, f"{metric} {_missing(holes)}")
        yield from self.volumes.mark_notes()

    def _sample(self, values: Values, wanted: Mapping[int, PcpMeasure]) -> _Sample:
        devices: dict[str, dict[str, int]] = {}
        for pmid, metric in values.metrics.items():
            measure = wanted[pmid]
            names = self.metadata.instances[measure.metric.domain]
            for instance, value in metric.items():
                if (name := names.name_at(instance, values.time_us)) is None:
                    self.nameless += 1
                    continue
                counters = devices.setdefault(name, {})
                if (counted := scaled_count(value, measure.worth)) is None:
                    self.impossible += 1
                else:
                    counters[measure.name] = counted
        return _Sample(values.time_us, devices)


@dataclass(slots=True)
class _LoggedTogether:
    """When each set of a device's counters was logged last: the archive is read once more when a long pause asks."""

    archive: Archive
    tally: _Tally
    wanted: Mapping[int, PcpMeasure]
    last_us: dict[str, dict[frozenset[str], int]] | None = None  # by device

    def returns(self, device: str, counters: Collection[str], time_us: int) -> bool:
        """Whether the device has all of these at one time after this one."""
        if self.last_us is None:
            self.last_us = self._read()
        return any(last > time_us and names >= set(counters) for names, last in self.last_us.get(device, {}).items())

    def _read(self) -> dict[str, dict[frozenset[str], int]]:
        again = _Tally(self.tally.metadata, self.tally.options, VolumeReader(self.archive, self.tally.metadata), {})
        last: dict[str, dict[frozenset[str], int]] = {}
        for sample in again.samples(self.wanted):
            if is_asked_for(sample.time_us, again.options):
                for device, counters in sample.devices.items():
                    last.setdefault(device, {})[frozenset(counters)] = sample.time_us
        return last


def _missing(holes: Mapping[str, Sequence[Hole]]) -> str:
    """Where a metric was not logged, and how much it counted meanwhile."""
    every = [hole for some in holes.values() for hole in some]
    began = iso(from_epoch_us(min(hole.begin_us for hole in every)))
    names = ", ".join(sorted(holes)[:NAMED_LEFT_OUT])
    more = f" and {len(holes) - NAMED_LEFT_OUT} more" if len(holes) > NAMED_LEFT_OUT else ""
    text = f"not logged in {sum(hole.readings for hole in every)} readings of {names}{more} after {began}"
    text += ": unknown there"
    if counted := sum(hole.moved or 0 for hole in every):
        text += (
            f"; {counted} {_UNITS[every[0].counter.rpartition('_')[2]]} that it counted meanwhile are in no interval"
        )
    return text


def measures(metadata: ArchiveMetadata, place: str) -> tuple[dict[int, PcpMeasure], list[Problem]]:
    """The metrics to read, and those whose description is not what their name promises."""
    chosen: dict[str, PcpMeasure] = {}
    problems: list[Problem] = []
    for name, (measure, dimension, extra) in METRICS.items():
        metric = metadata.metrics.get(name)
        if metric is None or measure in chosen:
            continue
        is_scaled = dimension != TIME or metric.units.scale[1] < len(_TIME_SCALES_US)
        if metric.semantics != COUNTER or metric.units.dimension != dimension or not is_scaled:
            problems.append(Problem(place, None, f"{name} is no counter of that kind here: not read"))
            continue
        chosen[measure] = PcpMeasure(measure, metric, worth(metric, dimension) * extra)
    return {units.metric.pmid: units for units in chosen.values()}, problems


def worth(metric: PcpMetric, dimension: tuple[int, int, int]) -> float:
    """Bytes, microseconds or operations in one of the metric's units."""
    space, time, count = metric.units.scale
    if dimension == SPACE:
        return float(1 << 10 * space)
    return _TIME_SCALES_US[time] if dimension == TIME else float(10**count)


def scaled_count(value: int | float, worth: float) -> int | None:
    """Exact while both are whole numbers; None for what no counter can have."""
    scaled = value * int(worth) if isinstance(value, int) and worth >= 1 else value * worth
    return round(scaled) if 0 <= scaled <= LARGEST else None
