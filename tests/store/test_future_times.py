"""Nothing is stored that is later than the clock here and ten minutes: it would freeze its target for good."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from iolens.records import Capture, CounterSet, Item, Row, Rows, Sample, Samples
from iolens.store.gate import AHEAD_US
from iolens.store.store import Store
from iolens.store.tally import Tally
from tests.agent import truth

S = 1_000_000
NOW = 1_700_000_000 * S
LATER = NOW + AHEAD_US + S
NAMES = {"filesystem": "fs", "target": "OST0"}


def sample(time_us: int, count: int) -> Sample:
    return Sample("target_io", "fs", "OST0", time_us, time_us, {"": CounterSet({"write_bytes": count})})


def ingested(folder: Path, items: Sequence[Item], now_us: int = NOW, identity: str = "file/1") -> Tally:
    """A file of some items, loaded when the clock shows `now_us`."""
    capture = Capture("captured.txt", identity, lambda: iter(items))
    return Store(folder / "store").ingest([capture], "lctl", now_us=lambda: now_us)


def stored(folder: Path, table: str) -> list[int]:
    """Times of rows, seconds after the clock's."""
    return [round(row["time"].timestamp()) - NOW // S for row in truth.rows(folder / "store", table)]


def test_a_sample_of_the_future_is_refused_with_its_place_and_the_rest_of_the_file_is_stored(tmp_path: Path) -> None:
    tally = ingested(tmp_path, [sample(NOW - 10 * S, 100), sample(LATER, 10**12), sample(NOW, 130)])
    assert stored(tmp_path, "target_io") == [0]
    assert truth.total(tmp_path / "store") == 30
    assert tally.refused == 1
    (problem,) = map(str, tally.problems)
    assert problem == (
        "captured.txt: target_io of OST0: its time is 2023-11-14T22:23:21Z, expected no later than "
        "2023-11-14T22:23:20Z, the clock here and 10 min; sample left out"
    )
    later = ingested(tmp_path, [sample(NOW + 5 * S, 150)], NOW + 5 * S, "file/2")
    assert (later.older, truth.total(tmp_path / "store")) == (0, 50)


def test_a_series_keeps_its_samples_up_to_the_clock(tmp_path: Path) -> None:
    times = np.array([NOW - 5 * S, NOW, LATER], np.int64)
    series = Samples("target_io", "fs", "OST0", times, times, {"write_bytes": np.array([1, 8, 10**12], np.int64)})
    assert ingested(tmp_path, [series]).refused == 1
    assert (stored(tmp_path, "target_io"), truth.total(tmp_path / "store")) == ([0], 7)


@pytest.mark.parametrize("table", ["target_capacity", "target_servers", "runs", "jobs"])
def test_finished_rows_of_the_future_are_left_out(tmp_path: Path, table: str) -> None:
    more = {"target_capacity": NAMES, "target_servers": NAMES, "jobs": {"job_id": "7"}, "runs": {"run_id": "7"}}[table]
    rows = [Row(table, {"time": time_us, "start": NOW - S, **more}) for time_us in (NOW, LATER)]
    if table.startswith("target"):
        rows = [Row(row.table, {key: value for key, value in row.values.items() if key != "start"}) for row in rows]
    tally = ingested(tmp_path, rows)
    assert stored(tmp_path, table) == [0]
    assert tally.refused == 1
    assert "the clock here and 10 min; row left out" in str(tally.problems[0])


def test_columns_of_rows_are_looked_at_too(tmp_path: Path) -> None:
    columns = {"time": np.array([NOW, LATER, NOW + AHEAD_US]), "used_bytes": 1, **NAMES}
    assert ingested(tmp_path, [Rows("target_capacity", columns, 3)]).refused == 1
    assert stored(tmp_path, "target_capacity") == [0, 600]
