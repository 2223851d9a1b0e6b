"""Rows of finer tables placed into the intervals of job_stats (B1), on engines without as-of joins.

A target's job_stats are sampled every minute, its disk I/Os every few seconds. Each fine row belongs to the interval
that ends next, if more than half of it lies there. An interval of more than an hour is left out: nobody read job_stats
then, and what the disks did in that time is nobody's.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import narwhals as nw

from iolens.store.parts import AROUND_US, Ends

Frame = nw.LazyFrame[Any]
INTERVAL: Final = ("target", "until_us")
NOWHERE: Final = -1


def short_enough(job_io: Frame) -> Frame:
    """Rows of intervals of at most an hour."""
    return job_io.filter(nw.col("epoch_us") - nw.col("start_us") <= AROUND_US)


def placed_sums(rows: Frame, intervals: Frame, columns: Sequence[str], ends: Ends, bucket_us: int) -> Frame:
    """`columns` of rows with `target`, `start_us` and `epoch_us`, summed to the interval they lie in.

    One row for each interval that ends in `ends` and has any: `target`, `until_us`; and with `until_us` NOWHERE one for
    each target and `bucket` of time, of rows that end in `ends` and lie in no interval.

    Numbers the intervals of each target, and each row by how many ended before it does: so both have one number.
    """
    wanted = ["target", "start_us", "epoch_us", "is_end", *columns]
    fine = rows.with_columns(nw.lit(0).cast(nw.Int64).alias("is_end")).select(wanted)
    nothing = [nw.lit(None, dtype=nw.Float64).alias(name) for name in columns]
    marks = intervals.with_columns(
        nw.col("from_us").alias("start_us"), nw.col("until_us").alias("epoch_us"),
        nw.lit(1).cast(nw.Int64).alias("is_end"), *nothing,
    ).select(wanted)  # fmt: skip
    ended = nw.col("is_end").cum_sum().over("target", order_by=["epoch_us", "is_end"])
    numbered = nw.concat([fine, marks]).with_columns((ended - nw.col("is_end")).alias("number"))
    places = numbered.filter(nw.col("is_end") == 1).select(
        nw.col("target").alias("place"), nw.col("number").alias("place_number"),
        nw.col("start_us").alias("from_us"), nw.col("epoch_us").alias("until_us"),
    )  # fmt: skip
    placed = numbered.filter(nw.col("is_end") == 0).join(
        places, left_on=["target", "number"], right_on=["place", "place_number"], how="left"
    )
    is_mostly_within = 2 * nw.col("from_us") < nw.col("start_us") + nw.col("epoch_us")
    nowhere = nw.lit(NOWHERE).cast(nw.Int64)
    until = nw.when(is_mostly_within).then(nw.col("until_us")).otherwise(nowhere)
    keyed = placed.with_columns(until.alias("until_us"))
    is_alone = nw.col("until_us") == NOWHERE
    counts_at = nw.when(is_alone).then(nw.col("epoch_us")).otherwise(nw.col("until_us"))
    keyed = keyed.filter(counts_at > ends.after_us, counts_at <= ends.until_us)
    bucket = nw.when(is_alone).then(nw.col("start_us") // bucket_us).otherwise(nowhere)
    return (
        keyed.with_columns(bucket.alias("bucket"))
        .group_by(*INTERVAL, "bucket")
        .agg(*(nw.col(n).sum() for n in columns))
    )
