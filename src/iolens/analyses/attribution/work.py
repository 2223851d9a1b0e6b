"""What targets did and jobs asked of them, in seconds: of disks by transaction times, of MDTs by mdtest (B1)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final, Protocol

import narwhals as nw
import numpy as np

from iolens.analyses.calibration.applied import AppliedCalibration, chosen
from iolens.analyses.intervals.disk_time import CounterTime, number, total
from iolens.analyses.utilization.model_rows import ModelRows
from iolens.arrays import Floats, Integers
from iolens.models.metadata_time import MetadataCalibration
from iolens.models.transaction_time import SIZE_COLUMNS, Calibration, added, time_terms
from iolens.schema import DIRECTIONS, SUMMED_OPERATIONS
from iolens.store.parts import Days
from iolens.units import epoch_us

Frame = nw.LazyFrame[Any]
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
