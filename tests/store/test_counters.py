"""Counters to intervals: never negative, never the counter of before, never twice (DESIGN)."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from iolens.counters.differences import Baseline, CounterStep, Movement, Outcome, advance
from iolens.counters.rows import interval_rows
from iolens.records import CounterSet
from tests.store.samples import io_sample, sample


def run(*samples) -> list[CounterStep]:
    baseline, steps = None, []
    for item in samples:
        steps.append(advance(baseline, item))
        baseline = steps[-1].baseline
    return steps


def moved(step: CounterStep, counter: str = "read_bytes", name: str = "") -> int | None:
    return step.movements[name].moved.get(counter)


def test_the_first_sample_is_only_a_baseline() -> None:
    (step,) = run(io_sample(0, 8192, 0))
    assert step.outcome is Outcome.BASELINE
    assert not step.movements


def test_the_second_sample_tells_what_moved_and_how_long_it_took() -> None:
    _, step = run(io_sample(0, 8192, 0), io_sample(5, 20480, 4096))
    assert (moved(step), moved(step, "write_bytes"), step.duration_s) == (12288, 4096, 5.0)


def test_a_missed_sample_widens_the_next_interval() -> None:
    *_, step = run(io_sample(0, 0, 0), io_sample(5, 10, 0), io_sample(15, 40, 0))
    assert (moved(step), step.duration_s) == (30, 10.0)


def test_a_repeated_sample_is_dropped() -> None:
    *_, step = run(io_sample(0, 0, 0), io_sample(5, 10, 0), io_sample(5, 10, 0))
    assert step.outcome is Outcome.REPEATED


def test_an_older_sample_is_refused_and_changes_nothing() -> None:
    *_, older, step = run(io_sample(0, 0, 0), io_sample(10, 30, 0), io_sample(5, 10, 0), io_sample(15, 50, 0))
    assert older.outcome is Outcome.OLDER
    assert moved(step) == 20


def test_counters_that_fall_together_are_a_reset_and_count_what_moved_since() -> None:
    *_, step = run(io_sample(0, 4096_000, 8192_000), io_sample(5, 8192, 4096))
    assert (moved(step), moved(step, "write_bytes")) == (8192, 4096)
    assert step.movements[""].after_reset
    assert step.resets == 1


def test_a_changed_start_time_is_a_reset_even_when_the_counters_have_overtaken() -> None:
    *_, step = run(io_sample(0, 100, 100, start=1), io_sample(5, 500, 700, start=9_000_000))
    assert (moved(step), moved(step, "write_bytes")) == (500, 700)
    assert step.movements[""].after_reset


def test_an_unchanged_start_time_is_no_reset() -> None:
    *_, step = run(io_sample(0, 100, 100, start=1), io_sample(5, 500, 700, start=1))
    assert moved(step) == 400
    assert not step.movements[""].after_reset


def test_one_counter_that_steps_back_a_little_is_a_glitch_and_is_not_counted_twice() -> None:
    before = {"read_bytes": 1000, "write_bytes": 1000, "read_ops": 10, "write_ops": 10}
    glitch = {**before, "read_bytes": 998, "write_bytes": 1500, "write_ops": 12}
    after = {**glitch, "read_bytes": 1010}
    readings = [sample("target_io", 5 * n, {"": CounterSet(item)}) for n, item in enumerate((before, glitch, after))]
    _, first, second = run(*readings)
    assert (moved(first), moved(first, "write_bytes"), first.glitches, first.resets) == (0, 500, 1, 0)
    assert moved(second) == 10


def test_fail_over_is_just_the_next_sample() -> None:
    """The key has no host: the other server's counters began at zero, with a later start time."""
    *_, step = run(io_sample(0, 10**12, 10**12, start=1_000), io_sample(5, 4096, 0, start=2_000_000_000))
    assert (moved(step), moved(step, "write_bytes")) == (4096, 0)


def test_a_counter_that_was_unreadable_stays_unknown() -> None:
    first = sample("target_io", 0, {"": CounterSet({"read_bytes": 1, "write_bytes": 1})})
    second = sample("target_io", 5, {"": CounterSet({"read_bytes": 5})})
    *_, step = run(first, second)
    assert moved(step) == 4
    assert moved(step, "write_bytes") is None


