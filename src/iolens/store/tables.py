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
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from itertools import takewhile
from pathlib import Path
from typing import Any, Final, TypeVar
from urllib.parse import unquote, urlsplit

import duckdb
import pyarrow as pa
import pyarrow.fs as pafs
from deltalake import CommitProperties, DeltaTable, PostCommitHookProperties, Transaction, write_deltalake
from deltalake import Schema as DeltaSchema
from deltalake.exceptions import CommitFailedError, DeltaError, TableNotFoundError
from deltalake.transaction import AddAction, RemoveAction

from iolens.errors import StoreBusyError, StoreError, UsageError
from iolens.messages import warn
from iolens.schema import BATCHES, SCHEMA_VERSION, TABLES, Table
from iolens.store.data_files import (
    DataFile,
    checksum_in,
    cutting_actions,
    local_sink,
    partition_values,
    remote_sink,
    with_dates,
    write_data_files,
)
from iolens.store.delta_log import ACTIONS, DeltaLog
from iolens.store.durable import MARKER, Marker, make_directory, replace_file, sync_all, sync_directory
from iolens.store.object_storage import arrow_filesystem

ARROW_TYPES: Final[dict[str, pa.DataType]] = {
    "timestamp": pa.timestamp("us", tz="UTC"),
    "date": pa.date32(),
    "int64": pa.int64(),
    "float64": pa.float64(),
    "string": pa.string(),
    "bool": pa.bool_(),
}
VERSION_MARK: Final = "iolens schema "  # what a table's description says before its version
RETRY_SECONDS: Final = 120.0
PARTS_PER_SEQUENCE: Final = 1_000_000  # so many parts of a capture have numbers before the next of its stream
REFUSED_IN_PATHS: Final = re.compile(
    r"[][^|\\*?\x00-\x1f\x7f]|%[0-9A-Fa-f]{2}"
)  # a library takes them for something else
REFUSED_IN_ADDRESSES: Final = re.compile(r"[?#]|%[0-9A-Fa-f]{2}")

