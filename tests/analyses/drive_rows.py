"""Made-up readings of drives: rows of `drives` that a test can write down by hand."""

from __future__ import annotations

from typing import Any

import numpy as np

from iolens.store.frames import FrameSelection
from tests.analyses.telemetry import T0_US, table_of

DAY_US = 86_400_000_000
CAPACITY = 1000


def drive(serial: str, day: float, written: int | None, flash: int | None, **more: Any) -> dict[str, Any]:
    """One reading of a drive of 1,000 bytes that was powered 1,000 days before the first."""
    return {
        "time": T0_US + round(day * DAY_US), "source": "isdct", "filesystem": "burst", "serial": serial,
        "host_write_bytes": written, "nand_write_bytes": flash, "capacity_bytes": CAPACITY,
        "power_on_hours": 24.0 * (1000 + day), **more,
    }  # fmt: skip


def selection(rows: list[dict[str, Any]], **settings: Any) -> FrameSelection:
    return FrameSelection({"drives": table_of("drives", rows)}, "burst", **settings)


def made_up_drives(
    seed: int, drives: int, days: int, *, filesystem: str = "burst", first_day: float = 0.0
) -> list[dict]:
    """Readings that are missed, counters that fall, columns that are absent, a second source of some drives."""
    random = np.random.default_rng(seed)
    rows = []
    for number in range(drives):
        host, flash, hours = random.integers(1, 1 << 50), random.integers(1, 1 << 51), random.integers(100, 30_000)
        idle = number % 7 == 3
        for day in range(days):
            moved = int(random.exponential(1 << 40)) if not idle else 0
            host, flash, hours = host + moved, flash + 2 * moved + (1 << 30), hours + 24
            if random.random() < 0.05:
                host = flash = hours = 1
            if random.random() < 0.1:
                continue
            rows.append({
                "time": T0_US + round((first_day + day) * DAY_US) + int(random.integers(0, 60_000_000)),
                "source": "isdct", "filesystem": filesystem, "serial": f"{filesystem}-{number:03}",
                "model": f"model {number % 2}", "host": f"node{number // 4}", "capacity_bytes": 1 << 40,
                "host_write_bytes": int(host), "nand_write_bytes": None if number % 5 == 4 else int(flash),
                "host_read_bytes": int(host) // 3 if random.random() < 0.9 else None,
                "power_on_hours": float(hours), "wear_pct": float(hours // 3000),
            })  # fmt: skip
            if number % 4 == 1:
                rows.append({**rows[-1], "source": "smartctl", "nand_write_bytes": None, "host_read_bytes": None})
    return rows
