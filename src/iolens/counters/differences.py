"""Counters become intervals here and nowhere else (DESIGN, "Counters become intervals in one place").

Pure: the last baseline and a new raw sample in, what moved in between and the next baseline out. Never a
negative number, never the counter of before a reset, never more than the target could move, never a guess.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any, Final

from iolens.counters.ceilings import DEFAULT, RateCeiling
from iolens.records import CounterSet, Sample
from iolens.schema import TABLES, CounterForm

START_TOLERANCE_US: Final = 1_000
UNKNOWN_STEP_S: Final = 60.0  # how long a step back may have taken, for the ceiling of what moved in it
TINY_PART: Final = 100  # a counter that fell by less than a hundredth did not begin anew: it is of another time
BUSIEST: Final = 1.1  # shares of an interval: the two clocks of a device and of Lustre are read one after the other
JITTER: Final = 1.1  # a daily dump is now and then an hour late: so much more than the longest interval is still one

Doubts = Mapping[str, Mapping[str, int]]  # by set: readings that cannot be, until the next one decides


class Outcome(Enum):
    """What a sample turned out to be, given the baseline."""

    BASELINE = "first sample of its target: kept only to difference the next"
    INTERVAL = "moved the counters on"
    REPEATED = "the very sample the baseline came from"
    OLDER = "older than the baseline"
    SET_BACK = "after the baseline, by a clock that was set back: what moved is counted with the next later sample"
    UNORDERED = "later by its clock and earlier by its counters, which lie a little below those of the baseline"
    APART = "so long after the baseline that what moved in between has no place in time: a new baseline"


class OrderEvidence(Enum):
    """What else than the clock tells whether a sample was taken after the baseline."""

    NONE = "nothing: the clock alone"
    SAME_FILE = "further down in the same file: after it, if its counters say the same"
    AFTER = "further down in a file whose order is known to be that of the samples"
    BEFORE = "further up in such a file"


@dataclass(frozen=True, slots=True)
class Movement:
    """What one counter set did between two samples. A counter that was unknown on either side is absent."""

    moved: Mapping[str, int]
    after_reset: bool
    glitches: int = 0
    refused: Mapping[str, int] = field(default_factory=dict)  # by counter, more than the target can move


@dataclass(frozen=True, slots=True)
class Carry:
    """What was seen after the baseline while the clock was behind it. The next later sample takes it along."""

    seen_us: int  # by that clock, the last of these samples
    elapsed_us: int  # from the baseline to there, as far as the spacing of the samples tells
    steps: int  # steps back whose own length no spacing shows yet
    moved: Mapping[str, Movement]


@dataclass(frozen=True, slots=True)
class Baseline:
    """The last raw counters of one target and table, and the latest time that a row of it has."""

    time_us: int
    snapshot_us: int
    sets: Mapping[str, CounterSet]
    carry: Carry | None = None
    doubted: Doubts = field(default_factory=dict)
    batch: str = ""  # identity of the batch that left it; empty: the one under way

    @property
    def seen_us(self) -> int:
        """When the last sample was taken, by the clock of then."""
        return self.snapshot_us if self.carry is None else self.carry.seen_us

    def counters_json(self) -> str:
        """The sets as stored in the `baselines` table."""
        plain = {
            name: {"start_us": start_us, "counters": counters if type(counters) is dict else dict(counters)}
            for name, (counters, start_us, *_) in self.sets.items()
        }
        return json.dumps(plain, separators=(",", ":"), ensure_ascii=False)

    def pending_json(self) -> str | None:
        """What waits for the next sample, as stored in the `baselines` table; None: nothing does."""
        if self.carry is None and not self.doubted:
            return None
        plain: dict[str, Any] = {"doubted": {name: dict(values) for name, values in self.doubted.items()}}
        if self.carry is not None:
            moved = {name: [dict(part.moved), part.after_reset] for name, part in self.carry.moved.items()}
            plain["carry"] = [self.carry.seen_us, self.carry.elapsed_us, self.carry.steps, moved]
        return json.dumps(plain, separators=(",", ":"), ensure_ascii=False)

    @classmethod
    def from_stored(
        cls, time_us: int, snapshot_us: int, counters: str, pending: str | None = None, batch: str = ""
    ) -> Baseline:
        """The inverse of `counters_json` and `pending_json`."""
        sets = {name: CounterSet(plain["counters"], plain["start_us"]) for name, plain in json.loads(counters).items()}
        waiting = json.loads(pending) if pending else {}
        carry = None
        if "carry" in waiting:
            seen_us, elapsed_us, steps, moved = waiting["carry"]
            carry = Carry(seen_us, elapsed_us, steps, {name: Movement(*part) for name, part in moved.items()})
        return cls(time_us, snapshot_us, sets, carry, waiting.get("doubted", {}), batch)


@dataclass(frozen=True, slots=True)
class CounterStep:
    """One sample applied to a baseline."""

    outcome: Outcome
    baseline: Baseline
    time_us: int = 0
    start_us: int = 0
    duration_s: float = 0.0
    movements: Mapping[str, Movement] = field(default_factory=dict)  # of the interval, with what was carried to it
    resets: int = 0  # of the target in this step: one, however many of its sets it hit
    glitches: int = 0  # counters that stepped back alone
    refused: Mapping[str, Mapping[str, int]] = field(default_factory=dict)  # by set and counter


def advance(
    baseline: Baseline | None,
    sample: Sample,
    ceiling: RateCeiling = DEFAULT,
    evidence: OrderEvidence = OrderEvidence.NONE,
) -> CounterStep:
    """Apply the next sample of a target to its baseline."""
    if baseline is None:
        return CounterStep(Outcome.BASELINE, Baseline(sample.time_us, sample.snapshot_us, sample.sets))
    if sample.snapshot_us in (baseline.snapshot_us, baseline.seen_us):
        return CounterStep(Outcome.REPEATED, baseline)
    is_behind = sample.snapshot_us < baseline.snapshot_us
    if evidence is OrderEvidence.BEFORE or (is_behind and not _comes_after(baseline, sample, evidence)):
        return CounterStep(Outcome.OLDER, baseline)
    elapsed_us, steps = _elapsed(baseline, sample.snapshot_us)
    seconds = max(elapsed_us / 1e6, UNKNOWN_STEP_S if is_behind else 0.0)
    own, sets, doubted = _moved(baseline, sample, ceiling, seconds)
    movements = own if baseline.carry is None else _together(baseline.carry.moved, own, ceiling, seconds)
    if not is_behind and elapsed_us / 1e6 > ceiling.longest_s * JITTER:
        time_us = _tick_after(baseline, sample.time_us, sample.snapshot_us)
        following = Baseline(time_us, sample.snapshot_us, sample.sets)
        return CounterStep(Outcome.APART, following, time_us, baseline.time_us, elapsed_us / 1e6, movements)
    if any(movement.glitches for movement in own.values()) and _lies_before(baseline, sample):
        return CounterStep(Outcome.UNORDERED, baseline)
    if is_behind:
        kept = {name: Movement(movement.moved, movement.after_reset) for name, movement in movements.items()}
        carry = Carry(sample.snapshot_us, elapsed_us, steps, kept)
        time_us, following = 0, Baseline(baseline.time_us, baseline.snapshot_us, sets, carry, doubted)
    else:
        time_us = _tick_after(baseline, sample.time_us, sample.snapshot_us)
        following = Baseline(time_us, sample.snapshot_us, sets, None, doubted)
    return CounterStep(
        Outcome.SET_BACK if is_behind else Outcome.INTERVAL,
        following,
        time_us,
        baseline.time_us,
        elapsed_us / 1e6,
        movements,
        resets=int(any(movement.after_reset for movement in own.values())),
        glitches=sum(movement.glitches for movement in own.values()),
        refused={name: movement.refused for name, movement in movements.items() if movement.refused},
    )


def _comes_after(baseline: Baseline, sample: Sample, evidence: OrderEvidence) -> bool:
    """Whether a sample with an earlier clock was taken later all the same."""
    if evidence is not OrderEvidence.SAME_FILE:
        return evidence is OrderEvidence.AFTER
    rose = False
    for name, now in sample.sets.items():
        before = baseline.sets.get(name)
        if before is None:
            continue
        if _restarted(before.start_us, now.start_us) or any(
            value < before.counters.get(key, 0) for key, value in now.counters.items()
        ):
            return False
        rose |= any(value > before.counters.get(key, value) for key, value in now.counters.items())
    return rose


def _lies_before(baseline: Baseline, sample: Sample) -> bool:
    """Whether the counters of some set fell together by a tiny part, and none rose: they are of an earlier time."""
    rose = any(
        value > baseline.sets[name].counters.get(key, value)
        for name, now in sample.sets.items()
        if name in baseline.sets
        for key, value in now.counters.items()
    )
    return not rose and fall(baseline.sets, sample.sets) is Fall.TINY


def _elapsed(baseline: Baseline, snapshot_us: int) -> tuple[int, int]:
    """Time since the baseline's interval ended, and how many steps back are not in it yet.

    What a step back took no clock tells: it counts as long as the spacing that follows it.
    """
    spacing = snapshot_us - baseline.seen_us
    before, steps = (0, 0) if baseline.carry is None else (baseline.carry.elapsed_us, baseline.carry.steps)
    return (before, steps + 1) if spacing < 0 else (before + spacing * (1 + steps), 0)


def _tick_after(baseline: Baseline, time_us: int, snapshot_us: int) -> int:
    """The sample's tick; its own clock when jitter put two samples on one tick."""
    return time_us if time_us > baseline.time_us else max(snapshot_us, baseline.time_us + 1)


