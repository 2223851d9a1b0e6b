"""What a result that holds an FSU says of its calibration: its state, the band it gives, and which levels it has."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

import numpy as np

from iolens.analyses.calibration.applied import AppliedCalibration
from iolens.analyses.results import only_if_present
from iolens.arrays import Columns, Floats, Integers
from iolens.models.transaction_time import (
    COVERED_SHARE,
    REFUTED_ABOVE_PCT,
    REFUTED_OVER_S,
    SIZE_COLUMNS,
    Calibration,
    CalibrationState,
    weakest,
)
from iolens.units import from_epoch_us, iso

# What a result that holds an FSU says of its calibration --------------------------------------------------------------
# State, band, and whether FSU has levels (U4, U10).

NOT_CALIBRATED: Final = "not calibrated"
DISK_TIME_WITHOUT_LEVEL: Final = (
    "Seconds of disk time are by these coefficients too; shares of it hold among I/Os of one mix of sizes."
)


@dataclass(frozen=True, slots=True)
class FsuBand:
    """Mean FSU in per cent by the low and by the high ends of the coefficients; low is 0 of an upper bound."""

    low: float
    high: float


@dataclass(frozen=True, slots=True)
class RefutedCalibration:
    """Ten minutes whose mean FSU no target can reach: the coefficients are at least `times_smaller` times smaller."""

    mean_fsu_pct: float
    until: datetime | None
    times_smaller: float

    @classmethod
    def by(cls, mean_pct: float | None, until: datetime | None = None) -> RefutedCalibration | None:
        """Where such a mean is too high; None where it is not, or not known."""
        if mean_pct is None or not mean_pct > REFUTED_ABOVE_PCT:
            return None
        return cls(mean_pct, until, mean_pct / 100.0)


@dataclass(frozen=True, kw_only=True)  # no slots: a result has another base that has them
class RestsOnCalibration:
    """What every result says that holds an FSU. Null state: it holds none.

    `fsu_band_pct` is null where no interval of the coefficients is known. While the state is `assumed` or the FSU is an
    upper bound, levels mean nothing: what compares FSU with a level is null. Where the data refute a calibration that
    somebody measured or chose, the numbers are by it, and no sentence calls them load.
    """

    calibration_state: CalibrationState | None = CalibrationState.CLASS
    calibration_evidence: str | None = "given"
    fsu_band_pct: FsuBand | None = None
    fsu_is_upper_bound: bool = False
    calibration_refuted: RefutedCalibration | None = only_if_present()

    @property
    def is_calibrated(self) -> bool:
        """Whether there is a calibration by which FSU can be compared with a level."""
        return self.calibration_state is not CalibrationState.ASSUMED and not self.fsu_is_upper_bound

    @property
    def has_levels(self) -> bool:
        """Whether sentences may say what such an FSU means: the calibration is not refuted either."""
        return self.is_calibrated and self.calibration_refuted is None

    @property
    def without_level(self) -> str:
        """In two words, for an axis: why FSU has no level; empty where it has one."""
        if self.calibration_state is None or self.has_levels:
            return ""
        if self.calibration_state is CalibrationState.ASSUMED:
            return NOT_CALIBRATED
        return "an upper bound" if self.calibration_refuted is None else "calibration refuted"

    @property
    def calibration_words(self) -> str:
        """In a few words, for a title or an axis: `not calibrated`, `calibration measured, mean FSU 20.1 to 25.9 %`."""
        if self.calibration_state is None:
            return ""
        if self.calibration_state is CalibrationState.ASSUMED:
            return NOT_CALIBRATED
        if self.calibration_refuted is not None:
            return f"calibration {self.calibration_state}, refuted by the data"
        state, band = f"calibration {self.calibration_state}", self.fsu_band_pct
        if self.fsu_is_upper_bound:
            return f"{state}, an upper bound"
        return state if band is None else f"{state}, mean FSU {band.low:.3g} to {band.high:.3g} %"

    @property
    def level_unknown(self) -> str:
        """Why FSU has no level, in a sentence that stands before all others; empty where it has one."""
        if self.has_levels or self.calibration_state is None:
            return ""
        if self.calibration_refuted is not None:
            return _refuted_words(self.calibration_refuted, self.calibration_state, self.calibration_evidence)
        if self.calibration_state is CalibrationState.ASSUMED:
            return (
                "Not calibrated: what an I/O costs these targets was not measured, estimated or chosen"
                f" ({self.calibration_evidence}). FSU shows order and change here, not how much the targets can take"
                " (`iolens calibrate --help`)."
            )
        return (
            f"FSU is an upper bound here: the targets were not seen at their limit ({self.calibration_state};"
            f" {self.calibration_evidence}). How much they can take is not known."
        )


class HoldsDiskTime(RestsOnCalibration):
    """What a result says that holds seconds of disk time or shares of it, with or without an FSU."""

    @property
    def level_unknown(self) -> str:
        """The same, and what that means for disk time."""
        words = super().level_unknown
        return f"{words} {DISK_TIME_WITHOUT_LEVEL}" if words else ""


def _refuted_words(refuted: RefutedCalibration, state: CalibrationState, evidence: str | None) -> str:
    until = "" if refuted.until is None else f" until {iso(refuted.until)}"
    if state is CalibrationState.ASSUMED:
        begins = f"Not calibrated, and the data refute the default, which nobody chose ({evidence})"
    else:
        begins = f"The data refute the calibration ({state}; {evidence})"
    return (
        f"{begins}: mean FSU was {refuted.mean_fsu_pct:,.0f} % over ten minutes{until}, more than targets can do. It"
        f" says nothing of how much they can take: by these data the coefficients are at least"
        f" {refuted.times_smaller:,.3g} times smaller (`iolens calibrate --help`)."
    )


NO_FSU: Final[dict[str, Any]] = {"calibration_state": None, "calibration_evidence": None}  # of a result without one


def together(parts: Sequence[RestsOnCalibration], *, has_mean: bool) -> dict[str, Any]:
    """The fields of a result that is made of others: the weakest state, and of a mean of theirs the widest band."""
    held = [part for part in parts if part.calibration_state is not None]
    if not held:
        return NO_FSU
    refuted = [part.calibration_refuted for part in held if part.calibration_refuted is not None]
    return {
        "calibration_state": weakest(part.calibration_state for part in held if part.calibration_state is not None),
        "calibration_evidence": "; ".join(dict.fromkeys(part.calibration_evidence or "" for part in held)),
        "fsu_band_pct": _widest([part.fsu_band_pct for part in held]) if has_mean else None,
        "fsu_is_upper_bound": any(part.fsu_is_upper_bound for part in held),
        "calibration_refuted": max(refuted, key=lambda item: item.mean_fsu_pct, default=None),
    }


def _widest(bands: Sequence[FsuBand | None]) -> FsuBand | None:
    """From the lowest to the highest end; None where one of them is not known."""
    known = [band for band in bands if band is not None]
    if len(known) < len(bands):
        return None
    return FsuBand(min(band.low for band in known), max(band.high for band in known))


# The state of the calibration of a result, the band of its mean FSU, and whether the data refute it -------------------
# (U4, U10).
#
# FSU is linear in the coefficients, so its band is its mean times what the I/Os of the window cost by the ends of the
# coefficients' intervals, over what they cost by the coefficients in use.


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