COMPACT, ROLLUP, RETAIN, REPAIR, EXCHANGE, UNDO = "compact", "rollup", "retain", "repair", "exchange", "undo"
UPKEEP: Final = (COMPACT, ROLLUP, RETAIN, REPAIR, EXCHANGE, UNDO)  # batches that bring nothing: identities begin so

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
        self.url = url.rstrip("/") or url
        self.is_local = "://" not in url or url.startswith("file://")
        self._logs: dict[str, DeltaLog] = {}
        self._held: dict[str, DeltaTable | None] | None = None  # handles while one snapshot is held
        if self.is_local:
            self.folder = _local_folder(url)
        elif "@" in urlsplit(url).netloc:
            raise UsageError("an address holds no credentials: object stores take them from the environment")
        elif strange := REFUSED_IN_ADDRESSES.findall(url):
            raise UsageError(f"{url}: the address of a store cannot contain {' '.join(sorted(set(strange)))}")

    def uri(self, name: str) -> str:
        """Where the table of that name lives; without a name, where the store does."""
        root = str(self.folder) if self.is_local else self.url
        return f"{root}/{name}" if name else root

    def why_no_store(self) -> str:
        """Why there is no store to read here; empty when there is one."""
        if not self.is_local:
            listed = self.filesystem("").get_file_info(pafs.FileSelector("", allow_not_found=True))
            return "" if listed else "nothing is stored below this address"
        if not self.folder.exists():
            return "there is no such directory"
        if not self.folder.is_dir():
            return "it is a file; a store is a directory"
        is_store = (self.folder / MARKER).exists() or any(self.folder.glob("*/_delta_log"))
        return "" if is_store else "the directory holds no store"

    @contextmanager
    def held(self) -> Iterator[None]:
        """Read one snapshot of every table, however often it is loaded: for readers who ask several questions."""
        before, self._held = self._held, {}
        try:
            yield
        finally:
            self._held = before

    def load(self, name: str, *, recover: bool = True) -> DeltaTable | None:
        """A fresh handle on the newest snapshot; None when nothing was ever written.

        Newest entries that a power cut tore are put aside; without `recover` they are an error.
        """
        if self._held is None:
            return self._loaded(name, recover=recover)
        if name not in self._held:
            self._held[name] = self._loaded(name, recover=recover)
        return self._held[name]

    def _loaded(self, name: str, *, recover: bool = True) -> DeltaTable | None:
        if self.is_local and not (self.folder / name / "_delta_log").is_dir():
            return None
        try:
            handle = DeltaTable(self.uri(name))
        except TableNotFoundError:
            return None
        except (DeltaError, OSError) as error:
            if recover and self.is_local:
                self._recover(name)
                return self._loaded(name, recover=False)
            raise StoreError(f"{self.uri(name)}: cannot be opened: {_in_one_line(error)}") from error
        if recover and self.is_local and self._log(name).is_empty(handle.version()):
            self._recover(name)
            return self._loaded(name, recover=False)
        _refuse_newer(handle, name)
        return handle

    def settle(self, name: str) -> None:
        """Have on disk all that the table's log says, also by writers that were killed; object storage has it."""
        if not self.is_local:
            return
        if self._log(name).settled >= 0:
            self._log(name).settle(self._log(name).settled)
        elif (handle := self.load(name)) is not None:
            self._log(name).settle(handle.version())

    def _recover(self, name: str) -> None:
        """Put aside what is torn, and say so."""
        try:
            done = self._log(name).recover()
        except OSError as error:
            raise StoreError(
                f"{self.uri(name)}: a power cut left its log torn, and it cannot be put right: {error}; "
                "run `iolens store repair` as a user who may write there"
            ) from error
        for line in done:
            warn(line)

    def _log(self, name: str) -> DeltaLog:
        return self._logs.setdefault(name, DeltaLog(self.folder / name))

    def load_or_create(self, name: str, table: Table) -> DeltaTable:
        """A handle to write with: the table is made on demand with its declared columns, migrated when it lacks some,
        and what a power cut left of the newest entries is put aside, since it may hold marks without their rows.
        """
        handle = self.load(name)
        if handle is None:
            handle = self._create(name, table)
        elif self.is_local and not self._log(name).is_checked:
            self._log(name).is_checked = True
            if self._log(name).torn_at_the_end(handle.version()):
                self._recover(name)
                return self.load_or_create(name, table)
        if self.is_local:
            self._log(name).settle(handle.version())  # a writer that was killed may have left marks to act on
        if table.partitioned and not handle.metadata().partition_columns:
            self._cut(handle, name, table)
            return self.load_or_create(name, table)
        missing = {column.name for column in table.columns} - {field.name for field in handle.schema().fields}
        if missing:
            wanted = DeltaSchema.from_arrow(arrow_schema(table))
            added = [field for field in wanted.fields if field.name in missing]
            handle.alter.add_columns(added, post_commithook_properties=self._hooks)
        if _stored_version(handle, name) < SCHEMA_VERSION:  # last, so that a migration cut off is seen and completed
            handle.alter.set_table_description(
                f"{VERSION_MARK}{SCHEMA_VERSION}", post_commithook_properties=self._hooks
            )
        return handle

    def _cut(self, handle: DeltaTable, name: str, table: Table) -> None:
        """Migrate a table that iolens 0.1 did not cut by `date`: the same rows and marks, in one commit.

        Fails with CommitFailedError where anybody wrote meanwhile: the caller looks again. That the old files are
        replaced is in the books before it is done, the new ones are after: cut off in between, nothing seems lost.
        """
        old = data_files(handle)
        if self.is_local:
            self._cut_file_by_file(handle, name, table, old)
            return
        if old:
            self.note_exchange(EXCHANGE, {}, {name: old})
        with self._durably(handle, name):
            write_deltalake(
                handle,
                with_dates(handle, table, arrow_schema(table)),
                mode="overwrite",
                schema_mode="overwrite",
                partition_by=["date"],
                commit_properties=CommitProperties(max_commit_retries=0),
                post_commithook_properties=self._hooks,
            )
        new = self.load(name)
        if old and new is not None:
            self.note_exchange(EXCHANGE, {}, {}, {name: data_files(new)})

    def _cut_file_by_file(self, handle: DeltaTable, name: str, table: Table, old: Sequence[str]) -> None:
        """The same on a disk, in memory that does not grow with the days: delta-rs keeps a writer open for each.

        It has no way to cut a table other than by writing it, so the entry of the log is made here, in the place that
        follows `handle`, which only one writer gets.
        """
        schema = arrow_schema(table)
        files = self.write(name, with_dates(handle, table, schema))
        if old:
            self.note_exchange(EXCHANGE, {name: files}, {name: old})
        with self._durably(handle, name):
            actions = cutting_actions(handle.metadata(), DeltaSchema.from_arrow(schema), files, old)
            if not self._log(name).add_entry(handle.version() + 1, actions):
                raise CommitFailedError(f"{name}: another writer was faster")

    def _create(self, name: str, table: Table) -> DeltaTable:
        if self.is_local:
            make_directory(self.folder / name)
        return DeltaTable.create(
            self.uri(name),
            schema=DeltaSchema.from_arrow(arrow_schema(table)),
            mode="ignore",
            partition_by=["date"] if table.partitioned else None,
            description=f"{VERSION_MARK}{SCHEMA_VERSION}",
            configuration={"delta.dataSkippingNumIndexedCols": "-1"},
        )

    @property
    def _hooks(self) -> PostCommitHookProperties:
        """On a disk, checkpoints are made here, and entries go only when the checkpoint is safe."""
        if self.is_local:
            return PostCommitHookProperties(create_checkpoint=False, cleanup_expired_logs=False)
        return PostCommitHookProperties()

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
            return self.commit(handle, name, pa.concat_tables(rows), todo, also)

        return retrying(attempt, f"append to {name}")

    def commit(
        self,
        handle: DeltaTable,
        name: str,
        rows: pa.Table,
        parts: Iterable[BatchPart],
        also: Sequence[Transaction] = (),
    ) -> list[str]:
        """One atomic append through `handle`; raises CommitFailedError when another writer took a mark first.

        Every file keeps its rows sorted by time and then by the rest of the key.
        """
        key = [column for column in ("time", *declared(name).key) if column in rows.column_names]
        rows = rows.sort_by([(column, "ascending") for column in dict.fromkeys(key)])
        return self.put(handle, name, self.write(name, rows), marks=[*(part.transaction for part in parts), *also])

    def write(self, name: str, rows: pa.Table | pa.RecordBatchReader) -> list[DataFile]:
        """Data files that are no part of the table yet; on a local store they are on disk, with their names."""
        if not self.is_local:  # object storage is durable by itself
            return list(write_data_files(rows, partial(remote_sink, self.filesystem(name))))
        folder = self.folder / name
        files = list(write_data_files(rows, partial(local_sink, folder)))
        sync_all(folder / file.path for file in files)
        sync_directory(folder)  # once for the directories of all new days
        return files

    def put(
        self,
        handle: DeltaTable,
        name: str,
        files: Sequence[DataFile],
        *,
        instead_of: Sequence[str] = (),
        marks: Iterable[Transaction] = (),
        what: str = EXCHANGE,
    ) -> list[str]:
        """Make files part of the table in one atomic commit, in place of others; their paths.

        What others append meanwhile stays. Of two writers that exchange files of the same day one gets
        CommitFailedError. An exchange is noted in `batches` before it is done.
        """
        same_rows = what == COMPACT
        if instead_of:
            self.note_exchange(what, {name: files}, {name: instead_of})
        now_ms = time.time_ns() // 1_000_000
        actions: list[AddAction | RemoveAction] = [file.add_action(is_change=not same_rows) for file in files]
        actions += [
            RemoveAction(path, not same_rows, now_ms, partition_values=partition_values(path)) for path in instead_of
        ]
        folders = {path.rpartition("/")[0] for path in instead_of}
        marks = [*marks, *(exchange_mark(handle, folder) for folder in folders)]
        with self._durably(handle, name):
            handle.create_write_transaction(
                actions,
                "append",
                handle.schema(),
                ["date"] if declared(name).partitioned else [],
                commit_properties=commit_properties(marks, len(actions)),
                post_commithook_properties=self._hooks,
            )
        return [file.path for file in files]

    def note_exchange(
        self,
        what: str,
        written: Mapping[str, Sequence[DataFile]],
        replaced: Mapping[str, Sequence[str]],
        standing_in: Mapping[str, Sequence[str]] | None = None,
    ) -> None:
        """Write into the books that files will be replaced: by those written, or by others that stand for them.

        So a file of the books is in its table, or what replaced it is, or it was lost. The books' own are not noted.
        """
        if BATCHES.name in replaced:
            return
        part = BatchPart(f"{what}/{uuid.uuid4()}", 1)
        paths = {name: [file.path for file in files] for name, files in written.items()} | dict(standing_in or {})
        row = {
            "batch": part.identity,
            "part": part.part,
            "time": datetime.now(UTC),
            "source": what,
            "rows_by_table": json.dumps({name: sum(file.rows for file in files) for name, files in written.items()}),
            "checksums": json.dumps(self.checksums(paths), sort_keys=True),
            "replaced": json.dumps({name: sorted(files) for name, files in replaced.items()}, sort_keys=True),
        }
        self.append(BATCHES.name, {part: pa.Table.from_pylist([row], schema=arrow_schema(BATCHES))})

    def replace_day(
        self,
        handle: DeltaTable,
        name: str,
        day: str,
        rows: pa.Table | pa.RecordBatchReader,
        marks: Sequence[Transaction] = (),
        what: str = EXCHANGE,
    ) -> list[str]:
        """Atomically exchange the files that `handle` knows of one day for `rows`."""
        return self.replace_days(handle, name, [day], rows, marks, what)

    def replace_days(
        self,
        handle: DeltaTable,
        name: str,
        days: Iterable[str],
        rows: pa.Table | pa.RecordBatchReader,
        marks: Sequence[Transaction] = (),
        what: str = EXCHANGE,
    ) -> list[str]:
        """Atomically exchange the files that `handle` knows of some days for `rows` of the same days."""
        folders = {f"date={day}" for day in days}
        old = [path for path in data_files(handle) if path.partition("/")[0] in folders]
        marks = [*marks, *(exchange_mark(handle, folder) for folder in sorted(folders))]
        return self.put(handle, name, self.write(name, rows), instead_of=old, marks=marks, what=what)

    def replace_all(self, handle: DeltaTable, name: str, rows: pa.Table, what: str = EXCHANGE) -> list[str]:
        """Exchange the files that `handle` knows for `rows`; what others append meanwhile stays."""
        return self.put(handle, name, self.write(name, rows), instead_of=data_files(handle), what=what)

    def delete_day(self, handle: DeltaTable, name: str, day: str, marks: Sequence[Transaction] = ()) -> None:
        """Take a whole day out of the table, unless something was added to it since `handle` was loaded."""
        with self._durably(handle, name):
            handle.delete(
                f"date = '{day}'",
                commit_properties=commit_properties(marks),
                post_commithook_properties=self._hooks,
            )

    @contextmanager
    def _durably(self, handle: DeltaTable, name: str) -> Iterator[None]:
        """Around a commit: what it builds on is on disk before it, and all of the log after it."""
        base = handle.version()
        if self.is_local:
            self._log(name).settle(base)
        yield
        if self.is_local:
            newest = self._log(name).settle(base)
        else:
            handle.update_incremental()
            newest = handle.version()
        if name == BATCHES.name:
            self.write_marker(newest)
        if self.is_local and self._log(name).is_checkpoint_due(base, newest):
            self._make_checkpoint(name)

    def write_marker(self, version: int, *, anew: bool = False) -> None:
        """Note how far the books have come, unless another writer is further.

        While the entry that was noted last is not the one in the log, the note stays: it is all that tells of the loss.
        """
        if not anew:
            with suppress(OSError, DeltaError, ValueError):
                last = Marker.decoded(self.read_bytes("", MARKER))
                if last.batches_version >= version or not last.holds(self.entry_sha256(last.batches_version)):
                    return
        checksum = self.entry_sha256(version)
        assert checksum is not None
        content = Marker(version, checksum).encoded()
        if self.is_local:
            replace_file(self.folder / MARKER, content)
        else:
            with self.filesystem("").open_output_stream(MARKER) as stream:
                stream.write(content)

    def entry_sha256(self, version: int) -> str | None:
        """The checksum of an entry of the books' log; None when it was cleared away behind a checkpoint."""
        try:
            entry = self.read_bytes(BATCHES.name, f"_delta_log/{version:020}.json")
        except (OSError, DeltaError):
            return None
        return hashlib.sha256(entry).hexdigest()

    def _make_checkpoint(self, name: str) -> None:
        with suppress(DeltaError, OSError):  # it only saves time: the next one will do
            handle = DeltaTable(self.uri(name))
            handle.create_checkpoint()
            self._log(name).sync_checkpoint()
            handle.cleanup_metadata()

    def read_bytes(self, name: str, path: str) -> bytes:
        """The content of one file of a table; of the store itself where the name is empty."""
        with self.open_file(name, path) as stream:
            content: bytes = stream.read()
        return content

    def open_file(self, name: str, path: str) -> Any:
        """One file of a table, opened for reading."""
        if self.is_local:
            return (self.folder / name / unquote(path)).open("rb")
        return self.filesystem(name).open_input_stream(unquote(path))

    def filesystem(self, name: str) -> Any:
        """An Arrow file system rooted at the table."""
        return arrow_filesystem(self.uri(name))

    def checksums(self, written: Mapping[str, Sequence[str]]) -> dict[str, dict[str, str]]:
        """The checksum of every file, by table and path."""
        return {name: {path: self.checksum(name, path) for path in paths} for name, paths in written.items() if paths}

    def checksum(self, name: str, path: str) -> str:
        """SHA-256 of one data file; by its name where that promises it."""
        if (promised := checksum_in(path)) is not None:
            return promised
        digest = hashlib.sha256()
        with self.open_file(name, path) as stream:
            while block := stream.read(1 << 20):
                digest.update(block)
        return digest.hexdigest()


