"""What is served beside a Lustre server: mounted file systems, block devices, and the health of a running agent."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, NamedTuple

from iolens.agent.exporter import metrics
from iolens.agent.exporter.fsu import Baselines, ChosenCalibration, ExportedTarget, ExportedUtilization, Steady
from iolens.agent.exporter.lustre import IO_METRICS
from iolens.agent.exporter.metrics import ExportedMetric, Lines, add, add_histogram, labels
from iolens.agent.exporter.reading import MetricReading
from iolens.agent.sampling.sampler import STATUS_FILE
from iolens.config import DeviceRule
from iolens.errors import InputError
from iolens.records import Problem, Sample
from iolens.schema import DIRECTIONS
from iolens.sources.devices.diskstats import DISKSTATS, BlockDevices
from iolens.sources.lustre import lustre_client_proc
from iolens.sources.lustre.parameters import LLITE, MDC, OSC
from iolens.sources.reading.options import ReadOptions
from iolens.units import MIB

# The file systems that a machine has mounted as Prometheus samples ----------------------------------------------------
# Under the names of other exporters.
#
# A client has an OSC for every OST: a series for each, on thousands of nodes, would kill Prometheus. So what the OSCs
# and MDCs count is summed over a mount, unless they are asked for one by one.

LARGEST_RPC: Final = 64 * MIB
_HISTOGRAMS: Final = {
    "rpcs_in_flight": metrics.RPCS_IN_FLIGHT,
    "modify_rpcs_in_flight": metrics.RPCS_IN_FLIGHT,
    "offset_pages": metrics.RPCS_OFFSET,
}
_REQUESTS: Final = {OSC: metrics.OSC_REQUESTS, MDC: metrics.MDC_REQUESTS}
_REQUEST_TIMES: Final = {OSC: metrics.OSC_TIMES, MDC: metrics.MDC_TIMES}
_CARRIED: Final = {"read_bytes": metrics.OSC_READ_BYTES, "write_bytes": metrics.OSC_WRITE_BYTES}

_SET_NAME: Final = re.compile(r"(\w+)(?:\.(.+?))??\.(\w*stats)(?:\.\w+)?", re.DOTALL)


class CounterPlace(NamedTuple):
    """What the name of a counter set says: `osc.scratch-OST0000.rpc_stats@ffff88105db50000`."""

    family: str
    device: str  # the OST or MDT; empty: the file system as a whole
    leaf: str
    mount: str

    @classmethod
    def of(cls, set_name: str) -> CounterPlace:
        """As `sources.lustre.client` names them."""
        name, _, instance = set_name.rpartition("@")
        parts = _SET_NAME.fullmatch(name)
        return cls(name, "", "", instance) if parts is None else cls(parts[1], parts[2] or "", parts[3], instance)


@dataclass(slots=True)
class ClientMounts:
    """Reads all mounts under a root; `by_target`: with a series for each OST and MDT."""

    root: Path
    options: ReadOptions = field(default_factory=ReadOptions)
    by_target: bool = False
    baselines: Baselines = field(default_factory=Baselines)

    def read(self) -> MetricReading[list[str]]:
        """One reading; a server without mounts has none, and nothing to complain about."""
        if not lustre_client_proc.has_mounts(self.root):
            return MetricReading({}, 0)
        page = _ClientPage(self.by_target)
        self.baselines.begin()
        try:
            for item in lustre_client_proc.read_tree(self.root, time.time_ns() // 1000, self.options):
                if isinstance(item, Sample):
                    page.take(item, self.baselines.take(item))
                page.problems += isinstance(item, Problem)
        except InputError as error:
            return MetricReading({}, 1, str(error))
        return MetricReading(page.lines(), page.problems)


@dataclass(slots=True)
class _ClientPage:
    """One reading in the making: sums by metric and labels."""

    by_target: bool
    sums: dict[ExportedMetric, dict[str, int]] = field(default_factory=dict)
    pages: dict[tuple[str, str], dict[int, int]] = field(default_factory=dict)  # RPCs by mount and direction
    page_bytes: dict[str, int] = field(default_factory=dict)  # by mount
    problems: int = 0

    def take(self, sample: Sample, steady: Steady) -> None:
        """All mounts of one file system, of one table."""
        for set_name in sample.sets:
            place = CounterPlace.of(set_name)
            if sample.table == "client_rpcs":
                self.page_bytes[self._labels(sample, place._replace(device=""))] = int(sample.labels["page_bytes"])
            if (reader := _READERS.get(sample.table)) is not None:
                reader(self, sample, place, steady.counters(set_name))

    def lines(self) -> Lines:
        """The page, and the sizes of RPCs in bytes."""
        lines: Lines = {}
        for metric, by_labels in self.sums.items():
            for labelled, value in by_labels.items():
                add(lines, metric, labelled, value)
        for mount, size in self.page_bytes.items():
            add(lines, metrics.CLIENT_PAGE_BYTES, mount, size)
        for (mount, direction), counts in self.pages.items():
            bins = [(pages * self.page_bytes[mount], counts.get(pages, 0)) for pages in _powers(self.page_bytes[mount])]
            beyond = sum(counts.values()) - sum(count for _, count in bins)
            add_histogram(lines, metrics.CLIENT_RPC_BYTES, f'{mount},direction="{direction}"', bins, beyond)
        return lines

    def io(self, sample: Sample, place: CounterPlace, counters: Mapping[str, int]) -> None:
        """Bytes and calls of applications."""
        for name, (metric, operation) in IO_METRICS.items():
            if name in counters:
                self._add(metric, f'{self._labels(sample, place)},operation="{operation}"', counters[name])

    def metadata(self, sample: Sample, place: CounterPlace, counters: Mapping[str, int]) -> None:
        """Metadata calls of applications, and their time."""
        for name, value in counters.items():
            operation, _, unit = name.partition(":")
            metric = metrics.STATS_TIME if unit else metrics.STATS
            self._add(metric, f"{self._labels(sample, place)},{labels(operation=operation)}", value)

    def rpcs(self, sample: Sample, place: CounterPlace, counters: Mapping[str, int]) -> None:
        """RPCs by pages."""
        mount = self._labels(sample, place._replace(device=""))
        for direction in DIRECTIONS:
            counts = self.pages.setdefault((mount, direction), {})
            for pages, count in _bins(counters, direction):
                counts[pages] = counts.get(pages, 0) + count
                named = f'{self._labels(sample, place)},operation="{direction}",size="{pages}"'
                self._add(metrics.PAGES_PER_RPC, named, count)

    def histograms(self, sample: Sample, place: CounterPlace, counters: Mapping[str, int]) -> None:
        """The other sections of rpc_stats."""
        for name, count in counters.items():
            _, section, operation, size = name.rsplit(":", 3)
            metric = _HISTOGRAMS.get(section)
            if metric is not None:
                kind = f',type="{place.family}"' if "type" in metric.labels else ""
                self._add(metric, f'{self._labels(sample, place)},operation="{operation}",size="{size}"{kind}', count)

    def requests(self, sample: Sample, place: CounterPlace, counters: Mapping[str, int]) -> None:
        """Requests to OSTs and MDTs, their times, and the bytes that RPCs carried."""
        if place.family not in _REQUESTS:
            return
        named = self._lustrefs_labels(sample, place)
        for name, value in counters.items():
            operation, _, unit = name.removeprefix(f"{place.device}:").partition(":")
            metric = _REQUESTS[place.family]
            if place.leaf == "md_stats":
                metric = metrics.MD_REQUESTS
            elif unit == "us":
                metric = _REQUEST_TIMES[place.family]
            elif unit:
                if operation in _CARRIED and place.family == OSC:
                    self._add(_CARRIED[operation], named, value)
                continue
            self._add(metric, f"{named},{labels(operation=operation)}", value)

    def _add(self, metric: ExportedMetric, labelled: str, value: int) -> None:
        by_labels = self.sums.setdefault(metric, {})
        by_labels[labelled] = by_labels.get(labelled, 0) + value

    def _labels(self, sample: Sample, place: CounterPlace) -> str:
        return labels(component="client", filesystem=sample.filesystem, target=self._target(sample, place))

    def _lustrefs_labels(self, sample: Sample, place: CounterPlace) -> str:
        """`fs` is what lustrefs-exporter calls a file system."""
        return labels(filesystem=sample.filesystem, fs=sample.filesystem, target=self._target(sample, place))

    def _target(self, sample: Sample, place: CounterPlace) -> str:
        """The name of the mount's directory, or of the OSC's or MDC's."""
        if self.by_target and place.family != LLITE and place.device:
            return f"{place.device}-{place.family}-{place.mount}"
        return f"{sample.filesystem}-{place.mount}" if place.mount else sample.filesystem


