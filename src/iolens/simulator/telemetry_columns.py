"""Columns of simulated rows: times, names and what every interval has."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, Final

import pyarrow as pa

from iolens.simulator.activity import Counts
from iolens.units import from_epoch_us

SOURCE: Final = "simulator"


def interval_columns(filesystem: str, ends_s: Counts, duration_s: int) -> dict[str, Any]:
    """The columns every interval has; all begin on the same UTC day."""
    rows = len(ends_s)
    day = from_epoch_us(int(ends_s[0] - duration_s) * 1_000_000).date() if rows else datetime.now(UTC).date()
    return {
        "time": time_column(ends_s),
        "start": time_column(ends_s - duration_s),
        "duration_s": pa.repeat(pa.scalar(float(duration_s)), rows),
        "date": pa.repeat(pa.scalar(day, pa.date32()), rows),
        "filesystem": pa.repeat(filesystem, rows),
        "source": pa.repeat(SOURCE, rows),
        "after_reset": pa.repeat(False, rows),
    }


def time_column(seconds: Counts) -> Any:
    """Seconds since 1970 as times."""
    return pa.array(seconds * 1_000_000).cast(pa.timestamp("us", "UTC"))


def name_column(names: Sequence[str], which: Counts) -> Any:
    """Names by their numbers."""
    return pa.DictionaryArray.from_arrays(pa.array(which.astype("int32")), pa.array(names)).cast(pa.string())
