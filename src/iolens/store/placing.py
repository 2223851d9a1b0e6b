"""Where late samples belong among what the store has of their targets: the reading side of `rebuild.py`."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from itertools import accumulate, pairwise
from typing import Any, Final, NamedTuple

import pyarrow as pa
from deltalake import DeltaTable

from iolens.counters.ceilings import RateCeiling, RateCeilings
from iolens.counters.differences import Baseline, CounterStep, Movement, OrderEvidence, Outcome, advance
from iolens.counters.rows import (
    as_stored,
    counter_columns,
    counters_of,
    interval_rows,
    set_column,
)
from iolens.records import Capture, CounterSet, Sample
from iolens.schema import Table
from iolens.store.counter_series import MOVING
from iolens.store.duckdb_engine import connection, data_files, relation
from iolens.store.ledger import in_force
from iolens.store.order import order_in_stream
from iolens.store.snapshot import DROPPED, DayMarks, Snapshot
from iolens.store.splice import LateReading, Splice, Stored, accounted, is_beyond, links, restarted, splice
from iolens.store.tables import PARTS_PER_SEQUENCE, Tables
from iolens.units import DAY_US, from_epoch_us

_NOTHING: Final = Baseline(0, 0, {})

Key = tuple[str, str]  # file system, target
Sets = Mapping[str, CounterSet]


class Late(NamedTuple):
    """A sample that came too late, and the capture that brought it."""

    sample: Sample
    capture: Capture

    @property
    def time_us(self) -> int:
        """Its tick."""
        return self.sample.time_us


class Fate(Enum):
    """What becomes of a late sample."""

    PLACED = "placed"
    REPEATED = "repeated"  # the store has it, or nothing moved around it
    SET_BACK = "set_back"  # it is not late: the clock was set back before it, and what moved is counted already
    UNPLACED = "unplaced"


class Removed(NamedTuple):
    """Rows of one interval of a target or node that others take the place of; `counter_set` None: all of them."""

    filesystem: str
    who: str
    start_us: int
    time_us: int
    counter_set: str | None = None


@dataclass(slots=True)
class Placement:
    """What late samples change in one table."""

    fates: list[Fate]
    removed: list[Removed] = field(default_factory=list)
    added: list[dict[str, object]] = field(default_factory=list)


@dataclass(slots=True)
class _Known:
    """What the store has of one target around its late samples."""

    stored: dict[str, list[Stored]] = field(default_factory=dict)  # by counter set, in order of time
    anchors: dict[int, Sets] = field(default_factory=dict)  # counters at the ticks of baselines
    left_us: int | None = None  # where the last interval before all of this ends


@dataclass(frozen=True, slots=True)
class Placer:
    """Places late samples in one table."""

    tables: Tables
    handle: DeltaTable
    table: Table
    source: str
    ceilings: RateCeilings
    own: frozenset[tuple[str, int]]  # parts of batches that are under way here: their rows are in the table already

    @property
    def dense(self) -> bool:
        """Whether every interval is stored, also one in which nothing moved."""
        return not self.table.form.moved_only

    def place(self, late: Sequence[Late]) -> Placement:
        """Find the place of each sample, target by target."""
        done = Placement([Fate.UNPLACED] * len(late))
        by_key: dict[Key, dict[int, Late]] = {}
        for number, item in enumerate(late):
            sample = replace(item.sample, sets=as_stored(self.table, item.sample.sets))
            if not self.is_dropped(item.time_us, item.time_us) and not (self.dense and any(sample.sets)):
                by_key.setdefault((sample.filesystem, sample.target), {})[number] = item._replace(sample=sample)
        self._set_aside_set_back(by_key, done)
        known = self._load(by_key)
        for key, mine in by_key.items():
            _TargetSamples(self, known[key], mine, done).place()
        return done

    def is_dropped(self, start_us: int, end_us: int) -> bool:
        """Whether raw rows of some day in that time were dropped, and only rollups tell what moved."""
        marks = DayMarks(self.handle, DROPPED)
        days = range(start_us // DAY_US, end_us // DAY_US + 1) if marks.times else ()
        return any(marks.of(from_epoch_us(day * DAY_US).date()) for day in days)

    def _set_aside_set_back(self, by_key: Mapping[Key, Mapping[int, Late]], done: Placement) -> None:
        """A sample that was taken after one with a later clock was read by a clock that had been set back."""
        captures = {item.capture.identity: item.capture for mine in by_key.values() for item in mine.values()}
        latest = {name: self._latest_before(capture) for name, capture in captures.items() if capture.numbered}
        reached: dict[tuple[str, Key], int] = {}
        for key, mine in by_key.items():
            for number, item in mine.items():
                place = (item.capture.identity, key)
                before = max(latest.get(item.capture.identity, -1), reached.get(place, -1))
                reached[place] = max(before, item.time_us)
                if item.time_us <= before:
                    done.fates[number] = Fate.SET_BACK

    def _load(self, by_key: Mapping[Key, Mapping[int, Late]]) -> dict[Key, _Known]:
        known = {key: _Known() for key in by_key}
        if not by_key:
            return known
        self._load_anchors(known)
        bounds = []
        for key, mine in by_key.items():
            ticks = [item.time_us for item in mine.values()]
            end = max(ticks) + 1
            anchor = min((tick for tick in known[key].anchors if tick >= end), default=end)
            bounds.append((*key, min(ticks), end, anchor))
        names = ("filesystem", "who", "low", "high", "anchor")
        self._load_intervals(known, pa.table(dict(zip(names, map(list, zip(*bounds, strict=True)), strict=True))))
        return known

    def _load_anchors(self, known: dict[Key, _Known]) -> None:
        """Counters at the ticks of baselines, of batches whose rows are all in the table."""
        baselines = self.tables.load("baselines")
        if baselines is None:
            return
        left_baselines = relation(self.tables, "baselines", data_files(baselines))
        batches = self._batches()
        asked = pa.table(
            [pa.array(list(column)) for column in zip(*known, strict=True)], names=["filesystem", "target"]
        )
        own = pa.table([pa.array([name for name, _ in self.own], pa.string()),
                        pa.array([part for _, part in self.own], pa.int64())], names=["batch", "part"])  # fmt: skip
        assert all(rows is not None for rows in (left_baselines, batches, asked, own))  # used by name
        sql = """SELECT filesystem, target, epoch_us(time), snapshot_us, counters, pending
                 FROM left_baselines SEMI JOIN asked USING (filesystem, target)
                 SEMI JOIN (SELECT batch, part FROM batches UNION ALL FROM own) USING (batch, part)
                 WHERE source = ? AND counter_set = ? ORDER BY position"""
        for row in connection().execute(sql, [self.source, self.table.name]).fetchall():
            filesystem, target, *stored = row
            sets = as_stored(self.table, accounted(Baseline.from_stored(*stored)))
            known[filesystem, target].anchors[stored[0]] = sets

    def _batches(self) -> Any:
        handle = self.tables.load("batches")
        return relation(self.tables, "batches", [] if handle is None else data_files(handle))

    def _latest_before(self, capture: Capture) -> int:
        """The latest tick that the store has of the stream that a capture is a piece of, of pieces before it."""
        batches = self._batches()
        assert batches is not None  # used by name
        stream = capture.identity.rpartition("/")[0]
        handle = self.tables.load("batches")
        known = "true" if handle is None else in_force(self.tables, handle)
        sql = f"""SELECT epoch_us(last_time), CASE WHEN batch = $1 THEN $1 || '/' || part // $2 ELSE batch END
                  FROM batches WHERE (starts_with(batch, $1 || '/') OR batch = $1) AND last_time IS NOT NULL
                  AND {known}"""  # noqa: S608 (quoted)
        pieces = connection().execute(sql, [stream, PARTS_PER_SEQUENCE]).fetchall()
        return max((tick for tick, name in pieces if order_in_stream(capture, name) is OrderEvidence.AFTER), default=-1)

    def _load_intervals(self, known: dict[Key, _Known], bounds: pa.Table) -> None:
        first, last = min(bounds.column("low").to_pylist()), max(bounds.column("anchor").to_pylist())
        stored = relation(self.tables, self.table.name, files_between(self.handle, first - DAY_US, last))

        def ask(sql: str) -> list[tuple[Any, ...]]:
            assert stored is not None and bounds is not None  # noqa: PT018 (used by name)
            return connection().execute(sql, [self.source]).fetchall()

        who = self.table.subject
        mine = f"(SELECT *, {who} AS who FROM stored) AS stored JOIN bounds USING (filesystem, who) WHERE source = ?"  # noqa: S608
        for filesystem, target, end_us in ask(
            f"SELECT filesystem, who, max(epoch_us) FROM {mine} AND epoch_us <= low GROUP BY ALL"  # noqa: S608 (names of the schema)
        ):
            known[filesystem, target].left_us = end_us
        name = set_column(self.table)
        own = f"SELECT filesystem, who, {name}, start_us, epoch_us, duration_s, after_reset"
        for row in ask(
            f"{own}, {counter_columns(self.table, '{}')} FROM {mine} AND epoch_us > low AND start_us < high"
        ):
            self._take(known, row)
        sums = f"""SELECT filesystem, who, {name}, min(start_us), max(epoch_us),
                          sum(epoch_us - start_us), bool_or(after_reset)"""
        rest = f"FROM {mine} AND start_us >= high AND epoch_us <= anchor GROUP BY ALL"
        values = counter_columns(self.table, "CASE WHEN count({0}) = count(*) THEN sum({0}) END")
        for row in ask(f"{sums}, {values} {rest}"):
            self._take(known, row, is_sum=True)
        for filesystem, target, low, _, anchor in zip(*bounds.to_pydict().values(), strict=True):
            self._put_in_order(known[filesystem, target], low, anchor)

    def _take(self, known: dict[Key, _Known], row: tuple[Any, ...], *, is_sum: bool = False) -> None:
        filesystem, target, name, start_us, time_us, length, after_reset, *values = row
        stored = known[filesystem, target].stored.setdefault(str(name), [])
        moved = counters_of(self.table, values)
        if self.dense and is_sum and length != time_us - start_us:  # with a gap, it does not lead back to its start
            moved = dict.fromkeys(moved)
        if stored and stored[-1].is_sum and is_sum:  # another counter of the same set
            last = stored.pop()
            start_us, time_us = min(start_us, last.start_us), max(time_us, last.time_us)
            moved, after_reset = {**last.moved, **moved}, after_reset or last.after_reset
        stored.append(Stored(start_us, time_us, 0.0 if is_sum else length, moved, bool(after_reset), is_sum))

    def _put_in_order(self, of_target: _Known, low_us: int, anchor_us: int) -> None:
        """Intervals in order of time; counters of one interval together."""
        if not self.dense and self.is_dropped(low_us, anchor_us):  # what moved on dropped days is missing in the sums
            of_target.anchors = {}
        for name, rows in of_target.stored.items():
            merged: dict[tuple[int, int, bool], Stored] = {}
            for row in rows:
                key = (row.start_us, row.time_us, row.is_sum)
                same = merged.get(key)
                merged[key] = row if same is None else row._replace(
                    moved={**same.moved, **row.moved}, after_reset=same.after_reset or row.after_reset
                )  # fmt: skip
            of_target.stored[name] = [merged[key] for key in sorted(merged)]
        if not self.dense:
            for name in of_target.anchors.get(anchor_us, {}):  # nothing moved from the last interval to the baseline
                of_target.stored.setdefault(name, []).append(Stored(anchor_us, anchor_us, 0.0, {}, False, True))


@dataclass(slots=True)
class _Chain:
    """Late samples differenced one after the other."""

    baseline: Baseline | None
    ceiling: RateCeiling
    steps: list[tuple[Sample, CounterStep]] = field(default_factory=list)
    taken: set[int] = field(default_factory=set)
    last_us: int = 0  # tick of the last sample

    def go_on(self, number: int | None, sample: Sample, evidence: OrderEvidence) -> None:
        """One more sample, and its number if it is a late one."""
        step = advance(self.baseline, sample, self.ceiling, evidence)
        if step.outcome in MOVING:
            self.baseline = step.baseline
            self.taken |= set() if number is None else {number}
            self.last_us = sample.time_us
        if step.outcome is Outcome.INTERVAL:
            self.steps.append((sample, step))


def files_between(handle: DeltaTable, first_us: int, last_us: int) -> list[str]:
    """Files with intervals in that time; an interval may have begun days before, so that their days do not tell."""
    return [str(path) for path in Snapshot.of(handle).overlapping(first_us, last_us).files.column("path").to_pylist()]


def _evidence(capture: Capture, before: Capture | None) -> OrderEvidence:
    """What is known of the order of two samples by the captures they are of."""
    if before is None:
        return OrderEvidence.NONE
    if capture.identity == before.identity:
        return OrderEvidence.AFTER if capture.numbered else OrderEvidence.SAME_FILE
    return order_in_stream(capture, before.identity)


@dataclass(slots=True)
class _TargetSamples:
    """The late samples of one target on their way to their places."""

    placer: Placer
    known: _Known
    late: Mapping[int, Late]
    done: Placement

    def place(self) -> None:
        """Divide intervals, fill gaps, and go on from before everything stored."""
        self._set_known_aside()
        spliced = {name: self._splice(name, stored) for name, stored in self.known.stored.items()}
        for part in spliced.values():
            self._settle(part.placed, Fate.PLACED)
        self._place_outside(spliced)
        placed = {item.time_us for number, item in self.late.items() if self.done.fates[number] is Fate.PLACED}
        self._settle([number for number, item in self._open().items() if item.time_us in placed], Fate.REPEATED)

    def _place_outside(self, spliced: Mapping[str, Splice]) -> None:
        """Samples that lie in no stored interval."""
        if not self._open():
            return
        begin = min((stored[0].start_us for stored in self.known.stored.values()), default=None)
        if begin is None and self.known.left_us is None:
            begin = min(self.known.anchors, default=None)
        if begin is not None:
            at_begin = {name: part.at_start for name, part in spliced.items() if part.at_start is not None}
            at_begin = at_begin or dict(self.known.anchors.get(begin, {}))
            if self.known.left_us is None:
                self._lead_to(begin, at_begin)
            elif self.placer.dense:
                self._fill(self.known.left_us, begin, at_begin)
        for part in spliced.values() if self.placer.dense else ():
            for (start_us, end_us), after in part.gaps.items():
                self._fill(start_us, end_us, {} if after is None else {"": after})
        for start_us, end_us in self._lost_at_the_end() if self.placer.dense else ():
            self._fill(start_us, end_us, self.known.anchors[end_us])

    def _lost_at_the_end(self) -> Iterable[tuple[int, int]]:
        """From the last stored interval to each later baseline: rows that were there, until a repair took them out."""
        ends = [row.time_us for stored in self.known.stored.values() for row in stored]
        last_us = max(ends, default=self.known.left_us)
        if last_us is None:
            return ()
        return pairwise([last_us, *sorted(tick for tick in self.known.anchors if tick > last_us)])

    def _open(self) -> dict[int, Late]:
        """Samples without a place so far."""
        return {number: item for number, item in self.late.items() if self.done.fates[number] is Fate.UNPLACED}

    def _settle(self, numbers: Iterable[int], fate: Fate) -> None:
        for number in numbers:
            self.done.fates[number] = fate

    def _splice(self, name: str, stored: Sequence[Stored]) -> Splice:
        readings = [
            LateReading(number, item.time_us, item.sample.snapshot_us, item.sample.sets[name])
            for number, item in self._open().items()
            if name in item.sample.sets
        ]
        anchors = {tick: sets[name] for tick, sets in self.known.anchors.items() if name in sets}
        done = splice(stored, anchors, readings, dense=self.placer.dense)
        if done.removed:
            sample = self.late[min(done.placed)].sample
            self._remove(sample, done.removed, None if self.placer.dense else name)
            for piece in done.added:
                movement = {name: Movement(piece.moved, piece.after_reset)}
                step = CounterStep(
                    Outcome.INTERVAL, _NOTHING, piece.time_us, piece.start_us, piece.duration_s, movement
                )
                self.done.added += interval_rows(sample, step, self.placer.source)
        return done

    def _remove(self, sample: Sample, stored: Iterable[Stored], counter_set: str | None) -> None:
        who = (sample.filesystem, sample.target)
        self.done.removed += [Removed(*who, row.start_us, row.time_us, counter_set) for row in stored]

    def _set_known_aside(self) -> None:
        """Samples that the store has, or that lie where nothing moved."""
        rows = sorted({row[:2] for stored in self.known.stored.values() for row in stored if not row.is_sum})
        if self.placer.dense:
            ticks = {tick for row in rows for tick in row} | self.known.anchors.keys()
            known = [number for number, item in self._open().items() if item.time_us in ticks]
        else:
            first = min((start_us for start_us, _ in rows), default=min(self.known.anchors, default=0))
            starts, ends = [start_us for start_us, _ in rows], list(accumulate((end_us for _, end_us in rows), max))

            def is_inside(tick: int) -> bool:
                before = bisect_left(starts, tick)
                return before > 0 and ends[before - 1] > tick

            known = [
                number for number, item in self._open().items() if item.time_us >= first and not is_inside(item.time_us)
            ]
        self._settle(known, Fate.REPEATED)

    def _lead_to(self, begin_us: int, at_begin: Sets) -> None:
        """Samples from before everything that is stored: intervals up to where that begins."""
        earlier = {number: item for number, item in self._open().items() if item.time_us < begin_us}
        chain = self._chain(earlier, None)
        if chain is None or chain.baseline is None:
            return
        last = chain.baseline.sets
        if links(last, at_begin) or restarted(last, at_begin):
            if not self.placer.is_dropped(chain.last_us, begin_us):
                chain.go_on(None, self._sample_at(begin_us, at_begin, chain.baseline), OrderEvidence.AFTER)
            self._take(chain)
        elif self._is_beyond_all(last, [sets for tick, sets in self.known.anchors.items() if tick >= begin_us]):
            self._take(chain)  # counters were reset in between, unseen

    def _is_beyond_all(self, last: Sets, later: Sequence[Sets]) -> bool:
        known = {name: [sets[name] for sets in later if name in sets] for name in last}
        return all(known.values()) and all(is_beyond(counters, known[name]) for name, counters in last.items())

    def _fill(self, start_us: int, end_us: int, at_end: Sets) -> None:
        """A stretch that is not stored, between two that are."""
        inside = {number: item for number, item in self._open().items() if start_us < item.time_us < end_us}
        edge = next((item.sample for item in self.late.values() if item.time_us == start_us), None)
        chain = self._chain(inside, edge)
        if chain is not None and chain.baseline is not None and links(chain.baseline.sets, at_end):
            chain.go_on(None, self._sample_at(end_us, at_end, chain.baseline), OrderEvidence.AFTER)
            self._take(chain)

    def _chain(self, late: Mapping[int, Late], edge: Sample | None) -> _Chain | None:
        """Samples differenced one after the other, from the edge of what is stored if it was read again."""
        if not late:
            return None
        first = next(iter(late.values())).sample
        if edge is not None and not links(edge.sets, first.sets):
            edge = None
        begin = None if edge is None else Baseline(edge.time_us, edge.snapshot_us, edge.sets)
        chain = _Chain(begin, self.placer.ceilings.of(first.filesystem, first.labels.get("target_kind")))
        before: Capture | None = None
        for number, item in late.items():
            chain.go_on(number, item.sample, _evidence(item.capture, before))
            before = item.capture
        return chain

    def _sample_at(self, time_us: int, sets: Sets, baseline: Baseline) -> Sample:
        """The counters at the start of what is stored, as a sample; by the clock that the ticks tell."""
        like = next(iter(self.late.values())).sample
        snapshot_us = baseline.snapshot_us + max(time_us - baseline.time_us, 1)
        known = {name: counters._replace(complete=False) for name, counters in sets.items()}
        return Sample(like.table, like.filesystem, like.target, time_us, snapshot_us, known, like.labels)

    def _take(self, chain: _Chain) -> None:
        for sample, step in chain.steps:
            self.done.added += interval_rows(sample, step, self.placer.source)
        self._settle(chain.taken, Fate.PLACED)