def _moved(
    baseline: Baseline, sample: Sample, ceiling: RateCeiling, seconds: float
) -> tuple[dict[str, Movement], dict[str, CounterSet], dict[str, Mapping[str, int]]]:
    """What each set did since the last sample, the sets to difference the next from, and what is doubted of them."""
    movements: dict[str, Movement] = {}
    sets: dict[str, CounterSet] = {}
    doubted: dict[str, Mapping[str, int]] = {}
    form = TABLES[sample.table].form
    kind = sample.labels.get("target_kind")
    riders = [counter for of_kind, counter in form.rides_along if of_kind == kind]
    for name, now in sample.sets.items():
        before = baseline.sets.get(name)
        if before is None:
            sets[name] = now
            if _began_since(now, name, baseline, form):
                movement = _within(dict(now.counters), ceiling, seconds)
                movements[name] = replace(movement, after_reset=form.sets_by_mount and _is_remount(baseline, sample))
            continue
        if form.sets_come_and_go and before == now and name not in baseline.doubted:
            sets[name] = before  # most jobs are idle: no row, and no movement to remember
            continue
        if form.sets_show_all:
            now = now._replace(complete=False)
        riding = frozenset(rider for rider in riders if rider in now.counters or rider in before.counters)
        movements[name], sets[name], doubts = _difference(
            _without(riding, before) if riding else before,
            _without(riding, now) if riding else now,
            ceiling,
            seconds,
            baseline.doubted.get(name, {}),
            any_fall_is_reset=form.sets_come_and_go,
        )
        if riding:
            ridden = {} if movements[name].after_reset else _ridden(riding, before, now, seconds)
            movements[name] = replace(movements[name], moved={**movements[name].moved, **ridden})
            seen = {rider: now.counters[rider] for rider in riding if rider in now.counters}
            sets[name] = sets[name]._replace(counters={**sets[name].counters, **seen})
        if doubts:
            doubted[name] = doubts
    if not form.sets_come_and_go:  # a histogram or client that is missing may be back, and goes on then
        known = _still_mounted(baseline.sets, sample.sets) if form.sets_by_mount else baseline.sets
        sets = {**known, **sets}
        if baseline.doubted:
            unseen = {name: doubts for name, doubts in baseline.doubted.items() if name not in sample.sets}
            doubted = {**unseen, **doubted}
    if form.sets_add_up and len(movements) > 1:
        movements = {"": _added_up(list(movements.values()))}
    if form.sets_by_mount:
        movements = _by_text(movements)
    return movements, sets, doubted


