"""A small made-up centre of controllers with bursts, silences and request sizes, as Arrow tables and as arrays."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

T0_US = 1_600_041_600_000_000  # a UTC midnight, a Monday: 2020-09-14
DIRECTIONS = ("read", "write")
SIZES = {"read": ((16, 0.2), (512, 0.5), (1024, 0.3)), "write": ((16, 0.5), (512, 0.15), (768, 0.05), (1024, 0.3))}


@dataclass(frozen=True)
class Centre:
    """Matrices of ticks × targets behind the tables; NaN where a sample is missing."""

    tick_s: float
    end_us: np.ndarray
    targets: list[str]
    measures: dict[str, np.ndarray]
    tables: dict[str, pa.Table]


def made_up_centre(
    seed: int = 1,
    targets: int = 4,
    ticks: int = 2000,
    tick_s: float = 2.0,
    *,
    first_us: int = T0_US,
    missing: float = 0.0,
    idle: float = 0.6,
    filesystem: str = "spider",
) -> Centre:
    """Pareto bandwidth in busy samples; requests by size every 60 s; the second quarter of the hour is busier."""
    random = np.random.default_rng(seed)
    shape = ticks, targets
    end_us = first_us + np.arange(1, ticks + 1) * round(tick_s * 1e6)
    names = [f"{filesystem}-C{number:02d}" for number in range(targets)]
    gone = random.random(shape) < missing
    gone[0] = gone[-1] = False
    measures: dict[str, np.ndarray] = {}
    for direction, alpha, scale in (("read", 1.24, 2e6), ("write", 2.6, 8e6)):
        busy = np.repeat(random.random((-(-ticks // 5), targets)) > idle, 5, axis=0)[:ticks]
        hour = (end_us // 3_600_000_000 % 24)[:, None]
        rate = scale * random.random(shape) ** (-1.0 / alpha) * (1.0 + (hour >= 9) * (hour < 18))
        ops = np.where(busy, np.maximum(1, np.rint(np.minimum(rate, 2.7e9) * tick_s / 300e3)), 0)
        measures[f"{direction}_ops"] = np.where(gone, np.nan, ops)
        measures[f"{direction}_bytes"] = np.where(
            gone, np.nan, np.where(busy, np.rint(np.minimum(rate, 2.7e9) * tick_s), 0)
        )
    tables = {
        "target_io": _io(filesystem, names, end_us, tick_s, measures),
        "target_histograms": _sizes(filesystem, names, end_us, measures, random),
    }
    return Centre(tick_s, end_us, names, measures, tables)


def _common(filesystem: str, time: np.ndarray, start: np.ndarray, target: np.ndarray) -> dict:
    timestamp = pa.timestamp("us", "UTC")
    return {
        "time": pa.array(time, timestamp),
        "start": pa.array(start, timestamp),
        "duration_s": (time - start) / 1e6,
        "date": pa.array((start // 86_400_000_000).astype(np.int32), pa.date32()),
        "filesystem": [filesystem] * len(time),
        "source": ["made-up"] * len(time),
        "target": target,
        "target_kind": ["controller"] * len(time),
        "after_reset": np.zeros(len(time), bool),
    }


def _io(filesystem: str, names: list[str], end_us: np.ndarray, tick_s: float, measures: dict) -> pa.Table:
    line, column = np.nonzero(~np.isnan(measures["read_bytes"]).T)[::-1]
    time = end_us[line]
    order = np.lexsort((line, column))
    line, column, time = line[order], column[order], time[order]
    start = np.concatenate([[0], time[:-1]])  # a missed sample widens the next one
    first = np.concatenate([[True], column[1:] != column[:-1]])
    start[first] = time[first] - round(tick_s * 1e6)
    result = {name: values[line, column].astype(np.int64) for name, values in measures.items()}
    return _as_stored("target_io", {**_common(filesystem, time, start, np.array(names)[column]), **result})


def _sizes(filesystem: str, names: list[str], end_us: np.ndarray, measures: dict, random) -> pa.Table:
    """Requests of each minute by upper end of a 16 KiB bin; their sum is the number of requests."""
    minute = (end_us - 1) // 60_000_000
    minutes, where = np.unique(minute, return_inverse=True)
    parts = []
    for direction in DIRECTIONS:
        ends = np.array([end for end, _ in SIZES[direction]]) * 1024
        for column, _ in enumerate(names):
            requests = np.nan_to_num(measures[f"{direction}_ops"][:, column])
            counts = np.bincount(where, requests, minutes.size).astype(int)
            drawn = random.multinomial(counts, [share for _, share in SIZES[direction]])
            line, size = np.nonzero(drawn)
            parts.append((minutes[line], np.full(line.size, column), ends[size], drawn[line, size], direction))
    time = np.concatenate([part[0] for part in parts]) * 60_000_000 + 60_000_000
    rows = _common(filesystem, time, time - 60_000_000, np.array(names)[np.concatenate([part[1] for part in parts])])
    rows |= {
        "direction": np.concatenate([np.full(part[0].size, part[4]) for part in parts]),
        "histogram": ["request_size"] * len(time),
        "bin": np.concatenate([part[2] for part in parts]),
        "count": np.concatenate([part[3] for part in parts]),
    }
    return _as_stored("target_histograms", rows)


def _as_stored(name: str, columns: dict) -> pa.Table:
    """In the order and types of the store's own table."""
    from iolens.schema import TABLES
    from iolens.store.tables import arrow_schema

    table = pa.table(columns)
    return table.cast(pa.schema([arrow_schema(TABLES[name]).field(column_name) for column_name in table.column_names]))
