"""Parts of days of `demand` and of daily writes, put together in any grouping, are what plain Python says of all."""

from __future__ import annotations

from collections import Counter, defaultdict
from functools import partial
from random import Random
from typing import Any

import numpy as np
from hypothesis import given, settings

from iolens.analyses.demand import (
    FORM,
    KEYS,
    SIZES_FORM,
    WRITES_FORM,
    daily_writes,
    demand,
    demand_part,
    write_sizes_part,
    writes_part,
)
from iolens.store.frames import FrameSelection
from iolens.units import DAY_US
from tests.analyses.intervals.cut_windows import (
    WINDOWS,
    CutSelection,
    Row,
    by_row,
    days_of,
    intervals,
    put_together,
)
from tests.analyses.intervals.test_parts import same
from tests.analyses.telemetry import T0_US, table_of
from tests.soak import IS_SOAK

TERMS = {
    "read_bytes_per_s": ("read_bytes",), "bytes_per_s": ("read_bytes", "write_bytes"),
    "ops_per_s": ("read_ops", "write_ops"),
}  # fmt: skip
COLUMNS = ("read_bytes", "write_bytes", "read_ops", "write_ops")


def counted(random: Random, rows: list[Row]) -> list[Row]:
    return [{**row, **{name: random.choice([None, 0, random.randrange(5000), 60]) for name in COLUMNS}} for row in rows]


def rate(row: Row, measure: str) -> float | None:
    """Bytes are known where all their parts are, operations where any is."""
    amounts = [row[name] for name in TERMS[measure]]
    needed = len(amounts) if measure == "bytes_per_s" else 1
    known = [amount for amount in amounts if amount is not None]
    return sum(known) / row["duration_s"] if len(known) >= needed else None


@given(*WINDOWS)
@settings(max_examples=100 if IS_SOAK else 25, deadline=None)
def test_ticks(ticks: int, targets: int, cuts: list[int], random: Random) -> None:
    rows = counted(random, intervals(random, ticks, targets))
    make = partial(demand_part, table="target_io", terms=TERMS, kinds=("ost",))
    part = put_together(make, FORM, "target_io", rows, cuts, random)
    same(part.columns, make(days_of("target_io", rows)).columns)
    by_tick: dict[int, list[Row]] = defaultdict(list)
    for row in rows:
        if row["target_kind"] == "ost":
            by_tick[row["time"]].append(row)
    assert part.columns["epoch_us"].tolist() == sorted(by_tick)
    for place, time_us in enumerate(sorted(by_tick)):
        assert part.columns["targets"][place] == len(by_tick[time_us])
        for measure in TERMS:
            rates = [value for row in by_tick[time_us] if (value := rate(row, measure)) is not None]
            same(float(part.columns[measure][place]), sum(rates) if rates else np.nan)


@given(*WINDOWS)
@settings(max_examples=100 if IS_SOAK else 12, deadline=None)
def test_the_answer_does_not_depend_on_where_parts_end(
    ticks: int, targets: int, cuts: list[int], random: Random
) -> None:
    """Ticks of six hours, each with at least one target: six days at least where there are 24."""
    starts = [T0_US + 7_200_000_000 + number * DAY_US // 4 for number in range(ticks + 1)]
    common = {"filesystem": "scratch", "source": "made-up", "target_kind": "ost", "duration_s": 21600.0}
    rows = counted(random, [
        {**common, "start": start, "time": start + DAY_US // 4, "date": start // DAY_US, "target": f"t{place}"}
        for start in starts
        for place in range(targets)
        if place == 0 or random.random() < 0.8
    ])  # fmt: skip
    rows[0]["write_bytes"] = 1
    frames = {"target_io": table_of("target_io", rows)}
    cuts_us = tuple(sorted({starts[cut] + 1 for cut in cuts if cut <= ticks}))
    whole, parts = FrameSelection(frames, "scratch"), CutSelection(frames, "scratch", cuts_us=cuts_us)
    same(demand(parts), demand(whole))
    same(daily_writes(parts), daily_writes(whole))


@given(*WINDOWS)
@settings(max_examples=100 if IS_SOAK else 25, deadline=None)
def test_daily_writes(ticks: int, targets: int, cuts: list[int], random: Random) -> None:
    rows = [
        {**row, "target_kind": random.choice([None, row["target_kind"]])}
        for row in counted(random, intervals(random, ticks, targets))
    ]
    part = put_together(writes_part, WRITES_FORM, "target_io", rows, cuts, random)
    sums: dict[tuple[Any, ...], Counter[str]] = defaultdict(Counter)
    for row in rows:
        if row["write_bytes"] is not None:
            length_us = row["time"] - row["start"]
            written = {"write_bytes": row["write_bytes"]} if row["write_bytes"] else {}
            sums[row["target"], row["target_kind"] or "unknown", length_us, row["start"] // DAY_US].update(
                {"rows": 1, "duration_s": row["duration_s"], **written}
            )
    assert by_row(part.rows(), KEYS) == {key: dict(amounts) for key, amounts in sums.items()}


@given(*WINDOWS)
@settings(max_examples=100 if IS_SOAK else 12, deadline=None)
def test_write_sizes(ticks: int, targets: int, cuts: list[int], random: Random) -> None:
    rows = [
        {**row, "write_ios_4096": random.choice([None, random.randrange(99)]), "read_ios_4096": 3}
        for row in intervals(random, ticks, targets)
    ]
    part = put_together(write_sizes_part, SIZES_FORM, "target_sizes", rows, cuts, random)
    sums: Counter[int] = Counter()
    for row in rows:
        sums[row["start"] // DAY_US] += row["write_ios_4096"] or 0
    said = by_row(part.rows(), ("bucket",))
    assert {day: counts.get("write_ios_4096", 0) for (day,), counts in said.items()} == sums
