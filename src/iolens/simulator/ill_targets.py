"""An OST of a random centre that becomes slow or full at some time and stays so: its rows, and what runs lose by it.

A slow OST takes longer for every I/O. A full one takes I/Os as before, but files on it wait for free blocks; it fills
up in the hour before.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, Literal

import numpy as np
import pyarrow as pa

from iolens.schema import DIRECTIONS
from iolens.simulator.activity import Activity, TickBlock
from iolens.simulator.planted_load import SLOWDOWN

FILLS_S: Final = 3600
_NOISE: Final = 0.05  # of the time of the I/Os of a tick, for no reason

Illness = Literal["slow", "full"]


@dataclass(frozen=True, slots=True)
class IllTarget:
    """OST number `ost`: runs with files on it take `slowdown` times as long from `since_s` on."""

    ost: int
    illness: Illness
    since_s: int
    slowdown: float
    full_pct: float = 97.0

    def slowdown_at(self, start_s: int) -> float:
        """Of a run that starts then."""
        return self.slowdown if start_s >= self.since_s else 1.0


def with_io_times(
    rows: pa.Table, activity: Activity, block: TickBlock, ill: IllTarget | None, random: np.random.Generator
) -> pa.Table:
    """`target_io` with the summed time of its I/Os: their disk time, longer beside other I/Os and on a slow OST."""
    longer = (1.0 + SLOWDOWN * block.fsu_pct / 100.0) * np.exp(_NOISE * random.normal(size=block.fsu_pct.shape))
    if ill is not None and ill.illness == "slow":
        ends_s = (block.first_tick + 1 + np.arange(block.ticks)) * activity.tick_s
        longer[ends_s > ill.since_s, ill.ost] *= ill.slowdown
    for number, direction in enumerate(DIRECTIONS):
        took_s = np.einsum("stn,s->tn", block.counts[number], activity.seconds[number])
        rows = rows.append_column(
            f"{direction}_wait_us", pa.array((1e6 * took_s * longer).astype(np.int64).reshape(-1))
        )
    return rows


def with_fullness(rows: pa.Table, name: str, ill: IllTarget) -> pa.Table:
    """`target_capacity` with the OST `name` filling up."""
    values: dict[str, Any] = {column: rows[column].to_numpy() for column in ("total_bytes", "used_bytes")}
    seconds = rows["time"].cast(pa.int64()).to_numpy() // 1_000_000
    is_ill = np.array(rows["target"].to_pylist(), object) == name
    share = np.clip((seconds - (ill.since_s - FILLS_S)) / FILLS_S, 0.0, 1.0)
    full = (ill.full_pct / 100.0 * values["total_bytes"]).astype(np.int64)
    more = np.where(is_ill, share * np.maximum(full - values["used_bytes"], 0), 0.0).astype(np.int64)
    for column, sign in (("used_bytes", 1), ("free_bytes", -1), ("available_bytes", -1)):
        changed = np.maximum(rows[column].to_numpy() + sign * more, 0)
        rows = rows.set_column(rows.column_names.index(column), column, pa.array(changed))
    return rows
