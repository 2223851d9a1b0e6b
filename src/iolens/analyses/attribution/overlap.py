"""Without job_stats: bytes of jobs beside the bytes that the targets moved at the same time (B1). Association only.

In each bucket of time and direction a job's share is its bytes ÷ the bytes of the targets; where jobs moved more than
the targets did (caches, other file systems), all are scaled down to it. Its seconds are that share of the targets'.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from iolens.analyses.attribution.job_sums import JobSums
from iolens.analyses.attribution.moved_bytes import MovedBytes, spread
from iolens.arrays import Columns, Floats
from iolens.schema import DIRECTIONS


def associated(sums: JobSums, stretches: Sequence[MovedBytes], extent_us: tuple[int, int]) -> JobSums:
    """The sums of targets as they are, and of jobs by overlap."""
    rows = spread(stretches, sums.bucket_s * 1_000_000, extent_us)
    buckets, place = np.unique(sums.targets["bucket"], return_inverse=True)
    known = np.isin(rows["bucket"], buckets)
    rows = {name: values[known] for name, values in rows.items()}
    column = np.searchsorted(buckets, rows["bucket"])
    seconds, wanted_s = np.zeros(len(column)), 0.0
    for direction in DIRECTIONS:
        took, moved = (
            np.bincount(place, sums.targets[f"{direction}_{what}"], len(buckets)).astype(np.float64)
            for what in ("s", "reached_bytes")
        )
        asked = np.bincount(column, rows[f"{direction}_bytes"], len(buckets)).astype(np.float64)
        per_byte = _divided(took, np.maximum(moved, asked))
        seconds += rows[f"{direction}_bytes"] * per_byte[column]
        wanted_s += float((asked * _divided(took, moved)).sum())
    return JobSums("overlap", sums.bucket_s, rows | {"seconds": seconds}, _nowhere(), sums.targets, wanted_s)


def _divided(above: Floats, below: Floats) -> Floats:
    result: Floats = np.divide(above, below, out=np.zeros(len(above)), where=below > 0)
    return result


def _nowhere() -> Columns:
    nothing = np.empty(0)
    return {"job_id": np.empty(0, object), "target": np.empty(0, object), "seconds": nothing}
