"""Covered time, counted tick by tick, and which targets should have reported."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import iolens
from iolens.analyses.results import Coverage
from iolens.analyses.utilization.analysis import Utilization
from iolens.schema import DIRECTIONS, SIZE_BINS, size_column
from iolens.store.rollup import roll_up
from iolens.store.store import Store
from iolens.units import from_epoch_us
from tests.analyses.load_rows import rows_of, spider
from tests.analyses.telemetry import T0_US, TICK_US, made_up, made_up_metadata, table_of
from tests.soak import IS_SOAK

DAY_TICKS = 86_400_000_000 // TICK_US
NO_COUNTS = {size_column(direction, size): 0 for direction in DIRECTIONS for size in SIZE_BINS}


def size_rows(target: int, first_tick: int, lengths: list[int]) -> list[dict]:
    """`target_sizes` rows of intervals of so many ticks, one after the other."""
    rows, start = [], T0_US + first_tick * TICK_US
    for length in lengths:
        time = start + length * TICK_US
        rows.append({
            "time": time, "start": start, "duration_s": (time - start) / 1e6, "date": start // 86_400_000_000,
            "filesystem": "scratch", "source": "made-up", "target": f"scratch-OST{target:04x}", "target_kind": "ost",
            "after_reset": False, **NO_COUNTS, "read_ios_outside": 0, "write_ios_outside": 0,
        })  # fmt: skip
        start = time
    return rows


def coverage_of(rows: list[dict], first: int | None = None, last: int | None = None) -> Coverage:
    """Of the window from tick to tick."""
    window = {
        name: None if tick is None else from_epoch_us(T0_US + tick * TICK_US)
        for name, tick in (("since", first), ("until", last))
    }
    result = iolens.utilization(target_sizes=table_of("target_sizes", rows), **window)
    assert isinstance(result, Utilization)
    return result.coverage


def ticks_covered(rows: list[dict], first: int, last: int) -> int:
    """Brute force: an interval of one tick covers it, a longer one only its last; what is outside does not count."""
    covered = set()
    for row in rows:
        start, end = ((row[name] - T0_US) // TICK_US for name in ("start", "time"))
        if first <= start < last and end - 1 < last:
            covered.add((row["target"], end - 1))
    return len(covered)


@settings(derandomize=True, deadline=None, max_examples=60 if IS_SOAK else 30)
@given(
    # one tick is the commonest interval of every target, as it is where samples are missed at random
    missed=st.lists(st.lists(st.integers(2, 30_000), max_size=9), min_size=1, max_size=3),
    order=st.randoms(use_true_random=False),
    starts=st.lists(st.integers(0, 200), min_size=3, max_size=3),
    window=st.tuples(st.integers(0, 400), st.integers(1, 60_000)),
)
def test_coverage_is_the_share_of_ticks_counted_one_by_one(missed, order, starts, window) -> None:
    rows = []
    for target, long in enumerate(missed):
        lengths = [1] * (11 * len(long) + 20) + long
        order.shuffle(lengths)
        rows += size_rows(target, starts[target], lengths)
    first, last = window[0], window[0] + window[1]
    inside = {row["target"] for row in rows if first <= (row["start"] - T0_US) // TICK_US < last}
    assume(len(inside) == len(missed))
    shares = {target: [row for row in rows if row["target"] == target] for target in inside}
    assume(all(_commonest_is_one_tick(mine, first, last) for mine in shares.values()))
    result = coverage_of(rows, first, last)
    assert result.complete_pct is not None
    assert 0 <= result.complete_pct <= 100
    expected = 100 * ticks_covered(rows, first, last) / (len(inside) * (last - first))
    assert result.complete_pct == pytest.approx(expected, rel=1e-9, abs=1e-9)
    for line in result.per_target:
        assert line.hours * 720 == pytest.approx(ticks_covered(shares[line.target], first, last), abs=1e-6)
        assert line.hours + line.missing_hours == pytest.approx(result.hours_window)


def _commonest_is_one_tick(rows: list[dict], first: int, last: int) -> bool:
    starts = [(row["start"] - T0_US) // TICK_US for row in rows]
    chosen = [row["time"] - row["start"] for row, start in zip(rows, starts, strict=True) if first <= start < last]
    return chosen.count(TICK_US) > sum(item != TICK_US for item in chosen)


def test_a_long_gap_is_not_covered() -> None:
    """Half an hour of samples, ten hours without, half an hour of samples: one hour and a tick of eleven."""
    result = coverage_of(size_rows(0, 0, [1] * 360 + [7200] + [1] * 360))
    assert result.hours_window == 11
    assert result.complete_pct == pytest.approx(100 * 721 / 7920)
    assert result.missed_samples == 7199
    assert result.per_target[0].missing_hours == pytest.approx(11 - 721 / 720)


def test_what_is_missed_is_counted_in_the_whole_window() -> None:
    """One target has 50 of 100 ticks, the other misses two inside and the last ten."""
    rows = size_rows(0, 100, [1] * 50) + size_rows(1, 100, [1] * 40 + [3] + [1] * 47)
    assert coverage_of(rows, 100, 200).missed_samples == 50 + 2 + 10
    assert coverage_of(rows, 100).missed_samples == 40 + 2  # up to the last sample of any
    assert coverage_of(rows, 0, 200).missed_samples == 200 + 62


def test_an_interval_beyond_the_end_of_the_window_counts_inside_it_only() -> None:
    """The last interval starts a tick before the end of the window and lasts for eight."""
    assert coverage_of(size_rows(0, 0, [1] * 49 + [8]), 0, 50).complete_pct == pytest.approx(98)
    assert coverage_of(size_rows(0, 0, [1] * 60), 0, 50).complete_pct == pytest.approx(100)


def test_a_clock_that_runs_fast_does_not_cover_more_than_all() -> None:
    rows = [{**row, "duration_s": 5.4} for row in size_rows(0, 0, [1] * 100)]
    assert coverage_of(rows).complete_pct == 100


def test_a_day_sampled_less_often_on_purpose_is_covered() -> None:
    """5 s on the first day, a minute on the second: both are whole."""
    result = coverage_of(size_rows(0, 0, [1] * DAY_TICKS + [12] * 1440))
    assert (result.complete_pct, result.missed_samples) == (pytest.approx(100), 0)


def test_a_rollup_covers_what_its_raw_rows_do(tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.append("target_sizes", table_of("target_sizes", size_rows(0, 0, [1] * 720) + size_rows(0, 1440, [1] * 720)))
    roll_up(store)
    with iolens.open(str(tmp_path)) as opened:
        for resolution in ("raw", "60s", "1h"):
            result = opened.utilization(resolution=resolution).coverage
            assert (result.hours_window, result.complete_pct) == (3, pytest.approx(100 * 2 / 3)), resolution


def test_metadata_targets_are_counted_tick_by_tick_too() -> None:
    rows = made_up_metadata(3, 400, 2, missing=0.3)
    result = iolens.metadata(metadata_ops=table_of("metadata_ops", rows)).coverage
    assert result.complete_pct == pytest.approx(100 * len(rows) / 800)
    assert result.missed_samples == 800 - len(rows)
    until = from_epoch_us(T0_US + 500 * TICK_US)
    wider = iolens.metadata(metadata_ops=table_of("metadata_ops", rows), until=until).coverage
    assert wider.missed_samples == 1000 - len(rows)


def test_sums_over_time_do_not_depend_on_how_intervals_were_grouped() -> None:
    """Rates of a bucket with long and short intervals are those of all of it."""
    rows = made_up_metadata(3, 400, 1, missing=0.3)
    result = iolens.metadata(metadata_ops=table_of("metadata_ops", rows), every_s=3600.0)
    assert result.series is not None
    rate = result.series.ops_per_s["getattr"][0]
    assert rate == pytest.approx(sum(row["getattr"] for row in rows) / sum(row["duration_s"] for row in rows))


def test_imbalance_expects_only_targets_of_the_kind_it_compares(tmp_path: Path) -> None:
    """MDTs and the MGS report operations, not bytes; they do not lack."""
    store = Store(tmp_path)
    part = made_up(1, 60, 3)
    for name in ("target_io", "target_sizes"):
        store.append(name, part.table(name))
    metadata = made_up_metadata(1, 60, 2)
    store.append("metadata_ops", table_of("metadata_ops", [*metadata, {**metadata[0], "target": "MGS"}]))
    late = [{**row, "target": "scratch-OST0009", **_days_later(row, 3)} for row in part.io[:5]]
    store.append("target_io", table_of("target_io", late))
    with iolens.open(str(tmp_path)) as opened:
        result = opened.imbalance(until=from_epoch_us(T0_US + 86_400_000_000)).coverage
        fsu = opened.utilization(until=from_epoch_us(T0_US + 86_400_000_000)).coverage
    assert (result.targets_known, result.targets_reporting, result.missing_targets) == (4, 3, ["scratch-OST0009"])
    assert (fsu.targets_known, fsu.targets_reporting, fsu.missing_targets) == (4, 3, ["scratch-OST0009"])


def _days_later(row: dict, days: int) -> dict:
    return {name: row[name] + days * 86_400_000_000 for name in ("time", "start")} | {"date": row["date"] + days}


def test_controllers_do_not_wait_for_osts(tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.append("target_io", table_of("target_io", rows_of(spider(ticks=50, targets=6))))
    store.append("target_sizes", made_up(1, 20, 2).table("target_sizes"))
    with iolens.open(str(tmp_path)) as opened:
        result = opened.imbalance().coverage
    assert (result.targets_known, result.missing_targets) == (6, [])
