"""Rows of `job_io` of a simulated file system, minute by minute, and what is true of each job beside them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Final

import numpy as np
import pyarrow as pa

from iolens.schema import DIRECTIONS
from iolens.simulator.activity import Activity, Counts, PlantedCounts, TickBlock, without
from iolens.simulator.job_counts import JobPart, parts_of_jobs
from iolens.simulator.telemetry_columns import interval_columns, name_column
from iolens.simulator.truth import JobTruths
from iolens.simulator.workload import OPERATIONS, SIZES

MINUTE_S: Final = 60


def job_rows(activity: Activity, block: TickBlock, names: Sequence[str], truths: JobTruths) -> pa.Table:
    """What each job did to each OST; minutes without an I/O are left out."""
    per_minute = MINUTE_S // activity.tick_s
    first_minute = block.first_tick // per_minute
    counts = _by_minute(block.counts, per_minute)
    parts = _minute_parts(activity, first_minute, counts, _planted_by_minute(block.planted, per_minute))
    for part in parts:
        truths.add_ios(part.job, part.counts.sum(axis=(2, 3)), activity.seconds)
    columns: dict[str, Callable[[Counts], Counts]] = {}
    for number, direction in enumerate(DIRECTIONS):
        columns[f"{direction}_bytes"] = lambda counts, number=number: np.array(SIZES) @ counts[number]  # type: ignore[misc]
        columns[f"{direction}_ops"] = lambda counts, number=number: counts[number].sum(axis=0)  # type: ignore[misc]
    folded = [part._replace(counts=part.counts.reshape(2, len(SIZES), -1)) for part in parts]
    return _rows(activity.workload.filesystem, "ost", names, folded, columns)


def operation_parts(activity: Activity, first_tick: int, done: Counts) -> list[JobPart]:
    """Metadata operations of each job by minute; `done` is operation × tick × MDT."""
    per_minute, (ticks, mdts) = MINUTE_S // activity.tick_s, done.shape[1:]
    planted = _planted_by_minute(activity.planted_metadata(first_tick, ticks, mdts), per_minute)
    return _minute_parts(activity, first_tick // per_minute, _by_minute(done, per_minute), planted)


def operation_rows(filesystem: str, names: Sequence[str], parts: Sequence[JobPart]) -> pa.Table:
    """What each job did to each MDT; minutes without an operation are left out."""
    columns: dict[str, Callable[[Counts], Counts]] = {
        name: lambda counts, number=number: counts[number]  # type: ignore[misc]
        for number, name in enumerate(OPERATIONS)
    }
    renames = OPERATIONS.index("rename")
    columns["crossdir_rename"] = lambda counts: counts[renames] // 16
    columns["samedir_rename"] = lambda counts: counts[renames] - counts[renames] // 16
    folded = [part._replace(counts=part.counts.reshape(len(OPERATIONS), -1)) for part in parts]
    return _rows(filesystem, "mdt", names, folded, columns)


def _minute_parts(
    activity: Activity, first_minute: int, counts: Counts, planted: tuple[PlantedCounts, ...]
) -> list[JobPart]:
    turn = first_minute + 1 + np.arange(counts.shape[-2])[:, None] + np.arange(counts.shape[-1])
    background = without(counts, first_minute, planted)
    return list(parts_of_jobs(activity.workload, MINUTE_S, first_minute, background, turn, planted))


def _by_minute(counts: Counts, per_minute: int) -> Counts:
    """Ticks, the last dimension but one, summed to minutes."""
    *kinds, ticks, targets = counts.shape
    summed: Counts = counts.reshape(*kinds, ticks // per_minute, per_minute, targets).sum(axis=-2)
    return summed


def _planted_by_minute(planted: tuple[PlantedCounts, ...], per_minute: int) -> tuple[PlantedCounts, ...]:
    return tuple(
        replace(part, first_tick=part.first_tick // per_minute, counts=_by_minute(part.counts, per_minute))
        for part in planted
    )


def _rows(
    filesystem: str,
    kind: str,
    names: Sequence[str],
    parts: Sequence[JobPart],
    columns: dict[str, Callable[[Counts], Counts]],
) -> pa.Table:
    """Rows by minute, target and job. The last dimension of the counts of a part is minutes × targets."""
    some = [np.flatnonzero(part.counts.any(axis=tuple(range(part.counts.ndim - 1)))) for part in parts]
    minute = np.concatenate([part.first_tick + cells // len(names) for part, cells in zip(parts, some, strict=True)])
    target = np.concatenate([cells % len(names) for cells in some])
    which = np.repeat(np.arange(len(parts)), [len(cells) for cells in some])
    numbers = np.array([part.number for part in parts], np.int64)
    order = np.lexsort((numbers[which], target, minute))
    kept = [part.counts[..., cells] for part, cells in zip(parts, some, strict=True)]
    values: dict[str, Any] = {
        name: np.concatenate([column(counts) for counts in kept])[order] for name, column in columns.items()
    }
    return pa.table({
        **interval_columns(filesystem, (minute[order] + 1) * MINUTE_S, MINUTE_S),
        "target": name_column(names, target[order]),
        "job_id": name_column([part.job.job_id for part in parts], which[order]),
        "target_kind": pa.repeat(kind, len(order)),
        **values,
    })  # fmt: skip
