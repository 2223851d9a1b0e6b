"""One part of one capture on its way into the store: its items become rows of the tables, and new baselines."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc

from iolens.counters.ceilings import RateCeiling, RateCeilings
from iolens.counters.differences import Baseline, CounterStep, OrderEvidence, Outcome, advance
from iolens.counters.rows import interval_rows
from iolens.records import Capture, Item, Note, Problem, Row, Rows, Sample, Samples
from iolens.schema import LATEST_US, TABLES
from iolens.store.baselines import CounterKey, TargetKey
from iolens.store.counter_series import MOVING, PlainStretch, advance_series, sample_at
from iolens.store.gate import Gate
from iolens.store.order import Counted, FileOfCall, as_taken, order_in_stream, order_of_files
from iolens.store.tables import BatchPart, arrow_schema
from iolens.store.tally import Tally
from iolens.units import from_epoch_us, iso


@dataclass(slots=True)
class TableRows:
    """Rows by table as they come: single ones, and columns that have passed the gate."""

    single: defaultdict[str, list[dict[str, object]]] = field(default_factory=lambda: defaultdict(list))
    columns: defaultdict[str, list[pa.Table]] = field(default_factory=lambda: defaultdict(list))

    def pass_gate(self, gate: Gate) -> None:
        """Make columns of the single rows too, before those that came as such."""
        for name, rows in self.single.items():
            self.columns[name].insert(0, gate.rows(TABLES[name], rows))
        self.single.clear()


@dataclass(slots=True, eq=False)
class Unit:
    """One part of one capture."""

    capture: Capture
    part: BatchPart
    items: list[Item] = field(default_factory=list)
    weight: int = 0  # how much there is to hold, in single rows or samples
    last: bool = False
    loaded_us: int = 0  # when the call began that brought it, microseconds since 1970
    present: bool = False  # the store has it: of counters it has seen, only what it could not place is new
    places: Mapping[str, int] = field(default_factory=dict)  # of captures whose order is known by more than the clock
    unordered: set[CounterKey] = field(default_factory=set)  # counters of samples whose order nothing tells
    tally: Tally = field(default_factory=Tally)
    rows: TableRows = field(default_factory=TableRows)  # differenced here
    finished: TableRows = field(default_factory=TableRows)  # came as they are; the store may have them already
    late: dict[str, list[Sample]] = field(default_factory=dict)  # samples from before the baseline, by table
    touched: dict[CounterKey, Baseline] = field(default_factory=dict)
    times: list[int] = field(default_factory=list)  # the earliest and the latest ticks of its samples
    written: dict[str, int] = field(default_factory=dict)  # rows by table
    dropped: dict[str, int] = field(default_factory=dict)  # finished rows that were present, by table
    hashes: dict[str, str | None] = field(default_factory=dict)  # of finished rows, for who takes them back

    @property
    def is_empty(self) -> bool:
        """Nothing but problems: it may be sent again when they are mended, or understood better."""
        return bool(self.items) and all(isinstance(item, Problem) for item in self.items)

    def tables(self) -> set[str]:
        """Tables it brings rows for."""
        return {*self.rows.columns, *self.finished.columns}

    def offered(self, name: str, rebuild: bool) -> pa.Table:
        """Finished rows that are appended; those that a rebuild exchanges for others are not."""
        if name not in self.finished.columns or (rebuild and TABLES[name].kind == "interval"):
            return arrow_schema(TABLES[name]).empty_table()
        return pa.concat_tables(self.finished.columns[name])

    def targets(self) -> set[TargetKey]:
        """Targets that bring raw counters."""
        return {(item.filesystem, item.target) for item in self.items if isinstance(item, Sample | Samples)}

    def apply(
        self, known: dict[CounterKey, Baseline], source: str, ceilings: RateCeilings, latest_us: int = LATEST_US
    ) -> None:
        """Turn the items into rows and new baselines (`touched`); what an earlier attempt made is forgotten."""
        self.tally, self.rows, self.finished = Tally(), TableRows(), TableRows()
        self.late, self.touched, self.times = {}, {}, []
        gate = Gate(self.capture.origin, self.tally.refuse, ceilings, latest_us)
        for counted in as_taken(self._counted(gate), trusted=self.capture.numbered):
            self._difference(counted, known, source, gate)
        for item in self.items:
            if not isinstance(item, Sample | Samples):
                self._take_as_it_is(item, source, gate)
        self.rows.pass_gate(gate)
        self.finished.pass_gate(gate)

    def _counted(self, gate: Gate) -> list[Counted]:
        counted: list[Counted] = []
        for item in self.items:
            if isinstance(item, Sample) and (sample := gate.sample(item)) is not None:
                counted.append(sample)
                self.times.append(sample.time_us)
            elif isinstance(item, Samples) and len(series := gate.series(item)):
                counted.append(series)
                self.times += [int(series.time_us.min()), int(series.time_us.max())]
        self.times = [min(self.times), max(self.times)] if self.times else []
        return counted

    def _difference(self, item: Counted, known: dict[CounterKey, Baseline], source: str, gate: Gate) -> None:
        key = (item.filesystem, item.target, item.table)
        before = self.touched.get(key) or known.get(key)
        if key in self.unordered and isinstance(item, Sample):
            self.tally.samples += 1
            self.tally.refuse(_unordered(gate.place, item, "others of this call"))
            return
        if self.present and before is not None and before.batch not in ("", self.part.identity):
            samples = [item] if isinstance(item, Sample) else [sample_at(item, place) for place in range(len(item))]
            self.late.setdefault(item.table, []).extend(samples)
            self.tally.samples += len(samples)
            return
        ceiling = gate.ceilings.of(item.filesystem, item.labels.get("target_kind"))
        evidence = OrderEvidence.NONE if before is None else self._evidence(before)
        if isinstance(item, Sample):
            steps = [(item, advance(before, item, ceiling, evidence))]
            after = steps[0][1].baseline if steps[0][1].outcome in MOVING else None
        else:
            done = advance_series(before, item, ceiling, evidence)
            for stretch in done.stretches:
                self.rows.columns[item.table].append(_stretch_rows(item, stretch, source, gate))
                self.tally.samples += len(stretch)
            steps, after = done.steps, done.baseline if done.moved else None
        if after is not None:
            self.touched[key] = after
        for sample, step in steps:
            self._take(sample, step, source, gate, ceiling)

    def _evidence(self, baseline: Baseline) -> OrderEvidence:
        """What is known of the order of this unit's samples and that which the baseline came from."""
        if not baseline.batch:  # it came from this very unit
            return OrderEvidence.AFTER
        if baseline.batch == self.part.identity:
            return OrderEvidence.AFTER if self.capture.numbered else OrderEvidence.SAME_FILE
        if self.places.get(baseline.batch, len(self.places)) < self.places.get(self.part.identity, 0):
            return OrderEvidence.AFTER
        return order_in_stream(self.capture, baseline.batch)

    def _take(self, sample: Sample, step: CounterStep, source: str, gate: Gate, ceiling: RateCeiling) -> None:
        """Book one sample that was applied to its baseline."""
        tally = self.tally
        tally.samples += 1
        tally.baselines += step.outcome is Outcome.BASELINE
        tally.repeated += step.outcome is Outcome.REPEATED
        tally.set_back += step.outcome is Outcome.SET_BACK
        if step.outcome is Outcome.UNORDERED:
            tally.refuse(_unordered(gate.place, sample, iso(from_epoch_us(step.baseline.seen_us))))
        elif step.outcome is Outcome.APART:
            tally.apart += 1
            if any(any(movement.moved.values()) for movement in step.movements.values()):
                tally.note(Note(gate.place, None, _moved_apart(sample, step)))
        tally.resets += step.resets
        tally.glitches += step.glitches
        for name, refused in step.refused.items():
            for counter, value in refused.items():
                tally.refuse(_beyond(gate.place, sample, step, f"{name} {counter}".strip(), value, ceiling))
        if step.outcome is Outcome.INTERVAL:
            self.rows.single[sample.table].extend(interval_rows(sample, step, source))
        elif step.outcome is Outcome.OLDER:
            self.late.setdefault(sample.table, []).append(sample)

    def _take_as_it_is(self, item: Item, source: str, gate: Gate) -> None:
        if isinstance(item, Note):
            self.tally.note(item)
        elif isinstance(item, Problem):
            self.tally.refuse(item)
        elif isinstance(item, Row):
            self.finished.single[item.table].append({**self._about(item.table, source), **item.values})
        elif isinstance(item, Rows) and len(item):
            own = self._about(item.table, source)
            columns = gate.columns(TABLES[item.table], {**own, **item.columns}, len(item))
            self.finished.columns[item.table].append(columns)

    def _about(self, table: str, source: str) -> dict[str, object]:
        """What the ingest knows of every finished row."""
        loaded_by = TABLES[table].loaded_by
        return {"source": source} if loaded_by is None else {"source": source, loaded_by: self.loaded_us}

    def extent(self) -> tuple[dict[str, set[str]], int | None, int | None]:
        """Targets by file system, and the earliest and latest time among the items."""
        seen: dict[str, set[str]] = {}
        times = list(self.times)
        for item in self.items:
            if isinstance(item, Sample | Samples):
                named = seen.setdefault(item.filesystem, set())
                is_target = TABLES[item.table].subject == "target" and item.labels.get("target_kind") != "service"
                named |= {item.target} if is_target else set()
        for name, parts in self.finished.columns.items():
            rows = pa.concat_tables(parts)
            names = [column for column in ("filesystem", "target") if column in rows.column_names]
            for pair in rows.select(names).group_by(names).aggregate([]).to_pylist():
                if pair["filesystem"] is not None:
                    targets = seen.setdefault(pair["filesystem"], set())
                    targets |= {pair["target"]} if "target" in TABLES[name].key else set()
            ends = pc.min_max(rows.column("time").cast(pa.int64())).as_py().values()
            times += [end for end in ends if end is not None]
        return seen, min(times, default=None), max(times, default=None)