def _local_folder(url: str) -> Path:
    """The directory of a store; in full, so that no library sees a `~` or a scheme at its beginning."""
    path = unquote(urlsplit(url).path) if url.startswith("file://") else url
    folder = Path(path).absolute()
    strange = sorted({repr(item).strip("'") for item in REFUSED_IN_PATHS.findall(str(folder))})
    strange += [name for name in folder.parts if name == "_delta_log"]
    if strange:
        raise UsageError(f"{url}: the path of a store cannot contain {' '.join(strange)}")
    try:
        str(folder).encode()
    except UnicodeEncodeError:
        raise UsageError(f"{url!a}: the path of a store must be text in UTF-8") from None
    return folder


def data_files(handle: DeltaTable) -> list[str]:
    """Paths of all files of the snapshot, relative to the table."""
    return [str(path) for path in pa.table(handle.get_add_actions()).column("path").to_pylist()]


def exchange_mark(handle: DeltaTable, folder: str) -> Transaction:
    """What lets only one of two writers through that exchange the files of a folder; the other looks again."""
    return Transaction(f"exchange/{folder}", handle.version() + 1)


def commit_properties(marks: Iterable[Transaction] = (), actions: int | None = None) -> CommitProperties:
    """Marks of one commit, one per application: of several, the log would keep the first instead of the highest.

    With the number of `actions` beside them, an entry that lost its end can be distinguished from a whole one.
    """
    highest: dict[str, Transaction] = {}
    for mark in marks:
        if mark.app_id not in highest or highest[mark.app_id].version < mark.version:
            highest[mark.app_id] = mark
    lines = None if actions is None else {ACTIONS: actions + len(highest)}
    return CommitProperties(lines, max_commit_retries=50, app_transactions=list(highest.values()))


def declared(name: str) -> Table:
    """The declaration behind a table or one of its rollups (`60s/target_io`)."""
    return TABLES[name.rpartition("/")[2]]


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
        except StoreError as error:
            raise type(error)(f"{what}: {error}") from error
        except duckdb.Error as error:
            raise unreadable(what, error) from error
        except (DeltaError, OSError) as error:
            if not _lost_creation_race(error):
                raise StoreError(f"{what}: {_in_one_line(error)}") from error
            if time.monotonic() > deadline:
                raise StoreBusyError(f"{what}: {_in_one_line(error)}") from error
        time.sleep(random.uniform(0.5, 1.5) * pause)  # noqa: S311 (jitter, not a secret)
        pause = min(pause * 1.5, 1.0)


def unreadable(what: str, error: Exception) -> StoreError:
    """What an engine says of a file that it cannot read, and what to do."""
    return StoreError(
        f"{what}: {str(error).splitlines()[0]}; `iolens store verify` names all that is damaged, "
        "`iolens store repair` takes it out"
    )


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
    telling = takewhile(lambda line: not line.lower().startswith("stack backtrace"), filter(None, lines))
    return ": ".join(telling) or type(error).__name__
