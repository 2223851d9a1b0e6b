"""Rows of job_stats in seconds: a job's operations and bytes at the costs of their target and interval (B1)."""

from __future__ import annotations

from typing import Any

import narwhals as nw

from iolens.analyses.attribution.interval_costs import IntervalCosts
from iolens.analyses.attribution.job_intervals import short_enough
from iolens.analyses.attribution.work import TargetWork
from iolens.store.parts import Days


def job_seconds(days: Days, work: TargetWork, costs: IntervalCosts) -> nw.LazyFrame[Any]:
    """One row for each job, target and interval that ends in the days, as job_stats have it, with of each direction

    `…_s`: its seconds, NULL where its operations or bytes are not known; `…_assumed_s`: those for which k is not known.
    """
    rows = short_enough(work.asked(days.frame("job_io")))
    priced = rows.join(days.beside(costs.table), left_on=["target", "epoch_us"], right_on=["target", "until_us"])
    seconds = []
    for direction in work.directions:
        ops, moved = (nw.col(f"{direction}_{what}") for what in ("ops", "bytes"))
        own_s = ops * nw.col(f"{direction}_per_op_s") + moved * nw.col(f"{direction}_per_byte_s")
        is_assumed = nw.when(ops > 0).then(nw.col(f"{direction}_is_assumed")).otherwise(nw.lit(0.0))
        seconds += [own_s.alias(f"{direction}_s"), (own_s * is_assumed).alias(f"{direction}_assumed_s")]
    return priced.with_columns(*seconds)
