"""The newest load of a file system beside that of the whole window: means over the last minutes of its series."""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Final

import numpy as np

from iolens.arrays import Floats
from iolens.units import from_epoch_us

if TYPE_CHECKING:
    from iolens.analyses.utilization.analysis import UtilizationSeries

LATEST_US: Final = 300_000_000


@dataclass(frozen=True, slots=True)
class LatestLoad:
    """Means over the last `length_s` seconds of the series; bytes per second also over all of it; None: not known."""

    end: datetime
    length_s: float
    fsu_pct: float | None
    bytes_per_s: float | None
    whole_bytes_per_s: float | None


def latest_load(series: UtilizationSeries) -> LatestLoad | None:
    """Of the last five minutes, or of the last bucket where buckets are longer; None: there is no series."""
    if len(series.time_us) == 0:
        return None
    end_us = int(series.time_us[-1])
    last = series.time_us > end_us - LATEST_US
    moved = np.asarray(series.read_bytes_per_s) + np.asarray(series.write_bytes_per_s)
    return LatestLoad(
        from_epoch_us(end_us), float(last.sum()) * series.bucket_s, _mean(series.fsu_pct[last]), _mean(moved[last]),
        _mean(moved),
    )  # fmt: skip


def _mean(values: Floats) -> float | None:
    known = values[np.isfinite(values)]
    mean = float(known.mean()) if len(known) else math.nan
    return mean if math.isfinite(mean) else None