def _without(riders: frozenset[str], counter_set: CounterSet) -> CounterSet:
    """The set without what something else counts."""
    own = {name: value for name, value in counter_set.counters.items() if name not in riders}
    return counter_set._replace(counters=own)


def _ridden(riders: frozenset[str], before: CounterSet, now: CounterSet, seconds: float) -> dict[str, int]:
    """What they moved: a device is busy for as long as the interval at most; more is of another time or device."""
    both = riders & before.counters.keys() & now.counters.keys()
    moved = {name: now.counters[name] - before.counters[name] for name in both}
    return {name: value for name, value in moved.items() if 0 <= value <= seconds * BUSIEST * 1e6}


def _began_since(now: CounterSet, name: str, baseline: Baseline, form: CounterForm) -> bool:
    """A job, client or mount that is not in the baseline started counting after it: all it has moved is new.

    Nothing else is; nor is a client where the baseline has none at all, for then clients were not read. A text of a
    mount that was there before is new to us, not new.
    """
    is_client = form.sets_add_up and bool(name) and any(baseline.sets)
    is_mount = form.sets_by_mount and bool(_mount(name)) and _mount(name) not in map(_mount, baseline.sets)
    if not form.sets_come_and_go and not is_client and not (is_mount and baseline.sets):
        return False
    return now.start_us is None or now.start_us >= baseline.seen_us - START_TOLERANCE_US


