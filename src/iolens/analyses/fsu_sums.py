"""Eq. 7 as expressions over rows of `target_sizes`, and the sums that are asked of the engine.

Doubles throughout: decimals are slow in one engine and integer sums differ in type between engines.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from iolens.models.transaction_time import Calibration, Coefficients
from iolens.schema import DIRECTIONS, SIZE_BINS, size_column
from iolens.units import MIB

IDLE_BELOW_PCT: Final = 2.0
BUSY_ABOVE_PCT: Final = 30.0
IRREGULAR_SHARE: Final = 0.1
DAY_US: Final = 86_400_000_000

SIZE_COLUMNS: Final = {
    size_column(direction, size): (direction, size) for direction in DIRECTIONS for size in SIZE_BINS
}
OUTSIDE_COLUMNS: Final = tuple(f"{direction}_ios_outside" for direction in DIRECTIONS)

Columns = dict[str, NDArray[Any]]


@dataclass(frozen=True, slots=True)
class FsuSums:
    """The sums of one calibration over the size bins that ever counted."""

    live: Sequence[str]
    outside: Sequence[str]
    calibration: Calibration
    bucket_us: int

    def per_tick(self, sizes: nw.LazyFrame[Any]) -> nw.LazyFrame[Any]:
        """The file system tick by tick: sums over its reporting targets."""
        bins = [nw.col(name).cast(nw.Float64) for name in self.live]
        rows = sizes.select("epoch_us", "duration_s", *self._parts(), *bins)
        rows = rows.select(
            "epoch_us",
            "duration_s",
            (self._busy() / nw.col("duration_s")).alias("fsu"),
            (self._busy_if_optimal() / nw.col("duration_s")).alias("optimal_fsu"),
            *self.live,
        )
        return rows.group_by("epoch_us").agg(
            nw.col("fsu").count().alias("targets"),
            *(nw.col(name).sum() for name in ("duration_s", "fsu", "optimal_fsu", *self.live)),
        )

    def per_target(self, sizes: nw.LazyFrame[Any]) -> nw.LazyFrame[Any]:
        """Each target by time bucket: its own FSU, and how well it reported."""
        nominal_s = (nw.col("epoch_us") - nw.col("start_us")).cast(nw.Float64) * _number(1e-6)
        off_beat = (nw.col("duration_s") - nominal_s).abs() > nominal_s * _number(IRREGULAR_SHARE)
        has_resets = "after_reset" in sizes.collect_schema().names()
        reset = (
            nw.when(nw.col("after_reset")).then(_number(1.0)).otherwise(_number(0.0)) if has_resets else _number(0.0)
        )
        rows = sizes.select(
            "target",
            "duration_s",
            "epoch_us",
            "start_us",
            (nw.col("start_us") // self.bucket_us).alias("bucket"),
            _total([nw.col(name).cast(nw.Float64) for name in self.outside]).alias("outside"),
            nominal_s.alias("nominal_s"),
            nw.when(off_beat).then(_number(1.0)).otherwise(_number(0.0)).alias("irregular"),
            reset.alias("resets"),
            *self._parts(),
        )
        counts = [nw.col(f"{part}_ios") for part in self._groups()]
        rows = rows.with_columns(self._busy().alias("busy"), _total(counts).alias("ios"))
        is_busy = nw.col("busy") > nw.col("duration_s") * _number(BUSY_ABOVE_PCT)
        rows = rows.with_columns(nw.when(is_busy).then(nw.col("duration_s")).otherwise(_number(0.0)).alias("busy_s"))
        summed = ("duration_s", "busy", "busy_s", "ios", "outside", "nominal_s", "irregular", "resets")
        return rows.group_by("target", "bucket").agg(
            nw.len().alias("rows"),
            *(nw.col(name).sum() for name in summed),
            nw.col("duration_s").max().alias("longest_s"),
            nw.col("start_us").min().alias("first_us"),
            nw.col("epoch_us").max().alias("last_us"),
        )

    def _groups(self) -> dict[str, list[str]]:
        """Live bins by direction, and by whether they are larger than the optimal 1 MiB."""
        groups: dict[str, list[str]] = {}
        for name in self.live:
            direction, size = SIZE_COLUMNS[name]
            groups.setdefault(f"{'large' if size > MIB else 'small'}_{direction}", []).append(name)
        return groups

    def _parts(self) -> list[nw.Expr]:
        """I/Os and bytes (by the bins' labels) of each group: the model needs no more, and each bin is read once."""
        parts = []
        for group, names in self._groups().items():
            counts = [nw.col(name).cast(nw.Float64) for name in names]
            moved = [nw.col(name).cast(nw.Float64) * _number(SIZE_COLUMNS[name][1]) for name in names]
            parts += [_total(counts).alias(f"{group}_ios"), _total(moved).alias(f"{group}_bytes")]
        return parts

    def _busy(self) -> nw.Expr:
        """FSU times duration: 100 × seconds of disk time (Eq. 5)."""
        return _total([self._as_observed(group) for group in self._groups()])

    def _busy_if_optimal(self) -> nw.Expr:
        """The same if the bytes of all smaller I/Os had come in 1 MiB I/Os (U8)."""
        return _total(
            [
                self._as_observed(group)
                if group.startswith("large")
                else nw.col(f"{group}_bytes") * _number(100.0 * self._of(group).seconds_as_optimal(MIB) / MIB)
                for group in self._groups()
            ]
        )

    def _as_observed(self, group: str) -> nw.Expr:
        cost = self._of(group)
        latency = nw.col(f"{group}_ios") * _number(100.0 * cost.latency_s)
        return latency + nw.col(f"{group}_bytes") * _number(100.0 * cost.s_per_byte)

    def _of(self, group: str) -> Coefficients:
        return self.calibration.of(group.partition("_")[2])


def bytes_per_tick(io: nw.LazyFrame[Any]) -> nw.LazyFrame[Any]:
    """Bandwidth tick by tick, and bytes by the UTC day in which the intervals start.

    Rates add up over targets even where their intervals differ in length.
    """
    moved = [nw.col(f"{way}_bytes").cast(nw.Float64) for way in DIRECTIONS]
    rows = io.select("epoch_us", "duration_s", *moved, (nw.col("start_us") // DAY_US).alias("bucket"))
    rates = [(nw.col(f"{way}_bytes") / nw.col("duration_s")).alias(f"{way}_rate") for way in DIRECTIONS]
    rows = rows.with_columns(*rates)
    return rows.group_by("epoch_us", "bucket").agg(
        nw.len().alias("targets"),
        nw.col("duration_s").sum(),
        *(nw.col(f"{way}_{what}").sum() for way in DIRECTIONS for what in ("rate", "bytes")),
        *(nw.col(f"{way}_bytes").count().alias(f"{way}_rows") for way in DIRECTIONS),
    )


def bytes_per_target(io: nw.LazyFrame[Any]) -> nw.LazyFrame[Any]:
    """Bytes of each target, and how many rows counted them."""
    rows = io.select("target", *(nw.col(f"{way}_bytes").cast(nw.Float64) for way in DIRECTIONS))
    return rows.group_by("target").agg(
        *(nw.col(f"{way}_bytes").sum() for way in DIRECTIONS),
        *(nw.col(f"{way}_bytes").count().alias(f"{way}_rows") for way in DIRECTIONS),
    )


def data_targets(frame: nw.LazyFrame[Any]) -> nw.LazyFrame[Any]:
    """Rows of data targets; metadata targets have a load of their own."""
    if "target_kind" in frame.collect_schema().names():
        frame = frame.filter(nw.col("target_kind").is_null() | (nw.col("target_kind") != "mdt"))
    return frame.filter(nw.col("duration_s") > 0)


def collect(frame: nw.LazyFrame[Any]) -> Columns:
    """A small aggregate as NumPy columns of declared types, whatever the engine calls them."""
    table = frame.collect(backend="pyarrow").to_native()
    columns: Columns = {}
    for name in table.column_names:
        column = table.column(name)
        if name == "target":
            columns[name] = np.array(column.to_pylist(), dtype=object)
        elif name in ("epoch_us", "bucket", "first_us", "last_us"):
            columns[name] = column.cast("int64").to_numpy()
        else:
            columns[name] = column.cast("float64").to_numpy()
    return columns


def _number(value: float) -> nw.Expr:
    """A double, so that no engine makes it a decimal."""
    return nw.lit(value, nw.Float64)


def _total(terms: Sequence[nw.Expr]) -> nw.Expr:
    if not terms:
        return _number(0.0)
    total = terms[0]
    for term in terms[1:]:
        total = total + term
    return total