def test_a_set_that_forgets_starts_anew_with_a_counter_that_was_away() -> None:
    known = [{"read_ops": 1, "write_ops": 10}, {"read_ops": 2}, {"read_ops": 4, "write_ops": 90}, {"write_ops": 95}]
    sets = [CounterSet(item, complete=False, forgets=True) for item in known]
    *_, away, back, after = run(*(sample("target_io", 5 * n, {"": item}) for n, item in enumerate(sets)))
    assert (moved(away, "read_ops"), moved(away, "write_ops")) == (1, None)
    assert (moved(back, "read_ops"), moved(back, "write_ops")) == (2, None)
    assert moved(after, "write_ops") == 5


def test_differences_beyond_signed_64_bits_are_unknown_not_traffic() -> None:
    """Refused, not a glitch: `ingest` would say that a counter stepped back and was counted as zero."""
    *_, step = run(io_sample(0, 0, 1), io_sample(5, 18446744073709551615, 1))
    assert moved(step) is None
    assert step.refused[""]["read_bytes"] == 18446744073709551615
    assert step.glitches == 0


def test_a_new_job_counts_in_full_and_a_known_one_by_its_difference() -> None:
    first = sample("job_io", 0, {"a": CounterSet({"read_bytes": 100})})
    second = sample("job_io", 5, {"a": CounterSet({"read_bytes": 130}), "b": CounterSet({"read_bytes": 7})})
    *_, step = run(first, second)
    assert (moved(step, name="a"), moved(step, name="b")) == (30, 7)


def test_a_job_that_began_before_the_baseline_but_was_not_in_it_is_only_a_baseline() -> None:
    first = sample("job_io", 100, {"a": CounterSet({"read_bytes": 1}, 5)})
    late = CounterSet({"read_bytes": 10**9}, 5)
    *_, step = run(first, sample("job_io", 105, {"a": CounterSet({"read_bytes": 1}, 5), "b": late}))
    assert "b" not in step.movements


def test_what_clients_of_an_mdt_move_adds_up_to_one_movement() -> None:
    first = {"": CounterSet({"open": 0, "statfs": 5}), "a": CounterSet({"open": 100}), "b": CounterSet({"open": 50})}
    second = {"": CounterSet({"open": 0, "statfs": 6}), "a": CounterSet({"open": 103}), "c": CounterSet({"open": 4})}
    third = {**second, "b": CounterSet({"open": 51})}
    _, went, back = run(*(sample("metadata_ops", 5 * n, item) for n, item in enumerate((first, second, third))))
    assert went.movements == {"": Movement({"open": 7, "statfs": 1}, after_reset=False)}
    assert back.movements == {"": Movement({"open": 1, "statfs": 0}, after_reset=False)}
    assert (went.resets, back.resets) == (0, 0)


@settings(derandomize=True)
@given(st.lists(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 100), st.booleans()), max_size=5), max_size=30))
def test_clients_that_come_and_go_never_count_more_than_they_did(ticks: list[list[tuple[int, int, bool]]]) -> None:
    """Each tick some clients work; some are gone after it, and begin at zero when they are back."""
    counts: dict[str, int] = {"a0": 7}
    returned = False
    gone: set[str] = set()
    baseline = advance(None, sample("metadata_ops", 0, {"": CounterSet({}), "a0": CounterSet({"open": 7})})).baseline
    truth = counted = 0
    for number, tick in enumerate(ticks, 1):
        leaving = []
        for client, opens, leaves in tick:
            name = f"a{client}"
            returned |= name in gone
            counts[name] = counts.get(name, 0) + opens
            truth += opens
            leaving += [name] if leaves else []
        sets = {name: CounterSet({"open": count}) for name, count in counts.items()}
        step = advance(baseline, sample("metadata_ops", 5 * number, {"": CounterSet({}), **sets}))
        counted += step.movements[""].moved.get("open", 0) if step.movements else 0
        baseline = step.baseline
        for name in leaving:
            counts.pop(name, None)
            gone.add(name)
    assert 0 <= counted <= truth
    assert counted == truth or returned


def test_a_client_is_only_a_baseline_where_none_was_read_before() -> None:
    first, second = {"": CounterSet({"open": 3})}, {"": CounterSet({"open": 4}), "a": CounterSet({"open": 10**6})}
    *_, step = run(sample("metadata_ops", 0, first), sample("metadata_ops", 5, second))
    assert step.movements[""].moved == {"open": 1}


