"""One reading of this node's mounts, targets or jobs as values of PCP: by metric, then by instance."""

from __future__ import annotations

import time
import zlib
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from iolens.agent.exporter.jobs import JobRanking, Reader
from iolens.agent.exporter.reading import MetricReading
from iolens.records import CounterSet, Item, Problem, Row, Sample
from iolens.sources.lustre import lustre_client_proc, lustre_proc
from iolens.sources.lustre.parameters import CLIENT_LOCKS, IO_LATENCY, JOB_STATS, LLITE, MDC, OSC, Parameter
from iolens.sources.pcp.lustre_metrics import (
    CLIENT,
    GROUPS,
    JOB,
    JOB_SIZE_TEXT,
    JOB_TEXT,
    LISTED,
    METRICS,
    MOUNTS,
    NOW,
    TARGET,
    TEXT,
    WITHOUT_NAME,
    Bins,
    MetricGroup,
    groups_by_text,
    instance_name,
    mount_label,
)

# Numbers of instances -------------------------------------------------------------------------------------------------
# PCP's archives know an instance by its number, so it must be the same after every restart.
#
# A number is computed from the name and nothing is kept on disk: a list of all jobs ever seen would grow for years.

LARGEST: Final = 0x7FFFFFFF
MOST_REMEMBERED: Final = 100_000


@dataclass
class InstanceNumbers:
    """The numbers of one instance domain. Of two names with one number, which is rare, one takes the next."""

    _by_name: dict[str, int] = field(default_factory=dict)
    _taken: set[int] = field(default_factory=set)

    def of(self, name: str) -> int:
        """The number of an instance."""
        if name not in self._by_name:
            number = zlib.crc32(name.encode()) & LARGEST
            while number in self._taken:
                number = (number + 1) & LARGEST
            self._by_name[name] = number
            self._taken.add(number)
        return self._by_name[name]

    def forget_all_but(self, present: Collection[str]) -> None:
        """Forget the numbers of jobs that are gone, once there are very many."""
        if len(self._by_name) > MOST_REMEMBERED:
            self._by_name = {name: number for name, number in self._by_name.items() if name in present}
            self._taken = set(self._by_name.values())


# One reading of this node's mounts, targets or jobs as values of PCP --------------------------------------------------
# By metric, then by instance.
#
# Read by the same sources as everything else, so a new row format is mended there. Counters stay as Lustre shows them.

Values = dict[str, int]  # by instance

_BY_TEXT: Final = groups_by_text()
_NAMES: Final = {(metric.group.number, metric.leaf.key): metric.name for metric in METRICS.values()}
_TEXTS: Final = {group.cluster: group for group in GROUPS if group.table in (TEXT, JOB_TEXT)}
_MOUNTS: Final = next(group for group in GROUPS if group.table == MOUNTS)
_SIZE_TEXT: Final = next(group for group in GROUPS if group.table == JOB_SIZE_TEXT)
_LISTED: Final = next(group for group in GROUPS if group.table == LISTED)
_DIRECTIONS: Final = [
    [_NAMES[group.number, leaf.key] for leaf in group.leaves] for group in GROUPS if isinstance(group.shape, Bins)
]
_OF_A_TARGET: Final = frozenset({OSC, MDC, CLIENT_LOCKS})
_SERVICE: Final = "service"
_NOT_SERVED: Final = frozenset({JOB_STATS, IO_LATENCY})  # jobs apart; latency by size is in the store and nowhere else


