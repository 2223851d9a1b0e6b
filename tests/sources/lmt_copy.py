"""Made-up LMT databases as SQLite copies: the tables of schema 1.1, filled as a test asks."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence
from contextlib import closing
from datetime import datetime, timedelta
from pathlib import Path

COLUMNS = {
    "FILESYSTEM_INFO": ("FILESYSTEM_ID", "FILESYSTEM_NAME", "FILESYSTEM_MOUNT_NAME", "SCHEMA_VERSION"),
    "TIMESTAMP_INFO": ("TS_ID", "TIMESTAMP"),
    "OSS_INFO": ("OSS_ID", "FILESYSTEM_ID", "HOSTNAME", "FAILOVERHOST"),
    "OST_INFO": ("OST_ID", "OSS_ID", "OST_NAME", "HOSTNAME", "OFFLINE", "DEVICE_NAME"),
    "MDS_INFO": ("MDS_ID", "FILESYSTEM_ID", "MDS_NAME", "HOSTNAME", "DEVICE_NAME"),
    "OPERATION_INFO": ("OPERATION_ID", "OPERATION_NAME", "UNITS"),
    "OST_DATA": (
        "OST_ID", "TS_ID", "READ_BYTES", "WRITE_BYTES", "PCT_CPU",
        "KBYTES_FREE", "KBYTES_USED", "INODES_FREE", "INODES_USED",
    ),
    "OST_OPS_DATA": ("OST_ID", "TS_ID", "OPERATION_ID", "SAMPLES"),
    "OSS_DATA": ("OSS_ID", "TS_ID", "PCT_CPU", "PCT_MEMORY"),
    "MDS_DATA": ("MDS_ID", "TS_ID", "PCT_CPU", "KBYTES_FREE", "KBYTES_USED", "INODES_FREE", "INODES_USED"),
    "MDS_OPS_DATA": ("MDS_ID", "TS_ID", "OPERATION_ID", "SAMPLES", "SUM", "SUMSQUARES"),
    "BRW_STATS_INFO": ("STATS_ID", "STATS_NAME", "DESCRIPTION", "UNITS"),
    "BRW_STATS_DATA": ("TS_ID", "OST_ID", "STATS_ID", "BIN", "READ_COUNT", "WRITE_COUNT"),
}  # fmt: skip
KEYS = {"OST_DATA": 2, "OST_OPS_DATA": 3, "OSS_DATA": 2, "MDS_DATA": 2}
STOCK = tuple(name for name in COLUMNS if not name.startswith("BRW"))
STEP_S = 5


class LmtCopy:
    """A copy that can be filled; every change is on disk at once."""

    def __init__(self, path: Path, tables: Sequence[str] = STOCK) -> None:
        self.path = path
        for name in tables:
            columns = COLUMNS[name]
            key = columns[: KEYS.get(name, 1)] if name != "MDS_OPS_DATA" and not name.startswith("BRW") else ()
            primary = f", PRIMARY KEY({', '.join(key)})" if key else ""
            self.run(f"CREATE TABLE {name} ({', '.join(columns)}{primary})")

    def run(self, sql: str, rows: Iterable[Sequence[object]] | None = None) -> None:
        with closing(sqlite3.connect(self.path)) as connection, connection:
            connection.execute("PRAGMA synchronous = OFF")  # nothing here is worth waiting for the disk
            connection.execute("PRAGMA journal_mode = MEMORY")
            if rows is None:
                connection.execute(sql)
            else:
                connection.executemany(sql, rows)

    def add(self, table: str, *rows: Sequence[object]) -> None:
        """Rows that begin with the table's first columns; the others are NULL."""
        width = len(COLUMNS[table])
        filled = [(*row, *(None,) * (width - len(row))) for row in rows]
        self.run(f"INSERT INTO {table} VALUES ({', '.join('?' * width)})", filled)

    def times(self, first: str, count: int, *, ts_id: int = 1) -> None:
        """Times five seconds apart by the clock on the wall."""
        begin = datetime.fromisoformat(first)
        stamps = [(begin + timedelta(seconds=STEP_S * n)).isoformat(sep=" ") for n in range(count)]
        self.add("TIMESTAMP_INFO", *((ts_id + n, stamp) for n, stamp in enumerate(stamps)))


def small_copy(path: Path, times: int = 4, osts: int = 2, first: str = "2018-01-28 00:00:00") -> LmtCopy:
    """`osts` OSTs that write 1000 bytes more at each time and read 10, one OSS each, and one MDT."""
    copy = LmtCopy(path)
    copy.add("FILESYSTEM_INFO", (1, "scratch", "", 1.1))
    copy.add("OSS_INFO", *((n, 1, f"oss{n}") for n in range(1, osts + 1)))
    copy.add("OST_INFO", *((n, n, f"scratch-OST{n - 1:04x}", f"oss{n}", 0, "") for n in range(1, osts + 1)))
    copy.add("MDS_INFO", (1, 1, "scratch-MDT0000", "mds1", ""))
    copy.add(
        "OPERATION_INFO", (1, "open", "reqs"), (2, "close", "reqs"), (3, "iocontrol", "reqs"), (4, "getattr", "usec")
    )
    grow(copy, first, times, osts)
    return copy


def grow(copy: LmtCopy, first: str, times: int, osts: int = 2, *, since: int = 0) -> None:
    """More times of the same kind, from number `since` on."""
    ticks = range(since, since + times)
    copy.times(first, times, ts_id=since + 1)
    copy.add("OST_DATA", *(ost_row(ost, n) for n in ticks for ost in range(1, osts + 1)))
    copy.add("OSS_DATA", *((oss, n + 1, 1.5, 90.25) for n in ticks for oss in range(1, osts + 1)))
    copy.add("MDS_DATA", *((1, n + 1, 2.5, 500, 500, 70, 30) for n in ticks))
    operations = ((1, 7), (2, 5), (3, 1), (4, 2))
    copy.add(
        "MDS_OPS_DATA", *((1, n + 1, op, 10**6 + n * each, 10**9 + n * 50, 0) for n in ticks for op, each in operations)
    )


def ost_row(ost: int, tick: int) -> tuple[object, ...]:
    """What `small_copy` has of an OST at a time."""
    read, write = 10**12 * ost + 10 * tick, 2 * 10**12 * ost + 1000 * tick
    return ost, tick + 1, read, write, 0.0, 600 - tick, 400 + tick, 80, 20
