"""What attribution keeps of some days: seconds, bytes and operations of jobs, and what the targets did in all (B1).

It depends on the days, the calibrations and the width of a bucket, not on who is asked about: whose job an id is gets
known when the answer is put together.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import narwhals as nw
import numpy as np

from iolens.analyses.attribution.interval_costs import SUMS, IntervalCosts, interval_costs
from iolens.analyses.attribution.job_seconds import job_seconds
from iolens.analyses.attribution.work import DiskWork, MetadataWork, TargetWork
from iolens.analyses.intervals.bucket_sums import BucketSums
from iolens.analyses.intervals.fsu_sums import collect
from iolens.arrays import Columns
from iolens.part_form import PartForm
from iolens.schema import DIRECTIONS
from iolens.store.parts import Days, EngineParts
from iolens.units import SECOND_US

DISK_TABLES: Final = ("job_io", "target_sizes", "target_io")
METADATA_TABLES: Final = ("job_io", "metadata_ops")
COUNTED: Final = {  # of the jobs, beside their seconds
    DiskWork: ("read_bytes", "write_bytes", "operations"),
    MetadataWork: ("metadata_operations",),
}


@dataclass(slots=True)
class AttributionPart:
    """Sums of jobs by bucket, of jobs by target, and of targets by bucket; a job's `seconds` are of all directions."""

    jobs: BucketSums  # job_id, bucket: seconds, assumed_s, bytes and operations
    job_targets: BucketSums  # job_id, target: seconds
    targets: BucketSums  # target, bucket: seconds by direction, `SUMS`

    def take(self, later: AttributionPart) -> None:
        """A part of later days."""
        self.jobs.take(later.jobs)
        self.job_targets.take(later.job_targets)
        self.targets.take(later.targets)


FORM: Final = PartForm("attribution", 1, (AttributionPart, BucketSums))


def attribution_parts(work: DiskWork | MetadataWork, bucket_s: int) -> EngineParts[AttributionPart]:
    """How parts are made, of disks or of metadata targets."""
    tables = DISK_TABLES if isinstance(work, DiskWork) else METADATA_TABLES
    return EngineParts(attribution_part, FORM, tables, (work, bucket_s), looks_around=True)


def attribution_part(days: Days, work: DiskWork | MetadataWork, bucket_s: int) -> AttributionPart:
    """Of some days."""
    bucket_us = bucket_s * SECOND_US
    costs = interval_costs(days, work, bucket_us)
    counted = COUNTED[type(work)]
    rows = collect(_by_job(job_seconds(days, work, costs), work, counted, bucket_us))
    sums = ("seconds", "assumed_s", *counted)
    jobs = BucketSums.of({name: rows[name] for name in ("job_id", "bucket", *sums)}, bucket_s, JOB_KEYS, sums)
    places = BucketSums.of(
        {"job_id": rows["job_id"], "target": rows["target"], "bucket": np.zeros(len(rows["job_id"]), np.int64),
         "seconds": rows["seconds"]}, bucket_s, PLACE_KEYS, ("seconds",),
    )  # fmt: skip
    return AttributionPart(jobs, places, _targets(work, costs, bucket_s))


JOB_KEYS: Final = ("job_id", "bucket")
PLACE_KEYS: Final = ("job_id", "target", "bucket")
TARGET_KEYS: Final = ("target", "bucket")


def _by_job(rows: nw.LazyFrame[Any], work: TargetWork, counted: Sequence[str], bucket_us: int) -> nw.LazyFrame[Any]:
    """By job, target and bucket; what is not known counts as zero."""

    def both(ending: str) -> nw.Expr:
        parts = [nw.col(f"{direction}_{ending}").fill_null(0.0) for direction in work.directions]
        return parts[0] + parts[1] if len(parts) > 1 else parts[0]

    own = {"operations": both("ops")}
    columns = [both("s").alias("seconds"), both("assumed_s").alias("assumed_s")]
    columns += [own.get(name, nw.col(name).fill_null(0.0)).alias(name) for name in counted]
    keyed = rows.select("job_id", "target", (nw.col("start_us") // bucket_us).alias("bucket"), *columns)
    return keyed.group_by("job_id", "target", "bucket").agg(
        *(nw.col(name).sum() for name in ("seconds", "assumed_s", *counted))
    )


def _targets(work: TargetWork, costs: IntervalCosts, bucket_s: int) -> BucketSums:
    names = [f"{direction}_s" for direction in work.directions]
    names += [f"{direction}_reached_bytes" for direction in DIRECTIONS if isinstance(work, DiskWork)]
    rows: Columns = {name: costs.by_target[name] for name in (*TARGET_KEYS, *names, *SUMS)}
    return BucketSums.of(rows, bucket_s, TARGET_KEYS, (*names, *SUMS))
