"""Rollups 5 s → 60 s → 1 h, exact for sums and histograms, and retention of raw rows once rolled up.

A rollup row knows how many raw rows it stands for (`samples`); a day is current when those add up to the raw rows the
log counts and no rebuild exchanged some since, so that late rows are noticed without reading any. A day whose raw rows
were dropped is marked, and its rollup is left alone from then on.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from functools import partial
from typing import Final

from iolens.schema import TABLES, Column, Table
from iolens.store.duckdb_engine import EPOCH, connection, query, relation
from iolens.store.rebuild import REBUILT
from iolens.store.snapshot import DROPPED, DayMarks, Snapshot
from iolens.store.store import Store
from iolens.store.tables import RETAIN, ROLLUP, Tables, retrying

STEPS: Final = (("", "60s", 60_000_000), ("60s/", "1h", 3_600_000_000))
COMMIT_MS: Final = 3_600_000  # no writer takes longer between writing a file and committing it


@dataclass(slots=True)
class Done:
    """What was rolled up or dropped, and what was left alone and why."""

    days: int = 0
    rows: int = 0
    current: int = 0
    kept: list[str] = field(default_factory=list)


def roll_up(store: Store, step: Callable[[str], None] = lambda label: None) -> Done:
    """Bring every rollup up to date."""
    done = Done()
    for below, resolution, width_us in STEPS:
        for table in TABLES.values():
            if table.kind == "interval":
                _roll_table(store.tables, table, below + table.name, f"{resolution}/{table.name}", width_us, done, step)
    return done


def _roll_table(
    tables: Tables, table: Table, fine: str, coarse: str, width_us: int, done: Done, step: Callable[[str], None]
) -> None:
    finer, coarser = tables.load(fine), tables.load(coarse)
    if finer is None:
        return
    dropped, rebuilt, seen = DayMarks(finer, DROPPED), DayMarks(finer, REBUILT), DayMarks(coarser, REBUILT)
    rolled = raw_rows_by_day(tables, coarse)
    for day, rows in raw_rows_by_day(tables, fine).items():
        if gone := dropped.of(day):
            done.kept.append(
                f"{coarse} {day} stands for {gone} raw rows that were dropped; {rows} later ones are not in it"
            )
        elif rolled.get(day) == rows and seen.of(day) == rebuilt.of(day):
            done.current += 1
        else:
            retrying(partial(_roll_day, tables, table, fine, coarse, day, width_us), f"roll up {coarse}")
            done.days += 1
            done.rows += Snapshot.of(tables.load(coarse)).on_days(day.__eq__).rows
            step(f"{coarse} {day}")


def rollup_backlog(tables: Tables) -> dict[str, list[date]]:
    """By rollup, the days that `roll_up` would make: those that are not there, or lack rows that came later."""
    backlog: dict[str, list[date]] = {}
    for table in TABLES.values():
        days: set[date] = set()
        for below, resolution, _ in STEPS if table.kind == "interval" else ():
            days |= _days_behind(tables, below + table.name, f"{resolution}/{table.name}")  # what 60 s lacks, 1 h does
            if days:
                backlog[f"{resolution}/{table.name}"] = sorted(days)
    return backlog


def _days_behind(tables: Tables, fine: str, coarse: str) -> set[date]:
    """Rollup rows are read only of days with a finer file that is not older than the rollup's."""
    finer, coarser = tables.load(fine), tables.load(coarse)
    written, rolled = Snapshot.of(finer).written_ms_by_day(), Snapshot.of(coarser).written_ms_by_day()
    dropped, rebuilt, seen = DayMarks(finer, DROPPED), DayMarks(finer, REBUILT), DayMarks(coarser, REBUILT)
    days = {day for day in written if not dropped.of(day)}
    doubtful = {day for day in days & rolled.keys() if max(written[day]) > min(rolled[day]) - COMMIT_MS}
    rows, stands_for = (raw_rows_by_day(tables, name, doubtful) for name in (fine, coarse))
    return days - rolled.keys() | {
        day for day in days & rolled.keys()
        if seen.of(day) != rebuilt.of(day) or (day in doubtful and rows.get(day) != stands_for.get(day))
    }  # fmt: skip


def raw_rows_by_day(tables: Tables, name: str, only: Collection[date] | None = None) -> dict[date, int]:
    """Raw rows that the table stands for, by day: its own count, or what its rollup rows remember."""
    handle = tables.load(name)
    if handle is None or (only is not None and not only):
        return {}
    if "/" not in name:
        return Snapshot.of(handle).days()
    sql = "SELECT date, sum(samples)::BIGINT FROM stored GROUP BY date"
    days = None if only is None else {day.toordinal() - EPOCH for day in only}
    return dict(query(tables, handle, name, sql, days=days))


