"""What an operation and a byte of a job cost on a target in an interval of job_stats: τ = a0·n·k + a1·B (B1).

n and B are a job's RPCs and bytes of one direction on one target in one interval; k is how many disk I/Os an RPC became
there, 1 where that is not known. T is what the disks took by their own count; where the jobs' τ add up to more, all are
scaled to it. What they do not add up to is nobody's: I/O without a job id, journal, read-ahead, earlier write-back.

τ is linear in n and B. So what all jobs of an interval ask for follows from their sums, and one small table of costs by
target and interval says what any job's n and B are in seconds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import narwhals as nw
import numpy as np
import pyarrow as pa

from iolens.analyses.attribution.job_intervals import JobIntervals, short_enough
from iolens.analyses.attribution.work import TargetWork
from iolens.analyses.intervals.fsu_sums import collect
from iolens.arrays import Columns, Floats
from iolens.store.parts import Days

Frame = nw.LazyFrame[Any]
SUMS: Final = ("wanted_s", "attributed_s", "assumed_s", "unmeasured_s", "intervals", "duration_s")


@dataclass(frozen=True, slots=True)
class IntervalCosts:
    """Of all targets of one kind and all intervals that end in some days.

    `table`: `target`, `until_us` and of each direction `…_per_op_s`, `…_per_byte_s`, `…_is_assumed`: k is not known.
    `by_target`: rows of `target` and `bucket`, several of each: `…_s` of each direction, which is what the target did,
    or where that is not known what was asked of it; `…_bytes` that reached it; and `SUMS`.
    """

    table: pa.Table
    by_target: Columns


def interval_costs(days: Days, work: TargetWork, bucket_us: int) -> IntervalCosts:
    """One reading of what jobs asked for, one of what targets did, and one of the requests that reached them."""
    intervals, asked = JobIntervals.of(
        collect(_asked_sums(short_enough(work.asked(days.around("job_io"))), work.directions))
    )
    did = [*(f"{direction}_{what}" for direction in work.directions for what in ("ios", "s")), "duration_s"]
    done, did_alone = intervals.placed(work.done(days), did, days.ends, bucket_us)
    rest, reached = [did_alone], None
    if (requests := work.requests(days)) is not None:
        names = [f"{direction}_{what}" for direction in work.directions for what in ("rpcs", "reached_bytes")]
        reached, reached_alone = intervals.placed(requests, names, days.ends, bucket_us)
        rest.append(reached_alone)
    table, sums = _priced(work, asked, done, reached)
    sums |= {"target": asked["target"], "bucket": asked["from_us"] // bucket_us}
    is_mine = (asked["until_us"] > days.ends.after_us) & (asked["until_us"] <= days.ends.until_us)
    mine = {name: values[is_mine] for name, values in sums.items()}
    return IntervalCosts(table.filter(pa.array(is_mine)), _stacked([mine, *rest]))


def _asked_sums(rows: Frame, directions: Sequence[str]) -> Frame:
    """Operations and bytes of all jobs by target and interval, of rows that know both."""
    sums = []
    for direction in directions:
        ops, moved = nw.col(f"{direction}_ops"), nw.col(f"{direction}_bytes")
        knows_both = ~ops.is_null() & ~moved.is_null()
        zero = nw.lit(0.0)
        sums += [nw.when(knows_both).then(value).otherwise(zero).alias(f"{direction}_{what}")
                 for what, value in (("ops", ops), ("bytes", moved))]  # fmt: skip
    names = [f"{direction}_{what}" for direction in directions for what in ("ops", "bytes")]
    return (
        rows.select("target", nw.col("start_us").alias("from_us"), nw.col("epoch_us").alias("until_us"), *sums)
        .group_by("target", "until_us")
        .agg(nw.col("from_us").min(), *(nw.col(name).sum() for name in names))
    )


def _priced(work: TargetWork, asked: Columns, done: Columns, reached: Columns | None) -> tuple[pa.Table, Columns]:
    """The table of costs, and the sums of each interval."""
    is_measured = done["rows"] > 0
    costs = work.costs(asked["target"].tolist(), asked["from_us"])
    table = {"target": asked["target"], "until_us": asked["until_us"]}
    seconds = np.maximum(asked["until_us"] - asked["from_us"], 0) / 1e6
    sums: Columns = {name: np.zeros(len(seconds)) for name in SUMS}
    sums["intervals"] = np.ones(len(seconds))
    sums["duration_s"] = np.where(is_measured, done["duration_s"], seconds)
    for direction in work.directions:
        per_op, per_byte = costs[direction]
        ratio = _disk_ios_per_rpc(direction, done, reached) if reached is not None else np.ones(len(seconds))
        is_assumed = np.isnan(ratio)
        per_op = per_op * np.where(is_assumed, 1.0, ratio)
        wanted = per_op * asked[f"{direction}_ops"] + per_byte * asked[f"{direction}_bytes"]
        took = np.where(is_measured, done[f"{direction}_s"], wanted)
        factor = np.divide(took, wanted, out=np.ones(len(wanted)), where=wanted > took)
        table |= {f"{direction}_per_op_s": per_op * factor, f"{direction}_per_byte_s": per_byte * factor}
        table[f"{direction}_is_assumed"] = is_assumed.astype(np.float64)
        sums |= {f"{direction}_s": took}
        sums["wanted_s"] += wanted
        sums["attributed_s"] += wanted * factor
        sums["assumed_s"] += np.where(is_assumed & (asked[f"{direction}_ops"] > 0), wanted * factor, 0.0)
        sums["unmeasured_s"] += np.where(is_measured, 0.0, wanted)
        if reached is not None:
            sums[f"{direction}_reached_bytes"] = reached[f"{direction}_reached_bytes"]
    return pa.table(table), sums


def _disk_ios_per_rpc(direction: str, done: Columns, reached: Columns) -> Floats:
    """k; NaN where either is not known, or no RPC was counted."""
    rpcs = reached[f"{direction}_rpcs"]
    is_known = (rpcs > 0) & (done["rows"] > 0)
    ratio: Floats = np.divide(done[f"{direction}_ios"], rpcs, out=np.full(len(rpcs), np.nan), where=is_known)
    return ratio


def _stacked(pieces: Sequence[Columns]) -> Columns:
    """One after the other; a sum that a piece does not have is zero."""
    names = {name for piece in pieces for name in piece if not name.endswith(("_ios", "_rpcs"))}
    sizes = [len(piece["bucket"]) for piece in pieces]
    return {
        name: np.concatenate([piece.get(name, np.zeros(size)) for piece, size in zip(pieces, sizes, strict=True)])
        for name in sorted(names)
    }
