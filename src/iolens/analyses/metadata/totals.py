"""Metadata targets, gathered from the engine's answers: their ticks, and operations by bucket."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from iolens.analyses.intervals.disk_time import number, total
from iolens.analyses.intervals.fsu_sums import QUALITY, quality
from iolens.analyses.intervals.percentiles import Percentiles
from iolens.analyses.intervals.target_totals import TargetTotals, codes
from iolens.analyses.intervals.tick_totals import HeldBack
from iolens.arrays import Columns, Floats, Integers
from iolens.models.metadata_time import MetadataCalibration
from iolens.models.transaction_time import BUSY_ABOVE_PCT


@dataclass(frozen=True, slots=True)
class MetadataSums:
    """What is asked of the engine, over the operations that ever occurred."""

    live: Sequence[str]
    live_us: Sequence[str]
    costs: MetadataCalibration | None

    def per_row(self, frame: nw.LazyFrame[Any]) -> nw.LazyFrame[Any]:
        """Each target's ticks: operations, modelled seconds, and seconds in service where the server counts them."""
        modelled = [_known(name) * number(self.costs.of(name).s_per_op) for name in self.live] if self.costs else []
        in_service = total([_known(name) for name in self.live_us]) * number(1e-6)
        times_known = total(
            [nw.when(nw.col(name).is_null()).then(number(0.0)).otherwise(number(1.0)) for name in self.live_us]
        )
        rows = frame.select(
            "target",
            "epoch_us",
            "duration_s",
            total([_known(name) for name in self.live]).alias("ops"),
            total(modelled).alias("model_s"),
            in_service.alias("service_s"),
            times_known.alias("times_known"),
        )
        return rows.with_columns(
            ((nw.col("times_known") > 0) | (nw.col("ops") <= 0)).cast(nw.Float64).alias("times_known")
        )

    def per_bucket(self, frame: nw.LazyFrame[Any], bucket_us: int) -> nw.LazyFrame[Any]:
        """Each target by time bucket: operations by kind, their service times, and how well it reported."""
        counts = [nw.col(name).cast(nw.Float64) for name in (*self.live, *self.live_us)]
        rows = frame.select(
            "target",
            "duration_s",
            "epoch_us",
            "start_us",
            (nw.col("start_us") // bucket_us).alias("bucket"),
            *quality(frame),
            *counts,
        )
        return rows.group_by("target", "bucket", "length_us").agg(
            nw.len().alias("rows"),
            *(nw.col(name).sum() for name in ("duration_s", *QUALITY, *self.live, *self.live_us)),
            nw.col("duration_s").max().alias("longest_s"),
            nw.col("start_us").min().alias("first_us"),
            nw.col("epoch_us").max().alias("last_us"),
        )


def _known(name: str) -> nw.Expr:
    """A server prints an operation only once it has occurred: until then there were none."""
    return nw.col(name).cast(nw.Float64).fill_null(0.0)


@dataclass(slots=True)
class Load:
    """Ticks of one target, or of the file system: rates, MDU, and their largest."""

    rates: Percentiles = field(default_factory=Percentiles)
    rate_seconds: float = 0.0
    seconds: float = 0.0
    busy_s: float = 0.0
    mdu_seconds: float = 0.0
    service_seconds: float = 0.0
    service_s: float = 0.0
    peak_ops: tuple[float, int] | None = None
    peak_mdu: tuple[float, int] | None = None

    def add(self, time_us: Integers, seconds: Floats, rate: Floats, mdu: Floats, service: Floats) -> None:
        """Take ticks in time order; `service` is NaN where it is not known."""
        if not len(time_us):
            return
        known = np.isfinite(service)
        self.rates.add(rate)
        self.rate_seconds += float((rate * seconds).sum())
        self.seconds += float(seconds.sum())
        self.busy_s += float(seconds[mdu > BUSY_ABOVE_PCT].sum())
        self.mdu_seconds += float((mdu * seconds).sum())
        self.service_seconds += float((service[known] * seconds[known]).sum())
        self.service_s += float(seconds[known].sum())
        self.peak_ops = _larger(self.peak_ops, rate, time_us)
        self.peak_mdu = _larger(self.peak_mdu, mdu, time_us)


def _larger(old: tuple[float, int] | None, values: Floats, time_us: Integers) -> tuple[float, int]:
    place = int(values.argmax())
    new = float(values[place]), int(time_us[place])
    return new if old is None or new[0] > old[0] else old


@dataclass(slots=True)
class MetadataTotals:
    """Everything gathered from the engine's answers."""

    sums: MetadataSums
    bucket_s: int
    whole: Load = field(default_factory=Load)
    by_target: dict[str, Load] = field(default_factory=dict)
    samples: int = 0
    target_samples: int = 0
    targets: TargetTotals = field(init=False)
    _buckets: list[Columns] = field(default_factory=list)
    _held: HeldBack = field(default_factory=HeldBack)

    def __post_init__(self) -> None:
        self.targets = TargetTotals(self.bucket_s)

    @property
    def bucket_us(self) -> int:
        """Width of a bucket."""
        return self.bucket_s * 1_000_000

    def add(self, rows: Columns, by_bucket: Columns, complete_until_us: int | None) -> None:
        """Take the answers on the next chunk."""
        self.target_samples += len(rows["epoch_us"])
        seconds = rows["duration_s"]
        rate, mdu = rows["ops"] / seconds, 100.0 * rows["model_s"] / seconds
        service = np.where(rows["times_known"] > 0, 100.0 * rows["service_s"] / seconds, np.nan)
        for name, mine in _groups(rows["target"]):
            ordered = mine[np.argsort(rows["epoch_us"][mine], kind="stable")]
            mine_only = (values[ordered] for values in (seconds, rate, mdu, service))
            self.by_target.setdefault(name, Load()).add(rows["epoch_us"][ordered], *mine_only)
        known = np.isfinite(service).astype(np.float64)
        ticks = {
            "epoch_us": rows["epoch_us"], "targets": np.ones(len(seconds)), "duration_s": seconds, "rate": rate,
            "mdu": mdu, "service": np.nan_to_num(service), "known": known,
        }  # fmt: skip
        self._take(self._held.merge(ticks, complete_until_us))
        self.targets.add_sizes({**by_bucket, **{name: np.zeros(len(by_bucket["rows"])) for name in UNUSED}})
        self._buckets.append(self._of_any_length(by_bucket))

    def finish(self) -> None:
        """Take what was held back."""
        if self._held.columns:
            self._take(self._held.merge({}, None))

    def by_bucket(self) -> Columns:
        """The sums by target and bucket of all chunks."""
        names = ("target", "bucket", *self._summed)
        if not self._buckets:
            return {name: np.zeros(0, object if name == "target" else np.float64) for name in names}
        return {name: np.concatenate([part[name] for part in self._buckets]) for name in names}

    @property
    def _summed(self) -> Sequence[str]:
        return "duration_s", *self.sums.live, *self.sums.live_us

    def _of_any_length(self, rows: Columns) -> Columns:
        """Sums by target and bucket of sums by target, bucket and length of the interval; unknown counts are zero."""
        names, where = codes(rows["target"])
        pairs, place = np.unique(np.stack([where, rows["bucket"]]), axis=1, return_inverse=True)
        sums = {
            name: np.bincount(place, weights=np.nan_to_num(rows[name]), minlength=pairs.shape[1])
            for name in self._summed
        }
        return {"target": np.array(names, dtype=object)[pairs[0]], "bucket": pairs[1], **sums}

    def _take(self, ticks: Columns) -> None:
        """A tick of the file system: rates add up over its targets, MDU is their unweighted mean."""
        targets = ticks["targets"]
        self.samples += len(targets)
        with np.errstate(invalid="ignore", divide="ignore"):
            service = ticks["service"] / ticks["known"]
        self.whole.add(ticks["epoch_us"], ticks["duration_s"] / targets, ticks["rate"], ticks["mdu"] / targets, service)


UNUSED: Final = ("busy", "busy_s", "outside")  # what disks have and metadata targets have not


def _groups(names: NDArray[np.object_]) -> Iterator[tuple[str, Integers]]:
    distinct, where = codes(names)
    for place, name in enumerate(distinct):
        yield name, np.flatnonzero(where == place)
