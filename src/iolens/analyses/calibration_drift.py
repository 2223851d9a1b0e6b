"""Drift of what disk I/Os cost: slow targets against their class, and costs by month."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import date, datetime, timedelta
from typing import Any, Final

import narwhals as nw
import numpy as np

from iolens.analyses.calibration_estimate.analysis import (
    EvidenceEstimate,
    Telemetry,
    classes_of,
    read_telemetry,
    ticks_of_cells,
)
from iolens.analyses.calibration_estimate.part import PAIRS, TERMS, TargetClass, TelemetryPart
from iolens.analyses.intervals.fsu_sums import collect, number
from iolens.analyses.intervals.target_rows import TargetRows
from iolens.analyses.results import with_key
from iolens.arrays import Booleans, Columns, Floats, Integers
from iolens.models.cost_estimate import BUSY_TIME, COEFFICIENTS, EVIDENCE, FRONTIER
from iolens.models.drift import (
    FEWEST_DAYS,
    FEWEST_TARGETS,
    LEAST_FACTOR,
    Change,
    DailyFactors,
    TargetFactor,
    busy_factors,
    cost_trend,
    queued_factors,
    target_factors,
)
from iolens.models.transaction_time import Coefficients
from iolens.schema import DIRECTIONS
from iolens.store.selection import Selection
from iolens.units import DAY_US, from_epoch_us

# What the drift of a file system says ---------------------------------------------------------------------------------
# Slow targets, coefficients by month, and how they change.


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


# Drift of what disk I/Os cost -----------------------------------------------------------------------------------------
# Targets that differ from their class, coefficients by month, and their change.
#
# Made from the same parts as `calibrate estimate`, of which days are blocks: nothing more is read. Targets that differ
# are left out of the months of their class from the day on since which they do.

EPOCH: Final = date(1970, 1, 1)
DAYS_A_YEAR: Final = 365.25
MOST_AT_ONCE: Final = 1.25  # I/Os: a device that serves more is busy less per I/O the more it has to do
TYPICAL_BYTES: Final = (1 << 12, 1 << 20)
OVERLAP: Final = (
    "busy time alone names nobody: that the device serves one I/O at a time is not known from the limit of the class"
)


def calibration_drift(
    selection: Selection,
    *,
    configured: Mapping[str, Sequence[str]] | None = None,
    progress: Callable[[date], None] | None = None,
) -> CalibrationDrift:
    """Slow targets, and costs by month; `configured` are classes with their patterns."""
    telemetry, extent = read_telemetry(selection, progress)
    classes, notes = classes_of(selection, telemetry, configured or {})
    targets = [item for chosen in classes for item in _targets(telemetry, chosen, selection.filesystem)]
    slow = slow_targets(targets)
    healthy = _without(telemetry, slow)
    fullness = _fullness(selection)
    months = [item for chosen in classes for item in _months(healthy, chosen, selection.filesystem, fullness)]
    since, until = selection.window
    rows = telemetry.whole.cells.columns
    return CalibrationDrift(
        filesystem=selection.filesystem,
        window_start=since or (from_epoch_us(extent[0]) if extent else None),
        window_end=until or (from_epoch_us(extent[1]) if extent else None),
        days=telemetry.days(rows["block"]) if rows else 0,
        samples=round(float(rows["ticks"].sum())) if rows else 0,
        classes=classes,
        sentences=[f"{slow_words(item)}." for item in slow],
        targets=targets,
        months=months,
        changes=[item for chosen in classes for item in _changes(months, chosen.name)],
        notes=notes,
    )


def has_days(selection: Selection) -> bool:
    """Whether the window may have so many days that targets are compared."""
    extent = selection.extent_us("target_sizes", "target_io")
    return extent is not None and extent[1] - extent[0] > (FEWEST_DAYS - 1) * DAY_US


def slow_now(
    selection: Selection,
    configured: Mapping[str, Sequence[str]] | None = None,
    progress: Callable[[date], None] | None = None,
) -> SlowTargets:
    """The slow targets alone; nothing is read of a window that is too short to know."""
    if not has_days(selection):
        return SlowTargets([])
    telemetry, _ = read_telemetry(selection, progress)
    classes, _ = classes_of(selection, telemetry, configured or {})
    targets = [item for chosen in classes for item in _targets(telemetry, chosen, selection.filesystem)]
    return SlowTargets(
        [SlowTarget(item.target, item.factor or 1.0, slow_words(item)) for item in slow_targets(targets)]
    )


def narrowed(telemetry: Telemetry, kept: Callable[[list[str], Columns], Booleans]) -> Telemetry:
    """Some of the rows: `kept` is given names of targets, and rows that have places of them."""
    whole = telemetry.whole
    cells, busy, timed = (_rows(part, kept) for part in (whole.cells, whole.busy, whole.timed))
    return Telemetry(TelemetryPart(cells, busy, timed, whole.ticks_s), telemetry.block_us, telemetry.are_days)


def _rows(rows: TargetRows, kept: Callable[[list[str], Columns], Booleans]) -> TargetRows:
    if not rows.columns:
        return rows
    chosen = kept(rows.names, rows.columns)
    return TargetRows(rows.names, {name: values[chosen] for name, values in rows.columns.items()})


def _of(telemetry: Telemetry, targets: Collection[str]) -> Telemetry:
    """Of some targets."""
    members = set(targets)
    return narrowed(telemetry, lambda names, rows: np.array([name in members for name in names], bool)[rows["target"]])


def _without(telemetry: Telemetry, slow: Sequence[TargetDrift]) -> Telemetry:
    """Without the days of targets on which they differ."""
    first = {item.target: _day(item.step) if item.step is not None else -1 for item in slow}

    def kept(names: list[str], rows: Columns) -> Booleans:
        until = np.array([first.get(name, np.iinfo(np.int64).max) for name in names], np.int64)
        return np.asarray(rows["block"] * telemetry.block_us // DAY_US < until[rows["target"]])

    return narrowed(telemetry, kept) if slow else telemetry


def _day(value: date) -> int:
    return (value - EPOCH).days


@dataclass(frozen=True, slots=True)
class _Compared:
    """Daily factors of a class by one kind of evidence."""

    direction: str | None
    evidence: str
    names: list[str]
    daily: list[DailyFactors]
    doubt: str | None = None  # why it names nobody, or has no factor

    def results(self, chosen: TargetClass) -> list[TargetDrift]:
        """A line for each target of the class."""
        factors = {self.names[item.target]: item for item in target_factors(self.daily)}
        return [self._result(name, chosen, factors.get(name)) for name in chosen.targets]

    def _result(self, name: str, chosen: TargetClass, item: TargetFactor | None) -> TargetDrift:
        known = item if item is not None else TargetFactor(-1, 0, 0)
        differs = known.differs and self.doubt is None
        return TargetDrift(
            target=name,
            target_class=chosen.name,
            direction=self.direction,
            evidence=self.evidence,
            factor=known.factor,
            factor_low=known.low,
            factor_high=known.high,
            sure_low=known.sure_low,
            sure_high=known.sure_high,
            days=known.days,
            ticks=known.ticks,
            step=_date(known.step),
            since=_date(known.since),
            before=known.before,
            differs=differs,
            why=self._why(known, differs),
        )

    def _why(self, known: TargetFactor, differs: bool) -> str | None:
        if known.factor is None:
            if not self.daily:
                return (
                    self.doubt or f"fewer than {FEWEST_TARGETS} targets of the class have enough ticks of a like size"
                )
            return f"{known.days} of {FEWEST_DAYS} days with enough ticks"
        if differs or known.factor < LEAST_FACTOR:
            return None
        return self.doubt or "not beyond chance for so many targets"


def _date(day: int | None) -> date | None:
    return None if day is None else EPOCH + timedelta(days=day)


def _targets(telemetry: Telemetry, chosen: TargetClass, filesystem: str) -> list[TargetDrift]:
    """Each target of a class, by direction at its limit, and by busy time."""
    if not telemetry.are_days:
        few = f"too few days: {telemetry.days(telemetry.whole.cells.columns['block'])} of {FEWEST_DAYS}"
        blank = [_Compared(side, FRONTIER, [], [], few) for side in DIRECTIONS[::-1]]
        return [item for compared in blank for item in compared.results(chosen)]
    mine = _of(telemetry, chosen.targets)
    cells = mine.whole.cells
    result: list[TargetDrift] = []
    for side in DIRECTIONS[::-1]:
        daily: list[DailyFactors] = []
        if cells.columns:
            same = cells.columns["direction"] == DIRECTIONS.index(side)
            if same.any():
                ticks = ticks_of_cells({name: values[same] for name, values in cells.columns.items()})
                daily = queued_factors(ticks)
        result += _Compared(side, FRONTIER, cells.names, daily).results(chosen)
    busy = mine.whole.busy
    if busy.columns and busy.columns["block"].size:
        healthy = _without(mine, slow_targets(result))
        doubt = None if _one_at_a_time(healthy.estimates(filesystem, chosen)) else OVERLAP
        result += _Compared(None, BUSY_TIME, busy.names, busy_factors(*_sums(busy.columns)), doubt).results(chosen)
    return result


def _sums(rows: Columns) -> tuple[Integers, Integers, Floats, Floats, Floats]:
    """By target and day, as `busy_factors` takes them."""
    squares = np.zeros((rows["block"].size, len(TERMS), len(TERMS)))
    for first, second in PAIRS:
        row, column = TERMS.index(first), TERMS.index(second)
        squares[:, row, column] = squares[:, column, row] = rows[f"{first}*{second}"]
    products = np.stack([rows[f"{term}*busy"] for term in TERMS], axis=1).astype(float)
    return rows["target"].astype(np.int64), rows["block"], rows["ticks"].astype(float), squares, products


def _one_at_a_time(estimates: Sequence[EvidenceEstimate]) -> bool:
    """Whether a class at its limit is always busy with one I/O: then busy time is in proportion to I/Os."""
    ratios = []
    for side in DIRECTIONS:
        by_evidence = {item.evidence: item for item in estimates if item.direction == side and item.is_identified}
        if FRONTIER in by_evidence and BUSY_TIME in by_evidence:
            ratios += [
                _seconds(by_evidence[BUSY_TIME], size) / _seconds(by_evidence[FRONTIER], size) for size in TYPICAL_BYTES
            ]
    return bool(ratios) and max(ratios) <= MOST_AT_ONCE


def _seconds(item: EvidenceEstimate, size_bytes: int) -> float:
    return Coefficients(item.latency_s or 0.0, item.s_per_byte or 0.0).seconds(size_bytes)


def _fullness(selection: Selection) -> Columns:
    """Mean fullness of each target and day in per cent, where it is stored."""
    if not selection.holds("target_capacity"):
        return {}
    share = nw.col("used_bytes").cast(nw.Float64) / nw.col("total_bytes").cast(nw.Float64) * number(100.0)
    frame = selection.frame("target_capacity").filter(nw.col("total_bytes") > 0, ~nw.col("used_bytes").is_null())
    rows = frame.select("target", (nw.col("epoch_us") // DAY_US).alias("day"), share.alias("pct"))
    return collect(rows.group_by("target", "day").agg(nw.col("pct").mean()))


def _months(telemetry: Telemetry, chosen: TargetClass, filesystem: str, fullness: Columns) -> list[MonthlyCost]:
    """Of each direction and calendar month, by the evidence that is identified in most months."""
    mine = _of(telemetry, chosen.targets)
    estimates = {
        month: narrowed(mine, _in_month(mine.block_us, month)).estimates(filesystem, chosen)
        for month in _months_of(mine)
    }
    result = []
    for side in DIRECTIONS[::-1]:
        by_month = {month: [item for item in items if item.direction == side] for month, items in estimates.items()}
        order = _evidence_order([item for items in by_month.values() for item in items])
        for month, items in by_month.items():
            if items:
                best = min(items, key=lambda item: (not item.is_identified, order.index(item.evidence)))
                result.append(_month(month, best, _mean_fullness(fullness, chosen.targets, month)))
    return result


def _months_of(telemetry: Telemetry) -> list[date]:
    blocks = [
        rows.columns["block"]
        for rows in (telemetry.whole.cells, telemetry.whole.busy, telemetry.whole.timed)
        if rows.columns
    ]
    if not blocks:
        return []
    days = np.unique(np.concatenate(blocks) * telemetry.block_us // DAY_US)
    return sorted({(EPOCH + timedelta(days=int(day))).replace(day=1) for day in days})


def _ends(month: date) -> tuple[int, int]:
    """The first day of a month and of the next one."""
    return _day(month), _day((month + timedelta(days=31)).replace(day=1))


def _in_month(block_us: int, month: date) -> Callable[[list[str], Columns], Booleans]:
    first, end = _ends(month)

    def kept(names: list[str], rows: Columns) -> Booleans:
        day = rows["block"] * block_us // DAY_US
        return np.asarray((day >= first) & (day < end))

    return kept


def _evidence_order(estimates: Sequence[EvidenceEstimate]) -> list[str]:
    """Kinds of evidence, that which identifies most first: months are compared by one kind."""
    counts = {kind: sum(item.is_identified for item in estimates if item.evidence == kind) for kind in EVIDENCE}
    return sorted(EVIDENCE, key=lambda kind: (-counts[kind], EVIDENCE.index(kind)))


def _mean_fullness(fullness: Columns, targets: Sequence[str], month: date) -> float | None:
    """Mean over days of the mean over targets."""
    if not fullness:
        return None
    first, end = _ends(month)
    chosen = (fullness["day"] >= first) & (fullness["day"] < end) & np.isin(fullness["target"].astype(str), targets)
    return float(fullness["pct"][chosen].mean()) if chosen.any() else None


def _month(month: date, item: EvidenceEstimate, fullness_pct: float | None) -> MonthlyCost:
    taken = {field.name for field in fields(MonthlyCost)} - {"month", "fullness_pct"}
    values = {name: getattr(item, name) for name in taken}
    return MonthlyCost(month=month, fullness_pct=fullness_pct, **values)


def _changes(months: Sequence[MonthlyCost], name: str | None) -> list[CostChange]:
    """Of each coefficient of a class, by months of one kind of evidence."""
    result = []
    for side in DIRECTIONS[::-1]:
        same = [item for item in months if (item.target_class, item.direction) == (name, side)]
        result += [_change(same, name, side, coefficient) for coefficient in COEFFICIENTS]
    return result


def _change(months: Sequence[MonthlyCost], name: str | None, side: str, coefficient: str) -> CostChange:
    known = [item for item in months if coefficient in item.identified and not item.upper_bound]
    kinds = [item.evidence for item in known]
    evidence = max(EVIDENCE, key=kinds.count) if kinds else None
    rows = [(item, _ends_of(item, coefficient)) for item in known if item.evidence == evidence]
    years = np.array([(_day(item.month) - _day(months[0].month)) / DAYS_A_YEAR for item, _ in rows])
    full = np.array([np.nan if item.fullness_pct is None else item.fullness_pct for item, _ in rows])
    costs = np.array([values for _, values in rows], float).reshape(-1, 3)
    trend = cost_trend(years, full, *costs.T)
    return CostChange(
        target_class=name,
        direction=side,
        coefficient=coefficient,
        evidence=evidence,
        months=len(rows),
        **_change_fields("per_year", trend.per_year),
        **_change_fields("per_10_points", trend.per_10_points),
        note=trend.note,
    )


def _ends_of(item: MonthlyCost, coefficient: str) -> tuple[float | None, float | None, float | None]:
    if coefficient == "latency":
        return item.latency_s, item.latency_low_s, item.latency_high_s
    return item.s_per_byte, item.s_per_byte_low, item.s_per_byte_high


def _change_fields(name: str, change: Change | None) -> dict[str, Any]:
    return {
        f"{name}_pct": change.pct if change else None,
        f"{name}_low_pct": change.low if change else None,
        f"{name}_high_pct": change.high if change else None,
    }
