"""What a result that holds an FSU says of its calibration: state, band, and whether FSU has levels (U4, U10)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from iolens.analyses.results import only_if_present
from iolens.models.transaction_time import REFUTED_ABOVE_PCT, CalibrationState, weakest
from iolens.units import iso

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
