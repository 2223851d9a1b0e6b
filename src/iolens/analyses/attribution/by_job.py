"""Disk-seconds of given jobs, each summed over the OSTs and intervals in which job_stats name it while it ran."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any, Final, Protocol

import narwhals as nw
import pyarrow as pa

from iolens.analyses.attribution.disk_seconds import job_disk_seconds
from iolens.analyses.attribution.results import DiskSeconds
from iolens.analyses.calibration.applied import AppliedCalibration
from iolens.models.transaction_time import SIZE_COLUMNS, added
from iolens.schema import DIRECTIONS
from iolens.store.selection import StoreChunk, StoreSelection
from iolens.units import DAY_US

_MARGIN_US: Final = DAY_US  # clocks of servers and schedulers differ
_LONGEST_US: Final = 3_600_000_000  # of an interval that goes on after midnight


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
    for chunk in window.chunks("job_io"):
        for line in _lines(_summed(window, chunk, jobs, applied)):
            before, added_s = sums.get(line["job"], 0.0), line["disk_s"]
            is_known = before is not None and line["known"] == line["rows"]
            sums[line["job"]] = before + added_s if is_known and before is not None else None
            assumed_s += line["assumed_s"] or 0.0
    whole_s = sum(value for value in sums.values() if value is not None)
    return DiskSeconds(sums, names if sums else (), 100 * assumed_s / whole_s if whole_s > 0 else None)


def _summed(
    selection: StoreSelection, chunk: StoreChunk, jobs: Sequence[RanFromTo], applied: Sequence[AppliedCalibration]
) -> nw.LazyFrame[Any]:
    """One row for each job of the chunk's days; an interval over midnight has the disk I/Os of the next day too."""
    next_day = chunk.last + timedelta(days=1)

    def fine(table: str) -> nw.LazyFrame[Any]:
        rows = selection.frame(table, chunk.first, next_day)
        return rows.filter(nw.col("start_us") < chunk.end_us + _LONGEST_US)

    live = selection.live_columns("target_sizes", list(SIZE_COLUMNS))
    rows = job_disk_seconds(chunk.frame("job_io"), fine("target_sizes"), fine("target_io"), applied, live)
    overlaps = (nw.col("from_us") <= nw.col("job_until_us")) & (nw.col("until_us") >= nw.col("job_from_us"))
    own = rows.join(selection.beside(_members(jobs)), left_on=["job_id"], right_on=["member_id"]).filter(overlaps)
    disk_s = added([nw.col(f"{direction}_disk_s") for direction in DIRECTIONS])  # NULL where either is
    assumed_s = added([nw.col(f"{d}_disk_s") * nw.col(f"{d}_is_assumed").cast(nw.Float64) for d in DIRECTIONS])
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
