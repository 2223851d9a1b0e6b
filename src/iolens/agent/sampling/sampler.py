"""One tick: read the files of targets and mounts, keep what is due, spool it; and the health of the agent."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Final

from iolens.agent.sampling.spool import Spool, replace_private
from iolens.errors import InputError
from iolens.messages import kind_of
from iolens.records import Item, Note, Problem, Row, Sample
from iolens.schema import TABLES
from iolens.sources.devices.diskstats import BlockDevices
from iolens.sources.lustre import lustre_client_proc
from iolens.sources.lustre.lustre_proc import read_tree
from iolens.sources.lustre.parameters import SLOW_LEAVES
from iolens.sources.reading.options import ReadOptions
from iolens.sources.reading.served_targets import ServedTargets, is_served

# The agent's own health -----------------------------------------------------------------------------------------------
# A status file beside the spool after every tick, and a row for the store once it has a table.
#
# Counts are since the start of the agent.

HEALTH_TABLE: Final = "agent_health"  # rows are spooled as soon as the schema declares this table
STATUS_FILE: Final = "health.json"
_PAGE_BYTES: Final = os.sysconf("SC_PAGESIZE")


@dataclass(slots=True)
class Health:
    """What the agent has done, and what it costs."""

    host: str
    run: str
    time: int = 0  # tick, microseconds since 1970
    ticks: int = 0
    late_ticks: int = 0
    missed_ticks: int = 0
    lost_ticks: int = 0
    clock_steps_back: int = 0
    targets: int = 0
    samples: int = 0
    refused: int = 0
    thinned_samples: int = 0
    spool_bytes: int = 0
    segments_waiting: int = 0
    segments_shipped: int = 0
    segments_late: int = 0
    segments_bad: int = 0
    ship_failures: int = 0
    cpu_s: float = 0.0
    rss_bytes: int = 0
    trouble: str = ""

    def measure(self) -> None:
        """Note the processor time and memory of this process."""
        self.cpu_s = round(time.process_time(), 3)
        self.rss_bytes = rss_bytes()

    def row(self) -> Row:
        """A row of `agent_health`."""
        return Row(HEALTH_TABLE, asdict(self) | {"trouble": self.trouble or None})

    @property
    def is_stored(self) -> bool:
        """Whether the store has a table for it."""
        return HEALTH_TABLE in TABLES

    def write(self, directory: Path) -> None:
        """The status file, replaced in one step."""
        text = json.dumps({**asdict(self), "pid": os.getpid()}, indent=1) + "\n"
        replace_private(directory / STATUS_FILE, text.encode())


def rss_bytes() -> int:
    """Resident memory of this process."""
    with Path("/proc/self/statm").open("rb") as stream:
        return int(stream.read().split()[1]) * _PAGE_BYTES


# One tick -------------------------------------------------------------------------------------------------------------
# Read the files of targets and mounts, keep what is due, spool it. Needs only the standard library.

SLOW_TABLES: Final = frozenset({
    "target_histograms", "job_io", "job_sizes", "server_ops", "client_rpcs", "client_histograms", "client_ops",
})  # fmt: skip
PROBLEMS_PER_SEGMENT: Final = 100

Reader = Callable[[Path, int, str | None, frozenset[str]], Iterator[Item]]


@dataclass(slots=True)
class SampledTick:
    """One tick: what was due, and what came of it."""

    time_us: int
    is_slow: bool  # the long tables are due
    has_devices: bool  # block devices are due
    samples: int = 0
    targets: set[tuple[str, str]] = field(default_factory=set)
    refused: dict[str, RefusedPlaces] = field(default_factory=dict)  # by kind of reason
    served: set[tuple[str, str]] = field(default_factory=set)  # those that are no clients and no devices
    devices: set[tuple[str, str]] = field(default_factory=set)


@dataclass(slots=True)
class RefusedPlaces:
    """Places that one tick could not read for the same reason."""

    first: Problem
    count: int = 0


@dataclass(slots=True)
class Sampler:
    """Samples one root; the long tables and the block devices have intervals of their own."""

    root: Path
    spool: Spool
    health: Health
    slow_us: int
    filesystem: str | None = None
    read: Reader = read_tree
    devices: BlockDevices | None = None
    device_us: int = 1
    client_options: ReadOptions = field(default_factory=ReadOptions)  # the node's name and page size
    last_us: int | None = None
    served: ServedTargets = field(init=False)
    device_targets: set[tuple[str, str]] = field(default_factory=set)  # as they were when last due
    reported: set[tuple[str, str]] = field(default_factory=set)
    reported_in: int = 0

    def __post_init__(self) -> None:
        """Everything is named after the segments' host, whatever the files call the machine later."""
        self.served = ServedTargets(self.spool.host)
        named = {"node": self.spool.host, **self.client_options.settings}
        self.client_options = replace(self.client_options, settings=named)

    def sample(self, tick_us: int) -> SampledTick:
        """Read everything now and spool it under the tick's nominal time; what came of it."""
        tick = SampledTick(tick_us, self._is_due(tick_us, self.slow_us), self._is_due(tick_us, self.device_us))
        self.last_us = tick_us
        if self.spool.append(tick_us, self._kept(tick)):
            self.health.samples += tick.samples
        else:
            self.served.forget()
        return tick

    def _is_due(self, tick_us: int, interval_us: int) -> bool:
        return self.last_us is None or tick_us // interval_us != self.last_us // interval_us

    def _kept(self, tick: SampledTick) -> Iterator[Item]:
        """What is spooled, one after the other: all jobs of all targets are never held at once."""
        for item in self._items(tick):
            if isinstance(item, Problem):
                yield from self._news(item)
                if not isinstance(item, Note):
                    tick.refused.setdefault(kind_of(item.reason), RefusedPlaces(item)).count += 1
            elif not isinstance(item, Sample):
                yield item
            else:
                if item.labels.get("target_kind") != "service":
                    tick.targets.add((item.filesystem, item.target))
                if is_served(item):
                    is_device = item.labels.get("target_kind") == "device"
                    (tick.devices if is_device else tick.served).add((item.filesystem, item.target))
                if tick.is_slow or item.table not in SLOW_TABLES:
                    tick.samples += 1
                    yield item
        self.health.ticks += 1
        self.health.targets = len(tick.targets)
        self.device_targets = tick.devices if tick.has_devices else self.device_targets
        yield from self.served.rows(tick.time_us, tick.served | self.device_targets)
        if tick.is_slow and self.health.is_stored:
            yield self.health.row()

    def _items(self, tick: SampledTick) -> Iterator[Item]:
        """The sample's items; whatever goes wrong is a problem of this tick, not the end of the agent."""
        skip = frozenset() if tick.is_slow else SLOW_LEAVES
        yield from self._guarded(lambda: self.read(self.root, tick.time_us, self.filesystem, skip))
        yield from self._guarded(lambda: self._mounts(tick))
        devices = self.devices
        if devices is not None and tick.has_devices:
            yield from self._guarded(lambda: devices.read(tick.time_us))

    def _mounts(self, tick: SampledTick) -> Iterator[Item]:
        """What this machine does as a client. A server without mounts has nothing to say, nor what it may not read."""
        if not self.root.is_dir() or (tick.targets and not lustre_client_proc.has_mounts(self.root)):
            return iter(())
        return lustre_client_proc.read_tree(self.root, tick.time_us, self.client_options, calls_only=not tick.is_slow)

    def _guarded(self, read: Callable[[], Iterator[Item]]) -> Iterator[Item]:
        try:
            yield from read()
        except InputError as error:
            yield Problem(error.place, error.line, error.problem)
        except Exception as error:  # the agent outlives a file nobody has seen before
            yield Problem(str(self.root), None, f"cannot be sampled: {type(error).__name__}: {error}")

    def _news(self, problem: Problem) -> list[Item]:
        """Each problem counts; it is reported once per segment."""
        self.health.refused += 1
        segment = self.spool.sequence + (self.spool.writer is None)  # the one this tick goes into
        if self.reported_in != segment:
            self.reported, self.reported_in = set(), segment
        place = problem.place.encode("utf-8", "backslashreplace").decode()
        if (place, problem.reason) in self.reported or len(self.reported) >= PROBLEMS_PER_SEGMENT:
            return []
        self.reported.add((place, problem.reason))
        return [Problem(place, problem.line, problem.reason)]
