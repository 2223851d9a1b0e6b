"""Calibrations from a centre's own telemetry (DEFINITIONS, "Calibration from production")."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from itertools import combinations
from typing import Any, Final

import narwhals as nw
import numpy as np

from iolens.analyses.calibration_estimate.part import (
    FORM,
    FULL,
    PAIRS,
    SHORTEST_US,
    TERMS,
    UNKNOWN_TRAITS,
    USUAL,
    TargetClass,
    TargetTraits,
    TelemetryPart,
    target_classes,
    telemetry_part,
)
from iolens.analyses.intervals.fsu_sums import collect
from iolens.analyses.results import only_if_present, with_key
from iolens.analyses.utilization.targets import model_rows
from iolens.arrays import Booleans, Columns, Integers
from iolens.models.cost_estimate import (
    COEFFICIENTS,
    EVIDENCE,
    FEWEST_DAYS,
    FRONTIER,
    BusySums,
    CostEstimate,
    TelemetryTicks,
    busy_time,
)
from iolens.models.frontier import SeenCeiling, frontier, seen_ceiling
from iolens.models.latency_by_size import TimedIos, latency_by_size
from iolens.models.transaction_time import Coefficients
from iolens.schema import DIRECTIONS
from iolens.store.parts import EngineParts
from iolens.store.selection import Selection
from iolens.units import DAY_US, SECOND_US, from_epoch_us

# What an estimate of calibrations says --------------------------------------------------------------------------------
# Each kind of evidence, whether they agree, and which calibration is in use.


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


# Calibrations from a centre's own telemetry (DEFINITIONS, "Calibration from telemetry"; U4) ---------------------------
# For each class of targets and direction up to three kinds of evidence: the limit that targets reach (frontier), the
# time their devices were busy, and the time of single I/Os by size. Each has an interval and says what it rests on.
# Where they disagree beyond their intervals, that is shown; nothing is averaged, and nothing is made up for what is not
# known.

BLOCKS: Final = 40  # of ticks, where there are few days
SHORTEST_BLOCK: Final = 6  # of the shortest ticks
PAGE_BYTES: Final = 4096  # that Lustre's sizes are multiples of
ASSUMED, MEASURED = "assumed", "measured"
AT_ONCE_BYTES: Final = 1 << 20  # size at which times of single I/Os are compared with the limit


def calibration_estimate(
    selection: Selection,
    *,
    configured: Mapping[str, Sequence[str]] | None = None,
    stored: Sequence[Mapping[str, Any]] = (),
    progress: Callable[[date], None] | None = None,
    shortest_tick_s: float = SHORTEST_US / SECOND_US,
) -> CalibrationEstimate:
    """Estimate what I/Os cost; `configured` are classes with their patterns, `stored` the calibrations there are.

    Ticks shorter than ten seconds are for tests of a disk, which have minutes where telemetry has days.
    """
    telemetry, extent = read_telemetry(selection, progress, shortest_tick_s)
    return _result(selection, telemetry, configured or {}, stored, extent)


def read_telemetry(
    selection: Selection,
    progress: Callable[[date], None] | None = None,
    shortest_tick_s: float = SHORTEST_US / SECOND_US,
) -> tuple[Telemetry, tuple[int, int] | None]:
    """All parts of a window, and the time they are of."""
    shortest_us = round(shortest_tick_s * SECOND_US)
    model = model_rows(selection, "auto").model
    tables = ["target_sizes" if model == "histogram" else "target_io"]
    with_depth = selection.holds("target_histograms")
    with_busy = bool(selection.live_columns("target_io", ["busy_us"]))
    tables += ["target_histograms"] * with_depth + ["target_io"] * (with_busy and "target_io" not in tables)
    extent = selection.extent_us(*tables)
    block_us, are_days = _blocks(extent, shortest_us)
    maker = EngineParts(telemetry_part, FORM, tuple(tables), (model, with_busy, with_depth, block_us, shortest_us))
    whole = TelemetryPart()
    for part in selection.parts(maker, progress):
        whole.take(part)
    return Telemetry(whole, block_us, are_days), extent


def _blocks(extent: tuple[int, int] | None, shortest_us: int) -> tuple[int, bool]:
    """Length of a block that is resampled, and whether it is a day."""
    if extent is None:
        return DAY_US, True
    span_us = extent[1] - extent[0]
    if span_us > (FEWEST_DAYS - 1) * DAY_US:
        return DAY_US, True
    shortest_block_us = SHORTEST_BLOCK * shortest_us
    return max(span_us // BLOCKS // shortest_block_us, 1) * shortest_block_us, False


@dataclass(slots=True)
class Telemetry:
    """All parts together."""

    whole: TelemetryPart
    block_us: int
    are_days: bool

    @property
    def names(self) -> list[str]:
        """Of all targets."""
        return sorted({*self.whole.cells.names, *self.whole.timed.names})

    def days(self, blocks: Integers) -> int:
        """How many days blocks are in."""
        return int(np.unique(blocks * self.block_us // DAY_US).size)

    def estimates(self, filesystem: str, chosen: TargetClass) -> list[EvidenceEstimate]:
        """All of one class."""
        cells = _of(self.whole.cells.names, self.whole.cells.columns, chosen)
        result = []
        for place, side in enumerate(DIRECTIONS):
            if cells:
                same = _where(cells, cells["direction"] == place)
                result.append((side, same["block"], frontier(ticks_of_cells(same), self.are_days)))
        busy = self._busy(cells, chosen)
        result += [(side, busy[0], estimate) for side, estimate in busy[1].items()]
        result += list(self._timed(chosen))
        made = [
            _estimate(filesystem, chosen.name, side, self.days(blocks), estimate)
            for side, blocks, estimate in result
            if estimate is not None
        ]
        order = {evidence: place for place, evidence in enumerate(EVIDENCE)}
        return sorted(made, key=lambda item: (DIRECTIONS[::-1].index(item.direction), order[item.evidence]))

    def ceiling(self, chosen: TargetClass, costs: Mapping[str, Coefficients]) -> SeenCeiling | None:
        """The FSU of a class at its limit, by coefficients of both directions."""
        cells = _of(self.whole.cells.names, self.whole.cells.columns, chosen)
        if not cells:
            return None
        sides = ((costs[side], _where(cells, cells["direction"] == place)) for place, side in enumerate(DIRECTIONS))
        return seen_ceiling([(ticks_of_cells(rows), cost) for cost, rows in sides])

    def _busy(self, cells: Columns, chosen: TargetClass) -> tuple[Integers, dict[str, CostEstimate]]:
        rows = _of(self.whole.busy.names, self.whole.busy.columns, chosen)
        if not rows or not rows["block"].size:
            return np.empty(0, np.int64), {}
        sums = busy_sums(rows, cells)
        return rows["block"], busy_time(sums, self.are_days)

    def _timed(self, chosen: TargetClass) -> list[tuple[str, Integers, CostEstimate | None]]:
        rows = _of(self.whole.timed.names, self.whole.timed.columns, chosen)
        if not rows:
            return []
        largest = _largest_bytes(self.whole.cells.columns)
        result = []
        for place, side in enumerate(DIRECTIONS):
            same = _where(rows, rows["direction"] == place)
            targets = int(np.unique(same["target"]).size)
            timed = timed_ios(same, largest)
            result.append((side, same["block"], latency_by_size(timed, PAGE_BYTES, targets, self.are_days)))
        return result


def _of(names: Sequence[str], columns: Columns, chosen: TargetClass) -> Columns:
    """Rows of the targets of a class; empty where there are none."""
    if not columns:
        return {}
    members = set(chosen.targets)
    belongs = np.array([name in members for name in names], bool)
    return _where(columns, belongs[columns["target"]])


def _where(columns: Columns, chosen: Booleans) -> Columns:
    return {name: values[chosen] for name, values in columns.items()}


def ticks_of_cells(cells: Columns) -> TelemetryTicks:
    """Cells as the frontier takes them; what is in flight is known where its bin is."""
    with np.errstate(invalid="ignore", divide="ignore"):
        depth = np.where(cells["depth_bin"] >= 0, cells["depth"] / cells["ticks"], np.nan)
        return TelemetryTicks(
            block=cells["block"],
            target=cells["target"].astype(np.int64),
            count=cells["ticks"],
            ios_per_s=cells["n"] / cells["duration_s"],
            size_bytes=cells["b"] / cells["n"],
            in_flight=depth,
            is_full=cells["util"] == FULL,
        )


def busy_sums(rows: Columns, cells: Columns) -> BusySums:
    """Sums over targets, by block; sizes from the cells of one direction."""
    names, places = np.unique(rows["block"], return_inverse=True)
    squares = np.zeros((names.size, len(TERMS), len(TERMS)))
    for first, second in PAIRS:
        values = np.bincount(places, rows[f"{first}*{second}"], names.size)
        row, column = TERMS.index(first), TERMS.index(second)
        squares[:, row, column] = squares[:, column, row] = values
    products = np.stack([np.bincount(places, rows[f"{term}*busy"], names.size) for term in TERMS], axis=1).astype(float)
    usual = _where(cells, cells["util"] == USUAL)
    sizes: dict[str, dict[int, float]] = {}
    for place, side in enumerate(DIRECTIONS):
        same = _where(usual, usual["direction"] == place)
        groups, where = np.unique(-(-same["size_bin"] // 4), return_inverse=True)
        counts = np.bincount(where, same["ticks"], groups.size)
        sizes[side] = dict(zip(groups.tolist(), counts.tolist(), strict=True))
    ticks = np.bincount(places, rows["ticks"], names.size)
    is_known = usual["depth_bin"] >= 0
    targets = int(np.unique(rows["target"]).size)
    return BusySums(squares, products, ticks.astype(float), sizes, targets, bool(is_known.all() and is_known.any()))


def timed_ios(rows: Columns, largest_bytes: int | None) -> TimedIos:
    """Bins of bulk I/Os; one that begins with the largest I/O there is holds I/Os of that size alone."""
    low = rows["size"] // PAGE_BYTES
    high = 2 * low - 1
    if largest_bytes is not None:
        high = np.maximum(np.minimum(high, largest_bytes // PAGE_BYTES), low)
    upto = rows["bin"] * 1e-9
    over = np.where(rows["bin"] > 1024, upto / 2, 0.0)
    return TimedIos(low, high, over, upto, rows["ios"], rows["block"])


def _largest_bytes(cells: Columns) -> int | None:
    """The largest size of a disk I/O by the bins of the cells: no bulk I/O of one piece is larger."""
    if not cells or not cells["size_bin"].size:
        return None
    return int(2 ** -(-int(cells["size_bin"].max()) // 4))


def _estimate(filesystem: str, name: str | None, side: str, days: int, estimate: CostEstimate) -> EvidenceEstimate:
    latency, rate = estimate.latency_interval_s, estimate.s_per_byte_interval
    return EvidenceEstimate(
        filesystem=filesystem,
        target_class=name,
        direction=side,
        evidence=estimate.evidence,
        latency_s=estimate.latency_s,
        latency_low_s=latency[0] if latency else None,
        latency_high_s=latency[1] if latency else None,
        s_per_byte=estimate.s_per_byte,
        s_per_byte_low=rate[0] if rate else None,
        s_per_byte_high=rate[1] if rate else None,
        one_at_a_time=estimate.one_at_a_time,
        identified=list(estimate.identified),
        upper_bound=estimate.upper_bound,
        days=days,
        ticks=estimate.ticks,
        targets=estimate.targets,
        sizes_bytes=list(estimate.sizes_bytes),
        in_flight=estimate.in_flight,
        time_s=estimate.time_s,
        time_at_bytes=estimate.time_at_bytes,
        note=estimate.note,
    )


def _result(
    selection: Selection,
    telemetry: Telemetry,
    configured: Mapping[str, Sequence[str]],
    stored: Sequence[Mapping[str, Any]],
    extent: tuple[int, int] | None,
) -> CalibrationEstimate:
    rows = telemetry.whole.cells.columns
    classes, notes = classes_of(selection, telemetry, configured)
    estimates = [item for chosen in classes for item in telemetry.estimates(selection.filesystem, chosen)]
    by_class = [in_use(stored, selection.filesystem, chosen.name) for chosen in classes]
    since, until = selection.window
    lengths = telemetry.whole.ticks_s
    return CalibrationEstimate(
        filesystem=selection.filesystem,
        window_start=since or (from_epoch_us(extent[0]) if extent else None),
        window_end=until or (from_epoch_us(extent[1]) if extent else None),
        days=telemetry.days(rows["block"]) if rows else 0,
        targets=len(telemetry.names),
        samples=round(float(rows["ticks"].sum())) if rows else 0,
        tick_s=max(lengths) if lengths else None,
        classes=classes,
        estimates=estimates,
        in_use=by_class[0] if len(by_class) == 1 else in_use(stored, selection.filesystem, None),
        in_use_by_class=by_class if len(by_class) > 1 else None,
        agreement=[pair for chosen in classes for pair in agreement(estimates, chosen.name)],
        ceilings=[
            level
            for chosen in classes
            for level in _ceilings(telemetry, chosen, estimates, row_in_use(stored, selection.filesystem, chosen.name))
        ],
        missing=_missing(estimates, classes),
        notes=notes,
    )


def classes_of(
    selection: Selection, telemetry: Telemetry, configured: Mapping[str, Sequence[str]]
) -> tuple[list[TargetClass], list[str]]:
    """Classes of the targets there are, and what to know about them."""
    cells = telemetry.whole.cells
    if not cells.columns:
        return [TargetClass(None, telemetry.names)], []
    traits = UNKNOWN_TRAITS if configured else _traits(selection)
    return target_classes(configured, cells.columns, cells.names, traits)


def _traits(selection: Selection) -> TargetTraits:
    """Size and kind of device of each target, where they were read."""
    sizes = _largest(selection, "target_capacity", "total_bytes")
    spins = _largest(selection, "target_state", "device_rotational")
    return TargetTraits(
        {name: value for name, value in sizes.items() if value > 0},
        {name: value > 0 for name, value in spins.items()},
    )


def _largest(selection: Selection, table: str, column: str) -> dict[str, float]:
    """Of each target's values that are known."""
    frame = selection.frame(table) if selection.holds(table) else None
    if frame is None or column not in frame.collect_schema().names():
        return {}
    known = frame.filter(~nw.col(column).is_null()).select("target", nw.col(column).cast(nw.Float64).alias("value"))
    rows = collect(known.group_by("target").agg(nw.col("value").max()))
    return {str(name): float(value) for name, value in zip(rows["target"], rows["value"], strict=True)}


