"""A series at once is the same as its samples one by one, whatever the counters do."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from iolens.counters.differences import Baseline, Outcome, advance
from iolens.records import CounterSet, Sample, Samples
from iolens.store.counter_series import advance_series
from iolens.store.store import Store
from tests.store.samples import T0, capture

VALUES = st.lists(
    st.tuples(
        st.integers(0, 3),  # seconds since the sample before: 0 is a repeated clock
        st.one_of(st.none(), st.integers(0, 50)),
        st.one_of(st.none(), st.integers(0, 50)),
    ),
    max_size=12,
)


def series_of(values: list[tuple[int, int | None, int | None]]) -> Samples:
    times = T0 + np.cumsum([step for step, _, _ in values], dtype=np.int64)
    columns = {
        name: np.ma.array(
            [0 if item is None else item for item in column], mask=[item is None for item in column], dtype=np.int64
        )
        for name, column in zip(("read_bytes", "write_bytes"), list(zip(*values, strict=True))[1:], strict=True)
    }
    return Samples("target_io", "scratch", "OST0000", times * 1_000_000, times * 1_000_000 + 7, columns)


def one_by_one(series: Samples) -> list[Sample]:
    return [
        Sample(
            series.table,
            series.filesystem,
            series.target,
            int(series.time_us[n]),
            int(series.snapshot_us[n]),
            {
                "": CounterSet(
                    {k: int(v[n]) for k, v in series.counters.items() if v[n] is not np.ma.masked}, complete=False
                )
            },
        )
        for n in range(len(series))
    ]


@given(values=VALUES, cumulative=st.booleans(), start=st.one_of(st.none(), st.integers(0, 60)))
def test_a_series_is_its_samples_one_by_one(values, cumulative: bool, start: int | None) -> None:
    if not values:
        return
    if cumulative:  # mostly plain, as real counters are
        total = [0, 0]
        for n, (step, *both) in enumerate(values):
            total = [old + (item or 0) for old, item in zip(total, both, strict=True)]
            values[n] = (step, *total)
    series = series_of(values)
    before = None
    if start is not None:
        before = Baseline(
            (T0 - 1) * 10**6, (T0 - 1) * 10**6, {"": CounterSet({"read_bytes": start, "write_bytes": start})}
        )
    expected, baseline = [], before
    for sample in one_by_one(series):
        step = advance(baseline, sample)
        if step.outcome in (Outcome.BASELINE, Outcome.INTERVAL):
            baseline = step.baseline
        if step.outcome is Outcome.INTERVAL:
            expected.append((step.time_us, step.start_us, step.duration_s, dict(step.movements.get("").moved)))
    done = advance_series(before, series)
    result = [
        (step.time_us, step.start_us, step.duration_s, dict(step.movements.get("").moved))
        for _, step in done.steps
        if step.outcome is Outcome.INTERVAL
    ]
    for stretch in done.stretches:
        for n in range(len(stretch)):
            moved = {name: int(column[n]) for name, column in stretch.moved.items()}
            result.append((int(stretch.time_us[n]), int(stretch.start_us[n]), float(stretch.duration_s[n]), moved))
    assert sorted(result, key=lambda entry: entry[:3]) == sorted(expected, key=lambda value: value[:3])
    assert done.baseline == baseline
    assert done.moved == (baseline is not before)


def test_a_counter_never_seen_before_is_only_a_baseline() -> None:
    """An upgrade that starts to report writes has not written them all in one interval."""
    done = advance_series(None, series_of([(5, 10, None), (5, 20, 10**9), (5, 30, 10**9 + 7)]))
    moved = [dict(step.movements[""].moved) for _, step in done.steps if step.movements]
    assert moved == [{"read_bytes": 10}]
    assert [stretch.moved["write_bytes"].tolist() for stretch in done.stretches] == [[7]]


def test_overlapping_captures_of_one_call_repeat_each_other(tmp_path: Path) -> None:
    values = [(5, 100 * n, 7 * n) for n in range(20)]
    captures = [capture([series_of(values)], "a"), capture([series_of(values[:10])], "b")]
    tally = Store(tmp_path / "store").ingest(captures, "test")
    assert (tally.repeated, tally.older) == (10, 0)


def test_plain_counters_are_differenced_in_one_stretch() -> None:
    done = advance_series(None, series_of([(1, 10 * n, n) for n in range(100)]))
    assert [len(stretch) for stretch in done.stretches] == [99]
    assert len(done.steps) == 1


@pytest.mark.parametrize("cut", [1, 40, 99])
def test_a_series_in_two_captures_gives_the_same_store(tmp_path: Path, cut: int) -> None:
    values = [(5, 100 * n, 7 * n) for n in range(100)]
    values[60:] = [(5, 100 * n, 7 * n) for n in range(40)]  # reset
    whole = series_of(values)

    def part(of: slice) -> Samples:
        columns = {name: column[of] for name, column in whole.counters.items()}
        return Samples("target_io", "scratch", "OST0000", whole.time_us[of], whole.snapshot_us[of], columns)

    once, twice = Store(tmp_path / "once"), Store(tmp_path / "twice")
    one_tally = once.ingest([capture([whole], "a")], "test")
    two_tally = twice.ingest([capture([part(slice(cut))], "a"), capture([part(slice(cut, None))], "b")], "test")
    assert one_tally.resets == two_tally.resets == 1
    assert one_tally.samples == 100
    tables = [store.select("scratch").frame("target_io").collect("pyarrow").to_native() for store in (once, twice)]
    assert tables[0].sort_by("time").drop_columns(["source"]) == tables[1].sort_by("time").drop_columns(["source"])
    assert sum(tables[0].column("read_bytes").to_pylist()) == 5900 + 3900


def test_a_grown_series_adds_only_what_is_new(tmp_path: Path) -> None:
    values = [(5, 100 * n, 7 * n) for n in range(100)]
    store = Store(tmp_path / "store")
    store.ingest([capture([series_of(values[:50])], "short")], "test")
    tally = store.ingest([capture([series_of(values)], "grown")], "test")
    assert (tally.repeated, tally.older, tally.rows["target_io"]) == (50, 0, 50)
