"""Counters become intervals here and nowhere else (DESIGN, "Counters become intervals in one place").

Pure: the last baseline and a new raw sample in, what moved in between and the next baseline out. Never a
negative number, never the counter of before a reset, never a guess.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Final

from iolens.records import CounterSet, Sample
from iolens.schema import JOB_TABLES

START_TOLERANCE_US: Final = 1_000
BY_CLIENT: Final = "metadata_ops"  # Lustre 2.0 counts an MDT's operations per client, a named set each: they add up
LARGEST_DIFFERENCE: Final = 2**63 - 1


class Outcome(Enum):
    """What a sample turned out to be, given the baseline."""

    BASELINE = "first sample of its target: kept only to difference the next"
    INTERVAL = "moved the counters on"
    REPEATED = "the very sample the baseline came from"
    OLDER = "older than the baseline"


@dataclass(frozen=True, slots=True)
class Baseline:
    """The last raw counters of one target and table."""

    time_us: int
    snapshot_us: int
    sets: Mapping[str, CounterSet]

    def counters_json(self) -> str:
        """The sets as stored in the `baselines` table."""
        plain = {name: {"start_us": one.start_us, "counters": dict(one.counters)} for name, one in self.sets.items()}
        return json.dumps(plain, separators=(",", ":"), ensure_ascii=False)

    @classmethod
    def from_stored(cls, time_us: int, snapshot_us: int, counters_json: str) -> Baseline:
        """The inverse of `counters_json`."""
        plain = json.loads(counters_json)
        sets = {name: CounterSet(one["counters"], one["start_us"]) for name, one in plain.items()}
        return cls(time_us, snapshot_us, sets)


@dataclass(frozen=True, slots=True)
class Movement:
    """What one counter set did between two samples. A counter that was unknown on either side is absent."""

    moved: Mapping[str, int]
    after_reset: bool
    glitches: int = 0


@dataclass(frozen=True, slots=True)
class Step:
    """One sample applied to a baseline."""

    outcome: Outcome
    baseline: Baseline
    time_us: int = 0
    start_us: int = 0
    duration_s: float = 0.0
    movements: Mapping[str, Movement] = field(default_factory=dict)

    @property
    def resets(self) -> int:
        """One reset of a target counts once, however many of its sets it hit."""
        return int(any(movement.after_reset for movement in self.movements.values()))

    @property
    def glitches(self) -> int:
        """Counters that stepped back alone."""
        return sum(movement.glitches for movement in self.movements.values())


def advance(baseline: Baseline | None, sample: Sample) -> Step:
    """Apply the next sample of a target to its baseline."""
    following = Baseline(sample.time_us, sample.snapshot_us, sample.sets)
    if baseline is None:
        return Step(Outcome.BASELINE, following)
    if sample.snapshot_us == baseline.snapshot_us:
        return Step(Outcome.REPEATED, baseline)
    if sample.snapshot_us < baseline.snapshot_us:
        return Step(Outcome.OLDER, baseline)
    time_us = _tick_after(baseline, sample)
    movements: dict[str, Movement] = {}
    sets: dict[str, CounterSet] = {}
    for name, now in sample.sets.items():
        before = baseline.sets.get(name)
        if before is None:
            sets[name] = now
            if _began_since(now, name, baseline, sample):
                movements[name] = Movement(_all_of(now), after_reset=False)
            continue
        if sample.table == "job_io":  # each job shows all counters always: one that is new was not read before
            now = now._replace(complete=False)
        movements[name], sets[name] = _difference(before, now)
    if sample.table not in JOB_TABLES:  # a histogram or client that is missing may be back, and goes on then
        sets = {**{name: one for name, one in baseline.sets.items() if name not in sets}, **sets}
    if sample.table == BY_CLIENT and len(movements) > 1:
        movements = {"": _added_up(movements)}
    return Step(
        Outcome.INTERVAL,
        Baseline(time_us, sample.snapshot_us, sets),
        time_us,
        baseline.time_us,
        (sample.snapshot_us - baseline.snapshot_us) / 1e6,
        movements,
    )


def _tick_after(baseline: Baseline, sample: Sample) -> int:
    """The sample's tick; its own clock when jitter put two samples on one tick."""
    if sample.time_us > baseline.time_us:
        return sample.time_us
    return max(sample.snapshot_us, baseline.time_us + 1)


def _began_since(now: CounterSet, name: str, baseline: Baseline, sample: Sample) -> bool:
    """A job or client that is not in the baseline started counting after it: all it has moved is new.

    Nothing else is; nor is a client where the baseline has none at all, for then clients were not read.
    """
    is_client = sample.table == BY_CLIENT and bool(name) and any(baseline.sets)
    if sample.table not in JOB_TABLES and not is_client:
        return False
    return now.start_us is None or now.start_us >= baseline.snapshot_us - START_TOLERANCE_US


def _added_up(movements: Mapping[str, Movement]) -> Movement:
    """What all clients moved. One whose counters fell came back; when half of them did the server was reset."""
    total: dict[str, int] = {}
    for movement in movements.values():
        for name, value in movement.moved.items():
            total[name] = total.get(name, 0) + value
    fallen = sum(movement.after_reset for movement in movements.values())
    return Movement(total, 2 * fallen >= len(movements), sum(movement.glitches for movement in movements.values()))


def _difference(before: CounterSet, now: CounterSet) -> tuple[Movement, CounterSet]:
    """What moved between two readings of one set, and the set to difference the next reading from."""
    old, new = before.counters, now.counters
    kept = {} if now.forgets else old
    seen = new if now.complete else {name: value for name, value in new.items() if name in old}
    fallen = [name for name, value in new.items() if value < old.get(name, 0)]
    if not fallen and not _restarted(before, now):
        moved = {name: value - old.get(name, 0) for name, value in seen.items()}
        return _bounded(moved, after_reset=False), CounterSet({**kept, **new}, now.start_us)
    if _restarted(before, now) or _fell_together(fallen, old, new):
        return Movement(_all_of(now), after_reset=True), now
    moved = {name: max(0, value - old.get(name, 0)) for name, value in seen.items()}
    held = {name: old[name] for name in fallen if new[name] * 2 >= old[name]}
    return _bounded(moved, after_reset=False, glitches=len(fallen)), CounterSet({**kept, **new, **held}, now.start_us)


def _restarted(before: CounterSet, now: CounterSet) -> bool:
    if before.start_us is None or now.start_us is None:
        return False
    return abs(before.start_us - now.start_us) > START_TOLERANCE_US


def _fell_together(fallen: list[str], old: Mapping[str, int], new: Mapping[str, int]) -> bool:
    """A reset takes most counters back at once; a glitch one or a few while their neighbours go on."""
    had_counted = sum(1 for name in new if old.get(name, 0) > 0)
    return 2 * len(fallen) >= had_counted and (len(fallen) > 1 or had_counted == 1)


def _all_of(now: CounterSet) -> dict[str, int]:
    return {name: value for name, value in now.counters.items() if value <= LARGEST_DIFFERENCE}


def _bounded(moved: dict[str, int], *, after_reset: bool, glitches: int = 0) -> Movement:
    """Differences that no signed 64-bit column holds are impossible traffic: unknown, and counted as glitches."""
    impossible = [name for name, value in moved.items() if value > LARGEST_DIFFERENCE]
    for name in impossible:
        del moved[name]
    return Movement(moved, after_reset, glitches + len(impossible))
