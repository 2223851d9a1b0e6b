"""The targets of a Lustre server as Prometheus samples: what other exporters serve too, under their names, and FSU."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from iolens.agent.exporter import metrics
from iolens.agent.exporter.fsu import Baselines, ChosenCalibration, ExportedTarget, ExportedUtilization, Steady
from iolens.agent.exporter.jobs import Reader
from iolens.agent.exporter.metrics import ExportedMetric, Lines, add, add_histogram, labels
from iolens.agent.exporter.reading import MetricReading
from iolens.errors import InputError
from iolens.histogram_names import IN_FLIGHT, IN_FLIGHT_POW2, IO_TIME
from iolens.records import Item, Problem, Row, Sample
from iolens.schema import DIRECTIONS, SIZE_BINS, size_column
from iolens.sources.lustre.lustre_proc import read_tree
from iolens.sources.lustre.parameters import SLOW_LEAVES
from iolens.sources.lustre.stats import EARLY_MDT_OPERATIONS
from iolens.units import KIB

_POWERS: Final = tuple(1 << power for power in range(32))  # an obd histogram has 32 rows
_LINEAR: Final = tuple(range(32))
_TIMES_MS: Final = _POWERS[:17]  # 1 ms to 65.5 s; slower I/Os fall under +Inf
_SECTIONS: Final[dict[str, tuple[ExportedMetric, tuple[int, ...]]]] = {
    "pages_per_bulk": (metrics.PAGES, _POWERS),
    "discontiguous_pages": (metrics.DISCONTIGUOUS_PAGES, _LINEAR),
    "discontiguous_blocks": (metrics.DISCONTIGUOUS_BLOCKS, _LINEAR),
    "disk_fragmented_ios": (metrics.FRAGMENTS, _LINEAR),
    IN_FLIGHT: (metrics.IN_FLIGHT, _LINEAR),
    IN_FLIGHT_POW2: (metrics.IN_FLIGHT_POW2, _POWERS),
    IO_TIME: (metrics.IO_TIME, _POWERS),
    "block_maps_ms": (metrics.BLOCK_MAPS, _POWERS),
}
IO_METRICS: Final = {
    "read_bytes": (metrics.READ_BYTES, "read"),
    "write_bytes": (metrics.WRITE_BYTES, "write"),
    "read_ops": (metrics.READ_SAMPLES, "read"),
    "write_ops": (metrics.WRITE_SAMPLES, "write"),
}
_FULLNESS: Final = (
    (metrics.CAPACITY, "total_bytes", KIB),
    (metrics.FREE, "free_bytes", KIB),
    (metrics.AVAILABLE, "available_bytes", KIB),
    (metrics.INODES, "total_inodes", 1),
    (metrics.INODES_FREE, "free_inodes", 1),
)
_RECOVERY_CODES: Final = {"COMPLETE": 0, "INACTIVE": 1, "WAITING": 2, "WAITING_FOR_CLIENTS": 3, "RECOVERING": 4}
_RECOVERY_OTHER: Final = 5
_RECOVERY: Final = (
    (metrics.RECOVERY_COMPLETED, "completed_clients"),
    (metrics.RECOVERY_EXPECTED, "expected_clients"),
    (metrics.RECOVERY_DURATION, "recovery_duration_s"),
    (metrics.RECOVERY_REMAINING, "recovery_remaining_s"),
)


@dataclass(slots=True)
class LustreTargets:
    """Reads all targets under a root, but for their jobs. Remembers the last counters for FSU since then."""

    root: Path
    utilization: ExportedUtilization
    filesystem: str | None = None
    read_items: Reader = read_tree
    baselines: Baselines = field(default_factory=Baselines)

    @classmethod
    def of(
        cls, root: Path, calibration_of: Callable[[str], ChosenCalibration], filesystem: str | None = None
    ) -> LustreTargets:
        """The targets of a server."""
        return cls(root, ExportedUtilization("histogram", calibration_of), filesystem)

    def read(self) -> MetricReading[list[str]]:
        """One reading."""
        round_ = _Round(self)
        self.baselines.begin()
        try:
            for item in self.read_items(self.root, time.time_ns() // 1000, self.filesystem, SLOW_LEAVES):
                round_.take(item)
        except InputError as error:
            return MetricReading({}, 1, str(error))
        return round_.finish()


@dataclass(slots=True)
class _Round:
    """One reading in the making."""

    server: LustreTargets
    lines: Lines = field(default_factory=dict)
    versions: dict[ExportedTarget, str] = field(default_factory=dict)
    stamps: dict[ExportedTarget, tuple[int, int | None]] = field(default_factory=dict)
    problems: int = 0

    def take(self, item: Item) -> None:
        if isinstance(item, Sample):
            kind = item.labels.get("target_kind", "mdt" if item.table == "metadata_ops" else "ost")
            target = ExportedTarget(item.filesystem, item.target, kind)
            self.versions.setdefault(target, "")
            if item.table in _SAMPLES:
                _SAMPLES[item.table](self, target, item, self.server.baselines.take(item))
        elif isinstance(item, Row):
            values = item.values
            target = ExportedTarget(str(values["filesystem"]), str(values["target"]), str(values["target_kind"]))
            self.versions.setdefault(target, "")
            _ROWS[item.table](self, target, values)
        elif isinstance(item, Problem):
            self.problems += 1

    def finish(self) -> MetricReading[list[str]]:
        """What is known of a target as a whole, and of the calibrations."""
        for target, version in self.versions.items():
            add(self.lines, metrics.TARGET_SEEN, f"{target.labels},{labels(lustre_version=version)}", 1)
        for target, (snapshot_us, start_us) in self.stamps.items():
            add(self.lines, metrics.SNAPSHOT, target.labels, snapshot_us / 1e6)
            if start_us is not None:
                add(self.lines, metrics.START, target.labels, start_us / 1e6)
        self.server.utilization.add_calibrations(self.lines)
        return MetricReading(self.lines, self.problems)

    def io(self, target: ExportedTarget, sample: Sample, steady: Steady) -> None:
        """Bytes, RPCs and service time."""
        self.stamps[target] = (sample.snapshot_us, sample.sets[""].start_us)
        counters = steady.counters()
        for name, (metric, operation) in IO_METRICS.items():
            if name in counters:
                add(self.lines, metric, f'{target.labels},operation="{operation}"', counters[name])
        for direction in DIRECTIONS:
            if (waited := counters.get(f"{direction}_wait_us")) is not None:
                add(self.lines, metrics.WAIT, f'{target.labels},direction="{direction}"', waited / 1e6)

    def metadata(self, target: ExportedTarget, sample: Sample, steady: Steady) -> None:
        """Metadata operations and their time."""
        self.stamps[target] = (sample.snapshot_us, sample.sets[""].start_us)
        # Lustre 2.0 counts by client, and a sum over clients falls when one goes: that is not served.
        unserved = EARLY_MDT_OPERATIONS if len(sample.sets) > 1 else ()
        for name, value in steady.counters().items():
            operation = name.removesuffix("_us")
            if operation in unserved:
                continue
            metric = metrics.STATS if operation == name else metrics.STATS_TIME
            add(self.lines, metric, f'{target.labels},operation="{operation}"', value)

    def sizes(self, target: ExportedTarget, sample: Sample, steady: Steady) -> None:
        """Disk I/Os by size, and the time the model gives them."""
        self.stamps.setdefault(target, (sample.snapshot_us, sample.sets[""].start_us))
        counters = steady.counters()
        for direction in DIRECTIONS:
            bins = [(size, counters[size_column(direction, size)]) for size in SIZE_BINS]
            outside = counters[f"{direction}_ios_outside"]
            self._bins(metrics.DISK_IO_SIZES, target, direction, bins)
            named = f'{target.labels},direction="{direction}"'
            add_histogram(self.lines, metrics.IO_SIZE_BYTES, named, bins, outside)
            add(self.lines, metrics.OUTSIDE, named, outside)
        self.server.utilization.add(self.lines, target, steady)

    def histograms(self, target: ExportedTarget, sample: Sample, steady: Steady) -> None:
        """The other sections of brw_stats."""
        for section in _SECTIONS.keys() & sample.sets.keys():  # latency by size is not served
            metric, rows = _SECTIONS[section]
            by_direction = _by_direction(steady.counters(section))
            self.problems += sum(label not in rows for counts in by_direction.values() for label in counts)
            for direction, counts in by_direction.items():
                largest = max((row for row in rows if row in counts), default=-1)
                self._bins(metric, target, direction, [(row, counts.get(row, 0)) for row in rows if row <= largest])
                if section == IO_TIME:
                    bins = [(row / 1000, counts.get(row, 0)) for row in _TIMES_MS]
                    slower = sum(count for label, count in counts.items() if label > _TIMES_MS[-1])
                    named = f'{target.labels},direction="{direction}"'
                    add_histogram(self.lines, metrics.IO_TIME_SECONDS, named, bins, slower)

    def _bins(
        self, metric: ExportedMetric, target: ExportedTarget, operation: str, bins: Sequence[tuple[int, int]]
    ) -> None:
        names = self.lines.setdefault(metric.name, []) if bins else []
        head = f'{metric.name}{{{target.labels},operation="{operation}",size="'
        names += [f'{head}{label}"}} {count}' for label, count in bins]

    def capacity(self, target: ExportedTarget, values: Mapping[str, Any]) -> None:
        """How full a target is."""
        for metric, name, unit in _FULLNESS:
            if values[name] is not None:
                add(self.lines, metric, target.labels, values[name] // unit)

    def state(self, target: ExportedTarget, values: Mapping[str, Any]) -> None:
        """Version, clients, recovery."""
        self.versions[target] = values["version"] or ""
        if values["exports"] is not None:
            add(self.lines, metrics.EXPORTS, target.labels, values["exports"])
        named = labels(filesystem=target.filesystem, kind=target.component.upper(), target=target.name)
        if values["recovery_status"] is not None:
            code = _RECOVERY_CODES.get(values["recovery_status"].upper(), _RECOVERY_OTHER)
            add(self.lines, metrics.RECOVERY_STATUS, named, code)
        for metric, name in _RECOVERY:
            if values[name] is not None:
                add(self.lines, metric, named, values[name])


def _by_direction(counters: Mapping[str, int]) -> dict[str, dict[int, int]]:
    counts: dict[str, dict[int, int]] = {direction: {} for direction in DIRECTIONS}
    for name, count in counters.items():
        direction, _, label = name.partition(":")
        counts[direction][int(label)] = count
    return counts


_SAMPLES: Final[dict[str, Callable[[_Round, ExportedTarget, Sample, Steady], None]]] = {
    "target_io": _Round.io,
    "metadata_ops": _Round.metadata,
    "target_sizes": _Round.sizes,
    "target_histograms": _Round.histograms,
}
_ROWS: Final[dict[str, Callable[[_Round, ExportedTarget, Mapping[str, Any]], None]]] = {
    "target_capacity": _Round.capacity,
    "target_state": _Round.state,
}
