"""Captures into the store: exactly what moved, exactly once, whatever is sent again, late or cut off."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from iolens.records import CounterSet, Problem, Row
from iolens.store import ingest as ingest_module
from iolens.store.store import Store
from iolens.store.tables import Tables
from tests.store.samples import T0, capture, io_sample, sample, size_sample


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "store")


def rows(store: Store, table: str, *columns: str) -> list[tuple]:
    names = columns or ("epoch_us", "read_bytes")
    frame = store.select("scratch").frame(table).select(*names).collect("pyarrow").to_native()
    return sorted(zip(*(frame.column(name).to_pylist() for name in names), strict=True))


def total(store: Store, column: str = "read_bytes") -> int:
    return sum(row[0] for row in rows(store, "target_io", column))


def test_two_snapshots_become_one_interval(store: Store) -> None:
    tally = store.ingest([capture([io_sample(0, 0, 0), io_sample(5, 8192, 4096)], "a")], "test")
    assert (tally.samples, tally.baselines, tally.rows["target_io"]) == (2, 1, 1)
    assert rows(store, "target_io", "duration_s", "read_bytes", "write_bytes", "read_ops") == [(5.0, 8192, 4096, 2)]


def test_snapshots_may_arrive_in_separate_calls(store: Store) -> None:
    for second, read in ((0, 0), (5, 100), (10, 300)):
        store.ingest([capture([io_sample(second, read, 0)], f"at {second}")], "test")
    assert [row[1] for row in rows(store, "target_io")] == [100, 200]


def test_the_same_capture_twice_adds_nothing(store: Store) -> None:
    item = capture([io_sample(0, 0, 0), io_sample(5, 100, 0)], "a")
    store.ingest([item], "test")
    tally = store.ingest([item, item], "test")
    assert (tally.already_present, tally.rows) == (2, {})
    assert total(store) == 100


def test_a_log_that_has_grown_may_be_loaded_again(store: Store) -> None:
    stream = [io_sample(5 * n, 100 * n, 0) for n in range(6)]
    store.ingest([capture(stream[:3], "short")], "test")
    tally = store.ingest([capture(stream, "grown")], "test")
    assert (tally.repeated, tally.older) == (3, 0)
    assert total(store) == 500


def test_samples_of_one_call_may_come_in_any_order(store: Store) -> None:
    shuffled = [io_sample(second, 10 * second, 0) for second in (10, 0, 15, 5)]
    store.ingest([capture(shuffled, "a")], "test")
    assert total(store) == 150


def test_a_sample_that_comes_too_late_is_refused_and_counted(store: Store) -> None:
    store.ingest([capture([io_sample(0, 0, 0), io_sample(10, 300, 0)], "a")], "test")
    tally = store.ingest([capture([io_sample(5, 100, 0)], "late")], "test")
    assert tally.older == 1
    assert total(store) == 300


def test_rebuild_takes_late_samples_and_replaces_the_interval_they_divide(store: Store) -> None:
    store.ingest([capture([io_sample(0, 0, 0), io_sample(10, 300, 0), io_sample(15, 400, 0)], "a")], "test")
    again = [io_sample(0, 0, 0), io_sample(5, 100, 0), io_sample(10, 300, 0)]
    store.ingest([capture(again, "b")], "test", rebuild=True)
    assert [row[1] for row in rows(store, "target_io")] == [100, 200, 100]
    store.ingest([capture([io_sample(20, 450, 0)], "c")], "test")
    assert total(store) == 450


def test_rebuild_never_counts_twice_across_an_edge(store: Store) -> None:
    store.ingest([capture([io_sample(0, 0, 0), io_sample(10, 300, 0)], "a")], "test")
    store.ingest([capture([io_sample(5, 100, 0), io_sample(10, 300, 0)], "b")], "test", rebuild=True)
    assert total(store) == 300


def test_a_stream_with_everything_in_it_gives_exactly_what_moved(store: Store) -> None:
    """A reset, a missed sample, a failover, a duplicate and an out-of-order sample."""
    stream = [
        io_sample(0, 1000, 1000, start=1),
        io_sample(5, 1500, 1100, start=1),  # 500
        io_sample(5, 1500, 1100, start=1),  # duplicate
        io_sample(15, 2500, 1200, start=1),  # 1000 over a missed sample
        io_sample(20, 40, 10, start=20_000_000),  # reset: 40 since
        io_sample(30, 240, 30, start=20_000_000),  # arrives before …
        io_sample(25, 140, 20, start=20_000_000),  # … this one: 100 and 100
        io_sample(35, 7, 3, start=33_000_000),  # failover: 7 on the other server
        io_sample(40, 107, 3, start=33_000_000),  # 100
    ]
    tally = store.ingest([capture(stream, "a")], "test")
    assert [row[1] for row in rows(store, "target_io")] == [500, 1000, 40, 100, 100, 7, 100]
    assert (tally.repeated, tally.resets, tally.older) == (1, 2, 0)
    assert min(row[0] for row in rows(store, "target_io", "write_bytes")) >= 0


def test_a_row_belongs_to_the_utc_day_in_which_its_interval_starts(store: Store) -> None:
    midnight = 86400 - T0 % 86400
    store.ingest(
        [capture([io_sample(midnight - 5, 0, 0), io_sample(midnight, 1, 0), io_sample(midnight + 5, 2, 0)], "a")], "t"
    )
    days = [str(row[0]) for row in rows(store, "target_io", "date")]
    assert days == ["2020-09-13", "2020-09-14"]


def test_jobs_and_histograms_keep_only_what_moved(store: Store) -> None:
    jobs = [
        sample(
            "job_io", 5 * n, {"7@host": CounterSet({"read_bytes": n, "open": 0}), "idle": CounterSet({"read_bytes": 3})}
        )
        for n in range(3)
    ]
    bins = [
        sample("target_histograms", 5 * n, {"io_time_ms": CounterSet({"read:1": n, "write:2": 4})}) for n in range(3)
    ]
    store.ingest([capture([*jobs, *bins], "a")], "test")
    assert rows(store, "job_io", "job_id", "read_bytes") == [("7@host", 1), ("7@host", 1)]
    assert (
        rows(store, "target_histograms", "histogram", "direction", "bin", "count") == [("io_time_ms", "read", 1, 1)] * 2
    )


def test_finished_rows_that_are_present_are_dropped_and_counted(store: Store) -> None:
    def fullness(second: int) -> Row:
        return Row(
            "target_capacity",
            {
                "time": (T0 + second) * 1_000_000,
                "filesystem": "scratch",
                "target": "scratch-OST0000",
                "used_bytes": second,
            },
        )

    store.ingest([capture([io_sample(0, 0, 0), fullness(0), fullness(0)], "a")], "test")
    tally = store.ingest([capture([fullness(0), fullness(60)], "b")], "test")
    assert tally.repeated == 1
    assert rows(store, "target_capacity", "used_bytes") == [(0,), (60,)]


def test_problems_are_counted_kept_and_never_stop_the_rest(store: Store) -> None:
    items = [io_sample(0, 0, 0), Problem("stats", 7, "not a number"), io_sample(5, 9, 0)]
    tally = store.ingest([capture(items, "a")], "test")
    assert (tally.refused, str(tally.problems[0])) == (1, "stats:7: not a number")
    assert total(store) == 9


def test_a_capture_that_breaks_off_keeps_what_was_good(store: Store) -> None:
    def items():
        yield io_sample(0, 0, 0)
        yield io_sample(5, 9, 0)
        raise OSError("short read")

    tally = store.ingest([dataclasses.replace(capture([], "a"), items=items)], "test")
    assert tally.refused == 1
    assert total(store) == 9


def test_streams_longer_than_a_part_are_cut_into_parts(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ingest_module, "ITEMS_PER_PART", 7)
    stream = [io_sample(5 * n, 100 * n, 0) for n in range(40)]
    store.ingest([capture(stream, "long")], "test")
    assert total(store) == 3900
    assert len(rows(store, "target_io")) == 39
    assert store.ingest([capture(stream, "long")], "test").already_present == 1


class Crash(Exception):
    """A power cut in a test."""


@pytest.mark.parametrize("survives", range(6))
def test_a_batch_cut_off_at_any_commit_is_completed_by_sending_it_again(
    store: Store, monkeypatch: pytest.MonkeyPatch, survives: int
) -> None:
    """Commits: baselines, target_io, target_sizes, batches; the process dies before the one after `survives`."""
    monkeypatch.setattr(ingest_module, "ITEMS_PER_PART", 6)
    both = [[io_sample(5 * n, 100 * n, 0), size_sample(5 * n, {("read", 4096): n})] for n in range(8)]
    entry = capture([item for pair in both for item in pair], "cut")
    store.ingest([capture([io_sample(-5, 0, 0), size_sample(-5, {})], "before")], "test")
    real, done = Tables.commit, []

    def commit(self, *args, **kwargs):
        if len(done) == survives:
            raise Crash
        done.append(1)
        return real(self, *args, **kwargs)

    monkeypatch.setattr(Tables, "commit", commit)
    with pytest.raises(Crash):
        store.ingest([entry], "test")
    monkeypatch.setattr(Tables, "commit", real)
    store.ingest([capture([io_sample(100, 5000, 0), size_sample(100, {("read", 4096): 90})], "meanwhile")], "test")
    store.ingest([entry], "test")
    final = [row[1] for row in rows(store, "target_io")]
    assert sum(final) == 5000
    assert min(final) >= 0
    assert len(rows(store, "target_io")) == len({row[0] for row in rows(store, "target_io")})
    assert sum(row[0] for row in rows(store, "target_sizes", "read_ios_4096")) == 90


def test_a_path_that_is_no_text_is_written_down_escaped(store: Store) -> None:
    place = b"/scratch/caf\xe9".decode("utf-8", "surrogateescape")
    item = capture([io_sample(0, 0, 0), io_sample(5, 100, 0), Problem(place, 3, "not understood")], "a")
    store.ingest([dataclasses.replace(item, origin=place)], "test")
    handle = store.tables.load("batches")
    assert handle is not None
    result = handle.to_pyarrow_table(columns=["origin", "problems"]).to_pylist()[0]
    assert result == {"origin": "/scratch/caf\\xe9", "problems": '["/scratch/caf\\\\xe9:3: not understood"]'}
