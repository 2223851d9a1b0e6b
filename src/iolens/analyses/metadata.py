"""Load on the metadata targets: operations by kind, and the time their server needs for them (MDU)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from math import gcd
from typing import Any, Final

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from iolens.analyses import Analysis, Options, StoreKnowledge
from iolens.analyses.calibration.runs import TOOL, find_metadata_calibration
from iolens.analyses.intervals.buckets import (
    PART_S,
    QUARTER_S,
    Percentiles,
    checked_width,
    common_width,
    covered_pct,
    day_of,
    is_complete,
    is_utc,
    local_days,
    rows_by_width,
    usual_width,
)
from iolens.analyses.intervals.coverage import metadata_coverage
from iolens.analyses.intervals.fsu_sums import QUALITY, collect, number, quality, total
from iolens.analyses.intervals.target_rows import BucketSums, codes
from iolens.analyses.intervals.target_totals import TargetTotals
from iolens.analyses.results import Coverage, OverIntervals, not_in_json, of_servers, ratio
from iolens.arrays import Columns, Floats, Integers
from iolens.models.metadata_time import Basis, MetadataCalibration
from iolens.models.transaction_time import BUSY_ABOVE_PCT
from iolens.part_form import PartForm
from iolens.schema import SUMMED_OPERATIONS
from iolens.store.frames import FrameSelection
from iolens.store.parts import Days, EngineParts
from iolens.store.selection import Selection
from iolens.target_servers import TargetServers
from iolens.units import SECOND_US, from_epoch_us

# What `metadata` keeps of some days -----------------------------------------------------------------------------------
# The load in ticks, of targets and of all, and operations by bucket.

TABLE: Final = "metadata_ops"
KEYS: Final = ("target", "length_us", "bucket")

Peak = tuple[float, int]  # value and time
Ends = tuple[int, int, float]  # start of a target's first interval, end of its last, and seconds of its longest


@dataclass(slots=True)
class Load:
    """Ticks of one target, or of the file system: rates, MDU, and their largest."""

    rates: Percentiles = field(default_factory=Percentiles)
    rate_seconds: float = 0.0
    seconds: float = 0.0
    busy_s: float = 0.0
    mdu_seconds: float = 0.0
    service_seconds: float = 0.0
    service_s: float = 0.0
    peak_ops: Peak | None = None
    peak_mdu: Peak | None = None

    def add(self, time_us: Integers, seconds: Floats, rate: Floats, mdu: Floats, service: Floats) -> None:
        """The next ticks; `service` is NaN where it is not known."""
        if not len(time_us):
            return
        known = np.isfinite(service)
        self.rates.add(rate)
        self.rate_seconds += float((rate * seconds).sum())
        self.seconds += float(seconds.sum())
        self.busy_s += float(seconds[mdu > BUSY_ABOVE_PCT].sum())
        self.mdu_seconds += float((mdu * seconds).sum())
        self.service_seconds += float((service[known] * seconds[known]).sum())
        self.service_s += float(seconds[known].sum())
        self.peak_ops = _larger(self.peak_ops, _peak(rate, time_us))
        self.peak_mdu = _larger(self.peak_mdu, _peak(mdu, time_us))

    def take(self, later: Load) -> None:
        """Later ticks."""
        self.rates.take(later.rates)
        for name in ADDED:
            setattr(self, name, getattr(self, name) + getattr(later, name))
        self.peak_ops = _larger(self.peak_ops, later.peak_ops)
        self.peak_mdu = _larger(self.peak_mdu, later.peak_mdu)


ADDED: Final = ("rate_seconds", "seconds", "busy_s", "mdu_seconds", "service_seconds", "service_s")


def _peak(values: Floats, time_us: Integers) -> Peak:
    place = int(values.argmax())
    return float(values[place]), int(time_us[place])


def _larger(old: Peak | None, new: Peak | None) -> Peak | None:
    """The earlier of equal ones."""
    return old if new is None or (old is not None and old[0] >= new[0]) else new


@dataclass(slots=True)
class MetadataPart:
    """A tick of the file system: rates add up over its targets, MDU is their unweighted mean."""

    sums: BucketSums  # operations by kind, their service times, and how well each target reported
    ends: dict[str, Ends]
    whole: Load = field(default_factory=Load)
    by_target: dict[str, Load] = field(default_factory=dict)
    samples: int = 0
    target_samples: int = 0

    def take(self, later: MetadataPart) -> None:
        """A part of later days."""
        self.sums.take(later.sums)
        for name, (first_us, last_us, longest_s) in later.ends.items():
            first, last, longest = self.ends.get(name, (first_us, last_us, longest_s))
            self.ends[name] = min(first, first_us), max(last, last_us), max(longest, longest_s)
        self.whole.take(later.whole)
        for name, load in later.by_target.items():
            self.by_target.setdefault(name, Load()).take(load)
        self.samples += later.samples
        self.target_samples += later.target_samples

    def add_ticks(self, rows: Columns) -> None:
        """All rows of some ticks."""
        self.target_samples += len(rows["epoch_us"])
        seconds = rows["duration_s"]
        rate, mdu = rows["ops"] / seconds, 100.0 * rows["model_s"] / seconds
        service = np.where(rows["times_known"] > 0, 100.0 * rows["service_s"] / seconds, np.nan)
        for name, mine in _groups(rows["target"]):
            ordered = mine[np.argsort(rows["epoch_us"][mine], kind="stable")]
            mine_only = (values[ordered] for values in (seconds, rate, mdu, service))
            self.by_target.setdefault(name, Load()).add(rows["epoch_us"][ordered], *mine_only)
        time_us, tick = np.unique(rows["epoch_us"], return_inverse=True)
        summed = (np.ones(len(tick)), np.isfinite(service), seconds, rate, mdu, np.nan_to_num(service))
        targets, timed, seconds, rate, mdu, service = (
            np.bincount(tick, values).astype(np.float64) for values in summed
        )
        with np.errstate(invalid="ignore"):
            self.whole.add(time_us, seconds / targets, rate, mdu / targets, service / timed)
        self.samples += len(time_us)


FORM: Final = PartForm("metadata", 1, (MetadataPart, BucketSums, Load, Percentiles))


def metadata_part(days: Days, bucket_s: int, costs: MetadataCalibration | None) -> MetadataPart:
    """Of some days, whatever operations occurred."""
    frame = days.frame(TABLE).filter(nw.col("duration_s") > 0)
    names = frame.collect_schema().names()
    counts = [name for name in SUMMED_OPERATIONS if name in names]
    times = [f"{name}_us" for name in SUMMED_OPERATIONS if f"{name}_us" in names]
    rows = collect(_by_bucket(frame, bucket_s, (*counts, *times)))
    sums = BucketSums.of(rows, bucket_s, KEYS, ("rows", "duration_s", *QUALITY, *counts, *times))
    part = MetadataPart(sums, {name: _ends(rows, mine) for name, mine in _groups(rows["target"])})
    part.add_ticks(collect(_by_row(frame, counts, times, costs)))
    return part


def _by_row(
    frame: nw.LazyFrame[Any], counts: Sequence[str], times: Sequence[str], costs: MetadataCalibration | None
) -> nw.LazyFrame[Any]:
    """Each target's ticks: operations, modelled seconds, and seconds in service where the server counts them."""
    modelled = [_known(name) * number(costs.of(name).s_per_op) for name in counts] if costs else []
    in_service = total([_known(name) for name in times]) * number(1e-6)
    times_known = total([nw.when(nw.col(name).is_null()).then(number(0.0)).otherwise(number(1.0)) for name in times])
    rows = frame.select(
        "target",
        "epoch_us",
        "duration_s",
        total([_known(name) for name in counts]).alias("ops"),
        total(modelled).alias("model_s"),
        in_service.alias("service_s"),
        times_known.alias("times_known"),
    )
    return rows.with_columns(((nw.col("times_known") > 0) | (nw.col("ops") <= 0)).cast(nw.Float64).alias("times_known"))


