"""Made-up rows for the terminal view: a few targets over some ticks, with known FSU."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from iolens.analyses.live.analysis import Board
from iolens.analyses.live.boards import Boards
from iolens.models.transaction_time import GRACE_2012
from iolens.records import Item, Row
from iolens.schema import DIRECTIONS, SIZE_BINS, size_column
from iolens.units import MIB

T0_US = 1_600_000_000_000_000
TICK_US = 5_000_000
MOST = 5.0 / GRACE_2012.write.seconds(MIB)  # writes of 1 MiB that keep a disk busy for a tick


def at(tick: int) -> int:
    return T0_US + tick * TICK_US


def rows(tick: int, fsu: dict[str, float], filesystem: str = "scratch") -> list[Item]:
    """One tick: 1 MiB writes that make (about) these FSUs, in per cent, by target number."""
    items: list[Item] = []
    for name, pct in fsu.items():
        writes = round(MOST * pct / 100)
        head: dict[str, Any] = {
            "time": at(tick), "start": at(tick - 1), "duration_s": 5.0, "filesystem": filesystem,
            "target": f"{filesystem}-{name}", "target_kind": "ost", "after_reset": False,
        }  # fmt: skip
        counts = {size_column(direction, size): 0 for direction in DIRECTIONS for size in SIZE_BINS}
        items.append(Row("target_sizes", head | counts | {size_column("write", MIB): writes}))
        moved = {"read_bytes": 0, "write_bytes": writes * MIB, "read_ops": 0, "write_ops": writes}
        items.append(Row("target_io", head | moved))
    return items


def ticks(numbers: Iterable[int], targets: Sequence[str] = ("OST0000", "OST0001", "OST0002")) -> list[Item]:
    """Ticks in which the first target has an FSU of about its tick, the others 1 and 50."""
    items: list[Item] = []
    for tick in numbers:
        items += rows(tick, dict(zip(targets, (float(tick), 1.0, 50.0), strict=False)))
    return items


def boards_of(items: Iterable[Item]) -> Boards:
    boards = Boards(Board)
    boards.take(items)
    return boards
