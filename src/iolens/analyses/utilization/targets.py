"""Single targets: which rows FSU rests on, FSU over the window, outliers, and counters since their start."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final, Literal

import narwhals as nw
import numpy as np

from iolens.analyses.intervals.fsu_sums import (
    OUTSIDE_COLUMNS,
    CounterTime,
    DiskTime,
    HistogramTime,
    collect,
    data_targets,
    of_kinds,
)
from iolens.analyses.results import ratio
from iolens.errors import UsageError
from iolens.models.transaction_time import SIZE_COLUMNS
from iolens.schema import DISK_KINDS, SUM_KINDS
from iolens.store.parts import Days
from iolens.store.selection import Selection
from iolens.units import MIB, from_epoch_us

if TYPE_CHECKING:
    from iolens.analyses.results import TargetCoverage


# FSU of one target over the window ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class TargetUtilization:
    """One target over the window."""

    target: str
    mean_fsu_pct: float | None
    busy_time_pct: float | None
    read_bytes: int | None
    write_bytes: int | None
    mean_fsu_bytes_pct: float | None = None
    mean_util_pct: float | None = None

    @property
    def mean_pct(self) -> float | None:
        """Mean FSU by whichever model."""
        return self.mean_fsu_pct if self.mean_fsu_bytes_pct is None else self.mean_fsu_bytes_pct


# Which rows FSU rests on ----------------------------------------------------------------------------------------------
# Disk I/O sizes of OSTs, or counters of disks (SPEC U7, U9).
#
# Devices, controllers and OSTs move the same bytes: one kind is counted, the answer says which were left out.

MODELS: Final = ("histogram", "counters")
OSTS_ARE_CLIENT_SIDE: Final = (
    "what an OST counts outside its histogram are bytes and RPCs of clients, which never stand for disk I/Os"
)
OSTS_LEFT_OUT: Final = f"rows of OSTs are left out of FSU, bandwidth and volume: {OSTS_ARE_CLIENT_SIDE}"
OTHERS_LEFT_OUT: Final = (
    "not only OSTs report: devices, controllers and servers are left out, since they move the same bytes again"
    " (--model counters is about disks)"
)
Model = Literal["histogram", "counters"]


@dataclass(frozen=True, slots=True)
class ModelRows:
    """Which rows a model rests on; `other_kinds` are there too, and would count the same bytes again."""

    model: Model
    has_util: bool
    other_kinds: Sequence[str] = ()
    notes: tuple[str, ...] = ()

    def io(self, frame: nw.LazyFrame[Any]) -> nw.LazyFrame[Any]:
        """Rows of `target_io` for bandwidth and volume, and with counters for FSU as well."""
        return (
            of_kinds(frame, DISK_KINDS) if self.model == "counters" else data_targets(frame, ("mdt", *self.other_kinds))
        )

    def disk_time(self, days: Days) -> DiskTime:
        """What the model asks of the rows of some days, with the size bins that count in them."""
        if self.model == "counters":
            return CounterTime()
        return HistogramTime(
            days.live_columns("target_sizes", list(SIZE_COLUMNS)), days.live_columns("target_sizes", OUTSIDE_COLUMNS)
        )

    def left_out(self, frame: nw.LazyFrame[Any]) -> frozenset[str]:
        """Names of the targets that are not part of the answer."""
        if not self.other_kinds:
            return frozenset()
        names = of_kinds(frame, self.other_kinds).select("target").unique()
        return frozenset(collect(names)["target"])


def model_rows(selection: Selection, model: str) -> ModelRows:
    """The rows of the model asked for, or of the one there are rows for."""
    if model not in ("auto", *MODELS):
        raise UsageError(f"no model is called {model!r}; there are: auto, {', '.join(MODELS)}")
    has_util = bool(selection.live_columns("target_io", ["busy_us"]))
    if model == "histogram" or (model == "auto" and selection.holds("target_sizes")):
        return _histogram_rows(selection, has_util)
    has_osts = selection.holds("target_io", "target_kind", ("ost",))
    if selection.holds("target_io", "target_kind", DISK_KINDS):
        return ModelRows("counters", has_util, ("ost",) if has_osts else (), (OSTS_LEFT_OUT,) if has_osts else ())
    if model == "counters":
        why = f": {OSTS_ARE_CLIENT_SIDE}" if has_osts else ""
        raise UsageError(f"{selection.filesystem} has no counters of devices, LUNs or controllers in this window{why}")
    result = _histogram_rows(selection, has_util)
    return (
        replace(result, notes=(f"no FSU: there are no I/O sizes, and {OSTS_ARE_CLIENT_SIDE}",)) if has_osts else result
    )


def _histogram_rows(selection: Selection, has_util: bool) -> ModelRows:
    """Sizes as the OSTs' disks saw them; where others report the same bytes beside the OSTs, the OSTs' are taken."""
    others = (*DISK_KINDS, *SUM_KINDS)
    if all(selection.holds("target_io", "target_kind", kinds) for kinds in (("ost",), others)):
        return ModelRows("histogram", False, others, (OTHERS_LEFT_OUT,))
    return ModelRows("histogram", has_util)


# Targets that are far from their peers (B2, B7) -----------------------------------------------------------------------
# Robust z-scores of mean FSU by median and median absolute deviation.
#
# FSU counts what the disks were asked to do, so a target that stands out got more I/Os, or smaller ones, than its
# peers.

FEWEST_PEERS: Final = 5  # fewer have no middle to be far from
FAR: Final = 3.5  # the customary limit for this score (Iglewicz and Hoaglin, 1993)
MATTERS_PCT: Final = 1.0  # FSU: closer to the median than this is far only in theory
ENOUGH_TIME: Final = 0.5  # of the longest-reporting peer's hours: a mean over less is of another time
MAD_TO_SIGMA: Final = 1.4826
MEAN_DEVIATION_TO_SIGMA: Final = 1.2533
SAME_FACTOR: Final = 1.5  # bytes and FSU within this factor of each other tell the same story

Reason = Literal["more bytes", "smaller I/Os", "fewer bytes", "larger I/Os", "unknown"]


@dataclass(frozen=True, slots=True)
class TargetOutlier:
    """One target against its peers; ratios are to the peers' median, null where that is zero or unknown."""

    target: str
    mean_pct: float  # FSU by the model of the result
    robust_z: float
    fsu_ratio: float | None
    bytes_ratio: float | None
    reason: Reason


