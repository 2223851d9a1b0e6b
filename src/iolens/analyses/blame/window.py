"""Which part of a window was busiest: by disk time of OSTs, or by what the operations of MDTs cost (B1)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import narwhals as nw
import numpy as np

from iolens.analyses.attribution.work import MetadataWork
from iolens.analyses.calibration.applied import AppliedCalibration
from iolens.analyses.intervals.fsu_sums import collect
from iolens.analyses.utilization.model_rows import model_rows
from iolens.analyses.utilization.part import WIDEST_BUCKET_S, UtilizationParts
from iolens.arrays import Floats, Integers
from iolens.errors import NotKnownError
from iolens.store.selection import Selection


@dataclass(frozen=True, slots=True, eq=False)
class LoadOfTicks:
    """What all targets did in each tick, in seconds or operations, in the order of time."""

    ends_us: Integers
    done: Floats
    tick_us: int


def disk_load(selection: Selection, applied: Sequence[AppliedCalibration]) -> LoadOfTicks:
    """Disk-seconds of the OSTs."""
    maker = UtilizationParts(model_rows(selection, "auto"), tuple(applied), WIDEST_BUCKET_S, per_target=False)
    ticks = [part.sizes for part in selection.parts(maker)]
    ends = np.concatenate([tick["epoch_us"] for tick in ticks]) if ticks else np.empty(0, np.int64)
    if not len(ends):
        raise NotKnownError(f"{selection.filesystem}: FSU is not known in this window, so its busiest part is not")
    fsu, seconds, targets = (np.concatenate([tick[name] for tick in ticks]) for name in ("fsu", "seconds", "targets"))
    return LoadOfTicks(ends, fsu * seconds * targets, round(float(seconds[0]) * 1e6))


def metadata_load(selection: Selection, work: MetadataWork) -> LoadOfTicks:
    """Seconds of the metadata servers, or their operations where it is not known what one costs."""
    rows = selection.frame("metadata_ops")
    counted = rows.filter(nw.col("duration_s") > 0).select("epoch_us", "duration_s", work.cost(rows).alias("done"))
    ticks = collect(counted.group_by("epoch_us").agg(nw.col("done").sum(), nw.col("duration_s").max()))
    if not len(ticks["epoch_us"]):
        raise NotKnownError(
            f"{selection.filesystem}: no operations of its metadata servers are known in this window, so its busiest"
            " part is not"
        )
    order = np.argsort(ticks["epoch_us"])
    tick_us = round(float(ticks["duration_s"][order[0]]) * 1e6)
    return LoadOfTicks(ticks["epoch_us"][order], ticks["done"][order], tick_us)


def busiest_us(load: LoadOfTicks, length_us: int) -> tuple[int, int]:
    """Start and end of the stretch of that length in which most was done; it begins and ends with a tick.

    By sums over ticks that end within the length; gaps count as idle.
    """
    summed = np.concatenate([[0.0], np.cumsum(load.done)])
    first = np.searchsorted(load.ends_us, load.ends_us - length_us, side="right")
    last = int((summed[1:] - summed[first]).argmax())
    end_us = int(load.ends_us[last])
    return max(end_us - length_us, int(load.ends_us[0]) - load.tick_us), end_us