def _ceilings(
    telemetry: Telemetry,
    chosen: TargetClass,
    estimates: Sequence[EvidenceEstimate],
    row: Mapping[str, Any] | None,
) -> list[LimitLevel]:
    """By these coefficients, and by the calibration in use; none where the limit of the class is not known."""
    same = [item for item in estimates if item.target_class == chosen.name and item.is_identified]
    if sum(item.evidence == FRONTIER for item in same) < len(DIRECTIONS):
        return []
    own = {item.direction: Coefficients(item.latency_s or 0.0, item.s_per_byte or 0.0) for item in reversed(same)}
    known: list[tuple[str | None, Mapping[str, Coefficients]]] = [(None, own)]
    if row is not None:
        by_row = {side: Coefficients(row[f"{side}_latency_s"], row[f"{side}_s_per_byte"]) for side in DIRECTIONS}
        known.append((str(row["name"]), by_row))
    seen = ((name, telemetry.ceiling(chosen, costs)) for name, costs in known)
    return [
        LimitLevel(
            target_class=chosen.name,
            calibration=name,
            ceiling_fsu_pct=level.pct,
            ceiling_low_pct=level.low_pct,
            ceiling_high_pct=level.high_pct,
            ticks=level.ticks,
            note=level.note,
        )
        for name, level in seen
        if level is not None
    ]


