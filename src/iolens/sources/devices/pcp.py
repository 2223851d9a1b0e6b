"""Archives of Performance Co-Pilot: the metrics `disk.dev.*` of the host that pmlogger watched.

Counters stay raw; units are those of each metric's description. Where logging was interrupted (a mark) the archive does
not tell whether counting began anew: the store's rule for resets judges, as for any two samples far apart.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import Final, NamedTuple

from iolens.errors import InputError
from iolens.records import Capture, Item, Note, Problem
from iolens.schema import LARGEST
from iolens.sources.devices.block_devices import (
    NAMED_LEFT_OUT,
    Choice,
    DeviceSeries,
    choose,
    devices_by_name,
    given_by_user,
    is_asked_for,
    left_out_notes,
    refuse_settings,
)
from iolens.sources.devices.pcp_archive import (
    COUNTER,
    FILE,
    MAGIC,
    Archive,
    ArchiveMetadata,
    DamagedArchive,
    PcpMetric,
    Values,
    archives_below,
    find_archive,
    opened,
    packing_of,
    pmid_text,
    read_label,
    read_values,
)
from iolens.sources.devices.pcp_readings import DeviceReading, DeviceReadings, Hole, RecordMerger, again_within_us
from iolens.sources.reading.captures import content_identity, read_each
from iolens.sources.reading.options import ReadOptions
from iolens.sources.reading.saved_text import combined_identity
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


class Pcp:
    """PCP archives."""

    name = "pcp"
    whole_directories = True
    takes_base_names = True
    summary = "Performance Co-Pilot archives with disk.dev.*: a base name, any file of one, or a directory of them"

    def recognises(self, path: Path, head: bytes) -> bool:
        """Whether it begins with an archive's label, or is a directory of archives."""
        if path.is_dir():
            return any(FILE.fullmatch(item.name) and ".meta" in item.name for item in path.iterdir())
        if packing_of(head) is None:
            return int.from_bytes(head[4:8]) in MAGIC
        return FILE.fullmatch(path.name) is not None and _has_label(path)

    def captures(self, paths: Sequence[Path], options: ReadOptions) -> Iterator[Capture]:
        """One capture per archive, whichever of its files were named, the earliest first."""
        named, refused = read_each(paths, _archives)
        yield from refused
        archives = list(dict.fromkeys(archive for group in named for archive in group))
        readings, refused = read_each([archive.meta for archive in archives], partial(_open, options=options))
        yield from refused
        for reading in sorted(readings, key=lambda item: item.metadata.label.start_us):
            yield Capture(str(reading.archive.volumes[0]), reading.identity(), reading.items)


SOURCE: Final = Pcp()


@dataclass(frozen=True, slots=True)
class _Reading:
    """One archive and what the user said about it."""

    archive: Archive
    metadata: ArchiveMetadata
    options: ReadOptions

    @property
    def place(self) -> str:
        return str(self.archive.base)

    def identity(self) -> str:
        """Over all its files: values and descriptions."""
        files = [content_identity(path) for path in self.archive.files]
        return combined_identity(files, **given_by_user(self.options))

    def items(self) -> Iterator[Item]:
        """Every sample of every device."""
        if self.metadata.damage is not None:
            yield _problem(self.metadata.damage)
        wanted, problems = _measures(self.metadata, self.place)
        yield from problems
        if not wanted:
            known = ", ".join(METRICS)
            yield Problem(self.place, None, f"no counter of a disk in it: expected some of {known}")
            return
        yield from self._samples(wanted)

    def _samples(self, wanted: Mapping[int, _PcpMeasure]) -> Iterator[Item]:
        host = self.metadata.label.host or "unknown"
        series = DeviceSeries(self.options.filesystem or host, host, forgets=True)
        tally = _Tally(self, {measure.name: measure.metric.name for measure in wanted.values()})
        stream = tally.samples(wanted)
        ahead = list(islice(stream, SAMPLES_LOOKED_AT))
        ticker = Ticker(grid_of({host: [sample.time_us for sample in ahead]}, self.options.interval_s))
        for sample in chain(ahead, stream):
            if not is_asked_for(sample.time_us, self.options):
                continue
            tick = ticker.tick(sample.time_us, host)
            kept = tally.kept(sample.devices)
            for device, counters in sample.devices.items():
                if (shown := kept.get(device)) is not None:
                    for reading in tally.readings[shown].take(DeviceReading(tick, sample.time_us, counters)):
                        series.add(shown, *reading)
            yield from series.take()
        for shown, readings in tally.readings.items():
            for reading in readings.finish():
                series.add(shown, *reading)
        yield from series.take(at_end=True)
        yield from tally.items()


