"""Raw counters that fall only when they were really reset, and FSU as Prometheus needs it: a counter of modelled disk
time.
"""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final, NamedTuple

from iolens.agent.exporter import metrics
from iolens.agent.exporter.metrics import Lines, add, labels
from iolens.counters.differences import Baseline, CounterStep, Outcome, advance
from iolens.models.transaction_time import (
    COVERED_SHARE,
    DEFAULT_CEILING_PCT,
    REFUTED_ABOVE_PCT,
    REFUTED_OVER_S,
    Calibration,
    CalibrationState,
    FsuCeiling,
    counter_costs,
    histogram_costs,
    utilization_pct,
)
from iolens.records import Sample

# Raw counters that only fall when they were really reset, and what moved since the last reading -----------------------
# Prometheus takes every fall for a reset and counts the whole value anew: a counter that steps back by one would become
# all its traffic since boot. So a glitch, as the store knows it, is held at what it was.


class Steady(NamedTuple):
    """One sample and the step from the one before."""

    sample: Sample
    step: CounterStep

    def counters(self, name: str = "") -> dict[str, int]:
        """The counters of a set, fit to be served: those of the sample, glitches held."""
        held = self.step.baseline.sets[name].counters
        return {counter: held[counter] for counter in self.sample.sets[name].counters}


@dataclass(slots=True)
class Baselines:
    """The last counters of every target and table; what was not seen in a round is forgotten."""

    _before: dict[Hashable, Baseline] = field(default_factory=dict)
    _now: dict[Hashable, Baseline] = field(default_factory=dict)

    def begin(self) -> None:
        """A new round of samples."""
        self._before, self._now = self._now, {}

    def take(self, sample: Sample) -> Steady:
        """The next sample of a target and table."""
        key = (sample.table, sample.filesystem, sample.target)
        step = advance(self._before.pop(key, None), sample)
        if step.outcome in (Outcome.OLDER, Outcome.UNORDERED):  # the server's clock was set back: begin anew
            step = advance(None, sample)
        self._now[key] = step.baseline
        return Steady(sample, step)


# FSU as Prometheus needs it -------------------------------------------------------------------------------------------
# A counter of modelled disk time, and a gauge over the last interval.
#
# The counter is Eq. 7's numerator T, made straight from all counts since they began. So it is reset exactly when they
# are, and `100 * rate(...)` is FSU over any window.

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


class _BusyReading(NamedTuple):
    """What the OSTs or devices of a file system did between two readings: seconds, and those they need for it."""

    end_s: float
    longest_s: float
    covered_s: float  # of all targets
    busy_s: float


@dataclass(slots=True)
class TenMinutes:
    """Whether a mean FSU over ten minutes ever was more than targets can do, however the coefficients came about."""

    is_refuting: bool = False
    _waiting: list[tuple[float, float]] = field(default_factory=list)  # of this reading: seconds, busy seconds
    _readings: deque[_BusyReading] = field(default_factory=deque)

    def add(self, covered_s: float, busy_s: float) -> None:
        """One target of this reading."""
        self._waiting.append((covered_s, busy_s))

    def end_reading(self, now_s: float) -> None:
        """All targets of this reading are there."""
        if not self._waiting:
            return
        covered, busy = zip(*self._waiting, strict=True)
        self._waiting.clear()
        self._readings.append(_BusyReading(now_s, max(covered), math.fsum(covered), math.fsum(busy)))
        while self._readings[0].end_s <= now_s - REFUTED_OVER_S:
            self._readings.popleft()
        if math.fsum(reading.longest_s for reading in self._readings) >= COVERED_SHARE * REFUTED_OVER_S:
            covered_s = math.fsum(reading.covered_s for reading in self._readings)
            busy_s = math.fsum(reading.busy_s for reading in self._readings)
            self.is_refuting |= utilization_pct(busy_s, covered_s) > REFUTED_ABOVE_PCT


@dataclass(slots=True)
class ExportedUtilization:
    """FSU of a collector's targets, all by one model."""

    model: str
    calibration_of: Callable[[str], ChosenCalibration]
    _chosen: dict[str, ChosenCalibration] = field(default_factory=dict)
    _costs: dict[str, Costs] = field(default_factory=dict)
    _fsu: dict[ExportedTarget, _Gauge] = field(default_factory=dict)
    _means: dict[str, TenMinutes] = field(default_factory=dict)
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
        """At the end of a reading: which calibration each file system has, how far it can be trusted, and its ceiling
        where it has levels.
        """
        for filesystem, (calibration, borrowed, ceiling, state) in sorted(self._chosen.items()):
            named = labels(borrowed=str(borrowed).lower(), calibration=calibration.name, filesystem=filesystem)
            add(lines, metrics.CALIBRATION, f"{named},{labels(model=self.model)}", 1)
            add(lines, metrics.CALIBRATION_STATE, labels(filesystem=filesystem, model=self.model, state=state), 1)
            is_refuted = self._is_refuted(filesystem)
            add(lines, metrics.CALIBRATION_REFUTED, labels(filesystem=filesystem, model=self.model), int(is_refuted))
            if is_refuted or state is CalibrationState.ASSUMED:
                continue
            named = labels(filesystem=filesystem, model=self.model, origin=ceiling.origin)
            add(lines, metrics.CEILING, named, ceiling.pct)

    def _calibration(self, filesystem: str) -> Calibration:
        if filesystem not in self._chosen:
            self._chosen[filesystem] = self.calibration_of(filesystem)
            self._costs[filesystem] = MODELS[self.model](self._chosen[filesystem].calibration)
        return self._chosen[filesystem].calibration

    def _is_refuted(self, filesystem: str) -> bool:
        """By all readings so far."""
        means = self._means.setdefault(filesystem, TenMinutes())
        means.end_reading(self.now_s())
        return means.is_refuting

    def _since_last(self, target: ExportedTarget, steady: Steady) -> float | None:
        """FSU since the last reading; the one before for a while when the target has printed nothing new."""
        step, now_s = steady.step, self.now_s()
        if step.outcome is Outcome.INTERVAL and "" in step.movements and step.duration_s > 0:
            busy_s = busy_seconds(step.movements[""].moved, self._costs[target.filesystem])
            until_s = now_s + max(HOLDS_INTERVALS * step.duration_s, LEAST_HOLD_S)
            self._fsu[target] = _Gauge(utilization_pct(busy_s, step.duration_s), until_s)
            if target.component != "mdt":  # as FSU of a file system leaves them out
                self._means.setdefault(target.filesystem, TenMinutes()).add(step.duration_s, busy_s)
        elif step.outcome is not Outcome.REPEATED or now_s > self._fsu.get(target, _NO_GAUGE).until_s:
            self._fsu.pop(target, None)
        return self._fsu.get(target, _NO_GAUGE).fsu_pct
