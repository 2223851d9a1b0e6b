"""Made-up readings of capacity: rows of `target_capacity` that a test can write down by hand."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import pyarrow as pa

from iolens.schema import TABLES
from iolens.store.frames import FrameSelection
from iolens.store.rows import to_arrow

T0_US = 1_600_041_600_000_000  # a UTC midnight: 2020-09-14
DAY_US = 86_400_000_000
TOTAL = 1_000_000


def reading(
    day: float, used: Mapping[str, int | None], *, kind: str = "ost", total: int | None = TOTAL, **more: Any
) -> list[dict[str, Any]]:
    """One reading of several targets, `day` days after the start; `used` by target."""
    time = T0_US + round(day * DAY_US)
    return [
        {
            "time": time, "date": time // DAY_US, "filesystem": "scratch", "source": "made-up", "target": target,
            "target_kind": kind, "used_bytes": bytes_, "total_bytes": total, **more,
        }
        for target, bytes_ in used.items()
    ]  # fmt: skip


def readings(days: Iterable[float], used: Iterable[int], targets: int = 2, **more: Any) -> list[dict[str, Any]]:
    """Sums spread over targets alike."""
    return [
        row
        for day, total in zip(days, used, strict=True)
        for row in reading(
            day, {f"OST{n:04x}": total // targets + (n < total % targets) for n in range(targets)}, **more
        )
    ]


def table_of(rows: list[dict[str, Any]]) -> pa.Table:
    return to_arrow(TABLES["target_capacity"], rows)


def selection(rows: list[dict[str, Any]], **settings: Any) -> FrameSelection:
    return FrameSelection({"target_capacity": table_of(rows)}, "scratch", **settings)
