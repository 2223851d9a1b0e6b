"""Entries of a scan with their paths, where they are to be kept: Parquet, one piece per step, joined at the end.

A piece belongs to a step and counts when the step does: a scan that was interrupted leaves pieces nobody mentions, and
they are left out.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from iolens.errors import IolensError
from iolens.scan.inodes import BLOCK_BYTES, TYPES
from iolens.scan.mounts import owner_name

ROWS_PER_GROUP: Final = 65536
SCHEMA: Final = pa.schema(
    [
        ("path", pa.string()),
        ("inode_type", pa.string()),
        ("owner", pa.string()),
        ("project", pa.string()),
        ("bytes", pa.int64()),
        ("allocated_bytes", pa.int64()),
        ("atime", pa.timestamp("us", "UTC")),
        ("mtime", pa.timestamp("us", "UTC")),
        ("inode", pa.uint64()),
        ("links", pa.int64()),
    ]
)


class EntriesPiece:
    """The entries of one step."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / f"{uuid.uuid4().hex}.parquet"
        self._writer = pq.ParquetWriter(self.path, SCHEMA, compression="zstd")
        self._columns: dict[str, list[Any]] = {name: [] for name in SCHEMA.names}

    def add(self, paths: Sequence[str], stats: Sequence[os.stat_result], project: str | None) -> None:
        """Some entries of one directory."""
        columns = self._columns
        columns["path"] += paths
        columns["inode_type"] += [TYPES.get(stat.st_mode >> 12) for stat in stats]
        columns["owner"] += [owner_name(stat.st_uid) for stat in stats]
        columns["project"] += [project] * len(stats)
        columns["bytes"] += [stat.st_size for stat in stats]
        columns["allocated_bytes"] += [stat.st_blocks * BLOCK_BYTES for stat in stats]
        columns["atime"] += [stat.st_atime_ns // 1000 for stat in stats]
        columns["mtime"] += [stat.st_mtime_ns // 1000 for stat in stats]
        columns["inode"] += [stat.st_ino for stat in stats]
        columns["links"] += [stat.st_nlink for stat in stats]
        if len(columns["path"]) >= ROWS_PER_GROUP:
            self._write()

    def close(self) -> str:
        """Have all of it on disk; its name in the folder."""
        self._write()
        self._writer.close()
        with self.path.open("rb") as stream:
            os.fsync(stream.fileno())
        return self.path.name

    def _write(self) -> None:
        if self._columns["path"]:
            self._writer.write_table(pa.table(self._columns, schema=SCHEMA))
            self._columns = {name: [] for name in SCHEMA.names}


def join_pieces(folder: Path, names: Sequence[str], output: Path) -> int:
    """One file of all pieces; how many entries it has. A reader sees the whole file or none."""
    beside = output.with_name(f".{output.name}.{os.getpid()}.part")
    entries = 0
    try:
        with pq.ParquetWriter(beside, SCHEMA, compression="zstd") as writer:
            for name in names:
                with pq.ParquetFile(folder / name) as piece:
                    for group in range(piece.num_row_groups):
                        table = piece.read_row_group(group)
                        entries += table.num_rows
                        writer.write_table(table)
        beside.replace(output)
    except OSError as error:
        raise IolensError(f"{output}: cannot be written: {error.strerror or error}") from error
    finally:
        beside.unlink(missing_ok=True)
    return entries
