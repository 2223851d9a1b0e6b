"""Tables on disk or object storage: Delta Lake through delta-rs, appended exactly once by any number of writers.

An append loads the table, leaves out the batches whose transaction is already recorded, and commits through that
same handle with theirs; a concurrent duplicate then conflicts and is checked again.
"""

from __future__ import annotations

import hashlib
import json
import random
import re
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeVar
from urllib.parse import urlsplit

import duckdb
import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, Transaction, WriterProperties, write_deltalake
from deltalake import Schema as DeltaSchema
from deltalake.exceptions import CommitFailedError, DeltaError, TableNotFoundError

from iolens.errors import StoreBusyError, StoreError, UsageError
from iolens.schema import SCHEMA_VERSION, TABLES, Table

ARROW_TYPES: Final[dict[str, pa.DataType]] = {
    "timestamp": pa.timestamp("us", tz="UTC"),
    "date": pa.date32(),
    "int64": pa.int64(),
    "float64": pa.float64(),
    "string": pa.string(),
    "bool": pa.bool_(),
}
VERSION_MARK: Final = "iolens schema "  # what a table's description says before its version
WRITER: Final = WriterProperties(compression="ZSTD", compression_level=3, max_row_group_size=262_144)
RETRY_SECONDS: Final = 120.0
REFUSED_IN_PATHS: Final = "[]^|\\*?"  # delta-rs or DuckDB take them for something else

Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class BatchPart:
    """The unit that is written exactly once: one part of one batch."""

    identity: str
    part: int

    @property
    def transaction(self) -> Transaction:
        """Its mark in each table's log."""
        return Transaction(self.identity, self.part)

    def is_in(self, handle: DeltaTable) -> bool:
        """Whether that table has this part already."""
        version = handle.transaction_version(self.identity)
        return version is not None and version >= self.part


def arrow_schema(table: Table) -> pa.Schema:
    """The declared columns as Arrow types."""
    return pa.schema([pa.field(column.name, ARROW_TYPES[column.type]) for column in table.columns])


class Tables:
    """All tables below one URL or directory."""

    def __init__(self, url: str) -> None:
        self.url = url.rstrip("/")
        self.is_local = "://" not in url
        if not self.is_local and "@" in urlsplit(url).netloc:
            raise UsageError("an address holds no credentials: object stores take them from the environment")
        if self.is_local and (strange := sorted(set(REFUSED_IN_PATHS) & set(str(Path(url).absolute())))):
            raise UsageError(f"{url}: the path of a store cannot contain {' '.join(strange)}")

    def uri(self, name: str) -> str:
        """Where the table of that name lives."""
        return f"{self.url}/{name}"

    def load(self, name: str) -> DeltaTable | None:
        """A fresh handle on the newest snapshot; None when nothing was ever written."""
        if self.is_local and not (Path(self.url) / name / "_delta_log").is_dir():
            return None
        try:
            handle = DeltaTable(self.uri(name))
        except TableNotFoundError:
            return None
        except (DeltaError, OSError) as error:
            raise StoreError(f"{self.uri(name)}: cannot be opened: {_in_one_line(error)}") from error
        _refuse_newer(handle, name)
        return handle

    def load_or_create(self, name: str, table: Table) -> DeltaTable:
        """A handle on the table, made on demand with its declared columns and migrated when it lacks some."""
        handle = self.load(name)
        if handle is None:
            handle = self._create(name, table)
        missing = {column.name for column in table.columns} - {field.name for field in handle.schema().fields}
        if missing:
            wanted = DeltaSchema.from_arrow(arrow_schema(table))
            handle.alter.add_columns([field for field in wanted.fields if field.name in missing])
        if _stored_version(handle, name) < SCHEMA_VERSION:  # last, so that a migration cut off is seen and completed
            handle.alter.set_table_description(f"{VERSION_MARK}{SCHEMA_VERSION}")
        return handle

    def _create(self, name: str, table: Table) -> DeltaTable:
        if self.is_local:
            (Path(self.url) / name).mkdir(parents=True, exist_ok=True)
        return DeltaTable.create(
            self.uri(name),
            schema=DeltaSchema.from_arrow(arrow_schema(table)),
            mode="ignore",
            partition_by=["date"] if table.partitioned else None,
            description=f"{VERSION_MARK}{SCHEMA_VERSION}",
            configuration={"delta.dataSkippingNumIndexedCols": "-1"},
        )

    def append(
        self, name: str, rows_by_part: Mapping[BatchPart, pa.Table], also: Sequence[Transaction] = ()
    ) -> list[str]:
        """Append the rows of those parts that the table does not have yet; paths of the files written."""
        table = declared(name)

        def attempt() -> list[str]:
            handle = self.load_or_create(name, table)
            todo = [part for part in rows_by_part if not part.is_in(handle)]
            rows = [rows_by_part[part] for part in todo if rows_by_part[part].num_rows]
            if not rows:
                return []
            return self.commit(handle, name, in_order(pa.concat_tables(rows), table), todo, also)

        return retrying(attempt, f"append to {name}")

    def commit(
        self,
        handle: DeltaTable,
        name: str,
        rows: pa.Table,
        parts: Iterable[BatchPart],
        also: Sequence[Transaction] = (),
    ) -> list[str]:
        """One atomic append through `handle`; raises CommitFailedError when another writer took a mark first."""
        write_deltalake(
            handle,
            rows,
            mode="append",
            writer_properties=WRITER,
            commit_properties=commit_properties([*(part.transaction for part in parts), *also]),
        )
        return self._added_by(handle, name)

    def replace_day(
        self,
        handle: DeltaTable,
        name: str,
        day: str,
        rows: pa.RecordBatchReader,
        marks: Sequence[Transaction] = (),
    ) -> list[str]:
        """Atomically exchange one day's files for `rows`."""
        return self.replace_days(handle, name, [day], rows, marks)

    def replace_days(
        self,
        handle: DeltaTable,
        name: str,
        days: Iterable[str],
        rows: pa.RecordBatchReader,
        marks: Sequence[Transaction] = (),
    ) -> list[str]:
        """Atomically exchange the files of some days for `rows` of the same days."""
        write_deltalake(
            handle,
            rows,
            mode="overwrite",
            predicate=" OR ".join(f"date = '{day}'" for day in days),
            writer_properties=WRITER,
            commit_properties=commit_properties(marks),
        )
        return self._added_by(handle, name)

    def replace_all(self, handle: DeltaTable, name: str, rows: pa.Table) -> list[str]:
        """Exchange the files that `handle` knows for `rows`; what others append meanwhile stays."""
        write_deltalake(handle, rows, mode="overwrite", writer_properties=WRITER, commit_properties=commit_properties())
        return self._added_by(handle, name)

    def _added_by(self, handle: DeltaTable, name: str) -> list[str]:
        """Paths of the files that the handle's own last commit added."""
        log = self.read_bytes(name, f"_delta_log/{handle.version():020}.json")
        entries = (json.loads(line) for line in log.splitlines())
        return [entry["add"]["path"] for entry in entries if "add" in entry]

    def read_bytes(self, name: str, path: str) -> bytes:
        """The content of one file of a table."""
        with self.open_file(name, path) as stream:
            content: bytes = stream.read()
        return content

    def open_file(self, name: str, path: str) -> Any:
        """One file of a table, opened for reading."""
        from urllib.parse import unquote

        if self.is_local:
            return (Path(self.url) / name / unquote(path)).open("rb")
        return self.filesystem(name).open_input_stream(unquote(path))

    def filesystem(self, name: str) -> Any:
        """An Arrow file system rooted at the table."""
        import pyarrow.fs as pafs
        from deltalake.fs import DeltaStorageHandler

        return pafs.PyFileSystem(DeltaStorageHandler(self.uri(name)))

    def checksum(self, name: str, path: str) -> str:
        """SHA-256 of one data file."""
        digest = hashlib.sha256()
        with self.open_file(name, path) as stream:
            while block := stream.read(1 << 20):
                digest.update(block)
        return digest.hexdigest()