def test_a_counter_of_a_job_that_was_not_read_before_is_only_a_baseline() -> None:
    """A store of before times were kept: a job that runs across the change must not get all its time at once."""
    readings = [{"read_ops": 5}, {"read_ops": 6, "read_us": 9_000_000}, {"read_ops": 7, "read_us": 9_000_500}]
    _, first, second = run(*(sample("job_io", 5 * n, {"a": CounterSet(reading)}) for n, reading in enumerate(readings)))
    assert moved(first, "read_us", "a") is None
    assert moved(second, "read_us", "a") == 500


def test_sizes_of_a_job_are_as_its_bytes_new_bins_count_in_full() -> None:
    first = sample("job_sizes", 0, {"a": CounterSet({"read:4096": 5})})
    second = sample("job_sizes", 5, {"a": CounterSet({"read:4096": 5, "write:32": 3}), "b": CounterSet({"read:64": 2})})
    *_, step = run(first, second)
    assert {name: movement.moved for name, movement in step.movements.items()} == {
        "a": {"read:4096": 0, "write:32": 3}, "b": {"read:64": 2},
    }  # fmt: skip
    assert run(first, second, sample("job_sizes", 10, {}))[-1].baseline.sets == {}


def test_a_histogram_that_appears_is_only_a_baseline_and_new_bins_of_a_known_one_count() -> None:
    first = sample("target_histograms", 0, {"io_time_ms": CounterSet({"read:1": 5})})
    sets = {"io_time_ms": CounterSet({"read:1": 5, "read:2": 3}), "pages_per_bulk": CounterSet({"read:256": 9})}
    *_, step = run(first, sample("target_histograms", 5, sets))
    assert step.movements["io_time_ms"].moved == {"read:1": 0, "read:2": 3}
    assert "pages_per_bulk" not in step.movements


def test_two_samples_on_one_tick_keep_their_order() -> None:
    import dataclasses

    late = dataclasses.replace(io_sample(3, 20, 0), time_us=io_sample(0, 0, 0).time_us)
    *_, step = run(io_sample(0, 0, 0), late)
    assert step.time_us == late.snapshot_us
    assert moved(step) == 20


def test_a_baseline_survives_the_store() -> None:
    baseline = Baseline(1, 2, {"": CounterSet({"read_bytes": 2**64 - 1}, None), "b": CounterSet({"x": 1}, 7)})
    assert Baseline.from_stored(1, 2, baseline.counters_json()) == baseline


@given(
    st.lists(
        st.tuples(st.integers(1, 10**9), st.integers(1, 10**9), st.booleans(), st.booleans()), min_size=1, max_size=40
    )
)
def test_any_stream_of_moves_resets_and_misses_gives_exactly_what_could_be_seen(moves) -> None:
    """Truth, kept beside the stream: bytes since the last reading, or since the reset if one came between."""
    read = write = unread = 0
    start = 1
    truth, samples = [], [io_sample(0, 0, 0, start=start)]
    for number, (more_read, more_write, reset, missed) in enumerate(moves, start=1):
        if reset:
            read = write = unread = 0
            start += 10_000_000
        read, write, unread = read + more_read, write + more_write, unread + more_read
        if not missed:
            samples.append(io_sample(5 * number, read, write, start=start))
            truth.append(unread)
            unread = 0
    assert [moved(step) for step in run(*samples)[1:]] == truth


def mounted(second: float, **opens: int):
    """`open` of each text and mount, called `text_mount`."""
    sets = {name.replace("_", "@"): CounterSet({"open": count}) for name, count in opens.items()}
    return sample("client_metadata", second, sets, "n1")


def test_a_mount_that_is_new_has_moved_all_it_shows_and_takes_the_place_of_the_one_that_is_gone() -> None:
    _, remounted, later = run(mounted(0, llite_a=20), mounted(5, llite_b=50), mounted(10, llite_b=53))
    assert (moved(remounted, "open", "llite"), remounted.movements["llite"].after_reset) == (50, True)
    assert (moved(later, "open", "llite"), later.movements["llite"].after_reset) == (3, False)
    assert list(later.baseline.sets) == ["llite@b"]


