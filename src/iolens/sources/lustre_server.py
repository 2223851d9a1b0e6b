"""One sample of a Lustre server, whatever it was read from: raw texts of its targets in, samples and rows out.

`lustre-lctl` and `lustre-proc` find the texts; which text of which target becomes which table is decided here.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

from iolens.records import CounterSet, Item, Problem, Row, Sample
from iolens.schema import TABLES
from iolens.sources import lustre_capacity as capacity
from iolens.sources.lustre_clock import snapshot_of, stamp_us
from iolens.sources.lustre_histograms import Histograms, parse_brw_stats
from iolens.sources.lustre_job_stats import parse_job_stats
from iolens.sources.lustre_stats import (
    Stats,
    has_target_io,
    metadata_counters,
    parse_stats,
    target_io_counters,
    unknown_counters,
)
from iolens.sources.parsed_numbers import LARGEST

OBDFILTER, OSD, MDT, MDS, SERVER = "obdfilter", "osd", "mdt", "mds", ""
_STATE_LEAVES: Final = ("recovery_status", "num_exports")
# The parameters that are read, by family. All others describe clients, services or settings, not a target.
LEAVES: Final[Mapping[str, frozenset[str]]] = {
    OBDFILTER: frozenset({"stats", "brw_stats", "job_stats", *capacity.CAPACITY_LEAVES, *_STATE_LEAVES}),
    OSD: frozenset({"brw_stats", *capacity.CAPACITY_LEAVES}),
    MDT: frozenset({"md_stats", "job_stats", *_STATE_LEAVES}),
    MDS: frozenset({"stats", *capacity.CAPACITY_LEAVES, *_STATE_LEAVES}),  # 1.8; later `mds/MDS` is a service
    SERVER: frozenset({"version"}),
}
TIMED_LEAVES: Final = frozenset({"stats", "md_stats", "brw_stats"})
NOT_TARGETS: Final = frozenset({"MGS", "MDS", "OSS", "num_refs"})

_TARGET_NAME: Final = re.compile(r"(?:(.+)-)?(OST|MDT)[0-9a-fA-F]{4,}")
_JOB_TIME: Final = re.compile(rb"^[ \t]++snapshot_time:([^\n]*)", re.MULTILINE)


class Parameter(NamedTuple):
    """Which text it is: `obdfilter.fs-OST0000.stats` and `obdfilter/fs-OST0000/stats` are the same."""

    family: str
    target: str
    leaf: str


class Reading(NamedTuple):
    """One raw text and where it was found."""

    parameter: Parameter
    data: bytes
    place: str
    line: int = 1

    @property
    def stamp_us(self) -> int | None:
        """The moment the server printed it, where it says so (job_stats only tells the last activity)."""
        return snapshot_of(self.data) if self.parameter.leaf in TIMED_LEAVES else None

    @property
    def last_activity_us(self) -> int | None:
        """The latest `snapshot_time` of any job in a job_stats."""
        stamps = (stamp_us(found.decode("ascii", "replace")) for found in _JOB_TIME.findall(self.data))
        return max((stamp for stamp in stamps if stamp is not None), default=None)


class Target(NamedTuple):
    """An OST or MDT of a file system."""

    filesystem: str
    name: str
    kind: str


@dataclass(frozen=True, slots=True)
class Naming:
    """What the user said about names: the file system where targets do not carry it, the target of a bare text."""

    filesystem: str | None = None
    target: str | None = None

    def find(self, name: str, families: Iterable[str]) -> Target | str:
        """The target a directory or parameter is named after, or what is missing to know it."""
        match = _TARGET_NAME.fullmatch(name)
        if name == self.target and self.filesystem:
            is_mdt = match[2] == "MDT" if match else not {MDT, MDS}.isdisjoint(families)
            return Target(self.filesystem, name, "mdt" if is_mdt else "ost")
        if match is None:
            return f"{name!r} is not the name of a target such as scratch-OST0000"
        filesystem = match[1] or self.filesystem
        if filesystem is None:
            return f"target {name!r} does not name its file system: supply it with --filesystem"
        return Target(filesystem, name, match[2].lower())


def parameter_of(family: str, target: str, leaf: str) -> Parameter | None:
    """The parameter of that name if it is one that is read, else None."""
    family = OSD if family.startswith("osd-") else family
    if leaf not in LEAVES.get(family, ()) or (target in NOT_TARGETS):
        return None
    return Parameter(family, target.removesuffix("-osd"), leaf)


def needs_filesystem(readings: Iterable[Reading]) -> bool:
    """Whether some target does not carry the name of its file system."""
    names = {reading.parameter.target for reading in readings if reading.parameter.family != SERVER}
    return any((match := _TARGET_NAME.fullmatch(name)) is None or match[1] is None for name in names)


def server_items(readings: Iterable[Reading], naming: Naming, time_us: int, snapshot_us: int) -> Iterator[Item]:
    """Samples, rows and problems of one sample: `time_us` is its tick, `snapshot_us` stands in for untimed texts."""
    version: str | None = None
    by_target: dict[str, dict[tuple[str, str], Reading]] = {}
    for reading in readings:
        family, target, leaf = reading.parameter
        if family == SERVER:
            version = capacity.parse_version(reading.data)
        else:
            by_target.setdefault(target, {}).setdefault((family, leaf), reading)
    for name, texts in sorted(by_target.items()):
        target_or_reason = naming.find(name, (family for family, _ in texts))
        if isinstance(target_or_reason, str):
            first = next(iter(texts.values()))
            yield Problem(first.place, first.line, target_or_reason)
        else:
            yield from _TargetReader(target_or_reason, texts, time_us, snapshot_us, version).items()


@dataclass(frozen=True, slots=True)
class _TargetReader:
    """Everything one target said in one sample."""

    target: Target
    texts: Mapping[tuple[str, str], Reading]
    time_us: int
    snapshot_us: int
    version: str | None

    def items(self) -> Iterator[Item]:
        for reader in _READERS:
            yield from reader(self)

    def first_of(self, *keys: tuple[str, str]) -> Iterator[Reading]:
        """The texts found under these keys, the preferred one first."""
        return (self.texts[key] for key in keys if key in self.texts)

    def sample(self, table: str, sets: Mapping[str, CounterSet], snapshot_us: int | None) -> Sample:
        columns = {column.name for column in TABLES[table].columns}
        labels = {"target_kind": self.target.kind} if "target_kind" in columns else {}
        stamp = self.snapshot_us if snapshot_us is None else snapshot_us
        return Sample(table, self.target.filesystem, self.target.name, self.time_us, stamp, sets, labels)

    def row(self, table: str, values: Mapping[str, object]) -> Row:
        filesystem, name, kind = self.target
        head = {"time": self.time_us, "filesystem": filesystem, "target": name, "target_kind": kind}
        return Row(table, head | dict(values))


def _target_io(reader: _TargetReader) -> Iterator[Item]:
    for text in reader.first_of((OBDFILTER, "stats")):
        stats = parse_stats(text.data, text.place, text.line)
        yield from stats.problems
        if stats.of_a_service:
            yield Problem(text.place, text.line, "statistics of a service, not of a target: left out")
            return
        yield from unknown_counters(stats)
        yield from _io_sample(reader, stats)


def _metadata(reader: _TargetReader) -> Iterator[Item]:
    for text in reader.first_of((MDT, "md_stats"), (MDS, "stats")):
        stats = parse_stats(text.data, text.place, text.line)
        yield from stats.problems
        yield from unknown_counters(stats)
        if has_target_io(stats):
            yield from _io_sample(reader, stats)
        counters = metadata_counters(stats)
        if counters:
            yield reader.sample("metadata_ops", {"": CounterSet(counters, stats.start_us)}, stats.snapshot_us)
            return


def _io_sample(reader: _TargetReader, stats: Stats) -> Iterator[Sample]:
    counters = target_io_counters(stats)
    if counters:
        yield reader.sample("target_io", {"": CounterSet(counters, stats.start_us)}, stats.snapshot_us)


def _histograms(reader: _TargetReader) -> Iterator[Item]:
    for text in reader.first_of((OSD, "brw_stats"), (OBDFILTER, "brw_stats")):
        found = parse_brw_stats(text.data, text.place, text.line)
        yield from found.problems
        yield from _histogram_samples(reader, found)
        if found.sizes is not None or found.sets:
            return


def _histogram_samples(reader: _TargetReader, found: Histograms) -> Iterator[Sample]:
    if found.sizes is not None:
        yield reader.sample("target_sizes", {"": CounterSet(found.sizes, found.start_us)}, found.snapshot_us)
    if found.sets:
        sets = {name: CounterSet(counters, found.start_us) for name, counters in found.sets.items()}
        yield reader.sample("target_histograms", sets, found.snapshot_us)


def _jobs(reader: _TargetReader) -> Iterator[Item]:
    for text in reader.first_of((OBDFILTER, "job_stats"), (MDT, "job_stats")):
        stats = parse_job_stats(text.data, text.place, text.line)
        yield from stats.problems
        # An empty list is news too: a job that is in the next one began after this moment.
        if stats.jobs or not stats.problems:
            yield reader.sample("job_io", stats.jobs, None)


def _capacity(reader: _TargetReader) -> Iterator[Item]:
    best: dict[str, int] = {}
    for family in (OBDFILTER, OSD, MDS):
        readings: dict[str, int] = {}
        for text in reader.first_of(*((family, leaf) for leaf in capacity.CAPACITY_LEAVES)):
            number = capacity.parse_count(text.data)
            if number is None:
                yield _not_a_number(text)
            else:
                readings[text.parameter.leaf] = number
        best = readings if len(readings) > len(best) else best
    if best.get("kbytesfree", 0) > best.get("kbytestotal", LARGEST) or best.get("filesfree", 0) > best.get(
        "filestotal", LARGEST
    ):
        place = next(iter(reader.texts.values())).place
        yield Problem(place, None, f"{reader.target.name} has more free than its size: capacity left out")
    elif best:
        yield reader.row("target_capacity", capacity.capacity(best))


def _state(reader: _TargetReader) -> Iterator[Item]:
    values: capacity.Facts = {}
    for text in reader.first_of((OBDFILTER, "recovery_status"), (MDT, "recovery_status"), (MDS, "recovery_status")):
        found = capacity.parse_recovery(text.data)
        if isinstance(found, str):
            yield Problem(text.place, text.line, found)
        else:
            values = found
    for text in reader.first_of((OBDFILTER, "num_exports"), (MDT, "num_exports"), (MDS, "num_exports")):
        values["exports"] = capacity.parse_count(text.data)
        if values["exports"] is None:
            yield _not_a_number(text)
    if values or reader.version is not None:
        yield reader.row("target_state", {"version": reader.version, **_UNKNOWN_STATE, **values})


_UNKNOWN_STATE: Final[Mapping[str, None]] = dict.fromkeys((
    "recovery_status", "recovery_start", "recovery_duration_s", "recovery_remaining_s", "completed_clients",
    "expected_clients", "exports",
))  # fmt: skip
_READERS: Final[tuple[Callable[[_TargetReader], Iterator[Item]], ...]] = (
    _target_io,
    _metadata,
    _histograms,
    _jobs,
    _capacity,
    _state,
)


def _not_a_number(text: Reading) -> Problem:
    shown = text.data.strip()[:40].decode("ascii", "backslashreplace")
    return Problem(text.place, text.line, f"{text.parameter.leaf}: expected a number, found {shown!r}")
