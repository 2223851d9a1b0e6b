"""Captures sent again, together, in parts or after a cut: what the marks in the log must get right."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from iolens.records import Capture, Item, Row
from iolens.store import ingest as ingest_module
from iolens.store.maintenance import compact_store
from iolens.store.store import Store
from iolens.store.tables import Tables
from tests.store.samples import T0, capture, io_sample, size_sample


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "store")


def reads(store: Store, target: str = "scratch-OST0000") -> list[int]:
    """Bytes read by interval, in time order."""
    frame = store.select("scratch", targets=[target]).frame("target_io").sort("epoch_us").select("read_bytes")
    return frame.collect(backend="pyarrow").to_native().column("read_bytes").to_pylist()


def agent(sequence: int, items: list[Item]) -> Capture:
    return dataclasses.replace(capture(items, "spool"), identity="agent/oss1", sequence=sequence)


class Cut(Exception):
    """A power cut in a test."""


def cut_off(monkeypatch: pytest.MonkeyPatch, store: Store, captures: list[Capture], before_table: str) -> None:
    """Load captures, but die before the first commit to a table."""
    real = Tables.commit

    def commit(self: Tables, handle: object, name: str, *args: object, **options: object) -> list[str]:
        if name == before_table:
            raise Cut
        return real(self, handle, name, *args, **options)

    with monkeypatch.context() as patch:
        patch.setattr(Tables, "commit", commit)
        with pytest.raises(Cut):
            store.ingest(captures, "test")


def test_the_same_content_twice_in_one_call_counts_once(store: Store) -> None:
    item = capture([io_sample(0, 0, 0), io_sample(5, 100, 0)], "a")
    tally = store.ingest([item, dataclasses.replace(item, origin="a copy")], "test")
    assert (tally.captures, tally.already_present) == (2, 1)
    assert reads(store) == [100]


def test_segments_of_one_agent_that_came_in_one_call_are_all_known_when_sent_again(store: Store) -> None:
    segments = [agent(n, [io_sample(5 * n, 100 * n, 0)]) for n in range(1, 5)]
    assert store.ingest(segments, "test").already_present == 0
    assert store.ingest(segments, "test").already_present == 4
    assert reads(store) == [100, 100, 100]


def test_segments_of_one_agent_that_were_cut_off_together_are_completed(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    segments = [agent(n, [io_sample(5 * n, 100 * n, 0)]) for n in range(1, 5)]
    cut_off(monkeypatch, store, segments, "target_io")
    store.ingest(segments, "test")
    assert reads(store) == [100, 100, 100]


def test_a_target_that_brought_nothing_new_brings_nothing_when_the_capture_is_completed(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = [io_sample(second, 20 * second, 0, target="OST0001") for second in (0, 5, 10)]
    store.ingest([capture(known, "known")], "test")
    mixed = capture([*known[:2], io_sample(0, 0, 0), io_sample(5, 100, 0)], "mixed")
    cut_off(monkeypatch, store, [mixed], "target_io")
    store.ingest([mixed], "test")
    assert reads(store) == [100]
    assert reads(store, "scratch-OST0001") == [100, 100]


def test_a_capture_that_was_cut_off_is_completed_even_after_others_and_a_compaction(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.ingest([capture([io_sample(0, 0, 0), size_sample(0, {})], "first")], "test")
    late = capture([io_sample(5, 100, 0), size_sample(5, {("read", 4096): 3})], "cut")
    cut_off(monkeypatch, store, [late], "target_io")
    for n in range(2, 5):
        store.ingest([capture([io_sample(5 * n, 100 * n, 0)], f"after {n}")], "test")
    compact_store(store)
    store.ingest([capture([io_sample(25, 600, 0)], "last")], "test")
    compact_store(store)
    store.ingest([late], "test")
    assert reads(store) == [100, 100, 100, 100, 200]


def test_compaction_forgets_baselines_that_no_capture_can_need_again(store: Store) -> None:
    for n in range(6):
        store.ingest([capture([io_sample(5 * n, 100 * n, 0)], f"{n}")], "test")
    compact_store(store)
    baselines = store.tables.load("baselines")
    assert baselines is not None
    assert baselines.to_pyarrow_table().num_rows == 1
    store.ingest([capture([io_sample(30, 600, 0)], "next")], "test")
    assert reads(store) == [100] * 6


def finished(tick: int, read_bytes: int) -> Row:
    time_us = (T0 + 5 * tick) * 1_000_000
    head = {"time": time_us, "start": time_us - 5_000_000, "duration_s": 5.0, "filesystem": "scratch"}
    return Row("target_io", {**head, "target": "scratch-OST0000", "read_bytes": read_bytes})


def test_finished_intervals_of_a_log_that_has_grown_count_once(store: Store) -> None:
    first = [io_sample(0, 0, 0, target="OST0001")]  # makes the file system known to the store
    store.ingest([capture([*first, finished(1, 10), finished(2, 20)], "short")], "test")
    tally = store.ingest([capture([finished(1, 10), finished(2, 20), finished(3, 30)], "grown")], "test")
    assert (tally.repeated, tally.rows["target_io"]) == (2, 1)
    assert reads(store) == [10, 20, 30]


def test_a_rebuild_replaces_finished_intervals_too(store: Store) -> None:
    first = [io_sample(0, 0, 0, target="OST0001")]
    store.ingest([capture([*first, *(finished(n, 10 * n) for n in range(1, 5))], "wrong")], "test")
    store.ingest([capture([finished(2, 21), finished(3, 31)], "right")], "test", rebuild=True)
    assert reads(store) == [10, 21, 31, 40]


def test_a_long_stream_of_finished_rows_and_samples_is_written_in_parts_and_counts_once(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ingest_module, "ITEMS_PER_PART", 4)
    items: list[Item] = []
    for tick in range(10):
        fullness = {"time": (T0 + 5 * tick) * 1_000_000, "filesystem": "scratch", "target": "scratch-OST0000"}
        items += [io_sample(5 * tick, 100 * tick, 0), Row("target_capacity", {**fullness, "used_bytes": tick})]
    item = capture(items, "long")
    cut_off(monkeypatch, store, [item], "target_capacity")
    store.ingest([item], "test")
    assert reads(store) == [100] * 9
    used = store.select("scratch").frame("target_capacity").select("used_bytes").collect(backend="pyarrow").to_native()
    assert sorted(used.column("used_bytes").to_pylist()) == list(range(10))
