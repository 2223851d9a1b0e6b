"""`iolens export prometheus`: collectors side by side, their readings as one page.

Nothing here waits for the kernel longer than the timeout, and nothing is read more often than the interval, however
many scrape.
"""

from __future__ import annotations

import gzip
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Final, NamedTuple

from iolens.agent.exporter import metrics
from iolens.agent.exporter.clients import ClientMounts, DeviceTargets, last_tick_age_s, read_agent
from iolens.agent.exporter.fsu import ChosenCalibration
from iolens.agent.exporter.jobs import BusiestJobs
from iolens.agent.exporter.lustre import LustreTargets
from iolens.agent.exporter.metrics import Lines, add, labels, render
from iolens.agent.exporter.reading import MetricCollector, Served
from iolens.agent.sampling.sampler import rss_bytes
from iolens.config import DeviceRule
from iolens.sources.reading.options import ReadOptions

GZIP_LEVEL: Final = 1  # five times faster than the default, for a page half as large again
SHORTEST_WAIT_S: Final = 0.1
AGENT_FRESH_S: Final = 120.0  # as in the alert IolensAgentStopped


@dataclass(frozen=True, slots=True)
class ExporterSettings:
    """What `iolens export prometheus` was asked to serve."""

    root: Path
    calibration_of: Callable[[str], ChosenCalibration]
    version: str
    interval_s: float = 5.0
    jobs_interval_s: float = 30.0
    timeout_s: float = 5.0
    jobs: int = 10
    client_targets: bool = False  # series of a client for each OST and MDT, not only sums
    client: Mapping[str, Any] = field(default_factory=dict)  # `[sources.lustre-client-proc]`: node, page_size
    filesystem: str | None = None
    devices: DeviceRule | None = None  # None: no block devices
    spool: Path | None = None
    inherited: bool = True


def collectors(settings: ExporterSettings, say: Callable[[str], None]) -> list[MetricCollector[list[str]]]:
    """The collectors that the settings ask for."""
    root, interval_s = settings.root, settings.interval_s
    targets = LustreTargets.of(root, settings.calibration_of, settings.filesystem)
    metric_collectors = [MetricCollector("lustre", targets.read, interval_s, say)]
    if settings.jobs:
        jobs = BusiestJobs.of(root, settings.jobs, settings.filesystem)
        metric_collectors.append(MetricCollector("jobs", jobs.read, max(settings.jobs_interval_s, interval_s), say))
    mounts = ClientMounts(root, ReadOptions(settings=settings.client), settings.client_targets)
    metric_collectors.append(MetricCollector("clients", mounts.read, interval_s, say))
    if settings.devices is not None and DeviceTargets.are_under(root):
        devices = DeviceTargets.of(root, settings.calibration_of, settings.devices, settings.filesystem)
        metric_collectors.append(MetricCollector("devices", devices.read, interval_s, say))
    if settings.spool is not None:
        metric_collectors.append(MetricCollector("agent", partial(read_agent, settings.spool), interval_s, say))
    return metric_collectors


class MetricsPage(NamedTuple):
    """What is served; whether every collector answered, and whether any found something to measure."""

    body: bytes
    success: bool
    measured: bool


@dataclass(slots=True)
class Exporter:
    """All collectors. A page is made by one thread at a time, whoever asks."""

    settings: ExporterSettings
    collectors: Sequence[MetricCollector[list[str]]]
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def page(self, content_type: str, *, compress: bool = False, timeout_s: float | None = None) -> MetricsPage:
        """Everything that is known now, within the timeout."""
        wait_s = self.settings.timeout_s if timeout_s is None else min(timeout_s, self.settings.timeout_s)
        deadline = time.monotonic() + max(wait_s, SHORTEST_WAIT_S)
        for collector in self.collectors:
            collector.begin()
        served = {collector.name: collector.result(deadline) for collector in self.collectors}
        with self._lock:
            own = self._own(served)
            parts = [*(metric_reading.reading.metrics for metric_reading in served.values()), own]
            body = render(parts, content_type, inherited=self.settings.inherited)
            success = all(metric_reading.success for metric_reading in served.values())
            measured = any(metric_reading.reading.metrics for metric_reading in served.values())
            return MetricsPage(gzip.compress(body, GZIP_LEVEL, mtime=0) if compress else body, success, measured)

    def staleness(self) -> str:
        """Why there is no fresh sample, without a name of what is measured; empty where all is well."""
        deadline = time.monotonic() + self.settings.timeout_s
        for collector in self.collectors:
            collector.begin()
        served = {collector.name: collector.result(deadline) for collector in self.collectors}
        silent = [name for name, reading in served.items() if not reading.success]
        if silent:
            return f"no fresh sample of: {', '.join(silent)}"
        if not any(reading.reading.metrics for reading in served.values()):
            return "nothing to measure here"
        age_s = None if self.settings.spool is None else last_tick_age_s(self.settings.spool, time.time())
        return f"the agent's last sample is {age_s:.0f} s old" if age_s is not None and age_s > AGENT_FRESH_S else ""

    def _own(self, served: dict[str, Served[list[str]]]) -> Lines:
        lines: Lines = {}
        for name, metric_reading in served.items():
            named = labels(collector=name)
            add(lines, metrics.SUCCESS, named, int(metric_reading.success))
            add(lines, metrics.DURATION, named, metric_reading.duration_s)
            add(lines, metrics.PROBLEMS, named, metric_reading.reading.problems)
            if metric_reading.age_s is not None:
                add(lines, metrics.AGE, named, metric_reading.age_s)
        add(lines, metrics.BUILD, labels(version=self.settings.version), 1)
        add(lines, metrics.CPU, "", time.process_time())
        add(lines, metrics.MEMORY, "", rss_bytes())
        return lines
