"""What an estimate of calibrations says: each kind of evidence, whether they agree, and which calibration is in use."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from iolens.analyses.calibration_estimate.target_classes import TargetClass
from iolens.analyses.results import only_if_present, with_key
from iolens.models.cost_estimate import COEFFICIENTS, EVIDENCE


@dataclass(frozen=True, slots=True, kw_only=True)
class EvidenceEstimate:
    """What one kind of evidence says of one class and direction; the class is null where all targets are one.

    Ends are those of the 95 % interval; with `upper_bound` the range that is possible. Coefficients that are not among
    the `identified` ones are bounds, or not known apart: the note says which.
    """

    filesystem: str
    target_class: str | None = with_key("class")
    direction: str
    evidence: str
    latency_s: float | None
    latency_low_s: float | None
    latency_high_s: float | None
    s_per_byte: float | None
    s_per_byte_low: float | None
    s_per_byte_high: float | None
    one_at_a_time: bool
    identified: list[str]
    upper_bound: bool
    days: int
    ticks: int
    targets: int
    sizes_bytes: list[float]
    in_flight: float | None
    time_s: float | None
    time_at_bytes: float | None
    note: str

    @property
    def is_identified(self) -> bool:
        """Whether both coefficients are, as those of a target and not of one I/O alone."""
        return len(self.identified) == len(COEFFICIENTS) and not self.upper_bound


@dataclass(frozen=True, slots=True, kw_only=True)
class CalibrationInUse:
    """The calibration that holds for a class at the end of the window, and its state."""

    target_class: str | None = with_key("class")
    name: str | None
    state: str
    valid_from: datetime | None
    evidence: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Agreement:
    """One coefficient by two kinds of evidence; `agrees`: their intervals overlap, null where one is not known.

    `served_at_once`: how many I/Os a target serves at once, by the time of single ones and by the limit.
    """

    target_class: str | None = with_key("class")
    direction: str
    coefficient: str
    first: str
    second: str
    first_value: float
    second_value: float
    ratio: float | None
    agrees: bool | None
    served_at_once: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitLevel:
    """The FSU of a class at its limit, by one calibration: the ceiling that its telemetry shows, with 95 % of days.

    The calibration is null for the coefficients of this estimate. The level is null where the note says why.
    """

    target_class: str | None = with_key("class")
    calibration: str | None
    ceiling_fsu_pct: float | None
    ceiling_low_pct: float | None
    ceiling_high_pct: float | None
    ticks: int
    note: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CalibrationEstimate:
    """What the telemetry of a window says that disk I/Os cost."""

    filesystem: str
    window_start: datetime | None
    window_end: datetime | None
    days: int
    targets: int
    samples: int
    tick_s: float | None
    classes: list[TargetClass]
    estimates: list[EvidenceEstimate]
    in_use: CalibrationInUse
    in_use_by_class: list[CalibrationInUse] | None = only_if_present()
    agreement: list[Agreement]
    ceilings: list[LimitLevel]
    missing: list[str]
    notes: list[str]

    def ceiling(self, target_class: str | None) -> LimitLevel | None:
        """By the coefficients of the estimate itself."""
        own = (item for item in self.ceilings if item.target_class == target_class and item.calibration is None)
        return next(own, None)

    def best(self, target_class: str | None, direction: str) -> EvidenceEstimate | None:
        """The identified estimate that is stored: by the limit, else by busy time, else of I/Os one at a time."""
        by_evidence = {
            estimate.evidence: estimate
            for estimate in self.estimates
            if (estimate.target_class, estimate.direction) == (target_class, direction) and estimate.is_identified
        }
        return next((by_evidence[evidence] for evidence in EVIDENCE if evidence in by_evidence), None)
