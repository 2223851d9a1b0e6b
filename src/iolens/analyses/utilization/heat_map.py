"""Mean FSU of every target over time: for figures."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from iolens.analyses.intervals.target_rows import TargetRows
from iolens.arrays import Floats, Integers


@dataclass(frozen=True, slots=True)
class FsuHeatMap:
    """Mean FSU by target and time bucket; NaN where the target did not report."""

    bucket_s: float
    targets: list[str]
    time_us: Integers  # start of each bucket
    fsu_pct: Floats  # targets × buckets


def heat_map(cells: TargetRows, bucket_s: int) -> FsuHeatMap | None:
    """Every bucket from the first to the last, from sums of FSU and time; None where no target reported."""
    if not cells.names:
        return None
    bucket = cells.columns["bucket"]
    first = int(bucket.min())
    width = int(bucket.max()) - first + 1
    cell = cells.columns["target"] * width + bucket - first
    sums, time = (
        np.bincount(cell, weights=cells.columns[name], minlength=len(cells.names) * width)
        for name in ("busy", "duration_s")
    )
    with np.errstate(invalid="ignore", divide="ignore"):
        matrix = (sums / time).reshape(len(cells.names), width)
    starts_us = np.arange(first, first + width) * bucket_s * 1_000_000
    return FsuHeatMap(float(bucket_s), cells.names, starts_us, matrix)
