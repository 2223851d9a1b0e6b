"""`--rebuild`: late samples go between the stored ones; what moved never falls, and nothing counts twice."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from iolens.counters.ceilings import RateCeiling, RateCeilings
from iolens.records import Capture, CounterSet, Item, Row, Sample
from iolens.store.maintenance import compact_store
from iolens.store.rollup import retain_raw, roll_up
from iolens.store.store import Store
from iolens.store.tables import UPKEEP, Tables
from iolens.store.verification import verify_store
from tests.store.samples import T0, capture, io_sample, sample


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "store")


def rows(store: Store, *columns: str, table: str = "target_io") -> list[tuple]:
    frame = store.select("scratch").frame(table).sort("epoch_us").select(*columns).collect("pyarrow").to_native()
    return list(zip(*(frame.column(name).to_pylist() for name in columns), strict=True))


def moved(store: Store) -> list[tuple[int, int, int]]:
    """Start and end in seconds, and bytes read, of every interval."""
    return [((start - T0 * 10**6) // 10**6, (end - T0 * 10**6) // 10**6, read)
            for start, end, read in rows(store, "start_us", "epoch_us", "read_bytes")]  # fmt: skip


def total(store: Store) -> int:
    return sum(read for _, _, read in moved(store))


def at(*readings: tuple[float, int], start: int | None = None) -> list[Sample]:
    return [io_sample(second, read, read, start=start) for second, read in readings]


def take(store: Store, name: str, samples: list[Item], *, rebuild: bool = False):
    ceilings = RateCeilings(default=RateCeiling(longest_s=7 * 86_400))
    return store.ingest([capture(samples, name)], "test", rebuild=rebuild, ceilings=ceilings)


def segment(number: int, items: list[Item], run: str = "run") -> Capture:
    return Capture(f"segment {number}", f"agent/oss1/{run}/{number}", lambda: iter(items), numbered=True)


def test_samples_of_a_clock_that_was_set_back_do_not_take_the_place_of_others(store: Store) -> None:
    """The target was idle while the clock went through the same seconds again: 390 bytes were 340 after a rebuild."""
    first = at(*((5 * n, 10 * n) for n in range(20)))
    again = at(*((50 + 5 * n, 200) for n in range(6)))
    later = at((100, 390))
    take(store, "first", first)
    take(store, "again", again)
    take(store, "later", later)
    assert total(store) == 390
    before = moved(store)
    tally = take(store, "again", again, rebuild=True)
    assert (tally.resets, tally.placed) == (0, 0)
    assert moved(store) == before


def test_a_late_segment_divides_the_interval_that_stood_for_it(store: Store) -> None:
    """No late sample is at a stored tick: the counters at both ends follow from the baseline."""
    take(store, "known", at((0, 100), (5, 150), (40, 900), (45, 1000)))
    late = at((10, 200), (20, 400), (30, 700))
    assert take(store, "late", late).older == 3
    tally = take(store, "late", late, rebuild=True)
    assert (tally.placed, tally.unplaced, tally.rows["target_io"]) == (3, 0, 4)
    assert moved(store) == [(0, 5, 50), (5, 10, 50), (10, 20, 200), (20, 30, 300), (30, 40, 200), (40, 45, 100)]
    assert [row[0] for row in rows(store, "duration_s")] == [5, 5, 10, 10, 10, 5]


def test_durations_of_the_parts_add_up_to_that_of_the_interval(store: Store) -> None:
    take(store, "known", at((0, 0), (20, 400)))
    late = [replace(item, snapshot_us=item.snapshot_us + 1_234_567) for item in at((5, 100), (10, 200))]
    take(store, "late", late, rebuild=True)
    assert sum(row[0] for row in rows(store, "duration_s")) == pytest.approx(20.0, abs=1e-9)


def test_an_interval_of_days_is_divided_and_not_overlaid(store: Store) -> None:
    """Its file is that of the day it began, three days before the late samples."""
    day = 86400
    take(store, "known", at((0, 0), (5, 10), (4 * day, 1000)))
    take(store, "late", at((3 * day, 500), (3 * day + 5, 510)), rebuild=True)
    assert moved(store) == [(0, 5, 10), (5, 3 * day, 490), (3 * day, 3 * day + 5, 10), (3 * day + 5, 4 * day, 490)]


def test_captures_that_overlap_are_placed_once(store: Store) -> None:
    take(store, "known", at((20, 200), (40, 400)))
    late = at((0, 0), (10, 100), (30, 300))
    captures = [capture(late, "a"), capture([*late, *at((35, 350))], "b")]
    tally = store.ingest(captures, "test", rebuild=True)
    assert moved(store) == [(0, 10, 100), (10, 20, 100), (20, 30, 100), (30, 35, 50), (35, 40, 50)]
    assert (tally.placed, tally.repeated, tally.unplaced) == (4, 3, 0)


def test_a_sample_whose_counters_do_not_lie_between_is_refused(store: Store) -> None:
    take(store, "known", at((0, 100), (5, 150), (40, 900)))
    before = moved(store)
    for name, late in {"above": at((10, 901)), "below": at((10, 149)), "other": at((10, 160), (15, 950))}.items():
        tally = take(store, name, late, rebuild=True)
        assert (tally.placed, tally.unplaced) == ((1, 1) if name == "other" else (0, 1))
    assert total(store) == 800
    assert moved(store)[:1] == before[:1]


def test_samples_from_before_everything_stored_go_on_to_it(store: Store) -> None:
    take(store, "known", at((100, 1000), (105, 1100)))
    take(store, "late", at((0, 0), (50, 400)), rebuild=True)
    assert moved(store) == [(0, 50, 400), (50, 100, 600), (100, 105, 100)]


def test_samples_from_before_the_only_sample_go_on_to_it(store: Store) -> None:
    take(store, "known", at((100, 1000)))
    take(store, "late", at((0, 0), (50, 400)), rebuild=True)
    assert moved(store) == [(0, 50, 400), (50, 100, 600)]
    take(store, "next", at((105, 1100)))
    assert total(store) == 1100


def test_an_earlier_capture_with_a_reset_is_taken_whole(store: Store) -> None:
    """Between its end and what is stored the counters were reset once more: what is known of that is not counted."""
    take(store, "known", at((100, 10), (105, 20)))
    take(store, "late", at((0, 1000), (5, 1100), (10, 30), (15, 600)), rebuild=True)
    assert moved(store) == [(0, 5, 100), (5, 10, 30), (10, 15, 570), (100, 105, 10)]


def test_after_a_fail_over_the_samples_of_the_first_server_are_added(store: Store) -> None:
    """docs/agent.md: the partner shipped first, and its counters began at zero."""
    first, partner = 10**9, 2 * 10**9
    take(store, "first", at((0, 1000), (5, 1100), start=first))
    take(store, "partner", at((30, 40), (35, 50), start=partner))
    tally = take(store, "late", at((10, 1200), (15, 1350), start=first), rebuild=True)
    assert tally.placed == 2
    assert moved(store) == [(0, 5, 100), (5, 10, 100), (10, 15, 150), (15, 30, 40), (30, 35, 10)]
    assert [row[0] for row in rows(store, "after_reset")] == [False, False, False, True, False]


def test_after_a_fail_over_without_a_start_of_counting_larger_counters_tell(store: Store) -> None:
    take(store, "first", at((0, 1000), (5, 1100)))
    take(store, "partner", at((30, 40), (35, 50)))
    take(store, "late", at((10, 1200), (15, 1350)), rebuild=True)
    assert total(store) == 100 + 250 + 40 + 10


def test_samples_since_a_reset_divide_its_interval(store: Store) -> None:
    take(store, "known", at((0, 1000), (5, 1100), (30, 90), (35, 100)))
    take(store, "late", at((20, 30), (25, 60)), rebuild=True)
    assert moved(store) == [(0, 5, 100), (5, 20, 30), (20, 25, 30), (25, 30, 30), (30, 35, 10)]
    assert [row[0] for row in rows(store, "after_reset")] == [False, True, False, False, False]


def test_histograms_and_jobs_are_divided_too(store: Store) -> None:
    def both(second: int, read: int, job: int) -> list[Sample]:
        return [
            sample("target_histograms", second, {"io_time_ms": CounterSet({"read:1": read, "write:2": 4})}),
            sample("job_io", second, {"7@host": CounterSet({"read_bytes": job})}),
        ]

    take(store, "known", [*both(0, 0, 5), *both(5, 10, 5), *both(40, 100, 75), *both(45, 100, 80)])
    tally = take(store, "late", [*both(10, 30, 5), *both(20, 80, 45)], rebuild=True)
    assert (tally.placed, tally.unplaced) == (4, 0)
    assert [row[0] for row in rows(store, "count", table="target_histograms")] == [10, 20, 50, 20]
    assert [row[0] for row in rows(store, "read_bytes", table="job_io")] == [40, 30, 5]


def test_a_rebuild_after_compaction_divides_all_the_same(store: Store) -> None:
    take(store, "known", at((0, 100), (40, 900)))
    for n in range(5):
        take(store, f"{n}", at((45 + 5 * n, 1000 + n)))
    compact_store(store)
    take(store, "late", at((10, 200), (20, 400)), rebuild=True)
    assert moved(store)[:3] == [(0, 10, 100), (10, 20, 200), (20, 40, 500)]


def test_a_second_rebuild_finds_everything_in_place_and_writes_nothing(store: Store) -> None:
    take(store, "known", at((0, 100), (40, 900)))
    late = at((10, 200), (20, 400))
    take(store, "late", late, rebuild=True)
    before, version = moved(store), store.tables.load("target_io").version()
    tally = take(store, "late", late, rebuild=True)
    assert (tally.placed, tally.repeated, tally.unplaced) == (0, 2, 0)
    assert (moved(store), store.tables.load("target_io").version()) == (before, version)


def test_segments_in_any_order_are_placed_by_their_numbers(store: Store) -> None:
    """The clock was set back after the second segment: the third is not late. One sample of the second contradicts the
    fourth, which came before it: what is stored stays."""
    pieces = [at((0, 0), (5, 10)), at((10, 20), (15, 30)), at((2, 40), (7, 50)), at((12, 60), (20, 70))]
    segments = [segment(number, samples) for number, samples in enumerate(pieces, 1)]
    for number in (0, 3, 2, 1):
        store.ingest([segments[number]], "agent")
    tally = store.ingest(segments, "agent", rebuild=True)
    assert total(store) == 70
    assert (tally.set_back, tally.placed, tally.unplaced) == (3, 1, 1)


class Cut(Exception):
    """A power cut in a test."""


@pytest.mark.parametrize("survives", range(7))
def test_a_rebuild_cut_off_at_any_commit_leaves_old_rows_or_new_and_is_completed(
    store: Store, monkeypatch: pytest.MonkeyPatch, survives: int
) -> None:
    """Of two tables, with samples that are late and samples that are new in one capture."""

    def both(second: int, read: int) -> list[Sample]:
        return [io_sample(second, read, 0), replace(io_sample(second, read, 0), table="metadata_ops",
                sets={"": CounterSet({"open": read})})]  # fmt: skip

    take(store, "known", [*both(0, 0), *both(40, 400)])
    late = [item for second in (10, 20, 50) for item in both(second, 10 * second)]
    cut_after(monkeypatch, survives)
    try:
        take(store, "late", late, rebuild=True)
    except Cut:
        assert total(store) in (400, 500)
        assert [item[2] for item in moved(store)][-1:] in ([400], [200], [100])
    monkeypatch.undo()
    take(store, "late", late, rebuild=True)
    assert moved(store) == [(0, 10, 100), (10, 20, 100), (20, 40, 200), (40, 50, 100)]
    assert [row[0] for row in rows(store, "open", table="metadata_ops")] == [100, 100, 200, 100]


def cut_after(monkeypatch: pytest.MonkeyPatch, commits: int) -> None:
    """Let that many commits of a table through, then die before the next."""
    done: list[str] = []
    for name in ("commit", "replace_days"):
        real = getattr(Tables, name)

        def commit(self: Tables, *args: object, real=real, **options: object) -> list[str]:
            if len(done) == commits:
                raise Cut
            done.append("commit")
            return real(self, *args, **options)

        monkeypatch.setattr(Tables, name, commit)


def finished(tick: int, read_bytes: int, ticks: int = 1) -> Row:
    end = (T0 + 5 * tick) * 1_000_000
    head = {"time": end, "start": end - 5_000_000 * ticks, "duration_s": 5.0 * ticks, "filesystem": "scratch"}
    return Row("target_io", {**head, "target": "scratch-OST0000", "read_bytes": read_bytes})


FIRST = io_sample(0, 0, 0, target="OST0001")  # makes the file system known to the store


def test_finished_rows_replace_only_what_they_cover(store: Store) -> None:
    """Rows for the second and the fourth interval: the third went with them before."""
    take(store, "known", [FIRST, *(finished(n, 10 * n) for n in range(1, 6))])
    take(store, "late", [finished(2, 21), finished(4, 41)], rebuild=True)
    assert [row[2] for row in moved(store)] == [10, 21, 30, 41, 50]


def test_finished_rows_may_be_finer_or_coarser_but_never_less(store: Store) -> None:
    take(store, "known", [FIRST, finished(2, 20, ticks=2), finished(4, 40, ticks=2)])
    tally = take(store, "finer", [finished(1, 5), finished(2, 20)], rebuild=True)
    assert moved(store) == [(0, 5, 5), (5, 10, 20), (10, 20, 40)]
    tally = take(store, "less", [finished(3, 20), finished(4, 19)], rebuild=True)
    assert tally.unplaced == 2
    assert moved(store)[-1] == (10, 20, 40)


def test_a_finished_row_that_reaches_into_another_changes_nothing(store: Store) -> None:
    take(store, "known", [FIRST, finished(2, 20, ticks=2)])
    tally = take(store, "late", [finished(3, 50, ticks=2)], rebuild=True)
    assert (tally.unplaced, moved(store)) == (1, [(0, 10, 20)])


def test_the_same_finished_rows_again_write_nothing(store: Store) -> None:
    known = [FIRST, *(finished(n, 10 * n) for n in range(1, 4))]
    take(store, "known", known)
    version = store.tables.load("target_io").version()
    tally = take(store, "known", known, rebuild=True)
    assert (tally.repeated, tally.unplaced) == (4, 0)
    assert store.tables.load("target_io").version() == version


def test_a_day_whose_raw_rows_were_dropped_is_left_alone(store: Store) -> None:
    day = 86400
    take(store, "known", at((0, 0), (10, 100)))
    take(store, "next day", at((day, 200), (day + 5, 300)))
    roll_up(store)
    retain_raw(store, 86400.0)
    kept = total(store)
    tally = take(store, "late", at((2, 20), (5, 50)), rebuild=True)
    assert (tally.unplaced, total(store)) == (2, kept)


def test_what_moved_on_dropped_days_is_not_counted_again(store: Store) -> None:
    """Samples from before them do not go on to what is stored after them: the rollup has what moved in between."""
    day = 86400
    for number in (2, 3):
        take(store, f"day {number}", at((number * day, 1000 * number), (number * day + 5, 1000 * number + 10)))
    roll_up(store)
    retain_raw(store, 0.0)
    take(store, "last", at((4 * day, 4000), (4 * day + 5, 4010)))
    kept = moved(store)
    take(store, "first", at((0, 0), (5, 10)), rebuild=True)
    assert moved(store) == [(0, 5, 10), *kept]


def test_late_operations_and_sizes_of_jobs_divide_their_rows(store: Store) -> None:
    """The rows of `server_ops` do not tell which text a counter is of, those of `job_sizes` tell the job."""

    def at_once(second: float, statfs: int, waited_us: int, small: int) -> list[Item]:
        texts = {
            "stats": CounterSet({"statfs": statfs}),
            "service": CounterSet({"req_waittime": statfs, "req_waittime:us": waited_us, "req_qdepth:total": 3}),
        }
        return [
            sample("server_ops", second, texts),
            sample("job_sizes", second, {"7@host": CounterSet({"read:4096": small, "write:8192": 1})}),
        ]

    take(store, "known", [*at_once(0, 0, 0, 1), *at_once(30, 90, 9000, 31), *at_once(40, 90, 9000, 31)])
    tally = take(store, "late", [*at_once(10, 20, 2000, 1), *at_once(20, 20, 2000, 11)], rebuild=True)
    assert (tally.refused, tally.unplaced) == (0, 0)
    counted = rows(store, "operation", "count", "sum_us", table="server_ops")
    assert sorted(counted) == [
        ("req_waittime", 20, 2000), ("req_waittime", 70, 7000), ("statfs", 20, None), ("statfs", 70, None),
    ]  # fmt: skip
    assert rows(store, "job_id", "count", table="job_sizes") == [("7@host", 10), ("7@host", 20)]


def test_late_operations_of_clients_have_no_place_and_change_nothing(store: Store) -> None:
    """An MDT's row is the sum over clients that come and go: nothing tells the counters at its ends."""

    def clients(second: float, value: int, other: int) -> list[Item]:
        sets = {"one": CounterSet({"open": value}), "other": CounterSet({"open": other})}
        return [sample("metadata_ops", second, sets, target="MDT0000")]

    take(store, "known", [*clients(0, 0, 0), *clients(30, 90, 10)])
    assert rows(store, "open", table="metadata_ops") == [(100,)]
    assert take(store, "late", clients(10, 20, 5), rebuild=True).unplaced == 1
    assert rows(store, "open", table="metadata_ops") == [(100,)]


def test_the_books_add_up(store: Store) -> None:
    """What `batches` says was written is what is there, also after a rebuild."""
    take(store, "known", at((0, 100), (40, 900)))
    take(store, "late", at((10, 200), (20, 400)), rebuild=True)
    handle = store.tables.load("batches")
    assert handle is not None
    books = handle.to_pyarrow_table(columns=["batch", "rows_by_table", "checksums"]).to_pylist()
    brought = [json.loads(book["rows_by_table"]) for book in books if book["batch"].partition("/")[0] not in UPKEEP]
    assert sum(rows.get("target_io", 0) for rows in brought) == len(moved(store)) == 3
    assert verify_store(store).faults == []
    recorded = {path for book in books for path in json.loads(book["checksums"]).get("target_io", {})}
    table = store.tables.load("target_io")
    assert table is not None
    assert set(table.get_add_actions().column("path").to_pylist()) <= recorded
