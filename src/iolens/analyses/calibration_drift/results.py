"""What the drift of a file system says: slow targets, coefficients by month, and how they change."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime

from iolens.analyses.calibration_estimate.target_classes import TargetClass
from iolens.analyses.results import with_key


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetDrift:
    """How many times as long an I/O takes at a target as at the median of the others of its class.

    The factor is that of the end of the window, with 95 % of resampled days; `sure_low` to `sure_high` holds for all
    targets of the class together. With a lasting step, all are of the days from `step` on; `since` is its day where the
    target was like its class until then, `before` the factor until then. The direction is null by busy time: a device
    is busy with both. `why` says what is missing, or why a factor alone names nobody.
    """

    target: str
    target_class: str | None = with_key("class")
    direction: str | None
    evidence: str
    factor: float | None
    factor_low: float | None
    factor_high: float | None
    sure_low: float | None
    sure_high: float | None
    days: int
    ticks: int
    step: date | None
    since: date | None
    before: float | None
    differs: bool
    why: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class MonthlyCost:
    """Coefficients of a class and direction in a calendar month (UTC), without targets that differ from the class.

    Ends and the other fields as in `calibrate estimate`; fullness is the mean of the class's targets in the month.
    """

    month: date
    target_class: str | None = with_key("class")
    direction: str
    evidence: str
    latency_s: float | None
    latency_low_s: float | None
    latency_high_s: float | None
    s_per_byte: float | None
    s_per_byte_low: float | None
    s_per_byte_high: float | None
    identified: list[str]
    upper_bound: bool
    one_at_a_time: bool
    days: int
    ticks: int
    targets: int
    fullness_pct: float | None
    note: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CostChange:
    """What a year of age, and ten points of fullness, add to a coefficient, in per cent with 95 %."""

    target_class: str | None = with_key("class")
    direction: str
    coefficient: str
    evidence: str | None
    months: int
    per_year_pct: float | None
    per_year_low_pct: float | None
    per_year_high_pct: float | None
    per_10_points_pct: float | None
    per_10_points_low_pct: float | None
    per_10_points_high_pct: float | None
    note: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CalibrationDrift:
    """Slow targets, costs by month and their change; `sentences` name each slow target once, the slowest first."""

    filesystem: str
    window_start: datetime | None
    window_end: datetime | None
    days: int
    samples: int
    classes: list[TargetClass]
    sentences: list[str]
    targets: list[TargetDrift]
    months: list[MonthlyCost]
    changes: list[CostChange]
    notes: list[str]

    @property
    def slow(self) -> list[TargetDrift]:
        """Of each target that differs its surest evidence, the slowest target first."""
        return slow_targets(self.targets)

    @property
    def compared(self) -> set[str]:
        """Targets that have a factor."""
        return {item.target for item in self.targets if item.factor is not None}


@dataclass(frozen=True, slots=True)
class SlowTarget:
    """One target that is slower than its class: its factor, and the sentence that says so."""

    target: str
    factor: float
    words: str


@dataclass(frozen=True, slots=True)
class SlowTargets:
    """Those of some days, the slowest first."""

    targets: list[SlowTarget]


def slow_targets(targets: list[TargetDrift]) -> list[TargetDrift]:
    """Of each target that differs the evidence with the highest sure factor, the slowest target first."""
    surest: dict[str, TargetDrift] = {}
    for item in targets:
        if item.differs and (item.target not in surest or _sure(item) > _sure(surest[item.target])):
            surest[item.target] = item
    return sorted(surest.values(), key=lambda item: (-(item.factor or 0.0), item.target))


def _sure(item: TargetDrift) -> float:
    return item.sure_low or 0.0


def slow_words(item: TargetDrift) -> str:
    """`OST0007 needs 1.8 times (1.6 to 2.0) as long for an I/O as its class since 2026-03-02`."""
    since = f" since {item.since.isoformat()}" if item.since is not None else ""
    places = 1 if f"{item.factor_low:.1f}" != f"{item.factor_high:.1f}" else 2
    factor, low, high = (f"{value:.{places}f}" for value in (item.factor, item.factor_low, item.factor_high))
    return f"{item.target} needs {factor} times ({low} to {high}) as long for an I/O as its class{since}"
