"""A made-up busy file system for benchmarks: D days × N targets × 5 s, written straight into a store."""

from __future__ import annotations

import sys
from datetime import date, timedelta

import numpy as np
import pyarrow as pa

from iolens.schema import DIRECTIONS, SIZE_BINS, size_column
from iolens.store.store import Store

FIRST_DAY = date(2012, 10, 1)
TICK_S = 5
TICKS = 86400 // TICK_S


def write_days(url: str, first: int, days: int, targets: int) -> None:
    """Days `first` … `first + days − 1` of `target_sizes` and `target_io`."""
    store = Store(url)
    for number in range(first, first + days):
        sizes, io = day_of_telemetry(number, targets)
        store.append("target_sizes", sizes, f"bench/sizes/{number}")
        store.append("target_io", io, f"bench/io/{number}")


def day_of_telemetry(number: int, targets: int) -> tuple[pa.Table, pa.Table]:
    """One day: nine bins from 4 KiB to 1 MiB in use, bursts that all targets share, each with its own noise."""
    random = np.random.default_rng(number)
    midnight_us = (FIRST_DAY - date(1970, 1, 1)).days * 86_400_000_000 + number * 86_400_000_000
    ends = midnight_us + (np.arange(TICKS, dtype=np.int64) + 1) * TICK_S * 1_000_000
    rows = TICKS * targets
    level = np.repeat(np.abs(np.repeat(random.normal(0, 1, TICKS // 60), 60)) ** 3, targets)
    time_us = np.repeat(ends, targets)
    common = {
        "time": pa.array(time_us).cast(pa.timestamp("us", "UTC")),
        "start": pa.array(time_us - TICK_S * 1_000_000).cast(pa.timestamp("us", "UTC")),
        "duration_s": pa.array(np.round(TICK_S + random.normal(0, 0.002, rows), 4)),
        "date": pa.repeat(pa.scalar(FIRST_DAY + timedelta(days=number), pa.date32()), rows),
        "filesystem": pa.repeat("scratch", rows),
        "source": pa.repeat("bench", rows),
        "target": pa.array(np.tile([f"scratch-OST{n:04x}" for n in range(targets)], TICKS)),
        "target_kind": pa.repeat("ost", rows),
        "after_reset": pa.repeat(False, rows),
    }
    counts: dict[str, np.ndarray] = {}
    for direction in DIRECTIONS:
        for size in SIZE_BINS:
            scale = {4096: 30.0, 1 << 20: 40.0}.get(size, 3.0) if 4096 <= size <= 1 << 20 else 0.0
            drawn = random.poisson(scale * level).astype(np.int64) if scale else np.zeros(rows, np.int64)
            counts[size_column(direction, size)] = drawn
    moved = {
        f"{direction}_bytes": sum(counts[size_column(direction, size)] * size for size in SIZE_BINS)
        for direction in DIRECTIONS
    }
    zeros = pa.repeat(pa.scalar(0, pa.int64()), rows)
    sizes = pa.table({**common, **counts, "read_ios_outside": zeros, "write_ios_outside": zeros})
    return sizes, pa.table(
        {**common, **moved, "read_ops": counts["read_ios_1048576"], "write_ops": counts["write_ios_1048576"]}
    )


if __name__ == "__main__":
    write_days(sys.argv[1], *(int(word) for word in sys.argv[2:5]))
