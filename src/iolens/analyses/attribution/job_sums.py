"""Seconds, bytes and operations of jobs over a window: by job_stats where they are, else by the time they ran."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import Any, Final, Literal, NamedTuple, Protocol

import narwhals as nw
import numpy as np
import pyarrow as pa

from iolens.analyses.attribution.work import (
    SUMS,
    DiskWork,
    IntervalCosts,
    MetadataWork,
    TargetWork,
    interval_costs,
    short_enough,
)
from iolens.analyses.calibration.applied import AppliedCalibration
from iolens.analyses.calibration.state import NO_FSU, RefutedCalibration, calibration_of_result
from iolens.analyses.intervals.buckets import PART_S
from iolens.analyses.intervals.fsu_sums import collect
from iolens.analyses.intervals.target_rows import BucketSums, codes
from iolens.analyses.utilization.targets import ModelRows
from iolens.arrays import Columns, Floats
from iolens.models.transaction_time import COVERED_SHARE, REFUTED_OVER_S, added
from iolens.part_form import PartForm
from iolens.schema import DIRECTIONS
from iolens.store.parts import Days, EngineParts
from iolens.store.selection import StoreSelection
from iolens.units import DAY_US, SECOND_US, from_epoch_us

# What attribution says of many jobs at once ---------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class DiskSeconds:
    """Disk-seconds by number of the job; a job that no job_stats name has none. `assumed_pct`: share by k = 1.

    `calibrated` are the fields of `RestsOnCalibration` of what is made of them.
    """

    by_job: Mapping[int, float | None] = field(default_factory=dict)
    calibrations: Sequence[str] = ()
    assumed_pct: float | None = None
    calibrated: Mapping[str, Any] = field(default_factory=lambda: NO_FSU)


NOT_ATTRIBUTED: Final = DiskSeconds()


# Rows of job_stats in seconds -----------------------------------------------------------------------------------------
# A job's operations and bytes at the costs of their target and interval (B1).


def job_seconds(days: Days, work: TargetWork, costs: IntervalCosts) -> nw.LazyFrame[Any]:
    """One row for each job, target and interval that ends in the days, as job_stats have it, with of each direction

    `…_s`: its seconds, NULL where its operations or bytes are not known; `…_assumed_s`: those for which k is not known.
    """
    rows = short_enough(work.asked(days.frame("job_io")))
    priced = rows.join(days.beside(costs.table), left_on=["target", "epoch_us"], right_on=["target", "until_us"])
    seconds = []
    for direction in work.directions:
        ops, moved = (nw.col(f"{direction}_{what}") for what in ("ops", "bytes"))
        own_s = ops * nw.col(f"{direction}_per_op_s") + moved * nw.col(f"{direction}_per_byte_s")
        is_assumed = nw.when(ops > 0).then(nw.col(f"{direction}_is_assumed")).otherwise(nw.lit(0.0))
        seconds += [own_s.alias(f"{direction}_s"), (own_s * is_assumed).alias(f"{direction}_assumed_s")]
    return priced.with_columns(*seconds)


# What attribution keeps of some days ----------------------------------------------------------------------------------
# Seconds, bytes and operations of jobs, and what the targets did in all (B1).
#
# It depends on the days, the calibrations and the width of a bucket, not on who is asked about: whose job an id is gets
# known when the answer is put together.

DISK_TABLES: Final = ("job_io", "target_sizes", "target_io")
METADATA_TABLES: Final = ("job_io", "metadata_ops")
COUNTED: Final = {  # of the jobs, beside their seconds
    DiskWork: ("read_bytes", "write_bytes", "operations"),
    MetadataWork: ("metadata_operations",),
}


@dataclass(slots=True)
class AttributionPart:
    """Sums of jobs by bucket, of jobs by target, and of targets by bucket; a job's `seconds` are of all directions."""

    jobs: BucketSums  # job_id, bucket: seconds, assumed_s, bytes and operations
    job_targets: BucketSums  # job_id, target: seconds
    targets: BucketSums  # target, bucket: seconds by direction, `SUMS`

    def take(self, later: AttributionPart) -> None:
        """A part of later days."""
        self.jobs.take(later.jobs)
        self.job_targets.take(later.job_targets)
        self.targets.take(later.targets)


FORM: Final = PartForm("attribution", 1, (AttributionPart, BucketSums))


def attribution_parts(work: DiskWork | MetadataWork, bucket_s: int) -> EngineParts[AttributionPart]:
    """How parts are made, of disks or of metadata targets."""
    tables = DISK_TABLES if isinstance(work, DiskWork) else METADATA_TABLES
    return EngineParts(attribution_part, FORM, tables, (work, bucket_s), looks_around=True)