def in_order(units: Sequence[Unit]) -> list[Unit]:
    """Units of the files of one call as their samples were taken: by the clock, or by more where that was set back."""
    whole = Counter(unit.capture.identity for unit in units)
    files: list[FileOfCall] = []
    slots: list[int] = []
    for slot, unit in enumerate(units):
        samples = [item for item in unit.items if isinstance(item, Sample)]
        if samples and unit.capture.place and unit.last and whole[unit.capture.identity] == 1:
            slots.append(slot)
            files.append(FileOfCall(unit.capture.origin, unit.capture.place, samples))
    order = order_of_files(files)
    arranged = list(units)
    places = {units[slots[number]].part.identity: place for number, place in order.after.items()}
    for slot, number in zip(slots, order.files, strict=True):
        arranged[slot] = unit = units[slots[number]]
        unit.places = places if number in order.after else {}
        unit.unordered = order.unordered.get(number, set())
    return arranged


def _stretch_rows(series: Samples, stretch: PlainStretch, source: str, gate: Gate) -> pa.Table:
    columns: dict[str, object] = {
        "time": stretch.time_us,
        "start": stretch.start_us,
        "duration_s": stretch.duration_s,
        "filesystem": series.filesystem,
        "source": source,
        TABLES[series.table].subject: series.target,
        "after_reset": False,
        **series.labels,
        **stretch.moved,
    }
    return gate.columns(TABLES[series.table], columns, len(stretch))


