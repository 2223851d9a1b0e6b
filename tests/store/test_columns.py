"""Rows in columns are the same rows."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa

from iolens.records import Row, Rows
from iolens.store.store import Store
from tests.store.samples import T0, capture

COUNT = 50
TIMES = (T0 + 5 * np.arange(COUNT, dtype=np.int64)) * 1_000_000


def columns() -> Rows:
    read = np.arange(COUNT, dtype=float)
    read[3] = np.nan
    write = np.ma.array(np.arange(COUNT), mask=np.arange(COUNT) == 4)
    return Rows(
        "target_io",
        {
            "time": TIMES, "start": TIMES - 5_000_000, "duration_s": 5.0, "filesystem": "scratch",
            "target": pa.array(["OST0000"] * COUNT), "target_kind": "ost", "read_bytes": read, "write_bytes": write,
        },
        COUNT,
    )  # fmt: skip


def single(n: int) -> Row:
    return Row(
        "target_io",
        {
            "time": int(TIMES[n]), "start": int(TIMES[n]) - 5_000_000, "duration_s": 5.0, "filesystem": "scratch",
            "target": "OST0000", "target_kind": "ost",
            "read_bytes": None if n == 3 else n, "write_bytes": None if n == 4 else n,
        },
    )  # fmt: skip


def stored(store: Store) -> pa.Table:
    table = store.select("scratch").frame("target_io").collect("pyarrow").to_native()
    return table.sort_by("time")


def test_columns_and_single_rows_give_the_same_table(tmp_path: Path) -> None:
    item, other = Store(tmp_path / "one"), Store(tmp_path / "other")
    assert item.ingest([capture([columns()], "a")], "test").rows == {"target_io": COUNT}
    other.ingest([capture([single(n) for n in range(COUNT)], "a")], "test")
    assert stored(item) == stored(other)
    assert stored(item).column("read_bytes").to_pylist()[2:5] == [2, None, 4]
    assert item.targets_by_filesystem() == {"scratch": {"OST0000"}}


def test_rows_that_are_present_are_dropped_whichever_way_they_come(tmp_path: Path) -> None:
    store = Store(tmp_path / "store")
    store.ingest([capture([single(7), single(8)], "a")], "test")
    tally = store.ingest([capture([columns(), columns()], "b"), capture([single(9)], "c")], "test")
    assert (tally.rows["target_io"], tally.repeated) == (COUNT - 2, COUNT + 2 + 1)
    assert stored(store).num_rows == COUNT


def test_many_columns_are_cut_into_parts_and_each_is_written_once(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr("iolens.store.ingest.ITEMS_PER_PART", 2)
    pieces = []
    for n in range(5):
        shift = n * COUNT * 5_000_000
        changed = {**columns().columns, "time": TIMES + shift, "start": TIMES + shift - 5_000_000}
        pieces.append(Rows("target_io", changed, COUNT))
    store = Store(tmp_path / "store")
    assert store.ingest([capture(pieces, "a")], "test").rows["target_io"] == 5 * COUNT
    assert store.ingest([capture(pieces, "a")], "test").already_present == 1


def test_no_rows_are_no_rows(tmp_path: Path) -> None:
    empty = Rows("target_io", {"time": np.array([], np.int64), "filesystem": "scratch"}, 0)
    assert Store(tmp_path / "store").ingest([capture([empty], "a")], "test").rows == {}
