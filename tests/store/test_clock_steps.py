"""A clock set back inside a capture: what moved is counted once, whatever the clock says; nothing is invented."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from iolens.counters.differences import Baseline, OrderEvidence, Outcome, advance
from iolens.records import Capture, CounterSet, Item, Sample, Samples
from iolens.store import ingest as ingest_module
from iolens.store.order import as_taken
from iolens.store.store import Store
from tests.store.samples import T0, capture, io_sample, sample, size_sample

LARGE = 438 * 10**12  # what the counters had reached before the capture began
SECONDS = (0, 5, 10, 15, 13, 18)  # the clock was set back by 7 s between the fourth and the fifth sample


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "store")


def rows(store: Store, *columns: str, table: str = "target_io") -> list[tuple]:
    frame = store.select("scratch").frame(table).sort("epoch_us").select(*columns).collect("pyarrow").to_native()
    return list(zip(*(frame.column(name).to_pylist() for name in columns), strict=True))


def rising(seconds: tuple[float, ...] = SECONDS, begin: int = LARGE, step: int = 10**9) -> list[Sample]:
    return [io_sample(second, begin + step * number, begin) for number, second in enumerate(seconds)]


def as_series(samples: list[Sample]) -> Samples:
    """The same samples in columns."""
    counters = {
        name: np.array([item.sets[""].counters[name] for item in samples]) for name in samples[0].sets[""].counters
    }
    times, snapshots = (np.array([getattr(item, of) for item in samples]) for of in ("time_us", "snapshot_us"))
    first = samples[0]
    return Samples(first.table, first.filesystem, first.target, times, snapshots, counters, first.labels)


FORMS = {"single": list, "columns": lambda samples: [as_series(samples)]}


@pytest.mark.parametrize("form", FORMS)
def test_what_moved_is_exactly_last_less_first_and_the_step_is_counted(store: Store, form: str) -> None:
    """The row over the step lasts 10 s: two spacings of 5 s passed, though its clock went from 15 to 18."""
    tally = store.ingest([capture(FORMS[form](rising()), "a")], "test")
    assert rows(store, "read_bytes", "duration_s", "after_reset") == [
        (10**9, 5.0, False),
        (10**9, 5.0, False),
        (10**9, 5.0, False),
        (2 * 10**9, 10.0, False),
    ]
    assert (tally.set_back, tally.resets, tally.older, tally.refused) == (1, 0, 0, 0)


@pytest.mark.parametrize("form", FORMS)
def test_a_file_that_was_only_shuffled_is_put_in_order(store: Store, form: str) -> None:
    samples = [io_sample(second, LARGE + 10**8 * second, LARGE) for second in (10, 0, 15, 5)]
    tally = store.ingest([capture(FORMS[form](samples), "a")], "test")
    assert rows(store, "read_bytes", "duration_s") == [(5 * 10**8, 5.0)] * 3
    assert (tally.set_back, tally.older) == (0, 0)


@pytest.mark.parametrize("form", FORMS)
def test_a_reset_after_the_step_counts_what_can_be_known(store: Store, form: str) -> None:
    """Before the reset 3 moved on the old clock and 1 on the new; since it, 7 up to 12 s and 5 more up to 18 s."""
    counters = [(0, 100), (5, 101), (10, 102), (15, 103), (8, 104), (12, 7), (18, 12)]
    samples = [io_sample(second, 10**9 * count, 10**9 * count) for second, count in counters]
    tally = store.ingest([capture(FORMS[form](samples), "a")], "test")
    assert rows(store, "read_bytes", "after_reset") == [(10**9, False)] * 3 + [((1 + 7 + 5) * 10**9, True)]
    assert (tally.resets, tally.set_back) == (1, 2)


def test_a_reset_and_a_step_at_once_are_reported_by_the_start_of_counting(store: Store) -> None:
    """Set back by more than the capture is long: in order of time no counter would fall."""
    before = [io_sample(second, 100 + second, 100, start=T0 - 10**9) for second in (50, 55, 60)]
    after = [io_sample(second, 10 + second, 10, start=T0) for second in (0, 5, 65)]
    tally = store.ingest([capture([*before, *after], "a")], "test")
    assert [row[0] for row in rows(store, "read_bytes")] == [5, 5, 10 + 65]
    assert tally.resets == 1


def test_an_hour_back_loses_resolution_and_not_a_byte(store: Store) -> None:
    seconds = (*range(0, 3600, 5), *range(2, 3620, 5))
    tally = store.ingest([capture(rising(seconds, step=1000), "a")], "test")
    result = rows(store, "read_bytes", "duration_s")
    assert sum(moved for moved, _ in result) == 1000 * (len(seconds) - 1)
    over_the_step = max(result)
    assert over_the_step == (1000 * 720, 3600.0)  # as long as 720 spacings are, not the 2 s of its own clock
    assert tally.set_back == 719


def test_all_tables_of_the_target_follow_the_same_order(store: Store) -> None:
    """The histogram alone would look shuffled: its one counter did not move while the clock was behind."""
    sizes = [size_sample(second, {("read", 4096): 7}) for second in SECONDS]
    store.ingest([capture([item for pair in zip(rising(), sizes, strict=True) for item in pair], "a")], "test")
    ends = [row[0] for row in rows(store, "epoch_us")]
    assert [row[0] for row in rows(store, "epoch_us", table="target_sizes")] == ends


def test_a_step_between_two_parts_of_a_capture_is_carried_from_one_to_the_other(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    for size in range(1, 7):
        monkeypatch.setattr(ingest_module, "ITEMS_PER_PART", size)
        of_size = [replace(item, target=f"scratch-OST{size:04x}") for item in rising()]
        tally = store.ingest([capture(of_size, f"{size} to a part")], "test")
        result = [row[1:] for row in rows(store, "target", "read_bytes", "duration_s") if row[0] == of_size[0].target]
        assert result == [(10**9, 5.0)] * 3 + [(2 * 10**9, 10.0)]
        assert (tally.set_back, tally.older) == (1, 0)


def test_a_shuffled_file_cut_into_parts_is_not_taken_for_a_step(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ingest_module, "ITEMS_PER_PART", 2)
    samples = [io_sample(second, 100 * second, 0) for second in (10, 15, 0, 5)]
    tally = store.ingest([capture(samples, "a")], "test")
    assert (tally.older, tally.set_back) == (2, 0)
    assert [row[0] for row in rows(store, "read_bytes")] == [500]


def segment(number: int, items: list[Item]) -> Capture:
    """A piece of an agent's stream: they are numbered as they were sampled."""
    return Capture(f"segment {number}", f"agent/oss1/run/{number}", lambda: iter(items), numbered=True)


