"""Looking after a store: what is in it, merging small files, removing dead ones, checking and exporting."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from datetime import date, datetime
from functools import partial
from pathlib import Path
from typing import Any, Final

import duckdb
from deltalake import DeltaTable
from duckdb import CoalesceOperator, ColumnExpression, ConstantExpression

from iolens.errors import UsageError
from iolens.schema import BASELINES, SCHEMA_VERSION, TABLES
from iolens.store.data_files import LARGEST_BYTES
from iolens.store.duckdb_engine import DuckDBEngine, connection, interruptible, newest, relation
from iolens.store.part_memory import FOLDER, KEPT, PartMemory
from iolens.store.selection import begin_columns
from iolens.store.snapshot import Snapshot
from iolens.store.store import Store
from iolens.store.tables import COMPACT, Tables, arrow_schema, declared, retrying, unreadable
from iolens.store.verification import Verification as Verification
from iolens.store.verification import table_names
from iolens.store.verification import verify_store as verify_store
from iolens.units import epoch_us, iso

Step = Callable[[str], None]
YOUNGEST_HOURS: Final = 1.0  # no ingest takes that long between writing a file and committing it
MOST_REMEMBERED: Final = 4 << 30  # bytes of parts of answers
UNUSED_DAYS: Final = 90  # after which a part is removed


@dataclass(frozen=True, slots=True)
class StoredTable:
    """A table or rollup as its log describes it; times are those of its rows."""

    name: str
    rows: int
    files: int
    bytes: int
    days: int | None  # None: it is not cut by day
    first_time: datetime | None
    last_time: datetime | None


def stored_tables(tables: Tables) -> Iterator[StoredTable]:
    """Every table and rollup there is; by the log, no data file is opened."""
    for name in table_names():
        handle = tables.load(name)
        if handle is None:
            continue
        snapshot = Snapshot.of(handle)
        days = len(snapshot.days()) if declared(name).cut_by == "day" else None
        extent = snapshot.extreme("time", "min"), snapshot.extreme("time", "max")
        yield StoredTable(name, snapshot.rows, snapshot.files.num_rows, snapshot.bytes, days, *extent)


def store_info(store: Store) -> dict[str, Any]:
    """Tables with rows, files, bytes and span, file systems, and parts of answers."""
    lines = [
        {
            **asdict(table),
            "first_time": iso(table.first_time) if table.first_time else None,
            "last_time": iso(table.last_time) if table.last_time else None,
        }
        for table in stored_tables(store.tables)
    ]
    known = {name: len(targets) for name, targets in sorted(store.targets_by_filesystem().items())}
    return {
        "url": store.url,
        "schema_version": SCHEMA_VERSION,
        "filesystems": known,
        "tables": lines,
        "remembered": _parts_below(store.tables, FOLDER),
        "kept": _parts_below(store.tables, KEPT),
    }


def _parts_below(tables: Tables, folder: str) -> list[dict[str, Any]]:
    """Parts of answers, by their form and its version."""
    by_form: dict[str, list[int]] = {}
    for entry in PartMemory(tables).entries(folder):
        by_form.setdefault(entry.form, []).append(entry.bytes)
    return [{"form": form, "parts": len(sizes), "bytes": sum(sizes)} for form, sizes in sorted(by_form.items())]


@dataclass(slots=True)
class Compaction:
    """What was merged."""

    days: int = 0
    files_before: int = 0
    files_after: int = 0


def compact_store(store: Store, step: Step = lambda label: None) -> Compaction:
    """Merge the files of each day into one in time order; drop baselines that no batch can need again."""
    done = Compaction()
    for name in table_names():
        handle = store.tables.load(name)
        if handle is None or not declared(name).partitioned:
            continue
        handle = retrying(partial(store.tables.load_or_create, name, declared(name)), f"migrate {name}")
        counts: dict[date, int] = {}
        files_by_date = Snapshot.of(handle)
        for day in files_by_date.files.column("partition.date").to_pylist() if files_by_date.is_cut else ():
            counts[day] = counts.get(day, 0) + 1
        for day, files in sorted(counts.items()):
            if files > 1:
                written = retrying(partial(_compact_day, store.tables, name, day), f"compact {name} {day}")
                done.days += 1
                done.files_before += files
                done.files_after += len(written)
                step(f"{name} {day}")
    _compact_records(store.tables, done)
    return done


def _compact_day(tables: Tables, name: str, day: date) -> list[str]:
    handle = tables.load(name)
    files = Snapshot.of(handle).on_days(lambda item: item == day).paths
    if handle is None or len(files) < 2:  # somebody else was faster
        return []
    return _merge(tables, handle, name, files)


def _merge(tables: Tables, handle: DeltaTable, name: str, files: list[str]) -> list[str]:
    """Exchange files for as few as possible with the same rows in time order."""
    names = arrow_schema(declared(name)).names
    keys = [key for key in dict.fromkeys(("time", *declared(name).key)) if key in names]
    columns, order = (", ".join(f'"{column}"' for column in some) for some in (names, keys))
    rows = relation(tables, name, files).project(columns).order(order).to_arrow_reader()
    return tables.put(handle, name, tables.write(name, rows), instead_of=files, what=COMPACT)


def _compact_records(tables: Tables, done: Compaction) -> None:
    """Tables that are not cut by day: small files are merged; of baselines only what may still be needed is kept."""
    retrying(lambda: _prune_baselines(tables), "compact baselines")
    for table in TABLES.values():
        if not table.partitioned:
            before, after = retrying(partial(_merge_records, tables, table.name), f"compact {table.name}")
            done.files_before, done.files_after = done.files_before + before, done.files_after + after


def _merge_records(tables: Tables, name: str) -> tuple[int, int]:
    """How many files there were and are, of those that are small enough to merge."""
    handle = tables.load(name)
    if handle is None:
        return 0, 0
    listed = Snapshot.of(handle).files
    sizes = dict(zip(listed.column("path").to_pylist(), listed.column("size_bytes").to_pylist(), strict=True))
    small = sorted(path for path, size in sizes.items() if size < LARGEST_BYTES // 2)
    return (len(small), len(_merge(tables, handle, name, small))) if len(small) > 1 else (0, 0)


def _prune_baselines(tables: Tables) -> list[str]:
    """Keep the newest position of each target, and what a batch that was cut off needs to be completed.

    That is the position it claimed and, of each counter set, the one before it.
    """
    handle, batches = tables.load("baselines"), tables.load("batches")
    if handle is None or batches is None or not Snapshot.of(handle).paths:
        return []
    claims = relation(tables, "baselines", Snapshot.of(handle).paths)
    complete = relation(tables, "batches", Snapshot.of(batches).paths)
    assert claims is not None and complete is not None  # noqa: PT018 (used by name below)
    columns = ", ".join(f'"{column.name}"' for column in BASELINES.columns)
    kept = connection().sql(
        f"""
        WITH cut_off AS (
            SELECT DISTINCT source, filesystem, target, position AS claimed
            FROM claims ANTI JOIN complete USING (batch, part)),
        needed AS (
            SELECT source, filesystem, target, counter_set, max(position) AS position FROM claims GROUP BY ALL
            UNION
            SELECT source, filesystem, target, counter_set, max(position)
            FROM claims JOIN cut_off USING (source, filesystem, target) WHERE position < claimed
            GROUP BY source, filesystem, target, counter_set, claimed
            UNION
            SELECT source, filesystem, target, counter_set, position
            FROM claims JOIN cut_off USING (source, filesystem, target) WHERE position = claimed)
        SELECT {columns} FROM claims SEMI JOIN needed USING (source, filesystem, target, counter_set, position)"""  # noqa: S608 (column names of the schema)
    )
    rows = kept.to_arrow_table()
    if rows.num_rows == Snapshot.of(handle).rows:
        return []
    return tables.replace_all(handle, "baselines", rows)


def vacuum_store(
    store: Store, older_hours: float, *, dry_run: bool = False, force: bool = False, most_bytes: int = MOST_REMEMBERED
) -> int:
    """Remove files that no snapshot of the last `older_hours` needs, in whole hours rounded up.

    Younger ones may belong to an ingest or an analysis that is at work: they go only with `force`. Of the parts of
    answers that are remembered, those go that nobody asked for in `UNUSED_DAYS`, and the longest unused ones beyond
    `most_bytes`.
    """
    if older_hours < YOUNGEST_HOURS and not (force or dry_run):
        raise UsageError(
            f"files younger than {YOUNGEST_HOURS:g} h may belong to an ingest or an analysis that is at work; "
            "when nobody uses the store, --force takes them"
        )
    hours = math.ceil(older_hours)
    return sum(
        retrying(partial(_vacuum, store.tables, name, hours, dry_run), f"vacuum {name}") for name in table_names()
    ) + _forget(PartMemory(store.tables), most_bytes, dry_run)


def _forget(memory: PartMemory, most_bytes: int, dry_run: bool) -> int:
    """How many parts were removed."""
    left, removed, too_old = 0, 0, time.time() - UNUSED_DAYS * 86_400
    for entry in sorted(memory.entries(), key=lambda entry: -entry.used_s):
        left += entry.bytes
        if left > most_bytes or entry.used_s < too_old:
            removed += 1
            left -= entry.bytes
            if not dry_run:
                memory.remove(entry)
    return removed


def _vacuum(tables: Tables, name: str, hours: int, dry_run: bool) -> int:
    handle = tables.load(name)
    if handle is None:
        return 0
    return len(handle.vacuum(retention_hours=hours, dry_run=dry_run, enforce_retention_duration=False, full=True))


def export_table(
    store: Store,
    table: str,
    output: Path,
    filesystem: str | None = None,
    since: datetime | None = None,
    until: datetime | None = None,
    resolution: str = "raw",
) -> int:
    """Write a window of a table to one Parquet or CSV file; rows written."""
    if table not in TABLES:
        raise UsageError(f"no table is called {table!r}; there are: {', '.join(TABLES)}")
    if output.suffix not in (".parquet", ".csv"):
        raise UsageError(f"{output}: write to FILE.parquet or FILE.csv")
    if resolution != "raw" and TABLES[table].kind != "interval":
        raise UsageError(f"{table} has no rollups; leave out the resolution {resolution}")
    beside = output.with_name(f".{output.name}.{os.getpid()}{output.suffix}")
    try:
        rows = _exported(store, table, filesystem, since, until, resolution)
        if output.suffix == ".parquet":
            interruptible(lambda: rows.write_parquet(str(beside), compression="zstd"))
        else:
            interruptible(lambda: rows.write_csv(str(beside), timestamp_format="%Y-%m-%dT%H:%M:%S.%fZ"))
        beside.replace(output)
        return int(rows.aggregate("count(*)").fetchall()[0][0])
    except (duckdb.IOException, duckdb.InvalidInputException) as error:
        raise unreadable(f"export {table}", error) from error
    finally:
        beside.unlink(missing_ok=True)


def _exported(
    store: Store, table: str, filesystem: str | None, since: datetime | None, until: datetime | None, resolution: str
) -> duckdb.DuckDBPyRelation:
    """The rows of an export, in time order."""
    names = arrow_schema(TABLES[table]).names
    if TABLES[table].kind != "record":
        chosen = store.select(filesystem, since=since, until=until, resolution=resolution)
        chosen.engine = DuckDBEngine()
        rows: duckdb.DuckDBPyRelation = chosen.frame(table).select(*names).to_native()
    else:
        rows = _records(store.tables, table, filesystem, since, until)
    return rows.order(", ".join(f'"{name}"' for name in dict.fromkeys(("time", *TABLES[table].key)) if name in names))


def _records(tables: Tables, name: str, filesystem: str | None, since: datetime | None, until: datetime | None) -> Any:
    """Rows of a table of records, by file system and by the time at which they begin where asked."""
    table = TABLES[name]
    rows = newest(relation(tables, name, Snapshot.of(tables.load(name)).in_window(table, since, until).paths), table)
    began = CoalesceOperator(*(ColumnExpression(column) for column in begin_columns(table)))
    if filesystem is not None and "filesystem" in (column.name for column in table.columns):
        rows = rows.filter(ColumnExpression("filesystem") == ConstantExpression(filesystem))
    if since is not None:
        rows = rows.filter(began >= ConstantExpression(epoch_us(since)))
    if until is not None:
        rows = rows.filter(began < ConstantExpression(epoch_us(until)))
    return rows.project(", ".join(f'"{column.name}"' for column in table.columns))
