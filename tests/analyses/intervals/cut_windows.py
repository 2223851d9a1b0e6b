"""Rows of a made-up window, cut by the ends of their intervals into parts that are put together in random groupings."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from random import Random
from typing import Any

import numpy as np
from hypothesis import strategies as st

from iolens.part_form import PartForm
from iolens.store.frames import FrameSelection
from iolens.store.parts import Days, PartMaker
from iolens.units import DAY_US
from tests.analyses.telemetry import T0_US, table_of

Row = dict[str, Any]

WINDOWS = (
    st.integers(0, 40),
    st.integers(1, 3),
    st.lists(st.integers(1, 39), max_size=4),
    st.randoms(use_true_random=False),
)  # ticks, targets, cuts between ticks, and chance


def intervals(random: Random, ticks: int, targets: int) -> list[Row]:
    """Around a midnight: on and off the minute, with gaps, missed samples, long intervals and resets."""
    off_us = random.choice([0, 0, 17_000_000])
    ends = sorted(random.sample(range(-ticks, 2 * ticks), ticks))
    rows = []
    for place in range(targets):
        silent = random.choice([0.0, 0.0, 0.3])
        for end in ends:
            if random.random() < silent:
                continue
            time_us = T0_US + DAY_US + end * 60_000_000 + off_us
            start_us = time_us - random.choice([1, 1, 1, 1, 2, 90]) * 60_000_000
            rows.append({
                "time": time_us, "start": start_us, "date": start_us // DAY_US,
                "duration_s": (time_us - start_us) / 1e6, "after_reset": random.random() < 0.1,
                "filesystem": "scratch", "source": "made-up", "target": f"t{place}",
                "target_kind": "mdt" if place == 2 else "ost",
            })  # fmt: skip
    return rows


def put_together(
    make: Callable[[Days], Any], form: PartForm, table: str, rows: Sequence[Row], cuts: Sequence[int], random: Random
) -> Any:
    """One part of all that is between the cuts, in any grouping, each as another process or machine gets it."""
    ends = sorted({row["time"] for row in rows})
    borders = [0, *(ends[cut] for cut in sorted(set(cuts)) if cut < len(ends)), 1 << 62]
    parts = [
        make(days_of(table, [row for row in rows if low <= row["time"] < high])) for low, high in pairwise(borders)
    ]
    while len(parts) > 1:
        place = random.randrange(len(parts) - 1)
        parts[place].take(form.read(form.written(parts.pop(place + 1))))
    return form.read(form.written(parts[0]))


@dataclass(slots=True)
class CutSelection(FrameSelection):
    """Frames whose parts are those between times."""

    cuts_us: tuple[int, ...] = ()

    def parts(self, maker: PartMaker[Any], progress: Any = None) -> Iterator[Any]:
        """Each as another process or machine gets it."""
        (table,) = maker.tables
        ends_us = self.frames[table]["time"].cast("int64").to_numpy()
        for low, high in pairwise([0, *self.cuts_us, 1 << 62]):
            rows = self.frames[table].filter((low <= ends_us) & (ends_us < high))
            yield maker.form.read(maker.form.written(maker.made(FrameSelection({table: rows}, self.filesystem))))


def days_of(table: str, rows: Sequence[Row]) -> FrameSelection:
    """Days with these rows."""
    return FrameSelection({table: table_of(table, list(rows))}, "scratch")


def by_row(columns: dict[str, Any], keys: Sequence[str]) -> dict[tuple[Any, ...], dict[str, float]]:
    """Sums by their keys; those that are zero are left out."""
    lists = {name: np.asarray(values).tolist() for name, values in columns.items()}
    return {
        tuple(lists[key][place] for key in keys): {
            name: values[place] for name, values in lists.items() if name not in keys and values[place]
        }
        for place in range(len(lists[keys[0]]))
    }
