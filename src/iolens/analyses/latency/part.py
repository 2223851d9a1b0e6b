"""What `latency` keeps of some days: I/O times and waits by target and time bucket, and I/O times by size."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import narwhals as nw

from iolens.analyses.intervals.bucket_sums import BucketSums
from iolens.analyses.intervals.buckets import rows_by_width
from iolens.analyses.intervals.days import joined
from iolens.analyses.intervals.fsu_sums import collect, data_targets
from iolens.analyses.latency.totals import HISTOGRAM, WAITED
from iolens.arrays import Columns, Integers
from iolens.histogram_names import LATENCY_HISTOGRAMS
from iolens.part_form import PartForm
from iolens.schema import DIRECTIONS
from iolens.store.parts import Days
from iolens.units import SECOND_US

TIMED: Final = ("target", "direction", "bin", "bucket")
WAITS: Final = tuple(f"{direction}_{name}" for direction in DIRECTIONS for name in (*WAITED, "rows"))


@dataclass(slots=True)
class LatencyPart:
    """Sums of one of the tables, with the kinds of its targets."""

    sums: BucketSums
    kinds: dict[str, str | None]
    lengths: Integers  # `rows_by_width`
    extent_us: tuple[int, int] | None  # start of the first and end of the last interval

    def take(self, later: LatencyPart) -> None:
        """A part of later days of the same table."""
        self.sums.take(later.sums)
        self.kinds |= later.kinds
        self.lengths += later.lengths
        self.extent_us = joined(self.extent_us, later.extent_us)


@dataclass(slots=True)
class SizesPart:
    """Bulk I/Os of all data targets by histogram (one for each size), direction and bin (upper edge, nanoseconds)."""

    ios: dict[tuple[str, str, int], float]
    targets: set[str]
    extent_us: tuple[int, int] | None

    def take(self, later: SizesPart) -> None:
        """A part of later days."""
        for key, ios in later.ios.items():
            self.ios[key] = self.ios.get(key, 0.0) + ios
        self.targets |= later.targets
        self.extent_us = joined(self.extent_us, later.extent_us)


IO_TIMES_FORM: Final = PartForm("latency-io-times", 1, (LatencyPart, BucketSums))
WAITS_FORM: Final = PartForm("latency-waits", 1, (LatencyPart, BucketSums))
SIZES_FORM: Final = PartForm("latency-sizes", 1, (SizesPart,))


def io_times_part(days: Days, bucket_s: int) -> LatencyPart:
    """I/Os of some days by target, direction, time bucket and bin (its upper edge in milliseconds)."""
    frame = days.frame("target_histograms").filter(nw.col("histogram") == HISTOGRAM)
    rows = _select(frame, bucket_s, "direction", "bin", nw.col("count").cast(nw.Float64).alias("ios"))
    sums = collect(rows.group_by(*TIMED).agg(nw.col("ios").sum(), *_ends()))
    return _part(frame, sums, BucketSums.of(sums, bucket_s, TIMED, ("ios",)))


def sizes_part(days: Days) -> SizesPart:
    """I/Os of some days that were timed by size (Lustre 2.17)."""
    names = list(LATENCY_HISTOGRAMS.values())
    frame = data_targets(days.frame("target_histograms")).filter(nw.col("histogram").is_in(names))
    rows = frame.select(
        "target",
        nw.col("histogram").alias("kind"),
        "direction",
        "bin",
        "start_us",
        "epoch_us",
        nw.col("count").cast(nw.Float64).alias("ios"),
    )
    first, last = nw.col("start_us").min().alias("first_us"), nw.col("epoch_us").max().alias("last_us")
    sums = collect(rows.group_by("target", "kind", "direction", "bin").agg(nw.col("ios").sum(), first, last))
    ios: dict[tuple[str, str, int], float] = {}
    keys = zip(sums["kind"], sums["direction"], sums["bin"].tolist(), strict=True)
    for key, count in zip(keys, sums["ios"].tolist(), strict=True):
        ios[key] = ios.get(key, 0.0) + count
    extent = (int(sums["first_us"].min()), int(sums["last_us"].max())) if ios else None
    return SizesPart(ios, set(sums["target"]), extent)


def waits_part(days: Days, bucket_s: int) -> LatencyPart:
    """Summed waits of some days and the operations they are of, by target and time bucket."""
    known = {
        direction: ~nw.col(f"{direction}_wait_us").is_null() & ~nw.col(f"{direction}_ops").is_null()
        for direction in DIRECTIONS
    }
    frame = days.frame("target_io").filter(known["read"] | known["write"])
    columns = [
        nw.when(is_known).then(nw.col(f"{direction}_{name}").cast(nw.Float64)).alias(f"{direction}_{name}")
        for direction, is_known in known.items()
        for name in WAITED
    ]
    rows = _select(frame, bucket_s, *columns)
    sums = collect(
        rows.group_by("target", "bucket").agg(
            *(nw.col(f"{direction}_{name}").sum() for direction in DIRECTIONS for name in WAITED),
            *(nw.col(f"{direction}_wait_us").count().alias(f"{direction}_rows") for direction in DIRECTIONS),
            *_ends(),
        )
    )
    return _part(frame, sums, BucketSums.of(sums, bucket_s, ("target", "bucket"), WAITS))


def _select(frame: nw.LazyFrame[Any], bucket_s: int, *columns: str | nw.Expr) -> nw.LazyFrame[Any]:
    has_kind = "target_kind" in frame.collect_schema().names()
    kind = (nw.col("target_kind") if has_kind else nw.lit(None, nw.String)).alias("kind")
    bucket = (nw.col("start_us") // (bucket_s * SECOND_US)).alias("bucket")
    return frame.select("target", kind, bucket, "start_us", "epoch_us", *columns)


def _ends() -> tuple[nw.Expr, ...]:
    first, last = nw.col("start_us").min().alias("first_us"), nw.col("epoch_us").max().alias("last_us")
    return nw.col("kind").max(), first, last


def _part(frame: nw.LazyFrame[Any], rows: Columns, sums: BucketSums) -> LatencyPart:
    extent = (int(rows["first_us"].min()), int(rows["last_us"].max())) if len(rows["target"]) else None
    length_us = (nw.col("epoch_us") - nw.col("start_us") + 999) // 1000 * 1000  # as good for widths of whole seconds
    lengths = frame.select(length_us.alias("length_us")).group_by("length_us").agg(nw.len().alias("rows"))
    kinds = dict(zip(rows["target"], rows["kind"], strict=True))
    counted = collect(lengths)
    return LatencyPart(sums, kinds, rows_by_width(counted["length_us"], counted["rows"]), extent)
