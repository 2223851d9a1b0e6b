"""Lustre's counters in archives of Performance Co-Pilot, as `iolens export pcp` served them: back to raw samples.

What comes out is what the files would have given at the time of the record: the same tables, counter sets and names.
A set of which not all counters were logged is not complete, so that one that joins later counts from there on only.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain, islice
from typing import Final, NamedTuple

from iolens.records import CounterSet, Item, Note, Problem, Row, Sample
from iolens.schema import LARGEST, TABLES
from iolens.sources.devices.block_devices import is_asked_for
from iolens.sources.lustre.parameters import USUAL
from iolens.sources.lustre.server import GivenNames
from iolens.sources.pcp import lustre_metrics
from iolens.sources.pcp.lustre_metrics import (
    CLIENT,
    COLLECTORS,
    JOB_SIZE_TEXT,
    JOB_TEXT,
    LISTED,
    METRICS,
    MOUNTS,
    NOW,
    OF_MOUNT_TARGET,
    OF_SERVER,
    OF_SERVICE,
    TARGET,
    TEXT,
    WITHOUT_NAME,
    LustreMetric,
    instance_parts,
    mount_label,
    named_mount,
)
from iolens.sources.pcp.pcp_archive import Archive, ArchiveMetadata, PcpMetric, Values
from iolens.sources.pcp.pcp_readings import VolumeReader
from iolens.sources.reading.options import ReadOptions
from iolens.sources.reading.served_targets import ServedTargets, is_served
from iolens.sources.reading.ticks import SAMPLES_LOOKED_AT, Ticker, grid_of

READINGS: Final = frozenset({"target_capacity", "target_state"})  # rows, not counters
BEFORE_ALL: Final = 0  # began to count before any sample: nothing tells when

Measures = Mapping[int, tuple[PcpMetric, LustreMetric]]  # by the metric's number


def measures(metadata: ArchiveMetadata, place: str) -> tuple[Measures, list[Problem]]:
    """The metrics to read, and those whose description is not what `iolens export pcp` gives them."""
    chosen: dict[int, tuple[PcpMetric, LustreMetric]] = {}
    problems: list[Problem] = []
    for name, metric in metadata.metrics.items():
        known = METRICS.get(name)
        if known is None or known.group.table in (COLLECTORS, NOW):
            continue
        if (metric.semantics, tuple(metric.units)) != (known.leaf.semantics, tuple(known.leaf.units)):
            problems.append(Problem(place, None, f"{name} is not what iolens export pcp serves: not read"))
        else:
            chosen[metric.pmid] = (metric, known)
    return chosen, problems


def samples(archive: Archive, metadata: ArchiveMetadata, options: ReadOptions, wanted: Measures) -> Iterator[Item]:
    """Every sample of every target and mount, and what there is to say about them."""
    host = metadata.label.host or "unknown"
    volumes = VolumeReader(archive, metadata)
    reader = _ArchiveReader(metadata, host, GivenNames(options.filesystem), wanted, volumes.place)
    stream = volumes.merged([metric for metric, _ in wanted.values()])
    ahead = list(islice(stream, SAMPLES_LOOKED_AT))
    ticker = Ticker(grid_of({host: [values.time_us for values in ahead]}, options.interval_s))
    for values in chain(ahead, stream):
        if is_asked_for(values.time_us, options):
            yield from reader.items(values, ticker.tick(values.time_us, host))
    yield from volumes.problems()
    yield from reader.problems()
    yield from volumes.repeated_notes()
    yield from volumes.mark_notes()


class _SampleKey(NamedTuple):
    """Whose counters a sample has."""

    table: str
    filesystem: str
    subject: str  # a target, or a service of a server; empty: the node
    kind: str = ""


class _SetName(NamedTuple):
    """The counter set of a sample: a text, histogram or job, and the mount as instances call it."""

    text: str
    mount: str = ""


class _Counter(NamedTuple):
    """Where a value belongs."""

    series: _SampleKey
    set_name: _SetName
    name: str


@dataclass
class _Record:
    """Everything that was logged at one time."""

    sets: dict[_SampleKey, dict[_SetName, dict[str, int]]] = field(default_factory=dict)
    texts: dict[str, dict[tuple[_SampleKey, _SetName], int]] = field(default_factory=dict)  # by key: counters, start_us
    mounts: dict[str, dict[str, int]] = field(default_factory=dict)  # by key and mount
    listed: dict[str, dict[_SampleKey, int]] = field(default_factory=dict)  # jobs by key

    def counter_set(self, series: _SampleKey, name: _SetName) -> CounterSet:
        """One set, and whether all of it is here."""
        counters = self.sets[series][name]
        is_whole = self.texts.get("counters", {}).get((series, name)) == len(counters)
        return CounterSet(counters, self.texts.get("start_us", {}).get((series, name)), is_whole)

    def has_all_jobs(self, series: _SampleKey) -> bool:
        """Whether every job that a target lists was served."""
        return self.listed.get("left_out", {}).get(series._replace(table="job_io")) == 0


@dataclass
class _ArchiveReader:
    """Turns one record after the other into items."""

    metadata: ArchiveMetadata
    node: str
    naming: GivenNames
    wanted: Measures
    place: str
    places: dict[tuple[str, str], _Counter | None] = field(default_factory=dict)  # by metric and instance
    whole: dict[tuple[_SampleKey, _SetName], bool] = field(default_factory=dict)  # by set, in its last record
    jobs: dict[_SampleKey, set[str]] = field(default_factory=dict)  # of the last record
    all_jobs: dict[_SampleKey, bool] = field(default_factory=dict)  # whether that record had all of them
    refused: Counter[str] = field(default_factory=Counter)
    notes: dict[str, None] = field(default_factory=dict)
    served: ServedTargets = field(init=False)

    def __post_init__(self) -> None:
        self.served = ServedTargets(self.node)

    def items(self, values: Values, tick_us: int) -> Iterator[Item]:
        """The samples and rows of one record."""
        record = self._record(values)
        targets: set[tuple[str, str]] = set()
        for series, named in record.sets.items():
            if series.table in READINGS:
                yield self._row(series, named[_SetName("")], tick_us)
            else:
                yield (sample := self._sample(record, series, tick_us, values.time_us))
                targets |= {(sample.filesystem, sample.target)} if is_served(sample) else set()
        if targets and self.metadata.label.host:
            yield from self.served.rows(tick_us, targets)

    def problems(self) -> Iterator[Problem]:
        """What was left out, and why."""
        for reason, count in self.refused.items():
            yield Problem(self.place, None, f"{count} values left out: {reason}")
        yield from (Note(self.place, None, note) for note in self.notes)

    def _record(self, values: Values) -> _Record:
        record = _Record()
        for pmid, numbers in values.metrics.items():
            metric, known = self.wanted[pmid]
            names = self.metadata.instances[metric.domain]
            for instance, value in numbers.items():
                if (name := names.name_at(instance, values.time_us)) is None:
                    self.refused["instances that have no name"] += 1
                elif not 0 <= value <= (LARGEST if known.group.table != MOUNTS else 2 * LARGEST + 1):
                    self.refused["what no counter can have"] += 1
                else:
                    self._take(record, known, name, int(value))
        return record

    def _take(self, record: _Record, metric: LustreMetric, instance: str, value: int) -> None:
        table, key = metric.group.table, metric.leaf.key
        if table == MOUNTS:
            record.mounts.setdefault(key, {})[instance] = value
            return
        if (metric.name, instance) not in self.places:
            self.places[metric.name, instance] = self._place(metric, instance)
        place = self.places[metric.name, instance]
        if place is None or (value == 0 and metric.group.leaves_out_zero):
            return
        if table in (TEXT, JOB_TEXT, JOB_SIZE_TEXT):
            record.texts.setdefault(key, {})[place.series, place.set_name] = value
            record.sets.setdefault(place.series, {}).setdefault(place.set_name, {})
        elif table == LISTED:
            record.listed.setdefault(key, {})[place.series] = value
            record.sets.setdefault(place.series, {})
        else:
            record.sets.setdefault(place.series, {}).setdefault(place.set_name, {})[place.name] = value

    def _place(self, metric: LustreMetric, instance: str) -> _Counter | None:
        """What an instance names; None, and counted: nothing of ours."""
        parts = instance_parts(instance, metric.group)
        place = None if parts is None else _counter(metric, parts, self.naming)
        if not isinstance(place, _Counter):
            self.refused[place or f"{instance!r} names no instance of {metric.name}"] += 1
            return None
        return place

    def _row(self, series: _SampleKey, values: Mapping[str, int], tick_us: int) -> Row:
        unknown = {column.name: None for column in TABLES[series.table].columns if column.name not in _ROW_HEAD}
        head = {"time": tick_us, "filesystem": series.filesystem, "target": series.subject, "target_kind": series.kind}
        return Row(series.table, {**head, **unknown, **values})

    def _sample(self, record: _Record, series: _SampleKey, tick_us: int, time_us: int) -> Sample:
        sets = {
            self._set_name(record, series, name): self._counter_set(record, series, name)
            for name in record.sets[series]
        }
        labels = {"target_kind": series.kind} if series.kind else {}
        if series.table in _OF_JOBS.values():
            sets = self._jobs(record, series, sets)
        if series.table == "client_rpcs":
            labels = {"page_bytes": str(self._page_bytes(record, series.filesystem))}
        if not all(counter_set.complete for counter_set in sets.values()):
            self.notes[
                f"not all counters of {series.table} were logged: the first value of one only begins its series"
            ] = None
        return Sample(series.table, series.filesystem, series.subject or self.node, tick_us, time_us, sets, labels)

    def _counter_set(self, record: _Record, series: _SampleKey, name: _SetName) -> CounterSet:
        """A counter that was not here before had not counted only if all that had were here, then and now."""
        now = record.counter_set(series, name)
        was_whole = self.whole.get((series, name), True)
        self.whole[series, name] = now.complete
        return now._replace(complete=now.complete and was_whole)

    def _set_name(self, record: _Record, series: _SampleKey, name: _SetName) -> str:
        """As the files call it: a text of a mount ends with the mount's number, one of a node with none."""
        if not TABLES[series.table].form.sets_by_mount:
            return name.text
        number = record.mounts.get("mount", {}).get(name.mount)
        return f"{name.text}@{name.mount if number is None else f'{number:016x}' if number else ''}"

    def _page_bytes(self, record: _Record, filesystem: str) -> int:
        known = record.mounts.get("page_bytes", {}).get(filesystem)
        if known is None:
            self.notes[f"iolens.client.page_size was not logged: {USUAL} bytes assumed for {filesystem}"] = None
        return known or USUAL

    def _jobs(self, record: _Record, series: _SampleKey, sets: Mapping[str, CounterSet]) -> dict[str, CounterSet]:
        """Jobs of a target. One that is new here began since only if all jobs were here before."""
        had_all = self.all_jobs.get(series, record.has_all_jobs(series))
        known = sets.keys() if had_all else self.jobs.get(series, set())
        jobs = {
            job: now._replace(start_us=BEFORE_ALL) if job not in known and now.start_us is None else now
            for job, now in sets.items()
        }
        self.jobs[series], self.all_jobs[series] = set(sets), record.has_all_jobs(series)
        return jobs


