"""Late samples between stored intervals: where each fits, and what the intervals are then. Pure; see `rebuild.py`.

The counters at the ends of stored intervals are not stored, but they follow: a baseline has those of its own tick, and
what moved in an interval leads from its end back to its start. An interval is divided only at samples whose counters
lie between those of its two ends, so the sum over its parts is what it was.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple

from iolens.counters.differences import START_TOLERANCE_US, Baseline
from iolens.records import CounterSet

Counters = Mapping[str, int]


class Stored(NamedTuple):
    """One stored interval of one counter set; `moved` has None for what is unknown."""

    start_us: int
    time_us: int
    duration_s: float
    moved: Mapping[str, int | None]
    after_reset: bool
    is_sum: bool = False  # stands for several intervals, in which no late sample lies


class LateReading(NamedTuple):
    """One late sample of one counter set, and which of the samples it is."""

    place: int
    time_us: int
    snapshot_us: int
    counters: CounterSet


class IntervalPiece(NamedTuple):
    """An interval that a stored one is divided into."""

    start_us: int
    time_us: int
    duration_s: float
    moved: Counters
    after_reset: bool


@dataclass(slots=True)
class Splice:
    """What becomes of the stored intervals of one set."""

    removed: list[Stored] = field(default_factory=list)
    added: list[IntervalPiece] = field(default_factory=list)
    placed: set[int] = field(default_factory=set)
    at_start: CounterSet | None = None  # the counters where the first stored interval starts
    gaps: dict[tuple[int, int], CounterSet | None] = field(default_factory=dict)  # and at the end of each gap


def accounted(baseline: Baseline) -> dict[str, CounterSet]:
    """The counters up to which everything is in stored intervals, once the baseline's batch is: by set."""
    carried = {} if baseline.carry is None else baseline.carry.moved
    sets = {}
    for name, last in baseline.sets.items():
        if name not in carried:
            sets[name] = last
        elif not carried[name].after_reset:
            less = {key: value - carried[name].moved.get(key, 0) for key, value in last.counters.items()}
            sets[name] = CounterSet(less, last.start_us)
    return sets


def splice(
    stored: Sequence[Stored], anchors: Mapping[int, CounterSet], late: Sequence[LateReading], *, dense: bool
) -> Splice:
    """Divide the stored intervals of one set, in order of time, at the late samples that fit; walks back in time.

    Of a `dense` table every interval is stored; of others only those in which something moved.
    """
    done = Splice()
    late = sorted(late, key=lambda reading: reading.time_us)
    ticks = [reading.time_us for reading in late]
    after: CounterSet | None = None
    next_start: int | None = None
    for interval in reversed(stored):
        if dense and next_start is not None and interval.time_us != next_start:
            done.gaps[interval.time_us, next_start] = after
            after = None
        after = anchors.get(interval.time_us, after)
        inside = late[bisect_right(ticks, interval.start_us) : bisect_left(ticks, interval.time_us)]
        left = anchors.get(interval.start_us)
        if inside and after is not None and not interval.is_sum:
            pieces, taken = _divided(interval, after, left, inside, anchors)
            if len(pieces) > 1:
                done.removed.append(interval)
                done.added += pieces
                done.placed |= {reading.place for reading in taken}
        after = left or _before(interval, after)
        next_start = interval.start_us
    done.at_start = after
    return done


def _before(interval: Stored, after: CounterSet | None) -> CounterSet | None:
    """The counters at the start of an interval, from those at its end."""
    if after is None or interval.after_reset:
        return None
    known = {}
    for name, value in after.counters.items():
        moved = interval.moved.get(name, 0)
        if moved is not None:
            known[name] = value - moved
    return CounterSet(known, after.start_us) if known else None


def _divided(
    interval: Stored,
    after: CounterSet,
    left: CounterSet | None,
    inside: Sequence[LateReading],
    anchors: Mapping[int, CounterSet],
) -> tuple[list[IntervalPiece], list[LateReading]]:
    """The interval in pieces, and the samples that divide it; one piece when none fits."""
    every = {**dict.fromkeys(after.counters, 0), **interval.moved}
    moved = {name: value for name, value in every.items() if value is not None}
    if after.counters.keys() - moved.keys() or moved.keys() - after.counters.keys() - _still(moved):
        return [], []
    end = {name: after.counters.get(name, 0) for name in moved}
    if not interval.after_reset:
        begin = {name: end[name] - value for name, value in moved.items()}
        fitting = _rising(inside, begin, CounterSet(end, after.start_us), _still(moved))
        chain = [begin, *(_values(reading, end) for reading in fitting), end]
        parts = [_less(now, before) for before, now in pairwise(chain)]
        return _pieces(interval, fitting, parts, [False] * len(parts)), fitting
    return _divided_at_reset(interval, moved, CounterSet(end, after.start_us), left, inside, anchors)


