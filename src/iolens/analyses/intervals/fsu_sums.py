"""The sums that are asked of the engine for FSU: each tick over its targets, and each target over time.

Products are doubles: decimals are slow in one engine. Counts are summed as they are, which costs an engine least.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import narwhals as nw
import numpy as np

from iolens.analyses.calibration.applied import AppliedCalibration, chosen
from iolens.analyses.intervals.days import tick_length
from iolens.analyses.intervals.disk_time import DiskTime, number
from iolens.arrays import Columns
from iolens.models.transaction_time import BUSY_ABOVE_PCT
from iolens.schema import DIRECTIONS
from iolens.units import DAY_US

IRREGULAR_SHARE: Final = 0.1


@dataclass(frozen=True, slots=True)
class FsuSums:
    """The sums of one model and its calibrations."""

    disk_time: DiskTime
    calibrations: Sequence[AppliedCalibration]
    bucket_us: int

    def per_tick(self, frame: nw.LazyFrame[Any]) -> nw.LazyFrame[Any]:
        """The file system tick by tick: sums over its reporting targets."""
        model = self.disk_time
        rows = model.rows(frame).select(
            "epoch_us",
            "duration_s",
            (chosen(self.calibrations, model.busy) / nw.col("duration_s")).alias("fsu"),
            (chosen(self.calibrations, model.busy_if_optimal) / nw.col("duration_s")).alias("optimal_fsu"),
            *model.counted,
        )
        return rows.group_by("epoch_us").agg(
            nw.col("fsu").count().alias("targets"),
            *(nw.col(name).sum() for name in ("duration_s", "fsu", "optimal_fsu", *model.counted)),
        )

    def per_target(self, frame: nw.LazyFrame[Any]) -> nw.LazyFrame[Any]:
        """Each target by time bucket: its own FSU, and how well it reported."""
        model = self.disk_time
        rows = model.rows(frame).select(
            "target",
            "duration_s",
            "epoch_us",
            "start_us",
            (nw.col("start_us") // self.bucket_us).alias("bucket"),
            model.outside().alias("outside"),
            *quality(frame),
            chosen(self.calibrations, model.busy).alias("busy"),
        )
        is_busy = nw.col("busy") > nw.col("duration_s") * number(BUSY_ABOVE_PCT)
        rows = rows.with_columns(nw.when(is_busy).then(nw.col("duration_s")).otherwise(number(0.0)).alias("busy_s"))
        summed = ("duration_s", "busy", "busy_s", "outside", *QUALITY)
        return rows.group_by("target", "bucket", "length_us").agg(
            nw.len().alias("rows"),
            *(nw.col(name).sum() for name in summed),
            nw.col("duration_s").max().alias("longest_s"),
            nw.col("start_us").min().alias("first_us"),
            nw.col("epoch_us").max().alias("last_us"),
        )


QUALITY: Final = ("reported_s", "irregular", "resets")


def quality(frame: nw.LazyFrame[Any]) -> list[nw.Expr]:
    """How well a row was sampled: its length by the ticks, whether that is off its own clock's, and a reset.

    A row reports of its whole interval; one of a rollup of the raw rows it is made of.
    """
    names = frame.collect_schema().names()
    length_us = nw.col("epoch_us") - nw.col("start_us")
    nominal_s = length_us.cast(nw.Float64) * number(1e-6)
    reported_s = nominal_s
    if "samples" in names:
        shorter = ~nw.col("samples").is_null() & (nw.col("duration_s") < nominal_s)
        reported_s = nw.when(shorter).then(nw.col("duration_s")).otherwise(nominal_s)
    off_beat = (nw.col("duration_s") - nominal_s).abs() > nominal_s * number(IRREGULAR_SHARE)
    has_resets = "after_reset" in names
    reset = nw.when(nw.col("after_reset")).then(number(1.0)).otherwise(number(0.0)) if has_resets else number(0.0)
    irregular = nw.when(off_beat).then(number(1.0)).otherwise(number(0.0))
    return [
        length_us.alias("length_us"), reported_s.alias("reported_s"), irregular.alias("irregular"),
        reset.alias("resets"),
    ]  # fmt: skip


def bytes_per_tick(io: nw.LazyFrame[Any], with_util: bool = False) -> nw.LazyFrame[Any]:
    """Bandwidth tick by tick, and the kernel's %util if wanted.

    Rates add up over targets even where their intervals differ in length; %util is summed to be averaged.
    """
    moved = [nw.col(f"{direction}_bytes").cast(nw.Float64) for direction in DIRECTIONS]
    busy = [nw.col("busy_us").cast(nw.Float64)] if with_util else []
    rows = io.select("epoch_us", "duration_s", *moved, *busy)
    rates = [
        (nw.col(f"{direction}_bytes") / nw.col("duration_s")).alias(f"{direction}_rate") for direction in DIRECTIONS
    ]
    util = [*_util_columns()] if with_util else []
    rows = rows.with_columns(*rates, *util)
    return rows.group_by("epoch_us").agg(
        nw.len().alias("targets"),
        nw.col("duration_s").sum(),
        *(nw.col(f"{direction}_rate").sum() for direction in DIRECTIONS),
        *((nw.col("util").sum(), nw.col("util_s").sum(), nw.col("util").count().alias("util_rows")) if util else ()),
    )


def _util_columns() -> tuple[nw.Expr, nw.Expr]:
    """%util of a row and the seconds it is known for; NULL where the device does not count its busy time."""
    util = nw.col("busy_us") * number(1e-4) / nw.col("duration_s")
    known_s = nw.when(nw.col("busy_us").is_null()).then(number(0.0)).otherwise(nw.col("duration_s"))
    return util.alias("util"), known_s.alias("util_s")


def bytes_per_target(io: nw.LazyFrame[Any], with_util: bool = False, bucket_us: int = DAY_US) -> nw.LazyFrame[Any]:
    """Bytes of each target by UTC day (or shorter) and length of its rows, how many counted them, its busy time."""
    busy = [nw.col("busy_us").cast(nw.Float64)] if with_util else []
    moved = [nw.col(f"{direction}_bytes").cast(nw.Float64) for direction in DIRECTIONS]
    day = (nw.col("start_us") // bucket_us).alias("bucket")
    rows = io.select("target", day, "duration_s", tick_length(), *moved, *busy)
    rows = rows.with_columns(_util_columns()[1]) if with_util else rows
    return rows.group_by("target", "bucket", "tick_s").agg(
        nw.len().alias("rows"),
        nw.col("duration_s").sum(),
        *(nw.col(f"{direction}_bytes").sum() for direction in DIRECTIONS),
        *(nw.col(f"{direction}_bytes").count().alias(f"{direction}_rows") for direction in DIRECTIONS),
        *((nw.col("busy_us").sum(), nw.col("util_s").sum()) if with_util else ()),
    )


def data_targets(frame: nw.LazyFrame[Any], but: Sequence[str] = ("mdt",)) -> nw.LazyFrame[Any]:
    """Rows of data targets, without some kinds: metadata targets have a load of their own."""
    if "target_kind" in frame.collect_schema().names():
        for kind in but:
            frame = frame.filter(nw.col("target_kind").is_null() | (nw.col("target_kind") != kind))
    return frame.filter(nw.col("duration_s") > 0)


def of_kinds(frame: nw.LazyFrame[Any], kinds: Sequence[str]) -> nw.LazyFrame[Any]:
    """Rows of targets of those kinds; one whose kind is not known is not among them."""
    return frame.filter(nw.col("target_kind").is_in(list(kinds)), nw.col("duration_s") > 0)


def collect(frame: nw.LazyFrame[Any]) -> Columns:
    """A small aggregate as NumPy columns of declared types, whatever the engine calls them."""
    table = frame.collect(backend="pyarrow").to_native()
    columns: Columns = {}
    for name in table.column_names:
        column = table.column(name)
        if name in TEXTS:
            columns[name] = np.array(column.to_pylist(), dtype=object)
        elif name in WHOLE:
            columns[name] = column.cast("int64").to_numpy()
        else:
            columns[name] = column.cast("float64").to_numpy()
    return columns


TEXTS: Final = ("target", "direction", "kind", "job_id")
WHOLE: Final = ("epoch_us", "bucket", "bin", "first_us", "last_us", "length_us", "from_us", "until_us")