@dataclass
class PcpReading:
    """One reading in the making."""

    cluster: int
    metrics: dict[str, Values] = field(default_factory=dict)
    problems: int = 0

    def put(self, group: MetricGroup, key: str, instance: str, value: int) -> bool:
        """One value; whether there is such a metric."""
        name = _NAMES.get((group.number, key))
        if name is not None:
            self.metrics.setdefault(name, {})[instance] = value
        return name is not None

    def put_set(self, table: str, text: str, heads: tuple[str, ...], target: str, counters: Mapping[str, int]) -> int:
        """The counters of one set; how many of them have a metric. One that has none is a problem."""
        groups = [(group, group.prefix.replace("*", target)) for group in _BY_TEXT.get((table, text), ())]
        served = sum(self._put_counter(groups, heads, counter, value) for counter, value in counters.items())
        self.problems += len(counters) - served
        return served

    def _put_counter(
        self, groups: Iterable[tuple[MetricGroup, str]], heads: tuple[str, ...], counter: str, value: int
    ) -> bool:
        for group, prefix in groups:
            divided = group.shape.split(counter[len(prefix) :]) if counter.startswith(prefix) else None
            if divided is not None:
                key, tail = divided
                return self.put(group, key, instance_name(*heads, *([tail] if tail else [])), value)
        return False

    def put_text(self, instance: str, served: int, counter_set: CounterSet, group: MetricGroup | None = None) -> None:
        """What there is to know about a set: how many counters are served, and when they began to count."""
        group = group or _TEXTS[self.cluster]
        self.put(group, "counters", instance, served)
        if counter_set.start_us is not None:
            self.put(group, "start_us", instance, counter_set.start_us)

    def finish(self) -> MetricReading[Values]:
        """What was read. Of a histogram's row that counted one way only, the other is zero."""
        for names in _DIRECTIONS:
            instances = {instance for name in names for instance in self.metrics.get(name, ())}
            for name in names if instances else ():
                values = self.metrics.setdefault(name, {})
                values.update(dict.fromkeys(instances - values.keys(), 0))
        return MetricReading(self.metrics, self.problems)


@dataclass
class MountPlaces:
    """Which mount of a file system is the first, the second, …: one that stays keeps its place."""

    places: dict[str, dict[str, int]] = field(default_factory=dict)  # by file system and mount

    def update(self, mounts: Mapping[str, set[str]]) -> None:
        """The mounts there are now."""
        for filesystem, there in mounts.items():
            kept = {mount: n for mount, n in self.places.get(filesystem, {}).items() if mount in there}
            free = (n for n in range(1, len(there) + len(kept) + 1) if n not in set(kept.values()))
            self.places[filesystem] = kept | dict(zip(sorted(there - kept.keys()), list(free)))  # noqa: B905
        for filesystem in self.places.keys() - mounts.keys():
            del self.places[filesystem]