def _divided_at_reset(
    interval: Stored,
    moved: Counters,
    end: CounterSet,
    left: CounterSet | None,
    inside: Sequence[LateReading],
    anchors: Mapping[int, CounterSet],
) -> tuple[list[IntervalPiece], list[LateReading]]:
    """The same of an interval in which the counters were reset: what moved before the reset is new where it is known.

    A sample is of before the reset if its start of counting says so or, where there is none, if it counts further
    than any later baseline, and goes on from what is known of the interval's start.
    """
    since = _rising(inside, dict.fromkeys(moved, 0), end, _still(end.counters))
    before: list[LateReading] = []
    if left is not None and moved == end.counters and moved.keys() <= left.counters.keys():
        begin = {name: left.counters[name] for name in moved}
        until = since[0].time_us if since else interval.time_us
        later = [counters for tick, counters in anchors.items() if tick >= interval.time_us]
        earlier = [
            reading for reading in inside if reading.time_us < until and is_of_before(reading.counters, left, later)
        ]
        before = _rising(earlier, begin, None, frozenset())
    chain = [{}, *(_values(reading, end.counters) for reading in since), end.counters]
    parts = [_less(now, then) for then, now in pairwise(chain)]
    parts[0] = {name: value - sum(part[name] for part in parts[1:]) for name, value in moved.items()}
    if before and left is not None:
        chain = [{name: left.counters[name] for name in moved}, *(_values(reading, moved) for reading in before)]
        parts = [*(_less(now, then) for then, now in pairwise(chain)), *parts]
    resets = [number == len(before) for number in range(len(parts))]
    taken = [*before, *since]
    return _pieces(interval, taken, parts, resets), taken


def is_of_before(counters: CounterSet, left: CounterSet, later: Iterable[CounterSet]) -> bool:
    """Whether counters belong to the counting that `left` is of, not to one that came later."""
    if counters.start_us is not None and left.start_us is not None:
        return abs(counters.start_us - left.start_us) <= START_TOLERANCE_US
    return is_beyond(counters, later)


def is_beyond(counters: CounterSet, later: Iterable[CounterSet]) -> bool:
    """Whether some counter is larger than in all of the others: it cannot have been read while they counted."""
    known = list(later)
    return any(all(value > other.counters.get(name, 0) for other in known) for name, value in counters.counters.items())


def _still(moved: Counters) -> frozenset[str]:
    return frozenset(name for name, value in moved.items() if value == 0)


def _values(reading: LateReading, default: Counters) -> dict[str, int]:
    return {name: reading.counters.counters.get(name, value) for name, value in default.items()}


def _less(now: Counters, then: Counters) -> dict[str, int]:
    return {name: value - then.get(name, 0) for name, value in now.items()}


def _rising(
    inside: Sequence[LateReading], begin: Counters, end: CounterSet | None, still: frozenset[str]
) -> list[LateReading]:
    """Those samples, in order of time, whose counters rise from the one end to the other."""
    last, fitting = begin, list[LateReading]()
    for reading in inside:
        if fitting and reading.time_us == fitting[-1].time_us:  # the same sample once more
            continue
        values = reading.counters.counters
        if any(name not in values and name not in still for name in begin):
            continue
        if end is not None and not _same_count(reading.counters, end):
            continue
        now = {name: values.get(name, last[name]) for name in begin}
        goes_on = all(value >= last[name] for name, value in now.items())
        if goes_on and (end is None or all(value <= end.counters[name] for name, value in now.items())):
            fitting.append(reading)
            last = now
    return fitting


def _same_count(counters: CounterSet, other: CounterSet) -> bool:
    """Whether nothing says that counting began anew between two readings."""
    if counters.start_us is None or other.start_us is None:
        return True
    return abs(counters.start_us - other.start_us) <= START_TOLERANCE_US


def _pieces(
    interval: Stored, fitting: Sequence[LateReading], parts: Sequence[Counters], resets: Sequence[bool]
) -> list[IntervalPiece]:
    edges = [interval.start_us, *(reading.time_us for reading in fitting), interval.time_us]
    seconds = _durations(interval, fitting, edges)
    return [
        IntervalPiece(start, end, duration, moved, reset)
        for (start, end), duration, moved, reset in zip(pairwise(edges), seconds, parts, resets, strict=True)
    ]


def _durations(interval: Stored, fitting: Sequence[LateReading], edges: Sequence[int]) -> list[float]:
    """Between late samples by their own clocks; the rest of the interval's duration goes to both ends, by ticks."""
    ticks = [(end - start) / 1e6 for start, end in pairwise(edges)]
    inner = [(now.snapshot_us - then.snapshot_us) / 1e6 for then, now in pairwise(fitting)]
    rest = interval.duration_s - sum(inner)
    if not fitting or rest <= 0 or min(inner, default=1.0) <= 0:
        scale = interval.duration_s / sum(ticks)
        return [seconds * scale for seconds in ticks]
    ends = ticks[0] + ticks[-1]
    return [rest * ticks[0] / ends, *inner, rest * ticks[-1] / ends]


def links(last: Mapping[str, CounterSet], right: Mapping[str, CounterSet]) -> bool:
    """Whether counters go on from a sample to those at a later time, in every set that both have."""
    common = last.keys() & right.keys()
    return bool(common) and all(_goes_on(last[name], right[name]) for name in common)


def restarted(last: Mapping[str, CounterSet], right: Mapping[str, CounterSet]) -> bool:
    """Whether their starts say that counting began anew between the two, in every set that both have."""
    pairs = [(last[name].start_us, right[name].start_us) for name in last.keys() & right.keys()]
    return bool(pairs) and all(
        then is not None and now is not None and now - then > START_TOLERANCE_US for then, now in pairs
    )


def _goes_on(then: CounterSet, now: CounterSet) -> bool:
    pairs = [(value, now.counters[name]) for name, value in then.counters.items() if name in now.counters]
    return bool(pairs) and _same_count(then, now) and all(before <= after for before, after in pairs)
