"""`iolens store undo`: the rows of some captures are taken out again, and the store is as if it never had them.

Which rows those are is proved, not guessed. Candidates are rows of the right source, time and targets, in files that
may hold rows of these captures by all that the ledger says. If there are as many of them as the captures brought, they
are the ones, also after a compaction; otherwise the undo is refused and nothing is changed.

The interval after what is taken out began at one of its samples. It is made anew from the sample before: what moved in
both adds up, since counters are differenced one after the other. Where they were reset or a reading was refused in
between, it is differenced from the baselines, if these still have the counters at both ends; else it is removed, too,
and reported.

The order makes a kill at any time harmless. The plan is written to `batches`; one commit takes the captures out of
`baselines`, so that from then on nobody differences from their samples; one commit for each table; last, `batches` says
what was taken back. The same undo again finds the plan that the commit to `baselines` names, and completes the rest.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime
from functools import partial
from pathlib import Path
from typing import Any, Final, NamedTuple

import duckdb
import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable, Transaction
from deltalake.exceptions import CommitFailedError

from iolens.counters.ceilings import RateCeilings
from iolens.counters.differences import Baseline, Outcome, advance
from iolens.counters.rows import interval_rows
from iolens.errors import StoreBusyError, StoreError, UsageError
from iolens.records import CounterSet, Sample
from iolens.schema import BASELINES, BATCHES, TABLES, Table
from iolens.store.duckdb_engine import connection, query, relation
from iolens.store.gate import Gate
from iolens.store.ledger import (
    SECONDARY,
    UNDONE,
    CaptureKey,
    Ledger,
    LedgerPart,
    LiveFiles,
    hash_of_key,
    hashes_in,
    original,
    origins_of,
    rows_of,
)
from iolens.store.rebuild import REBUILT
from iolens.store.rows import to_arrow
from iolens.store.snapshot import DROPPED, DayMarks, Snapshot
from iolens.store.store import RESOLUTIONS, Store
from iolens.store.tables import RETRY_SECONDS, UNDO, BatchPart, Tables, arrow_schema, retrying
from iolens.units import from_epoch_us, iso
from iolens.visible_text import counted

EARLIEST_US: Final = -(2**61)
SHORTEST_PREFIX: Final = 8
MOST_NAMED: Final = 5
_WANTED: Final = pa.schema(
    {"source": pa.string(), "filesystem": pa.string(), "who": pa.string(), "low_us": pa.int64(),
     "first_us": pa.int64(), "last_us": pa.int64()}
)  # fmt: skip
_SPAN: Final = pa.schema(
    {"source": pa.string(), "filesystem": pa.string(), "who": pa.string(), "low_us": pa.int64(),
     "high_us": pa.int64(), "tick_us": pa.int64(), "length_s": pa.float64(), "is_plain": pa.bool_()}
)  # fmt: skip


class UndoneSpan(NamedTuple):
    """A stretch of one target that is taken out; times in microseconds since 1970."""

    source: str
    filesystem: str
    who: str
    low_us: int | None  # the tick of the sample before; None: there is none
    high_us: int  # its last tick
    tick_us: int | None  # the first tick after it; None: there is none
    length_s: float | None  # from the sample before to the one after, by their clocks
    is_plain: bool  # what moved adds up: no reset, glitch or refused reading


@dataclass(slots=True)
class UndoPlan:
    """What is taken out; it is written down before anything is changed."""

    captures: list[CaptureKey]
    wanted: dict[str, list[list[Any]]] = field(default_factory=dict)  # by table: rows of `_WANTED`
    hashes: dict[str, list[int] | None] = field(default_factory=dict)  # by table, of keys; None: not needed
    spans: list[UndoneSpan] = field(default_factory=list)

    def as_json(self) -> str:
        """As `batches` keeps it."""
        return json.dumps(
            {"captures": self.captures, "wanted": self.wanted, "hashes": self.hashes, "spans": self.spans}
        )

    @classmethod
    def from_json(cls, text: str) -> UndoPlan:
        """The inverse."""
        plain = json.loads(text)
        captures = [CaptureKey(*key) for key in plain["captures"]]
        return cls(captures, plain["wanted"], plain["hashes"], [UndoneSpan(*span) for span in plain["spans"]])


@dataclass(slots=True)
class Undone:
    """What was taken out, or would be."""

    batches: list[str]
    removed: Counter[str] = field(default_factory=Counter)  # rows of these captures, by table
    joined: Counter[str] = field(default_factory=Counter)  # rows after them that were made anew
    lost: list[str] = field(default_factory=list)  # what could not be made anew, and is removed, too
    again: list[str] = field(default_factory=list)  # captures of which something may have been dropped because of these


def undo(
    store: Store,
    names: Sequence[str] = (),
    source: str | None = None,
    since: datetime | None = None,
    *,
    dry_run: bool = False,
    ceilings: RateCeilings | None = None,
) -> Undone:
    """Take captures back: those with these ids or origins, or all of a source that were ingested since a time."""
    ledger = Ledger.read(store.tables)
    chosen = _chosen(ledger, names, source, since)
    return _Undo(store.tables, ledger, chosen, ceilings or RateCeilings()).run(dry_run=dry_run)


def _chosen(
    ledger: Ledger, names: Sequence[str], source: str | None, since: datetime | None
) -> dict[CaptureKey, list[LedgerPart]]:
    """The captures that are meant; UsageError where that is not clear."""
    if not names and (source is None or since is None):
        raise UsageError("name batches or files, or all of a source since a time: --source NAME --since TIME")
    first_us = 0 if since is None else int(since.timestamp() * 1e6)
    every = {
        key: parts
        for key, parts in ledger.captures().items()
        if (source is None or parts[0].source == source) and parts[-1].time_us >= first_us
    }
    chosen: dict[CaptureKey, list[LedgerPart]] = {}
    for name in names:
        chosen |= _named(every, ledger, name)
    if not names:
        chosen = {key: parts for key, parts in every.items() if key not in ledger.undone}
    if not chosen:
        raise UsageError(f"no batch of source {source} was ingested since {since}; see `iolens store log`")
    secondary = [f"{key}" for key in chosen if key.identity.startswith(f"{SECONDARY}/")]
    if secondary:
        raise UsageError(f"{secondary[0]}: what --rebuild fitted between stored rows cannot be taken back")
    return chosen


def _named(
    every: Mapping[CaptureKey, list[LedgerPart]], ledger: Ledger, name: str
) -> dict[CaptureKey, list[LedgerPart]]:
    """By id, its beginning, or the file it was read from."""
    fitting = {key: parts for key, parts in every.items() if name in (f"{key}", key.identity)}
    if not fitting:
        path = Path(name).absolute()
        fitting = {key: parts for key, parts in every.items() if _is_of(parts[0].origin, name, path)}
    if not fitting and len(name) >= SHORTEST_PREFIX:
        fitting = {key: parts for key, parts in every.items() if f"{key}".removeprefix("file/").startswith(name)}
    left = {key: parts for key, parts in fitting.items() if key not in ledger.undone}
    if fitting and not left:
        times = sorted(ledger.undone[key] for key in fitting)
        raise UsageError(f"{name}: taken back already, at {iso(from_epoch_us(times[-1]))}")
    if not left:
        raise UsageError(f"{name}: neither a batch nor a file that was ingested; see `iolens store log`")
    if len({key.identity for key in left}) > 1:
        listed = ", ".join(f"{key} of {iso(from_epoch_us(parts[-1].time_us))}" for key, parts in left.items())
        raise UsageError(f"{name} is several batches, name one: {listed}")
    return left


def _is_of(origin: str, name: str, path: Path) -> bool:
    return bool(origin) and (origin == name or Path(origin).absolute() == path)


@dataclass(slots=True)
class _Undo:
    """One undo of some captures."""

    tables: Tables
    ledger: Ledger
    chosen: Mapping[CaptureKey, list[LedgerPart]]
    ceilings: RateCeilings
    done: Undone = field(init=False)
    identity: str = field(init=False)
    baselines: DeltaTable | None = None
    hidden: Mapping[CaptureKey, list[LedgerPart]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.done = Undone(origins_of(self.chosen))
        digest = hashlib.sha256(json.dumps(sorted(self.chosen)).encode()).hexdigest()
        self.identity = f"{UNDO}/{digest[:40]}"

    @property
    def parts(self) -> list[LedgerPart]:
        """All rows of `batches` of the captures."""
        return [part for parts in self.chosen.values() for part in parts]

    def run(self, *, dry_run: bool) -> Undone:
        """Plan, check, and unless it is a trial, do it."""
        self._check_no_other()
        self.hidden = self._hidden()
        self.done.again = origins_of(self.hidden)
        plan, number = self._begun()
        if plan is None:
            plan = self._planned()
            if not dry_run:
                number, plan = self._begin(plan)
        if dry_run:
            self._try(plan)
            return self.done
        for name in plan.wanted:
            retrying(partial(self._change_table, name, plan, number), f"undo in {name}")
        retrying(partial(self._forget_rollups, plan, number), "undo in rollups")
        self._tell_of_first_samples(plan)
        self._record(plan)
        return self.done

    def _check_no_other(self) -> None:
        """An undo that was cut off is completed before another one begins."""
        ends = f"/{UNDONE}"
        finished = {part.part.identity.removesuffix(ends) for part in self.ledger.parts if part.origin == UNDONE}
        for part in self.ledger.parts:
            identity = part.part.identity
            if part.origin == UNDO and identity not in finished and identity != self.identity and self._mark(identity):
                plan = self._plan_of(identity, self._mark(identity))
                names = " ".join(map(str, plan.captures))
                raise StoreError(f"an undo was cut off; complete it first: iolens store undo {names}")

    def _mark(self, identity: str) -> int:
        """Which plan of an undo was begun; 0: none."""
        version = 0
        for name in (BASELINES.name, *TABLES):
            handle = self.tables.load(name)
            if name != BATCHES.name and handle is not None:
                version = max(version, handle.transaction_version(identity) or 0)
        return version

    def _begun(self) -> tuple[UndoPlan | None, int]:
        """The plan of the same undo that was cut off after its first commit."""
        number = self._mark(self.identity)
        return (self._plan_of(self.identity, number), number) if number else (None, 0)

    def _plan_of(self, identity: str, number: int) -> UndoPlan:
        handle = self.tables.load(BATCHES.name)
        assert handle is not None
        sql = "SELECT problems FROM stored WHERE batch = ? AND part = ?"
        ((text,),) = query(self.tables, handle, BATCHES.name, sql, [identity, number])
        return UndoPlan.from_json(text)

    def _planned(self) -> UndoPlan:
        """By the tables and the ledger as they are now."""
        self.baselines = self.tables.load(BASELINES.name)  # first: all that it has must be in the ledger
        self.ledger = Ledger.read(self.tables)
        plan = UndoPlan(sorted(self.chosen))
        self._check_rebuilds()
        claims = _Claims.of(self.tables, self.baselines, self.ledger, self.parts)
        for name, expected in sorted(rows_of(self.parts).items()):
            plan.wanted[name], plan.hashes[name] = self._matched(name, expected, claims)
        for name in sorted(claims.tables - plan.wanted.keys()):
            plan.wanted[name], plan.hashes[name] = (
                [],
                None,
            )  # only first samples: the interval after them is changed all the same
        plan.spans = _Spans(self, plan, claims).made()
        return plan

    def _check_rebuilds(self) -> None:
        """What a rebuild exchanged belongs to several captures."""
        first_us = min(part.time_us for part in self.parts)
        touched = {(name, path.partition("/")[0]) for part in self.parts for name, paths in part.files.items()
                   for path in paths if "/" in path}  # fmt: skip
        for part in self.ledger.parts:
            if part.part.identity.startswith(f"{SECONDARY}/") and part.time_us >= first_us:
                shared = {(name, path.partition("/")[0]) for name, paths in part.files.items() for path in paths}
                if both := sorted(touched & shared):
                    name, day = both[0]
                    raise StoreError(
                        f"{name} {day.removeprefix('date=')}: --rebuild put rows of several captures together "
                        f"({part.part.identity}); they cannot be separated. Nothing was changed"
                    )

    def _matched(self, name: str, expected: int, claims: _Claims) -> tuple[list[list[Any]], list[int] | None]:
        """What tells the rows of the captures from all others of a table: their place, and the hashes of their keys."""
        self._check_dropped(name)
        brought = [part for part in self.parts if part.rows.get(name)]
        texts = [part.hashes[name] for part in brought if name in part.hashes]
        places: list[tuple[list[list[Any]], list[int] | None]] = [
            (claims.wanted(name), None), (_by_extent(self.parts), None)
        ]  # fmt: skip
        if len(texts) == len(brought):
            places.insert(0, (_by_extent(self.parts), hashes_in(texts)))
        counts = []
        for wanted, hashes in places:
            if wanted:
                counts.append(_RowSet(self.tables, TABLES[name], wanted, hashes, self.files(name)).count())
                if counts[-1] == expected:
                    return wanted, hashes
        others = self._written_with(name)
        hint = f"; they were ingested together with {', '.join(others)}: take all of these back" if others else ""
        raise StoreError(
            f"{name}: these batches brought {counted(expected, 'row')}, and {counts[-1]:,} could be theirs: they "
            f"cannot be separated{hint}. Nothing was changed"
        )

    def _check_dropped(self, name: str) -> None:
        marks = DayMarks(self.tables.load(name), DROPPED)
        days = {path.partition("/")[0].removeprefix("date=") for part in self.parts for path in part.files.get(name, ())
                if "/" in path}  # fmt: skip
        gone = sorted(day for day in days if marks.of(date.fromisoformat(day)))
        if gone:
            raise StoreError(f"{name} {gone[0]}: raw rows were dropped by `retain`, and only sums are left: nothing of "
                             "them can be taken back. Nothing was changed")  # fmt: skip

    def row_set(self, table: Table, plan: UndoPlan, spans: Sequence[UndoneSpan]) -> _RowSet:
        """All rows of a table that may be wanted or follow what is."""
        wanted, hashes = plan.wanted[table.name], plan.hashes[table.name]
        mine = self.files(table.name)
        around = [
            Snapshot.of(self.tables.load(table.name)).overlapping(span.low_us or span.high_us, span.high_us + 1).paths
            for span in {(span.low_us, span.high_us): span for span in spans}.values()
        ]
        others = sorted({path for paths in around for path in paths} - set(mine))
        return _RowSet(self.tables, table, wanted, hashes, mine, others, spans)

    def files(self, name: str) -> list[str]:
        """Files that may hold rows of the captures."""
        live = LiveFiles(self.ledger, name)
        return [path for path in Snapshot.of(self.tables.load(name)).paths if live.may_hold(path, self.chosen)]

    def _written_with(self, name: str) -> list[str]:
        """Other captures with rows in the same files."""
        files = {path for part in self.parts for path in part.files.get(name, ())}
        others = {
            f"{key}"
            for key, parts in self.ledger.captures().items()
            if key not in self.chosen
            and any(part.rows.get(name) and files & part.files.get(name, set()) for part in parts)
        }  # fmt: skip
        return sorted(others)[:MOST_NAMED]

    def _hidden(self) -> dict[CaptureKey, list[LedgerPart]]:
        """Later captures of the same source of which something was dropped that these had, or that came late."""
        first_us = min(part.time_us for part in self.parts)
        sources = {part.source for part in self.parts}
        named = {(name, target) for part in self.parts for name, targets in part.filesystems.items()
                 for target in targets or [""]}  # fmt: skip
        hidden = {}
        for key, parts in self.ledger.captures().items():
            if key in self.chosen or key in self.ledger.undone:
                continue
            if any(
                part.dropped and part.time_us >= first_us and part.source in sources
                and (not named or not part.filesystems or any((name, target) in named
                     for name, targets in part.filesystems.items() for target in targets or [""]))
                for part in parts
            ):  # fmt: skip
                hidden[key] = parts
        return hidden

    def _tell_of_first_samples(self, plan: UndoPlan) -> None:
        """Targets that end with what is taken out, and whose counters before it nobody has any more."""
        handle, batches = self.tables.load(BASELINES.name), _batches(self.parts)
        last = [span for span in plan.spans if span.low_us is not None and span.tick_us is None]
        if handle is None or not last:
            return
        stored = relation(self.tables, BASELINES.name, Snapshot.of(handle).paths)
        assert all(rows is not None for rows in (stored, batches))  # used by name
        sql = "SELECT DISTINCT source, filesystem, target FROM stored ANTI JOIN batches USING (batch, part)"
        known = {(source, name, target) for source, name, target in connection().execute(sql).fetchall()}
        self.done.lost += [
            f"{who} from {iso(from_epoch_us(low_us))} on: `compact` dropped its counters of then, so that its next "
            "sample is a first one"
            for source, name, who, low_us in sorted({(span.source, span.filesystem, span.who, span.low_us or 0)
                                                     for span in last})
            if (source, name, who) not in known
        ]  # fmt: skip

    def _try(self, plan: UndoPlan) -> None:
        for name in plan.wanted:
            handle = self.tables.load(name)
            if handle is not None:
                _TableChange(self, name, plan).tell()
        self._tell_of_first_samples(plan)

    def _begin(self, plan: UndoPlan) -> tuple[int, UndoPlan]:
        """Write the plan down, and take the captures out of the baselines; a new plan where somebody came between."""
        number = 1 + sum(part.part.identity == self.identity for part in self.ledger.parts)
        deadline = time.monotonic() + RETRY_SECONDS
        while True:
            row = {"batch": self.identity, "part": number, "time": _now_us(), "source": UNDO, "origin": UNDO,
                   "problems": plan.as_json()}  # fmt: skip
            self.tables.append(BATCHES.name, {BatchPart(self.identity, number): to_arrow(BATCHES, [row])})
            try:
                if self.baselines is not None and any(part.samples for part in self.parts):
                    self._forget_baselines(self.baselines, number)
                return number, plan
            except CommitFailedError as error:
                if time.monotonic() > deadline:
                    raise StoreBusyError("other writers kept coming between; nothing was changed: try again") from error
            plan, number = self._planned(), number + 1

    def _forget_baselines(self, handle: DeltaTable, number: int) -> None:
        """In one commit, through the handle that the plan was made with: it fails where a target was moved since."""
        batches = _batches(self.parts)
        stored = relation(self.tables, BASELINES.name, Snapshot.of(handle).paths)
        assert stored is not None
        assert batches is not None
        columns = ", ".join(f'"{column.name}"' for column in BASELINES.columns)
        staying = f"SELECT {columns} FROM stored ANTI JOIN batches USING (batch, part)"  # noqa: S608 (names of the schema)
        targets = """SELECT DISTINCT source, filesystem, target FROM stored SEMI JOIN batches USING (batch, part)"""
        newest = f"""WITH staying AS ({staying}) SELECT source, filesystem, target, coalesce(max(position), 0)
                     FROM ({targets}) LEFT JOIN staying USING (source, filesystem, target) GROUP BY ALL"""  # noqa: S608
        places = connection().execute(newest).fetchall()
        marks = [
            Transaction(f"baseline/{source}/{name}/{target}", position) for source, name, target, position in places
        ]
        marks.append(Transaction(self.identity, number))
        rows = connection().sql(staying).to_arrow_table()
        old = Snapshot.of(handle).paths if places else []
        files = self.tables.write(BASELINES.name, rows) if places else []
        self.tables.put(handle, BASELINES.name, files, instead_of=old, marks=marks, what=UNDO)

    def _change_table(self, name: str, plan: UndoPlan, number: int) -> None:
        """One table, in one commit."""
        handle = self.tables.load_or_create(name, TABLES[name])
        part = BatchPart(self.identity, number)
        if part.is_in(handle):
            return
        change = _TableChange(self, name, plan)
        change.tell()
        marks = [part.transaction]
        days = change.days()
        if TABLES[name].kind == "interval":
            rebuilt = DayMarks(handle, REBUILT)
            marks += rebuilt.set_to({day: rebuilt.of(day) + 1 for day in days})
        if not change.files:
            return
        with change.rows() as rows:
            files = self.tables.write(name, rows)
        self.tables.put(handle, name, files, instead_of=change.files, marks=marks, what=UNDO)

    def _forget_rollups(self, plan: UndoPlan, number: int) -> None:
        """Rollups of days that were changed; `store rollup` makes them again."""
        for resolution in RESOLUTIONS:
            for name in plan.wanted:
                raw, handle = self.tables.load(name), self.tables.load(f"{resolution}/{name}")
                part = BatchPart(self.identity, number)
                if handle is None or part.is_in(handle):
                    continue
                marks, seen, dropped = DayMarks(raw, REBUILT), DayMarks(handle, REBUILT), DayMarks(raw, DROPPED)
                days = [
                    day
                    for day in Snapshot.of(handle).days()
                    if marks.of(day) != seen.of(day) and not dropped.of(day)  # else it is all that is left of the day
                ]
                old = Snapshot.of(handle).on_days(days.__contains__).paths if days else []
                if old:
                    self.tables.put(
                        handle, f"{resolution}/{name}", [], instead_of=old, marks=[part.transaction], what=UNDO
                    )

    def _record(self, plan: UndoPlan) -> None:
        """Last: the captures are not in force any more; they, and those they hid, may be ingested again."""
        handle = self.tables.load(BATCHES.name)
        assert handle is not None
        part = BatchPart(f"{self.identity}/{UNDONE}", 1)
        again = {original(key) for key in (*self.chosen, *self.hidden)}
        times = {key: (handle.transaction_version(key.mark) or 0) + 1 for key in again}
        marks = [Transaction(key.mark, count) for key, count in times.items()]
        marks.append(Transaction(UNDONE, (handle.transaction_version(UNDONE) or 0) + 1))
        brought = rows_of(self.parts)
        row = {
            "batch": part.identity, "part": 1, "time": _now_us(), "source": UNDO, "origin": UNDONE,
            "rows_by_table": json.dumps({name: -count for name, count in sorted(brought.items())}),
            "undoes": json.dumps(sorted(self.chosen)),
        }  # fmt: skip
        self.tables.append(BATCHES.name, {part: to_arrow(BATCHES, [row])}, marks)


@dataclass(slots=True)
class _Claims:
    """What the captures left in `baselines`, as far as it is still there: by table, ranges of time of each target."""

    ranges: dict[str, list[list[Any]]]  # by table: source, file system, target, time before (or None), time
    tables: set[str]

    @classmethod
    def of(cls, tables: Tables, handle: DeltaTable | None, ledger: Ledger, parts: Sequence[LedgerPart]) -> _Claims:
        """Read them; StoreError where an ingest of the same targets is under way."""
        if handle is None:
            return cls({}, set())
        stored = relation(tables, BASELINES.name, Snapshot.of(handle).paths)
        batches, known = _batches(parts), _batches(ledger.parts)
        assert stored is not None
        assert batches is not None
        assert known is not None
        under_way = """SELECT DISTINCT batch FROM stored
                       SEMI JOIN (FROM stored SEMI JOIN batches USING (batch, part)) AS mine
                       USING (source, filesystem, target) ANTI JOIN known USING (batch, part)"""
        begun = connection().execute(under_way).fetchall()
        if begun:
            raise StoreError(f"an ingest of the same targets is under way, or was cut off ({begun[0][0]}): let it end, "
                             "or run it again. Nothing was changed")  # fmt: skip
        sql = """SELECT counter_set, source, filesystem, target, before_us, epoch_us FROM (
                    SELECT *, lag(epoch_us) OVER (
                        PARTITION BY source, filesystem, target, counter_set ORDER BY position) AS before_us
                    FROM stored) SEMI JOIN batches USING (batch, part) ORDER BY ALL"""
        ranges: dict[str, list[list[Any]]] = {}
        for name, *claim in connection().execute(sql).fetchall():
            ranges.setdefault(name, []).append(list(claim))
        return cls(ranges, set(ranges))

    def wanted(self, name: str) -> list[list[Any]]:
        """Rows of `_WANTED`."""
        return [
            [source, filesystem, target, EARLIEST_US if before is None else before, EARLIEST_US, time_us]
            for source, filesystem, target, before, time_us in self.ranges.get(name, ())
        ]


def _by_extent(parts: Iterable[LedgerPart]) -> list[list[Any]]:
    """Rows of `_WANTED` by the time and the targets that the ledger has of each part; an empty name: any other."""
    wanted = []
    for part in parts:
        first = EARLIEST_US if part.first_us is None else part.first_us
        last = -EARLIEST_US if part.last_us is None else part.last_us
        for filesystem, targets in {**part.filesystems, "": []}.items():
            wanted += [[part.source or "", filesystem, who, EARLIEST_US, first, last] for who in ("", *targets)]
    return wanted


@dataclass(slots=True)
class _RowSet:
    """The rows of some files of a table: which are wanted, and which begin where a span ends (`is_next`)."""

    tables: Tables
    table: Table
    wanted: Sequence[Sequence[Any]]
    hashes: Sequence[int] | None  # that wanted rows have; None: any
    files: Sequence[str]  # in which wanted rows may be
    others: Sequence[str] = ()
    spans: Sequence[UndoneSpan] = ()

    def count(self) -> int:
        """How many are wanted."""
        return int(self.made("SELECT count(*) FROM own WHERE is_wanted").fetchall()[0][0])

    def touched(self) -> _RowSet:
        """The files that have such rows alone."""
        sql = "SELECT 1 FROM own WHERE is_wanted OR is_next LIMIT 1"
        files = [path for path in self.files if replace(self, files=[path], others=()).made(sql).fetchall()]
        others = [path for path in self.others if replace(self, files=(), others=[path]).made(sql).fetchall()]
        return replace(self, files=files, others=others)

    def made(self, sql: str) -> duckdb.DuckDBPyRelation:
        """A question about `own`: the stored columns, `is_wanted` and `is_next`; `touching`: with their spans."""
        mine, theirs = (relation(self.tables, self.table.name, files) for files in (self.files, self.others))
        wanted, spans = _arrow(self.wanted, _WANTED), _arrow(self.spans, _SPAN)
        hashes = pa.table({"hash": pa.array(self.hashes or [], pa.int64())})
        assert all(rows is not None for rows in (mine, theirs, wanted, spans, hashes))  # used by name
        has_hash = "true" if self.hashes is None else f"{hash_of_key(self.table)} IN (SELECT hash FROM hashes)"  # noqa: S608
        names = {column.name for column in self.table.columns}
        begin = "start_us" if "start" in names else "epoch_us"
        is_of_any = bool(self.wanted) and not any(source for source, *_ in self.wanted)
        statement = f"""
            WITH keyed AS (
                SELECT *, {"''" if is_of_any else "coalesce(source, '')"} AS k_source, {begin} AS k_begin,
                       {"coalesce(filesystem, '')" if "filesystem" in names else "''"} AS k_filesystem,
                       {self._subject(names)} AS k_name, {self._who(names)} AS k_who
                FROM (SELECT *, true AS may_be FROM mine UNION ALL SELECT *, false FROM theirs)),
            marked AS (
                SELECT *, may_be AND {has_hash} AND EXISTS (
                           SELECT 1 FROM wanted WHERE wanted.source = k_source AND wanted.filesystem = k_filesystem
                           AND wanted.who = k_who AND low_us <= k_begin AND epoch_us BETWEEN first_us AND last_us)
                       AS is_wanted
                FROM keyed),
            own AS (
                SELECT *, NOT is_wanted AND EXISTS (
                           SELECT 1 FROM spans WHERE spans.source = k_source AND spans.filesystem = k_filesystem
                           AND spans.who = k_name AND spans.high_us = k_begin) AS is_next
                FROM marked),
            touching AS (
                SELECT own.*, low_us, high_us, tick_us, length_s, is_plain FROM own JOIN spans
                ON spans.source = k_source AND spans.filesystem = k_filesystem AND spans.who = k_name
                   AND ((is_wanted AND k_begin >= coalesce(low_us, k_begin) AND epoch_us <= high_us)
                        OR (is_next AND k_begin = high_us)))
            {sql}"""  # noqa: S608 (names of the schema)
        return connection().sql(statement)

    def _subject(self, names: set[str]) -> str:
        return self.table.subject if self.table.subject in names else "''"

    def _who(self, names: set[str]) -> str:
        """By what the ledger names its targets; empty: a row of a node, service or job, which it does not name."""
        named = f"WHEN {self._subject(names)} IN (SELECT who FROM wanted) THEN {self._subject(names)}"  # noqa: S608
        if self.table.subject == "target" and "target" in names:
            return f"CASE {named} {'WHEN target_kind = $$service$$ THEN $$$$' if 'target_kind' in names else ''} END"
        return f"CASE {named} ELSE '' END"


def _arrow(rows: Sequence[Sequence[Any]], schema: pa.Schema) -> pa.Table:
    if not rows:
        return schema.empty_table()
    columns = zip(*rows, strict=True)
    return pa.table([pa.array(list(column), type_) for column, type_ in zip(columns, schema.types, strict=True)],
                    schema=schema)  # fmt: skip


@dataclass(slots=True)
class _Spans:
    """Finds the stretches of targets that are taken out, and the ticks on both sides of them."""

    work: _Undo
    plan: UndoPlan
    claims: _Claims

    def made(self) -> list[UndoneSpan]:
        """In order of target and time."""
        tables = [TABLES[name] for name in self.plan.wanted if TABLES[name].kind == "interval"]
        if not tables or not any(part.samples for part in self.work.parts):
            return []
        stretches: dict[tuple[str, str, str, int], tuple[int | None, float | None]] = {}
        for table in sorted(tables, key=lambda table: table.form.moved_only):
            for source, filesystem, who, low, high, length in self._stretches(table):
                stretches.setdefault((source, filesystem, who, high), (low, length))
        known = [
            UndoneSpan(source, filesystem, who, low, high, None, length, is_plain=True)
            for (source, filesystem, who, high), (low, length) in sorted(stretches.items(), key=lambda item: item[0])
        ]
        return self._completed(known, tables) if known else []

    def _stretches(self, table: Table) -> list[tuple[Any, ...]]:
        """By claims where a table does not store every interval, or has none; else by the rows."""
        rows = _RowSet(self.work.tables, table, self.plan.wanted[table.name], None, self.work.files(table.name))
        dense = not table.form.moved_only
        listed: list[tuple[Any, ...]] = []
        if dense and rows.wanted:
            listed = rows.made("""
                SELECT k_source, k_filesystem, k_name, min(start_us), max(epoch_us), sum(duration_s) FROM (
                    SELECT *, sum(begins) OVER (
                        PARTITION BY k_source, k_filesystem, k_name ORDER BY start_us) AS stretch
                    FROM (SELECT *, (start_us IS DISTINCT FROM lag(epoch_us) OVER (
                              PARTITION BY k_source, k_filesystem, k_name ORDER BY start_us))::INT AS begins
                          FROM own WHERE is_wanted))
                GROUP BY k_source, k_filesystem, k_name, stretch""").fetchall()
        of_rows = {tuple(row[:3]) for row in listed}
        merged: dict[tuple[str, str, str], list[list[Any]]] = {}
        for *key, before, time_us in self.claims.ranges.get(table.name, ()):
            if tuple(key) in of_rows:
                continue
            stretches = merged.setdefault((key[0], key[1], key[2]), [])
            if stretches and before is not None and stretches[-1][1] >= before:
                stretches[-1][1] = max(time_us, stretches[-1][1])
            else:
                stretches.append([time_us if before is None else before, time_us])
        return listed + [(*key, low, high, None) for key, stretches in merged.items() for low, high in stretches]

    def _completed(self, spans: list[UndoneSpan], tables: Sequence[Table]) -> list[UndoneSpan]:
        """With the tick after each, None for a tick before that is not there, and whether what moved adds up."""
        nexts: dict[tuple[str, str, str, int], tuple[int, float | None]] = {}
        before: set[tuple[str, str, str, int]] = self._baselines(spans)
        for table in sorted(tables, key=lambda table: table.form.moved_only):
            rows = self.work.row_set(table, self.plan, spans)
            length = "NULL" if table.form.moved_only else "max(duration_s)"
            sql = f"SELECT k_source, k_filesystem, k_name, k_begin, min(epoch_us), {length} FROM own WHERE is_next GROUP BY 1, 2, 3, 4"  # noqa: E501, S608
            for *key, tick, seconds in rows.made(sql).fetchall():
                nexts.setdefault((key[0], key[1], key[2], key[3]), (tick, seconds))
            ends = """SELECT DISTINCT k_source, k_filesystem, k_name, low_us FROM own JOIN spans
                      ON spans.source = k_source AND spans.filesystem = k_filesystem AND spans.who = k_name
                      AND spans.low_us = epoch_us WHERE NOT is_wanted"""
            before |= {(row[0], row[1], row[2], row[3]) for row in rows.made(ends).fetchall()}
        return [self._span(span, nexts, before) for span in spans]

    def _baselines(self, spans: Sequence[UndoneSpan]) -> set[tuple[str, str, str, int]]:
        """Ticks of the samples that others left as baselines."""
        handle = self.work.tables.load(BASELINES.name)
        if handle is None:
            return set()
        stored = relation(self.work.tables, BASELINES.name, Snapshot.of(handle).paths)
        asked, batches = _arrow(spans, _SPAN), _batches(self.work.parts)
        assert all(rows is not None for rows in (stored, asked, batches))  # used by name
        sql = """SELECT DISTINCT stored.source, stored.filesystem, stored.target, epoch_us
                 FROM (FROM stored ANTI JOIN batches USING (batch, part)) AS stored JOIN asked
                 ON asked.source = stored.source AND asked.filesystem = stored.filesystem AND asked.who = stored.target
                 AND asked.low_us = epoch_us"""
        return {(row[0], row[1], row[2], row[3]) for row in connection().execute(sql).fetchall()}

    def _span(self, span: UndoneSpan, nexts: Mapping[Any, tuple[int, float | None]], before: set[Any]) -> UndoneSpan:
        key = span[:3]
        tick, seconds = nexts.get((*key, span.high_us), (None, None))
        first_us = min((part.first_us for part in self.work.parts if part.first_us is not None), default=EARLIEST_US)
        low = span.low_us if span.low_us is not None and (
            (*key, span.low_us) in before or span.low_us < first_us
        ) else None  # fmt: skip
        length = span.length_s + seconds if span.length_s is not None and seconds is not None else None
        if length is None and low is not None and tick is not None:
            length = (tick - low) / 1e6
        return span._replace(low_us=low, tick_us=tick, length_s=length, is_plain=self._adds_up(span, tick))

    def _adds_up(self, span: UndoneSpan, tick: int | None) -> bool:
        odd = [part for part in self.work.ledger.parts if part.samples and not part.is_plain]
        return not any(
            part.source == span.source
            and (part.key in self.work.chosen or _covers(part, tick))
            and (span.filesystem in part.filesystems)
            and (span.who in part.filesystems[span.filesystem] or not part.filesystems[span.filesystem])
            for part in odd
        )


def _covers(part: LedgerPart, tick: int | None) -> bool:
    return tick is not None and part.first_us is not None and part.last_us is not None and (
        part.first_us <= tick <= part.last_us
    )  # fmt: skip


class _TableChange:
    """What becomes of one table."""

    def __init__(self, work: _Undo, name: str, plan: UndoPlan) -> None:
        self.work, self.table = work, TABLES[name]
        spans = plan.spans if self.table.kind == "interval" else []
        self.touched = work.row_set(self.table, plan, spans).touched()
        self.spans = spans
        self.added: list[pa.Table] = []
        self.lost: list[str] = []
        self.removed = self.touched.count() if self.files else 0
        if self.files and spans:
            self._join()

    @property
    def files(self) -> list[str]:
        """Those that are exchanged."""
        return [*self.touched.files, *self.touched.others]

    def tell(self) -> None:
        """Add to what the command reports."""
        if self.removed:
            self.work.done.removed[self.table.name] = self.removed
        if joined := sum(rows.num_rows for rows in self.added):
            self.work.done.joined[self.table.name] = joined
        self.work.done.lost += [lost for lost in self.lost if lost not in self.work.done.lost]  # not again in a retry

    def days(self) -> list[date]:
        """Days in which rows were taken out or put in."""
        days = {date.fromisoformat(path.partition("/")[0].removeprefix("date=")) for path in self.files if "/" in path}
        for rows in self.added:
            days |= set(pc.unique(rows.column("date")).to_pylist())
        return sorted(days)

    def rows(self) -> pa.RecordBatchReader:
        """What the new files hold."""
        names = arrow_schema(self.table).names
        columns = ", ".join(f'"{name}"' for name in names)
        order = ", ".join(f'"{name}"' for name in dict.fromkeys(("time", *self.table.key)) if name in names)
        added = pa.concat_tables([arrow_schema(self.table).empty_table(), *self.added])
        staying = self.touched.made(f"SELECT {columns} FROM own WHERE NOT is_wanted AND NOT is_next")  # noqa: S608
        assert added is not None
        assert staying is not None
        sql = f"SELECT {columns} FROM staying UNION ALL SELECT {columns} FROM added ORDER BY {order}"  # noqa: S608
        return connection().sql(sql).to_arrow_reader()

    def _join(self) -> None:
        """The intervals after what is taken out, from the samples before it."""
        sql = """SELECT k_source, k_filesystem, k_name, high_us, bool_or(after_reset) FROM touching
                 WHERE low_us IS NOT NULL AND tick_us IS NOT NULL
                 GROUP BY 1, 2, 3, 4 HAVING bool_or(is_next) OR NOT ?"""
        is_dense = not self.table.form.moved_only
        listed = self.touched.made(sql.replace("?", str(is_dense))).fetchall()
        was_reset = {(source, filesystem, who, high): reset for source, filesystem, who, high, reset in listed}
        summed = []
        for span in self.spans:
            key = (span.source, span.filesystem, span.who, span.high_us)
            if key not in was_reset:
                continue
            if span.is_plain and not was_reset[key]:
                summed.append(span)
            elif rows := self._differenced(span):
                self.added.append(rows)
            else:
                assert span.low_us is not None
                assert span.tick_us is not None
                self.lost.append(
                    f"{self.table.name} of {span.who} from {iso(from_epoch_us(span.low_us))} to "
                    f"{iso(from_epoch_us(span.tick_us))}: counters were reset, or a reading was refused in between"
                )
        if summed:
            self.added.append(self._summed(summed))

    def _summed(self, spans: Sequence[UndoneSpan]) -> pa.Table:
        """What moved in all intervals of each span and in the one after it."""
        table, is_dense = self.table, not self.table.form.moved_only
        group = ["filesystem", "source", *(name for name in table.key if name not in ("filesystem", "source", "time"))]
        whole = {
            "time": "make_timestamptz(tick_us)", "start": "make_timestamptz(low_us)", "samples": "NULL::BIGINT",
            "date": "make_timestamp(low_us)::DATE", "after_reset": "false",
            "duration_s": "sum(duration_s)" if is_dense else "any_value(length_s)",
        }  # fmt: skip
        moved = (
            "CASE WHEN count({0}) FILTER (is_next) > 0 THEN sum({0})::BIGINT END" if is_dense else "sum({0})::BIGINT"
        )
        columns = []
        for column in table.columns:
            quoted = f'"{column.name}"'
            how = whole.get(column.name) or (quoted if column.name in group else f"arg_max({quoted}, epoch_us)")
            columns.append(f"{moved.format(quoted) if column.counter else how} AS {quoted}")
        has_gone = table.form.sets_come_and_go  # a job without a row in the interval after it may be forgotten by then
        having = "HAVING bool_or(is_next)" if is_dense or has_gone else ""
        names = ", ".join(f'"{name}"' for name in group)
        sql = f"""SELECT {", ".join(columns)} FROM touching GROUP BY {names}, low_us, high_us, tick_us {having}"""  # noqa: S608
        rows = replace(self.touched, spans=spans).made(sql).to_arrow_table()
        return rows.cast(arrow_schema(table))

    def _differenced(self, span: UndoneSpan) -> pa.Table | None:
        """From the counters before and after, where baselines still have them."""
        form = self.table.form
        if form.moved_only or form.sets_by_mount:
            return None
        ends = self._counters(span)
        if ends is None:
            return None
        before, sample = ends
        step = advance(before, sample, self.work.ceilings.of(span.filesystem, sample.labels.get("target_kind")))
        if step.outcome is not Outcome.INTERVAL:
            return None
        refused: list[object] = []
        gate = Gate("undo", lambda problem, count: refused.append(problem), self.work.ceilings)
        return gate.rows(self.table, list(interval_rows(sample, step, span.source)))

    def _counters(self, span: UndoneSpan) -> tuple[Baseline, Sample] | None:
        """The baseline before the span, and the first sample after it, counted back from the next baseline."""
        assert span.tick_us is not None
        handle = self.work.tables.load(BASELINES.name)
        if handle is None:
            return None
        batches = _batches(self.work.parts)
        assert batches is not None
        stored = relation(self.work.tables, BASELINES.name, Snapshot.of(handle).paths)
        assert stored is not None
        sql = """SELECT epoch_us, snapshot_us, counters, pending FROM stored ANTI JOIN batches USING (batch, part)
                 WHERE source = ? AND filesystem = ? AND target = ? AND counter_set = ?
                 AND (epoch_us = ? OR epoch_us >= ?)
                 ORDER BY epoch_us, position"""
        place = [span.source, span.filesystem, span.who, self.table.name, span.low_us, span.tick_us]
        known = [Baseline.from_stored(*row) for row in connection().execute(sql, place).fetchall()]
        before = [baseline for baseline in known if baseline.time_us == span.low_us]
        after = [baseline for baseline in known if baseline.time_us >= span.tick_us]
        if not before or not after or set(before[-1].sets) != {""} or set(after[0].sets) != {""}:
            return None
        moved = self._moved(span, after[0].time_us)
        if moved is None:
            return None
        counts, seconds, labels = moved
        last = after[0].sets[""]
        counters = {
            name: value - count for name, value in last.counters.items() if (count := counts.get(name)) is not None
        }
        snapshot_us = after[0].snapshot_us - round(seconds * 1e6)
        sample = Sample(self.table.name, span.filesystem, span.who, span.tick_us, snapshot_us,
                        {"": CounterSet(counters, last.start_us)}, labels)  # fmt: skip
        return before[-1], sample

    def _moved(self, span: UndoneSpan, until_us: int) -> tuple[dict[str, int | None], float, dict[str, str]] | None:
        """What each counter moved from the first sample after a span to a later time; None where that is not known."""
        names = [f'"{name}"' for name in self.table.counters]
        sums = ", ".join(
            f"CASE WHEN count({name}) = count(*) THEN coalesce(sum({name}) FILTER (NOT is_next), 0) END"
            for name in names
        )
        kind = "any_value(target_kind)" if any(c.name == "target_kind" for c in self.table.columns) else "NULL"
        assert span.tick_us is not None
        sql = f"""
            SELECT coalesce(bool_or(after_reset) FILTER (NOT is_next), false), count(*) FILTER (is_next),
                   coalesce(sum(duration_s) FILTER (NOT is_next), 0),
                   coalesce(sum(epoch_us - start_us) FILTER (NOT is_next), 0), {kind}, {sums}
            FROM own WHERE NOT is_wanted AND k_source = '{_quoted(span.source)}' AND k_name = '{_quoted(span.who)}'
            AND k_filesystem = '{_quoted(span.filesystem)}' AND (is_next OR start_us >= {span.tick_us})
            AND epoch_us <= {until_us}"""  # noqa: S608 (quoted)
        handle = self.work.tables.load(self.table.name)
        files = Snapshot.of(handle).overlapping(span.high_us, until_us).paths
        mine = set(self.touched.files)
        rows = replace(self.touched, files=[path for path in files if path in mine],
                       others=[path for path in files if path not in mine], spans=[span])  # fmt: skip
        was_reset, nexts, seconds, covered, label, *sums_ = rows.made(sql).fetchall()[0]
        if was_reset or nexts != 1 or covered != until_us - span.tick_us:
            return None
        counts = {
            name: None if value is None else int(value) for name, value in zip(self.table.counters, sums_, strict=True)
        }
        return counts, seconds, {} if label is None else {"target_kind": label}


def _quoted(text: str) -> str:
    return text.replace("'", "''")


def _batches(parts: Iterable[LedgerPart]) -> pa.Table:
    pairs = [(part.part.identity, part.part.part) for part in parts]
    return pa.table({"batch": [name for name, _ in pairs], "part": pa.array([part for _, part in pairs], pa.int64())})


def _now_us() -> int:
    return int(datetime.now(UTC).timestamp() * 1e6)
