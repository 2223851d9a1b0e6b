"""A clock set back, one snapshot per file, all files in one call: no byte is lost, and none is invented."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from iolens.api.ingest import ingest_places
from iolens.config import Config
from iolens.counters.ceilings import RateCeilings
from iolens.counters.differences import Outcome, advance
from iolens.records import Capture, CounterSet, Sample
from iolens.sources import ReadOptions
from iolens.store.ingest import Tally
from iolens.store.store import Store
from iolens.store.tables import BatchPart
from iolens.store.units import Unit, in_order
from tests.store.samples import T0, io_sample, sample, size_sample

BEGIN = 10**12
STEP = 5_000_000
SECONDS = (0, 5, 10, 15, 12, 17, 22, 27)  # set back by 8 s after the fourth

MIXED = ("d", "a", "g", "c", "h", "b", "f", "e")  # names that tell nothing


def snapshot(second: float, read: int) -> str:
    return (
        "obdfilter.scratch-OST0000.stats=\n"
        f"snapshot_time             {T0 + second:.6f} secs.usecs\n"
        f"read_bytes                {read // 4096} samples [bytes] 4096 1048576 {read}\n"
        f"write_bytes               {read // 4096} samples [bytes] 4096 1048576 {read}\n"
    )


def write(folder: Path, names: Sequence[str], begin: int, *, changed: bool = True) -> list[Path]:
    """One file per snapshot, in the order in which they were taken; `changed`: so were their times of change."""
    folder.mkdir()
    paths = [folder / f"{name}.txt" for name in names]
    for number, (path, second) in enumerate(zip(paths, SECONDS, strict=True)):
        path.write_text(snapshot(second, begin + STEP * number))
        clock = number if changed else second
        os.utime(path, (T0 + clock, T0 + clock))
    return paths


def load(store: Store, *paths: Path, source: str | None = "lustre-lctl") -> Tally:
    return ingest_places(store, Config(), [str(path) for path in paths], ReadOptions(), source=source, workers=1)


def stored(store: Store) -> list[tuple[int, bool]]:
    """What was read in each interval, in steps, and whether after a reset."""
    frame = store.select("scratch").frame("target_io").sort("epoch_us").select("read_bytes", "after_reset")
    rows = frame.collect("pyarrow").to_native()
    moved = rows.column("read_bytes").to_pylist()
    return list(zip((count / STEP for count in moved), rows.column("after_reset").to_pylist(), strict=True))


RIGHT = [(1, False), (1, False), (1, False), (2, False), (1, False), (1, False)]


@pytest.mark.parametrize("begin", [BEGIN, 0])
def test_the_order_of_names_tells_what_the_clock_does_not(tmp_path: Path, begin: int) -> None:
    """Numbers in names are numbers: snap-10 is after snap-9. The call is in another order."""
    paths = write(tmp_path / "files", [f"snap-{number}" for number in range(5, 13)], begin, changed=False)
    tally = load(store := Store(tmp_path / "store"), *sorted(paths, key=lambda path: path.name[-5:]))
    assert stored(store) == RIGHT
    assert (tally.set_back, tally.resets, tally.older, tally.refused) == (1, 0, 0, 0)


def test_so_do_the_order_of_the_call_and_that_of_the_times_of_change(tmp_path: Path) -> None:
    called = write(tmp_path / "called", MIXED, BEGIN, changed=False)
    load(by_call := Store(tmp_path / "one"), *called)
    changed = write(tmp_path / "changed", MIXED, BEGIN)
    load(by_change := Store(tmp_path / "two"), *sorted(changed))
    assert stored(by_call) == stored(by_change) == RIGHT


def test_one_file_and_one_call_per_file_have_the_same_bytes(tmp_path: Path) -> None:
    paths = write(tmp_path / "files", [f"snap-{number}" for number in range(8)], BEGIN)
    (tmp_path / "all.txt").write_text("".join(path.read_text() for path in paths))
    load(whole := Store(tmp_path / "whole"), tmp_path / "all.txt")
    each = Store(tmp_path / "each")
    for path in paths:
        load(each, path)
    assert stored(whole) == stored(each) == RIGHT


def test_what_nothing_can_order_is_refused_with_its_place_and_no_reset_is_invented(tmp_path: Path) -> None:
    paths = write(tmp_path / "files", MIXED, BEGIN, changed=False)
    tally = load(store := Store(tmp_path / "store"), *sorted(paths))
    assert stored(store) == [(1, False), (1, False), (2, False), (1, False), (1, False), (1, False)]
    assert (tally.refused, tally.resets) == (1, 0)
    assert str(tally.problems[0]).startswith(f"{tmp_path}/files/c.txt: target_io of scratch-OST0000 at")
    assert "nothing tells the order" in tally.problems[0].reason


def test_a_fall_by_a_tiny_part_is_no_reset_in_any_call(tmp_path: Path) -> None:
    """The sample at 15 s, of before the step, comes in a call after that at 12 s, which was taken later."""
    paths = write(tmp_path / "files", MIXED, BEGIN)
    store, refused = Store(tmp_path / "store"), 0
    for path in sorted(paths, key=lambda path: path.read_text()):
        tally = load(store, path)
        refused += tally.refused
        assert tally.resets == 0
    assert refused == 1
    assert sum(moved for moved, _ in stored(store)) == 7


def test_a_restart_is_what_it_was_where_names_and_clock_agree() -> None:
    """Counts since the reset, also where the counters were young: 7 of before, 3 of after."""
    counts = [(0, 3), (5, 7), (10, 3), (15, 8), (20, 11)]
    files = [snapshot_file(number, second, count) for number, (second, count) in enumerate(counts)]
    assert [(row[2], row[3]) for row in rows_of(files)] == [(4, False), (3, True), (5, False), (3, False)]


def test_a_restart_with_a_step_back_is_known_by_names() -> None:
    """By the clock the counters would fall twice, and rise by 990 of before in between."""
    counts = [(0, 1000), (5, 1005), (10, 1010), (8, 5), (13, 10), (18, 15)]
    files = [snapshot_file(number, second, count) for number, (second, count) in enumerate(counts)]
    assert [(row[2], row[3]) for row in rows_of(files)] == [(5, False), (5, False), (10, True), (5, False)]
    shuffled = [replace(file, origin=name, place=1 + number * 5 % 7) for number, (file, name) in
                enumerate(zip(files, "bdafce", strict=True))]  # fmt: skip
    assert [(row[2], row[3]) for row in rows_of(shuffled)] == [(5, False), (5, False), (10, True), (5, False)]


def test_a_restart_under_names_that_tell_nothing_is_still_one() -> None:
    counts = [(0, 1000), (5, 1005), (10, 5), (15, 9), (20, 14)]
    files = [
        replace(snapshot_file(0, second, count), origin=name, identity=name, place=1 + "aebdc".index(name))
        for (second, count), name in zip(counts, "dabec", strict=True)
    ]
    assert [(row[2], row[3]) for row in rows_of(files)] == [(5, False), (5, True), (4, False), (5, False)]


def test_idle_targets_and_other_servers_do_not_outvote_the_one_that_moved() -> None:
    """Ten idle targets step back with the clock of their server; another server's files have names of their own."""
    files = []
    for number, second in enumerate(SECONDS):
        items = [io_sample(second, BEGIN + STEP * number, BEGIN)]
        items += [io_sample(second, BEGIN, BEGIN, target=f"OST00{other:02x}") for other in range(1, 11)]
        files.append(file_of(f"oss1-{number}", items))
    for name, second in zip("caehbgdf", range(0, 40, 5), strict=True):
        files.append(file_of(f"oss2-{name}", [io_sample(second, STEP * second, 0, target="OST0042")]))
    moved = [(row[0], row[2]) for row in rows_of(files) if row[2]]
    assert sorted(row for row in moved if row[0].endswith("OST0000")) == [
        ("scratch-OST0000", STEP)] * 5 + [("scratch-OST0000", 2 * STEP)]  # fmt: skip
    assert [row for row in moved if row[0].endswith("OST0042")] == [("scratch-OST0042", 5 * STEP)] * 7


