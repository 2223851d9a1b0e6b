"""Columns that are read without the engine: the rows that the engine gives, or none where it has to judge."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import pytest

from iolens.store import selection as selections
from iolens.store.maintenance import compact_store
from iolens.store.parts import Ends
from iolens.store.selection import StoreSelection
from iolens.store.store import Store
from iolens.units import DAY_US
from tests.analyses.telemetry import T0_US, TICK_US, made_up, table_of

NAMES = ["target", "duration_s", "read_bytes", "background_bytes"]


def store_of(folder: Path) -> Store:
    """A day in three files, of which the second and third overlap in time."""
    store = Store(folder)
    for part, first_tick in enumerate((0, 50, 70)):
        rows = made_up(part, 40, 3, first_tick=first_tick).io
        store.append("target_io", table_of("target_io", [{**row, "target": f"{row['target']}{part}"} for row in rows]))
    return store


def plain(rows: Any) -> list[tuple[Any, ...]]:
    return sorted(tuple(row[name] for name in ("epoch_us", *NAMES[:3])) for row in rows.to_pylist())


@pytest.mark.parametrize("compacted", [False, True])
def test_rows_are_those_of_the_engine_whatever_the_times(tmp_path: Path, compacted: bool) -> None:
    store, random = store_of(tmp_path), Random(1)
    if compacted:
        compact_store(store)
    selection = store.select()
    for _ in range(20):
        first = T0_US + random.randrange(-10, 120) * TICK_US
        ends = Ends(first, first + random.randrange(1, 130) * TICK_US)
        rows = selection.columns("target_io", NAMES, "ost", ends)
        asked = selection.ending("target_io", ends).select("epoch_us", *NAMES).collect(backend="pyarrow").to_native()
        assert (plain(rows) if rows is not None else []) == plain(asked)


def test_days_are_cut_between_files_that_share_no_tick(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(selections, "FEWEST_IN_SLICES", 1)
    (day,) = store_of(tmp_path).select().tick_days(["target_io"], TICK_US)
    slices = list(day.slices("target_io", TICK_US))
    assert [(item.ends.until_us - T0_US) // TICK_US for item in slices] == [40, DAY_US // TICK_US]
    rows = [item.columns("target_io", NAMES, "ost") for item in slices]
    assert [item.num_rows for item in rows if item is not None] == [item.rows for item in slices]


def test_the_engine_is_left_to_judge_kinds_targets_and_windows(tmp_path: Path) -> None:
    store = store_of(tmp_path)
    ends = Ends(T0_US, T0_US + 200 * TICK_US)
    assert store.select().columns("target_io", NAMES, "ost", ends) is not None
    assert store.select().columns("target_io", NAMES, "mdt", ends) is None
    assert store.select(targets=["OST00000"]).columns("target_io", NAMES, "ost", ends) is None
    assert store.select(since="2020-09-14T00:01Z").columns("target_io", NAMES, "ost", ends) is None
    rows = [{**row, "source": "another"} for row in made_up(9, 5, 1).io]
    store.append("target_io", table_of("target_io", rows))
    whole = StoreSelection(store.tables, store.engine, "scratch")
    assert whole.columns("target_io", NAMES, "ost", ends) is None
    another = StoreSelection(store.tables, store.engine, "scratch", source="another")
    listed = another.columns("target_io", NAMES, "ost", ends)
    assert listed is not None
    assert listed.num_rows == len(rows)
