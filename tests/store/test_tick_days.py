"""Days by the ends of ticks: every row is in one of them, and every tick with all of its rows."""

from __future__ import annotations

from datetime import date
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from iolens.store import selection as selections
from iolens.store.parts import tick_day
from iolens.store.selection import StoreSelection
from iolens.store.store import Store
from iolens.units import DAY_US
from tests.analyses.telemetry import T0_US, TICK_US, made_up, table_of

MIDNIGHT_US = T0_US // DAY_US * DAY_US


def rows_of(random: Random, tick_us: int, sources: int) -> list[dict[str, Any]]:
    """Samples around three midnights: on the tick and off it, long ones, and of several sources."""
    rows = {}
    for _ in range(60):
        end_us = MIDNIGHT_US + random.randrange(-1, 3) * DAY_US + random.randrange(-400, 400) * tick_us
        end_us += random.choice([0, 0, 1, -1, random.randrange(-tick_us, tick_us)])
        start_us = end_us - tick_us * random.choice([1, 1, 1, 3, 1000, 30_000])
        target, source = random.choice("abc"), f"source{random.randrange(sources)}"
        rows[target, source, end_us] = {
            "target": target, "target_kind": "ost", "source": source, "filesystem": "scratch", "time": end_us,
            "start": start_us, "date": start_us // DAY_US,
            "duration_s": (end_us - start_us) / 1e6, "read_bytes": random.randrange(1000),
        }  # fmt: skip
    return list(rows.values())


def ends_in(chunk: Any) -> list[tuple[str, str, int]]:
    listed = chunk.frame("target_io").select("target", "source", "epoch_us").collect(backend="pyarrow").to_native()
    return sorted(tuple(row.values()) for row in listed.to_pylist())


def ticks_in(listed: list[tuple[str, str, int]], tick_us: int) -> set[int]:
    return {(end_us + (tick_us - 1) // 2) // tick_us for *_, end_us in listed}


@given(st.sampled_from([5_000_000, 7_000_000, 60_000_000]), st.integers(1, 2), st.integers(0, 1 << 30))
@settings(max_examples=15, deadline=None)
def test_every_row_and_every_tick_is_in_one_day(
    tmp_path_factory: pytest.TempPathFactory, tick_us: int, sources: int, seed: int
) -> None:
    store = Store(tmp_path_factory.mktemp("store"))
    rows = rows_of(Random(seed), tick_us, sources)
    for part in (rows[::2], rows[1::2]):
        store.append("target_io", table_of("target_io", part))
    whole = StoreSelection(store.tables, store.engine, "scratch", source_order=("source1",))
    expected = ends_in(whole)
    overlapping = len(rows) - len(expected)
    assert whole.overlapping_rows == overlapping
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(selections, "ROWS_OF_DAYS", 1)
        days = list(whole.tick_days(["target_io"], tick_us))
    assert len(days) > 2
    assert [day.end_us for day in days] == sorted(day.end_us for day in days)
    listed = [ends_in(day) for day in days]
    assert sorted(row for part in listed for row in part) == expected
    assert whole.overlapping_rows == overlapping
    ticks = [ticks_in(part, tick_us) for part in listed]
    assert sum(map(len, ticks)) == len(set().union(*ticks))
    for day, part in zip(days, listed, strict=True):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(selections, "ROWS_AT_ONCE", 7)
            patch.setattr(selections, "FEWEST_IN_SLICES", 5)
            slices = [ends_in(item) for item in day.slices("target_io", tick_us)]
        assert sorted(row for item in slices for row in item) == part
        inside = [ticks_in(item, tick_us) for item in slices]
        assert sum(map(len, inside)) == len(set().union(*inside))


def test_a_tick_that_ends_at_midnight_is_the_last_of_its_day() -> None:
    ends = tick_day(date(1970, 1, 2), 5_000_000)
    assert (ends.after_us, ends.until_us) == (DAY_US + 2_500_000, 2 * DAY_US + 2_500_000)


def test_days_by_long_ticks_have_one_or_none() -> None:
    """A tick of a week ends in one day of seven."""
    week_us = 7 * DAY_US
    lengths = [
        (ends.until_us - ends.after_us) // week_us
        for ends in (tick_day(date(1970, 1, day), week_us) for day in range(1, 15))
    ]
    assert lengths == [0, 0, 0, 0, 0, 0, 1] * 2


def test_days_of_two_tables_are_those_of_either_with_the_rows_of_the_larger(tmp_path: Path) -> None:
    store = Store(tmp_path)
    for table, day, ticks in (("target_io", 0, 3), ("target_io", 1, 4), ("target_sizes", 1, 7), ("target_sizes", 2, 5)):
        rows = made_up(day, ticks, 1, first_tick=day * 17_280, missing=0.0)
        store.append(table, rows.table(table))
    whole = StoreSelection(store.tables, store.engine, "scratch")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(selections, "ROWS_OF_DAYS", 1)
        assert [days.rows for days in whole.tick_days(("target_io", "target_sizes"), TICK_US)] == [3, 7, 5]


def test_days_that_would_not_be_remembered_are_taken_together_but_not_over_days_that_are_gone(tmp_path: Path) -> None:
    """A year of hours has few rows a day, and a part costs time however few rows it has."""
    store = Store(tmp_path)
    for day in range(5):
        store.append("target_io", made_up(day, 4, 1, first_tick=day * 17_280, missing=0.0).table("target_io"))
    whole = StoreSelection(store.tables, store.engine, "scratch")
    first, *_, last = listed = sorted(whole.days("target_io"))
    assert len(listed) == 5
    assert [(part.first, part.last, part.rows) for part in whole.tick_days(["target_io"], TICK_US)] == [
        (first, last, 20)
    ]
    parts = list(whole.tick_days(["target_io"], TICK_US, without={listed[2]}))
    assert [(part.first, part.last, part.rows) for part in parts] == [(first, listed[1], 8), (listed[3], last, 8)]
    few = whole.tick_days(["target_io"], TICK_US, most_rows=9)
    assert [part.rows for part in few] == [8, 8, 4]
