"""Archives of Performance Co-Pilot: the metrics `disk.dev.*` of the host that pmlogger watched.

Counters stay raw; units are those of each metric's description. Where logging was interrupted (a mark) the archive does
not tell whether counting began anew: the store's rule for resets judges, as for any two samples far apart.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import Final, NamedTuple

from iolens.errors import InputError
from iolens.records import Capture, Item, Note, Problem
from iolens.sources import ReadOptions, content_identity, read_each
from iolens.sources.block_devices import (
    Choice,
    DeviceSeries,
    choose,
    devices_by_name,
    is_asked_for,
    left_out_notes,
    refuse_settings,
    told_by_user,
)
from iolens.sources.parsed_numbers import LARGEST
from iolens.sources.pcp_archive import (
    COUNTER,
    FILE,
    MAGIC,
    Archive,
    DamagedArchive,
    Metadata,
    Metric,
    Values,
    archives_below,
    find_archive,
    opened,
    packing_of,
    read_label,
    read_values,
)
from iolens.sources.saved_text import combined_identity
from iolens.sources.ticks import SAMPLES_LOOKED_AT, Ticker, grid_of

SPACE, TIME, COUNT = (1, 0, 0), (0, 1, 0), (0, 0, 1)
BLOCK_BYTES: Final = 512
TOGETHER_US: Final = 500_000  # pmlogger fetches what is due at one moment in several turns

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
            return any(FILE.fullmatch(one.name) and ".meta" in one.name for one in path.iterdir())
        if packing_of(head) is None:
            return int.from_bytes(head[4:8]) in MAGIC
        return FILE.fullmatch(path.name) is not None and _has_label(path)

    def captures(self, paths: Sequence[Path], options: ReadOptions) -> Iterator[Capture]:
        """One capture per archive, whichever of its files were named, the earliest first."""
        named, refused = read_each(paths, _archives)
        yield from refused
        archives = list(dict.fromkeys(archive for group in named for archive in group))
        readings, refused = read_each([one.meta for one in archives], partial(_open, options=options))
        yield from refused
        for one in sorted(readings, key=lambda one: one.metadata.label.start_us):
            yield Capture(str(one.archive.volumes[0]), one.identity(), one.items)


SOURCE: Final = Pcp()


@dataclass(frozen=True, slots=True)
class _Reading:
    """One archive and what the user said about it."""

    archive: Archive
    metadata: Metadata
    options: ReadOptions

    @property
    def place(self) -> str:
        return str(self.archive.base)

    def identity(self) -> str:
        """Over all its files: values and descriptions."""
        files = [content_identity(path) for path in self.archive.files]
        return combined_identity(files, **told_by_user(self.options))

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

    def _samples(self, wanted: Mapping[int, _Measure]) -> Iterator[Item]:
        host = self.metadata.label.host or "unknown"
        series = DeviceSeries(self.options.filesystem or host, host)
        tally = _Tally(self)
        stream = tally.samples(wanted)
        ahead = list(islice(stream, SAMPLES_LOOKED_AT))
        ticker = Ticker(grid_of({host: [one.time_us for one in ahead]}, self.options.interval_s))
        for one in chain(ahead, stream):
            if not is_asked_for(one.time_us, self.options):
                continue
            tick = ticker.tick(one.time_us, host)
            kept = tally.kept(one.devices)
            for device, counters in one.devices.items():
                if (shown := kept.get(device)) is not None:
                    series.add(shown, tick, one.time_us, counters)
            yield from series.take()
        yield from series.take(at_end=True)
        yield from tally.items()


class _Measure(NamedTuple):
    """A metric that is read, as one of our counters."""

    name: str
    metric: Metric
    worth: float


class _Sample(NamedTuple):
    """The counters of every device at one moment."""

    time_us: int
    devices: dict[str, dict[str, int]]


@dataclass(slots=True)
class _Tally:
    """Reads the volumes and remembers what there is to say in the end."""

    reading: _Reading
    damages: list[DamagedArchive] = field(default_factory=list)
    marks: int = 0
    impossible: int = 0  # values that are negative, no number or beyond any counter
    nameless: int = 0  # values of instances that no instance domain names
    partial: int = 0  # moments at which only some metrics were logged
    devices: dict[str, None] = field(default_factory=dict)
    choice: Choice = field(default_factory=lambda: Choice({}, {}))

    def kept(self, devices: Mapping[str, object]) -> dict[str, str]:
        """The devices to measure, of all that were seen."""
        if not self.devices.keys() >= devices.keys():
            self.devices |= dict.fromkeys(devices)
            self.choice = choose(devices_by_name(self.devices), self.reading.options.devices)
        return self.choice.kept

    def samples(self, wanted: Mapping[int, _Measure]) -> Iterator[_Sample]:
        """Samples with every metric that is logged together with the others."""
        assembly = _Assembly(frozenset(wanted))
        for values in self._values(wanted):
            if values.is_mark:
                self.marks += 1
            for whole in assembly.take(values):
                yield self._sample(whole, wanted)
        for whole in assembly.finish():
            yield self._sample(whole, wanted)
        self.partial = assembly.dropped

    def items(self) -> Iterator[Item]:
        """What was damaged, and what was left out by rule."""
        yield from (_problem(damage) for damage in self.damages)
        place = self.reading.place
        if self.impossible:
            yield Problem(place, None, f"{self.impossible} values that no counter can have: left out")
        if self.nameless:
            yield Problem(place, None, f"{self.nameless} values of instances that have no name: left out")
        if self.partial:
            yield Note(place, None, f"{self.partial} moments at which only some of the metrics were logged: left out")
        if self.marks:
            yield Note(place, None, f"{self.marks} marks: logging was interrupted, the interval across each is wide")
        yield from left_out_notes(place, self.choice.left_out)

    def _values(self, wanted: Mapping[int, _Measure]) -> Iterator[Values]:
        metrics = [one.metric for one in wanted.values()]
        for path in self.reading.archive.volumes:
            try:
                yield from read_values(path, metrics)
            except DamagedArchive as damage:
                self.damages.append(damage)
            except InputError as error:
                self.damages.append(DamagedArchive(path, 0, error.found))

    def _sample(self, values: Values, wanted: Mapping[int, _Measure]) -> _Sample:
        devices: dict[str, dict[str, int]] = {}
        for pmid, found in values.metrics.items():
            measure = wanted[pmid]
            names = self.reading.metadata.instances[measure.metric.domain].at(values.time_us)
            for instance, value in found.items():
                if instance not in names:
                    self.nameless += 1
                    continue
                counters = devices.setdefault(names[instance], {})
                if (counted := _scaled(value, measure.worth)) is None:
                    self.impossible += 1
                else:
                    counters[measure.name] = counted
        return _Sample(values.time_us, devices)


@dataclass(slots=True)
class _Assembly:
    """Puts records of one moment together, and leaves out moments at which a metric is missing.

    Differencing two samples needs the same counters in both. Metrics that are logged less often than others set the
    pace, unless they do not come within as many moments as are looked at: then those that come together go on alone.
    """

    wanted: frozenset[int]
    pending: Values | None = None
    waiting: deque[Values] = field(default_factory=deque)  # incomplete ones since the last complete one
    dropped: int = 0

    def take(self, values: Values) -> Iterator[Values]:
        """One record in, complete moments out."""
        if values.is_mark:
            yield from self._settle()
            return
        if self.pending is not None and self._belongs(values):
            self.pending.metrics.update(values.metrics)
            return
        yield from self._settle()
        self.pending = values

    def finish(self) -> Iterator[Values]:
        """The last moment; where no metric ever completed another, what there is."""
        yield from self._settle()
        if self.waiting:
            yield from self._go_on_without()

    def _belongs(self, values: Values) -> bool:
        assert self.pending is not None
        is_near = 0 <= values.time_us - self.pending.time_us < TOGETHER_US
        return is_near and not values.metrics.keys() & self.pending.metrics.keys()

    def _settle(self) -> Iterator[Values]:
        moment, self.pending = self.pending, None
        if moment is None:
            return
        if moment.metrics.keys() >= self.wanted:
            self.dropped += len(self.waiting)
            self.waiting.clear()
            yield _only(moment, self.wanted)
            return
        self.waiting.append(moment)
        if len(self.waiting) >= SAMPLES_LOOKED_AT:
            yield from self._go_on_without()

    def _go_on_without(self) -> Iterator[Values]:
        """Be content with the largest set of metrics that keeps coming together."""
        sets = Counter(frozenset(one.metrics) & self.wanted for one in self.waiting)
        self.wanted = max(sets, key=lambda one: (len(one) * sets[one], sorted(one)))
        waiting, self.waiting = list(self.waiting), deque()
        for one in waiting:
            if one.metrics.keys() >= self.wanted:
                yield _only(one, self.wanted)
            else:
                self.dropped += 1


def _only(values: Values, wanted: frozenset[int]) -> Values:
    return Values(values.time_us, {pmid: found for pmid, found in values.metrics.items() if pmid in wanted}, False)


def _measures(metadata: Metadata, place: str) -> tuple[dict[int, _Measure], list[Problem]]:
    """The metrics to read, and those whose description is not what their name promises."""
    chosen: dict[str, _Measure] = {}
    problems: list[Problem] = []
    for name, (measure, dimension, extra) in METRICS.items():
        metric = metadata.metrics.get(name)
        if metric is None or measure in chosen:
            continue
        is_scaled = dimension != TIME or metric.units.scale[1] < len(_TIME_SCALES_US)
        if metric.semantics != COUNTER or metric.units.dimension != dimension or not is_scaled:
            problems.append(Problem(place, None, f"{name} is no counter of that kind here: not read"))
            continue
        chosen[measure] = _Measure(measure, metric, _worth(metric, dimension) * extra)
    return {one.metric.pmid: one for one in chosen.values()}, problems


def _worth(metric: Metric, dimension: tuple[int, int, int]) -> float:
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
        found = archives_below(path)
        if not found:
            raise InputError(str(path), "no archive in this directory", "NAME.meta and NAME.0, NAME.1, …")
        return found
    return [find_archive(path)]


def _open(meta: Path, options: ReadOptions) -> _Reading:
    refuse_settings(options, "pcp", str(meta))
    return _Reading(find_archive(meta), Metadata.read(meta, METRICS.__contains__), options)


def _has_label(path: Path) -> bool:
    try:
        with opened(path) as stream:
            read_label(stream, path)
    except InputError:
        return False
    return True


def _problem(damage: DamagedArchive) -> Problem:
    return Problem(str(damage.path), None, f"byte {damage.offset}: {damage.reason}; what came before it is kept")
