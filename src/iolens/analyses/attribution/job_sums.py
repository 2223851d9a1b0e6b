"""Seconds, bytes and operations of jobs over a window, and what the targets did in all: of job_stats (B1)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from typing import Literal

import numpy as np

from iolens.analyses.attribution.part import AttributionPart, attribution_parts
from iolens.analyses.attribution.work import DiskWork, MetadataWork
from iolens.analyses.intervals.buckets import PART_S
from iolens.arrays import Columns
from iolens.store.selection import StoreSelection

Method = Literal["job_stats", "overlap"]


@dataclass(frozen=True, slots=True)
class JobSums:
    """`jobs`: rows of `job_id` and `bucket` with `seconds` and counts, NaN where not known; `places`: of `job_id` and

    `target` with `seconds`; `targets`: of `target` and `bucket` with `seconds` and `duration_s`. A job's seconds are
    never more than those of the targets in the same bucket.
    """

    method: Method
    bucket_s: int
    jobs: Columns
    places: Columns
    targets: Columns
    wanted_s: float  # what jobs asked for, before it is scaled to what the targets did
    assumed_s: float = 0.0
    unmeasured_s: float = 0.0
    intervals: int = 0


def job_sums(
    selection: StoreSelection,
    work: DiskWork | MetadataWork,
    shown_s: int,
    progress: Callable[[date], None] | None = None,
) -> JobSums | None:
    """Of job_stats, in buckets of `shown_s`; None where the window has no row of them or of the targets."""
    bucket_s = min(shown_s, PART_S)
    whole: AttributionPart | None = None
    for part in selection.parts(attribution_parts(work, bucket_s), progress):
        if whole is None:
            whole = part
        else:
            whole.take(part)
    if whole is None:
        return None
    targets = whole.targets.wider(shown_s).rows()
    targets["seconds"] = sum((targets[f"{direction}_s"] for direction in work.directions), np.zeros(1))
    return JobSums(
        "job_stats",
        shown_s,
        whole.jobs.wider(shown_s).rows(),
        whole.job_targets.without("bucket").rows(),
        targets,
        float(targets["wanted_s"].sum()),
        float(targets["assumed_s"].sum()),
        float(targets["unmeasured_s"].sum()),
        int(targets["intervals"].sum()),
    )
