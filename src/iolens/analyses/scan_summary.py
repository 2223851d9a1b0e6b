"""What one scan found, added up for people: by type, owner and project, with what could not be read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

from iolens.records import Rows

FILE, SIZE = "file", "size"
_SUMS: Final = ("count", "bytes", "allocated_bytes")


@dataclass(frozen=True, slots=True)
class TypeTotal:
    """All inodes of one type."""

    inode_type: str
    inodes: int
    bytes: int
    allocated_bytes: int


@dataclass(frozen=True, slots=True)
class Holding:
    """What one owner or project has: all its inodes, and the bytes of its files. None: nobody's, or not reported."""

    name: str | None
    inodes: int
    files: int
    bytes: int
    allocated_bytes: int


@dataclass(frozen=True, slots=True)
class ScannedPlace:
    """A place that was not counted, and why."""

    path: str
    reason: str


@dataclass(frozen=True, slots=True)
class Walk:
    """How the scan went: what only those who walked the tree know."""

    filesystem: str
    filesystem_origin: str
    paths: tuple[str, ...]
    part: str | None
    time: datetime
    duration_s: float | None
    workers: int | None
    names: int
    linked_inodes: int
    linked_names: int
    vanished: int
    excluded: int
    unreadable: int
    unreadable_places: tuple[ScannedPlace, ...]
    other_filesystems: tuple[str, ...]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ScanSummary:
    """One scan. Bytes are those of files; `by_type` has the rest."""

    filesystem: str
    time: datetime
    inodes: int
    files: int
    directories: int
    bytes: int
    allocated_bytes: int
    names_per_s: float | None
    walk: Walk
    by_type: tuple[TypeTotal, ...]
    by_owner: tuple[Holding, ...]
    by_project: tuple[Holding, ...]
    stored_rows: int | None  # None: not meant to be stored
    store: str | None
    saved: str | None
    top: int = field(default=10, metadata={"json": False})


def summarise(
    walk: Walk, items: Iterable[object], *, stored_rows: int | None, store: str | None, saved: str | None, top: int
) -> ScanSummary:
    """Totals over the `size` histogram, which has every inode once."""
    rows = [
        record for item in items if isinstance(item, Rows) for record in _records(item) if record["histogram"] == SIZE
    ]
    types = _by(rows, "inode_type")
    by_type = [TypeTotal(str(name), *(_sum(of, name) for name in _SUMS)) for name, of in types.items()]
    files = types.get(FILE, [])
    duration_s = walk.duration_s
    return ScanSummary(
        walk.filesystem,
        walk.time,
        _sum(rows, "count"),
        _sum(files, "count"),
        _sum(types.get("dir", []), "count"),
        _sum(files, "bytes"),
        _sum(files, "allocated_bytes"),
        walk.names / duration_s if duration_s else None,
        walk,
        tuple(sorted(by_type, key=lambda type_total: (-type_total.inodes, type_total.inode_type))),
        _holdings(rows, "owner"),
        _holdings(rows, "project"),
        stored_rows,
        store,
        saved,
        top,
    )


def _holdings(rows: Sequence[dict[str, Any]], column: str) -> tuple[Holding, ...]:
    """Everybody's, the largest first."""
    result = []
    for name, mine in _by(rows, column).items():
        files = [row for row in mine if row["inode_type"] == FILE]
        result.append(Holding(name, _sum(mine, "count"), *(_sum(files, name) for name in _SUMS)))
    return tuple(
        sorted(result, key=lambda holding: (-holding.bytes, -holding.inodes, holding.name is None, holding.name or ""))
    )


def _by(rows: Sequence[dict[str, Any]], column: str) -> dict[str | None, list[dict[str, Any]]]:
    records: dict[str | None, list[dict[str, Any]]] = {}
    for row in rows:
        records.setdefault(row[column], []).append(row)
    return records


def _sum(rows: Sequence[dict[str, Any]], column: str) -> int:
    return sum(row[column] for row in rows)


def _records(rows: Rows) -> Iterator[dict[str, Any]]:
    columns: dict[str, Any] = {
        name: column if isinstance(column, list) else [column] * rows.count for name, column in rows.columns.items()
    }
    for values in zip(*columns.values(), strict=True):
        yield dict(zip(columns, values, strict=True))