def test_a_step_between_two_segments_of_an_agent_is_no_late_sample(store: Store) -> None:
    """An idle target too: only the numbers of the segments tell that it was sampled later."""
    idle = [io_sample(second, 5, 5, target="OST0001") for second in SECONDS]
    both = [item for pair in zip(rising(), idle, strict=True) for item in pair]
    tally = store.ingest([segment(1, both[:8]), segment(2, both[8:])], "agent")
    assert (tally.set_back, tally.older, tally.resets) == (2, 0, 0)
    result = rows(store, "target", "read_bytes", "duration_s")
    assert [row[1:] for row in result if row[0].endswith("0")][-1] == (2 * 10**9, 10.0)
    assert [row[1:] for row in result if row[0].endswith("1")][-1] == (0, 10.0)


def test_an_earlier_segment_with_a_later_clock_is_late(store: Store) -> None:
    """Its counters lie below those of the next segment, which came first: not a reset of 438 TB."""
    samples = rising()
    tally = store.ingest(
        [segment(2, samples[4:]), segment(1, [replace(samples[3], snapshot_us=(T0 + 60) * 10**6)])], "agent"
    )
    assert (tally.older, tally.resets) == (1, 0)
    assert [row[0] for row in rows(store, "read_bytes")] == [10**9]


def test_what_is_carried_outlives_the_store(store: Store) -> None:
    baseline: Baseline | None = None
    for item in rising()[:5]:
        baseline = advance(baseline, item, evidence=OrderEvidence.AFTER).baseline
    assert baseline is not None
    assert baseline.carry is not None
    again = Baseline.from_stored(
        baseline.time_us, baseline.snapshot_us, baseline.counters_json(), baseline.pending_json()
    )
    assert again == baseline
    step = advance(again, rising()[5], evidence=OrderEvidence.AFTER)
    assert (step.movements[""].moved["read_bytes"], step.duration_s) == (2 * 10**9, 10.0)