def _mount(name: str) -> str:
    """The mount that a set counts for; empty: of the whole node."""
    return name.partition("@")[2]


def _is_remount(baseline: Baseline, sample: Sample) -> bool:
    """Whether a mount of the baseline is gone: what it moved last is in no sample."""
    return not set(map(_mount, baseline.sets)) <= set(map(_mount, sample.sets))


def _still_mounted(known: Mapping[str, CounterSet], seen: Mapping[str, CounterSet]) -> dict[str, CounterSet]:
    """The sets of mounts that are there; one that is gone never comes back, for a new mount has a new name."""
    mounts = {"", *map(_mount, seen)}
    return {name: counters for name, counters in known.items() if _mount(name) in mounts}


def _by_text(movements: Mapping[str, Movement]) -> dict[str, Movement]:
    """What all mounts moved, by text. Where one was mounted anew, what is counted is what moved since."""
    by_text: dict[str, list[Movement]] = {}
    for name, movement in movements.items():
        by_text.setdefault(name.partition("@")[0], []).append(movement)
    return {
        name: parts[0]
        if len(parts) == 1
        else replace(_added_up(parts), after_reset=any(part.after_reset for part in parts))
        for name, parts in by_text.items()
    }


def _added_up(movements: Sequence[Movement]) -> Movement:
    """What all clients moved. One whose counters fell came back; when half of them did the server was reset."""
    total: dict[str, int] = {}
    refused: dict[str, int] = {}
    for movement in movements:
        for sums, values in ((total, movement.moved), (refused, movement.refused)):
            for name, value in values.items():
                sums[name] = sums.get(name, 0) + value
    fallen = sum(movement.after_reset for movement in movements)
    glitches = sum(movement.glitches for movement in movements)
    return Movement(total, 2 * fallen >= len(movements), glitches, refused)


def _difference(
    before: CounterSet,
    now: CounterSet,
    ceiling: RateCeiling,
    seconds: float,
    doubted: Mapping[str, int],
    *,
    any_fall_is_reset: bool,
) -> tuple[Movement, CounterSet, dict[str, int]]:
    """What moved between two readings of one set, the set to difference the next reading from, and what is doubted.

    Of a job any fall is a reset: Lustre forgot it while it was idle, and counts it anew.

    A reading that cannot be changes nothing. The next one tells whether it was right: if it goes on from the doubted
    reading, that is where the counter is now; if it goes on from the last good one, the doubted one never was.
    """
    old, new = before.counters, now.counters
    if doubted:
        old = {**old, **_confirmed(old, new, doubted, ceiling, seconds)}
    kept = {} if now.forgets else old
    if _restarted(before.start_us, now.start_us):
        return replace(_within(dict(new), ceiling, seconds), after_reset=True), now, {}
    is_known = new.keys() <= old.keys()
    if now.complete or is_known:
        moved = {name: value - old.get(name, 0) for name, value in new.items()}
        if min(moved.values(), default=0) >= 0 and not ceiling.exceeded(moved, seconds):
            counters = new if is_known and len(new) == len(old) else {**kept, **new}
            return Movement(moved, after_reset=False), CounterSet(counters, now.start_us), {}
    fallen = [name for name, value in new.items() if value < old.get(name, 0)]
    glitches, impossible = len(fallen), dict[str, int]()
    if _is_reset(fallen, old, new, any_fall=any_fall_is_reset):
        if not ceiling.exceeded(new, seconds):
            return Movement(dict(new), after_reset=True), now, {}
        glitches, impossible = 0, {name: new[name] for name in fallen}  # no reset: so much cannot have moved since one
    seen = new if now.complete else {name: value for name, value in new.items() if name in old}
    moved = {name: max(0, value - old.get(name, 0)) for name, value in seen.items() if name not in impossible}
    movement = _within(moved, ceiling, seconds)
    impossible |= movement.refused
    held = {name: old[name] for name in fallen if new[name] * 2 >= old[name]}
    counters = {**kept, **new, **held}
    for name in impossible:
        counters.pop(name)
        counters |= {name: old[name]} if name in old else {}
    movement = Movement(movement.moved, False, glitches, impossible)
    return movement, CounterSet(counters, now.start_us), {name: new[name] for name in impossible}


