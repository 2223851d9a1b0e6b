"""One sample of a Lustre server, whatever it was read from: raw texts of its targets in, counters out."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from iolens.records import CounterSet, Item, Problem, Row, Sample
from iolens.schema import LARGEST, TABLES
from iolens.sources.lustre import capacity
from iolens.sources.lustre import capacity as target_devices
from iolens.sources.lustre.histograms import Histograms, LatencyHistograms, parse_brw_stats, parse_io_latency
from iolens.sources.lustre.job_stats import parse_job_stats
from iolens.sources.lustre.parameters import (
    DEVICE,
    EXPORTS,
    IO_LATENCY,
    JOB_STATS,
    LOCKS,
    LONGEST_NAME,
    MDS,
    MDT,
    MOUNTED_DEVICE,
    NODEMAP,
    OBDFILTER,
    OSD,
    OSD_STATS,
    SERVER,
    SERVICE,
    LeftOut,
    Parameter,
    ParameterText,
)
from iolens.sources.lustre.stats import (
    EARLY_MDT_OPERATIONS,
    Stats,
    has_target_io,
    metadata_counters,
    parse_stats,
    printed_operations,
    server_counters,
    target_io_counters,
    unknown_counters,
)

# Which texts of a long capture belong to one sample of a server -------------------------------------------------------
# A parameter that comes again begins a new sample only if it is a new time: some captures print a file twice.

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


# One sample of a Lustre server, whatever it was read from -------------------------------------------------------------
# Raw texts of its targets in, samples and rows out.
#
# `lustre-lctl` and `lustre-proc` find the texts; which text of which target becomes which table is decided here.

_TARGET_NAME: Final = re.compile(r"(?:(.+)-)?(OST|MDT)[0-9a-fA-F]{4,}")
_VERSION: Final = re.compile(r"(\d{1,4})\.(\d{1,4})(?:\.(\d{1,4}))?")
_POW2_IN_FLIGHT: Final = (2, 17, 51)  # I/Os in flight are counted in powers of two from this version on


class LustreTarget(NamedTuple):
    """An OST or MDT of a file system."""

    filesystem: str
    name: str
    kind: str


@dataclass(frozen=True, slots=True)
class GivenNames:
    """What the user said about names: the file system where targets do not carry it, the target of a bare text."""

    filesystem: str | None = None
    target: str | None = None

    def find(self, name: str, families: Iterable[str]) -> LustreTarget | str:
        """The target a directory or parameter is named after, or what is missing to know it."""
        match = _TARGET_NAME.fullmatch(name)
        if name == self.target and self.filesystem:
            is_mdt = match[2] == "MDT" if match else not {MDT, MDS}.isdisjoint(families)
            return LustreTarget(self.filesystem, name, "mdt" if is_mdt else "ost")
        if match is None:
            return f"{name!r} is not the name of a target such as scratch-OST0000"
        filesystem = match[1] or self.filesystem
        if filesystem is None:
            return f"target {name!r} does not name its file system: supply it with --filesystem"
        return LustreTarget(filesystem, name, match[2].lower())


def needs_filesystem(readings: Iterable[ParameterText]) -> bool:
    """Whether some target does not carry the name of its file system."""
    names = {reading.parameter.target for reading in readings if reading.parameter.is_of_target}
    return any((match := _TARGET_NAME.fullmatch(name)) is None or match[1] is None for name in names)


@dataclass(frozen=True, slots=True)
class ServerReader:
    """Turns one sample of a server into items.

    `host` tells servers apart whose services are called the same; where it is not known the targets do. `left_out`
    takes the names of what no table holds.
    """

    naming: GivenNames
    host: str | None = None
    left_out: LeftOut | None = None

    def items(self, readings: Iterable[ParameterText], time_us: int, snapshot_us: int) -> Iterator[Item]:
        """Samples, rows and problems: `time_us` is the sample's tick, `snapshot_us` stands in for untimed texts."""
        version: str | None = None
        services: list[ParameterText] = []
        by_target: dict[str, dict[tuple[str, str], ParameterText]] = {}
        for reading in readings:
            family, target, leaf = reading.parameter
            if reading.parameter.is_of_client:
                continue
            if family == SERVER:
                version = capacity.parse_version(reading.data)
            elif family in (SERVICE, NODEMAP):
                services.append(reading)
            else:
                by_target.setdefault(target, {}).setdefault((family, leaf), reading)
        targets: list[LustreTarget] = []
        for name, texts in sorted(by_target.items()):
            if all(family == LOCKS for family, _ in texts):
                self._leave_out_locks(name)
                continue
            target_or_reason = self.naming.find(name, (family for family, _ in texts))
            if isinstance(target_or_reason, str):
                first = next(iter(texts.values()))
                yield Problem(first.place, first.line, target_or_reason)
            else:
                targets.append(target_or_reason)
                yield from _TargetReader(target_or_reason, texts, time_us, snapshot_us, version, self.left_out).items()
        yield from self._services(services, targets, time_us, snapshot_us)

    def _leave_out_locks(self, target: str) -> None:
        if self.left_out is not None:
            self.left_out.say(f"locks of {target}, which is not on this server")

    def _services(
        self, readings: Sequence[ParameterText], targets: Sequence[LustreTarget], time_us: int, snapshot_us: int
    ) -> Iterator[Item]:
        """The request queues of the server and what its nodemaps did, under each file system it serves."""
        filesystems = {self.naming.filesystem} if self.naming.filesystem else {target.filesystem for target in targets}
        server = self.host or _named_by_targets(targets)
        for text in readings if filesystems else ():
            stats = parse_stats(text.data, text.place, text.line)
            yield from stats.problems
            yield from unknown_counters(stats)
            if not (counters := server_counters(stats, "service")):
                continue
            stamp = snapshot_us if stats.snapshot_us is None else stats.snapshot_us
            sets, labels = {"": CounterSet(counters, stats.start_us)}, {"target_kind": "service"}
            family, name, leaf = text.parameter
            service = f"{server}:{family}.{name}.{leaf}" if family == NODEMAP else f"{server}:{name}"
            for filesystem in sorted(filesystems):
                yield Sample("server_ops", filesystem, service, time_us, stamp, sets, labels)


