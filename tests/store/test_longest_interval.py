"""Two dumps that are years apart are no interval: what moved between them is reported, and has no place in time."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from iolens.config import FileSystemConfig
from iolens.counters.ceilings import RateCeilings
from iolens.counters.differences import Outcome, advance
from iolens.records import CounterSet, Samples
from iolens.store.store import Store
from tests.store.samples import T0, capture, io_sample, sample

HOUR, DAY, YEAR = 3600, 86_400, 365 * 86_400


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "store")


def read(store: Store) -> list[tuple[int, float]]:
    frame = store.select("scratch").frame("target_io").sort("epoch_us").select("read_bytes", "duration_s")
    rows = frame.collect("pyarrow").to_native()
    return list(zip(rows.column("read_bytes").to_pylist(), rows.column("duration_s").to_pylist(), strict=True))


def test_dumps_four_years_apart_are_two_baselines_and_what_moved_is_reported(store: Store) -> None:
    samples = [io_sample(0, 10**9, 0), io_sample(4 * YEAR, 10**12, 4096), io_sample(4 * YEAR + 5, 10**12 + 7, 4096)]
    tally = store.ingest([capture([item], str(number)) for number, item in enumerate(samples)], "test")
    assert read(store) == [(7, 5.0)]
    assert (tally.apart, tally.baselines, tally.refused, tally.resets) == (1, 1, 0, 0)
    assert [note.reason for note in tally.notes] == [
        "target_io of scratch-OST0000: 999,000,000,000 bytes read, 4,096 bytes written from 2020-09-13T12:26:40Z to"
        " 2024-09-12T12:26:40Z, longer than longest_interval: in no interval; the counters begin anew here"
    ]


def test_what_was_not_readable_before_the_pause_is_no_movement_after_it() -> None:
    """A histogram that was seen years ago, and again now, has not moved all of it in the last five seconds."""
    sets = [{"a": 5, "b": 7}, {"a": 9}, {"a": 9, "b": 10**6}]
    seconds = (0, YEAR, YEAR + 5)
    baseline, steps = None, []
    for second, counters in zip(seconds, sets, strict=True):
        named = {name: CounterSet({"read:4": count}) for name, count in counters.items()}
        steps.append(advance(baseline, sample("target_histograms", second, named), RateCeilings().of("scratch", "ost")))
        baseline = steps[-1].baseline
    assert [step.outcome for step in steps] == [Outcome.BASELINE, Outcome.APART, Outcome.INTERVAL]
    assert dict(steps[-1].movements["a"].moved) == {"read:4": 0}
    assert "b" not in steps[-1].movements


@pytest.mark.parametrize(("seconds", "rows"), [(25 * HOUR, 1), (27 * HOUR, 0)])
def test_a_daily_dump_may_be_an_hour_late(store: Store, seconds: int, rows: int) -> None:
    store.ingest([capture([io_sample(0, 0, 0), io_sample(seconds, 4096, 0)], "a")], "test")
    assert len(read(store)) == rows


@pytest.mark.parametrize(("longest_s", "moved"), [(None, []), (7 * DAY, [(20, 2.0 * DAY)]), (HOUR, [])])
def test_the_longest_interval_is_configured(store: Store, longest_s: float | None, moved: list) -> None:
    ceilings = RateCeilings.of_config({"scratch": FileSystemConfig(longest_interval_s=longest_s)})
    store.ingest([capture([io_sample(0, 0, 0), io_sample(2 * DAY, 20, 0)], "a")], "test", ceilings=ceilings)
    assert read(store) == moved


def test_a_series_in_columns_has_the_same_limit(store: Store) -> None:
    seconds = np.array([0, 5, 10, 10 + 3 * DAY, 15 + 3 * DAY])
    times = (T0 + seconds) * 10**6
    counters = {name: np.arange(5) * 100 for name in ("read_bytes", "write_bytes")}
    series = Samples("target_io", "scratch", "scratch-OST0000", times, times, counters, {"target_kind": "ost"})
    tally = store.ingest([capture([series], "a")], "test")
    assert read(store) == [(100, 5.0), (100, 5.0), (100, 5.0)]
    assert tally.apart == 1


def test_a_job_of_a_week_has_no_such_limit() -> None:
    """Counters at the beginning and the end of a job are of one job, however long it runs."""
    first, last = io_sample(0, 0, 0), io_sample(7 * DAY, 4096, 0)
    assert advance(advance(None, first).baseline, last).outcome is Outcome.INTERVAL


def test_samples_of_days_that_come_late_fill_the_pause(store: Store) -> None:
    """Brought by a rebuild: then there is no pause, and what moved in it has its place."""
    days = [io_sample(number * DAY / 2, 1000 * number, 0) for number in range(11)]
    store.ingest([capture([*days[:2], *days[9:]], "a")], "test")
    assert sum(moved for moved, _ in read(store)) == 2000
    store.ingest([capture(days[1:10], "late")], "test", rebuild=True)
    assert read(store) == [(1000, DAY / 2)] * 10