def _roll_day(tables: Tables, table: Table, fine: str, coarse: str, day: date, width_us: int) -> None:
    finer, target = tables.load(fine), tables.load_or_create(coarse, table)
    files = Snapshot.of(finer).on_days(lambda item: item == day).paths
    if not files or DayMarks(finer, DROPPED).of(day):  # somebody dropped the day meanwhile
        return
    stored = relation(tables, fine, files)
    assert stored is not None
    rows = connection().sql(_statement(table, width_us)).to_arrow_reader()
    marks = DayMarks(target, REBUILT).set_to({day: DayMarks(finer, REBUILT).of(day)})
    tables.replace_day(target, coarse, day.isoformat(), rows, marks, ROLLUP)


def _statement(table: Table, width_us: int) -> str:
    """Sums per bucket of the interval's start. In long tables, whose zero rows are not kept, the time is the span."""
    long_form = bool(table.dimensions)
    whole: dict[str, str] = {
        "time": f"make_timestamptz((bucket + 1) * {width_us})",
        "start": f"make_timestamptz(bucket * {width_us})",
        "duration_s": "(max(epoch_us) - min(start_us)) / 1e6::DOUBLE" if long_form else "sum(duration_s)",
        "after_reset": "bool_or(after_reset)",
        "samples": "sum(coalesce(samples, 1))::BIGINT",
    }
    keys = [
        "date",
        "filesystem",
        "source",
        *(name for name in table.key if name not in ("source", "filesystem", "time")),
    ]
    columns = []
    for column in table.columns:
        if column.name in keys:
            columns.append(f'"{column.name}"')
        elif column.name in whole:
            columns.append(f'{whole[column.name]} AS "{column.name}"')
        elif column.counter:
            columns.append(f'{_sum(column)} AS "{column.name}"')
        else:
            columns.append(f'max("{column.name}") AS "{column.name}"')
    by = ", ".join(f'"{key}"' for key in keys)
    return f"""
        SELECT {", ".join(columns)}
        FROM (SELECT *, start_us // {width_us} AS bucket FROM stored)
        GROUP BY bucket, {by} ORDER BY bucket, {by}"""  # noqa: S608 (column names of the schema)


def _sum(column: Column) -> str:
    """The sum of a counter; unknown where an older iolens stored what cannot be, so that the rest goes on."""
    return f'CASE WHEN min("{column.name}") >= 0 THEN TRY_CAST(sum("{column.name}") AS BIGINT) END'


def retain_raw(store: Store, seconds: float, *, without_rollup: bool = False, dry_run: bool = False) -> Done:
    """Drop days of raw rows that ended more than `seconds` ago, once the 60 s rollup stands for all of them."""
    done = Done()
    ended = datetime.fromtimestamp(time.time() - seconds, UTC).date()
    for table in TABLES.values():
        if table.kind != "interval":
            continue
        for day in raw_rows_by_day(store.tables, table.name):
            if day < ended:
                drop = partial(_drop_day, store.tables, table.name, day, without_rollup, dry_run)
                dropped, why_not = retrying(drop, f"drop {table.name} {day}")
                done.days, done.rows = done.days + (not why_not), done.rows + dropped
                done.kept += [f"{table.name} {day}: {why_not}"] if why_not else []
    return done


def _drop_day(tables: Tables, name: str, day: date, without_rollup: bool, dry_run: bool) -> tuple[int, str]:
    """Rows dropped, or why not; rows that arrive in between make the commit conflict and are looked at anew."""
    seen = DayMarks(tables.load(f"60s/{name}"), REBUILT)
    stands_for = raw_rows_by_day(tables, f"60s/{name}", {day}).get(day, 0)
    raw = tables.load(name)
    assert raw is not None
    rows = Snapshot.of(raw).days().get(day, 0)
    dropped, rebuilt = DayMarks(raw, DROPPED), DayMarks(raw, REBUILT)
    if not without_rollup and dropped.of(day):
        return 0, f"{rows} rows came after the others were dropped and are in no rollup"
    if not without_rollup and (stands_for != rows or seen.of(day) != rebuilt.of(day)):
        return 0, f"{rows} rows are not rolled up; run `iolens store rollup` first"
    if not dry_run:
        rolled = Snapshot.of(tables.load(f"60s/{name}")).on_days(day.__eq__).paths if stands_for else []
        old = Snapshot.of(raw).on_days(day.__eq__).paths
        tables.note_exchange(RETAIN, {}, {name: old}, {f"60s/{name}": rolled})
        tables.delete_day(raw, name, day.isoformat(), dropped.set_to({day: stands_for}))
    return rows, ""
