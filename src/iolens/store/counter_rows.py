"""How what a counter set moved looks as rows of its table, and back.

Most tables have one row for each interval, with a column per counter. Those in `SPARSE` have rows only for what moved:
one per job, or one per counter.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from iolens.records import CounterSet, Sample
from iolens.store.counters import CounterStep

LONGEST_LABEL: Final = 20  # digits of the largest number a column holds, and its sign


@dataclass(frozen=True, slots=True)
class SparseForm:
    """Rows of a table that has only what moved."""

    set_column: str | None = None  # tells the sets of a target apart; None: each counter is in one set only
    counter: str = ""  # SQL: the name of the counter a row is about; empty: a column per counter
    columns: Mapping[str, str] | None = None  # what the name of a counter ends with → the column that holds it


_BINS: Final = {"": "count"}
SPARSE: Final = {
    "target_histograms": SparseForm("histogram", "direction || ':' || bin", _BINS),
    "job_sizes": SparseForm("job_id", "direction || ':' || bin", _BINS),
    "job_io": SparseForm("job_id"),
    "server_ops": SparseForm(None, "operation", {"": "count", ":us": "sum_us", ":total": "total"}),
}


def interval_rows(sample: Sample, step: CounterStep, source: str) -> Iterator[dict[str, object]]:
    """The rows of one interval."""
    common: dict[str, object] = {
        "time": step.time_us,
        "start": step.start_us,
        "duration_s": step.duration_s,
        "filesystem": sample.filesystem,
        "source": source,
        "target": sample.target,
        **sample.labels,
    }
    form = SPARSE.get(sample.table)
    for name, movement in step.movements.items():
        row = {**common, "after_reset": movement.after_reset}
        if form is None:
            yield {**row, **movement.moved}
            continue
        row |= {} if form.set_column is None else {form.set_column: name}
        if form.columns is None:
            parts: list[Mapping[str, object]] = [movement.moved] if any(movement.moved.values()) else []
        else:
            parts = _by_counter(movement.moved, form.columns)
        for values in parts:
            yield {**row, **values}


def _by_counter(moved: Mapping[str, int], columns: Mapping[str, str]) -> list[Mapping[str, object]]:
    """One row for each bin or operation of which something moved."""
    if columns == _BINS:
        pairs = ((name.partition(":"), count) for name, count in moved.items() if count)
        return [{"direction": direction, "bin": _bin(label), "count": count} for (direction, _, label), count in pairs]
    operations: dict[str, dict[str, object]] = {}
    for counter, value in moved.items():
        operation, _, what = counter.partition(":")
        if value:
            values = operations.setdefault(operation, {"operation": operation, "count": moved.get(operation)})
            values[columns[counter.removeprefix(operation) if what else ""]] = value
    return list(operations.values())


def _bin(label: str) -> int | str:
    """The number of a bin; a label that is none is left for the gate to refuse."""
    is_number = label.removeprefix("-").isdecimal() and len(label) <= LONGEST_LABEL
    return int(label) if is_number else label


def set_column(table: str) -> str:
    """SQL of what tells the counter sets of a target apart."""
    form = SPARSE.get(table)
    return "''" if form is None or form.set_column is None else form.set_column


def counter_columns(form: SparseForm | None, counters: Sequence[str], how: str) -> str:
    """SQL of the counters of a stored row, each as `how` has it."""
    if form is None or form.columns is None:
        return ", ".join(how.format(f'"{name}"') for name in counters)
    return ", ".join([form.counter, *(how.format(f'coalesce("{column}", 0)') for column in form.columns.values())])


def counters_of(form: SparseForm | None, counters: Sequence[str], values: Sequence[Any]) -> dict[str, int | None]:
    """What `counter_columns` gave, by counter."""
    if form is None or form.columns is None:
        return dict(zip(counters, values, strict=True))
    name, *numbers = values
    return {f"{name}{end}": number for end, number in zip(form.columns, numbers, strict=True)}


def as_stored(table: str, sets: Mapping[str, CounterSet]) -> Mapping[str, CounterSet]:
    """The sets as the table's rows tell them apart: where they do not, all counters as one set."""
    form = SPARSE.get(table)
    if form is None or form.set_column is not None:
        return sets
    together = {name: value for one in sets.values() for name, value in one.counters.items()}
    return {"": CounterSet(together, None, all(one.complete for one in sets.values()))}
