"""One sample of a Lustre client, whatever it was read from: raw texts of its mounts in, samples of its tables out.

`lustre-client-proc` and `lustre-lctl` find the texts. A file system is named by its name; the address in the names of a
mount (`scratch-ffff88105db50000`) only tells its counters apart from those of the mount before.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from iolens.errors import InputError
from iolens.records import CounterSet, Item, Note, Problem, Sample
from iolens.schema import DIRECTIONS
from iolens.sources.devices.block_devices import refuse_settings
from iolens.sources.lustre import stats as llite_stats
from iolens.sources.lustre.histograms import LatencyHistograms, parse_io_latency
from iolens.sources.lustre.parameters import (
    CLIENT_LOCKS,
    IO_LATENCY,
    LLITE,
    MDC,
    OSC,
    SERVICE,
    PageSize,
    Parameter,
    ParameterText,
    RpcVolume,
    Verdict,
    judged,
    page_size_setting,
)
from iolens.sources.lustre.rpc_stats import (
    CALL_SIZES,
    PAGES,
    ClientHistograms,
    pages_moved,
    parse_extents_stats,
    parse_rpc_stats,
)
from iolens.sources.lustre.stats import Stats, parse_stats, server_counters, unknown_counters
from iolens.sources.reading.options import ReadOptions

SETTINGS: Final = ("node", "page_size")
CLIENT_IO, CLIENT_RPCS, CLIENT_METADATA, CLIENT_HISTOGRAMS, CLIENT_OPS = (
    "client_io", "client_rpcs", "client_metadata", "client_histograms", "client_ops",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class ClientNode:
    """Which node it is, and its page size where that is known; `source` is named in what the user is asked for."""

    source: str
    name: str
    page_size: PageSize | None = None
    is_guessed: bool = False  # called after its file or directory

    @classmethod
    def of(
        cls, source: str, options: ReadOptions, stated: str | None, fallback: str, page_size: PageSize | None = None
    ) -> ClientNode:
        """As configured, else as the node says, else called after its file."""
        refuse_settings(options, source, f"sources.{source}", SETTINGS)
        given = options.settings.get("node")
        if given is not None and not (isinstance(given, str) and given.strip()):
            raise InputError(f"sources.{source}.node", f"{given!r} is no name", "the name of the client's host")
        name = given or stated
        size = page_size_setting(options.settings, source) or page_size
        return cls(source, name or fallback or "client", size, is_guessed=name is None)

    @property
    def identity(self) -> str:
        """What changes the rows of its files: part of the identity of a capture."""
        return f"{self.name}\0{self.page_size and self.page_size.bytes}"

    def notes(self, place: str) -> Iterator[Note]:
        """That its name is only that of a file."""
        if self.is_guessed:
            reason = f"nothing names the node: called {self.name!r}; set node of [sources.{self.source}]"
            yield Note(place, None, reason)


@dataclass(slots=True)
class ClientReader:
    """Turns one sample after the other of a client into items, and collects what to say once at the end."""

    node: ClientNode
    said: dict[Note, None] = field(default_factory=dict)
    now: dict[Parameter, dict[str, int]] = field(default_factory=dict)  # by rpc_stats: what is true only now

    def items(self, readings: Iterable[ParameterText], time_us: int, snapshot_us: int) -> Iterator[Item]:
        """Samples and problems: `time_us` is the sample's tick, `snapshot_us` stands in for untimed texts."""
        by_filesystem: dict[str, list[ParameterText]] = {}
        services: list[ParameterText] = []
        for reading in readings:
            if reading.parameter.is_of_client:
                by_filesystem.setdefault(reading.parameter.mount.filesystem, []).append(reading)
            elif reading.parameter.family == SERVICE:
                services.append(reading)
        for filesystem, texts in sorted(by_filesystem.items()):
            yield from _MountSample(self, filesystem, time_us, snapshot_us).items([*texts, *services])

    def say(self, place: str, reason: str) -> None:
        """Something to know about the capture, said once."""
        self.said[Note(place, None, reason)] = None

    def notes(self, place: str) -> Iterator[Note]:
        """What was collected."""
        yield from self.node.notes(place)
        yield from self.said


