"""The state of the calibration of a result, the band of its mean FSU, and whether the data refute it (U4, U10).

FSU is linear in the coefficients, so its band is its mean times what the I/Os of the window cost by the ends of the
coefficients' intervals, over what they cost by the coefficients in use.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from iolens.analyses.calibration.applied import AppliedCalibration
from iolens.analyses.calibration.levels import FsuBand, RefutedCalibration
from iolens.arrays import Columns, Floats, Integers
from iolens.models.transaction_time import COVERED_SHARE, REFUTED_OVER_S, SIZE_COLUMNS, Calibration, weakest
from iolens.units import from_epoch_us


def calibration_of_result(
    applied: Sequence[AppliedCalibration],
    targets: Collection[str] | int,
    mean_pct: float | None,
    ios: Mapping[str, float] | None = None,
    refuted: RefutedCalibration | None = None,
) -> dict[str, Any]:
    """The fields of `RestsOnCalibration` of a result with such a mean.

    `targets` are those it is of, or their number. `ios` are its I/Os by column of `target_sizes`; without them the band
    is the widest that any mix of I/Os could give.
    """
    return calibration_of_held(holding(applied, targets), mean_pct, ios, refuted)


def calibration_of_held(
    held: Sequence[AppliedCalibration],
    mean_pct: float | None,
    ios: Mapping[str, float] | None = None,
    refuted: RefutedCalibration | None = None,
) -> dict[str, Any]:
    """The same of calibrations that all hold for some target."""
    is_upper_bound = any(item.is_upper_bound for item in held)
    return {
        "calibration_state": weakest(item.state for item in held),
        "calibration_evidence": _evidence(held),
        "fsu_band_pct": _band(held, mean_pct, ios, is_upper_bound),
        "fsu_is_upper_bound": is_upper_bound,
        "calibration_refuted": refuted,
    }


def holding(applied: Sequence[AppliedCalibration], targets: Collection[str] | int) -> list[AppliedCalibration]:
    """Those that hold for any of the targets; the general ones not, where classes have them all."""
    classed = {target for item in applied for target in item.targets or ()}
    some_left = targets > len(classed) if isinstance(targets, int) else not classed.issuperset(targets)
    held = [
        item
        for item in applied
        if (
            some_left if item.targets is None else isinstance(targets, int) or not set(item.targets).isdisjoint(targets)
        )
    ]
    return held or list(applied)


def _evidence(held: Sequence[AppliedCalibration]) -> str:
    """Short words; of several calibrations the state of each, and where it holds."""
    if len({(item.state, item.evidence) for item in held}) == 1:
        return held[0].evidence
    words = (f"{item.target_class or 'all others'} {item.state}: {item.evidence}" for item in held)
    return "; ".join(dict.fromkeys(words))


def _band(
    held: Sequence[AppliedCalibration], mean_pct: float | None, ios: Mapping[str, float] | None, is_upper_bound: bool
) -> FsuBand | None:
    """The widest of all that hold; None where one of them has no interval."""
    if mean_pct is None or not np.isfinite(mean_pct):
        return None
    factors = [_factors(item, ios) for item in held]
    known = [pair for pair in factors if pair is not None]
    if len(known) < len(factors):
        return None
    low = 0.0 if is_upper_bound else min(low for low, _ in known)
    return FsuBand(mean_pct * low, mean_pct * max(high for _, high in known))


def _factors(item: AppliedCalibration, ios: Mapping[str, float] | None) -> tuple[float, float] | None:
    """What a mix of I/Os costs by the low and by the high ends, relative to the coefficients in use."""
    if item.high is None or (item.low is None and not item.is_upper_bound):
        return None
    low = item.low or item.calibration
    cost = 0.0 if ios is None else _cost(item.calibration, ios)
    if ios is not None and cost > 0:
        return _cost(low, ios) / cost, _cost(item.high, ios) / cost
    return min(_ratios(low, item.calibration), default=1.0), max(_ratios(item.high, item.calibration), default=1.0)


def _cost(calibration: Calibration, ios: Mapping[str, float]) -> float:
    """Seconds of those I/Os."""
    return sum(
        count * calibration.of(direction).seconds(size)
        for name, count in ios.items()
        for direction, size in (SIZE_COLUMNS[name],)
    )


def _ratios(end: Calibration, used: Calibration) -> list[float]:
    """Of each coefficient that is used."""
    pairs = [
        (getattr(end.of(direction), name), getattr(used.of(direction), name))
        for direction in ("read", "write")
        for name in ("latency_s", "s_per_byte")
    ]
    return [at_end / in_use for at_end, in_use in pairs if in_use > 0]


@dataclass(slots=True)
class LargestMean:
    """The largest mean FSU over ten minutes, fed with ticks in time order."""

    pct: float | None = None
    until_us: int = 0
    _ends: Integers = field(default_factory=lambda: np.empty(0, np.int64))
    _seconds: Floats = field(default_factory=lambda: np.empty(0))
    _fsu: Floats = field(default_factory=lambda: np.empty(0))

    def add(self, ticks: Columns) -> None:
        """Ticks with `epoch_us`, `seconds` and `fsu`; the last ten minutes before them are remembered."""
        ends = np.concatenate([self._ends, ticks["epoch_us"]])
        seconds = np.concatenate([self._seconds, ticks["seconds"]])
        fsu = np.concatenate([self._fsu, ticks["fsu"]])
        if not len(ends):
            return
        first = np.searchsorted(ends, ends - round(REFUTED_OVER_S * 1e6), side="right")
        past = np.arange(1, len(ends) + 1)
        covered, busy = (np.concatenate([[0.0], np.cumsum(values)]) for values in (seconds, fsu * seconds))
        covered, busy = covered[past] - covered[first], busy[past] - busy[first]
        means = np.divide(busy, covered, out=np.zeros(len(ends)), where=covered >= COVERED_SHARE * REFUTED_OVER_S)
        place = int(np.argmax(means.round(6)))  # engines differ in the last digits
        if covered[place] >= COVERED_SHARE * REFUTED_OVER_S and (self.pct is None or means[place] > self.pct):
            self.pct, self.until_us = float(means[place]), int(ends[place])
        recent = slice(int(first[-1]), None)
        self._ends, self._seconds, self._fsu = ends[recent], seconds[recent], fsu[recent]

    @property
    def refuted(self) -> RefutedCalibration | None:
        """Whether no target can do that."""
        return RefutedCalibration.by(self.pct, from_epoch_us(self.until_us))
