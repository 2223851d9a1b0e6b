"""How what a counter set moved looks as rows of its table, and back, as the table's `CounterForm` says."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Any, Final

from iolens.counters.differences import CounterStep
from iolens.records import CounterSet, Sample
from iolens.schema import TABLES, Table

LONGEST_LABEL: Final = 20  # digits of the largest number a column holds, and its sign


def interval_rows(sample: Sample, step: CounterStep, source: str) -> Iterator[dict[str, object]]:
    """The rows of one interval."""
    table = TABLES[sample.table]
    common: dict[str, object] = {
        "time": step.time_us,
        "start": step.start_us,
        "duration_s": step.duration_s,
        "filesystem": sample.filesystem,
        "source": source,
        table.subject: sample.target,
        **{name: _typed(table, name, value) for name, value in sample.labels.items()},
    }
    form = table.form
    for name, movement in step.movements.items():
        row = {**common, "after_reset": movement.after_reset}
        if not form.moved_only:
            yield {**row, **movement.moved}
            continue
        row |= {} if form.set_column is None else {form.set_column: name}
        if form.name_columns:
            parts = _by_counter(movement.moved, table)
        else:
            parts = [movement.moved] if any(movement.moved.values()) else []
        for values in parts:
            yield {**row, **values}


def _by_counter(moved: Mapping[str, int], table: Table) -> Sequence[Mapping[str, object]]:
    """One row for each bin or operation of which something moved."""
    form = table.form
    if form.name_columns == ("direction", "bin"):
        pairs = ((name.partition(":"), count) for name, count in moved.items() if count)
        return [{"direction": direction, "bin": _bin(label), "count": count} for (direction, _, label), count in pairs]
    columns, width = dict(form.value_columns), len(form.name_columns)
    rows: dict[str, dict[str, object]] = {}
    for counter, value in moved.items():
        if not value:
            continue
        words = counter.split(":")
        name = ":".join(words[:width])
        if name not in rows:
            named = zip(form.name_columns, words, strict=False)
            rows[name] = {column: _typed(table, column, word) for column, word in named}
            rows[name][columns[""]] = moved.get(name)
        rows[name][columns[counter.removeprefix(name)]] = value
    return list(rows.values())


def _typed(table: Table, column: str, value: str) -> int | str:
    """A value as its column has it."""
    return _bin(value) if column in _numbers(table.name) else value


@cache
def _numbers(table: str) -> frozenset[str]:
    return frozenset(column.name for column in TABLES[table].columns if column.type == "int64")


def _bin(label: str) -> int | str:
    """The number of a bin; a label that is none is left for the gate to refuse."""
    is_number = label.removeprefix("-").isdecimal() and len(label) <= LONGEST_LABEL
    return int(label) if is_number else label


def set_column(table: Table) -> str:
    """SQL of what tells the counter sets of a target apart."""
    return table.form.set_column or "''"


def counter_columns(table: Table, how: str) -> str:
    """SQL of the counters of a stored row, each as `how` has it."""
    form = table.form
    if not form.name_columns:
        return ", ".join(how.format(f'"{name}"') for name in table.counters)
    name = " || ':' || ".join(form.name_columns)
    return ", ".join([name, *(how.format(f'coalesce("{column}", 0)') for _, column in form.value_columns)])


def counters_of(table: Table, values: Sequence[Any]) -> dict[str, int | None]:
    """What `counter_columns` gave, by counter."""
    if not table.form.name_columns:
        return dict(zip(table.counters, values, strict=True))
    name, *numbers = values
    return {f"{name}{end}": number for (end, _), number in zip(table.form.value_columns, numbers, strict=True)}


def as_stored(table: Table, sets: Mapping[str, CounterSet]) -> Mapping[str, CounterSet]:
    """The sets as the table's rows tell them apart: where they do not, all counters as one set."""
    form = table.form
    if not form.sets_by_mount and (not form.moved_only or form.set_column is not None):
        return sets
    together: dict[str, int] = {}
    for counter_set in sets.values():
        for name, value in counter_set.counters.items():
            together[name] = together.get(name, 0) + value
    return {"": CounterSet(together, None, all(counter_set.complete for counter_set in sets.values()))}