def _missing(estimates: Sequence[EvidenceEstimate], classes: Sequence[TargetClass]) -> list[str]:
    """Directions of which nothing is known."""
    result = []
    for chosen in classes:
        for side in DIRECTIONS[::-1]:
            if not any((item.target_class, item.direction) == (chosen.name, side) for item in estimates):
                of_class = f" of {chosen.name}" if chosen.name else ""
                result.append(f"{side}s{of_class}: no tick of ten seconds or longer in which nine tenths are {side}s")
    return result


def in_use(stored: Sequence[Mapping[str, Any]], filesystem: str, name: str | None) -> CalibrationInUse:
    """The stored calibration of a class, as it is shown."""
    row = row_in_use(stored, filesystem, name)
    if row is None:
        return CalibrationInUse(target_class=name, name=None, state=ASSUMED, valid_from=None, evidence=None)
    since = from_epoch_us(row["valid_from"]) if row["valid_from"] is not None else None
    return CalibrationInUse(
        target_class=name,
        name=str(row["name"]),
        state=str(row.get("state") or MEASURED),
        valid_from=since,
        evidence=row.get("evidence"),
    )


def row_in_use(stored: Sequence[Mapping[str, Any]], filesystem: str, name: str | None) -> Mapping[str, Any] | None:
    """The stored row of a class that came last; one that was measured or chosen goes before an estimate."""
    own = [row for row in stored if row["filesystem"] == filesystem and row.get("target_class") in (None, name)]
    own = [row for row in own if row.get("target_class") == name] or own
    return next(iter([row for row in own if row.get("state") != "estimated"][-1:] or own[-1:]), None)


