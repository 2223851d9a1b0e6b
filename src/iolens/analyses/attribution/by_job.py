"""Disk-seconds of given jobs, each summed over the OSTs and intervals in which job_stats name it while it ran."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, Protocol

import narwhals as nw
import pyarrow as pa

from iolens.analyses.attribution.interval_costs import interval_costs
from iolens.analyses.attribution.job_seconds import job_seconds
from iolens.analyses.attribution.results import DiskSeconds
from iolens.analyses.attribution.work import DiskWork
from iolens.analyses.calibration.applied import AppliedCalibration
from iolens.analyses.utilization.model_rows import ModelRows
from iolens.models.transaction_time import added
from iolens.schema import DIRECTIONS
from iolens.store.parts import Days
from iolens.store.selection import StoreSelection
from iolens.units import DAY_US, SECOND_US

_MARGIN_US: Final = DAY_US  # clocks of servers and schedulers differ


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
    work = DiskWork(tuple(applied), ModelRows("histogram", has_util=False))
    for days in window.tick_days(("job_io",), SECOND_US):
        for line in _lines(_summed(days, jobs, work)):
            before, added_s = sums.get(line["job"], 0.0), line["disk_s"]
            is_known = before is not None and line["known"] == line["rows"]
            sums[line["job"]] = before + added_s if is_known and before is not None else None
            assumed_s += line["assumed_s"] or 0.0
    whole_s = sum(value for value in sums.values() if value is not None)
    return DiskSeconds(sums, names if sums else (), 100 * assumed_s / whole_s if whole_s > 0 else None)


def _summed(days: Days, jobs: Sequence[RanFromTo], work: DiskWork) -> nw.LazyFrame[Any]:
    """One row for each job of the days."""
    rows = job_seconds(days, work, interval_costs(days, work, DAY_US))
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
