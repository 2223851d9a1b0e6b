"""What is taken back is gone, and the store is as one that never had it: rows, intervals, baselines, targets, jobs."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from iolens.errors import StoreError, UsageError
from iolens.records import Capture, CounterSet, Item, Row
from iolens.schema import TABLES
from iolens.store.duckdb_engine import connection, relation
from iolens.store.ledger import Ledger
from iolens.store.maintenance import compact_store, verify_store
from iolens.store.rollup import retain_raw, roll_up
from iolens.store.store import Store
from iolens.store.tables import Tables, data_files
from iolens.store.undo import undo
from tests.store.samples import T0, capture, io_sample, sample, size_sample

LEDGER = ("batches", "baselines")


def rows(store: Store, name: str) -> list[tuple[Any, ...]]:
    handle = store.tables.load(name)
    if handle is None:
        return []
    columns = ", ".join(f'"{c.name}"' for c in TABLES[name.rpartition("/")[2]].columns if c.name != "loaded_us")
    stored = relation(store.tables, name, data_files(handle))
    assert stored is not None
    listed = connection().sql(f"SELECT {columns} FROM stored").to_arrow_table()
    return sorted((tuple(row.values()) for row in listed.to_pylist()), key=repr)


def content(store: Store) -> dict[str, list[tuple[Any, ...]]]:
    """All rows that analyses read, and what the next sample of each target is differenced from."""
    tables = {name: listed for name in TABLES if name not in LEDGER and (listed := rows(store, name))}
    baselines = store.tables.load("baselines")
    if baselines is not None:
        stored = relation(store.tables, "baselines", data_files(baselines))
        assert stored is not None
        tables["baselines"] = sorted(connection().sql("""
            SELECT source, filesystem, target, counter_set, epoch_us, snapshot_us, counters, pending FROM stored
            QUALIFY row_number() OVER (PARTITION BY source, filesystem, target, counter_set ORDER BY position DESC) = 1
        """).fetchall())  # fmt: skip
    return tables


def loaded(folder: Path, captures: Iterable[Capture], *, together: bool = False) -> Store:
    store = Store(folder)
    every = list(captures)
    for piece in [every] if together else [[each] for each in every]:
        store.ingest(piece, "test")
    return store


def readings(number: int, begin: float) -> list[Item]:
    """What comes finished: fullness, and a job."""
    time_us = round((T0 + begin) * 1e6)
    head = {"time": time_us, "filesystem": "scratch"}
    return [
        Row("target_capacity", {**head, "target": "scratch-OST0000", "used_bytes": number}),
        Row("jobs", {**head, "start": time_us, "job_id": f"{number}", "cluster": "frost", "ended": True}),
    ]


def histogram(second: float, counts: dict[str, int], target: str = "OST0000") -> Item:
    return sample("target_histograms", second, {"io_time_ms": CounterSet(counts)}, target)


class Numbers:
    """Captures with random counters that go on from each other, one or two targets each, with pauses between them."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.clock = 0.0
        self.counts = {"OST0000": 10**9, "OST0001": 5 * 10**9}

    def capture(self, number: int) -> Capture:
        items: list[Item] = []
        targets = self.chance.choice([["OST0000"], ["OST0000", "OST0001"], ["OST0001"]])
        begin = self.clock
        for _ in range(self.chance.randint(1, 4)):
            self.clock += self.chance.choice([5, 5, 10, 300])
            for target in targets:
                self.counts[target] += self.chance.choice([0, 4096, 10**6])
                count = self.counts[target]
                items += [
                    io_sample(self.clock, count, 2 * count, target=target),
                    size_sample(self.clock, {("read", 4096): count // 4096}, target=target),
                    histogram(self.clock, {"read:1": count // 4096, "write:2": count // 8192}, target),
                ]
        if self.chance.random() < 0.6:
            items += readings(number, begin)
        return capture(items, f"file-{number}")


@pytest.mark.parametrize("seed", range(3))
def test_the_store_is_as_one_that_never_had_it(tmp_path: Path, seed: int) -> None:
    numbers = Numbers(seed)
    captures = [numbers.capture(number) for number in range(4)]
    later = numbers.capture(9)
    gone = seed % 4
    store = loaded(tmp_path / "a", captures, together=seed % 3 == 0)
    never = loaded(tmp_path / "b", [each for number, each in enumerate(captures) if number != gone])
    done = undo(store, [f"file/file-{gone}"])
    assert (done.lost, content(store)) == ([], content(never))
    assert store.targets_by_filesystem() == never.targets_by_filesystem()
    for each in (store, never):
        each.ingest([later], "test")
    assert content(store) == content(never)
    assert verify_store(store).faults == []


def three(*, target: str = "OST0000") -> list[Capture]:
    """Three files of two samples, 5 s and 100 bytes apart."""
    return [
        capture([io_sample(10 * number + second, 20 * (10 * number + second), 0, target=target) for second in (0, 5)],
                f"file-{number}") for number in range(3)
    ]  # fmt: skip


def intervals(store: Store) -> list[tuple[float, float, int]]:
    """Start and end after T0, and bytes read."""
    handle = store.tables.load("target_io")
    assert handle is not None
    stored = relation(store.tables, "target_io", data_files(handle))
    assert stored is not None
    listed = connection().sql("SELECT start_us, epoch_us, read_bytes FROM stored ORDER BY ALL").fetchall()
    return [(start / 1e6 - T0, end / 1e6 - T0, count) for start, end, count in listed]


def test_the_interval_after_begins_at_the_sample_before(tmp_path: Path) -> None:
    store = loaded(tmp_path, three())
    done = undo(store, ["file/file-1"])
    assert intervals(store) == [(0, 5, 100), (5, 20, 300), (20, 25, 100)]
    assert (done.removed, done.joined) == ({"target_io": 2}, {"target_io": 1})


def test_a_trial_changes_nothing_and_says_the_same(tmp_path: Path) -> None:
    store = loaded(tmp_path, three())
    before = {name: store.tables.load(name).version() for name in ("target_io", "baselines", "batches")}
    trial = undo(store, ["file/file-1"], dry_run=True)
    assert {name: store.tables.load(name).version() for name in before} == before
    assert undo(store, ["file/file-1"]) == trial


def test_it_is_accepted_again_and_can_be_taken_back_again(tmp_path: Path) -> None:
    store = loaded(tmp_path, three())
    for _ in range(2):
        before = content(store)
        undo(store, ["file-2"] if not Ledger.read(store.tables).undone else ["again1/file/file-2"])
        assert len(intervals(store)) == 3
        tally = store.ingest([three()[2]], "test")
        assert (tally.already_present, tally.rows["target_io"]) == (0, 2)
        assert store.ingest([three()[2]], "test").already_present == 1
        assert content(store) == before
    with pytest.raises(UsageError, match=r"file/file-2: taken back already, at 20"):
        undo(store, ["file/file-2"])
    assert verify_store(store).faults == []


@pytest.mark.parametrize(("second", "rows_with_it"), [(10**4, 2), (10**8, 1)])  # an interval; too far for one
def test_a_forged_counter_of_the_future_and_the_samples_it_kept_out(
    tmp_path: Path, second: int, rows_with_it: int
) -> None:
    """Its target had frozen: everything real was older. It goes on from the last real counters."""
    real = three()
    forged = capture([io_sample(second, 10**13, 0)], "forged")
    store = loaded(tmp_path / "a", [real[0], forged, real[1]])
    assert len(intervals(store)) == rows_with_it
    done = undo(store, ["file/forged"])
    assert done.again == ["file/file-1 (file-1)"]
    assert store.ingest([real[1]], "test").rows["target_io"] == 2
    assert store.ingest([real[1]], "test").already_present == 1
    store.ingest([real[2]], "test")
    assert intervals(store) == intervals(loaded(tmp_path / "b", real))


def test_after_a_forged_counter_that_looked_like_a_reset_the_raw_counters_decide(tmp_path: Path) -> None:
    real = three()
    forged = capture([io_sample(7, 10**11, 0)], "forged")
    store = loaded(tmp_path / "a", [real[0], forged, *real[1:]])
    assert undo(store, ["file/forged"]).lost == []
    assert intervals(store) == [(0, 5, 100), (5, 10, 100), (10, 15, 100), (15, 20, 100), (20, 25, 100)]


def test_without_the_raw_counters_the_row_after_goes_and_is_reported(tmp_path: Path) -> None:
    real = three()
    store = loaded(tmp_path, [real[0], capture([io_sample(7, 10**11, 0)], "forged"), *real[1:]])
    compact_store(store)  # keeps the newest baselines alone
    (lost,) = undo(store, ["file/forged"]).lost
    assert lost == (
        "target_io of scratch-OST0000 from 2020-09-13T12:26:45Z to 2020-09-13T12:26:50Z: "
        "counters were reset, or a reading was refused in between"
    )
    assert intervals(store) == [(0, 5, 100), (10, 15, 100), (15, 20, 100), (20, 25, 100)]
    assert verify_store(store).faults == []


def test_a_target_whose_last_counters_compact_dropped_begins_anew(tmp_path: Path) -> None:
    store = loaded(tmp_path, three()[:2])
    compact_store(store)
    assert undo(store, ["file/file-1"]).lost == [
        "scratch-OST0000 from 2020-09-13T12:26:45Z on: `compact` dropped its counters of then, so that its next sample "
        "is a first one"
    ]
    store.ingest([three()[2]], "test")
    assert intervals(store) == [(0, 5, 100), (20, 25, 100)]


@pytest.mark.parametrize("gone", [0, 1, 2])
def test_after_a_compaction_rows_are_separated_by_time_and_target(tmp_path: Path, gone: int) -> None:
    captures = [each for target in ("OST0000", "OST0001") for each in three(target=target)]
    captures = [Capture(f"{number}", f"file/{number}", each.items) for number, each in enumerate(captures)]
    store = loaded(tmp_path / "a", captures)
    never = loaded(tmp_path / "b", [each for number, each in enumerate(captures) if number != gone])
    compact_store(store)
    undo(store, [f"file/{gone}"])
    assert rows(store, "target_io") == rows(never, "target_io")


def job(number: int, begin: float) -> Row:
    return readings(number, begin)[1]  # type: ignore[return-value]


@pytest.mark.parametrize("compacted", [False, True])
def test_readings_of_files_that_were_ingested_together(tmp_path: Path, compacted: bool) -> None:
    captures = [capture([job(1, 0), job(2, 100)], "a"), capture([job(3, 50)], "b"), capture([job(2, 100)], "c")]
    store = loaded(tmp_path, captures, together=True)
    store.ingest([capture([job(5, 60)], "d")], "test")
    if compacted:
        compact_store(store)
    undo(store, ["file/a"])
    assert [row["job_id"] for row in store.jobs()] == ["3", "5"]


def test_files_that_were_ingested_together_and_cannot_be_separated_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    captures = [capture([job(1, 0), job(2, 100)], "a"), capture([job(3, 50)], "b"), capture([job(4, 900)], "c")]
    monkeypatch.setattr("iolens.store.ingest.row_hashes", lambda table, rows: None)  # as iolens 0.1, or too many
    store = loaded(tmp_path, captures, together=True)
    before = content(store)
    with pytest.raises(
        StoreError, match=r"2 rows, and 3 could be theirs: .* together with file/b, file/c: take all of"
    ):
        undo(store, ["file/a"])
    assert content(store) == before
    undo(store, ["file/c"])  # nobody else's are of that time
    undo(store, ["file/a", "file/b"])
    assert rows(store, "jobs") == []


def test_a_wrong_zone_is_taken_back(tmp_path: Path) -> None:
    store = loaded(tmp_path, [capture([job(1, 0)], "right"), capture([job(1, 7200)], "wrong")])
    assert [row["start"] for row in store.jobs()] == [(T0 + 7200) * 10**6] or len(store.jobs()) == 2
    undo(store, ["file/wrong"])
    assert [row["start"] for row in store.jobs()] == [T0 * 10**6]


def test_all_of_a_source_since_a_time(tmp_path: Path) -> None:
    store = loaded(tmp_path, three()[:1])
    since = datetime.now(UTC)
    for each in three()[1:]:
        store.ingest([each], "test")
    store.ingest([capture([job(1, 0)], "job")], "slurm")
    assert undo(store, source="test", since=since).batches == ["file/file-1 (file-1)", "file/file-2 (file-2)"]
    assert (intervals(store), len(store.jobs())) == ([(0, 5, 100)], 1)
    with pytest.raises(UsageError, match="name batches or files"):
        undo(store, source="test")


def test_raw_rows_that_are_gone_are_refused(tmp_path: Path) -> None:
    store = loaded(tmp_path, three())
    roll_up(store)
    retain_raw(store, 0)
    with pytest.raises(StoreError, match="target_io 2020-09-13: raw rows were dropped by `retain`"):
        undo(store, ["file/file-1"])


def test_rows_that_a_rebuild_put_together_are_refused(tmp_path: Path) -> None:
    store = loaded(tmp_path, [three()[0], three()[2]])
    store.ingest([three()[1]], "test", rebuild=True)
    with pytest.raises(StoreError, match=r"target_io 2020-09-13: --rebuild put rows of several captures together"):
        undo(store, ["file/file-2"])


@pytest.mark.parametrize("gone", [1, 2])
def test_rollups_of_the_days_are_made_again(tmp_path: Path, gone: int) -> None:
    captures = three()
    store = loaded(tmp_path / "a", captures)
    never = loaded(tmp_path / "b", [each for number, each in enumerate(captures) if number != gone])
    roll_up(store)
    undo(store, [f"file/file-{gone}"])
    assert rows(store, "60s/target_io") == rows(store, "1h/target_io") == []
    for each in (store, never):
        roll_up(each)
    assert rows(store, "60s/target_io") == rows(never, "60s/target_io") != []


class Cut(Exception):
    """The power goes."""


@pytest.mark.parametrize("commits", [0, 2, 3, 5, 7])
def test_a_kill_between_two_commits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, commits: int) -> None:
    """Also when somebody ingests before the same undo again completes it."""
    captures = three()
    captures[1] = capture([*captures[1].items(), *readings(1, 3)], "file-1")
    later = capture([io_sample(40, 1000, 0)], "later")
    store = loaded(tmp_path / "a", captures)
    never = loaded(tmp_path / "b", [captures[0], captures[2], later])
    done: list[int] = []

    def cut(real: Callable[..., Any]) -> Callable[..., Any]:
        def commit(*args: Any, **options: Any) -> Any:
            if len(done) == commits:
                raise Cut
            done.append(1)
            return real(*args, **options)

        return commit

    with monkeypatch.context() as patch:
        for name in ("append", "put"):
            patch.setattr(Tables, name, cut(getattr(Tables, name)))
        with pytest.raises(Cut):
            undo(store, ["file/file-1"])
    store = Store(store.url)
    store.ingest([later], "test")
    undo(store, ["file/file-1"])
    assert content(store) == content(never)
    assert verify_store(store).faults == []


def test_another_undo_waits_for_one_that_was_cut_off(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = loaded(tmp_path, three())
    with monkeypatch.context() as patch:
        patch.setattr("iolens.store.undo._Undo._record", lambda *args: (_ for _ in ()).throw(Cut))
        with pytest.raises(Cut):
            undo(store, ["file/file-1"])
    with pytest.raises(StoreError, match=r"an undo was cut off; complete it first: iolens store undo file/file-1"):
        undo(store, ["file/file-2"])
    undo(store, ["file/file-1"])
    undo(store, ["file/file-2"])
    assert intervals(store) == [(0, 5, 100)]


def pieces(numbers: Sequence[int]) -> list[Capture]:
    """Segments of one agent's run, as a hub has them: one identity, with a sequence."""

    def of(number: int) -> Capture:
        items = [io_sample(10 * number + second, 20 * (10 * number + second), 0) for second in (0, 5)]
        return Capture(f"{number}", "agent/oss1/run", lambda: iter(items), sequence=number, numbered=True)

    return [of(number) for number in numbers]


def test_a_segment_of_a_stream(tmp_path: Path) -> None:
    store = loaded(tmp_path / "a", pieces([1, 2, 3]))
    undo(store, ["agent/oss1/run/2"])
    assert intervals(store) == intervals(loaded(tmp_path / "b", pieces([1, 3])))
    assert store.ingest(pieces([2]), "test").older == 2  # it may come again, and is late then
    assert [store.ingest(pieces([number]), "test").already_present for number in (1, 2, 3)] == [1, 1, 1]
