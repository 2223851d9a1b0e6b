"""What `metadata` keeps of some days: the load in ticks, of targets and of all, and operations by bucket."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from iolens.analyses.intervals.bucket_sums import BucketSums
from iolens.analyses.intervals.disk_time import number, total
from iolens.analyses.intervals.fsu_sums import QUALITY, collect, quality
from iolens.analyses.intervals.percentiles import Percentiles
from iolens.analyses.intervals.target_rows import codes
from iolens.arrays import Columns, Floats, Integers
from iolens.models.metadata_time import MetadataCalibration
from iolens.models.transaction_time import BUSY_ABOVE_PCT
from iolens.part_form import PartForm
from iolens.schema import SUMMED_OPERATIONS
from iolens.store.parts import Days
from iolens.units import SECOND_US

TABLE: Final = "metadata_ops"
KEYS: Final = ("target", "length_us", "bucket")

Peak = tuple[float, int]  # value and time
Ends = tuple[int, int, float]  # start of a target's first interval, end of its last, and seconds of its longest


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
    peak_ops: Peak | None = None
    peak_mdu: Peak | None = None

    def add(self, time_us: Integers, seconds: Floats, rate: Floats, mdu: Floats, service: Floats) -> None:
        """The next ticks; `service` is NaN where it is not known."""
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
        self.peak_ops = _larger(self.peak_ops, _peak(rate, time_us))
        self.peak_mdu = _larger(self.peak_mdu, _peak(mdu, time_us))

    def take(self, later: Load) -> None:
        """Later ticks."""
        self.rates.take(later.rates)
        for name in ADDED:
            setattr(self, name, getattr(self, name) + getattr(later, name))
        self.peak_ops = _larger(self.peak_ops, later.peak_ops)
        self.peak_mdu = _larger(self.peak_mdu, later.peak_mdu)


ADDED: Final = ("rate_seconds", "seconds", "busy_s", "mdu_seconds", "service_seconds", "service_s")


def _peak(values: Floats, time_us: Integers) -> Peak:
    place = int(values.argmax())
    return float(values[place]), int(time_us[place])


def _larger(old: Peak | None, new: Peak | None) -> Peak | None:
    """The earlier of equal ones."""
    return old if new is None or (old is not None and old[0] >= new[0]) else new


@dataclass(slots=True)
class MetadataPart:
    """A tick of the file system: rates add up over its targets, MDU is their unweighted mean."""

    sums: BucketSums  # operations by kind, their service times, and how well each target reported
    ends: dict[str, Ends]
    whole: Load = field(default_factory=Load)
    by_target: dict[str, Load] = field(default_factory=dict)
    samples: int = 0
    target_samples: int = 0

    def take(self, later: MetadataPart) -> None:
        """A part of later days."""
        self.sums.take(later.sums)
        for name, (first_us, last_us, longest_s) in later.ends.items():
            first, last, longest = self.ends.get(name, (first_us, last_us, longest_s))
            self.ends[name] = min(first, first_us), max(last, last_us), max(longest, longest_s)
        self.whole.take(later.whole)
        for name, load in later.by_target.items():
            self.by_target.setdefault(name, Load()).take(load)
        self.samples += later.samples
        self.target_samples += later.target_samples

    def add_ticks(self, rows: Columns) -> None:
        """All rows of some ticks."""
        self.target_samples += len(rows["epoch_us"])
        seconds = rows["duration_s"]
        rate, mdu = rows["ops"] / seconds, 100.0 * rows["model_s"] / seconds
        service = np.where(rows["times_known"] > 0, 100.0 * rows["service_s"] / seconds, np.nan)
        for name, mine in _groups(rows["target"]):
            ordered = mine[np.argsort(rows["epoch_us"][mine], kind="stable")]
            mine_only = (values[ordered] for values in (seconds, rate, mdu, service))
            self.by_target.setdefault(name, Load()).add(rows["epoch_us"][ordered], *mine_only)
        time_us, tick = np.unique(rows["epoch_us"], return_inverse=True)
        summed = (np.ones(len(tick)), np.isfinite(service), seconds, rate, mdu, np.nan_to_num(service))
        targets, timed, seconds, rate, mdu, service = (
            np.bincount(tick, values).astype(np.float64) for values in summed
        )
        with np.errstate(invalid="ignore"):
            self.whole.add(time_us, seconds / targets, rate, mdu / targets, service / timed)
        self.samples += len(time_us)


FORM: Final = PartForm("metadata", 1, (MetadataPart, BucketSums, Load, Percentiles))


def metadata_part(days: Days, bucket_s: int, costs: MetadataCalibration | None) -> MetadataPart:
    """Of some days, whatever operations occurred."""
    frame = days.frame(TABLE).filter(nw.col("duration_s") > 0)
    names = frame.collect_schema().names()
    counts = [name for name in SUMMED_OPERATIONS if name in names]
    times = [f"{name}_us" for name in SUMMED_OPERATIONS if f"{name}_us" in names]
    rows = collect(_by_bucket(frame, bucket_s, (*counts, *times)))
    sums = BucketSums.of(rows, bucket_s, KEYS, ("rows", "duration_s", *QUALITY, *counts, *times))
    part = MetadataPart(sums, {name: _ends(rows, mine) for name, mine in _groups(rows["target"])})
    part.add_ticks(collect(_by_row(frame, counts, times, costs)))
    return part


def _by_row(
    frame: nw.LazyFrame[Any], counts: Sequence[str], times: Sequence[str], costs: MetadataCalibration | None
) -> nw.LazyFrame[Any]:
    """Each target's ticks: operations, modelled seconds, and seconds in service where the server counts them."""
    modelled = [_known(name) * number(costs.of(name).s_per_op) for name in counts] if costs else []
    in_service = total([_known(name) for name in times]) * number(1e-6)
    times_known = total([nw.when(nw.col(name).is_null()).then(number(0.0)).otherwise(number(1.0)) for name in times])
    rows = frame.select(
        "target",
        "epoch_us",
        "duration_s",
        total([_known(name) for name in counts]).alias("ops"),
        total(modelled).alias("model_s"),
        in_service.alias("service_s"),
        times_known.alias("times_known"),
    )
    return rows.with_columns(((nw.col("times_known") > 0) | (nw.col("ops") <= 0)).cast(nw.Float64).alias("times_known"))