_READERS: Final[Mapping[str, Callable[[_ClientPage, Sample, CounterPlace, Mapping[str, int]], None]]] = {
    "client_io": _ClientPage.io,
    "client_metadata": _ClientPage.metadata,
    "client_rpcs": _ClientPage.rpcs,
    "client_histograms": _ClientPage.histograms,
    "client_ops": _ClientPage.requests,
}


def _powers(page_bytes: int) -> list[int]:
    """Pages per RPC, from one to the largest RPC."""
    return [1 << power for power in range((LARGEST_RPC // page_bytes).bit_length())]


def _bins(counters: Mapping[str, int], direction: str) -> Iterator[tuple[int, int]]:
    """All bins of one direction up to the largest that counted: a series begins before it moves."""
    counts = {}
    for name, count in counters.items():
        _, named, pages = name.rsplit(":", 2)
        if named == direction:
            counts[int(pages)] = count
    row = 1
    while row < max(counts, default=0):
        counts.setdefault(row, 0)
        row *= 2
    yield from sorted(counts.items())


# The health of a running agent, from the status file in its spool -----------------------------------------------------

LARGEST_BYTES: Final = 1 << 16


def read_agent(spool: Path) -> MetricReading[list[str]]:
    """What `iolens collect` last wrote of itself; the age of its last tick tells whether it still runs."""
    path = spool / STATUS_FILE
    try:
        said = _status(path)
    except OSError as error:
        return MetricReading({}, 1, f"{path}: {error.strerror}")
    except ValueError:
        return MetricReading({}, 1, f"{path}: not JSON")
    if not isinstance(said, dict):
        return MetricReading({}, 1, f"{path}: not the status of an agent")
    return _reading(said)


def last_tick_age_s(spool: Path, now_s: float) -> float | None:
    """Seconds since the agent's last tick; None where its status does not say."""
    try:
        time_us = _status(spool / STATUS_FILE)["time"]
    except (OSError, ValueError, LookupError, TypeError):
        return None
    return now_s - time_us / 1e6 if _is_number(time_us) else None


def _status(path: Path) -> Any:
    with path.open("rb") as stream:
        return json.loads(stream.read(LARGEST_BYTES))


def _reading(said: Mapping[str, Any]) -> MetricReading[list[str]]:
    lines: Lines = {}
    problems = 0
    for name, metric in metrics.AGENT_FIELDS.items():
        if _is_number(said.get(name)):
            add(lines, metric, "", said[name])
        else:
            problems += 1
    if _is_number(said.get("time")):
        add(lines, metrics.AGENT_LAST_TICK, "", said["time"] / 1e6)
    else:
        problems += 1
    add(lines, metrics.AGENT_TROUBLE, "", int(bool(said.get("trouble"))))
    add(lines, metrics.AGENT, labels(host=str(said.get("host", "")), run=str(said.get("run", ""))), 1)
    return MetricReading(lines, problems)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < 1e300  # false for nan


# FSU of block devices from `/proc/diskstats` (U9), beside the kernel's own idea of busy -------------------------------
# Bytes, operations and times of devices are node_exporter's: `node_disk_*` has them all. Served here is what it lacks.


@dataclass(slots=True)
class DeviceTargets:
    """Reads the block devices under a root that the rule keeps."""

    devices: BlockDevices
    utilization: ExportedUtilization
    baselines: Baselines = field(default_factory=Baselines)

    @classmethod
    def of(
        cls,
        root: Path,
        calibration_of: Callable[[str], ChosenCalibration],
        rule: DeviceRule,
        filesystem: str | None = None,
    ) -> DeviceTargets:
        """The devices of a machine."""
        return cls(BlockDevices(root, rule, filesystem), ExportedUtilization("counters", calibration_of))

    @staticmethod
    def are_under(root: Path) -> bool:
        """Whether there is a list of devices at all."""
        return (root / DISKSTATS).is_file()

    def read(self) -> MetricReading[list[str]]:
        """One reading."""
        lines: Lines = {}
        problems = 0
        self.baselines.begin()
        for item in self.devices.read(time.time_ns() // 1000):
            problems += isinstance(item, Problem)
            if isinstance(item, Sample):
                target = ExportedTarget(item.filesystem, item.target, "device")
                steady = self.baselines.take(item)
                self.utilization.add(lines, target, steady)
                _add_kernel_busy(lines, target, steady)
        self.utilization.add_calibrations(lines)
        return MetricReading(lines, problems, "" if lines or not problems else "no device could be read")


def _add_kernel_busy(lines: Lines, target: ExportedTarget, steady: Steady) -> None:
    movement = steady.step.movements.get("")
    if movement is not None and steady.step.duration_s > 0 and "busy_us" in movement.moved:
        busy_pct = movement.moved["busy_us"] / 1e4 / steady.step.duration_s
        add(lines, metrics.DEVICE_UTIL, target.labels, busy_pct)
