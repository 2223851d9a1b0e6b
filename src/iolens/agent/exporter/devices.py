"""FSU of block devices from `/proc/diskstats` (U9), beside the kernel's own idea of busy.

Bytes, operations and times of devices are node_exporter's: `node_disk_*` has them all. Served here is what it lacks.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from iolens.agent.exporter import metrics
from iolens.agent.exporter.counters import Baselines, Steady
from iolens.agent.exporter.fsu import ChosenCalibration, ExportedTarget, ExportedUtilization
from iolens.agent.exporter.reading import MetricReading
from iolens.agent.exporter.text import Lines, add
from iolens.config import DeviceRule
from iolens.records import Problem, Sample
from iolens.sources.devices.diskstats import DISKSTATS, BlockDevices


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
