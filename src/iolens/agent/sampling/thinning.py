"""Thin a spooled segment: drop every second sample without losing a byte that the counters carried.

A sample may go only if the one kept before it and the one after it tell the same story without it: same sets, same
start of counting, no counter that fell. So resets, glitches, jobs that end and targets that move stay visible, and
differences over what remains add up to what they were. The first two and the last sample of a target always stay.
"""

from __future__ import annotations

import os
from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, NamedTuple

from iolens.agent.sampling.private_files import open_private
from iolens.records import CounterSet, Item, Row, Sample
from iolens.schema import TABLES
from iolens.sources.spool import Segment, Tick, decode_tick, encode_header, encode_tick, lines, thinned

START_TOLERANCE_US: Final = 1_000  # as the store's


class ItemPlace(NamedTuple):
    """Which item of which tick."""

    tick: int
    item: int


class Thinned(NamedTuple):
    """What a thinning did."""

    samples: int
    bytes_freed: int


@dataclass(slots=True)
class _Series:
    """The samples of one target and table, as they pass. After a break two stay before one may go again."""

    staying: int = 2
    kept: Item | None = None
    candidate: tuple[ItemPlace, Item] | None = None
    dropped: list[ItemPlace] = field(default_factory=list)

    def take(self, place: ItemPlace, item: Item) -> None:
        if self.staying:
            self.staying -= 1
            self.kept = item
        elif self.candidate is None:
            self.candidate = (place, item)
        elif self.kept is not None and _may_go(self.kept, self.candidate[1], item):
            self.dropped.append(self.candidate[0])
            self.kept, self.candidate = item, None
        else:
            self.staying, self.candidate = 1, None


def droppable(ticks: Iterable[Tick]) -> set[ItemPlace]:
    """Every second sample of each target and table, as far as it may go."""
    series: dict[Hashable, _Series] = {}
    for number, tick in enumerate(ticks):
        for position, item in enumerate(tick.items):
            key = _key(item)
            if key is not None:
                series.setdefault(key, _Series()).take(ItemPlace(number, position), item)
    return {place for item in series.values() for place in item.dropped}


def thin_segment(path: Path) -> Thinned:
    """Rewrite a closed segment with fewer samples; in one step, so that a crash leaves the one or the other."""
    segment = Segment.open(path)
    dropped = droppable(_ticks(path))
    if not dropped:
        return Thinned(0, 0)
    before = path.stat().st_size
    beside = path.with_suffix(".thin")
    try:
        beside.unlink(missing_ok=True)
        with os.fdopen(open_private(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL), "wb") as stream:
            stream.writelines(_rewritten(segment, dropped))
            stream.flush()
            os.fsync(stream.fileno())
        beside.replace(path)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise
    return Thinned(len(dropped), before - path.stat().st_size)


def _rewritten(segment: Segment, dropped: set[ItemPlace]) -> Iterator[bytes]:
    """The lines of the thinned segment; what is damaged stays as it is."""
    yield encode_header(thinned(segment.header))
    number = -1
    for line in lines(segment.path):
        tick = _tick(line.payload)
        if tick is None:
            if line.payload is None or not line.payload.startswith(b"{"):
                yield line.raw
            continue
        number += 1
        items = [item for position, item in enumerate(tick.items) if ItemPlace(number, position) not in dropped]
        if len(items) == len(tick.items):
            yield line.raw
        elif items:
            yield encode_tick(Tick(tick.time_us, items))


def _ticks(path: Path) -> Iterator[Tick]:
    return (tick for line in lines(path) if (tick := _tick(line.payload)) is not None)


def _tick(payload: bytes | None) -> Tick | None:
    if payload is None or payload.startswith(b"{"):
        return None
    try:
        return decode_tick(payload)
    except ValueError:
        return None


def _key(item: Item) -> Hashable | None:
    if isinstance(item, Sample):
        return (item.table, item.filesystem, item.target)
    if isinstance(item, Row) and item.table in TABLES and TABLES[item.table].kind == "reading":
        names = (name for name in TABLES[item.table].key if name not in ("source", "time"))
        return (item.table, *(str(item.values.get(name)) for name in names))
    return None


def _may_go(kept: Item, candidate: Item, following: Item) -> bool:
    if not (isinstance(kept, Sample) and isinstance(candidate, Sample) and isinstance(following, Sample)):
        return True  # times, not counters
    in_order = kept.snapshot_us < candidate.snapshot_us < following.snapshot_us
    return (
        in_order
        and _leads_to(kept, candidate)
        and _leads_to(candidate, following)
        and _leads_to(kept, following)
        and _new_sets_are_new(kept, candidate)
    )


def _leads_to(before: Sample, after: Sample) -> bool:
    """Whether every set of `before` went on in `after` without a reset or a step back."""
    return before.labels == after.labels and all(
        name in after.sets and _went_on(counter_set, after.sets[name]) for name, counter_set in before.sets.items()
    )


def _went_on(before: CounterSet, after: CounterSet) -> bool:
    if (before.start_us is None) != (after.start_us is None):
        return False
    if abs((before.start_us or 0) - (after.start_us or 0)) > START_TOLERANCE_US:
        return False
    return all(after.counters.get(name, -1) >= value for name, value in before.counters.items())


def _new_sets_are_new(kept: Sample, candidate: Sample) -> bool:
    """A set that first shows in the candidate would be measured from there; only a job that began since is whole."""
    form = TABLES[candidate.table].form
    if not form.sets_come_and_go:  # nor may a counter show anew: it may have been there before the one that was kept
        return all(
            name in kept.sets and counter_set.counters.keys() <= kept.sets[name].counters.keys()
            for name, counter_set in candidate.sets.items()
        )
    fresh = [counter_set for name, counter_set in candidate.sets.items() if name not in kept.sets]
    known = [(counter_set, kept.sets[name]) for name, counter_set in candidate.sets.items() if name in kept.sets]
    shows_all = not form.sets_show_all or all(new.counters.keys() <= old.counters.keys() for new, old in known)
    return shows_all and all(
        counter_set.start_us is None or counter_set.start_us >= kept.snapshot_us for counter_set in fresh
    )
