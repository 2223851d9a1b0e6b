"""The `baselines` table as one writer sees it: the last raw counters of each target, and the claim on the next.

Rows are only ever added: each batch that touches a target adds the target's counters under the next `position`,
marked so that two writers cannot take one position. So what a batch started from can always be newest_rows again, and a
batch that was cut off half-way is completed with the same numbers.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import pyarrow as pa
from deltalake import DeltaTable, Transaction

from iolens.counters.differences import Baseline
from iolens.records import CounterSet
from iolens.schema import BASELINES
from iolens.store.duckdb_engine import query
from iolens.store.tables import BatchPart, Tables, arrow_schema

TargetKey = tuple[str, str]  # file system, target
CounterKey = tuple[str, str, str]  # file system, target, table


class LastCounters(NamedTuple):
    """The newest raw counters of a target, which count since it was mounted or they were cleared."""

    target: str
    source: str
    time_us: int  # when they were read
    counters: CounterSet


def last_counters(tables: Tables, filesystem: str, table: str) -> list[LastCounters]:
    """Of every target of a file system the newest counters of one wide table."""
    handle = tables.load("baselines")
    if handle is None:
        return []
    sql = """SELECT target, source, snapshot_us, counters FROM stored WHERE filesystem = ? AND counter_set = ?
             QUALIFY row_number() OVER (PARTITION BY target ORDER BY snapshot_us DESC, position DESC) = 1
             ORDER BY target"""
    rows = query(tables, handle, "baselines", sql, [filesystem, table])
    return [
        LastCounters(target, source, time_us, sets[""])
        for target, source, time_us, counters in rows
        if "" in (sets := Baseline.from_stored(0, time_us, counters).sets)
    ]


@dataclass(slots=True)
class BaselineBook:
    """Baselines of some targets, read through one handle so that a later commit notices who came between."""

    tables: Tables
    handle: DeltaTable
    source: str
    current: dict[CounterKey, Baseline] = field(default_factory=dict)
    positions: dict[TargetKey, int] = field(default_factory=dict)
    added: list[dict[str, object]] = field(default_factory=list)

    @classmethod
    def open(cls, tables: Tables, source: str, targets: Iterable[TargetKey]) -> BaselineBook:
        """The newest baselines of `targets`."""
        book = cls(tables, tables.load_or_create("baselines", BASELINES), source)
        wanted = set(targets)
        for row in book._rows(wanted, "TRUE", []):
            filesystem, target, counter_set, position, *stored = row
            book.current[filesystem, target, counter_set] = Baseline.from_stored(*stored)
            book.positions[filesystem, target] = max(position, book.positions.get((filesystem, target), 0))
        return book

    def before(self, part: BatchPart, targets: set[TargetKey]) -> dict[CounterKey, Baseline]:
        """The baselines that `part` started from when it made its claim, before it was cut off.

        A target it took no position of had nothing new then, and so has nothing new against today's baseline.
        """
        mine = {key: position for key, position in self._positions_of(part) if key in targets}
        baselines = {
            key: baseline for key, baseline in self.current.items() if key[:2] in targets and key[:2] not in mine
        }
        for key, position in mine.items():
            for row in self._rows({key}, "position < ?", [position]):
                baselines[row[0], row[1], row[2]] = Baseline.from_stored(*row[4:])
        return baselines

    def add(self, part: BatchPart, touched: dict[CounterKey, Baseline]) -> None:
        """Take the next position of each touched target for `part`."""
        for key in {(filesystem, target) for filesystem, target, _ in touched}:
            self.positions[key] = self.positions.get(key, 0) + 1
        for (filesystem, target, counter_set), baseline in touched.items():
            self.current[filesystem, target, counter_set] = replace(baseline, batch=part.identity)
            self.added.append(
                {
                    "source": self.source,
                    "filesystem": filesystem,
                    "target": target,
                    "counter_set": counter_set,
                    "position": self.positions[filesystem, target],
                    "batch": part.identity,
                    "part": part.part,
                    "time": baseline.time_us,
                    "snapshot_us": baseline.snapshot_us,
                    "counters": baseline.counters_json(),
                    "pending": baseline.pending_json(),
                }
            )

    def claim(self, parts: Iterable[BatchPart]) -> list[str]:
        """Commit the added rows; raises CommitFailedError when another writer moved one of the targets."""
        if not self.added:
            return []
        taken = {(str(row["filesystem"]), str(row["target"])) for row in self.added}
        marks = [Transaction(f"baseline/{self.source}/{fs}/{name}", self.positions[fs, name]) for fs, name in taken]
        schema = arrow_schema(BASELINES)
        columns = {
            field.name: pa.array(
                [row[field.name] for row in self.added], pa.int64() if field.name == "time" else field.type
            ).cast(field.type)
            for field in schema
        }
        return self.tables.commit(self.handle, "baselines", pa.table(columns, schema=schema), parts, marks)

    def _rows(self, targets: set[TargetKey], condition: str, values: list[object]) -> list[tuple[Any, ...]]:
        """The newest row per counter set of `targets` that meets `condition`.

        Counters of ten thousand jobs are megabytes of text: only those of the newest positions are read.
        """
        if not targets:
            return []
        keys = ", ".join("(?, ?)" for _ in targets)
        which = f"source = ? AND (filesystem, target) IN ({keys}) AND {condition}"
        parameters = [self.source, *(part for key in sorted(targets) for part in key), *values]
        newest = f"""SELECT filesystem, target, counter_set, max(position) AS position FROM stored WHERE {which}
                     GROUP BY ALL"""  # noqa: S608 (only placeholders are put together)
        newest_rows = query(self.tables, self.handle, "baselines", newest, parameters)
        if not newest_rows:
            return []
        positions = sorted({position for *_, position in newest_rows})
        sql = f"""SELECT filesystem, target, counter_set, position, epoch_us(time), snapshot_us, counters,
                         coalesce(pending, ''), batch
                  FROM stored SEMI JOIN ({newest}) USING (filesystem, target, counter_set, position)
                  WHERE source = ? AND position IN ({", ".join("?" for _ in positions)})"""  # noqa: S608
        return query(self.tables, self.handle, "baselines", sql, [*parameters, self.source, *positions])

    def _positions_of(self, part: BatchPart) -> list[tuple[TargetKey, int]]:
        sql = "SELECT filesystem, target, max(position) FROM stored WHERE batch = ? AND part = ? GROUP BY ALL"
        rows = query(self.tables, self.handle, "baselines", sql, [part.identity, part.part])
        return [((filesystem, target), position) for filesystem, target, position in rows]
