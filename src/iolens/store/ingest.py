"""Captures in, rows of the store out: difference counters, drop what is present, append, and keep the books.

The order makes a crash at any moment harmless: claim the baselines, append to each table, write `batches` last. A
re-send finds what it claimed, computes the same rows and completes what is missing.
"""

from __future__ import annotations

import json
import uuid
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from itertools import islice
from typing import Final

from deltalake import DeltaTable, Transaction

from iolens.errors import InputError
from iolens.records import Capture, Item, Problem, Row, Sample
from iolens.schema import BATCHES, TABLES, Table
from iolens.store.baselines import BaselineBook, CounterKey, TargetKey
from iolens.store.counters import Baseline, Outcome, Step, advance
from iolens.store.duckdb_engine import query
from iolens.store.rebuild import make_room
from iolens.store.rows import to_arrow
from iolens.store.tables import BatchPart, Tables, in_order, retrying

ITEMS_PER_PART: Final = 20_000
PROBLEMS_KEPT: Final = 100
DAY_US: Final = 86_400_000_000

Rows = list[dict[str, object]]


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
        self.problems += other.problems[: PROBLEMS_KEPT - len(self.problems)]


@dataclass(slots=True)
class Unit:
    """One part of one capture on its way into the store."""

    capture: Capture
    part: BatchPart
    items: list[Item]
    last: bool
    tally: Tally = field(default_factory=Tally)
    rows: dict[str, Rows] = field(default_factory=dict)  # differenced here
    finished: dict[str, Rows] = field(default_factory=dict)  # came as they are; the store may have them already
    touched: dict[CounterKey, Baseline] = field(default_factory=dict)
    written: dict[str, int] = field(default_factory=dict)  # rows by table
    dropped: dict[str, int] = field(default_factory=dict)  # finished rows that were present, by table

    @property
    def is_barren(self) -> bool:
        """Nothing but problems: it may be sent again when they are mended, or understood better."""
        return bool(self.items) and all(isinstance(item, Problem) for item in self.items)

    def tables(self) -> set[str]:
        """Tables it brings rows for."""
        return {*self.rows, *self.finished}

    def targets(self) -> set[TargetKey]:
        """Targets that bring raw counters."""
        return {(item.filesystem, item.target) for item in self.items if isinstance(item, Sample)}


def ingest(
    tables: Tables,
    captures: Iterable[Capture],
    source: str,
    *,
    rebuild: bool = False,
    progress: Callable[[Capture], None] | None = None,
) -> Tally:
    """Load captures; the same capture twice adds nothing."""
    total = Tally()
    chain: dict[CounterKey, Baseline] | None = {} if rebuild else None
    if rebuild:
        captures = (replace(capture, identity=f"rebuild/{uuid.uuid4()}/{capture.identity}") for capture in captures)
    group: list[Unit] = []
    for unit in _units(tables, captures, total, progress):
        group.append(unit)
        if sum(len(one.items) for one in group) >= ITEMS_PER_PART or not unit.last:
            _load(tables, group, source, total, chain)
            group = []
    _load(tables, group, source, total, chain)
    return total


def _units(
    tables: Tables, captures: Iterable[Capture], total: Tally, progress: Callable[[Capture], None] | None
) -> Iterator[Unit]:
    taken: set[BatchPart] = set()
    for capture in captures:
        total.captures += 1
        whole = BatchPart(_complete(capture), capture.sequence)
        batches = tables.load("batches")
        if whole in taken or (batches is not None and whole.is_in(batches)):
            total.already_present += 1
        else:
            taken.add(whole)
            yield from _parts(capture)
        if progress is not None:
            progress(capture)


def _parts(capture: Capture) -> Iterator[Unit]:
    items = _guarded(capture)
    number = capture.sequence * 1_000_000
    following = list(islice(items, ITEMS_PER_PART))
    while True:
        current, following = following, list(islice(items, ITEMS_PER_PART))
        number += 1
        yield Unit(capture, BatchPart(capture.identity, number), current, last=not following)
        if not following:
            return