def _unordered(place: str, sample: Sample, others: str) -> Problem:
    """Why a sample is neither before nor after the others."""
    what = f"{sample.table} of {sample.target} at {iso(from_epoch_us(sample.snapshot_us))}"
    why = f"its counters lie below those of {others}, and not as a reset leaves them"
    return Problem(place, None, f"{what}: {why}; a clock was set, and nothing tells the order: left out")


def _moved_apart(sample: Sample, step: CounterStep) -> str:
    """What moved between two samples that are too far apart for an interval."""
    moved: dict[str, int] = {}
    for movement in step.movements.values():
        for name, count in movement.moved.items():
            what = {"read_bytes": "bytes read", "write_bytes": "bytes written"}.get(name, "counts")
            moved[what] = moved.get(what, 0) + count
    of_bytes = {what: count for what, count in moved.items() if what != "counts"} or moved
    much = ", ".join(f"{count:,} {what}" for what, count in of_bytes.items())
    since = " since a reset" if any(movement.after_reset for movement in step.movements.values()) else ""
    begin_us = sample.snapshot_us - round(step.duration_s * 1e6)
    start, end = (iso(from_epoch_us(time_us)) for time_us in (begin_us, sample.snapshot_us))
    span = f"from {start} to {end}, longer than longest_interval"
    return f"{sample.table} of {sample.target}: {much}{since} {span}: in no interval; the counters begin anew here"


def _beyond(place: str, sample: Sample, step: CounterStep, counter: str, value: int, ceiling: RateCeiling) -> Problem:
    """Why a movement is not stored."""
    over = f" in {step.duration_s:g} s" if step.outcome is Outcome.INTERVAL else ""
    what = f"{sample.table}.{counter} of {sample.target} moved {value}{over} to {iso(from_epoch_us(sample.time_us))}"
    key = "target_ceiling" if counter.endswith("_bytes") else "target_ops_ceiling"
    hint = "" if counter.endswith("_us") else f" (raise {key} of [filesystems.{sample.filesystem}] if it is real)"
    return Problem(place, None, f"{what}: more than {ceiling.shown(counter)} allow; stored as unknown{hint}")