def _confirmed(
    old: Mapping[str, int], new: Mapping[str, int], doubted: Mapping[str, int], ceiling: RateCeiling, seconds: float
) -> dict[str, int]:
    """Those of the doubted readings that the new ones go on from."""

    def goes_on_from(reading: int, name: str) -> bool:
        return 0 <= new[name] - reading <= ceiling.over(name, seconds)

    return {
        name: reading
        for name, reading in doubted.items()
        if name in new and goes_on_from(reading, name) and not (name in old and goes_on_from(old[name], name))
    }


def _restarted(before_us: int | None, now_us: int | None) -> bool:
    """By when counting began."""
    return before_us is not None and now_us is not None and abs(before_us - now_us) > START_TOLERANCE_US


class Fall(Enum):
    """How counters fell from one sample to the next, the worst of all sets; in the order of that."""

    NONE = "not at all, or a few while their neighbours went on"
    RESET = "together, and far: counting began anew"
    TINY = "together, by a tiny part: not to where a reset leaves them"
    EARLIER = "to a counting that began before: they are of an earlier time"


def fall(before: Mapping[str, CounterSet], after: Mapping[str, CounterSet], tiny_part: int = TINY_PART) -> Fall:
    """How the counters of two samples fell; less than one of `tiny_part` parts is a tiny one."""
    falls = [_fall(before[name], now, tiny_part) for name, now in after.items() if name in before]
    return next((worst for worst in reversed(Fall) if worst in falls), Fall.NONE)


def _fall(before: CounterSet, now: CounterSet, tiny_part: int) -> Fall:
    if _restarted(before.start_us, now.start_us):
        return Fall.EARLIER if (now.start_us or 0) < (before.start_us or 0) else Fall.RESET
    old, new = before.counters, now.counters
    fallen = [name for name, value in new.items() if value < old.get(name, 0)]
    if not fallen or not _fell_together(fallen, old, new):
        return Fall.NONE
    return Fall.RESET if _is_reset(fallen, old, new, any_fall=False, tiny_part=tiny_part) else Fall.TINY


def _is_reset(
    fallen: list[str], old: Mapping[str, int], new: Mapping[str, int], *, any_fall: bool, tiny_part: int = TINY_PART
) -> bool:
    """Whether counting began anew: `any_fall` is enough for that, or many; those by a tiny part do not count."""
    far = [name for name in fallen if (old[name] - new[name]) * tiny_part >= old[name]]
    return bool(far) and (any_fall or _fell_together(far, old, new))


def _fell_together(fallen: list[str], old: Mapping[str, int], new: Mapping[str, int]) -> bool:
    """A reset takes most counters back at once; a glitch one or a few while their neighbours go on."""
    had_counted = sum(1 for name in new if old.get(name, 0) > 0)
    return 2 * len(fallen) >= had_counted and (len(fallen) > 1 or had_counted == 1)


def _within(moved: dict[str, int], ceiling: RateCeiling, seconds: float) -> Movement:
    """What moved, without what cannot have: unknown, and refused."""
    refused = ceiling.exceeded(moved, seconds)
    for name in refused:
        del moved[name]
    return Movement(moved, False, 0, refused)


def _together(
    carried: Mapping[str, Movement], own: Mapping[str, Movement], ceiling: RateCeiling, seconds: float
) -> dict[str, Movement]:
    """What was carried and what moved since, as one. A counter that is not readable now has moved what was carried."""
    movements = dict(carried)
    for name, now in own.items():
        before = carried.get(name)
        if before is None:
            movements[name] = now
            continue
        moved = {**before.moved, **{key: value + before.moved.get(key, 0) for key, value in now.moved.items()}}
        sums = _within(moved, ceiling, seconds)
        after_reset = before.after_reset or now.after_reset
        movements[name] = Movement(sums.moved, after_reset, now.glitches, {**now.refused, **sums.refused})
    return movements
