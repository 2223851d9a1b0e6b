"""Jobs that job_stats forget after a while without I/O, and know again: nothing that was seen is lost or counted twice.

What a job moved between the last reading that lists it and the time it is forgotten stands in no reading. Nor does
anything tell a job that was forgotten and has since moved more than before from one that went on, if the version does
not say when counting began and no reading was without the job.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from iolens.counters.differences import advance
from iolens.records import CounterSet
from iolens.store.store import Store
from tests.store.samples import T0, capture, sample
from tests.store.test_ingest import rows

COUNTERS = ("read_bytes", "write_bytes", "open")
JOBS = ("7", "", "dd.0")
STEP_S = 60


@dataclass
class Life:
    """One time that the server knows a job, from its first I/O until it is forgotten."""

    start_us: int
    counters: dict[str, int] = field(default_factory=lambda: dict.fromkeys(COUNTERS, 0))
    seen: dict[str, int] = field(default_factory=dict)  # in the last reading
    before: dict[str, int] = field(default_factory=dict)  # in the very first reading, which only begins


@dataclass
class JobServer:
    """The job_stats of one target."""

    has_start: bool
    lives: dict[str, list[Life]] = field(default_factory=dict)
    listed: set[str] = field(default_factory=set)
    now_us: int = T0 * 1_000_000

    def work(self, job: str, amounts: tuple[int, int, int]) -> None:
        self.now_us += 10_000
        if job not in self.listed:
            self.listed.add(job)
            self.lives.setdefault(job, []).append(Life(self.now_us))
        for name, amount in zip(COUNTERS, amounts, strict=True):
            self.lives[job][-1].counters[name] += amount

    def forget(self, job: str) -> None:
        self.listed.discard(job)

    def reading(self) -> dict[str, CounterSet]:
        sets = {}
        for job in self.listed:
            life = self.lives[job][-1]
            life.seen = dict(life.counters)
            sets[job] = CounterSet(dict(life.counters), life.start_us if self.has_start else None)
        return sets


Event = tuple[str, tuple[int, int, int] | None]  # I/O of a job, or that it is forgotten
AMOUNTS = st.tuples(st.integers(0, 50), st.integers(0, 50), st.integers(0, 3))
EVENTS = st.tuples(st.sampled_from(JOBS), AMOUNTS | st.none())
TICKS = st.lists(st.lists(EVENTS, max_size=6), min_size=1, max_size=12)


def played(server: JobServer, ticks: list[list[Event]]) -> list[dict[str, CounterSet]]:
    readings = []
    for number, events in enumerate(ticks):
        server.now_us = (T0 + STEP_S * number - STEP_S // 2) * 1_000_000
        for job, amounts in events:
            if amounts is None:
                server.forget(job)
            else:
                server.work(job, amounts)
        readings.append(server.reading())
        if not number:
            for job in server.listed:
                server.lives[job][-1].before = dict(server.lives[job][-1].counters)
    return readings


def seen_of_lives(server: JobServer) -> dict[str, dict[str, int]]:
    """By job, all that was seen of all its lives, since the first reading."""
    return {
        job: {name: sum(life.seen.get(name, 0) - life.before.get(name, 0) for life in lives) for name in COUNTERS}
        for job, lives in server.lives.items()
    }


def counted_by_hand(readings: list[dict[str, CounterSet]]) -> dict[str, dict[str, int]]:
    """The same without the beginnings: a job is new if the last reading lacks it, or if one of its counters fell."""
    moved: dict[str, dict[str, int]] = {}
    for before, now in pairwise(readings):
        for job, (counters, *_) in now.items():
            old = before[job].counters if job in before else {}
            fell = any(counters[name] < old.get(name, 0) for name in COUNTERS)
            sums = moved.setdefault(job, dict.fromkeys(COUNTERS, 0))
            for name in COUNTERS:
                sums[name] += counters[name] - (0 if fell else old.get(name, 0))
    return moved


def counted(readings: list[dict[str, CounterSet]]) -> dict[str, dict[str, int]]:
    """What the counters' rule makes of the readings."""
    sums: dict[str, dict[str, int]] = {}
    baseline = None
    for number, sets in enumerate(readings):
        step = advance(baseline, sample("job_io", STEP_S * number, sets))
        baseline = step.baseline
        assert not step.glitches
        for job, movement in step.movements.items():
            assert min(movement.moved.values()) >= 0
            for name, value in movement.moved.items():
                by_name = sums.setdefault(job, dict.fromkeys(COUNTERS, 0))
                by_name[name] += value
    return sums


def without_zeros(sums: dict[str, dict[str, int]]) -> dict[str, dict[str, int]]:
    return {job: values for job, values in sums.items() if any(values.values())}


@settings(max_examples=300, deadline=None)
@given(TICKS)
def test_all_that_was_seen_of_each_life_of_a_job_is_counted_where_its_start_is_known(
    ticks: list[list[Event]],
) -> None:
    server = JobServer(has_start=True)
    readings = played(server, ticks)
    assert without_zeros(counted(readings)) == without_zeros(seen_of_lives(server))


@settings(max_examples=300, deadline=None)
@given(TICKS)
def test_without_a_beginning_a_job_is_new_where_it_was_away_or_a_counter_fell(ticks: list[list[Event]]) -> None:
    server = JobServer(has_start=False)
    readings = played(server, ticks)
    sums = counted(readings)
    assert without_zeros(sums) == without_zeros(counted_by_hand(readings))
    seen = seen_of_lives(server)
    assert all(sums[job][name] <= seen[job][name] for job in sums for name in COUNTERS)


def test_one_counter_that_falls_means_that_the_job_was_forgotten() -> None:
    """It has written more since than before: only its reads show it."""
    before = {"read_bytes": 100, "write_bytes": 5, "open": 3}
    after = {"read_bytes": 60, "write_bytes": 90, "open": 4}
    assert counted([{"7": CounterSet(before)}, {"7": CounterSet(after)}]) == {"7": after}


@pytest.mark.parametrize("has_start", [True, False])
def test_jobs_that_are_forgotten_and_come_back_are_whole_in_the_store(tmp_path: Path, has_start: bool) -> None:
    ticks: list[list[Event]] = [
        [("", (10, 0, 1)), ("7", (5, 5, 5))],
        [("", (10, 1, 0)), ("7", (1, 1, 1))],
        [("", None), ("7", None)],  # forgotten
        [("", (3, 0, 0)), ("7", (20, 20, 20))],
        [("7", None), ("7", (2, 0, 1)), ("", (4, 0, 0))],  # forgotten and back between two readings
        [],
    ]
    server = JobServer(has_start)
    readings = played(server, ticks)
    samples = [sample("job_io", STEP_S * number, sets) for number, sets in enumerate(readings)]
    store = Store(str(tmp_path / "store"))
    tally = store.ingest([capture(samples[:3], "first")], "servers")
    tally = store.ingest([capture(samples[3:], "second")], "servers")
    assert (tally.resets, tally.glitches, tally.refused) == (1, 0, 0)
    sums: dict[str, dict[str, int]] = {}
    for job, *values in rows(store, "job_io", "job_id", *COUNTERS):
        by_name = sums.setdefault(job, dict.fromkeys(COUNTERS, 0))
        for name, value in zip(COUNTERS, values, strict=True):
            by_name[name] += value
    assert sums == seen_of_lives(server)
    assert sums[""] == {"read_bytes": 17, "write_bytes": 1, "open": 0}