def test_mounts_add_up_and_a_second_one_is_no_reset() -> None:
    _, step = run(mounted(0, llite_a=20), mounted(5, llite_a=21, llite_b=7))
    assert (moved(step, "open", "llite"), step.movements["llite"].after_reset) == (8, False)


def test_a_text_of_a_known_mount_or_of_the_node_is_only_a_baseline_at_first() -> None:
    _, step, later = run(mounted(0, llite_a=20), mounted(5, llite_a=21, osc_a=900, cbd_=800), mounted(10, osc_a=901))
    assert {name: dict(movement.moved) for name, movement in step.movements.items()} == {"llite": {"open": 1}}
    assert moved(later, "open", "osc") == 1
    assert "cbd@" in later.baseline.sets


def test_a_mount_from_before_the_baseline_was_not_read_then() -> None:
    old = sample("client_metadata", 5, {"llite@b": CounterSet({"open": 50}, 1)}, "n1")
    _, step = run(mounted(0, llite_a=20), old)
    assert step.movements == {}


def test_of_a_histogram_only_bins_that_moved_become_rows() -> None:
    counted = [{"read:4": 3, "read:8": 9, "write:4": 1}, {"read:4": 3, "read:8": 12, "write:4": 6}]
    first, last = (
        sample("target_histograms", 5 * number, {"pages": CounterSet(counters)})
        for number, counters in enumerate(counted)
    )
    rows = interval_rows(last, run(first, last)[1], "lustre-lctl")
    assert [(row["histogram"], row["direction"], row["bin"], row["count"]) for row in rows] == [
        ("pages", "read", 8, 3),
        ("pages", "write", 4, 5),
    ]


def busy_sample(second: float, written: int, busy_us: int | None, start: int | None = 1, kind: str = "ost"):
    counters = {"write_bytes": written, "write_ops": written // 4096}
    counters |= {} if busy_us is None else {"busy_us": busy_us}
    made = sample("target_io", second, {"": CounterSet(counters, start)})
    return replace(made, labels={"target_kind": kind})


def test_busy_time_of_the_device_behind_an_ost_is_counted_since_boot() -> None:
    """The first value is only a baseline: an agent that did not read it before knows nothing of the time before."""
    _, first, second = run(
        busy_sample(0, 4096, None), busy_sample(5, 8192, 90_000_000), busy_sample(10, 12288, 93_000_000)
    )
    assert (moved(first, "write_bytes"), moved(first, "busy_us")) == (4096, None)
    assert (moved(second, "write_bytes"), moved(second, "busy_us")) == (4096, 3_000_000)


def test_after_a_remount_or_a_gap_busy_time_is_unknown_and_then_goes_on() -> None:
    """A remount may be on another server; after a gap it would be of more than the interval."""
    steps = run(
        busy_sample(0, 8192, 50_000_000), busy_sample(5, 4096, 52_000_000, start=9_000_000),
        busy_sample(10, 8192, 53_000_000, start=9_000_000), busy_sample(15, 12288, None, start=9_000_000),
        busy_sample(20, 16384, 59_000_000, start=9_000_000), busy_sample(25, 20480, 60_500_000, start=9_000_000),
    )  # fmt: skip
    assert [moved(step, "busy_us") for step in steps[1:]] == [None, 1_000_000, None, None, 1_500_000]
    assert [moved(step, "write_bytes") for step in steps[1:]] == [4096] * 5
    assert [step.movements[""].after_reset for step in steps[1:]] == [True, False, False, False, False]


def test_busy_time_that_falls_or_is_longer_than_the_interval_is_of_another_device() -> None:
    steps = run(
        busy_sample(0, 4096, 50_000_000), busy_sample(5, 8192, 10_000_000), busy_sample(10, 12288, 11_000_000),
        busy_sample(15, 16384, 900_000_000), busy_sample(20, 20480, 905_000_000),
    )  # fmt: skip
    assert [moved(step, "busy_us") for step in steps[1:]] == [None, 1_000_000, None, 5_000_000]
    assert {step.resets + step.glitches for step in steps} == {0}


def test_busy_time_of_a_device_itself_is_a_counter_like_its_others() -> None:
    _, step = run(busy_sample(0, 8192, 50_000_000, None, "device"), busy_sample(5, 4096, 2_000_000, None, "device"))
    assert (moved(step, "busy_us"), step.resets) == (2_000_000, 1)
