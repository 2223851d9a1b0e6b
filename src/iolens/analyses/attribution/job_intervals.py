"""Rows of finer tables summed to the intervals of job_stats (B1), on engines without as-of joins.

A target's job_stats are sampled every minute, its disk I/Os every few seconds. Each fine row belongs to the interval
that ends next, if more than half of it lies there.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import narwhals as nw

Frame = nw.LazyFrame[Any]
INTERVAL = ("target", "until_us")


def job_intervals(job_io: Frame) -> Frame:
    """The intervals in which a target's job_stats were sampled: `target`, `from_us`, `until_us`."""
    ends = job_io.group_by("target", "epoch_us").agg(nw.col("start_us").min().alias("from_us"))
    return ends.rename({"epoch_us": "until_us"})


def summed_to_intervals(rows: Frame, intervals: Frame, columns: Sequence[str]) -> Frame:
    """`columns` of rows with `target`, `start_us` and `epoch_us`, summed to each interval that has any rows.

    Numbers the intervals of each target, and each row by how many ended before it does: so both have one number.
    """
    wanted = ["target", "start_us", "epoch_us", "is_end", *columns]
    fine = rows.with_columns(nw.lit(0).cast(nw.Int64).alias("is_end")).select(wanted)
    nothing = [nw.lit(None, dtype=nw.Float64).alias(name) for name in columns]
    ends = intervals.with_columns(
        nw.col("from_us").alias("start_us"), nw.col("until_us").alias("epoch_us"),
        nw.lit(1).cast(nw.Int64).alias("is_end"), *nothing,
    ).select(wanted)  # fmt: skip
    ended = nw.col("is_end").cum_sum().over("target", order_by=["epoch_us", "is_end"])
    numbered = nw.concat([fine, ends]).with_columns((ended - nw.col("is_end")).alias("number"))
    places = numbered.filter(nw.col("is_end") == 1).select(
        nw.col("target").alias("place"), nw.col("number").alias("place_number"),
        nw.col("start_us").alias("from_us"), nw.col("epoch_us").alias("until_us"),
    )  # fmt: skip
    placed = numbered.filter(nw.col("is_end") == 0).join(
        places, left_on=["target", "number"], right_on=["place", "place_number"]
    )
    is_mostly_within = 2 * nw.col("from_us") < nw.col("start_us") + nw.col("epoch_us")
    return placed.filter(is_mostly_within).group_by(*INTERVAL).agg(*(nw.col(name).sum() for name in columns))
