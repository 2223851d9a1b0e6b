"""Disk-seconds of given jobs, each summed over the OSTs and intervals in which job_stats name it while it ran."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, Protocol

import narwhals as nw
import numpy as np
import pyarrow as pa

from iolens.analyses.attribution.interval_costs import IntervalCosts, interval_costs
from iolens.analyses.attribution.job_seconds import job_seconds
from iolens.analyses.attribution.results import DiskSeconds
from iolens.analyses.attribution.work import DiskWork
from iolens.analyses.calibration.applied import AppliedCalibration
from iolens.analyses.calibration.levels import RefutedCalibration
from iolens.analyses.calibration.state import calibration_of_result
from iolens.analyses.intervals.target_rows import codes
from iolens.analyses.utilization.model_rows import ModelRows
from iolens.arrays import Columns
from iolens.models.transaction_time import COVERED_SHARE, REFUTED_OVER_S, added
from iolens.schema import DIRECTIONS
from iolens.store.parts import Days
from iolens.store.selection import StoreSelection
from iolens.units import DAY_US, SECOND_US, from_epoch_us

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
