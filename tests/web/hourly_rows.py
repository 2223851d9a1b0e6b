"""Small stores of made-up rows, one for each hour of a target."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from iolens.records import Capture, Row
from iolens.schema import TABLES
from iolens.store.rows import to_arrow
from iolens.store.store import Store
from iolens.units import epoch_us, parse_time

FIRST, HOUR_US, DAY_US = parse_time("2026-01-05"), 3_600_000_000, 86_400_000_000


def hourly_row(hour: int, filesystem: str = "scratch") -> dict[str, Any]:
    """The hour that ends so long after the first day began."""
    end = epoch_us(FIRST) + hour * HOUR_US
    return {
        "time": end, "start": end - HOUR_US, "duration_s": 3600.0, "filesystem": filesystem, "target": "OST0000",
        "target_kind": "ost", "after_reset": False, "read_bytes": 10**9, "write_bytes": 10**9,
    }  # fmt: skip


def append(store: Store, table: str, rows: Iterable[dict[str, Any]]) -> None:
    """Without a batch."""
    dated = [{**row, "source": "made-up", "date": row.get("start", row["time"]) // DAY_US} for row in rows]
    store.append(table, to_arrow(TABLES[table], dated))


def append_days(store: Store, days: Iterable[int], filesystem: str = "scratch") -> None:
    """All hours of these days."""
    hours = (24 * day + hour for day in days for hour in range(1, 25))
    append(store, "target_io", [hourly_row(hour, filesystem) for hour in hours])


def ingest(place: Path, hour: int) -> None:
    """One row through the door, so that the store knows a batch."""
    rows = [Row("target_io", hourly_row(hour))]
    Store(place).ingest([Capture("made up", f"made-up/{hour}", lambda: iter(rows))], "made-up")


def last_batch(place: Path) -> int:
    """Version of the table of batches."""
    handle = Store(place).tables.load("batches")
    assert handle is not None
    return int(handle.version())