@dataclass
class PcpClientMounts:
    """Reads the mounts of this node."""

    root: Path
    places: MountPlaces = field(default_factory=MountPlaces)

    def read(self) -> MetricReading[Values]:
        """One reading."""
        reading = PcpReading(CLIENT)
        reader = lustre_client_proc.live_reader(self.root)
        items = lustre_client_proc.read_with(reader, self.root, time.time_ns() // 1000)
        samples = list(_samples(items, reading))
        mounts: dict[str, set[str]] = {}
        for sample in samples:
            named = {name.partition("@")[2] for name in sample.sets} - {""}
            mounts.setdefault(sample.filesystem, set()).update(named)
        self.places.update(mounts)
        for sample in samples:
            self._take(sample, reading)
        for parameter, values in reader.now.items():
            self._take_now(parameter, values, reading)
        return reading.finish()

    def _take_now(self, parameter: Parameter, values: Mapping[str, int], reading: PcpReading) -> None:
        """What is true only now, such as RPCs in flight."""
        filesystem, target, mount = parameter.mount
        instance = mount_label(target, self.places.places.get(filesystem, {}).get(mount, 1))
        for group in _BY_TEXT[NOW, parameter.family]:
            for key, value in values.items():
                reading.put(group, key, instance, value)

    def _take(self, sample: Sample, reading: PcpReading) -> None:
        filesystem = sample.filesystem
        for name, counter_set in sample.sets.items():
            text, _, mount = name.partition("@")
            place = self.places.places[filesystem].get(mount, 1)
            pattern, target = _pattern(text)
            if pattern.endswith(IO_LATENCY):
                continue
            head = mount_label(filesystem if pattern == text else target, place)
            heads = (head,) if pattern != "*" else (filesystem, text)
            served = reading.put_set(sample.table, pattern, heads, target, counter_set.counters)
            label = mount_label(filesystem, place)
            reading.put_text(instance_name(label, sample.table, text), served, counter_set)
            if pattern != "*":
                reading.put(_MOUNTS, "mount", label, int(mount or "0", 16))
                if "page_bytes" in sample.labels:
                    reading.put(_MOUNTS, "page_bytes", label, int(sample.labels["page_bytes"]))


@dataclass
class ServerTargets:
    """Reads the targets of this server, but for their jobs."""

    root: Path
    filesystem: str | None = None
    read_items: Reader = lustre_proc.read_tree

    def read(self) -> MetricReading[Values]:
        """One reading."""
        reading = PcpReading(TARGET)
        items = self.read_items(self.root, time.time_ns() // 1000, self.filesystem, _NOT_SERVED)
        for sample in _samples(items, reading):
            self._take(sample, reading)
        return reading.finish()

    def _take(self, sample: Sample, reading: PcpReading) -> None:
        if set(sample.sets) != {""} and sample.table == "metadata_ops":
            return  # by client: the sum falls when a client goes
        is_service = sample.labels.get("target_kind") == _SERVICE
        heads = (sample.filesystem, sample.target) if is_service else (sample.target,)
        for name, counter_set in sample.sets.items():
            text = _SERVICE if is_service else name
            served = reading.put_set(sample.table, text, heads, sample.target, counter_set.counters)
            instance = instance_name("/".join(heads), sample.table, name or WITHOUT_NAME)
            reading.put_text(instance, served, counter_set)


@dataclass
class ServerJobs:
    """Reads job_stats, and serves the busiest jobs."""

    ranking: JobRanking

    def read(self) -> MetricReading[Values]:
        """One reading."""
        ranked = self.ranking.read()
        reading = PcpReading(JOB, problems=ranked.problems)
        for group, jobs in ranked.groups.items():
            for target, steady in jobs.samples:
                busiest = [job for job in ranked.busiest[group] if job in steady.sample.sets]
                for job in busiest:
                    counter_set = steady.sample.sets[job]
                    served = reading.put_set("job_io", "job", (target, job), target, counter_set.counters)
                    reading.put_text(instance_name(target, job), served, counter_set)
                listed = len(steady.sample.sets)
                reading.put(_LISTED, "listed", target, listed)
                reading.put(_LISTED, "left_out", target, listed - len(busiest))
        for sample in ranked.sizes:
            for job, counter_set in sample.sets.items():
                counted = {name: count for name, count in counter_set.counters.items() if count}  # as a reader has it
                served = reading.put_set(sample.table, "job", (sample.target, job), sample.target, counted)
                reading.put_text(instance_name(sample.target, job), served, counter_set, _SIZE_TEXT)
        return reading.finish()


def _samples(items: Iterator[Item], reading: PcpReading) -> Iterator[Sample]:
    """The samples; rows are taken as they come, and problems counted."""
    for item in items:
        if isinstance(item, Sample):
            yield item
        elif isinstance(item, Row):
            _take_row(item, reading)
        elif isinstance(item, Problem):
            reading.problems += 1


def _take_row(row: Row, reading: PcpReading) -> None:
    """A reading of a target: its capacity or state. What has no metric, such as a text, is not served."""
    for group in _BY_TEXT.get((row.table, ""), ()):
        for key, value in row.values.items():
            if isinstance(value, int) and not isinstance(value, bool):
                reading.put(group, key, instance_name(str(row.values["target"])), value)


def _pattern(text: str) -> tuple[str, str]:
    """How a client's text is called with `*` for its target, and the target."""
    family, _, rest = text.partition(".")
    if family == LLITE:
        return text, ""
    target, dot, leaf = rest.partition(".")
    return (f"{family}.*{dot}{leaf}", target) if family in _OF_A_TARGET else ("*", text)
