"""Disk time of one interval as engine expressions, and the sums that are asked of the engine for FSU."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol

import narwhals as nw
import numpy as np

from iolens.analyses.calibration.applied import AppliedCalibration, chosen
from iolens.analyses.intervals.buckets import tick_length
from iolens.arrays import Columns
from iolens.models.transaction_time import BUSY_ABOVE_PCT, SIZE_COLUMNS, Calibration, added, time_terms
from iolens.schema import DIRECTIONS
from iolens.units import DAY_US, MIB

# Disk time of one interval as engine expressions ----------------------------------------------------------------------
# The transaction model on counts by size, or on plain counters.
#
# Eq. 7 takes each I/O at its bin's label (U7). Because the model is linear, true counts of operations and bytes do as
# well (U9): T = w0·N_w + w1·B_w + r0·N_r + r1·B_r. The two never mix: they are different numbers with different names.

OUTSIDE_COLUMNS: Final = tuple(f"{direction}_ios_outside" for direction in DIRECTIONS)


class DiskTime(Protocol):
    """What a model asks of the rows of its table."""

    @property
    def table(self) -> str:
        """The table the rows come from."""

    @property
    def counted(self) -> Sequence[str]:
        """Columns that are summed beside the model's own numbers."""

    def rows(self, frame: nw.LazyFrame[Any]) -> nw.LazyFrame[Any]:
        """The rows the model can be computed of."""

    def outside(self) -> nw.Expr:
        """I/Os of the row that the model knows nothing of."""

    def busy(self, calibration: Calibration) -> nw.Expr:
        """FSU times duration of the row: 100 × seconds of disk time (Eq. 5)."""

    def busy_if_optimal(self, calibration: Calibration) -> nw.Expr:
        """The same if the bytes of all smaller I/Os had come in 1 MiB I/Os (U8)."""


@dataclass(frozen=True, slots=True)
class HistogramTime:
    """Every I/O at the upper bound of its size bin, over the bins that ever counted (Eq. 7)."""

    live: Sequence[str]
    live_outside: Sequence[str]
    table: str = "target_sizes"

    @property
    def counted(self) -> Sequence[str]:
        """The size bins."""
        return self.live

    def rows(self, frame: nw.LazyFrame[Any]) -> nw.LazyFrame[Any]:
        """All of them: a bin that is not there counted nothing."""
        return frame

    def outside(self) -> nw.Expr:
        """I/Os in bins no column exists for."""
        return total([nw.col(name).cast(nw.Float64) for name in self.live_outside])

    def busy(self, calibration: Calibration) -> nw.Expr:
        """Every bin's I/Os times the time of one, in which each column is used once: engines are quick at that."""
        return self._weighted(lambda direction, size: calibration.of(direction).seconds(size))

    def busy_if_optimal(self, calibration: Calibration) -> nw.Expr:
        """Bins above 1 MiB stay as they are."""
        return self._weighted(lambda direction, size: calibration.of(direction).seconds_as_optimal(size))

    def _weighted(self, seconds: Callable[[str, int], float]) -> nw.Expr:
        return total(
            [nw.col(name).cast(nw.Float64) * number(100.0 * seconds(*SIZE_COLUMNS[name])) for name in self.live]
        )


@dataclass(frozen=True, slots=True)
class CounterTime:
    """Operations and bytes as a disk counted them (U9)."""

    table: str = "target_io"
    counted: Sequence[str] = ()

    def rows(self, frame: nw.LazyFrame[Any]) -> nw.LazyFrame[Any]:
        """Those of disks that counted both operations and bytes in both directions."""
        for direction in DIRECTIONS:
            frame = frame.filter(~nw.col(f"{direction}_ops").is_null() & ~nw.col(f"{direction}_bytes").is_null())
        return frame

    def outside(self) -> nw.Expr:
        """None: there are no bins."""
        return number(0.0)

    def busy(self, calibration: Calibration) -> nw.Expr:
        """Over both directions."""
        return total([_as_observed(direction, calibration) for direction in DIRECTIONS])

    def busy_if_optimal(self, calibration: Calibration) -> nw.Expr:
        """By direction and interval: as observed where the mean I/O is larger than 1 MiB."""
        terms = []
        for direction in DIRECTIONS:
            ops, moved = _counters(direction)
            optimal = moved * number(100.0 * calibration.of(direction).seconds_as_optimal(MIB) / MIB)
            observed = _as_observed(direction, calibration)
            terms.append(nw.when(moved > ops * number(MIB)).then(observed).otherwise(optimal))
        return total(terms)


def _counters(direction: str) -> list[nw.Expr]:
    """Operations and bytes."""
    return [nw.col(f"{direction}_{what}").cast(nw.Float64) for what in ("ops", "bytes")]


def _as_observed(direction: str, calibration: Calibration) -> nw.Expr:
    cost = calibration.of(direction)
    per_cent = (number(100.0 * coefficient) for coefficient in (cost.latency_s, cost.s_per_byte))
    return added(time_terms(*_counters(direction), *per_cent))


def number(value: float) -> nw.Expr:
    """A double, so that no engine makes it a decimal."""
    return nw.lit(float(value), nw.Float64)


def total(terms: Sequence[nw.Expr]) -> nw.Expr:
    """The sum of the terms, zero of none; in pairs, as engines refuse expressions that are a hundred calls deep."""
    if len(terms) > 2:
        middle = len(terms) // 2
        return total(terms[:middle]) + total(terms[middle:])
    return added(terms) if terms else number(0.0)


# The sums that are asked of the engine for FSU ------------------------------------------------------------------------
# Each tick over its targets, and each target over time.
#
# Products are doubles: decimals are slow in one engine. Counts are summed as they are, which costs an engine least.

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