def agreement(estimates: Sequence[EvidenceEstimate], name: str | None) -> list[Agreement]:
    """Each coefficient by each two kinds of evidence that identify it."""
    result = []
    for side in DIRECTIONS[::-1]:
        same = [item for item in estimates if (item.target_class, item.direction) == (name, side)]
        for first, second in combinations(same, 2):
            both = [item for item in COEFFICIENTS if item in first.identified and item in second.identified]
            result += [_agreement(first, second, coefficient) for coefficient in both]
    return result


def _agreement(first: EvidenceEstimate, second: EvidenceEstimate, coefficient: str) -> Agreement:
    left, right = (_coefficient(item, coefficient) for item in (first, second))
    alike = first.one_at_a_time == second.one_at_a_time
    overlaps = left[1] <= right[2] and right[1] <= left[2]
    return Agreement(
        target_class=first.target_class,
        direction=first.direction,
        coefficient=coefficient,
        first=first.evidence,
        second=second.evidence,
        first_value=left[0],
        second_value=right[0],
        ratio=right[0] / left[0] if left[0] > 0 else None,
        agrees=overlaps if alike else None,
        served_at_once=None if alike else _seconds(second) / _seconds(first),
    )


def _coefficient(item: EvidenceEstimate, name: str) -> tuple[float, float, float]:
    """The value and the ends of its interval."""
    ends = ("latency_s", "latency_low_s", "latency_high_s")
    names = ends if name == "latency" else ("s_per_byte", "s_per_byte_low", "s_per_byte_high")
    value, low, high = (float(getattr(item, field)) for field in names)
    return value, low, high


def _seconds(item: EvidenceEstimate) -> float:
    """Time of an I/O of 1 MiB."""
    return (item.latency_s or 0.0) + (item.s_per_byte or 0.0) * AT_ONCE_BYTES
