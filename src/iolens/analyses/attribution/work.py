"""What targets did and jobs asked of them, in seconds, interval by interval."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final, Protocol, Self

import narwhals as nw
import numpy as np
import pyarrow as pa

from iolens.analyses.calibration.applied import AppliedCalibration, chosen
from iolens.analyses.intervals.fsu_sums import CounterTime, collect, number, total
from iolens.analyses.intervals.target_rows import codes
from iolens.analyses.utilization.targets import ModelRows
from iolens.arrays import Booleans, Columns, Floats, Integers
from iolens.models.metadata_time import MetadataCalibration
from iolens.models.transaction_time import SIZE_COLUMNS, Calibration, added, time_terms
from iolens.schema import DIRECTIONS, SUMMED_OPERATIONS
from iolens.store.parts import AROUND_US, Days, Ends
from iolens.units import epoch_us

# Rows of finer tables placed into the intervals of job_stats (B1) -----------------------------------------------------
# A target's job_stats are sampled every minute, its disk I/Os every few seconds. Each fine row belongs to the interval
# that ends next, if more than half of it lies there. An interval of more than an hour is left out: nobody read
# job_stats then, and what the disks did in that time is nobody's.


def short_enough(job_io: Frame) -> Frame:
    """Rows of intervals of at most an hour."""
    return job_io.filter(nw.col("epoch_us") - nw.col("start_us") <= AROUND_US)


@dataclass(frozen=True, slots=True, eq=False)
class JobIntervals:
    """Intervals of all targets, ordered by target and end."""

    targets: list[str]
    target: Integers  # place among the targets
    from_us: Integers
    until_us: Integers

    @classmethod
    def of(cls, rows: Columns) -> tuple[Self, Columns]:
        """Of rows of `target`, `from_us` and `until_us`; the rows in the order of the intervals."""
        targets, target = codes(rows["target"])
        order = np.lexsort([rows["until_us"], target])
        ordered = {name: values[order] for name, values in rows.items()}
        return cls(targets, target[order], ordered["from_us"], ordered["until_us"]), ordered

    def placed(self, rows: Frame, names: Sequence[str], ends: Ends, bucket_us: int) -> tuple[Columns, Columns]:
        """Sums of the columns `names` of rows with `target`, `start_us` and `epoch_us`; NULL counts as zero.

        By interval, with `rows`, how many there are; and by `target` and `bucket`, of rows that end in `ends` and lie
        in no interval.
        """
        table: pa.Table = rows.collect(backend="pyarrow").to_native()
        sums = {name: np.zeros(len(self.until_us)) for name in (*names, "rows")}
        alone: list[Columns] = []
        for batch in table.to_batches(max_chunksize=BATCH):
            columns = {name: _doubles(batch.column(name)) for name in names} | {"rows": np.ones(len(batch))}
            texts = batch.column("target").dictionary_encode()
            start_us, end_us = (batch.column(name).to_numpy(zero_copy_only=False) for name in ("start_us", "epoch_us"))
            interval, is_within = self._located(texts, start_us, end_us)
            for name, values in columns.items():
                sums[name] += np.bincount(interval[is_within], values[is_within], len(self.until_us))
            rest = ~is_within & (end_us > ends.after_us) & (end_us <= ends.until_us)
            own = np.array(texts.dictionary.to_pylist(), object)[texts.indices.to_numpy(zero_copy_only=False)[rest]]
            about: Columns = {"target": own, "bucket": start_us[rest] // bucket_us}
            alone.append(about | {name: values[rest] for name, values in columns.items() if name in names})
        return sums, _stacked_intervals(alone, ("target", "bucket", *names))

    def _located(self, texts: pa.DictionaryArray, start_us: Integers, end_us: Integers) -> tuple[Integers, Booleans]:
        """The interval of each row, and whether it lies mostly within."""
        if not len(self.until_us):
            return np.zeros(len(end_us), np.int64), np.zeros(len(end_us), np.bool_)
        known = {name: number for number, name in enumerate(self.targets)}
        places = np.array([known.get(name, -1) for name in texts.dictionary.to_pylist()], np.int64)
        target = places[texts.indices.to_numpy(zero_copy_only=False)]
        first_us = int(min(self.until_us.min(), end_us.min()))
        span = int(max(self.until_us.max(), end_us.max())) - first_us + 1
        keys, wanted = self.target * span + (self.until_us - first_us), target * span + (end_us - first_us)
        interval = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
        is_next = (self.target[interval] == target) & (self.until_us[interval] >= end_us)
        return interval, is_next & (2 * self.from_us[interval] < start_us + end_us)


BATCH = 1 << 18  # rows that are in memory as doubles


def _doubles(column: pa.Array) -> Floats:
    values: Floats = np.nan_to_num(column.cast(pa.float64()).to_numpy(zero_copy_only=False))
    return values


def _stacked_intervals(pieces: Sequence[Columns], names: Sequence[str]) -> Columns:
    nothing = {name: np.empty(0, object if name == "target" else np.float64) for name in names}
    nothing["bucket"] = np.empty(0, np.int64)
    return {name: np.concatenate([nothing[name], *(piece[name] for piece in pieces)]) for name in names}


# What targets did and jobs asked of them, in seconds ------------------------------------------------------------------
# Of disks by transaction times, of MDTs by mdtest (B1).

INTERVAL: Final = ("target", "start_us", "epoch_us")
JOB: Final = ("job_id", *INTERVAL, "duration_s")
Cost = tuple[Floats, Floats]  # seconds for each operation and for each byte, by interval


class TargetWork(Protocol):
    """One kind of targets: which rows tell what they did, and what an operation and a byte cost there."""

    @property
    def directions(self) -> Sequence[str]:
        """Apart from one another: what is scaled is scaled by direction."""

    def asked(self, job_io: Frame) -> Frame:
        """Rows of job_stats of these targets, with `…_ops` and `…_bytes` of each direction; NULL: not known."""

    def done(self, days: Days) -> Frame:
        """What the targets did, around the days: `…_ios` and `…_s` of each direction, `duration_s`."""

    def requests(self, days: Days) -> Frame | None:
        """What reached them, around the days: `…_rpcs`, `…_reached_bytes`; None: operations are the RPCs."""

    def costs(self, targets: Sequence[str], start_us: Integers) -> Mapping[str, Cost]:
        """By direction, for intervals of these targets and times."""


@dataclass(frozen=True, slots=True)
class DiskWork:
    """Disk I/Os: T = Σ N_b(a0 + a1·b), by the calibration that holds for the target and time.

    By the sizes of disk I/Os of OSTs, or with counters of disks by their operations and bytes.
    """

    applied: tuple[AppliedCalibration, ...]
    rows: ModelRows
    directions: ClassVar = DIRECTIONS

    def asked(self, job_io: Frame) -> Frame:
        """RPCs and bytes."""
        names = [f"{direction}_{what}" for direction in DIRECTIONS for what in ("ops", "bytes")]
        return _of_osts(job_io).select(*JOB, *(_double(name) for name in names))

    def done(self, days: Days) -> Frame:
        """By direction."""
        if self.rows.model == "counters":
            rows = CounterTime().rows(self.rows.io(days.around("target_io")))
            counted = {d: (_double(f"{d}_ops"), _double(f"{d}_bytes")) for d in DIRECTIONS}
        else:
            rows = _of_osts(days.around("target_sizes"))
            live = days.live_columns("target_sizes", list(SIZE_COLUMNS))
            counted = {direction: _ios_and_bytes(live, direction) for direction in DIRECTIONS}
        return rows.select(
            *INTERVAL,
            "duration_s",
            *(ios.alias(f"{direction}_ios") for direction, (ios, _) in counted.items()),
            *(self._seconds(direction, *both).alias(f"{direction}_s") for direction, both in counted.items()),
        )

    def requests(self, days: Days) -> Frame:
        """Where a row counts both reads and writes."""
        rows = self.rows.io(days.around("target_io"))
        knows_both = ~nw.col("read_ops").is_null() & ~nw.col("write_ops").is_null()
        nothing = nw.lit(None, dtype=nw.Float64)
        return rows.select(
            *INTERVAL,
            *(nw.when(knows_both).then(_double(f"{d}_ops")).otherwise(nothing).alias(f"{d}_rpcs") for d in DIRECTIONS),
            *(_double(f"{d}_bytes").alias(f"{d}_reached_bytes") for d in DIRECTIONS),
        )

    def costs(self, targets: Sequence[str], start_us: Integers) -> Mapping[str, Cost]:
        """The first calibration in the list that holds for the target and time."""
        place = np.full(len(start_us), len(self.applied) - 1)
        for number_, item in reversed(list(enumerate(self.applied[:-1]))):
            holds = np.ones(len(start_us), np.bool_)
            if item.targets is not None:
                holds &= np.isin(np.array(targets, object), item.targets)
            if item.valid_from is not None:
                holds &= start_us >= epoch_us(item.valid_from)
            place[holds] = number_
        return {
            direction: (
                np.array([item.calibration.of(direction).latency_s for item in self.applied])[place],
                np.array([item.calibration.of(direction).s_per_byte for item in self.applied])[place],
            )
            for direction in DIRECTIONS
        }

    def _seconds(self, direction: str, ios: nw.Expr, moved: nw.Expr) -> nw.Expr:
        """a0·N + a1·B by the calibration that holds for the row."""

        def of(calibration: Calibration) -> nw.Expr:
            cost = calibration.of(direction)
            return added(time_terms(ios, moved, number(cost.latency_s), number(cost.s_per_byte)))

        return chosen(self.applied, of)


@dataclass(frozen=True, slots=True)
class MetadataWork:
    """Operations of MDTs, each at its cost; without a calibration all cost the same, and seconds are operations."""

    calibration: MetadataCalibration | None
    directions: ClassVar = ("metadata",)

    def asked(self, job_io: Frame) -> Frame:
        """Seconds in place of operations, so that each costs one."""
        rows = job_io.filter(nw.col("target_kind") == "mdt")
        return rows.select(
            *JOB, self.cost(rows).alias("metadata_ops"), number(0.0).alias("metadata_bytes"),
            operations(rows).alias("metadata_operations"),
        )  # fmt: skip

    def done(self, days: Days) -> Frame:
        """By the operations of the server."""
        rows = days.around("metadata_ops")
        counted, seconds = operations(rows).alias("metadata_ios"), self.cost(rows).alias("metadata_s")
        return rows.select(*INTERVAL, "duration_s", counted, seconds)

    def requests(self, days: Days) -> None:
        """An operation is an operation."""
        return

    def costs(self, targets: Sequence[str], start_us: Integers) -> Mapping[str, Cost]:
        """One second for each second."""
        return {"metadata": (np.ones(len(start_us)), np.zeros(len(start_us)))}

    def cost(self, rows: Frame) -> nw.Expr:
        """Seconds of all operations of a row, or their number where no calibration says what one costs."""
        cost = self.calibration
        names = _counted(rows)
        return total([_known(name) * number(cost.of(name).s_per_op if cost else 1.0) for name in names])


def _ios_and_bytes(live: Sequence[str], direction: str) -> tuple[nw.Expr, nw.Expr]:
    """Of the size bins that count."""
    names = [name for name in live if SIZE_COLUMNS[name][0] == direction]
    counts = [_double(name) for name in names]
    moved = [_double(name) * number(SIZE_COLUMNS[name][1]) for name in names]
    return total(counts), total(moved)


def operations(rows: Frame) -> nw.Expr:
    """Metadata operations of every kind."""
    return total([_known(name) for name in _counted(rows)])


def _counted(rows: Frame) -> list[str]:
    names = rows.collect_schema().names()
    return [name for name in SUMMED_OPERATIONS if name in names]


def _known(name: str) -> nw.Expr:
    """A server prints an operation only once it has occurred."""
    return _double(name).fill_null(0.0)


def _double(name: str) -> nw.Expr:
    return nw.col(name).cast(nw.Float64)


def _of_osts(rows: Frame) -> Frame:
    """All but rows of MDTs, whose operations another model prices."""
    kind = nw.col("target_kind")
    return rows.filter(kind.is_null() | (kind != "mdt"))


# What an operation and a byte of a job cost on a target in an interval of job_stats -----------------------------------
# τ = a0·n·k + a1·B (B1).
#
# n and B are a job's RPCs and bytes of one direction on one target in one interval; k is how many disk I/Os an RPC
# became there, 1 where that is not known. T is what the disks took by their own count; where the jobs' τ add up to
# more, all are scaled to it. What they do not add up to is nobody's: I/O without a job id, journal, read-ahead, earlier
# write-back.
#
# τ is linear in n and B. So what all jobs of an interval ask for follows from their sums, and one small table of costs
# by target and interval says what any job's n and B are in seconds.

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
