"""What `batches` says every other table must hold: files with their checksums, what replaced what, parts with rows."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field

from deltalake import DeltaTable

from iolens.store.duckdb_engine import query
from iolens.store.tables import UPKEEP, BatchPart, Tables
from iolens.units import from_epoch_us, iso

FileKey = tuple[str, str]  # table, path below it


@dataclass(slots=True)
class BookedBatch:
    """One row of `batches`."""

    part: BatchPart
    origin: str
    window: str
    rows_by_table: dict[str, int]
    written: dict[FileKey, str]  # with their checksums
    replaced: list[FileKey]
    is_old: bool  # of iolens 0.1, which did not say what it replaced

    def __str__(self) -> str:
        origin, window = (f" from {self.origin}" if self.origin else ""), (f", {self.window}" if self.window else "")
        return f"batch {self.part.identity} part {self.part.part}{origin}{window}"

    @property
    def is_upkeep(self) -> bool:
        """Whether it brought nothing new, only put rows into other files."""
        return self.part.identity.partition("/")[0] in UPKEEP


@dataclass(slots=True)
class Books:
    """All of them."""

    batches: list[BookedBatch] = field(default_factory=list)
    checksums: dict[FileKey, str] = field(default_factory=dict)

    @classmethod
    def read(cls, tables: Tables, handle: DeltaTable) -> Books:
        """Every row of `batches`, oldest first."""
        books = cls()
        sql = """SELECT batch, part, origin, epoch_us(first_time), epoch_us(last_time), rows_by_table,
                        checksums, replaced
                 FROM stored ORDER BY time, batch, part"""
        results = query(tables, handle, "batches", sql)
        for identity, part, origin, first, last, rows, checksums, replaced in results:
            written = dict(_files(checksums))
            batch = BookedBatch(
                BatchPart(identity, part),
                origin or "",
                f"{iso(from_epoch_us(first))} … {iso(from_epoch_us(last))}" if first and last else "",
                json.loads(rows or "{}"),
                written,
                [(name, path) for name, paths in json.loads(replaced or "{}").items() for path in paths],
                replaced is None,
            )
            books.batches.append(batch)
            books.checksums |= written
        return books

    def brought(self) -> dict[FileKey, BookedBatch]:
        """Files with new rows, by the batch that brought them."""
        return {key: batch for batch in self.batches if not batch.is_upkeep for key in batch.written}

    def safe(self, live: set[FileKey]) -> set[FileKey]:
        """Files whose rows are there: in their tables, or replaced by files whose rows are there."""
        missing = [sum(key not in live for key in batch.written) for batch in self.batches]
        waiting: dict[FileKey, list[int]] = {}
        for number, batch in enumerate(self.batches):
            for key in batch.written:
                waiting.setdefault(key, []).append(number)
        safe = set(live)
        ready = deque(number for number, batch in enumerate(self.batches) if batch.replaced and not missing[number])
        while ready:
            for key in self.batches[ready.popleft()].replaced:
                if key not in safe:
                    safe.add(key)
                    for number in waiting.get(key, []):
                        missing[number] -= 1
                        if not missing[number] and self.batches[number].replaced:
                            ready.append(number)
        return safe

    def origins_of(self, lost: FileKey) -> list[BookedBatch]:
        """The batches whose rows a file held: those that brought it, or the files that it replaced."""
        replaced_by: dict[FileKey, list[FileKey]] = {}
        for batch in self.batches:
            for key in batch.written:
                replaced_by.setdefault(key, []).extend(old for old in batch.replaced if old[0] == key[0])
        brought, seen, queue = self.brought(), {lost}, deque([lost])
        batches: dict[str, BookedBatch] = {}
        while queue:
            key = queue.popleft()
            if key in brought:
                batches.setdefault(f"{brought[key].part}", brought[key])
            new = set(replaced_by.get(key, [])) - seen
            seen |= new
            queue.extend(new)
        return list(batches.values())


def _files(text: str | None) -> Iterator[tuple[FileKey, str]]:
    for name, files in json.loads(text or "{}").items():
        for path, checksum in files.items():
            yield (name, path), checksum