def _guarded(capture: Capture) -> Iterator[Item]:
    """The capture's items; where the input breaks off, a problem in place of the rest."""
    try:
        yield from capture.items()
    except InputError as error:
        yield Problem(error.place, error.line, error.found + (f"; expected {error.expected}" if error.expected else ""))
    except (OSError, EOFError, UnicodeError) as error:
        yield Problem(capture.origin, None, f"{type(error).__name__}: {error}")


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
    _settle_late(tables, group, source)
    for name in sorted(set().union(*(unit.tables() for unit in group))):
        written[name] = retrying(partial(_append, tables, name, group, source), f"append to {name}")
    _record(tables, group, source, written)
    for unit in group:
        total.add(unit.tally)


def _append(tables: Tables, name: str, group: list[Unit], source: str) -> list[str]:
    """The rows of those units that the table does not have yet, in one commit; paths of the files written."""
    table = TABLES[name]
    handle = tables.load_or_create(name, table)
    todo = [unit for unit in group if not unit.part.is_in(handle)]
    new = _new_rows(tables, handle, table, todo, source)
    rows = [row for unit in todo for row in (*unit.rows.get(name, []), *new[unit.part])]
    for unit in group:
        kept = new.get(unit.part, unit.finished.get(name, []))
        unit.written[name] = len(unit.rows.get(name, [])) + len(kept)
        unit.dropped[name] = len(unit.finished.get(name, [])) - len(kept)
    if not rows:
        return []
    marks = _guards(handle, todo, name, source)
    return tables.commit(handle, name, in_order(to_arrow(table, rows), table), [unit.part for unit in todo], marks)


def _guards(handle: DeltaTable, units: list[Unit], name: str, source: str) -> list[Transaction]:
    """Marks that let only one of two racing writers of finished rows through; the other looks at the table again."""
    filesystems = {row.get("filesystem") for unit in units for row in unit.finished.get(name, [])}
    return [Transaction(f"rows/{source}/{filesystem}", handle.version() + 1) for filesystem in filesystems]


def _make_room(tables: Tables, group: list[Unit]) -> None:
    """Let the rebuilt intervals of the whole group replace the stored ones they cover."""
    for name in {name for unit in group for name in unit.tables() if name and TABLES[name].kind == "interval"}:
        bringing = [rows for unit in group for rows in (unit.rows, unit.finished) if name in rows]
        kept = {id(row) for row in make_room(tables, name, [row for rows in bringing for row in rows[name]])}
        for rows in bringing:
            rows[name] = [row for row in rows[name] if id(row) in kept]


def _claim(tables: Tables, group: list[Unit], source: str, chain: dict[CounterKey, Baseline] | None) -> list[str]:
    """Difference every unit against the baselines and take the next position of each target it moved.

    A rebuild follows its own `chain` of samples and leaves only baselines newer than the stored ones.
    """
    targets = set().union(*(unit.targets() for unit in group))
    book = BaselineBook.open(tables, source, targets) if targets else None
    own = dict(chain or {})
    fresh = []
    for unit in group:
        unit.tally, unit.rows, unit.finished = Tally(), {}, {}
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
    samples = sorted((item for item in unit.items if isinstance(item, Sample)), key=lambda sample: sample.snapshot_us)
    for sample in samples:
        key = (sample.filesystem, sample.target, sample.table)
        step = advance(touched.get(key) or known.get(key), sample)
        if step.outcome in (Outcome.BASELINE, Outcome.INTERVAL):
            touched[key] = step.baseline
        _count(unit.tally, step)
        if step.outcome is Outcome.INTERVAL:
            unit.rows.setdefault(sample.table, []).extend(_interval_rows(sample, step, source))
        elif step.outcome is Outcome.OLDER:
            unit.rows.setdefault("", []).append(
                {"table": sample.table, "tick": (*key[:2], sample.time_us), "time_us": sample.time_us}
            )
    for item in unit.items:
        if isinstance(item, Problem):
            unit.tally.refuse(item)
        elif isinstance(item, Row):
            unit.finished.setdefault(item.table, []).append(_finished_row(item, source))
    return touched


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
    for name, movement in step.movements.items():
        row = {**common, "after_reset": movement.after_reset}
        if sample.table == "target_histograms":
            for counter, count in movement.moved.items():
                if count:
                    direction, _, label = counter.partition(":")
                    yield {**row, "histogram": name, "direction": direction, "bin": int(label), "count": count}
        elif sample.table == "job_io":
            if any(movement.moved.values()):
                yield {**row, "job_id": name, **movement.moved}
        else:
            yield {**row, **movement.moved}


