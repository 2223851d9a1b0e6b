"""Captures in, rows of the store out: difference counters, drop what is present, append, and keep the books.

The order makes a crash at any moment harmless: claim the baselines, append to each table, write `batches` last. A
re-send finds what it claimed, computes the same rows and completes what is missing.
"""

from __future__ import annotations

import json
import uuid
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable, Transaction

from iolens.errors import InputError
from iolens.records import Capture, Item, Note, Problem, Row, Rows, Sample, Samples
from iolens.schema import BATCHES, TABLES
from iolens.store.baselines import BaselineBook, CounterKey, TargetKey
from iolens.store.counter_series import Stretch, advance_series
from iolens.store.counters import Baseline, Outcome, Step, advance
from iolens.store.presence import LATE_SCHEMA, known_ticks, new_rows
from iolens.store.readers import Reading, read_ahead
from iolens.store.rebuild import make_room
from iolens.store.rows import DAY_US, Pieces, columns_to_arrow, having, to_arrow, with_constant
from iolens.store.tables import BatchPart, Tables, arrow_schema, in_order, retrying

ITEMS_PER_PART: Final = 20_000
ROWS_PER_ITEM: Final = 12  # a dozen rows in columns take about the memory of a single one
PROBLEMS_KEPT: Final = 100


@dataclass(slots=True)
class Tally:
    """What became of the input."""

    captures: int = 0
    already_present: int = 0
    samples: int = 0
    baselines: int = 0
    repeated: int = 0
    older: int = 0
    resets: int = 0
    glitches: int = 0
    refused: int = 0
    rows: Counter[str] = field(default_factory=Counter)
    problems: list[Problem] = field(default_factory=list)
    noted: int = 0
    notes: list[Problem] = field(default_factory=list)  # left out by rule, nothing wrong

    def note(self, note: Problem) -> None:
        """Count what was left out on purpose; keep the first in full."""
        self.noted += 1
        if len(self.notes) < PROBLEMS_KEPT:
            self.notes.append(note)

    def refuse(self, problem: Problem) -> None:
        """Count a problem; keep the first ones in full."""
        self.refused += 1
        if len(self.problems) < PROBLEMS_KEPT:
            self.problems.append(problem)

    def refuse_input(self, error: InputError) -> None:
        """Count an input that could not be read at all."""
        expected = f"; expected {error.expected}" if error.expected else ""
        self.refuse(Problem(error.place, error.line, error.found + expected))

    def add(self, other: Tally) -> None:
        """Add another tally to this one."""
        for name in ("captures", "already_present", "samples", "baselines", "repeated", "older", "resets", "glitches"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.rows += other.rows
        self.refused += other.refused
        self.noted += other.noted
        self.notes += other.notes[: PROBLEMS_KEPT - len(self.notes)]
        self.problems += other.problems[: PROBLEMS_KEPT - len(self.problems)]


@dataclass(slots=True, eq=False)
class Unit:
    """One part of one capture on its way into the store."""

    capture: Capture
    part: BatchPart
    items: list[Item]
    last: bool
    tally: Tally = field(default_factory=Tally)
    rows: dict[str, Pieces] = field(default_factory=dict)  # differenced here
    finished: dict[str, Pieces] = field(default_factory=dict)  # came as they are; the store may have them already
    late: dict[str, list[tuple[str, str, int]]] = field(default_factory=dict)  # ticks before the baseline, by table
    touched: dict[CounterKey, Baseline] = field(default_factory=dict)
    written: dict[str, int] = field(default_factory=dict)  # rows by table
    dropped: dict[str, int] = field(default_factory=dict)  # finished rows that were present, by table

    @property
    def is_barren(self) -> bool:
        """Nothing but problems: it may be sent again when they are mended, or understood better."""
        return bool(self.items) and all(isinstance(item, Problem) for item in self.items)

    @property
    def weight(self) -> int:
        """How much there is to hold, in items."""
        return sum(_weight(item) for item in self.items)

    def tables(self) -> set[str]:
        """Tables it brings rows for."""
        return {*self.rows, *self.finished}

    def targets(self) -> set[TargetKey]:
        """Targets that bring raw counters."""
        return {(item.filesystem, item.target) for item in self.items if isinstance(item, Sample | Samples)}

    def begin(self) -> None:
        """Forget what an earlier attempt made of the items."""
        self.tally, self.rows, self.finished, self.late = Tally(), {}, {}, {}


def ingest(
    tables: Tables,
    captures: Iterable[Capture],
    source: str,
    *,
    rebuild: bool = False,
    progress: Callable[[Capture], None] | None = None,
    workers: int = 1,
) -> Tally:
    """Load captures; the same capture twice adds nothing. With several `workers` many captures are parsed at once."""
    total = Tally()
    chain: dict[CounterKey, Baseline] | None = {} if rebuild else None
    if rebuild:
        captures = (replace(capture, identity=f"rebuild/{uuid.uuid4()}/{capture.identity}") for capture in captures)
    group: list[Unit] = []
    for unit in _units(tables, captures, total, progress, workers):
        group.append(unit)
        if sum(one.weight for one in group) >= ITEMS_PER_PART or not unit.last:
            _load(tables, group, source, total, chain)
            group = []
    _load(tables, group, source, total, chain)
    return total


def _units(
    tables: Tables,
    captures: Iterable[Capture],
    total: Tally,
    progress: Callable[[Capture], None] | None,
    workers: int,
) -> Iterator[Unit]:
    batches = tables.load("batches")
    taken: set[BatchPart] = set()

    def is_wanted(capture: Capture) -> bool:
        """A capture another writer completes meanwhile is noticed when its parts are appended."""
        whole = BatchPart(_complete(capture), capture.sequence)
        is_known = whole in taken or (batches is not None and whole.is_in(batches))
        taken.add(whole)
        return not is_known

    for reading in read_ahead(captures, is_wanted, workers):
        total.captures += 1
        if reading.items is None:
            total.already_present += 1
        else:
            yield from _parts(reading)
        if progress is not None:
            progress(reading.capture)


def _parts(reading: Reading) -> Iterator[Unit]:
    number = reading.capture.sequence * 1_000_000
    pieces = _pieces(reading.items or ())
    following = next(pieces, [])
    while True:
        current, following = following, next(pieces, [])
        number += 1
        yield Unit(reading.capture, BatchPart(reading.capture.identity, number), current, last=not following)
        if not following:
            return


def _pieces(items: Iterable[Item]) -> Iterator[list[Item]]:
    """Runs of items that are small enough to hold; where they are cut depends on the items alone."""
    held: list[Item] = []
    weight = 0
    for item in items:
        held.append(item)
        weight += _weight(item)
        if weight >= ITEMS_PER_PART:
            yield held
            held, weight = [], 0
    if held:
        yield held


def _weight(item: Item) -> int:
    return 1 + len(item) // ROWS_PER_ITEM if isinstance(item, Rows | Samples) else 1


def _complete(capture: Capture) -> str:
    return f"{capture.identity}/complete"


def _load(
    tables: Tables, group: list[Unit], source: str, total: Tally, chain: dict[CounterKey, Baseline] | None
) -> None:
    """Write a group of units: one commit per table, each unit exactly once."""
    if not group:
        return
    written = {"baselines": retrying(lambda: _claim(tables, group, source, chain), "claim baselines")}
    if chain is not None:
        chain |= {key: baseline for unit in group for key, baseline in unit.touched.items()}
        _make_room(tables, group)
    for name in sorted(set().union(*(unit.tables() for unit in group))):
        written[name] = retrying(partial(_append, tables, name, group, source), f"append to {name}")
    _settle_late(tables, group, source)
    _record(tables, group, source, written)
    for unit in group:
        total.add(unit.tally)


def _append(tables: Tables, name: str, group: list[Unit], source: str) -> list[str]:
    """The rows of those units that the table does not have yet, in one commit; paths of the files written."""
    table = TABLES[name]
    handle = tables.load_or_create(name, table)
    todo = [unit for unit in group if not unit.part.is_in(handle)]
    kept = _new_of_each(tables, handle, name, todo)
    parts = [arrow_schema(table).empty_table()]
    for unit in group:
        own, offered = unit.rows.get(name, ()), unit.finished.get(name, ())
        new = kept.get(unit.part)
        unit.written[name] = len(own) + (len(offered) if new is None else new.num_rows)
        unit.dropped[name] = 0 if new is None else len(offered) - new.num_rows
    for unit in todo:
        parts += [unit.rows[name].arrow()] if name in unit.rows else []
        parts += [kept[unit.part]] if unit.part in kept else []
    rows = pa.concat_tables(parts)
    if not rows.num_rows:
        return []
    marks = _guards(handle, todo, name, source)
    return tables.commit(handle, name, in_order(rows, table), [unit.part for unit in todo], marks)


def _new_of_each(tables: Tables, handle: DeltaTable, name: str, units: list[Unit]) -> dict[BatchPart, pa.Table]:
    """Finished rows of each unit that neither the table nor an earlier unit has."""
    bringing = [unit for unit in units if name in unit.finished]
    if not bringing:
        return {}
    offered = [with_constant(unit.finished[name].arrow(), "_unit", number) for number, unit in enumerate(bringing)]
    new = new_rows(tables, handle, TABLES[name], pa.concat_tables(offered))
    return {unit.part: having(new, "_unit", number) for number, unit in enumerate(bringing)}


def _guards(handle: DeltaTable, units: list[Unit], name: str, source: str) -> list[Transaction]:
    """Marks that let only one of two racing writers of finished rows through; the other looks at the table again."""
    filesystems: set[object] = set()
    for unit in units:
        if name in unit.finished:
            filesystems.update(unit.finished[name].arrow().column("filesystem").unique().to_pylist())
    return [Transaction(f"rows/{source}/{filesystem}", handle.version() + 1) for filesystem in filesystems]


def _make_room(tables: Tables, group: list[Unit]) -> None:
    """Let the rebuilt intervals of the whole group replace the stored ones they cover."""
    for name in {name for unit in group for name in unit.tables() if TABLES[name].kind == "interval"}:
        bringing = [pieces[name] for unit in group for pieces in (unit.rows, unit.finished) if name in pieces]
        marked = [with_constant(one.arrow(), "_piece", number) for number, one in enumerate(bringing)]
        kept = make_room(tables, name, pa.concat_tables(marked))
        for number, one in enumerate(bringing):
            one.columns = [having(kept, "_piece", number)]


def _claim(tables: Tables, group: list[Unit], source: str, chain: dict[CounterKey, Baseline] | None) -> list[str]:
    """Difference every unit against the baselines and take the next position of each target it moved.

    A rebuild follows its own `chain` of samples and leaves only baselines newer than the stored ones.
    """
    targets = set().union(*(unit.targets() for unit in group))
    book = BaselineBook.open(tables, source, targets) if targets else None
    own = dict(chain or {})
    fresh = []
    for unit in group:
        unit.begin()
        if book is None:
            unit.touched = _apply(unit, {}, source)
        elif unit.part.is_in(book.handle):
            unit.touched = _apply(unit, book.before(unit.part, unit.targets()), source)
        else:
            unit.touched = _apply(unit, book.current if chain is None else own, source)
            own |= unit.touched
            book.add(unit.part, {key: new for key, new in unit.touched.items() if _is_news(new, book.current.get(key))})
            fresh.append(unit.part)
    return book.claim(fresh) if book is not None else []


def _is_news(new: Baseline, stored: Baseline | None) -> bool:
    return stored is None or new.snapshot_us > stored.snapshot_us


def _apply(unit: Unit, known: dict[CounterKey, Baseline], source: str) -> dict[CounterKey, Baseline]:
    """Turn the unit's items into rows; returns the baselines that moved."""
    touched: dict[CounterKey, Baseline] = {}
    counted = [item for item in unit.items if isinstance(item, Sample | Samples)]
    for item in sorted(counted, key=_began):
        key = (item.filesystem, item.target, item.table)
        before = touched.get(key) or known.get(key)
        if isinstance(item, Samples):
            done = advance_series(before, item)
            for stretch in done.stretches:
                _pieces_of(unit.rows, item.table).columns.append(_stretch_rows(item, stretch, source))
                unit.tally.samples += len(stretch)
            if done.moved and done.baseline is not None:
                touched[key] = done.baseline
            steps = done.steps
        else:
            step = advance(before, item)
            if step.outcome in (Outcome.BASELINE, Outcome.INTERVAL):
                touched[key] = step.baseline
            steps = [(item, step)]
        for sample, step in steps:
            _take(unit, sample, step, source)
    for other in unit.items:
        if isinstance(other, Note):
            unit.tally.note(other)
        elif isinstance(other, Problem):
            unit.tally.refuse(other)
        elif isinstance(other, Row):
            _pieces_of(unit.finished, other.table).rows.append(_finished_row(other, source))
        elif isinstance(other, Rows) and len(other):
            columns = columns_to_arrow(TABLES[other.table], {"source": source, **other.columns}, len(other))
            _pieces_of(unit.finished, other.table).columns.append(columns)
    return touched


def _began(item: Sample | Samples) -> int:
    if isinstance(item, Sample):
        return item.snapshot_us
    return int(item.snapshot_us[0]) if len(item) else 0


def _pieces_of(by_table: dict[str, Pieces], name: str) -> Pieces:
    return by_table.setdefault(name, Pieces(TABLES[name]))


def _take(unit: Unit, sample: Sample, step: Step, source: str) -> None:
    """Book one sample that was applied to its baseline."""
    _count(unit.tally, step)
    if step.outcome is Outcome.INTERVAL:
        _pieces_of(unit.rows, sample.table).rows.extend(_interval_rows(sample, step, source))
    elif step.outcome is Outcome.OLDER:
        unit.late.setdefault(sample.table, []).append((sample.filesystem, sample.target, sample.time_us))


def _stretch_rows(series: Samples, stretch: Stretch, source: str) -> pa.Table:
    columns: dict[str, object] = {
        "time": stretch.time_us,
        "start": stretch.start_us,
        "duration_s": stretch.duration_s,
        "filesystem": series.filesystem,
        "source": source,
        "target": series.target,
        "after_reset": False,
        **series.labels,
        **stretch.moved,
    }
    return columns_to_arrow(TABLES[series.table], columns, len(stretch))


def _count(tally: Tally, step: Step) -> None:
    tally.samples += 1
    tally.baselines += step.outcome is Outcome.BASELINE
    tally.repeated += step.outcome is Outcome.REPEATED
    tally.older += step.outcome is Outcome.OLDER
    tally.resets += step.resets
    tally.glitches += step.glitches


def _interval_rows(sample: Sample, step: Step, source: str) -> Iterator[dict[str, object]]:
    common: dict[str, object] = {
        "time": step.time_us,
        "start": step.start_us,
        "duration_s": step.duration_s,
        "date": step.start_us // DAY_US,
        "filesystem": sample.filesystem,
        "source": source,
        "target": sample.target,
        **sample.labels,
    }
    parts = _LONG_FORM.get(sample.table, _wide)
    for name, movement in step.movements.items():
        row = {**common, "after_reset": movement.after_reset}
        for values in parts(name, movement.moved):
            yield {**row, **values}


def _wide(name: str, moved: Mapping[str, int]) -> Iterator[dict[str, object]]:
    yield dict(moved)


def _bins(moved: Mapping[str, int]) -> Iterator[dict[str, object]]:
    for counter, count in moved.items():
        if count:
            direction, _, label = counter.partition(":")
            yield {"direction": direction, "bin": int(label), "count": count}


def _of_job(name: str, moved: Mapping[str, int]) -> Iterator[dict[str, object]]:
    if any(moved.values()):
        yield {"job_id": name, **moved}


def _by_operation(name: str, moved: Mapping[str, int]) -> Iterator[dict[str, object]]:
    operations: dict[str, dict[str, object]] = {}
    for counter, value in moved.items():
        operation, _, what = counter.partition(":")
        if value:
            values = operations.setdefault(operation, {"operation": operation, "count": moved.get(operation)})
            values[{"": "count", "us": "sum_us", "total": "total"}[what]] = value
    yield from operations.values()


# Tables with several rows for one set of counters, or none where nothing moved.
_LONG_FORM: Final[dict[str, Callable[[str, Mapping[str, int]], Iterator[dict[str, object]]]]] = {
    "target_histograms": lambda name, moved: ({"histogram": name, **one} for one in _bins(moved)),
    "job_sizes": lambda name, moved: ({"job_id": name, **one} for one in _bins(moved)),
    "job_io": _of_job,
    "server_ops": _by_operation,
}


def _finished_row(item: Row, source: str) -> dict[str, object]:
    row = {"source": source, **item.values}
    if TABLES[item.table].partitioned:
        began = row.get("start", row["time"])
        row["date"] = int(str(began)) // DAY_US
    return row


def _settle_late(tables: Tables, group: list[Unit], source: str) -> None:
    """Tell samples that the store has from samples that came too late."""
    for name in {name for unit in group for name in unit.late}:
        handle = tables.load(name)
        if handle is None:
            continue
        late = [(*tick, number) for number, unit in enumerate(group) for tick in unit.late.get(name, [])]
        table = pa.table([pa.array(column) for column in zip(*late, strict=True)], schema=LATE_SCHEMA)
        for number, count in known_ticks(tables, handle, name, source, table).items():
            group[number].tally.older -= count
            group[number].tally.repeated += count


def _record(tables: Tables, group: list[Unit], source: str, written: dict[str, list[str]]) -> None:
    """The last step: what was ingested, with the checksum of every file it became."""
    for unit in group:
        unit.tally.rows = Counter({name: count for name, count in unit.written.items() if count})
        unit.tally.repeated += sum(unit.dropped.values())
    checksums = {
        name: {path: tables.checksum(name, path) for path in paths} for name, paths in written.items() if paths
    }
    rows = {unit.part: to_arrow(BATCHES, [_batch_row(unit, source, checksums)]) for unit in group}
    done = [
        Transaction(_complete(unit.capture), unit.capture.sequence)
        for unit in group
        if unit.last and not unit.is_barren
    ]
    if not tables.append("batches", rows, done) and checksums:  # another sender of the same was faster; files are ours
        note = {"batch": f"resent/{uuid.uuid4()}", "part": 1, "time": _now_us(), "source": source}
        row = to_arrow(BATCHES, [{**note, "checksums": json.dumps(checksums, sort_keys=True)}])
        tables.append("batches", {BatchPart(str(note["batch"]), 1): row})


def _now_us() -> int:
    return int(datetime.now(UTC).timestamp() * 1e6)


def _batch_row(unit: Unit, source: str, checksums: dict[str, dict[str, str]]) -> dict[str, object]:
    seen, first, last = _extent(unit)
    tally = unit.tally
    return {
        "batch": unit.part.identity,
        "part": unit.part.part,
        "time": _now_us(),
        "source": source,
        "origin": _in_utf8(unit.capture.origin),
        "filesystems": json.dumps({name: sorted(targets) for name, targets in sorted(seen.items())}),
        "first_time": first,
        "last_time": last,
        "samples": tally.samples,
        "rows": sum(tally.rows.values()),
        "rows_by_table": json.dumps(dict(tally.rows), sort_keys=True),
        "baselines": tally.baselines,
        "repeated": tally.repeated,
        "older": tally.older,
        "resets": tally.resets,
        "glitches": tally.glitches,
        "refused": tally.refused,
        "problems": json.dumps([_in_utf8(str(one)) for one in (*tally.problems, *tally.notes)], ensure_ascii=False),
        "checksums": json.dumps(checksums, sort_keys=True),
    }


def _in_utf8(text: str) -> str:
    """A path may hold bytes that are no text: they are written as they would be escaped."""
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


def _extent(unit: Unit) -> tuple[dict[str, set[str]], int | None, int | None]:
    """Targets by file system, and the earliest and latest moment among a unit's items."""
    seen: dict[str, set[str]] = {}
    times: list[int] = []
    for item in unit.items:
        if isinstance(item, Sample | Samples):
            known = seen.setdefault(item.filesystem, set())
            known |= {item.target} if item.labels.get("target_kind") != "service" else set()
            times += [item.time_us] if isinstance(item, Sample) else [int(one) for one in item.time_us[[0, -1]]]
    for name, pieces in unit.finished.items():
        rows = pieces.arrow()
        names = [column for column in ("filesystem", "target") if column in rows.column_names]
        for pair in rows.select(names).group_by(names).aggregate([]).to_pylist():
            if pair["filesystem"] is not None:
                found = seen.setdefault(pair["filesystem"], set())
                found |= {pair["target"]} if "target" in TABLES[name].key else set()
        ends = pc.min_max(rows.column("time").cast(pa.int64())).as_py().values()
        times += [end for end in ends if end is not None]
    return seen, min(times, default=None), max(times, default=None)
