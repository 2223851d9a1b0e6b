"""Disk-seconds of jobs on OSTs from job_stats: τ = a0·n·k + a1·B, at most what the disks took (B1).

n and B are a job's RPCs and bytes of one direction on one target in one interval; k is how many disk I/Os an RPC became
there, 1 where that is not known. T is the disk time of the target by Eq. 7; where the jobs' τ add up to more, all are
scaled to it. What they do not add up to is nobody's: I/O without a job id, journal, read-ahead, earlier write-back.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import narwhals as nw

from iolens.analyses.attribution.job_intervals import INTERVAL, job_intervals, summed_to_intervals
from iolens.analyses.calibration.applied import AppliedCalibration, chosen
from iolens.analyses.intervals.disk_time import number, total
from iolens.models.transaction_time import SIZE_COLUMNS, Calibration, added, time_terms
from iolens.schema import DIRECTIONS

Frame = nw.LazyFrame[Any]
Applied = Sequence[AppliedCalibration]


def job_disk_seconds(
    job_io: Frame, target_sizes: Frame, target_io: Frame, applied: Applied, live: Sequence[str]
) -> Frame:
    """One row for each job, OST and interval: `job_id`, `target`, `from_us`, `until_us`, and of each direction

    `…_disk_s`: its disk-seconds, NULL where its RPCs or bytes are not known; `…_is_assumed`: 1 where k is not known;
    `…_target_s`: T, NULL where the sizes of disk I/Os are not known, so that nothing is scaled.
    `live` are the columns of `target_sizes` that ever count.
    """
    asked = of_osts(job_io)
    intervals = job_intervals(asked)
    times, requests = disk_times(of_osts(target_sizes), applied, live), _requests(of_osts(target_io))
    names = [f"{direction}_{part}" for direction in DIRECTIONS for part in ("disk_ios", "target_s")]
    of_target = summed_to_intervals(times, intervals, names)
    rpcs = summed_to_intervals(requests, intervals, [f"{direction}_rpcs" for direction in DIRECTIONS])
    rows = asked.with_columns(nw.col("start_us").alias("from_us"), nw.col("epoch_us").alias("until_us"))
    rows = rows.join(of_target, on=list(INTERVAL), how="left").join(rpcs, on=list(INTERVAL), how="left")
    rows = rows.with_columns(*(_ratio(direction) for direction in DIRECTIONS))
    rows = rows.with_columns(*(_wanted(direction, applied) for direction in DIRECTIONS))
    rows = rows.with_columns(*(_wanted_by_all(direction) for direction in DIRECTIONS))
    return rows.select("job_id", "target", "from_us", "until_us", *(part for d in DIRECTIONS for part in _shares(d)))


def of_osts(rows: Frame) -> Frame:
    """All but rows of MDTs, whose operations another model prices."""
    kind = nw.col("target_kind")
    return rows.filter(kind.is_null() | (kind != "mdt"))


def disk_times(target_sizes: Frame, applied: Applied, live: Sequence[str]) -> Frame:
    """Disk I/Os and disk time of each row by direction: `…_disk_ios`, and `…_target_s`, T = Σ N_b(a0 + a1·b)."""
    columns = []
    for direction in DIRECTIONS:
        names = [name for name in live if SIZE_COLUMNS[name][0] == direction]
        counts = [nw.col(name).cast(nw.Float64) for name in names]
        moved = [nw.col(name).cast(nw.Float64) * number(SIZE_COLUMNS[name][1]) for name in names]
        columns.append(total(counts).alias(f"{direction}_disk_ios"))
        columns.append(_seconds(applied, direction, total(counts), total(moved)).alias(f"{direction}_target_s"))
    return target_sizes.with_columns(*columns)


def _requests(target_io: Frame) -> Frame:
    """RPCs of each row by direction, of rows that have both."""
    known = target_io.filter(~nw.col("read_ops").is_null() & ~nw.col("write_ops").is_null())
    return known.with_columns(
        *(nw.col(f"{direction}_ops").cast(nw.Float64).alias(f"{direction}_rpcs") for direction in DIRECTIONS)
    )


def _seconds(applied: Applied, direction: str, ios: nw.Expr, moved: nw.Expr) -> nw.Expr:
    """a0·N + a1·B by the calibration that holds for the row."""

    def of(calibration: Calibration) -> nw.Expr:
        cost = calibration.of(direction)
        return added(time_terms(ios, moved, number(cost.latency_s), number(cost.s_per_byte)))

    return chosen(applied, of)


def _ratio(direction: str) -> nw.Expr:
    """k: disk I/Os for each RPC; NULL where either is not known, or no RPC was counted."""
    rpcs, ios = nw.col(f"{direction}_rpcs"), nw.col(f"{direction}_disk_ios")
    return nw.when(rpcs > number(0)).then(ios / rpcs).otherwise(nw.lit(None, dtype=nw.Float64)).alias(f"{direction}_k")


def _wanted(direction: str, applied: Applied) -> nw.Expr:
    """τ before it is scaled."""
    ratio = nw.coalesce(nw.col(f"{direction}_k"), number(1.0))
    ios = nw.col(f"{direction}_ops").cast(nw.Float64) * ratio
    moved = nw.col(f"{direction}_bytes").cast(nw.Float64)
    return _seconds(applied, direction, ios, moved).alias(f"{direction}_wanted_s")


def _wanted_by_all(direction: str) -> nw.Expr:
    return nw.col(f"{direction}_wanted_s").sum().over(*INTERVAL).alias(f"{direction}_wanted_by_all_s")


def _shares(direction: str) -> list[nw.Expr]:
    wanted, everyone = nw.col(f"{direction}_wanted_s"), nw.col(f"{direction}_wanted_by_all_s")
    taken = nw.col(f"{direction}_target_s")
    is_too_much = ~taken.is_null() & (everyone > taken)
    share = nw.when(is_too_much).then(wanted * taken / everyone).otherwise(wanted)
    is_assumed = nw.col(f"{direction}_k").is_null() & (nw.col(f"{direction}_ops") > 0)
    return [
        share.alias(f"{direction}_disk_s"),
        nw.when(is_assumed).then(nw.lit(1)).otherwise(nw.lit(0)).alias(f"{direction}_is_assumed"),
        taken,
    ]