_OF_JOBS: Final = {LISTED: "job_io", JOB_TEXT: "job_io", JOB_SIZE_TEXT: "job_sizes"}  # tables that others tell of
_ROW_HEAD: Final = frozenset({"time", "date", "filesystem", "source", "target", "target_kind"})


def _counter(metric: LustreMetric, parts: tuple[str, ...], naming: GivenNames) -> _Counter | str:
    """Where the values of an instance belong, or what is wrong with its name."""
    group = metric.group
    if group.table == TEXT:
        return _text_counter(metric, parts, naming)
    name = group.shape.join(metric.leaf.key, parts[-1])
    if group.cluster == CLIENT:
        text, target, filesystem, mount = _client_text(metric, parts)
        counter = group.prefix.replace("*", target) + name
        return _Counter(_SampleKey(group.table, filesystem, ""), _SetName(text, mount), counter)
    if group.head is OF_SERVER:
        return _Counter(_SampleKey(group.table, parts[0], parts[1], "service"), _SetName(""), name)
    table = _OF_JOBS.get(group.table, group.table)
    series = _target_series(table, parts[0], naming)
    if isinstance(series, str):
        return series
    if group.table == LISTED:
        return _Counter(series, _SetName(""), name)
    is_job = group.head is lustre_metrics.OF_JOB
    return _Counter(series, _SetName(parts[1] if is_job else group.text), name)