def _by_bucket(frame: nw.LazyFrame[Any], bucket_s: int, counted: Sequence[str]) -> nw.LazyFrame[Any]:
    """Each target by time bucket and length of its intervals."""
    bucket = (nw.col("start_us") // (bucket_s * SECOND_US)).alias("bucket")
    counts = [nw.col(name).cast(nw.Float64) for name in counted]
    rows = frame.select("target", "duration_s", "epoch_us", "start_us", bucket, *quality(frame), *counts)
    return rows.group_by(*KEYS).agg(
        nw.len().alias("rows"),
        *(nw.col(name).sum() for name in ("duration_s", *QUALITY, *counted)),
        nw.col("duration_s").max().alias("longest_s"),
        nw.col("start_us").min().alias("first_us"),
        nw.col("epoch_us").max().alias("last_us"),
    )


def _known(name: str) -> nw.Expr:
    """A server prints an operation only once it has occurred: until then there were none."""
    return nw.col(name).cast(nw.Float64).fill_null(0.0)


def _ends(rows: Columns, mine: Integers) -> Ends:
    first, last, longest = rows["first_us"][mine].min(), rows["last_us"][mine].max(), rows["longest_s"][mine].max()
    return int(first), int(last), float(longest)


def _groups(names: NDArray[np.object_]) -> Iterator[tuple[str, Integers]]:
    distinct, where = codes(names)
    for place, name in enumerate(distinct):
        yield name, np.flatnonzero(where == place)


# Load on the metadata targets -----------------------------------------------------------------------------------------
# Operations by kind, and Metadata Utilization (MDU) as FSU is for disks (SPEC B5).
#
# The engine gives each target's ticks as three numbers and its operations by time bucket; the rest works on those, one
# part of the window after the other.

MOST_BUCKETS: Final = 240
ENDS: Final = ("first_us", "last_us", "longest_s")
UNUSED: Final = ("busy", "busy_s", "outside")  # what disks have and metadata targets have not


@dataclass(frozen=True, slots=True)
class OperationLoad:
    """One kind of operation over the window; times are null where nothing was calibrated or counted."""

    operation: str
    count: int
    share_pct: float | None
    mean_ops_per_s: float | None
    s_per_op: float | None
    basis: Basis | None
    time_share_pct: float | None
    mean_service_s: float | None


@dataclass(frozen=True, slots=True)
class DailyOperations:
    """Operations that began on one UTC day; `complete`: at least 95 % of its samples are there."""

    date: date
    operations: int
    covered_pct: float
    complete: bool


@dataclass(frozen=True, slots=True)
class MetadataTarget:
    """One MDT over the window."""

    target: str
    operations: int
    mean_ops_per_s: float | None
    p50_ops_per_s: float | None
    p95_ops_per_s: float | None
    p99_ops_per_s: float | None
    peak_ops_per_s: float | None
    mean_mdu_pct: float | None
    busy_time_pct: float | None
    mean_mdu_service_pct: float | None


@dataclass(frozen=True, slots=True)
class MetadataSeries:
    """The file system bucket by bucket; NaN where nothing was reported: for figures."""

    bucket_s: float
    start_us: Integers
    ops_per_s: dict[str, Floats]
    mdu_pct: Floats | None
    mdu_service_pct: Floats | None


@dataclass(frozen=True, slots=True)
class Metadata(OverIntervals):
    """Load on the metadata targets of one file system over a window."""

    filesystem: str
    window_start: datetime | None
    window_end: datetime | None
    targets: int
    samples: int
    target_samples: int
    operations: int
    mean_ops_per_s: float | None
    p50_ops_per_s: float | None
    p95_ops_per_s: float | None
    p99_ops_per_s: float | None
    percentile_error_pct: float
    peak_ops_per_s: float | None
    peak_ops_time: datetime | None
    mean_mdu_pct: float | None
    busy_time_pct: float | None
    peak_mdu_pct: float | None
    peak_mdu_time: datetime | None
    mean_mdu_service_pct: float | None
    assumed_ops_pct: float | None
    assumed_time_pct: float | None
    mix: list[OperationLoad]
    daily: list[DailyOperations]
    per_target: list[MetadataTarget]
    calibration: MetadataCalibration | None
    coverage: Coverage
    timezone: str = "UTC"  # where the days of `daily` begin
    servers: TargetServers | None = of_servers()
    series: MetadataSeries | None = not_in_json()


def metadata(
    selection: Selection,
    *,
    costs: MetadataCalibration | None = None,
    every_s: float | None = None,
    timezone: str | None = None,
    notes: tuple[str, ...] = (),
    progress: Callable[[date], None] | None = None,
) -> Metadata:
    """Operations and MDU of one file system's metadata targets; without `costs` there is no MDU.

    Days are those of `timezone`, or of UTC.
    """
    extent = selection.extent_us(TABLE)
    given_s = None if every_s is None else checked_width(every_s, extent)
    span_us = extent[1] - extent[0] if extent else 0
    common_s = gcd(common_width(span_us, MOST_BUCKETS), given_s or 0, 0 if is_utc(timezone) else QUARTER_S)
    whole = metadata_part(FrameSelection({}), common_s, costs)
    maker = EngineParts(metadata_part, FORM, (TABLE,), (gcd(common_s, PART_S), costs))
    for part in selection.parts(maker, progress):
        part.sums = part.sums.wider(common_s)
        whole.take(part)
    rows = whole.sums.rows()
    width_s = given_s or usual_width(rows_by_width(rows["length_us"], rows["rows"]), span_us, MOST_BUCKETS)
    live, live_us = (
        selection.live_columns(TABLE, names)
        for names in (SUMMED_OPERATIONS, [f"{operation}_us" for operation in SUMMED_OPERATIONS])
    )
    return _result(selection, _Window(whole, whole.sums.wider(width_s), live, live_us, costs, timezone or "UTC"), notes)


@dataclass(frozen=True, slots=True)
class _Window:
    """The whole window, in the buckets that are shown, and the columns that may hold something other than zero."""

    part: MetadataPart
    sums: BucketSums
    live: Sequence[str]
    live_us: Sequence[str]
    costs: MetadataCalibration | None
    zone: str

    def targets(self) -> TargetTotals:
        """How well each of them reported."""
        rows = self.sums.rows()
        ends = [self.part.ends[name] for name in rows["target"]]
        rows |= {name: np.array([end[place] for end in ends]) for place, name in enumerate(ENDS)}
        rows |= {name: np.zeros(len(ends)) for name in UNUSED}
        targets = TargetTotals(self.sums.bucket_s)
        targets.add_sizes(rows)
        return targets

    def by_day(self) -> tuple[Columns, dict[int, float]]:
        """Sums by target and day (`bucket`) of the zone, and the share of its samples that each day has."""
        rows = self.part.sums.rows()
        rows["bucket"] = local_days(rows["bucket"].astype(np.int64) * self.part.sums.bucket_us, self.zone)
        return rows, covered_pct([{**rows, "tick_s": rows["length_us"] / 1e6}], self.zone)


def _result(selection: Selection, window: _Window, notes: tuple[str, ...]) -> Metadata:
    part, costs, targets = window.part, window.costs, window.targets()
    buckets, whole = window.sums.without("length_us").rows(), part.whole
    counts = {name: float(buckets[name].sum()) for name in window.live}
    start, end = selection.window
    first_us, last_us = targets.extent_us or selection.extent_us(TABLE) or (None, None)
    mean_mdu, busy, peak_mdu = _mdu(whole) if costs is not None else (None, None, None)
    assumed_ops, assumed_time = _assumed(costs, counts)
    return Metadata(
        filesystem=selection.filesystem,
        window_start=start or (from_epoch_us(first_us) if first_us is not None else None),
        window_end=end or (from_epoch_us(last_us) if last_us is not None else None),
        targets=len(part.by_target),
        samples=part.samples,
        target_samples=part.target_samples,
        operations=round(sum(counts.values())),
        mean_ops_per_s=ratio(whole.rate_seconds, whole.seconds),
        p50_ops_per_s=whole.rates.at(0.5),
        p95_ops_per_s=whole.rates.at(0.95),
        p99_ops_per_s=whole.rates.at(0.99),
        percentile_error_pct=max([whole.rates.error_pct, *(load.rates.error_pct for load in part.by_target.values())]),
        peak_ops_per_s=whole.peak_ops[0] if whole.peak_ops else None,
        peak_ops_time=from_epoch_us(whole.peak_ops[1]) if whole.peak_ops else None,
        mean_mdu_pct=mean_mdu,
        busy_time_pct=busy,
        peak_mdu_pct=peak_mdu[0] if peak_mdu else None,
        peak_mdu_time=from_epoch_us(peak_mdu[1]) if peak_mdu else None,
        mean_mdu_service_pct=_service(window, whole),
        assumed_ops_pct=assumed_ops,
        assumed_time_pct=assumed_time,
        mix=_mix(window, buckets, counts),
        daily=_daily(window),
        per_target=[_target(name, load, window, buckets) for name, load in sorted(part.by_target.items())],
        calibration=costs,
        coverage=metadata_coverage(selection, targets, notes),
        timezone=window.zone,
        series=_series(window, buckets),
    )


def _mdu(load: Load) -> tuple[float | None, float | None, tuple[float, int] | None]:
    """Mean, share of time above 30, and the largest tick with its time."""
    return ratio(load.mdu_seconds, load.seconds), ratio(100.0 * load.busy_s, load.seconds), load.peak_mdu


def _service(window: _Window, load: Load) -> float | None:
    return ratio(load.service_seconds, load.service_s) if window.live_us else None


def _assumed(costs: MetadataCalibration | None, counts: dict[str, float]) -> tuple[float | None, float | None]:
    """How much of the operations and of the modelled time mdtest did not measure."""
    if costs is None:
        return None, None
    assumed = {name: count for name, count in counts.items() if costs.of(name).basis == "assumed"}
    operations = ratio(100.0 * sum(assumed.values()), sum(counts.values()))
    return operations, ratio(100.0 * costs.seconds(assumed), costs.seconds(counts))


def _mix(window: _Window, buckets: Columns, counts: dict[str, float]) -> list[OperationLoad]:
    """Kinds that occurred, the most frequent first."""
    costs = window.costs
    operations = sum(counts.values())
    modelled_s = costs.seconds(counts) if costs is not None else 0.0
    mean = ratio(window.part.whole.rate_seconds, window.part.whole.seconds)
    lines = []
    for name, count in sorted(counts.items(), key=lambda item: (-item[1], item[0])):
        if not count:
            continue
        cost = costs.of(name) if costs is not None else None
        lines.append(
            OperationLoad(
                name,
                round(count),
                100.0 * count / operations,
                None if mean is None else mean * count / operations,
                cost.s_per_op if cost else None,
                cost.basis if cost else None,
                ratio(100.0 * count * cost.s_per_op, modelled_s) if cost else None,
                _mean_service_s(name, buckets),
            )
        )
    return lines


def _mean_service_s(operation: str, buckets: Columns) -> float | None:
    """Over the buckets and targets that count times at all."""
    times = buckets.get(f"{operation}_us")
    if times is None:
        return None
    timed = times > 0
    return ratio(float(times[timed].sum()) * 1e-6, float(buckets[operation][timed].sum()))


def _daily(window: _Window) -> list[DailyOperations]:
    rows, covered = window.by_day()
    operations = _operations(window, rows)
    return [
        DailyOperations(day_of(day), round(float(operations[rows["bucket"] == day].sum())), share, is_complete(share))
        for day, share in covered.items()
    ]


def _operations(window: _Window, buckets: Columns) -> Floats:
    zero = np.zeros(len(buckets["bucket"]))
    return sum((buckets[name] for name in window.live), zero)


def _target(name: str, load: Load, window: _Window, buckets: Columns) -> MetadataTarget:
    mean_mdu, busy, _ = _mdu(load) if window.costs is not None else (None, None, None)
    mine = buckets["target"] == name
    return MetadataTarget(
        target=name,
        operations=round(float(_operations(window, buckets)[mine].sum())),
        mean_ops_per_s=ratio(load.rate_seconds, load.seconds),
        p50_ops_per_s=load.rates.at(0.5),
        p95_ops_per_s=load.rates.at(0.95),
        p99_ops_per_s=load.rates.at(0.99),
        peak_ops_per_s=load.peak_ops[0] if load.peak_ops else None,
        mean_mdu_pct=mean_mdu,
        busy_time_pct=busy,
        mean_mdu_service_pct=_service(window, load),
    )


def _series(window: _Window, buckets: Columns) -> MetadataSeries | None:
    """Rates add up over targets, each over the time it reported; MDU is their mean."""
    if not len(buckets["bucket"]):
        return None
    number_of = buckets["bucket"].astype(np.int64)
    first = int(number_of.min())
    width = int(number_of.max()) - first + 1
    reporting = np.bincount(number_of - first, minlength=width)

    def over_time(values: Floats) -> Floats:
        sums = np.bincount(number_of - first, weights=values / buckets["duration_s"], minlength=width)
        return np.where(reporting > 0, sums, np.nan)

    rates = {name: over_time(buckets[name]) for name in window.live if buckets[name].any()}
    costs, means = window.costs, np.maximum(reporting, 1)
    modelled = (
        sum((buckets[name] * costs.of(name).s_per_op for name in window.live), np.zeros(len(number_of)))
        if costs
        else None
    )
    in_service = sum((buckets[name] * 1e-6 for name in window.live_us), np.zeros(len(number_of)))
    return MetadataSeries(
        float(window.sums.bucket_s),
        (first + np.arange(width)) * window.sums.bucket_us,
        rates,
        None if modelled is None else 100.0 * over_time(modelled) / means,
        100.0 * over_time(in_service) / means if window.live_us else None,
    )


def defaults(known: StoreKnowledge, selection: Selection, options: Options) -> Options:
    """Costs of operations by the stored mdtest results."""
    calibration = options.pop("calibration", None)
    if isinstance(calibration, MetadataCalibration):
        return {"costs": calibration, **options}
    costs, notes = find_metadata_calibration(known.benchmark_runs(TOOL), calibration, selection.filesystem)
    return {"costs": costs, "notes": notes, **options}


ANALYSIS = Analysis(
    "metadata", "Load on the metadata targets: operations by kind and metadata utilization", metadata, defaults
)
