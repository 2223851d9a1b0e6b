"""Two sources of one target: the second fills what the first lacks, nothing counts twice, and the order is said."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from random import Random
from typing import Any

import pytest

from iolens.api.open_store import OpenStore
from iolens.store.rollup import roll_up
from iolens.store.store import Store
from iolens.units import DAY_US
from tests.analyses.telemetry import T0_US, table_of

S = 1_000_000
RATE = 1000  # bytes per second, whatever the source


def row(source: str, start_s: float, end_s: float, target: str = "scratch-OST0000") -> dict[str, Any]:
    start, end = T0_US + round(start_s * S), T0_US + round(end_s * S)
    moved = round((end_s - start_s) * RATE)
    return {
        "time": end, "start": start, "duration_s": end_s - start_s, "date": start // DAY_US, "filesystem": "scratch",
        "source": source, "target": target, "target_kind": "ost", "after_reset": False, "read_bytes": moved,
        "write_bytes": 2 * moved, "read_ops": 1, "write_ops": 1,
    }  # fmt: skip


def every(source: str, step_s: float, begin_s: float, end_s: float, **target: str) -> list[dict[str, Any]]:
    count = round((end_s - begin_s) / step_s)
    return [row(source, begin_s + n * step_s, begin_s + (n + 1) * step_s, **target) for n in range(count)]


def store_of(folder: Path, rows: Iterable[dict[str, Any]]) -> Store:
    store = Store(folder / "store")
    store.append("target_io", table_of("target_io", list(rows)))
    return store


def counted(store: Store, **asked: Any) -> list[tuple[str, float, float]]:
    frame = store.select("scratch", **asked).frame("target_io").select("source", "start_us", "epoch_us")
    rows = frame.collect(backend="pyarrow").to_native().to_pylist()
    return sorted((r["source"], (r["start_us"] - T0_US) / S, (r["epoch_us"] - T0_US) / S) for r in rows)


def test_a_single_row_of_the_first_source_hides_only_its_own_time(tmp_path: Path) -> None:
    """900 s of the second were hidden by 5 s of the first."""
    store = store_of(tmp_path, [*every("a", 5, 0, 5), *every("b", 5, 0, 900)])
    assert counted(store) == [("b", 5.0 * n, 5.0 * n + 5) for n in range(180)]
    filled = [("b", 5.0 * n, 5.0 * n + 5) for n in range(1, 180)]
    assert counted(store, source_order=("a", "b")) == [("a", 0, 5), *filled]


def test_no_byte_is_lost_and_none_counts_twice_in_any_answer(tmp_path: Path) -> None:
    """The finer source pauses for half an hour; the minutes of the other fill it. Its other rows are counted once."""
    fine = [*every("fine", 5, 0, 1800), *every("fine", 5, 3600, 7200)]
    store_of(tmp_path, [*fine, *every("coarse", 60, 0, 7200)])
    opened = OpenStore(str(tmp_path / "store"))
    answer = opened.workload()
    assert answer.aggregate is not None
    assert (answer.aggregate.read_bytes, answer.aggregate.write_bytes) == (7200 * RATE, 2 * 7200 * RATE)
    assert answer.coverage.sources == ["fine", "coarse"]
    assert answer.coverage.overlapping_rows == 90
    (note,) = (note for note in answer.coverage.notes if "sources" in note)
    assert note == (
        "where several sources tell of the same time, fine before coarse (finer samples first, then more of them);"
        " the others fill what is missing"
    )


def test_a_wide_interval_of_the_first_source_has_all_bytes_of_its_time(tmp_path: Path) -> None:
    """Counters went on while nobody sampled: the ticks of the other source would count them again."""
    first = [*every("a", 5, 0, 100), row("a", 100, 700), *every("a", 5, 700, 1000)]
    store_of(tmp_path, [*first, *every("b", 5, 0, 1000)])
    config = tmp_path / "iolens.toml"
    config.write_text('[filesystems.scratch]\nsources = ["a", "b"]\n')
    answer = OpenStore(str(tmp_path / "store"), config=str(config)).workload()
    assert answer.aggregate is not None
    assert answer.aggregate.read_bytes == 1000 * RATE
    assert "a before b (as configured)" in answer.coverage.notes[-1]


def test_of_equally_fine_sources_the_one_with_more_is_first_unless_configured(tmp_path: Path) -> None:
    rows = [*every("a", 5, 0, 100), *every("b", 5, 0, 500), *every("c", 60, 0, 600)]
    store = store_of(tmp_path, rows)
    assert store.select("scratch").sources("target_io") == ["b", "a", "c"]
    assert store.select("scratch", source_order=("c",)).sources("target_io") == ["c", "b", "a"]
    assert sum(end - start for _, start, end in counted(store)) == 560  # the minute of c that b cuts is left out


def test_each_target_is_decided_on_alone(tmp_path: Path) -> None:
    other = "scratch-OST0001"
    store = store_of(tmp_path, [*every("a", 5, 0, 60), *every("b", 5, 0, 60, target=other), *every("b", 5, 0, 30)])
    assert len(counted(store)) == 24
    assert store.select("scratch").overlapping_rows == 0  # nothing was asked


def test_clocks_that_differ_a_little_do_not_hide_a_neighbour(tmp_path: Path) -> None:
    store = store_of(tmp_path, [*every("a", 5, 0, 50), *every("a", 5, 100, 200), *every("b", 5, 0.3, 200.3)])
    assert counted(store, source_order=("a", "b"))[30:] == [("b", 50.3 + 5 * n, 55.3 + 5 * n) for n in range(10)]


def test_of_a_bucket_of_a_rollup_the_source_counts_that_covers_it(tmp_path: Path) -> None:
    """The first source has ten minutes of the first hour, and nearly all of the second."""
    store = store_of(tmp_path, [*every("a", 60, 3000, 7140), *every("b", 60, 0, 7200)])
    roll_up(store)
    asked = store.select("scratch", resolution="1h", source_order=("a", "b"))
    rows = asked.frame("target_io").sort("epoch_us").select("source", "read_bytes").collect("pyarrow").to_native()
    assert rows.to_pylist() == [
        {"source": "b", "read_bytes": 3600 * RATE},
        {"source": "a", "read_bytes": 3540 * RATE},
    ]
    assert asked.overlapping_rows == 2


@pytest.mark.parametrize("seed", range(6))
def test_days_asked_one_by_one_are_those_of_the_whole(tmp_path: Path, seed: int) -> None:
    """Long rows reach over midnight, and what they hide begins a day later."""
    random, rows = Random(seed), {}
    for _ in range(150):
        begin, length = random.randrange(0, 4 * 86_400, 600), random.choice([600, 600, 3600, 90_000])
        source = random.choice("abc")
        rows[source, begin + length] = row(source, begin, begin + length)
    store = store_of(tmp_path, rows.values())
    whole = store.select("scratch", source_order=("c", "a", "b"))
    expected = counted(store, source_order=("c", "a", "b"))
    days = sorted({int(start // 86_400) for _, start, _ in expected})
    listed = []
    for day in days:
        when = whole.extent_us("target_io")
        assert when is not None
        frames = whole.rows_of_days("target_io", {_date(day)}), whole.frame("target_io", _date(day), _date(day))
        same = [f.select("source", "start_us", "epoch_us").collect(backend="pyarrow").to_native() for f in frames]
        assert sorted(map(str, same[0].to_pylist())) == sorted(map(str, same[1].to_pylist()))
        listed += [(r["source"], (r["start_us"] - T0_US) / S, (r["epoch_us"] - T0_US) / S) for r in same[0].to_pylist()]
    assert sorted(listed) == expected
    assert whole.overlapping_rows == len(rows) - len(expected)


def _date(day: int) -> Any:
    from datetime import UTC, datetime, timedelta

    return (datetime.fromtimestamp(T0_US / 1e6, UTC) + timedelta(days=day)).date()