def _client_text(metric: LustreMetric, parts: tuple[str, ...]) -> tuple[str, str, str, str]:
    """The text, the target, the file system and the mount that an instance names."""
    group = metric.group
    if group.head is OF_SERVICE:
        return parts[1], parts[1], parts[0], ""
    name, place = named_mount(parts[0])
    if group.head is OF_MOUNT_TARGET:
        filesystem = name.rpartition("-")[0]
        return group.text.replace("*", name), name, filesystem, mount_label(filesystem, place)
    return group.text, "", name, parts[0]


def _text_counter(metric: LustreMetric, parts: tuple[str, ...], naming: GivenNames) -> _Counter | str:
    head, table, text = parts[:3]
    if table not in TABLES:
        return f"{table!r} is no table"
    if metric.group.cluster == TARGET:
        filesystem, slash, service = head.partition("/")
        series = _SampleKey(table, filesystem, service, "service") if slash else _target_series(table, head, naming)
        name = _SetName("" if text == WITHOUT_NAME else text)
        return series if isinstance(series, str) else _Counter(series, name, "")
    mount = head if "." in text else ""
    return _Counter(_SampleKey(table, named_mount(head)[0], ""), _SetName(text, mount), "")


def _target_series(table: str, name: str, naming: GivenNames) -> _SampleKey | str:
    target = naming.find(name, ())
    if isinstance(target, str):
        return target
    kind = target.kind if any(column.name == "target_kind" for column in TABLES[table].columns) else ""
    return _SampleKey(table, target.filesystem, target.name, kind)
