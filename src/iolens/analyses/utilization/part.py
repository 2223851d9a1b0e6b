"""What `utilization` takes from some days: every tick of the file system, and sums of each target by its name.

Nothing here depends on the window that was asked for, but for the width of heat map buckets in windows of a few days;
peaks, plateaus and buckets of a longer window belong to the result.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar, Final

import numpy as np

from iolens.analyses.calibration.applied import AppliedCalibration
from iolens.analyses.intervals.fsu_sums import FsuSums, bytes_per_target, bytes_per_tick, collect, data_targets
from iolens.analyses.intervals.target_rows import TargetRows, joined
from iolens.analyses.intervals.tick_totals import category_of
from iolens.analyses.utilization.targets import ModelRows
from iolens.arrays import Columns, Floats
from iolens.models.transaction_time import BUSY_ABOVE_PCT, SIZE_COLUMNS
from iolens.part_form import PartForm
from iolens.store.parts import Days, Ends
from iolens.units import DAY_S, MIB, epoch_us

WIDEST_BUCKET_S: Final = 900  # of a part's heat map: buckets of all longer windows are made of these


@dataclass(slots=True)
class UtilizationPart:
    """Of some days; of none, as it is made."""

    sizes: Columns = field(default_factory=dict)  # of each tick: FSU as the mean over its targets, their number
    io: Columns = field(default_factory=dict)  # of each tick: bandwidth of its targets together
    ios: dict[str, int] = field(default_factory=dict)  # by column of `target_sizes`
    category_ios: Floats = field(default_factory=lambda: np.zeros((3, 2)))  # idle to busy × optimal, suboptimal
    moved: TargetRows = field(default_factory=TargetRows)  # bytes by UTC day (or quarter) and length of intervals
    targets: TargetRows = field(default_factory=TargetRows)  # FSU and quality, by UTC day and length of intervals
    heat: TargetRows = field(default_factory=TargetRows)  # FSU by bucket
    left_out: frozenset[str] = frozenset()  # targets of other kinds, which tell of the same bytes

    def take(self, later: UtilizationPart) -> None:
        """A part of later days of the same question."""
        self.sizes, self.io = joined(self.sizes, later.sizes), joined(self.io, later.io)
        self.ios = {name: self.ios.get(name, 0) + later.ios.get(name, 0) for name in {**self.ios, **later.ios}}
        self.category_ios = self.category_ios + later.category_ios
        self.moved.take(later.moved)
        self.targets.take(later.targets)
        self.heat.take(later.heat)
        self.left_out |= later.left_out

    def without_rows(self, times: int) -> UtilizationPart:
        """Without ticks and sums of targets, and with heat map buckets that are so many times as wide."""
        heat = self.heat.wider(times).by("bucket")
        return replace(self, sizes={}, io={}, moved=TargetRows(), targets=TargetRows(), heat=heat)


FORM: Final = PartForm("utilization", 1, (UtilizationPart, TargetRows))


@dataclass(frozen=True, slots=True)
class UtilizationParts:
    """How parts are made: of which rows, by which calibrations, and how fine the heat map is."""

    rows: ModelRows
    calibrations: tuple[AppliedCalibration, ...]
    bucket_s: int
    per_target: bool
    moved_s: int = DAY_S  # width of the buckets in which bytes are added up: quarters of an hour make days of any zone
    form: ClassVar = FORM
    tables: ClassVar = ("target_sizes", "target_io")
    tick_us: ClassVar = 1_000_000  # an interval that ends up to half a second after midnight is of the day before
    by_engine: ClassVar = True
    looks_around: ClassVar = False

    def depends_on(self, ends: Ends) -> object:
        """The calibrations are those that have begun by then."""
        rows = [self.rows.model, self.rows.has_util, list(self.rows.other_kinds)]
        widths = [self.bucket_s] if self.moved_s == DAY_S else [self.bucket_s, self.moved_s]
        return [*rows, repr(_begun(self.calibrations, ends.until_us)), *widths, self.per_target]

    def for_good(self) -> UtilizationParts:
        """With all targets, in the widest buckets."""
        return replace(self, bucket_s=WIDEST_BUCKET_S, per_target=True, moved_s=DAY_S)

    def made(self, days: Days) -> UtilizationPart:
        """Of some days, from the engine's sums."""
        rows, model = self.rows, self.rows.disk_time(days)
        sums = FsuSums(model, _begun(self.calibrations, days.end_us), self.bucket_s * 1_000_000)
        frame = days.frame("target_io")
        io = rows.io(frame)
        counted = io if model.table == "target_io" else data_targets(days.frame(model.table))
        by_tick = _in_order(collect(sums.per_tick(counted)))
        sizes = _fsu_ticks(by_tick)
        known = by_tick["targets"] > 0
        ios = {name: by_tick[name][known] for name in model.counted}
        part = UtilizationPart(
            sizes,
            _io_ticks(_in_order(collect(bytes_per_tick(io, rows.has_util)))),
            {name: round(float(counts.sum())) for name, counts in ios.items()},
            _category_ios(sizes["fsu"][known], ios),
            TargetRows.of(collect(bytes_per_target(io, rows.has_util, self.moved_s * 1_000_000))),
        )
        if self.per_target:
            by_target = TargetRows.of(collect(sums.per_target(counted)))
            part.heat = by_target.by("bucket", sums=("busy", "duration_s"))
            part.targets = by_target.wider(DAY_S // self.bucket_s).by("bucket", "length_us")
            part.left_out = rows.left_out(frame)
        return part


def _begun(calibrations: Sequence[AppliedCalibration], end_us: int | None) -> list[AppliedCalibration]:
    """Those that hold for some interval of the days, the general one last."""
    *special, general = calibrations
    return [
        item for item in special if end_us is None or item.valid_from is None or epoch_us(item.valid_from) < end_us
    ] + [general]


def _in_order(by_tick: Columns) -> Columns:
    """In time order; a sum of nothing is zero."""
    order = np.argsort(by_tick["epoch_us"])
    return {name: np.nan_to_num(values[order]) for name, values in by_tick.items()}


def _fsu_ticks(by_tick: Columns) -> Columns:
    targets = np.maximum(by_tick["targets"], 1)
    return {
        "epoch_us": by_tick["epoch_us"],
        "targets": by_tick["targets"].astype(np.int32),
        "seconds": by_tick["duration_s"] / targets,
        "fsu": by_tick["fsu"] / targets,
        "optimal_is_busy": by_tick["optimal_fsu"] / targets > BUSY_ABOVE_PCT,
    }


def _io_ticks(by_tick: Columns) -> Columns:
    """%util is the unweighted mean of the devices that count it, NaN where none does."""
    ticks = {name: by_tick[name] for name in ("epoch_us", "read_rate", "write_rate")}
    ticks["seconds"] = by_tick["duration_s"] / by_tick["targets"]
    with np.errstate(invalid="ignore"):
        return ticks | {name: by_tick[name] / by_tick["util_rows"] for name in ("util", "util_s") if name in by_tick}


def _category_ios(fsu: Floats, ios: Columns) -> Floats:
    sums = np.zeros((3, 2))
    for name, counts in ios.items():
        column = int(SIZE_COLUMNS[name][1] < MIB)  # optimal first
        sums[:, column] += np.bincount(category_of(fsu), weights=counts, minlength=3)
    return sums