class _PcpMeasure(NamedTuple):
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

    reading: _Reading
    metric_of: Mapping[str, str]  # by counter
    damages: list[DamagedArchive] = field(default_factory=list)
    marks: int = 0
    impossible: int = 0  # values that are negative, no number or beyond any counter
    nameless: int = 0  # values of instances that no instance domain names
    repeated: int = 0  # values that came twice at one time
    undescribed: Counter[int] = field(default_factory=Counter)
    devices: dict[str, None] = field(default_factory=dict)
    choice: Choice = field(default_factory=lambda: Choice({}, {}))
    readings: defaultdict[str, DeviceReadings] = field(default_factory=lambda: defaultdict(DeviceReadings))

    def kept(self, devices: Mapping[str, object]) -> dict[str, str]:
        """The devices to measure, of all that were seen."""
        if not self.devices.keys() >= devices.keys():
            self.devices |= dict.fromkeys(devices)
            self.choice = choose(devices_by_name(self.devices), self.reading.options.devices)
        return self.choice.kept

    def samples(self, wanted: Mapping[int, _PcpMeasure]) -> Iterator[_Sample]:
        """What each device shows, time by time."""
        stream = self._values(wanted)
        ahead = list(islice(stream, SAMPLES_LOOKED_AT))
        merger = RecordMerger(again_within_us(ahead))
        for values in chain(ahead, stream):
            self.marks += values.is_mark
            yield from (self._sample(merged, wanted) for merged in merger.take(values))
        yield from (self._sample(merged, wanted) for merged in merger.finish())
        self.repeated = merger.repeated

    def items(self) -> Iterator[Item]:
        """What was damaged, and what was left out by rule."""
        yield from (_problem(damage) for damage in self.damages)
        place = self.reading.place
        if self.impossible:
            yield Problem(place, None, f"{self.impossible} values that no counter can have: left out")
        if self.nameless:
            yield Problem(place, None, f"{self.nameless} values of instances that have no name: left out")
        if self.undescribed:
            numbers = ", ".join(f"{pmid_text(pmid)} ({count} records)" for pmid, count in self.undescribed.items())
            yield Problem(place, None, f"metrics that the archive does not describe, left out: {numbers}")
        yield from self._notes(place)
        yield from left_out_notes(place, self.choice.left_out)

    def _notes(self, place: str) -> Iterator[Note]:
        if self.repeated:
            yield Note(place, None, f"{self.repeated} values logged twice at one time: the first of each counts")
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
        if self.marks:
            yield Note(place, None, f"{self.marks} marks: logging was interrupted, the interval across each is wide")

    def _values(self, wanted: Mapping[int, _PcpMeasure]) -> Iterator[Values]:
        metrics = [measure.metric for measure in wanted.values()]
        for path in self.reading.archive.volumes:
            try:
                yield from read_values(path, metrics, self.reading.metadata.described, self.undescribed)
            except DamagedArchive as damage:
                self.damages.append(damage)
            except InputError as error:
                self.damages.append(DamagedArchive(path, 0, error.problem))

    def _sample(self, values: Values, wanted: Mapping[int, _PcpMeasure]) -> _Sample:
        devices: dict[str, dict[str, int]] = {}
        for pmid, metric in values.metrics.items():
            measure = wanted[pmid]
            names = self.reading.metadata.instances[measure.metric.domain].at(values.time_us)
            for instance, value in metric.items():
                if instance not in names:
                    self.nameless += 1
                    continue
                counters = devices.setdefault(names[instance], {})
                if (counted := _scaled(value, measure.worth)) is None:
                    self.impossible += 1
                else:
                    counters[measure.name] = counted
        return _Sample(values.time_us, devices)


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


def _measures(metadata: ArchiveMetadata, place: str) -> tuple[dict[int, _PcpMeasure], list[Problem]]:
    """The metrics to read, and those whose description is not what their name promises."""
    chosen: dict[str, _PcpMeasure] = {}
    problems: list[Problem] = []
    for name, (measure, dimension, extra) in METRICS.items():
        metric = metadata.metrics.get(name)
        if metric is None or measure in chosen:
            continue
        is_scaled = dimension != TIME or metric.units.scale[1] < len(_TIME_SCALES_US)
        if metric.semantics != COUNTER or metric.units.dimension != dimension or not is_scaled:
            problems.append(Problem(place, None, f"{name} is no counter of that kind here: not read"))
            continue
        chosen[measure] = _PcpMeasure(measure, metric, _worth(metric, dimension) * extra)
    return {units.metric.pmid: units for units in chosen.values()}, problems


def _worth(metric: PcpMetric, dimension: tuple[int, int, int]) -> float:
    """Bytes, microseconds or operations in one of the metric's units."""
    space, time, count = metric.units.scale
    if dimension == SPACE:
        return float(1 << 10 * space)
    return _TIME_SCALES_US[time] if dimension == TIME else float(10**count)


def _scaled(value: int | float, worth: float) -> int | None:
    """Exact while both are whole numbers; None for what no counter can have."""
    scaled = value * int(worth) if isinstance(value, int) and worth >= 1 else value * worth
    return round(scaled) if 0 <= scaled <= LARGEST else None


def _archives(path: Path) -> list[Archive]:
    if path.is_dir():
        archives = archives_below(path)
        if not archives:
            raise InputError(str(path), "no archive in this directory", "NAME.meta and NAME.0, NAME.1, …")
        return archives
    return [find_archive(path)]


def _open(meta: Path, options: ReadOptions) -> _Reading:
    refuse_settings(options, "pcp", str(meta))
    return _Reading(find_archive(meta), ArchiveMetadata.read(meta, METRICS.__contains__), options)


def _has_label(path: Path) -> bool:
    try:
        with opened(path) as stream:
            read_label(stream, path)
    except InputError:
        return False
    return True


def _problem(damage: DamagedArchive) -> Problem:
    return Problem(str(damage.path), None, f"byte {damage.offset}: {damage.reason}; what came before it is kept")
