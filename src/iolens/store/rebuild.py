"""`--rebuild`: samples that came too late are fitted between the stored ones; finished rows replace what they cover.

The rule for samples is the union: stored intervals begin and end at samples too, and those stay.

- A late sample inside a stored interval divides it, if its counters lie between those of the interval's two ends. The
  sum over the parts is what the interval had. Otherwise the interval stays: the clock of the sample was off.
- In an interval with a reset, samples of before the reset add what moved up to them: the store could not know it.
- Samples from before everything stored of a target become intervals up to its first, if the counters go on to it.
- What fits nowhere is refused and counted. So a rebuild never lowers what moved, and counts nothing twice.

An interval that came finished replaces the same interval, or those that it and its neighbours cover without a gap if
they account for at least as much. All that changes in a table is one commit: a kill leaves the old rows or the new, and
since what is placed is then found placed, running it again completes the rest.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable, Transaction

from iolens.counters.rows import set_column
from iolens.schema import TABLES, Table
from iolens.store.duckdb_engine import EPOCH, connection, files_of_days, relation
from iolens.store.gate import Gate
from iolens.store.placing import Fate, Late, Placer, Removed, files_between
from iolens.store.snapshot import DayMarks
from iolens.store.tables import BatchPart, Tables, arrow_schema
from iolens.units import DAY_US

REBUILT: Final = "rebuilt"  # marks days some of whose rows were exchanged for others, which their number does not show
_INTERVAL: Final = ("source", "filesystem", "who", "start_us", "epoch_us")  # what names an interval of any table


@dataclass(slots=True)
class Rebuilt:
    """What a rebuild did to one table."""

    part: BatchPart  # under which the table's log and `batches` know it
    fates: list[Fate]  # of each late sample
    files: list[str] = field(default_factory=list)
    added: int = 0
    removed: int = 0
    repeated: int = 0  # finished rows that the table has just so
    unplaced: int = 0  # finished rows that would have lowered what is stored, or that reach into what stays


def rebuild_table(
    tables: Tables,
    name: str,
    source: str,
    late: Sequence[Late],
    finished: pa.Table,
    gate: Gate,
    part: BatchPart,
    own: frozenset[tuple[str, int]],
) -> Rebuilt:
    """Fit late samples and finished rows into one table, in one commit; `own` are parts of batches under way here."""
    table = TABLES[name]
    handle = tables.load_or_create(name, table)
    placement = Placer(tables, handle, table, source, gate.ceilings, own).place(late)
    done = Rebuilt(part, placement.fates)
    kept, replaced = _accepted(tables, handle, table, finished, done)
    rows = pa.concat_tables([gate.rows(table, placement.added), kept])
    removed = [*placement.removed, *replaced]
    if rows.num_rows or removed:
        filesystems = pc.unique(kept.column("filesystem")).to_pylist()
        marks = [Transaction(f"rows/{source}/{filesystem}", handle.version() + 1) for filesystem in filesystems]
        marks.append(part.transaction)
        done.added = rows.num_rows
        _exchange(tables, handle, table, source, removed, rows, marks, done)
    return done


def _exchange(
    tables: Tables,
    handle: DeltaTable,
    table: Table,
    source: str,
    removed: Sequence[Removed],
    rows: pa.Table,
    marks: Sequence[Transaction],
    done: Rebuilt,
) -> None:
    """Put `rows` in the place of the removed ones, in one commit."""
    days = {interval.start_us // DAY_US for interval in removed}
    days |= set(pc.unique(rows.column("date").cast(pa.int32())).to_pylist())
    stored = relation(tables, table.name, files_of_days(handle, days))
    whole = _removed_table(source, [interval for interval in removed if interval.counter_set is None])
    sets = _removed_table(source, [interval for interval in removed if interval.counter_set is not None])
    assert all(rows_ is not None for rows_ in (stored, whole, sets))  # used by name below
    named = f"*, {table.subject} AS who, {set_column(table)} AS counter_set"
    staying = f"""(SELECT {named} FROM stored) ANTI JOIN whole USING ({", ".join(_INTERVAL)})
                  ANTI JOIN sets USING ({", ".join(_INTERVAL)}, counter_set)"""  # noqa: S608 (names of the schema)
    sql = f"SELECT (SELECT count(*) FROM stored) - (SELECT count(*) FROM {staying})"  # noqa: S608 (names of the schema)
    ((done.removed,),) = connection().execute(sql).fetchall()
    columns = ", ".join(f'"{name}"' for name in arrow_schema(table).names)
    order = ", ".join(f'"{name}"' for name in dict.fromkeys(("time", *table.key)))
    sql = f"(SELECT {columns} FROM {staying}) UNION ALL (SELECT {columns} FROM rows) ORDER BY {order}"  # noqa: S608
    rebuilt = DayMarks(handle, REBUILT)
    touched = [date.fromordinal(EPOCH + day) for day in sorted(days)]
    marks = [*marks, *rebuilt.set_to({day: rebuilt.of(day) + 1 for day in touched})]
    names = [day.isoformat() for day in touched]
    with connection().sql(sql).to_arrow_reader() as together:  # closed, or the engine answers nobody after a conflict
        done.files = tables.replace_days(handle, table.name, names, together, marks)


def _removed_table(source: str, removed: Sequence[Removed]) -> pa.Table:
    columns = list(zip(*removed, strict=True)) or [()] * len(Removed._fields)
    types = (pa.string(), pa.string(), pa.int64(), pa.int64(), pa.string())
    arrays = [pa.array(list(column), type_) for column, type_ in zip(columns, types, strict=True)]
    return pa.table([pa.repeat(pa.scalar(source), len(removed)), *arrays], names=[*_INTERVAL, "counter_set"])


class StoredInterval(NamedTuple):
    """An interval of one target, with the sums of its counters; None: none of its rows knows it."""

    start_us: int
    time_us: int
    moved: tuple[int | None, ...]


def _accepted(
    tables: Tables, handle: DeltaTable, table: Table, finished: pa.Table, done: Rebuilt
) -> tuple[pa.Table, list[Removed]]:
    """The finished rows that go into the table, and the stored intervals that they replace."""
    if not finished.num_rows:
        return finished, []
    first = pc.min(finished.column("start").cast(pa.int64())).as_py()
    last = pc.max(finished.column("time").cast(pa.int64())).as_py()
    stored = relation(tables, table.name, files_between(handle, first, last))
    offered = _without_repeats(finished, table)
    done.repeated += finished.num_rows - offered.num_rows
    ours, theirs = (_intervals(table, offered, rows) for rows in (offered, stored))
    taken: set[Removed] = set()
    replaced: list[Removed] = []
    for (filesystem, who), mine in ours.items():
        new, old = exchangeable(mine, theirs.get((filesystem, who), []))
        taken |= {Removed(filesystem, who, *interval[:2]) for interval in new}
        replaced += [Removed(filesystem, who, *interval[:2]) for interval in old]
    same = _unchanged(table, offered, stored)
    columns = [offered.column(name).to_pylist() for name in ("filesystem", table.subject, "start_us", "epoch_us")]
    intervals = [Removed(*names) for names in zip(*columns, strict=True)]
    keep = [interval in taken and interval not in same for interval in intervals]
    known = sum(interval in same for interval in intervals)
    kept = offered.select(finished.column_names).filter(pa.array(keep, pa.bool_())).cast(finished.schema)
    done.repeated += known
    done.unplaced += offered.num_rows - kept.num_rows - known
    return kept, [interval for interval in replaced if interval not in same]


def _without_repeats(finished: pa.Table, table: Table) -> pa.Table:
    """The rows with their times in microseconds, each key once."""
    key = ", ".join(f'"{name}"' for name in table.key)
    numbered = finished.append_column("_order", pa.array(np.arange(finished.num_rows)))
    sql = f"""SELECT * EXCLUDE (_order), epoch_us(time) AS epoch_us, epoch_us(start) AS start_us FROM numbered
              QUALIFY row_number() OVER (PARTITION BY {key} ORDER BY _order) = 1"""  # noqa: S608 (names of the schema)
    assert numbered is not None  # used by name
    return connection().sql(sql).to_arrow_table()


def _intervals(table: Table, offered: pa.Table, rows: Any) -> dict[tuple[str, str], list[StoredInterval]]:
    """Intervals by target, in order of time, within the time that is offered of each."""
    who, sums = table.subject, ", ".join(f'sum("{counter}")' for counter in table.counters)
    sql = f"""
        WITH asked AS (SELECT source, filesystem, {who}, min(start_us) AS low, max(epoch_us) AS high
                       FROM offered GROUP BY ALL)
        SELECT filesystem, {who}, start_us, epoch_us, {sums}
        FROM rows JOIN asked USING (source, filesystem, {who})
        WHERE epoch_us > low AND start_us < high GROUP BY ALL ORDER BY start_us, epoch_us"""  # noqa: S608 (names of the schema)
    by_target: dict[tuple[str, str], list[StoredInterval]] = {}
    for filesystem, target, start_us, time_us, *moved in connection().execute(sql).fetchall():
        by_target.setdefault((filesystem, target), []).append(StoredInterval(start_us, time_us, tuple(moved)))
    return by_target


def _unchanged(table: Table, offered: pa.Table, stored: Any) -> set[Removed]:
    """Intervals that the table has just as they are offered."""
    columns = ", ".join(f'"{name}"' for name in arrow_schema(table).names)
    named = f"filesystem, {table.subject}, epoch_us(start), epoch_us(time)"
    interval = f"source, filesystem, {table.subject}, start, time"
    sql = f"""
        WITH ours AS (SELECT {columns} FROM offered),
        theirs AS (SELECT {columns} FROM stored SEMI JOIN (SELECT DISTINCT {interval} FROM offered) USING ({interval}))
        (SELECT DISTINCT {named} FROM ours) EXCEPT
        (SELECT {named} FROM ((FROM ours EXCEPT FROM theirs) UNION ALL (FROM theirs EXCEPT FROM ours)))"""  # noqa: S608
    return {Removed(*row) for row in connection().execute(sql).fetchall()}


def exchangeable(
    ours: Sequence[StoredInterval], theirs: Sequence[StoredInterval]
) -> tuple[list[StoredInterval], list[StoredInterval]]:
    """Which of our intervals may take the place of which of theirs; both in order of time.

    Theirs go where ours cover them without a gap. One of theirs that ours cover only in part stays, and ours that
    reach into it go. Ours that would lower what moved go too, unless they are the very same intervals, read again.
    """
    ours = list(ours)
    while True:
        stretches = _stretches(ours)
        inside, across = _within(stretches, theirs)
        if not across:
            break
        ours = [mine for mine in ours if not any(_overlap(mine, other) for other in across)]
    starts = [start_us for start_us, _ in stretches]
    by_stretch: list[tuple[list[StoredInterval], list[StoredInterval]]] = [([], []) for _ in stretches]
    for side, intervals in enumerate((ours, inside)):
        for interval in intervals:
            by_stretch[bisect_right(starts, interval.start_us) - 1][side].append(interval)
    taken: list[StoredInterval] = []
    replaced: list[StoredInterval] = []
    for mine, other in by_stretch:
        if [interval[:2] for interval in mine] == [interval[:2] for interval in other] or _is_at_least(mine, other):
            taken += mine
            replaced += other
    return taken, replaced


def _stretches(intervals: Sequence[StoredInterval]) -> list[tuple[int, int]]:
    """What intervals cover without a gap."""
    stretches: list[tuple[int, int]] = []
    for start_us, end_us, _ in intervals:
        if stretches and start_us <= stretches[-1][1]:
            stretches[-1] = (stretches[-1][0], max(stretches[-1][1], end_us))
        else:
            stretches.append((start_us, end_us))
    return stretches


def _within(
    stretches: Sequence[tuple[int, int]], intervals: Sequence[StoredInterval]
) -> tuple[list[StoredInterval], list[StoredInterval]]:
    """Intervals that lie inside a stretch, and those that reach across the edge of one."""
    starts = [start_us for start_us, _ in stretches]
    inside: list[StoredInterval] = []
    across: list[StoredInterval] = []
    for interval in intervals:
        place = bisect_right(starts, interval.start_us) - 1
        reached_us = stretches[place][1] if place >= 0 else interval.start_us
        next_us = starts[place + 1] if place + 1 < len(starts) else interval.time_us
        if interval.time_us <= reached_us:
            inside.append(interval)
        elif interval.start_us < reached_us or next_us < interval.time_us:
            across.append(interval)
    return inside, across


def _overlap(interval: StoredInterval, other: StoredInterval) -> bool:
    return interval.start_us < other.time_us and other.start_us < interval.time_us


def _is_at_least(ours: Sequence[StoredInterval], theirs: Sequence[StoredInterval]) -> bool:
    """Whether our intervals account for as much as theirs, counter by counter."""
    mine, other = (
        [sum(value or 0 for value in column) for column in zip(*(interval.moved for interval in part), strict=True)]
        for part in (ours, theirs)
    )
    return not theirs or all(more >= less for more, less in zip(mine, other, strict=True))