@dataclass(frozen=True, slots=True)
class TargetOutliers:
    """All targets that are far from their peers, the farthest first; `too_short` reported too little to be judged.

    Numbers in per cent are FSU by the model of the result.
    """

    judged: int
    median_pct: float | None
    spread_pct: float | None  # robust standard deviation
    outliers: list[TargetOutlier]
    too_short: list[str]


def target_outliers(targets: Sequence[TargetUtilization], coverage: Sequence[TargetCoverage] = ()) -> TargetOutliers:
    """Targets whose mean FSU is far from that of their peers over the same window."""
    hours = {line.target: line.hours for line in coverage}
    enough = ENOUGH_TIME * max(hours.values(), default=0.0)
    measured = [target for target in targets if target.mean_pct is not None]
    too_short = [target.target for target in measured if hours.get(target.target, enough) < enough]
    peers = [target for target in measured if target.target not in set(too_short)]
    if len(peers) < FEWEST_PEERS:
        return TargetOutliers(0, None, None, [], too_short)
    fsu = np.array([target.mean_pct for target in peers], dtype=float)
    moved = np.array([_moved(target) for target in peers])
    middle, spread = float(np.median(fsu)), robust_spread(fsu)
    usual = float(np.nanmedian(moved)) if np.isfinite(moved).any() else 0.0
    outliers = [
        _outlier(target, (value - middle) / spread, _ratio(value, middle), _ratio(float(bytes_), usual))
        for target, value, bytes_ in zip(peers, fsu.tolist(), moved, strict=True)
        if spread and abs(value - middle) > FAR * spread and abs(value - middle) >= MATTERS_PCT
    ]
    return TargetOutliers(
        len(peers), middle, spread, sorted(outliers, key=lambda outlier: -abs(outlier.robust_z)), too_short
    )


def robust_spread(values: np.ndarray[tuple[int], np.dtype[np.float64]]) -> float:
    """A standard deviation that a few strangers do not widen; where most are equal, from the mean deviation."""
    deviations = np.abs(values - np.median(values))
    return MAD_TO_SIGMA * float(np.median(deviations)) or MEAN_DEVIATION_TO_SIGMA * float(np.mean(deviations))


def _moved(target: TargetUtilization) -> float:
    known = [bytes_ for bytes_ in (target.read_bytes, target.write_bytes) if bytes_ is not None]
    return float(sum(known)) if known else float("nan")


def _ratio(value: float, usual: float) -> float | None:
    return value / usual if usual > 0 and np.isfinite(value) else None


def _outlier(target: TargetUtilization, score: float, fsu: float | None, moved: float | None) -> TargetOutlier:
    assert target.mean_pct is not None
    return TargetOutlier(target.target, target.mean_pct, score, fsu, moved, _reason(score > 0, fsu, moved))


def _reason(busier: bool, fsu: float | None, moved: float | None) -> Reason:
    """Whether the bytes moved explain the difference, or only their size can."""
    if fsu is None or moved is None:
        return "unknown"
    if busier:
        return "smaller I/Os" if fsu > SAME_FACTOR * moved else "more bytes"
    return "larger I/Os" if moved > SAME_FACTOR * fsu else "fewer bytes"


# What raw counters say of the time before the first interval ----------------------------------------------------------
# They count since a mount, or since they were cleared.


@dataclass(frozen=True, slots=True)
class SizeCount:
    """Disk I/Os of one size bin (its upper bound)."""

    direction: str
    size_bytes: int
    count: int


@dataclass(frozen=True, slots=True)
class CountersSinceStart:
    """Disk I/Os since the counters of each target began, where no interval is known.

    `first_start` and `last_start` are when counting began, of the targets; null where a version does not say it.
    """

    targets: int
    first_start: datetime | None
    last_start: datetime | None
    first_sample: datetime
    last_sample: datetime
    ios: int
    suboptimal_pct: float | None
    io_sizes: list[SizeCount]

    @classmethod
    def of(cls, selection: Selection) -> CountersSinceStart | None:
        """By the newest sample of each target; None: there is none with sizes of disk I/Os."""
        newest = selection.last_counters("target_sizes")
        if not newest:
            return None
        counters = [last.counters.counters for last in newest]
        sizes = [
            SizeCount(direction, size, sum(counted.get(name, 0) for counted in counters))
            for name, (direction, size) in SIZE_COLUMNS.items()
        ]
        total = sum(size.count for size in sizes)
        smaller = sum(size.count for size in sizes if size.size_bytes < MIB)
        starts = [last.counters.start_us for last in newest]
        known = [start_us for start_us in starts if start_us is not None]
        says = len(known) == len(starts)
        return cls(
            targets=len(newest),
            first_start=from_epoch_us(min(known)) if says else None,
            last_start=from_epoch_us(max(known)) if says else None,
            first_sample=from_epoch_us(min(last.time_us for last in newest)),
            last_sample=from_epoch_us(max(last.time_us for last in newest)),
            ios=total,
            suboptimal_pct=ratio(100.0 * smaller, total),
            io_sizes=sizes,
        )
