"""Rows of finer tables placed into the intervals of job_stats (B1).

A target's job_stats are sampled every minute, its disk I/Os every few seconds. Each fine row belongs to the interval
that ends next, if more than half of it lies there. An interval of more than an hour is left out: nobody read job_stats
then, and what the disks did in that time is nobody's.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import narwhals as nw
import numpy as np
import pyarrow as pa

from iolens.analyses.intervals.target_rows import codes
from iolens.arrays import Booleans, Columns, Floats, Integers
from iolens.store.parts import AROUND_US, Ends

Frame = nw.LazyFrame[Any]


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
        return sums, _stacked(alone, ("target", "bucket", *names))

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


def _stacked(pieces: Sequence[Columns], names: Sequence[str]) -> Columns:
    nothing = {name: np.empty(0, object if name == "target" else np.float64) for name in names}
    nothing["bucket"] = np.empty(0, np.int64)
    return {name: np.concatenate([nothing[name], *(piece[name] for piece in pieces)]) for name in names}