def test_a_counter_that_is_not_readable_after_the_step_keeps_what_was_carried() -> None:
    first, second = (sample("target_io", at, {"": CounterSet({"read_bytes": read, "write_bytes": 1})})
                     for at, read in ((10, 100), (5, 130)))  # fmt: skip
    blind = sample("target_io", 11, {"": CounterSet({"write_bytes": 2})})
    last = sample("target_io", 16, {"": CounterSet({"read_bytes": 150, "write_bytes": 2})})
    baseline, moved = None, []
    for item in (first, second, blind, last):
        step = advance(baseline, item, evidence=OrderEvidence.AFTER)
        baseline = step.baseline
        if step.outcome is Outcome.INTERVAL:
            moved.append(dict(step.movements[""].moved))
    assert moved == [{"read_bytes": 30, "write_bytes": 1}, {"read_bytes": 20, "write_bytes": 0}]


histories = st.lists(
    st.tuples(
        st.integers(0, 50),  # what moves until the next sample
        st.sampled_from([0] * 8 + [-3, -7, -12, -40, 30]),  # by how much the clock is set before it
        st.sampled_from([False] * 9 + [True]),  # whether the counters are reset before it
    ),
    min_size=2,
    max_size=25,
)


@pytest.mark.parametrize("form", FORMS)
@settings(derandomize=True, max_examples=150, deadline=None)
@given(moves=histories, has_start=st.booleans(), cut=st.integers(1, 30))
def test_of_any_stream_of_an_agent_all_is_counted_once(form: str, moves, has_start: bool, cut: int) -> None:
    """Steps, resets and cuts into segments: the sum is what the counters showed, and no row is negative."""
    truth, samples = stream(moves, has_start=has_start and form == "single")
    baseline, total = None, 0
    for part in (samples[:cut], samples[cut:]):
        for item in as_taken(FORMS[form](part) if part else [], trusted=True):
            baseline, moved = applied(baseline, item)
            total += moved
    waiting = baseline.carry.moved[""].moved.get("read_bytes", 0) if baseline is not None and baseline.carry else 0
    assert total + waiting == truth


@settings(derandomize=True, max_examples=300, deadline=None)
@given(moves=histories)
def test_of_any_file_without_a_reset_all_is_counted_once(moves) -> None:
    """Without the agent's numbers the counters alone tell the order."""
    truth, samples = stream([(moved, step, False) for moved, step, _ in moves], has_start=False)
    baseline, total = None, 0
    for item in as_taken(samples):
        baseline, moved = applied(baseline, item)
        total += moved
    waiting = baseline.carry.moved[""].moved.get("read_bytes", 0) if baseline.carry else 0
    assert total + waiting == truth


def stream(moves, *, has_start: bool) -> tuple[int, list[Sample]]:
    """Samples of a target whose clock is set and whose counters are reset now and then, and what they show to move."""
    clock, count, began, truth, samples = 1000.0, 1000, 1, 0, []
    for number, (moved, step, reset) in enumerate(moves):
        clock += 5.003 + step
        before, count = count, (0 if reset else count) + moved
        began += 10_000_000 * reset
        is_seen = reset and (has_start or count < before)
        truth += 0 if not number else count if is_seen else count - before
        counters = CounterSet({"read_bytes": count, "write_bytes": count}, began if has_start else None)
        samples.append(sample("target_io", clock, {"": counters}))
    return truth, samples


def applied(baseline: Baseline | None, item: Item) -> tuple[Baseline, int]:
    from iolens.store.counter_series import advance_series

    if isinstance(item, Sample):
        step = advance(baseline, item, evidence=OrderEvidence.AFTER)
        steps, stretches, after = [step], [], step.baseline
    else:
        done = advance_series(baseline, item, evidence=OrderEvidence.AFTER)
        steps, stretches, after = [step for _, step in done.steps], done.stretches, done.baseline
    moved = [step.movements[""].moved["read_bytes"] for step in steps if step.outcome is Outcome.INTERVAL]
    moved += [int(value) for stretch in stretches for value in stretch.moved["read_bytes"]]
    assert min(moved, default=0) >= 0
    return after, sum(moved)