def _named_by_targets(targets: Sequence[LustreTarget]) -> str:
    """A server without a name, by its first target and how many more: after a failover it is another one."""
    names = sorted(target.name for target in targets)
    return f"{names[0]}+{len(names) - 1}" if len(names) > 1 else "".join(names) or "server"


@dataclass(frozen=True, slots=True)
class _TargetReader:
    """Everything one target said in one sample."""

    target: LustreTarget
    texts: Mapping[tuple[str, str], ParameterText]
    time_us: int
    snapshot_us: int
    version: str | None
    left_out: LeftOut | None
    others: dict[str, CounterSet] = field(default_factory=dict)  # counters of `server_ops`, by text
    stamps: list[int] = field(default_factory=list)  # when those were taken

    def items(self) -> Iterator[Item]:
        yield from self._target_io()
        yield from self._metadata()
        yield from self._server_ops()
        yield from self._histograms()
        yield from self._jobs()
        yield from self._capacity()
        yield from self._state()

    def first_of(self, *keys: tuple[str, str]) -> Iterator[ParameterText]:
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

    def keep_others(self, text: str, stats: Stats, kind: str) -> None:
        """Put aside for `server_ops` what no other table has; a name two texts have counts once."""
        known = {name for counted in self.others.values() for name in counted.counters}
        counters = {name: value for name, value in server_counters(stats, kind).items() if name not in known}
        if stats.snapshot_us is not None:
            self.others[text] = CounterSet(counters, stats.start_us)
            self.stamps.append(stats.snapshot_us)

    def _target_io(self) -> Iterator[Item]:
        for text in self.first_of((OBDFILTER, "stats")):
            stats = parse_stats(text.data, text.place, text.line)
            yield from stats.problems
            if stats.of_a_service:
                yield Problem(text.place, text.line, "statistics of a service, not of a target: left out")
                return
            yield from unknown_counters(stats)
            if counters := target_io_counters(stats):
                counters |= self._device_busy()
                yield self.sample("target_io", {"": CounterSet(counters, stats.start_us)}, stats.snapshot_us)
            self.keep_others("", stats, "ost")

    def _device_busy(self) -> dict[str, int]:
        """The time its block device was busy, where the kernel tells."""
        stat = next(self.first_of((DEVICE, target_devices.STAT)), None)
        time_us = None if stat is None else target_devices.busy_us(stat.data)
        return {} if time_us is None else {"busy_us": time_us}

    def _metadata(self) -> Iterator[Item]:
        own: Stats | None = None
        for text in self.first_of((MDT, "md_stats"), (MDS, "stats")):
            own = parse_stats(text.data, text.place, text.line)
            yield from own.problems
            yield from unknown_counters(own)
            if has_target_io(own):
                sets = {"": CounterSet(target_io_counters(own), own.start_us)}
                yield self.sample("target_io", sets, own.snapshot_us)
            self.keep_others("", own, "mdt")
            counters = metadata_counters(own)
            by_client = any(family == EXPORTS for family, _ in self.texts)
            if counters and not own.of_a_service and (own.counts or not by_client):
                yield self.sample("metadata_ops", {"": CounterSet(counters, own.start_us)}, own.snapshot_us)
                if self.left_out is not None and by_client:
                    self.left_out.add("mdt.*.exports.*.stats")
                return
        yield from self._metadata_by_client(own)

    def _metadata_by_client(self, own: Stats | None) -> Iterator[Item]:
        """Lustre 2.0 counts the operations of an MDT per client: one set each, whose movements add up.

        With one client missing the sum would be too small, and too large when it is back: then there is none.
        """
        clients: dict[str, Stats] = {}
        for (family, client), text in self.texts.items():
            if family == EXPORTS:
                clients[client] = parse_stats(text.data, text.place, text.line)
                yield from clients[client].problems if text.data else ()
                yield from unknown_counters(clients[client])
        damaged = next((stats for stats in clients.values() if not stats.whole), None)
        if damaged is not None:
            yield Problem(
                damaged.place, None, "operations of a client are cut or damaged, so the sum over clients is unknown"
            )
            return
        by_client = {client: printed_operations(stats) for client, stats in clients.items()}
        counted = {name for counters in by_client.values() for name in counters}
        counters = dict.fromkeys(EARLY_MDT_OPERATIONS, 0) if clients else {}
        if own is not None:  # the requests of the service; what clients count too is in there a second time
            requests = metadata_counters(own).items()
            counters |= {name: value for name, value in requests if name.removesuffix("_us") not in counted}
        if counters:
            sets = {"": CounterSet(counters, own.start_us if own else None)}
            sets |= {client: CounterSet(by_client[client], stats.start_us) for client, stats in clients.items()}
            stamp = (
                own.snapshot_us
                if own
                else max(filter(None, (stats.snapshot_us for stats in clients.values())), default=None)
            )
            yield self.sample("metadata_ops", sets, stamp)

    def _server_ops(self) -> Iterator[Item]:
        for text in self.first_of((OSD, OSD_STATS)):
            stats = parse_stats(text.data, text.place, text.line)
            yield from stats.problems
            yield from unknown_counters(stats)
            self.keep_others(OSD, stats, "osd")
        if any(counted.counters for counted in self.others.values()):
            yield self.sample("server_ops", self.others, min(self.stamps))

    def _histograms(self) -> Iterator[Item]:
        brw: Histograms | None = None
        for text in self.first_of((OSD, "brw_stats"), (OBDFILTER, "brw_stats")):
            brw = parse_brw_stats(text.data, text.place, text.line, pow2_in_flight=self._counts_in_powers())
            yield from brw.problems
            if brw.sizes is not None or brw.sets:
                break
        latency: LatencyHistograms | None = None
        for text in self.first_of((OSD, IO_LATENCY)):
            latency = parse_io_latency(text.data, text.place, text.line)
            yield from latency.problems
        if brw is not None and brw.sizes is not None:
            yield self.sample("target_sizes", {"": CounterSet(brw.sizes, brw.start_us)}, brw.snapshot_us)
        parsed = [part for part in (brw, latency) if part is not None and part.sets]
        sets = {name: CounterSet(counters, part.start_us) for part in parsed for name, counters in part.sets.items()}
        if sets:
            yield self.sample("target_histograms", sets, parsed[0].snapshot_us)

    def _counts_in_powers(self) -> bool:
        """Whether I/Os in flight are counted in powers of two: by the version, else by what came with it."""
        match = _VERSION.match(self.version or "")
        if match is None:
            return (OSD, IO_LATENCY) in self.texts
        return tuple(int(part or 0) for part in match.groups()) >= _POW2_IN_FLIGHT

    def _jobs(self) -> Iterator[Item]:
        for text in self.first_of((OBDFILTER, JOB_STATS), (MDT, JOB_STATS)):
            stats = parse_job_stats(text.data, text.place, text.line)
            yield from stats.problems
            # An empty list is news too: a job that is in the next one began after this time.
            if stats.jobs or not stats.problems:
                yield self.sample("job_io", stats.jobs, None)
            if stats.sizes:
                yield self.sample("job_sizes", stats.sizes, None)

    def _capacity(self) -> Iterator[Item]:
        best: dict[str, int] = {}
        for family in (OBDFILTER, OSD, MDS):
            readings: dict[str, int] = {}
            for text in self.first_of(*((family, leaf) for leaf in capacity.CAPACITY_LEAVES)):
                number = capacity.parse_count(text.data)
                if number is None:
                    yield _not_a_number(text)
                else:
                    readings[text.parameter.leaf] = number
            best = readings if len(readings) > len(best) else best
        if best.get("kbytesfree", 0) > best.get("kbytestotal", LARGEST) or best.get("filesfree", 0) > best.get(
            "filestotal", LARGEST
        ):
            place = next(iter(self.texts.values())).place
            yield Problem(place, None, f"{self.target.name} has more free than its size: capacity left out")
        elif best:
            yield self.row("target_capacity", capacity.capacity(best))

    def _state(self) -> Iterator[Item]:
        values: capacity.Facts = {}
        for text in self.first_of((OBDFILTER, "recovery_status"), (MDT, "recovery_status"), (MDS, "recovery_status")):
            by_name = capacity.parse_recovery(text.data)
            if isinstance(by_name, str):
                yield Problem(text.place, text.line, by_name)
            else:
                values = by_name
                self._leave_out_recovery(text, by_name)
        for text in self.first_of((OBDFILTER, "num_exports"), (MDT, "num_exports"), (MDS, "num_exports")):
            values["exports"] = capacity.parse_count(text.data)
            if values["exports"] is None:
                yield _not_a_number(text)
        for leaf, column in capacity.LOCK_LEAVES.items():
            for text in self.first_of((LOCKS, leaf)):
                values[column] = capacity.parse_count(text.data)
                if values[column] is None:
                    yield _not_a_number(text)
        values |= self._device()
        if values or self.version is not None:
            yield self.row("target_state", {"version": self.version, **_UNKNOWN_STATE, **values})

    def _device(self) -> capacity.Facts:
        """The device behind it, and what that is like."""
        facts: capacity.Facts = {}
        for text in self.first_of((OSD, MOUNTED_DEVICE)):
            facts["device"] = text.data.decode("utf-8", "replace").strip()[:LONGEST_NAME] or None
        queue = {leaf: text.data for (family, leaf), text in self.texts.items() if family == DEVICE}
        return facts | target_devices.facts_of(queue)

    def _leave_out_recovery(self, text: ParameterText, facts: capacity.Facts) -> None:
        """Name the lines that no column has, and a start that is no date."""
        lines = capacity.recovery_lines(text.data)
        if self.left_out is None or isinstance(lines, str):
            return
        unkept = lines.keys() - capacity.RECOVERY_LINES
        if lines.get("recovery_start", "0") != "0" and facts["recovery_start"] is None:
            unkept = {*unkept, "recovery_start"}
        for name in unkept:
            self.left_out.add(f"{text.parameter.family}.*.recovery_status.{name}")


_UNKNOWN_STATE: Final[Mapping[str, None]] = dict.fromkeys((
    "recovery_status", "recovery_start", "recovery_duration_s", "recovery_remaining_s", "completed_clients",
    "expected_clients", "exports", *capacity.LOCK_LEAVES.values(), "device", *target_devices.FACTS.values(),
))  # fmt: skip


def _not_a_number(text: ParameterText) -> Problem:
    shown = text.data.strip()[:40].decode("ascii", "backslashreplace")
    return Problem(text.place, text.line, f"{text.parameter.leaf}: expected a number, found {shown!r}")