def test_all_tables_of_a_file_are_refused_or_kept_by_their_own_counters() -> None:
    """Sizes of an idle hour say nothing; those that moved are refused with the bytes."""
    files = [
        file_of(name, [io_sample(second, BEGIN + STEP * n, BEGIN), size_sample(second, {("read", 4096): 10**6 + n})])
        for n, (name, second) in enumerate(zip(MIXED, SECONDS, strict=True))
    ]
    rows = rows_of(files, "target_sizes")
    assert sum(row[2] for row in rows) == 7
    assert all(0 <= row[2] <= 2 for row in rows)


def test_a_job_that_fell_by_a_tiny_part_was_not_forgotten() -> None:
    before, after = (
        sample("job_io", second, {"a": CounterSet({"write_bytes": count, "write_ops": count // 10**6})})
        for second, count in ((12, BEGIN + 4 * STEP), (15, BEGIN + 3 * STEP))
    )
    baseline = advance(None, before).baseline
    assert advance(baseline, after).outcome is Outcome.UNORDERED


histories = st.lists(
    st.tuples(
        st.integers(0, 50),  # what moves until the next sample
        st.sampled_from([0] * 6 + [-5, -3, -7, -12, -40, 30]),  # by how much the clock is set before it
        st.sampled_from(["", "", "", "", "", "", "reset", "glitch"]),
    ),
    min_size=2,
    max_size=12,
)


@settings(derandomize=True, max_examples=60, deadline=None)
@given(moves=histories, names=st.one_of(st.none(), st.permutations(range(12))), has_start=st.booleans())
def test_no_row_holds_more_than_moved(moves, names: list[int] | None, has_start: bool) -> None:
    """Names in the order of the samples or in none, steps back, equal times, resets, and one counter that stumbles.

    A clock is set in the first life of the counters or at a reset, not later, for young counters are not known apart by
    a tiny part; and at a reset not to before all files, which then look like those of one life in another order. Names
    in no order may tell a wrong one by chance: then there is no reset.
    """
    truth, files = [0], []
    clock, count, began, lives, truths = 1000.0, BEGIN, 1, 0, {}
    for number, (moved, step, event) in enumerate(moves):
        clock += 5 + (step if lives == 0 else 0)
        if event == "reset" and names is None:
            count, began, lives = 0, began + 10_000_000, lives + 1
            clock = max(clock, (min(truths, default=0) - T0 * 10**6) / 10**6 + 1)
        count += moved
        truth.append(truth[-1] + (moved if number else 0))
        counters = {"read_bytes": count, "read_ops": count, "write_bytes": count, "write_ops": count}
        if event == "glitch":
            counters["write_ops"] = max(count - 3, 0)
        item = sample("target_io", clock, {"": CounterSet(counters, began if has_start else None)})
        truths.setdefault(item.time_us, []).append(truth[-1])
        place = number if names is None else names[number]
        files.append(replace(file_of(f"snap-{place}", [item]), place=place + 1))
    rows = rows_of(files)
    for _, (start_us, end_us), moved, _ in rows:
        assert 0 <= moved <= max(0, max(truths[end_us]) - min(truths[start_us]))
    assert sum(row[2] for row in rows) <= truth[-1]


def snapshot_file(number: int, second: float, count: int) -> Capture:
    counters = {"read_bytes": count, "read_ops": count, "write_bytes": count, "write_ops": count}
    return replace(file_of(f"snap-{number}", [sample("target_io", second, {"": CounterSet(counters)})]), place=1)


def file_of(name: str, items: Sequence[Sample]) -> Capture:
    return Capture(name, f"file/{name}", lambda: iter(items), place=1)


def rows_of(files: Sequence[Capture], table: str = "target_io") -> list[tuple[str, tuple[int, int], int, bool]]:
    """Target, start and end, what was read, and whether after a reset; all files in one call, in no order."""
    rows, known = [], {}
    for unit in in_order([Unit(file, BatchPart(file.identity, 1), list(file.items()), last=True) for file in files]):
        unit.apply(known, "test", RateCeilings())
        known |= {key: replace(baseline, batch=unit.part.identity) for key, baseline in unit.touched.items()}
        for piece in unit.rows.columns.get(table, []):
            reads = piece.column("read_bytes" if table == "target_io" else "read_ios_4096").to_pylist()
            times = zip(*(piece.column(name).cast("int64").to_pylist() for name in ("start", "time")), strict=True)
            rows += zip(piece.column("target").to_pylist(), times, reads, piece.column("after_reset").to_pylist(),
                        strict=True)  # fmt: skip
    return rows