def commit_properties(marks: Iterable[Transaction] = ()) -> CommitProperties:
    """Marks of one commit, one per application: of several, the log would keep the first instead of the highest."""
    highest: dict[str, Transaction] = {}
    for mark in marks:
        if mark.app_id not in highest or highest[mark.app_id].version < mark.version:
            highest[mark.app_id] = mark
    return CommitProperties(app_transactions=list(highest.values()), max_commit_retries=50)


def declared(name: str) -> Table:
    """The declaration behind a table or one of its rollups (`60s/target_io`)."""
    return TABLES[name.rpartition("/")[2]]


def in_order(rows: pa.Table, table: Table) -> pa.Table:
    """Rows sorted by time and then by the rest of the key, as every file keeps them."""
    names = [name for name in ("time", *table.key) if name in rows.column_names]
    return rows.sort_by([(name, "ascending") for name in dict.fromkeys(names)])


def retrying(attempt: Callable[[], Result], what: str, seconds: float = RETRY_SECONDS) -> Result:
    """Try until no other writer interferes, with growing jitter, or the deadline passes."""
    deadline = time.monotonic() + seconds
    pause = 0.02
    while True:
        try:
            return attempt()
        except CommitFailedError as error:
            if time.monotonic() > deadline:
                raise StoreBusyError(f"{what}: other writers kept winning for {seconds:.0f} s; send again") from error
        except (DeltaError, OSError, duckdb.Error) as error:
            if not _lost_creation_race(error):
                raise StoreError(f"{what}: {_in_one_line(error)}") from error
            if time.monotonic() > deadline:
                raise StoreBusyError(f"{what}: {_in_one_line(error)}") from error
        time.sleep(random.uniform(0.5, 1.5) * pause)  # noqa: S311 (jitter, not a secret)
        pause = min(pause * 1.5, 1.0)


def _lost_creation_race(error: Exception) -> bool:
    text = str(error)
    return "already exists" in text or "Version mismatch" in text or "version 0" in text.lower()


def _stored_version(handle: DeltaTable, name: str) -> int:
    """The schema version a table was written with."""
    description = handle.metadata().description or ""
    version = description.removeprefix(VERSION_MARK)
    if not description.startswith(VERSION_MARK) or not version.isdecimal():
        raise StoreError(f"table {name} was not written by iolens: its description is {description!r}")
    return int(version)


def _refuse_newer(handle: DeltaTable, name: str) -> None:
    stored = _stored_version(handle, name)
    if stored > SCHEMA_VERSION:
        raise StoreError(
            f"table {name} has schema version {stored}, written by a newer iolens; this one knows {SCHEMA_VERSION}"
        )


def _in_one_line(error: BaseException) -> str:
    """The message with its causes, which delta-rs draws as a coloured tree."""
    lines = (re.sub(r"\x1b\[[0-9;]*m|^[\s↳]+", "", line.strip()).strip("↳ ") for line in str(error).splitlines())
    return ": ".join(line for line in lines if line) or type(error).__name__
