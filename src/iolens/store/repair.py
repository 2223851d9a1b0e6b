"""Putting a damaged store right, as far as that can be done: what is torn or dead is taken out, what only the log
lost is put back, and what is gone is named, so that it can be sent again.

Nothing is deleted: torn log entries and dead files are kept in `_damaged/` below their table.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

from iolens.errors import StoreError
from iolens.schema import BASELINES, BATCHES
from iolens.store.data_files import DataFile, checksum_in, described
from iolens.store.delta_log import ASIDE, DeltaLog
from iolens.store.duckdb_engine import connection, data_files, relation
from iolens.store.durable import make_directory, sync_directory
from iolens.store.snapshot import Snapshot
from iolens.store.store import Store
from iolens.store.tables import REPAIR, Tables, declared, retrying
from iolens.store.verification import StoreContents, lost_files, table_names


@dataclass(slots=True)
class Repair:
    """What was done, or would be, and what is lost."""

    done: list[str] = field(default_factory=list)
    lost: list[str] = field(default_factory=list)


def repair_store(store: Store, *, dry_run: bool = False) -> Repair:
    """Take out of the tables what cannot be read, and put back what they lost and is still there."""
    repair = Repair()
    if store.tables.is_local:
        for name in table_names():
            repair.done += _mend_log(store.tables, name, dry_run)
    contents = StoreContents(store.tables)
    if contents.faults:
        raise StoreError("; ".join(contents.faults))
    is_behind = _is_behind(contents)
    lost, _ = lost_files(contents)
    for name, handle in contents.handles.items():
        dead = list(_dead_files(store.tables, name, handle))
        back = [file for path in lost.get(name, []) if (file := _whole(store.tables, name, path)) is not None]
        repair.lost += _loss(contents, name, handle, dead, set(lost.get(name, [])) - {file.path for file in back})
        if dead or back:
            repair.done.append(f"{name}: {len(dead)} files that cannot be read taken out, {len(back)} put back")
            if not dry_run:
                _exchange(contents, name, back, dead)
    if repair.done and not dry_run:
        retrying(partial(_forget_older_baselines, store.tables), "repair baselines")
    if is_behind:
        repair.done.append("batches: goes on without the entries that it lost")
        repair.lost.append(f"{store.tables.uri('batches')}: notes of batches; their rows are in the tables")
        if not dry_run and (books := store.tables.load(BATCHES.name)) is not None:
            store.tables.write_marker(books.version(), anew=True)
    return repair


def _is_behind(contents: StoreContents) -> bool:
    """Whether the books lost entries that were noted."""
    handle, marker = contents.handles.get(BATCHES.name), contents.marker
    if handle is None or marker is None:
        return False
    is_short = handle.version() < marker.batches_version
    return is_short or not marker.holds(contents.tables.entry_sha256(marker.batches_version))


def _mend_log(tables: Tables, name: str, dry_run: bool) -> list[str]:
    """Entries that are torn or missing, wherever they stand in the log."""
    log = DeltaLog(tables.folder / name)
    if not log.folder.is_dir():
        return []
    versions = log.versions()
    gaps = sorted(set(range(versions[0], versions[-1])) - set(versions)) if versions else []
    damaged = [version for version in versions if log.is_torn(version)] + gaps
    if dry_run:
        return [f"{log.entry(version)}: torn or missing; would be put aside" for version in damaged]
    try:
        tables.load(name, recover=False)
    except StoreError:
        return log.recover(damaged)
    return log.recover(damaged) if damaged else []


def _dead_files(tables: Tables, name: str, handle: DeltaTable) -> Iterator[str]:
    """Files that are part of the table and cannot be read."""
    files = Snapshot.of(handle).files
    for path, size in zip(files.column("path").to_pylist(), files.column("size_bytes").to_pylist(), strict=True):
        try:
            content = tables.read_bytes(name, path)
            if len(content) == size:
                pq.read_table(pa.BufferReader(content))
                continue
        except (OSError, DeltaError, pa.ArrowException):
            pass
        yield path


def _whole(tables: Tables, name: str, path: str) -> DataFile | None:
    """A file that the table lost and that is there, as it was written."""
    promised = checksum_in(path)
    try:
        content = tables.read_bytes(name, path)
    except (OSError, DeltaError):
        return None
    if promised is None or hashlib.sha256(content).hexdigest() != promised:
        return None
    return described(path, len(content), pq.read_metadata(pa.BufferReader(content)))


def _loss(contents: StoreContents, name: str, handle: DeltaTable, dead: list[str], gone: set[str]) -> Iterator[str]:
    """What is lost with files: rows, time and the batches that brought them."""
    files = Snapshot.of(handle).files
    for path in [*dead, *sorted(gone)]:
        row = files.filter(pa.compute.equal(files.column("path"), path)).to_pylist()
        known = row[0] if row else {}
        window = f" of {known.get('min.time')} … {known.get('max.time')}" if known.get("min.time") else ""
        yield f"{contents.tables.uri(name)}/{path}: {known.get('num_records', 'its')} rows{window}"
        for batch in contents.books.origins_of((name, path)):
            yield f"  brought by {batch}"


def _exchange(contents: StoreContents, name: str, back: list[DataFile], dead: list[str]) -> None:
    """One commit; batches whose files come back get their marks back, so that sending them again adds nothing."""
    tables = contents.tables
    brought = contents.books.brought()
    wanted = {file.path for file in back}
    marks = [batch.part.transaction for (table, path), batch in brought.items() if table == name and path in wanted]

    def attempt() -> None:
        handle = tables.load_or_create(name, declared(name))
        live = set(data_files(handle))
        missing = [file for file in back if file.path not in live]
        tables.put(handle, name, missing, instead_of=sorted(live.intersection(dead)), marks=marks, what=REPAIR)

    retrying(attempt, f"repair {name}")
    if tables.is_local:
        for path in dead:
            _set_aside(tables.folder / name, unquote(path))


def _set_aside(table: Path, path: str) -> None:
    """Keep a dead file where no vacuum comes."""
    if (table / path).exists():
        make_directory(table / ASIDE)
        (table / path).rename(table / ASIDE / Path(path).name)
        sync_directory(table / ASIDE)


def _forget_older_baselines(tables: Tables) -> None:
    """Of a target whose newest counters are lost, older ones would difference what is stored already: none is better.

    Its next sample is a first one.
    """
    handle = tables.load(BASELINES.name)
    if handle is None or not data_files(handle):
        return
    stored = relation(tables, BASELINES.name, data_files(handle))
    newest = stored.aggregate("source, filesystem, target, max(position) AS position").fetchall()
    stale = [
        (source, filesystem, target)
        for source, filesystem, target, position in newest
        if (handle.transaction_version(f"baseline/{source}/{filesystem}/{target}") or 0) > position
    ]
    if not stale:
        return
    forgotten = pa.table(dict(zip(("source", "filesystem", "target"), zip(*stale, strict=True), strict=True)))
    columns = ", ".join(f'"{column.name}"' for column in BASELINES.columns)
    sql = f"SELECT {columns} FROM stored ANTI JOIN forgotten USING (source, filesystem, target)"  # noqa: S608 (schema)
    assert forgotten is not None
    tables.replace_all(handle, BASELINES.name, connection().sql(sql).to_arrow_table(), REPAIR)