@dataclass(slots=True)
class _MountSample:
    """Everything that all mounts of one file system said in one sample."""

    reader: ClientReader
    filesystem: str
    time_us: int
    snapshot_us: int
    sets: dict[str, dict[str, CounterSet]] = field(default_factory=dict)  # by table and text
    stamps: dict[str, list[int]] = field(default_factory=dict)  # by table
    asked: dict[str, dict[str, ParameterText]] = field(default_factory=dict)  # by table and mount
    bytes_moved: dict[tuple[str, str], tuple[int, int]] = field(default_factory=dict)  # by OSC and direction, with RPCs
    pages_moved: dict[tuple[str, str], tuple[int, int]] = field(default_factory=dict)  # RPCs, and the most pages

    def items(self, texts: Sequence[ParameterText]) -> Iterator[Item]:
        for text in texts:
            yield from _READERS[text.parameter.family, text.parameter.leaf](self, text)
        for table in self.asked:
            yield from self._sample(table)

    def _sample(self, table: str) -> Iterator[Item]:
        """A mount of which nothing can be read now would look unmounted, and next time new: then there is no sample."""
        sets = self.sets.get(table, {})
        seen = {name.partition("@")[2] for name in sets}
        lost = next((text for mount, text in self.asked[table].items() if mount not in seen), None)
        if lost is not None:
            name = ".".join(lost.parameter)
            yield Problem(
                lost.place, lost.line, f"{name} cannot be read, so this sample of {table} is left out; the next counts"
            )
            return
        labels: dict[str, str] = {}
        if table == CLIENT_RPCS:
            verdict, place = self._page_size(), next(iter(self.asked[table].values())).place
            labels["page_bytes"] = str(verdict.bytes)
            if verdict.wrong:
                yield Problem(place, None, f"{self.filesystem}: {verdict.wrong}")
            if verdict.note:
                self.reader.say(place, f"{self.filesystem}: {verdict.note}")
        stamp = min(self.stamps.get(table, ()), default=self.snapshot_us)
        yield Sample(table, self.filesystem, self.reader.node.name, self.time_us, stamp, sets, labels)

    def _page_size(self) -> Verdict:
        volumes = [
            RpcVolume(*moved, *self.pages_moved[place])
            for place, moved in self.bytes_moved.items()
            if place in self.pages_moved
        ]
        return judged(self.reader.node.page_size, volumes, f"sources.{self.reader.node.source}")

    def ask(self, text: ParameterText, *tables: str) -> None:
        """Note that a text is there for these tables, readable or not."""
        for table in tables:
            self.asked.setdefault(table, {}).setdefault(_instance(text.parameter), text)

    def keep(
        self,
        table: str,
        text: ParameterText,
        counters: Mapping[str, int],
        parsed: Stats | ClientHistograms | LatencyHistograms,
        section: str = "",
    ) -> None:
        """The counters of one text, or of a section of it, for one table."""
        family, target, leaf = text.parameter
        parts = [target] if family == SERVICE else [family, text.parameter.mount.target, leaf, section]
        name = ".".join(filter(None, parts))
        self.sets.setdefault(table, {})[f"{name}@{_instance(text.parameter)}"] = CounterSet(counters, parsed.start_us)
        if parsed.snapshot_us is not None:
            self.stamps.setdefault(table, []).append(parsed.snapshot_us)

    def llite(self, text: ParameterText) -> Iterator[Problem]:
        self.ask(text, CLIENT_IO, CLIENT_METADATA, CLIENT_OPS)
        stats = parse_stats(text.data, text.place, text.line)
        yield from stats.problems
        yield from llite_stats.unknown_calls(stats)
        if _is_empty(stats):
            return
        self.keep(CLIENT_IO, text, llite_stats.client_io_counters(stats), stats)
        self.keep(CLIENT_METADATA, text, llite_stats.client_metadata_counters(stats), stats)
        self.keep(CLIENT_OPS, text, llite_stats.other_counters(stats, llite_stats.OTHER_CALLS, LLITE), stats)

    def read_ahead(self, text: ParameterText) -> Iterator[Problem]:
        stats = llite_stats.parse_read_ahead(text.data, text.place, text.line)
        yield from stats.problems
        yield from llite_stats.unknown_names(stats, llite_stats.READ_AHEAD)
        yield from self._others(text, stats, llite_stats.other_counters(stats, llite_stats.READ_AHEAD, "read_ahead"))

    def requests(self, text: ParameterText) -> Iterator[Problem]:
        """`stats` of an OSC, an MDC or a service: requests, their times, and the bytes that RPCs carried."""
        stats = parse_stats(text.data, text.place, text.line)
        yield from stats.problems
        yield from unknown_counters(stats)
        target = text.parameter.mount.target or text.parameter.target
        counters = {f"{target}:{name}": value for name, value in server_counters(stats, "service").items()}
        yield from self._others(text, stats, counters)
        for direction in DIRECTIONS:
            moved = stats.counts.get(f"{direction}_bytes")
            if moved is not None and moved.total is not None and text.parameter.family == OSC:
                self.bytes_moved[text.parameter.target, direction] = (moved.total, moved.samples)

    def metadata_requests(self, text: ParameterText) -> Iterator[Problem]:
        stats = parse_stats(text.data, text.place, text.line)
        yield from stats.problems
        yield from llite_stats.unknown_names(stats, llite_stats.MD_OPERATIONS)
        target = text.parameter.mount.target
        yield from self._others(text, stats, llite_stats.other_counters(stats, llite_stats.MD_OPERATIONS, target))

    def lock_pool(self, text: ParameterText) -> Iterator[Problem]:
        stats = parse_stats(text.data, text.place, text.line)
        yield from stats.problems
        yield from llite_stats.unknown_names(stats, llite_stats.LOCK_POOL)
        target = text.parameter.mount.target
        counters = llite_stats.other_counters(stats, llite_stats.LOCK_POOL, target, "lock_pool_")
        yield from self._others(text, stats, counters)

    def _others(self, text: ParameterText, stats: Stats, counters: Mapping[str, int]) -> Iterator[Problem]:
        self.ask(text, CLIENT_OPS)
        if not _is_empty(stats):
            self.keep(CLIENT_OPS, text, counters, stats)
        yield from ()

    def rpcs(self, text: ParameterText) -> Iterator[Problem]:
        self.ask(text, CLIENT_RPCS, CLIENT_HISTOGRAMS)
        histograms = parse_rpc_stats(text.data, text.place, text.line)
        yield from histograms.problems
        self.reader.now[text.parameter] = histograms.now
        target, sections = text.parameter.mount.target, dict(histograms.sections)
        is_whole = histograms.snapshot_us is not None and not histograms.problems
        pages = sections.pop(PAGES, {} if is_whole else None)  # an MDC counts none before it can hold file data
        if pages is not None:
            self.keep(CLIENT_RPCS, text, {f"{target}:{name}": count for name, count in pages.items()}, histograms)
            for direction in DIRECTIONS:
                self.pages_moved[text.parameter.target, direction] = pages_moved(pages, direction)
        if is_whole and not sections:
            self.keep(CLIENT_HISTOGRAMS, text, {}, histograms)
        for section, bins in sections.items():
            named = {f"{target}:{section}:{name}": count for name, count in bins.items()}
            self.keep(CLIENT_HISTOGRAMS, text, named, histograms, section)

    def latencies(self, text: ParameterText) -> Iterator[Problem]:
        """One set for all sizes: where one of them is not understood there is none, else it would begin anew later."""
        self.ask(text, CLIENT_HISTOGRAMS)
        latency = parse_io_latency(text.data, text.place, text.line)
        yield from latency.problems
        if not latency.problems:
            target = text.parameter.mount.target
            named = {f"{target}:{size}:{bin_}": n for size, bins in latency.sets.items() for bin_, n in bins.items()}
            self.keep(CLIENT_HISTOGRAMS, text, named, latency)

    def call_sizes(self, text: ParameterText) -> Iterator[Problem]:
        histograms = parse_extents_stats(text.data, text.place, text.line)
        yield from histograms.problems
        if histograms.disabled:
            self._say_disabled(text)
            return
        self.ask(text, CLIENT_HISTOGRAMS)
        if (bins := histograms.sections.get(CALL_SIZES)) is not None:
            named = {f"{LLITE}:{CALL_SIZES}:{bin_}": count for bin_, count in bins.items()}
            self.keep(CLIENT_HISTOGRAMS, text, named, histograms)

    def process_sizes(self, text: ParameterText) -> Iterator[Problem]:
        """Processes come and go too fast to be stored; what all of them did is in extents_stats."""
        histograms = parse_extents_stats(text.data, text.place, text.line)
        yield from histograms.problems
        if histograms.disabled:
            self._say_disabled(text)
        if histograms.processes:
            count = len(histograms.processes)
            self.reader.say(text.place, f"left out: llite.*.extents_stats_per_process, call sizes of {count} processes")

    def _say_disabled(self, text: ParameterText) -> None:
        self.reader.say(text.place, f"llite.*.{text.parameter.leaf} is disabled on this client: no call sizes")


_READERS: Final[Mapping[tuple[str, str], Callable[[_MountSample, ParameterText], Iterator[Problem]]]] = {
    (LLITE, "stats"): _MountSample.llite,
    (LLITE, "read_ahead_stats"): _MountSample.read_ahead,
    (LLITE, "extents_stats"): _MountSample.call_sizes,
    (LLITE, "extents_stats_per_process"): _MountSample.process_sizes,
    (OSC, "stats"): _MountSample.requests,
    (OSC, "rpc_stats"): _MountSample.rpcs,
    (OSC, IO_LATENCY): _MountSample.latencies,
    (MDC, "stats"): _MountSample.requests,
    (MDC, "rpc_stats"): _MountSample.rpcs,
    (MDC, "md_stats"): _MountSample.metadata_requests,
    (CLIENT_LOCKS, "pool_stats"): _MountSample.lock_pool,
    (SERVICE, "service_stats"): _MountSample.requests,
}


def _instance(parameter: Parameter) -> str:
    return "" if parameter.family == SERVICE else parameter.mount.instance


def _is_empty(stats: Stats) -> bool:
    """Whether nothing could be read of it; one that has a time and no counter has not counted yet."""
    return stats.snapshot_us is None and not stats.counts
