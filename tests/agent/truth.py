"""What the spool and the store hold, to be compared with what the server counted."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import Any

from iolens.records import Item, Sample
from iolens.sources.spool import Segment, segment_files
from iolens.store.store import Store


def spooled(directory: Path) -> list[Item]:
    """Every item of every finished segment."""
    return [item for path in segment_files(directory) for item in Segment.open(path).items()]


def spooled_ticks(directory: Path, table: str = "target_io") -> Counter[tuple[str, int]]:
    """How often each target and tick was spooled."""
    return Counter(
        (item.target, item.time_us) for item in spooled(directory) if isinstance(item, Sample) and item.table == table
    )


def rows(store: Path, table: str) -> list[dict[str, Any]]:
    """All rows of a table, by target, node and time."""
    handle = Store(store).tables.load(table)
    result = [] if handle is None else handle.to_pyarrow_table().to_pylist()
    return sorted(result, key=lambda row: (*_whose(row), row["time"]))


def _whose(row: dict[str, Any]) -> tuple[str, str]:
    return row.get("target", ""), row.get("node", "")


def total(store: Path, column: str = "write_bytes", table: str = "target_io") -> int:
    """Sum of a column."""
    return sum(row[column] or 0 for row in rows(store, table))


def breaks(store: Path, table: str = "target_io") -> list[dict[str, Any]]:
    """Rows that do not begin where the one before ended: something is missing or there twice."""
    result = rows(store, table)
    pairs = pairwise(result)
    return [after for before, after in pairs if _whose(before) == _whose(after) and before["time"] != after["start"]]


def ship(spool: Path, store: Path) -> subprocess.CompletedProcess[str]:
    """One run of the shipper, in a process of its own."""
    command = [sys.executable, "-m", "iolens.agent.sampling.shipper", str(spool), str(store)]
    return subprocess.run(command, capture_output=True, text=True, check=False)