def _finished_row(item: Row, source: str) -> dict[str, object]:
    row = {"source": source, **item.values}
    if TABLES[item.table].partitioned:
        began = row.get("start", row["time"])
        row["date"] = int(str(began)) // DAY_US
    return row


def _settle_late(tables: Tables, group: list[Unit], source: str) -> None:
    """Tell samples that the store has from samples that came too late."""
    late = [(unit, row) for unit in group for row in unit.rows.pop("", [])]
    for name in {str(row["table"]) for _, row in late}:
        mine = [(unit, row) for unit, row in late if row["table"] == name]
        present = _present_ticks(tables, name, source, {int(str(row["time_us"])) // DAY_US for _, row in mine})
        for unit, row in mine:
            if row["tick"] in present:
                unit.tally.older -= 1
                unit.tally.repeated += 1


def _new_rows(
    tables: Tables, handle: DeltaTable, table: Table, units: list[Unit], source: str
) -> dict[BatchPart, Rows]:
    """Finished rows of each unit that neither the table nor an earlier unit has; of equal keys the first counts."""
    if not any(table.name in unit.finished for unit in units):
        return {unit.part: [] for unit in units}
    days = {int(str(row["date"])) for unit in units for row in unit.finished.get(table.name, []) if "date" in row}
    present = _present_keys(tables, handle, table, source, days)
    found: dict[BatchPart, Rows] = {}
    for unit in units:
        rows = {
            tuple(row.get(column) for column in table.key): row for row in reversed(unit.finished.get(table.name, []))
        }
        found[unit.part] = [row for key, row in reversed(rows.items()) if key not in present]
        present |= rows.keys()
    return found


def _present_ticks(tables: Tables, name: str, source: str, days: set[int]) -> set[tuple[object, ...]]:
    """(file system, target, tick) at which an interval begins or ends, on those days and the ones beside them."""
    handle = tables.load(name)
    if handle is None:
        return set()
    around = {day + shift for day in days for shift in (-1, 0, 1)}
    sql = """SELECT DISTINCT filesystem, target, epoch_us(unnest([time, start])) FROM found WHERE source = ?"""
    return set(query(tables, handle, name, sql, [source], around))


def _present_keys(
    tables: Tables, handle: DeltaTable, table: Table, source: str, days: set[int]
) -> set[tuple[object, ...]]:
    columns = ", ".join(
        f'epoch_us("{name}")' if table.column(name).type == "timestamp" else f'"{name}"' for name in table.key
    )
    sql = f"SELECT {columns} FROM found WHERE source = ?"  # noqa: S608 (column names of the schema)
    return set(query(tables, handle, table.name, sql, [source], days or None))


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
    seen: dict[str, set[str]] = {}
    times = []
    for item in unit.items:
        if isinstance(item, Sample):
            seen.setdefault(item.filesystem, set()).add(item.target)
            times.append(item.time_us)
    tally = unit.tally
    return {
        "batch": unit.part.identity,
        "part": unit.part.part,
        "time": _now_us(),
        "source": source,
        "origin": unit.capture.origin,
        "filesystems": json.dumps({name: sorted(targets) for name, targets in sorted(seen.items())}),
        "first_time": min(times, default=None),
        "last_time": max(times, default=None),
        "samples": tally.samples,
        "rows": sum(tally.rows.values()),
        "rows_by_table": json.dumps(dict(tally.rows), sort_keys=True),
        "baselines": tally.baselines,
        "repeated": tally.repeated,
        "older": tally.older,
        "resets": tally.resets,
        "glitches": tally.glitches,
        "refused": tally.refused,
        "problems": json.dumps([str(problem) for problem in tally.problems], ensure_ascii=False),
        "checksums": json.dumps(checksums, sort_keys=True),
    }
