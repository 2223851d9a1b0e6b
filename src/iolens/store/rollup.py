"""Rollups 5 s → 60 s → 1 h, exact for sums and histograms, and retention of raw rows once rolled up.

A rollup row knows how many raw rows it stands for (`samples`); a day is current when those add up to the raw rows the
log counts, so that late rows are noticed without reading anything.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import date, timedelta
from functools import partial
from typing import Final

from iolens.schema import TABLES, Table
from iolens.store.duckdb_engine import connection, query, relation
from iolens.store.maintenance import _record
from iolens.store.snapshot import Snapshot
from iolens.store.store import Store
from iolens.store.tables import Tables, retrying

STEPS: Final = (("", "60s", 60_000_000), ("60s/", "1h", 3_600_000_000))


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
    finer = tables.load(fine)
    if finer is None:
        return
    present = raw_rows_by_day(tables, fine)
    rolled = raw_rows_by_day(tables, coarse)
    for day, rows in present.items():
        if rolled.get(day) == rows:
            done.current += 1
        elif rolled.get(day, 0) > rows:
            done.kept.append(f"{coarse} {day} stands for {rolled[day]} raw rows, only {rows} are left below it")
        else:
            written = retrying(partial(_roll_day, tables, table, fine, coarse, day, width_us), f"roll up {coarse}")
            _record(tables, "rollup", coarse, written)
            done.days += 1
            handle = tables.load(coarse)
            done.rows += Snapshot.of(handle).on_days(day.__eq__).rows
            step(f"{coarse} {day}")


def raw_rows_by_day(tables: Tables, name: str) -> dict[date, int]:
    """Raw rows that the table stands for, by day: its own count, or what its rollup rows remember."""
    handle = tables.load(name)
    if handle is None:
        return {}
    if "/" not in name:
        return Snapshot.of(handle).days()
    sql = "SELECT date, sum(samples)::BIGINT FROM found GROUP BY date"
    return dict(query(tables, handle, name, sql))


def _roll_day(tables: Tables, table: Table, fine: str, coarse: str, day: date, width_us: int) -> list[str]:
    finer, target = tables.load(fine), tables.load_or_create(coarse, table)
    files = Snapshot.of(finer).on_days(lambda one: one == day).paths
    found = relation(tables, fine, files)
    assert found is not None
    rows = connection().sql(_statement(table, width_us)).to_arrow_reader()
    return tables.replace_day(target, coarse, day.isoformat(), rows)


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
            columns.append(f'sum("{column.name}")::BIGINT AS "{column.name}"')
        else:
            columns.append(f'max("{column.name}") AS "{column.name}"')
    by = ", ".join(f'"{key}"' for key in keys)
    return f"""
        SELECT {", ".join(columns)}
        FROM (SELECT *, start_us // {width_us} AS bucket FROM found)
        GROUP BY bucket, {by} ORDER BY bucket, {by}"""  # noqa: S608 (column names of the schema)


def retain_raw(store: Store, seconds: float, *, without_rollup: bool = False, dry_run: bool = False) -> Done:
    """Drop days of raw rows that ended more than `seconds` ago, once the 60 s rollup stands for all of them."""
    done = Done()
    oldest = date.fromtimestamp(time.time() - seconds) - timedelta(days=1)
    for table in TABLES.values():
        if table.kind != "interval":
            continue
        raw, rolled = raw_rows_by_day(store.tables, table.name), raw_rows_by_day(store.tables, f"60s/{table.name}")
        for day, rows in raw.items():
            if day > oldest:
                continue
            if not without_rollup and rolled.get(day) != rows:
                done.kept.append(f"{table.name} {day}: {rows} rows are not rolled up; run `iolens store rollup` first")
                continue
            done.days, done.rows = done.days + 1, done.rows + rows
            if not dry_run:
                retrying(partial(_drop_day, store.tables, table.name, day), f"drop {table.name} {day}")
    return done


def _drop_day(tables: Tables, name: str, day: date) -> None:
    handle = tables.load(name)
    if handle is not None:
        handle.delete(f"date = '{day.isoformat()}'")