def attribution_part(days: Days, work: DiskWork | MetadataWork, bucket_s: int) -> AttributionPart:
    """Of some days."""
    bucket_us = bucket_s * SECOND_US
    costs = interval_costs(days, work, bucket_us)
    counted = COUNTED[type(work)]
    rows = collect(_by_job(job_seconds(days, work, costs), work, counted, bucket_us))
    sums = ("seconds", "assumed_s", *counted)
    jobs = BucketSums.of({name: rows[name] for name in ("job_id", "bucket", *sums)}, bucket_s, JOB_KEYS, sums)
    places = BucketSums.of(
        {"job_id": rows["job_id"], "target": rows["target"], "bucket": np.zeros(len(rows["job_id"]), np.int64),
         "seconds": rows["seconds"]}, bucket_s, PLACE_KEYS, ("seconds",),
    )  # fmt: skip
    return AttributionPart(jobs, places, _targets(work, costs, bucket_s))


JOB_KEYS: Final = ("job_id", "bucket")
PLACE_KEYS: Final = ("job_id", "target", "bucket")
TARGET_KEYS: Final = ("target", "bucket")


def _by_job(rows: nw.LazyFrame[Any], work: TargetWork, counted: Sequence[str], bucket_us: int) -> nw.LazyFrame[Any]:
    """By job, target and bucket; what is not known counts as zero."""

    def both(ending: str) -> nw.Expr:
        parts = [nw.col(f"{direction}_{ending}").fill_null(0.0) for direction in work.directions]
        return parts[0] + parts[1] if len(parts) > 1 else parts[0]

    own = {"operations": both("ops")}
    columns = [both("s").alias("seconds"), both("assumed_s").alias("assumed_s")]
    columns += [own.get(name, nw.col(name).fill_null(0.0)).alias(name) for name in counted]
    keyed = rows.select("job_id", "target", (nw.col("start_us") // bucket_us).alias("bucket"), *columns)
    return keyed.group_by("job_id", "target", "bucket").agg(
        *(nw.col(name).sum() for name in ("seconds", "assumed_s", *counted))
    )


def _targets(work: TargetWork, costs: IntervalCosts, bucket_s: int) -> BucketSums:
    names = [f"{direction}_s" for direction in work.directions]
    names += [f"{direction}_reached_bytes" for direction in DIRECTIONS if isinstance(work, DiskWork)]
    rows: Columns = {name: costs.by_target[name] for name in (*TARGET_KEYS, *names, *SUMS)}
    return BucketSums.of(rows, bucket_s, TARGET_KEYS, (*names, *SUMS))


# Seconds, bytes and operations of jobs over a window, and what the targets did in all: of job_stats -------------------
# (B1).

Method = Literal["job_stats", "overlap"]


@dataclass(frozen=True, slots=True)
class JobSums:
    """`jobs`: rows of `job_id` and `bucket` with `seconds` and counts, NaN where not known; `places`: of `job_id` and

    `target` with `seconds`; `targets`: of `target` and `bucket` with `seconds` and `duration_s`. A job's seconds are
    never more than those of the targets in the same bucket.
    """

    method: Method
    bucket_s: int
    jobs: Columns
    places: Columns
    targets: Columns
    wanted_s: float  # what jobs asked for, before it is scaled to what the targets did
    assumed_s: float = 0.0
    unmeasured_s: float = 0.0
    intervals: int = 0


def job_sums(
    selection: StoreSelection,
    work: DiskWork | MetadataWork,
    shown_s: int,
    progress: Callable[[date], None] | None = None,
) -> JobSums | None:
    """Of job_stats, in buckets of `shown_s`; None where the window has no row of them or of the targets."""
    bucket_s = min(shown_s, PART_S)
    whole: AttributionPart | None = None
    for part in selection.parts(attribution_parts(work, bucket_s), progress):
        if whole is None:
            whole = part
        else:
            whole.take(part)
    if whole is None:
        return None
    targets = whole.targets.wider(shown_s).rows()
    targets["seconds"] = sum((targets[f"{direction}_s"] for direction in work.directions), np.zeros(1))
    return JobSums(
        "job_stats",
        shown_s,
        whole.jobs.wider(shown_s).rows(),
        whole.job_targets.without("bucket").rows(),
        targets,
        float(targets["wanted_s"].sum()),
        float(targets["assumed_s"].sum()),
        float(targets["unmeasured_s"].sum()),
        int(targets["intervals"].sum()),
    )


# Disk-seconds of given jobs -------------------------------------------------------------------------------------------
# Each summed over the OSTs and intervals in which job_stats name it while it ran.

_MARGIN_US: Final = DAY_US  # clocks of servers and schedulers differ
_TEN_MINUTES_US: Final = round(REFUTED_OVER_S * SECOND_US)


class RanFromTo(Protocol):
    """A job with an id and its times in microseconds since 1970."""

    @property
    def job_id(self) -> str:
        """The scheduler's number."""

    @property
    def start_us(self) -> int:
        """When it began."""

    @property
    def end_us(self) -> int:
        """When it ended."""


def disk_seconds_of(
    selection: StoreSelection, jobs: Sequence[RanFromTo], applied: Sequence[AppliedCalibration]
) -> DiskSeconds:
    """Disk-seconds of the jobs that job_stats name, by their place in `jobs`; NULL where an RPC count is missing."""
    if not jobs or not applied:
        return DiskSeconds()
    first_us = max(min(job.start_us for job in jobs) - _MARGIN_US, 0)
    window = selection.between(first_us, max(job.end_us for job in jobs) + _MARGIN_US)
    names = sorted({calibration.calibration.name for calibration in applied})
    sums: dict[int, float | None] = {}
    assumed_s = 0.0
    targets: set[str] = set()
    refuted: RefutedCalibration | None = None
    work = DiskWork(tuple(applied), ModelRows("histogram", has_util=False))
    for days in window.tick_days(("job_io",), SECOND_US):
        costs = interval_costs(days, work, _TEN_MINUTES_US)
        targets |= set(costs.by_target["target"].tolist())
        refuted = _more_refuting(refuted, _largest_mean(costs.by_target))
        for line in _lines(_summed(days, jobs, work, costs)):
            before, added_s = sums.get(line["job"], 0.0), line["disk_s"]
            is_known = before is not None and line["known"] == line["rows"]
            sums[line["job"]] = before + added_s if is_known and before is not None else None
            assumed_s += line["assumed_s"] or 0.0
    whole_s = sum(value for value in sums.values() if value is not None)
    if not sums:
        return DiskSeconds()
    calibrated = calibration_of_result(applied, targets, None, None, refuted)
    return DiskSeconds(sums, names, 100 * assumed_s / whole_s if whole_s > 0 else None, calibrated)


def _largest_mean(by_target: Columns) -> RefutedCalibration | None:
    """The ten minutes, of which nine are measured, in which the targets did more than they can."""
    is_measured = by_target["unmeasured_s"] == 0
    by_target = {name: values[is_measured] for name, values in by_target.items()}
    if not is_measured.any():
        return None
    buckets, place = np.unique(by_target["bucket"], return_inverse=True)
    names, target = codes(by_target["target"])
    of_targets = np.zeros((len(buckets), len(names)), np.bool_)
    of_targets[place, target] = True
    covered_s, took_s = (
        np.bincount(place, values)
        for values in (by_target["duration_s"], sum(by_target[f"{direction}_s"] for direction in DIRECTIONS))
    )
    is_covered = covered_s >= COVERED_SHARE * REFUTED_OVER_S * of_targets.sum(axis=1)
    mean_pct = np.divide(100.0 * took_s, covered_s, out=np.zeros(len(buckets)), where=is_covered)
    largest = int(np.argmax(mean_pct))
    return RefutedCalibration.by(float(mean_pct[largest]), from_epoch_us(int(buckets[largest] + 1) * _TEN_MINUTES_US))


def _more_refuting(first: RefutedCalibration | None, second: RefutedCalibration | None) -> RefutedCalibration | None:
    return max(filter(None, (first, second)), key=lambda refuted: refuted.mean_fsu_pct, default=None)


def _summed(days: Days, jobs: Sequence[RanFromTo], work: DiskWork, costs: IntervalCosts) -> nw.LazyFrame[Any]:
    """One row for each job of the days."""
    rows = job_seconds(days, work, costs)
    overlaps = (nw.col("start_us") <= nw.col("job_until_us")) & (nw.col("epoch_us") >= nw.col("job_from_us"))
    own = rows.join(days.beside(_members(jobs)), left_on=["job_id"], right_on=["member_id"]).filter(overlaps)
    disk_s = added([nw.col(f"{direction}_s") for direction in DIRECTIONS])  # NULL where either is
    assumed_s = added([nw.col(f"{direction}_assumed_s") for direction in DIRECTIONS])
    both = own.with_columns(disk_s.alias("disk_s"), assumed_s.alias("assumed_s"))
    return both.group_by("job").agg(
        nw.col("disk_s").sum(), nw.col("assumed_s").sum(), nw.col("disk_s").count().alias("known"),
        nw.len().alias("rows"),
    )  # fmt: skip


def _members(jobs: Sequence[RanFromTo]) -> pa.Table:
    return pa.table(
        {
            "job": pa.array(range(len(jobs)), pa.int64()),
            "member_id": pa.array([job.job_id for job in jobs], pa.string()),
            "job_from_us": pa.array([job.start_us for job in jobs], pa.int64()),
            "job_until_us": pa.array([job.end_us for job in jobs], pa.int64()),
        }
    )


def _lines(frame: nw.LazyFrame[Any]) -> list[dict[str, Any]]:
    lines: list[dict[str, Any]] = frame.collect(backend="pyarrow").to_native().to_pylist()
    return lines


# When jobs moved their bytes, where no server counted by job ----------------------------------------------------------
# Stretches of time with bytes, spread evenly (B1).


class MovedBytes(NamedTuple):
    """Bytes of one job from one time to another, in microseconds since 1970."""

    job_id: str
    start_us: int
    end_us: int
    read_bytes: float
    write_bytes: float


def spread(stretches: Sequence[MovedBytes], bucket_us: int, extent_us: tuple[int, int]) -> Columns:
    """Rows of `job_id` and `bucket` with `read_bytes` and `write_bytes`, of the buckets that meet the extent."""
    ids: list[str] = []
    buckets, moved = [np.empty(0, np.int64)], {direction: [np.empty(0)] for direction in DIRECTIONS}
    first, last = extent_us[0] // bucket_us, (extent_us[1] - 1) // bucket_us
    for stretch in stretches:
        end_us = max(stretch.end_us, stretch.start_us + 1)
        numbers = np.arange(max(stretch.start_us // bucket_us, first), min((end_us - 1) // bucket_us, last) + 1)
        overlap = np.minimum((numbers + 1) * bucket_us, end_us) - np.maximum(numbers * bucket_us, stretch.start_us)
        share = overlap / (end_us - stretch.start_us)
        ids += [stretch.job_id] * len(numbers)
        buckets.append(numbers)
        moved["read"].append(share * stretch.read_bytes)
        moved["write"].append(share * stretch.write_bytes)
    return {
        "job_id": np.array(ids, object),
        "bucket": np.concatenate(buckets),
        **{f"{direction}_bytes": np.concatenate(parts) for direction, parts in moved.items()},
    }


# Without job_stats ----------------------------------------------------------------------------------------------------
# Bytes of jobs beside the bytes that the targets moved at the same time (B1). Association only.
#
# In each bucket of time and direction a job's share is its bytes ÷ the bytes of the targets; where jobs moved more than
# the targets did (caches, other file systems), all are scaled down to it. Its seconds are that share of the targets'.


def associated(sums: JobSums, stretches: Sequence[MovedBytes], extent_us: tuple[int, int]) -> JobSums:
    """The sums of targets as they are, and of jobs by overlap."""
    rows = spread(stretches, sums.bucket_s * 1_000_000, extent_us)
    buckets, place = np.unique(sums.targets["bucket"], return_inverse=True)
    known = np.isin(rows["bucket"], buckets)
    rows = {name: values[known] for name, values in rows.items()}
    column = np.searchsorted(buckets, rows["bucket"])
    seconds, wanted_s = np.zeros(len(column)), 0.0
    for direction in DIRECTIONS:
        took, moved = (
            np.bincount(place, sums.targets[f"{direction}_{what}"], len(buckets)).astype(np.float64)
            for what in ("s", "reached_bytes")
        )
        asked = np.bincount(column, rows[f"{direction}_bytes"], len(buckets)).astype(np.float64)
        per_byte = _divided(took, np.maximum(moved, asked))
        seconds += rows[f"{direction}_bytes"] * per_byte[column]
        wanted_s += float((asked * _divided(took, moved)).sum())
    return JobSums("overlap", sums.bucket_s, rows | {"seconds": seconds}, _nowhere(), sums.targets, wanted_s)


def _divided(above: Floats, below: Floats) -> Floats:
    result: Floats = np.divide(above, below, out=np.zeros(len(above)), where=below > 0)
    return result


def _nowhere() -> Columns:
    nothing = np.empty(0)
    return {"job_id": np.empty(0, object), "target": np.empty(0, object), "seconds": nothing}
