"""File System Utilization: how busy the disks are, by count and size of their I/Os (SPEC U7 to U10)."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from typing import Any, Final, Literal

import numpy as np

from iolens.analyses import Analysis, Options, StoreKnowledge
from iolens.analyses.calibration.applied import AppliedCalibration, applied_calibrations
from iolens.analyses.calibration.state import LargestMean, RestsOnCalibration, calibration_of_result
from iolens.analyses.intervals.buckets import (
    QUARTER_S,
    QUARTER_US,
    BucketSpread,
    bucket_seconds,
    day_of,
    is_complete,
    is_utc,
)
from iolens.analyses.intervals.coverage import coverage_of
from iolens.analyses.intervals.target_rows import TargetRows
from iolens.analyses.intervals.target_totals import TargetTotals
from iolens.analyses.intervals.tick_totals import (
    BIN_PCT,
    BINS,
    MAXIMUM_SPREAD,
    MINIMUM_MEDIAN_PCT,
    MINIMUM_S,
    PlateauFinder,
    TickTotals,
    known_ticks,
    peak_options,
)
from iolens.analyses.results import Coverage, OverIntervals, not_in_json, of_servers, only_if_present, ratio
from iolens.analyses.utilization.part import WIDEST_BUCKET_S, UtilizationPart, UtilizationParts
from iolens.analyses.utilization.saturation import Plateau, Saturation, plateaus
from iolens.analyses.utilization.targets import (
    CountersSinceStart,
    Model,
    SizeCount,
    TargetOutliers,
    TargetUtilization,
    model_rows,
    target_outliers,
)
from iolens.arrays import Floats, Integers
from iolens.models.transaction_time import (
    BUSY_ABOVE_PCT,
    GRACE_2012,
    IDLE_BELOW_PCT,
    SATURATED_SHARE,
    SIZE_COLUMNS,
    Calibration,
)
from iolens.store.parts import PartMaker
from iolens.store.selection import Selection
from iolens.target_servers import TargetServers
from iolens.units import DAY_S, from_epoch_us

# The newest load of a file system beside that of the whole window -----------------------------------------------------
# Means over the last minutes of its series.

LATEST_US: Final = 300_000_000


@dataclass(frozen=True, slots=True)
class LatestLoad:
    """Means over the last `length_s` seconds of a series; bytes per second also over all of it; None: not known."""

    end: datetime
    length_s: float
    fsu_pct: float | None
    bytes_per_s: float | None
    whole_bytes_per_s: float | None

    @classmethod
    def of(cls, time_us: Integers, bucket_s: float, fsu_pct: Floats, bytes_per_s: Floats) -> LatestLoad | None:
        """Of the last five minutes, or of the last bucket where buckets are longer; None: there is no series."""
        if len(time_us) == 0:
            return None
        end_us = int(time_us[-1])
        last = time_us > end_us - LATEST_US
        length_s = float(last.sum()) * bucket_s
        return cls(from_epoch_us(end_us), length_s, _mean(fsu_pct[last]), _mean(bytes_per_s[last]), _mean(bytes_per_s))


def _mean(values: Floats) -> float | None:
    known = values[np.isfinite(values)]
    mean = float(known.mean()) if len(known) else math.nan
    return mean if math.isfinite(mean) else None


# Mean FSU of every target over time: for figures ----------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class FsuHeatMap:
    """Mean FSU by target and time bucket; NaN where the target did not report."""

    bucket_s: float
    targets: list[str]
    time_us: Integers  # start of each bucket
    fsu_pct: Floats  # targets × buckets


def heat_map(cells: TargetRows, bucket_s: int) -> FsuHeatMap | None:
    """Every bucket from the first to the last, from sums of FSU and time; None where no target reported."""
    if not cells.names:
        return None
    bucket = cells.columns["bucket"]
    first = int(bucket.min())
    width = int(bucket.max()) - first + 1
    cell = cells.columns["target"] * width + bucket - first
    sums, time = (
        np.bincount(cell, weights=cells.columns[name], minlength=len(cells.names) * width)
        for name in ("busy", "duration_s")
    )
    with np.errstate(invalid="ignore", divide="ignore"):
        matrix = (sums / time).reshape(len(cells.names), width)
    starts_us = np.arange(first, first + width) * bucket_s * 1_000_000
    return FsuHeatMap(float(bucket_s), cells.names, starts_us, matrix)


# File System Utilization ----------------------------------------------------------------------------------------------
# How busy the disks are, by count and size of their I/Os (SPEC U7 to U10).
#
# The engine sums each tick over its targets and each target over time (`fsu_sums`), for a part of some days (`part`).
# The rest works on those parts one after the other (`tick_totals`, `target_totals`): memory does not grow with the
# window.

MOST_HEAT_BUCKETS: Final = 400
TABLES: Final = ("target_sizes", "target_io")
UTC_DAYS: Final = "days are UTC days: of some only sums by UTC day are left"
LARGEST_TICK: Final = "largest tick"  # stands in where no peak is known: says nothing of what the hardware can do


@dataclass(frozen=True, slots=True)
class Category:
    """One line of Table II: idle, moderate or busy."""

    name: str
    fsu_from_pct: float
    fsu_to_pct: float | None
    observations_pct: float | None
    optimal_pct: float | None
    suboptimal_pct: float | None


@dataclass(frozen=True, slots=True)
class HistogramBin:
    """One bin of the FSU histogram; the last one has no upper end."""

    fsu_from_pct: float
    fsu_to_pct: float | None
    observations: int


@dataclass(frozen=True, slots=True)
class DailyVolume:
    """Bytes moved on one UTC day; null where no target reported bytes. One that is not complete is in no mean."""

    date: date
    read_bytes: int | None
    write_bytes: int | None
    covered_pct: float
    complete: bool


@dataclass(frozen=True, slots=True)
class DailySummary:
    """Mean and median of the volumes of complete days; null where there is none. `timezone` says where days begin."""

    days: int
    days_left_out: int
    mean_read_bytes: float | None
    mean_write_bytes: float | None
    median_read_bytes: float | None
    median_write_bytes: float | None
    timezone: str = "UTC"


@dataclass(frozen=True, slots=True)
class UtilizationSeries:
    """Tick by tick, or averaged into buckets when the window is long: for figures."""

    bucket_s: float
    time_us: Integers  # end of the tick or bucket
    fsu_pct: Floats  # mean over the bucket
    read_bytes_per_s: Floats
    write_bytes_per_s: Floats
    util_pct: Floats | None = None  # the kernel's; None: no device counts it

    @property
    def latest(self) -> LatestLoad | None:
        """Its last minutes; None: it has no tick."""
        moved = np.asarray(self.read_bytes_per_s) + np.asarray(self.write_bytes_per_s)
        return LatestLoad.of(self.time_us, self.bucket_s, self.fsu_pct, moved)


@dataclass(frozen=True, slots=True)
class UtilizationEnvelope:
    """How the ticks of a long window spread within buckets of time; null of what no target reported."""

    bucket_s: float
    bucket_starts: list[datetime]
    fsu_pct: BucketSpread | None
    read_bytes_per_s: BucketSpread | None
    write_bytes_per_s: BucketSpread | None
    util_pct: BucketSpread | None


@dataclass(frozen=True, slots=True)
class Utilization(OverIntervals, RestsOnCalibration):
    """All of SPEC U7 to U10 for one file system and window.

    `model` says which FSU all of it is about: by bin labels (`…_fsu_pct`) or by true bytes (`…_fsu_bytes_pct`). Where
    FSU has no level, shares of busy time, categories, their I/Os and plateaus are null.
    """

    filesystem: str
    window_start: datetime | None
    window_end: datetime | None
    model: Model
    targets: int
    samples: int
    target_samples: int
    mean_fsu_pct: float | None
    mean_fsu_bytes_pct: float | None
    mean_util_pct: float | None
    busy_time_pct: float | None
    optimal_busy_time_pct: float | None
    under_report_factor: float | None
    bandwidth_busy_time_pct: float | None
    peak_bytes_per_s: float | None
    peak_origin: str | None
    categories: list[Category]
    histogram: list[HistogramBin]
    io_sizes: list[SizeCount]
    daily: list[DailyVolume]
    daily_summary: DailySummary
    plateaus: list[Plateau] | None
    per_target: list[TargetUtilization]
    target_outliers: TargetOutliers = field(kw_only=True)
    calibration: Calibration
    coverage: Coverage
    servers: TargetServers | None = of_servers()
    calibrations: list[AppliedCalibration] | None = only_if_present()
    envelope: UtilizationEnvelope | None = field(default=None, metadata={"json": "present"}, repr=False, compare=False)
    compare: Utilization | None = only_if_present()
    since_start: CountersSinceStart | None = only_if_present()
    series: UtilizationSeries | None = not_in_json()
    heat_map: FsuHeatMap | None = not_in_json()

    @property
    def mean_pct(self) -> float | None:
        """Mean FSU by whichever model."""
        return self.mean_fsu_pct if self.model == "histogram" else self.mean_fsu_bytes_pct

    @property
    def knows_peak(self) -> bool:
        """Whether the peak is one the hardware is known to reach: given or configured, not found in the window."""
        return self.peak_bytes_per_s is not None and self.peak_origin != LARGEST_TICK


def utilization(
    selection: Selection,
    *,
    model: Literal["auto", "histogram", "counters"] = "auto",
    calibration: Calibration = GRACE_2012,
    calibrations: Sequence[AppliedCalibration] = (),
    peak_bytes_per_s: float | None = None,
    peak_origin: str = "given",
    plateau_minimum_s: float = MINIMUM_S,
    plateau_spread: float = MAXIMUM_SPREAD,
    plateau_median_pct: float = MINIMUM_MEDIAN_PCT,
    saturated_share: float = SATURATED_SHARE,
    ceiling_fsu_pct: float | None = None,
    per_target: bool = True,
    timezone: str | None = None,
    notes: tuple[str, ...] = (),
    progress: Callable[[date], None] | None = None,
) -> Utilization:
    """FSU of one file system over a window, from its disk I/O size histograms or the counters of its disks.

    `calibrations`, where given, say which one holds for which targets and when; the last is for all others. The FSU of
    a full disk is theirs where a saturating test has shown it, else `ceiling_fsu_pct`, else 100. Days are those of
    `timezone`, or of UTC; of UTC also where only parts by UTC day are left of some.
    """
    rows = model_rows(selection, model)
    applied = list(calibrations) or [AppliedCalibration.given(calibration)]
    maker = UtilizationParts(rows, tuple(applied), WIDEST_BUCKET_S, per_target)
    extent, rests_on_kept = selection.extent_of(maker)
    heat_s = bucket_seconds(extent[1] - extent[0], MOST_HEAT_BUCKETS) if extent else DAY_S
    heat_s = max(heat_s, WIDEST_BUCKET_S) if rests_on_kept else heat_s
    ticks = TickTotals(
        lambda tick_us: PlateauFinder(tick_us, plateau_minimum_s, plateau_spread, plateau_median_pct),
        extent,
        peak_bytes_per_s,
    )
    bucket_s = min(heat_s, WIDEST_BUCKET_S)
    zone = "UTC" if timezone is None or rests_on_kept else timezone
    if zone != timezone and not is_utc(timezone):
        notes = (*notes, UTC_DAYS)
    maker = replace(maker, bucket_s=bucket_s, moved_s=DAY_S if is_utc(zone) else QUARTER_S)
    targets, rest, largest = TargetTotals(DAY_S), UtilizationPart(), LargestMean()
    for part in selection.parts(maker, progress):
        ticks.add(part.sizes, part.io)
        largest.add(known_ticks(part.sizes))
        if part.moved.names:
            moved = part.moved if is_utc(zone) else part.moved.in_days(QUARTER_US, zone)
            targets.add_bytes(moved, per_target)
        if part.targets.names:
            targets.add_sizes(part.targets.rows())
        targets.left_out |= part.left_out
        rest.take(part.without_rows(heat_s // bucket_s))
    ticks.finish()
    totals = _WindowTotals(ticks, targets, rest, heat_s, zone, largest)
    peak = peak_bytes_per_s, peak_origin
    saturation = Saturation(saturated_share, ceiling_fsu_pct)
    return _result(selection, rows.model, applied, totals, peak, saturation, (*notes, *rows.notes))


@dataclass(frozen=True, slots=True)
class _WindowTotals:
    """The window: its ticks, its targets, and what else is kept of its days."""

    ticks: TickTotals
    targets: TargetTotals
    rest: UtilizationPart
    heat_s: int
    zone: str
    largest: LargestMean


def _result(
    selection: Selection,
    model: Model,
    applied: list[AppliedCalibration],
    totals: _WindowTotals,
    given_peak: tuple[float | None, str],
    saturation: Saturation,
    notes: tuple[str, ...],
) -> Utilization:
    ticks, targets, rest = totals.ticks, totals.targets, totals.rest
    peak, peak_origin = given_peak
    if peak is None and ticks.bandwidth.largest > 0:
        peak, peak_origin = ticks.bandwidth.largest, LARGEST_TICK
    start, end = selection.window
    first_us, last_us = targets.extent_us or ticks.extent_of_ticks
    daily, per_target = _daily(targets, totals.zone), _per_target(model, targets)
    coverage = coverage_of(selection, targets, ticks, notes)
    mean = ratio(ticks.fsu_seconds, ticks.seconds)
    by_label, by_bytes = _by_model(model, mean)
    reporting = len(targets.names_with_sizes) or ticks.most_targets
    ios = rest.ios if model == "histogram" else None
    named = targets.names_with_sizes or ticks.most_targets
    result = Utilization(
        **calibration_of_result(applied, named, mean, ios, totals.largest.refuted),
        filesystem=selection.filesystem,
        window_start=start or (from_epoch_us(first_us) if first_us is not None else None),
        window_end=end or (from_epoch_us(last_us) if last_us is not None else None),
        model=model,
        targets=reporting,
        samples=ticks.samples,
        target_samples=ticks.target_samples,
        mean_fsu_pct=by_label,
        mean_fsu_bytes_pct=by_bytes,
        mean_util_pct=ratio(ticks.util_seconds, ticks.util_s),
        busy_time_pct=ratio(100.0 * ticks.busy_s, ticks.seconds),
        optimal_busy_time_pct=ratio(100.0 * ticks.optimal_busy_s, ticks.seconds),
        under_report_factor=ratio(ticks.busy_s, ticks.optimal_busy_s),
        bandwidth_busy_time_pct=ticks.bandwidth.busy_time_pct(peak),
        peak_bytes_per_s=peak,
        peak_origin=peak_origin if peak is not None else None,
        categories=_categories(ticks, rest.category_ios),
        histogram=_histogram(ticks),
        io_sizes=_io_sizes(rest.ios) if model == "histogram" else [],
        daily=daily,
        daily_summary=_daily_summary(daily, totals.zone),
        plateaus=None
        if ticks.plateaus is None
        else plateaus(selection, ticks.plateaus, saturation, applied, reporting, by_bytes=model == "counters"),
        per_target=per_target,
        target_outliers=target_outliers(per_target, coverage.per_target),
        calibration=applied[-1].calibration,
        coverage=coverage,
        calibrations=applied if len(applied) > 1 else None,
        envelope=_envelope(ticks),
        since_start=None if ticks.samples else CountersSinceStart.of(selection),
        series=_series(ticks),
        heat_map=heat_map(rest.heat, totals.heat_s),
    )
    if result.is_calibrated:
        return result
    # What remains where FSU has no level: sizes, order, change over time, bandwidth, coverage.
    return replace(
        result,
        busy_time_pct=None,
        optimal_busy_time_pct=None,
        under_report_factor=None,
        categories=[
            replace(category, observations_pct=None, optimal_pct=None, suboptimal_pct=None)
            for category in result.categories
        ],
        plateaus=None,
        per_target=[replace(target, busy_time_pct=None) for target in result.per_target],
    )


def _by_model(model: Model, value: float | None) -> tuple[float | None, float | None]:
    """FSU by labels and by bytes: one of the two."""
    return (value, None) if model == "histogram" else (None, value)


def _io_sizes(ios: Mapping[str, int]) -> list[SizeCount]:
    return [SizeCount(direction, size, ios.get(name, 0)) for name, (direction, size) in SIZE_COLUMNS.items()]


def _categories(ticks: TickTotals, category_ios: Floats) -> list[Category]:
    borders = (
        ("idle", 0.0, IDLE_BELOW_PCT),
        ("moderate", IDLE_BELOW_PCT, BUSY_ABOVE_PCT),
        ("busy", BUSY_ABOVE_PCT, None),
    )
    lines = []
    for (name, low, high), count, ios in zip(borders, ticks.category_counts, category_ios, strict=True):
        optimal, suboptimal = (float(share) for share in ios)
        both = optimal + suboptimal
        lines.append(
            Category(
                name,
                low,
                high,
                ratio(100.0 * int(count), ticks.samples),
                ratio(100.0 * optimal, both),
                ratio(100.0 * suboptimal, both),
            )
        )
    return lines


def _histogram(ticks: TickTotals) -> list[HistogramBin]:
    ends = [BIN_PCT * (number + 1) for number in range(BINS)]
    return [
        HistogramBin(BIN_PCT * number, end, int(ticks.observations[number])) for number, end in enumerate([*ends, None])
    ]


def _daily(targets: TargetTotals, zone: str) -> list[DailyVolume]:
    covered = targets.covered_pct(zone)
    return [
        DailyVolume(day_of(day), read, written, covered[day], is_complete(covered[day]))
        for day, (read, written) in sorted(targets.bytes_by_day.items())
    ]


def _daily_summary(daily: list[DailyVolume], zone: str) -> DailySummary:
    def over(values: list[int], how: Callable[[list[int]], float]) -> float | None:
        return float(how(values)) if values else None

    whole = [day for day in daily if day.complete]
    reads = [day.read_bytes for day in whole if day.read_bytes is not None]
    writes = [day.write_bytes for day in whole if day.write_bytes is not None]
    return DailySummary(
        days=len(whole),
        days_left_out=len(daily) - len(whole),
        mean_read_bytes=over(reads, np.mean),
        mean_write_bytes=over(writes, np.mean),
        median_read_bytes=over(reads, np.median),
        median_write_bytes=over(writes, np.median),
        timezone=zone,
    )


def _per_target(model: Model, targets: TargetTotals) -> list[TargetUtilization]:
    lines = []
    for name in sorted({*targets.names_with_sizes, *targets.bytes_by_target}):
        sums = targets.sums.get(name)
        read, written = targets.bytes_by_target.get(name, (None, None))
        by_label, by_bytes = _by_model(model, ratio(sums.busy, sums.duration_s) if sums else None)
        kernel_busy_s, kernel_s = targets.util_by_target.get(name, (0.0, 0.0))
        lines.append(
            TargetUtilization(
                name,
                by_label,
                ratio(100.0 * sums.busy_s, sums.duration_s) if sums else None,
                read,
                written,
                by_bytes,
                ratio(100.0 * kernel_busy_s, kernel_s),
            )
        )
    return lines


def _series(ticks: TickTotals) -> UtilizationSeries | None:
    if ticks.series is None:
        return None
    time_us, fsu, read, write, util = ticks.series.columns()
    return UtilizationSeries(ticks.series.bucket_us / 1e6, time_us, fsu, read, write, util if ticks.util_s else None)


def _envelope(ticks: TickTotals) -> UtilizationEnvelope | None:
    """None of a window in which every tick can be seen."""
    if not ticks.spreads:
        return None
    buckets = ticks.spreads["fsu"]
    starts = [from_epoch_us(int(start_us)) for start_us in buckets.starts_us]
    spreads = (spread.finish() for spread in ticks.spreads.values())
    return UtilizationEnvelope(buckets.bucket_us / 1e6, starts, *spreads)


def defaults(known: StoreKnowledge, selection: Selection, options: Options) -> Options:
    """The calibrations that apply, the peak, and the configured limits."""
    filesystem = selection.filesystem
    configured, limits = known.config.filesystem(filesystem), known.config.thresholds
    calibration = options.pop("calibration", None)
    by_name = peak_options(known, selection, options)
    if isinstance(calibration, Calibration):
        by_name["calibration"] = calibration
    else:
        extent = selection.extent_us("target_sizes") or selection.extent_us("target_io")
        by_name["calibrations"], by_name["notes"] = applied_calibrations(
            known.calibrations(),
            known.config,
            calibration or configured.calibration,
            filesystem,
            extent,
            selection.known_targets(),
        )
    by_name |= {
        "plateau_minimum_s": limits.plateau_minimum_s,
        "plateau_spread": limits.plateau_spread,
        "plateau_median_pct": limits.plateau_median_pct,
        "saturated_share": limits.saturated_share,
        "ceiling_fsu_pct": configured.ceiling_fsu_pct,
    }
    return {**by_name, **options}


def kept_of(known: StoreKnowledge, selection: Selection) -> Iterator[PartMaker[Any]]:
    """All but a finer heat map, by the calibrations that hold now."""
    calibrations = defaults(known, selection, {})["calibrations"]
    yield UtilizationParts(model_rows(selection, "auto"), tuple(calibrations), WIDEST_BUCKET_S, per_target=True)


ANALYSIS = Analysis(
    "utilization", "How busy a file system is, by count and size of its disk I/Os", utilization, defaults, kept_of
)