def _by_bucket(frame: nw.LazyFrame[Any], bucket_s: int, counted: Sequence[str]) -> nw.LazyFrame[Any]:
    """Each target by time bucket and length of its intervals."""
    bucket = (nw.col("start_us") // (bucket_s * SECOND_US)).alias("bucket")
    counts = [nw.col(name).cast(nw.Float64) for name in counted]
    rows = frame.select("target", "duration_s", "epoch_us", "start_us", bucket, *quality(frame), *counts)
    return rows.group_by(*KEYS).agg(
        nw.len().alias("rows"),
        *(nw.col(name).sum() for name in ("duration_s", *QUALITY, *counted)),
        nw.col("duration_s").max().alias("longest_s"),
        nw.col("start_us").min().alias("first_us"),
        nw.col("epoch_us").max().alias("last_us"),
    )


def _known(name: str) -> nw.Expr:
    """A server prints an operation only once it has occurred: until then there were none."""
    return nw.col(name).cast(nw.Float64).fill_null(0.0)


def _ends(rows: Columns, mine: Integers) -> Ends:
    first, last, longest = rows["first_us"][mine].min(), rows["last_us"][mine].max(), rows["longest_s"][mine].max()
    return int(first), int(last), float(longest)


def _groups(names: NDArray[np.object_]) -> Iterator[tuple[str, Integers]]:
    distinct, where = codes(names)
    for place, name in enumerate(distinct):
        yield name, np.flatnonzero(where == place)
