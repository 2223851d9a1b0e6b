"""Documents of collectd: as Elasticsearch stores them (hits, pages, one per line) or as `write_http` posts them.

Devices become `target_io` (rates times the interval, or raw counters), processor and memory `host_load`. collectd knows
no file system: the user names it.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from iolens.config import DeviceRule
from iolens.errors import InputError
from iolens.records import Item, Note, Problem, Rows, Samples
from iolens.schema import LARGEST
from iolens.sources.devices.block_devices import (
    KIND,
    TABLE,
    choose,
    devices_by_name,
    left_out_notes,
    refuse_settings,
    target_name,
)
from iolens.sources.reading.batches import within
from iolens.sources.reading.bounded_input import unpacked
from iolens.sources.reading.captures import FileSource, refuse_empty
from iolens.sources.reading.json_stream import JsonDocument, documents
from iolens.sources.reading.options import ReadOptions
from iolens.sources.reading.parsed_numbers import number_in_json, shown
from iolens.sources.reading.saved_text import needed_filesystem, supplied_identity
from iolens.sources.reading.ticks import round_to
from iolens.units import SECOND_US, epoch_us

EARLIEST_US, LATEST_US = 0, 4_102_444_800 * SECOND_US  # 1970 to 2100
SETTINGS: Final = ("values",)
RATES, COUNTERS = "rates", "counters"
LONGEST_INTERVAL_S: Final = 86_400 * 366
RESETS_EXPECTED: Final = 0.01  # counters that fall in more steps than this are none
MOST_IDLE: Final = 200.0  # per cent of one processor: a tick that came late, and not more
MEMORY_STATES: Final = frozenset({"used", "free", "buffered", "cached"})

# Type and value of the disk plugin → column, and what one unit of it is in the column's unit.
DISK_COLUMNS: Final[Mapping[tuple[str, str], tuple[str, int]]] = {
    ("disk_octets", "read"): ("read_bytes", 1),
    ("disk_octets", "write"): ("write_bytes", 1),
    ("disk_ops", "read"): ("read_ops", 1),
    ("disk_ops", "write"): ("write_ops", 1),
    ("disk_io_time", "io_time"): ("busy_us", 1000),
    ("disk_io_time", "weighted_io_time"): ("queue_us", 1000),
}

_HEAD: Final = re.compile(rb"\s*+[\[{]")
_PLUGIN: Final = re.compile(rb'"plugin"\s*+:')
_KINDS: Final = re.compile(rb'"(?:collectd_type|dstypes)"\s*+:')

Times = NDArray[np.int64]
Numbers = NDArray[np.float64]


class MalformedDocument(ValueError):
    """A document that lacks what every document of collectd has."""


class CollectdDocument(NamedTuple):
    """One document, whichever way it is written."""

    host: str
    plugin: str
    instance: str
    kind: str
    kind_instance: str
    time_us: int
    interval_us: int | None
    values: Mapping[str, float | int]
    is_counter: bool  # the document says its values are counters, as they are unless collectd stores rates


def observe(content: Mapping[str, Any]) -> Iterator[CollectdDocument]:
    """The observations in one JSON object: a hit, a response with hits, or a value list of collectd itself."""
    hits = content.get("hits")
    if isinstance(hits, Mapping):
        listed = hits.get("hits")
        for hit in listed if isinstance(listed, list) else ():
            if not isinstance(hit, Mapping) or isinstance(hit.get("hits"), Mapping):
                raise MalformedDocument("a hit that is no document of collectd")
            yield from observe(hit)
        return
    source = content.get("_source", content)
    if not isinstance(source, Mapping) or not isinstance(source.get("plugin"), str):
        raise MalformedDocument("no document of collectd: it names no plugin")
    yield _posted(source) if "dsnames" in source else _stored(source)


def _stored(source: Mapping[str, Any]) -> CollectdDocument:
    """As Elasticsearch has it: one field per value."""
    kind = source.get("collectd_type", source.get("type"))
    return _observation(source, kind, _iso_us(source.get("@timestamp")), _numbers(source.items()), is_counter=False)


def _posted(source: Mapping[str, Any]) -> CollectdDocument:
    """As collectd posts it: names and values side by side; null where it has none."""
    names, values = source.get("dsnames"), source.get("values")
    if not isinstance(names, list) or not isinstance(values, list) or len(names) != len(values):
        raise MalformedDocument("dsnames and values do not match")
    seconds = number_in_json(source.get("time"), largest=LATEST_US / SECOND_US)
    time_us = None if seconds is None else round(seconds * SECOND_US)
    known = _numbers(zip(map(str, names), values, strict=True))
    types = source.get("dstypes", [])
    is_counter = isinstance(types, list) and any(item in ("counter", "derive") for item in types)
    return _observation(source, source.get("type"), time_us, known, is_counter=is_counter)


def _observation(
    source: Mapping[str, Any], kind: object, time_us: int | None, values: Mapping[str, float], *, is_counter: bool
) -> CollectdDocument:
    host = source.get("hostname", source.get("host"))
    if isinstance(host, Mapping):
        host = host.get("hostname", host.get("name"))
    if not isinstance(host, str) or not host or not isinstance(kind, str):
        raise MalformedDocument("no host or no type")
    if time_us is None or not EARLIEST_US < time_us < LATEST_US:
        raise MalformedDocument(f"time {shown(str(source.get('@timestamp', source.get('time'))))} not understood")
    interval = _number(source.get("interval"))
    return CollectdDocument(
        host,
        str(source["plugin"]),
        str(source.get("plugin_instance") or ""),
        kind,
        str(source.get("type_instance") or ""),
        time_us,
        round(interval * SECOND_US) if interval is not None and 0 < interval < LONGEST_INTERVAL_S else None,
        values,
        is_counter,
    )


def _number(value: object) -> float | int | None:
    """A number that a column can hold; None for anything else, NaN included."""
    return number_in_json(value, least=-LARGEST)


def _numbers(pairs: Iterable[tuple[str, object]]) -> dict[str, float | int]:
    return {name: number for name, value in pairs if (number := _number(value)) is not None}


def _iso_us(text: object) -> int | None:
    if not isinstance(text, str):
        return None
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        return None
    return epoch_us(time if time.tzinfo is not None else time.replace(tzinfo=UTC))  # Elasticsearch keeps UTC


class Collectd(FileSource):
    """Documents of collectd."""

    name = "collectd"
    summary = "JSON documents of collectd, from Elasticsearch or write_http: disks, processors, memory; plain or gzip"

    def recognises(self, path: Path, head: bytes) -> bool:
        """Whether it begins as JSON with documents that name a plugin and a type of collectd."""
        text = unpacked(head)
        return bool(_HEAD.match(text) and _PLUGIN.search(text) and _KINDS.search(text))

    def open(self, path: Path, options: ReadOptions) -> _Dump:
        """The file, if it can be read."""
        place = str(path)
        refuse_settings(options, "collectd", place, SETTINGS)
        values = options.settings.get("values")
        if values not in (None, RATES, COUNTERS):
            raise InputError(place, f"sources.collectd.values = {values!r}", f"{RATES} or {COUNTERS}")
        refuse_empty(path, "JSON documents of collectd")
        filesystem = needed_filesystem(options, place)
        interval = round(options.interval_s * SECOND_US) if options.interval_s else None
        said = {"filesystem": filesystem, "interval": interval, "values": values}
        said |= {"since": options.since, "until": options.until}
        devices = options.devices if options.devices != DeviceRule() else None
        return _Dump(path, filesystem, interval, values, options, supplied_identity(path, **said, devices=devices))


SOURCE: Final = Collectd()


@dataclass(frozen=True, slots=True)
class _Dump:
    """One file and what the user said about it."""

    path: Path
    filesystem: str
    interval_us: int | None
    values: str | None  # rates or counters; None: to be found out
    options: ReadOptions
    identity: str

    def items(self) -> Iterator[Item]:
        return within(self._all(), self.options)

    def _all(self) -> Iterator[Item]:
        reader = _DocumentReader(self)
        for document in documents(self.path):
            yield from [document] if isinstance(document, Problem) else reader.take(document)
        yield from reader.rows()


@dataclass(slots=True)
class _Column:
    """One value of one device or host over time, in the order of the documents."""

    time_us: array[int] = field(default_factory=lambda: array("q"))
    values: array[float] = field(default_factory=lambda: array("d"))
    whole: array[int] = field(default_factory=lambda: array("q"))  # the same, exact, while all are whole

    def add(self, time_us: int, value: float) -> None:
        self.time_us.append(time_us)
        self.values.append(value)
        if len(self.whole) == len(self.values) - 1 and value == int(value):
            self.whole.append(int(value))

    @property
    def is_whole(self) -> bool:
        return len(self.whole) == len(self.values)

    def sorted(self) -> tuple[Times, Numbers | Times]:
        """By time."""
        times = np.array(self.time_us, np.int64)
        order = np.argsort(times, kind="stable")
        values: Numbers | Times = np.array(self.whole, np.int64) if self.is_whole else np.array(self.values)
        return times[order], values[order]


class _DocumentReader:
    """Gathers documents, which come in any order, and makes rows of them at the end."""

    def __init__(self, dump: _Dump) -> None:
        self.dump, self.place = dump, str(dump.path)
        self.disks: dict[tuple[str, str], dict[str, _Column]] = {}  # by host and device, then by column
        self.idle: dict[str, _Column] = {}  # by host, of all its processors
        self.memory: dict[str, dict[str, _Column]] = {}  # by host and state
        self.intervals: dict[int, int] = {}
        self.noted: set[str] = set()
        self.documents = 0
        self.say_counter = False

    def take(self, document: JsonDocument) -> Iterator[Item]:
        try:
            for collectd_document in observe(document.content):
                self.documents += 1
                yield from self._take(collectd_document, document.line)
        except MalformedDocument as error:
            yield Problem(self.place, document.line, str(error))

    def _take(self, collectd_document: CollectdDocument, line: int) -> Iterator[Item]:
        if collectd_document.interval_us is not None:
            self.intervals[collectd_document.interval_us] = self.intervals.get(collectd_document.interval_us, 0) + 1
        kept = {"disk": self._disk, "cpu": self._cpu, "memory": self._memory}.get(collectd_document.plugin)
        if kept is None or not kept(collectd_document):
            what = f"{collectd_document.plugin} {collectd_document.kind}" + (
                f" {collectd_document.kind_instance}" if collectd_document.plugin in ("cpu", "memory") else ""
            )
            if what not in self.noted:
                self.noted.add(what)
                yield Note(self.place, line, f"documents of {shown(what)} are not among those kept")

    def _disk(self, collectd_document: CollectdDocument) -> bool:
        has_rows = False
        for name, value in collectd_document.values.items():
            place = DISK_COLUMNS.get((collectd_document.kind, name))
            if place is not None and value >= 0:
                columns = self.disks.setdefault((collectd_document.host, collectd_document.instance), {})
                if value * place[1] > LARGEST:
                    raise MalformedDocument(f"{name} of {shown(collectd_document.instance)} is out of range")
                columns.setdefault(place[0], _Column()).add(collectd_document.time_us, value * place[1])
                self.say_counter = self.say_counter or collectd_document.is_counter
                has_rows = True
        return has_rows

    def _cpu(self, collectd_document: CollectdDocument) -> bool:
        if (
            collectd_document.kind != "percent"
            or collectd_document.kind_instance != "idle"
            or "value" not in collectd_document.values
        ):
            return False
        if not 0 <= collectd_document.values["value"] <= MOST_IDLE:
            raise MalformedDocument(f"{collectd_document.values['value']:g} % of a processor idle")
        self.idle.setdefault(collectd_document.host, _Column()).add(
            collectd_document.time_us, collectd_document.values["value"]
        )
        return True

    def _memory(self, collectd_document: CollectdDocument) -> bool:
        if collectd_document.kind != "memory" or "value" not in collectd_document.values:
            return False
        if collectd_document.values["value"] < 0:
            raise MalformedDocument(f"memory {shown(collectd_document.kind_instance)} is negative")
        states = self.memory.setdefault(collectd_document.host, {})
        states.setdefault(collectd_document.kind_instance, _Column()).add(
            collectd_document.time_us, collectd_document.values["value"]
        )
        return True

    def rows(self) -> Iterator[Item]:
        if not self.documents:
            yield Problem(self.place, None, "no document of collectd in it")
            return
        interval = self.dump.interval_us or self._interval()
        yield from self._device_rows(interval)
        yield from self._load_rows(interval or SECOND_US)

    def _interval(self) -> int | None:
        """What the documents say, else the spacing that occurs most within a series, in whole seconds."""
        if self.intervals:
            return max(self.intervals, key=lambda value: self.intervals[value])
        spacings: list[Times] = [
            np.diff(np.unique(np.array(column.time_us, np.int64))).astype(np.int64)
            for columns in self.disks.values()
            for column in columns.values()
        ]
        together = np.concatenate(spacings) if spacings else np.array([], np.int64)
        seconds = np.floor_divide(together + SECOND_US // 2, SECOND_US)
        values, counts = np.unique(seconds[seconds > 0], return_counts=True)
        return int(values[np.argmax(counts)]) * SECOND_US if values.size else None

    def _device_rows(self, interval: int | None) -> Iterator[Item]:
        if not self.disks:
            return
        kept, left_out = self._choice()
        yield from left_out_notes(self.place, left_out)
        counters = self._are_counters()
        if not counters and interval is None:
            count = sum(len(column.values) for columns in self.disks.values() for column in columns.values())
            reason = f"{count} rates of disks, and nothing tells the interval between them: supply it with --interval"
            yield Problem(self.place, None, reason)
            return
        origins = self._origins()
        for (host, device), columns in sorted(self.disks.items()):
            if (host, device) not in kept:
                continue
            series = _Ticked.of(columns, _Grid(origins[host], interval or SECOND_US))
            if series.left_out:
                reason = f"{host}:{device}: {series.left_out} values for a tick that has another already: left out"
                yield Problem(self.place, None, reason)
            target = target_name(host, kept[host, device])
            if counters:
                yield series.samples(self.dump.filesystem, target)
            else:
                rows, refused = series.rows(self.dump.filesystem, target, interval or SECOND_US)
                if refused:
                    yield Problem(self.place, None, f"{shown(target)}: {refused} rates are out of range: left out")
                yield rows

    def _choice(self) -> tuple[dict[tuple[str, str], str], dict[str, str]]:
        """Devices that are measured and why others are not, by the rule that holds for all block devices."""
        hosts: dict[str, list[str]] = {}
        for host, device in self.disks:
            hosts.setdefault(host, []).append(device)
        kept: dict[tuple[str, str], str] = {}
        left_out: dict[str, str] = {}
        for host, names in hosts.items():
            choice = choose(devices_by_name(names), self.dump.options.devices)
            kept |= {(host, device): name for device, name in choice.kept.items()}
            left_out |= {target_name(host, device): why for device, why in choice.left_out.items()}
        return kept, left_out

    def _are_counters(self) -> bool:
        """Whether values are cumulative: whole numbers that hardly ever fall."""
        if self.dump.values is not None:
            return self.dump.values == COUNTERS
        columns = [column for columns in self.disks.values() for column in columns.values()]
        if not all(column.is_whole for column in columns):
            return False
        steps = np.concatenate([np.diff(column.sorted()[1]) for column in columns])
        fallen, risen = int((steps < 0).sum()), int((steps > 0).sum())
        if not fallen and not risen:
            return self.say_counter
        return fallen <= RESETS_EXPECTED * (fallen + risen)

    def _origins(self) -> dict[str, int]:
        """The first time of each host: its ticks are counted from there, so that jitter cannot move them."""
        origins: dict[str, int] = {}
        for (host, _), columns in self.disks.items():
            first = min(min(column.time_us) for column in columns.values())
            origins[host] = min(first, origins.get(host, first))
        return origins

    def _load_rows(self, interval: int) -> Iterator[Item]:
        loads: dict[tuple[str, int], dict[str, float]] = {}
        for host, column in self.idle.items():
            times, values = column.sorted()
            ticks = _Grid(int(times[0]), interval).ticks(times)
            result, which = np.unique(ticks, return_inverse=True)
            means = np.bincount(which, values) / np.bincount(which)  # a little above 100 where the kernel came late
            for tick, idle in zip(result.tolist(), means.tolist(), strict=True):
                loads.setdefault((host, tick), {})["cpu_pct"] = min(max(100 - idle, 0.0), 100.0)
        for host, states in self.memory.items():
            for tick, percent in _memory_pct(states, interval).items():
                loads.setdefault((host, tick), {})["memory_pct"] = percent
        if loads:
            keys = sorted(loads)
            columns: dict[str, object] = {
                "time": [tick for _, tick in keys],
                "filesystem": self.dump.filesystem,
                "host": [host for host, _ in keys],
                **{name: [loads[key].get(name) for key in keys] for name in ("cpu_pct", "memory_pct")},
            }
            yield Rows("host_load", columns, len(keys))


def _memory_pct(states: Mapping[str, _Column], interval: int) -> dict[int, float]:
    """Memory that is not free, at the ticks for which all states are known that make up the whole."""
    if not states.keys() >= MEMORY_STATES:
        return {}
    origin = min(min(column.time_us) for column in states.values())
    reported: dict[int, dict[str, float]] = {}
    for state, column in states.items():
        times, values = column.sorted()
        for tick, value in zip(_Grid(origin, interval).ticks(times), values, strict=True):
            reported.setdefault(int(tick), {})[state] = float(value)
    return {
        tick: 100 * (1 - known["free"] / sum(known.values()))
        for tick, known in reported.items()
        if known.keys() == states.keys() and sum(known.values()) > 0
    }


class _Grid(NamedTuple):
    """Ticks of one host, counted from its first time."""

    origin_us: int
    interval_us: int

    def ticks(self, time_us: Times) -> Times:
        step = self.interval_us
        values: Times = round_to(self.origin_us, step) + (2 * (time_us - self.origin_us) + step) // (2 * step) * step
        return values


@dataclass(frozen=True, slots=True)
class _Ticked:
    """Columns of one device on common ticks; masked where a column has no value."""

    tick_us: Times
    snapshot_us: Times
    columns: Mapping[str, np.ma.MaskedArray[Any, Any]]
    left_out: int

    @classmethod
    def of(cls, columns: Mapping[str, _Column], grid: _Grid) -> _Ticked:
        """Put each column on its ticks; of several values for a tick the first counts, and others are reported."""
        parts = {name: column.sorted() for name, column in columns.items()}
        ticks = {name: grid.ticks(times) for name, (times, _) in parts.items()}
        together = np.unique(np.concatenate(list(ticks.values())))
        snapshot = np.full(len(together), LARGEST, np.int64)
        merged: dict[str, np.ma.MaskedArray[Any, Any]] = {}
        left_out = 0
        for name, (times, values) in parts.items():
            result, first, which = np.unique(ticks[name], return_index=True, return_inverse=True)
            left_out += int((values != values[first][which]).sum())
            places = np.searchsorted(together, result)
            column, unknown = np.zeros(len(together), values.dtype), np.ones(len(together), bool)
            column[places], unknown[places] = values[first], False
            merged[name] = np.ma.MaskedArray(column, unknown)
            snapshot[places] = np.minimum(snapshot[places], times[first])
        return cls(together, snapshot, merged, left_out)

    def samples(self, filesystem: str, target: str) -> Samples:
        """As raw counters."""
        return Samples(TABLE, filesystem, target, self.tick_us, self.snapshot_us, dict(self.columns), KIND)

    def rows(self, filesystem: str, target: str, interval: int) -> tuple[Rows, int]:
        """As rates over the interval that ends at each tick, and how many are more than a column holds."""
        seconds = interval / SECOND_US
        moved = {name: _counts(column, seconds) for name, column in self.columns.items()}
        common = {"filesystem": filesystem, "target": target, **KIND}
        times = {"time": self.tick_us, "start": self.tick_us - interval, "duration_s": seconds}
        refused = sum(
            int((values.mask & ~np.ma.getmaskarray(self.columns[name])).sum()) for name, values in moved.items()
        )
        return Rows(TABLE, {**times, **common, **moved}, len(self.tick_us)), refused


def _counts(rates: np.ma.MaskedArray[Any, Any], seconds: float) -> np.ma.MaskedArray[Any, Any]:
    """Rates times the interval, whole; what is more than a column holds is not known."""
    counts = rates.filled(0) * seconds
    unknown = np.ma.getmaskarray(rates) | (counts >= LARGEST)
    return np.ma.MaskedArray(np.rint(np.where(unknown, 0, counts)).astype(np.int64), unknown)
