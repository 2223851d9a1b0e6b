"""Thinning: fewer samples, the same sums, whatever the counters did."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from iolens.agent.sampling.spool import ItemPlace, droppable, thin_segment
from iolens.counters.differences import Baseline, Outcome, advance
from iolens.records import CounterSet, Item, Problem, Row, Sample
from iolens.sources.spool import Segment, SegmentHeader, Tick, check, encode_header, encode_tick
from tests.soak import IS_SOAK

S = 1_000_000
T0 = 1_700_000_000 * S


def sums(items: Sequence[Item]) -> Counter[tuple[str, str, str, str]]:
    """What the store would count in all: by table, target, set and counter."""
    counts: Counter[tuple[str, str, str, str]] = Counter()
    baselines: dict[tuple[str, str], Baseline] = {}
    for item in items:
        if isinstance(item, Sample):
            step = advance(baselines.get((item.table, item.target)), item)
            if step.outcome in (Outcome.BASELINE, Outcome.INTERVAL):
                baselines[item.table, item.target] = step.baseline
            for name, movement in step.movements.items():
                for counter, moved in movement.moved.items():
                    counts[item.table, item.target, name, counter] += moved
    return +counts


@st.composite
def histories(draw: st.DrawFn) -> list[Tick]:
    """Two targets whose counters grow, are reset, glitch, vanish and come back; jobs that come and go."""
    state: dict[str, dict[str, int]] = {"a": {"x": 5, "y": 100}, "b": {"x": 0, "y": 0}}
    starts: dict[str, int | None] = {"a": None, "b": T0 - S}
    jobs: dict[str, tuple[int, int]] = {}
    ticks = []
    for number in range(draw(st.integers(1, 30))):
        now = T0 + number * 5 * S
        items: list[Item] = []
        for target, counters in state.items():
            event = draw(st.sampled_from(["grow"] * 12 + ["reset", "glitch", "absent", "lacks"]))
            if event == "reset":
                counters |= {"x": draw(st.integers(0, 3)), "y": draw(st.integers(0, 3))}
                if starts[target] is not None:
                    starts[target] = now
            for name in counters:
                counters[name] += draw(st.integers(0, 50))
            shown = dict(counters)
            if event == "glitch":
                shown["x"] = shown["x"] * 9 // 10
            if event == "lacks":
                del shown["y"]
            if event != "absent":
                items.append(Sample("target_io", "fs", target, now, now + 7, {"": CounterSet(shown, starts[target])}))
        if draw(st.integers(0, 4)) == 0:
            jobs[f"job{number}"] = (0, now)
        if jobs and draw(st.integers(0, 5)) == 0:
            del jobs[draw(st.sampled_from(sorted(jobs)))]
        jobs = {name: (count + draw(st.integers(0, 9)), start) for name, (count, start) in jobs.items()}
        sets = {name: CounterSet({"write_bytes": count}, start) for name, (count, start) in jobs.items()}
        items.append(Sample("job_io", "fs", "a", now, now + 7, sets))
        items.append(Row("target_capacity", {"time": now, "filesystem": "fs", "target": "a", "used_bytes": number}))
        ticks.append(Tick(now, items))
    return ticks


@settings(max_examples=400 if IS_SOAK else 200)
@given(histories(), st.integers(1, 4))
def test_sums_are_the_same_after_thinning_however_often(ticks: list[Tick], times: int) -> None:
    before = sums([item for tick in ticks for item in tick.items])
    for _ in range(times):
        dropped = droppable(ticks)
        ticks = [
            Tick(
                tick.time_us,
                [item for position, item in enumerate(tick.items) if ItemPlace(number, position) not in dropped],
            )
            for number, tick in enumerate(ticks)
        ]
    assert sums([item for tick in ticks for item in tick.items]) == before


def steady(count: int) -> list[Tick]:
    return [
        Tick(
            T0 + number * 5 * S,
            [
                Sample(
                    "target_io", "fs", "a", T0 + number * 5 * S, T0 + number * 5 * S, {"": CounterSet({"x": number})}
                ),
                Row("target_capacity", {"time": T0 + number * 5 * S, "filesystem": "fs", "target": "a"}),
                Problem("/proc/x", None, f"{number}"),
            ],
        )
        for number in range(count)
    ]


def kept(ticks: list[Tick]) -> list[int]:
    dropped = droppable(ticks)
    return [number for number in range(len(ticks)) if ItemPlace(number, 0) not in dropped]


def test_every_second_sample_goes_the_first_and_the_last_stay() -> None:
    assert kept(steady(9)) == [0, 1, 3, 5, 7, 8]
    assert kept(steady(3)) == [0, 1, 2]
    assert kept(steady(1)) == [0]


def test_the_last_sample_before_a_reset_stays() -> None:
    ticks = steady(4)
    tock = T0 + 100 * S
    fallen = [
        Tick(tock + n, [Sample("target_io", "fs", "a", tock + n, tock + n, {"": CounterSet({"x": n})})]) for n in (0, 1)
    ]
    assert kept([*ticks[:3], *fallen]) == [0, 1, 2, 3, 4]


def test_a_segment_is_rewritten_in_one_step_and_damage_stays_visible(tmp_path: Path) -> None:
    header = SegmentHeader("oss1", "r1", 7)
    path = tmp_path / f"{header.stem}.seg"
    torn = encode_tick(steady(1)[0])[:30]
    path.write_bytes(encode_header(header) + b"".join(map(encode_tick, steady(20))) + b"damaged\n" + torn)
    before = path.stat().st_size
    done = thin_segment(path)
    assert done.samples == 18  # nine samples and nine rows
    assert done.bytes_freed == before - path.stat().st_size > 0
    assert Segment.open(path).header == SegmentHeader("oss1", "r1", 7, thinned=1)
    assert Segment.open(path).identity == header.identity
    assert check(path) == (20, 1, True)  # problems stay, each in its line
    assert list(tmp_path.iterdir()) == [path]
    levels = [thin_segment(path).samples for _ in range(6)]
    assert levels[-1] == 0


def test_a_counter_of_a_job_that_shows_later_is_not_thinned_away() -> None:
    """Its first value is only a baseline: without it, what it moved up to the next would be lost."""
    readings = [{"read_ops": n} | ({"read_us": 10 * n} if n >= 2 else {}) for n in range(6)]
    ticks = [
        Tick(at, [Sample("job_io", "fs", "a", at, at, {"job": CounterSet(item)})])
        for at, item in ((T0 + n * 5 * S, reading) for n, reading in enumerate(readings))
    ]
    dropped = set(droppable(ticks))
    kept = [item for n, tick in enumerate(ticks) for p, item in enumerate(tick.items) if ItemPlace(n, p) not in dropped]
    assert sums(kept) == sums([item for tick in ticks for item in tick.items])
