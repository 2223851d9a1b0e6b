"""FSU as Prometheus needs it: a counter of modelled disk time, and a gauge over the last interval.

The counter is Eq. 7's numerator T, made straight from all counts since they began. So it is reset exactly when they
are, and `100 * rate(...)` is FSU over any window.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final, NamedTuple

from iolens.agent.exporter import metrics
from iolens.agent.exporter.counters import Steady
from iolens.agent.exporter.text import Lines, add, labels
from iolens.counters.differences import Outcome
from iolens.models.saturation import DEFAULT_CEILING_PCT, FsuCeiling
from iolens.models.transaction_time import (
    Calibration,
    CalibrationState,
    counter_costs,
    histogram_costs,
    utilization_pct,
)

HOLDS_INTERVALS: Final = 3.0  # a target that prints nothing new for so long says nothing of now …
LEAST_HOLD_S: Final = 60.0  # … nor for so long


class ExportedTarget(NamedTuple):
    """An OST, an MDT or a block device."""

    filesystem: str
    name: str
    component: str

    @property
    def labels(self) -> str:
        """Its labels, as text."""
        return _labels_of(self)


@lru_cache(maxsize=1024)
def _labels_of(target: ExportedTarget) -> str:
    return labels(component=target.component, filesystem=target.filesystem, target=target.name)


class ChosenCalibration(NamedTuple):
    """The calibration of a file system (borrowed: not made on it), and the FSU of its disks when they are full.

    `state` says whether FSU has a level: while it is assumed, nobody chose the calibration, and there is no ceiling.
    """

    calibration: Calibration
    borrowed: bool
    ceiling: FsuCeiling = FsuCeiling(DEFAULT_CEILING_PCT, "default")
    state: CalibrationState = CalibrationState.CLASS


class _Gauge(NamedTuple):
    """FSU of the last interval, and until when it is served."""

    fsu_pct: float | None
    until_s: float


_NO_GAUGE: Final = _Gauge(None, -math.inf)

Costs = dict[str, float]  # seconds that one count of a counter stands for
MODELS: Final[dict[str, Callable[[Calibration], Costs]]] = {"histogram": histogram_costs, "counters": counter_costs}


def busy_seconds(counters: Mapping[str, int], costs: Costs) -> float:
    """Modelled time of all that was counted. Correctly rounded, so that more never takes less."""
    return math.fsum(counters[name] * cost for name, cost in costs.items() if counters.get(name))


@dataclass(slots=True)
class ExportedUtilization:
    """FSU of a collector's targets, all by one model."""

    model: str
    calibration_of: Callable[[str], ChosenCalibration]
    _chosen: dict[str, ChosenCalibration] = field(default_factory=dict)
    _costs: dict[str, Costs] = field(default_factory=dict)
    _fsu: dict[ExportedTarget, _Gauge] = field(default_factory=dict)
    now_s: Callable[[], float] = time.monotonic

    def add(self, lines: Lines, target: ExportedTarget, steady: Steady) -> None:
        """Counter and gauge of one target."""
        calibration = self._calibration(target.filesystem)
        named = f"{target.labels},{labels(calibration=calibration.name, model=self.model)}"
        add(lines, metrics.BUSY, named, busy_seconds(steady.counters(), self._costs[target.filesystem]))
        fsu_pct = self._since_last(target, steady)
        if fsu_pct is not None:
            add(lines, metrics.FSU, named, fsu_pct)

    def add_calibrations(self, lines: Lines) -> None:
        """Which calibration each file system has, how far it can be trusted, and its ceiling where it has levels."""
        for filesystem, (calibration, borrowed, ceiling, state) in sorted(self._chosen.items()):
            named = labels(borrowed=str(borrowed).lower(), calibration=calibration.name, filesystem=filesystem)
            add(lines, metrics.CALIBRATION, f"{named},{labels(model=self.model)}", 1)
            add(lines, metrics.CALIBRATION_STATE, labels(filesystem=filesystem, model=self.model, state=state), 1)
            if state is CalibrationState.ASSUMED:
                continue
            named = labels(filesystem=filesystem, model=self.model, origin=ceiling.origin)
            add(lines, metrics.CEILING, named, ceiling.pct)

    def _calibration(self, filesystem: str) -> Calibration:
        if filesystem not in self._chosen:
            self._chosen[filesystem] = self.calibration_of(filesystem)
            self._costs[filesystem] = MODELS[self.model](self._chosen[filesystem].calibration)
        return self._chosen[filesystem].calibration

    def _since_last(self, target: ExportedTarget, steady: Steady) -> float | None:
        """FSU since the last reading; the one before for a while when the target has printed nothing new."""
        step, now_s = steady.step, self.now_s()
        if step.outcome is Outcome.INTERVAL and "" in step.movements and step.duration_s > 0:
            busy_s = busy_seconds(step.movements[""].moved, self._costs[target.filesystem])
            until_s = now_s + max(HOLDS_INTERVALS * step.duration_s, LEAST_HOLD_S)
            self._fsu[target] = _Gauge(utilization_pct(busy_s, step.duration_s), until_s)
        elif step.outcome is not Outcome.REPEATED or now_s > self._fsu.get(target, _NO_GAUGE).until_s:
            self._fsu.pop(target, None)
        return self._fsu.get(target, _NO_GAUGE).fsu_pct
