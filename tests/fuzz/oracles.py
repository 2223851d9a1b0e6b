"""What must hold whatever a file contains: no traceback, no hang, no impossible value, no row of another file lost."""

from __future__ import annotations

import signal
import traceback
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from iolens.errors import REPORT, IolensError
from iolens.records import Item, Note, Problem, Row, Rows, Sample, Samples
from iolens.schema import TABLES
from iolens.sources import get_source
from iolens.sources.reading.parsed_numbers import LARGEST_UNSIGNED
from iolens.store.readers import guarded, listed
from iolens.store.rows import columns_to_arrow, to_arrow
from tests.fuzz.corpus import Example

LONGEST_S: Final = 10.0  # of processor time; a small file takes milliseconds
LATEST_US: Final = 253_402_300_800 * 1_000_000  # the year 10000, which no date has
# The tick of a sample depends on the files beside it; the name of a scan on its content.
FREE: Final = ("time", "start", "duration_s", "scan", "run_id")


class TooLong(BaseException):
    """Not an Exception, so that nothing on the way takes it for a fault of the input."""


@contextmanager
def time_limit(seconds: float = LONGEST_S) -> Iterator[None]:
    """Raise `TooLong` after so much processor time, which other processes on the machine do not lengthen."""

    def ring(_signal: int, _frame: object) -> None:
        raise TooLong(f"more than {seconds:g} s of processor time")

    before = signal.signal(signal.SIGVTALRM, ring)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


def faults_of(example: Example, folder: Path, beside: Path | None = None) -> list[str]:
    """What is wrong with how an example, damaged as it may be, is read; `beside` holds a whole copy of it."""
    named = example.write(folder)
    whole = [] if beside is None else [beside / item.relative_to(folder) for item in named]
    try:
        with time_limit():
            items = _read(example, [*named, *whole], named)
    except TooLong as error:
        return [f"hang: {error}"]
    except Exception:
        return ["traceback: " + traceback.format_exc(limit=-6)]
    faults = [f"traceback: {item}" for item in items if isinstance(item, Problem) and REPORT in item.reason]
    return faults + [fault for item in items for fault in _impossible(item)]


def rows_of(example: Example, folder: Path, paths: Sequence[Path]) -> Counter[str]:
    """The rows and samples that the captures of one folder give, whatever else is named beside it."""
    counts: Counter[str] = Counter()
    try:
        for capture in listed(get_source(example.source).captures(paths, example.options)):
            if capture.origin.startswith(str(folder)):
                counts.update(row for item in guarded(capture) for row in _plain(item))
    except IolensError as error:
        counts[f"refused: {error}"] += 1
    return counts


def _read(example: Example, paths: list[Path], damaged: list[Path]) -> list[Item]:
    """All items; a refusal is a problem."""
    source = get_source(example.source)
    for path in damaged:
        if path.exists():
            source.recognises(path, b"" if path.is_dir() else path.read_bytes()[:65536])
    try:
        return [item for entry in listed(source.captures(paths, example.options)) for item in guarded(entry)]
    except IolensError as error:
        return [Problem(example.source, None, str(error))]


def _impossible(item: Item) -> Iterator[str]:
    """Values that no column can hold or that nothing can measure."""
    if isinstance(item, Problem):
        if not item.reason or not item.place:
            yield f"a problem that does not say what or where: {item!r}"
        if len(str(item)) > 2000:
            yield f"a problem of {len(str(item))} characters: {str(item)[:200]}"
        return
    if item.table not in TABLES:
        yield f"no table {item.table}"
        return
    try:
        yield from _impossible_rows(_arrow(item), item.table)
    except (pa.ArrowException, OverflowError, TypeError, ValueError, KeyError) as error:
        yield f"{item.table} cannot be stored: {type(error).__name__}: {error}"


def _arrow(item: Row | Rows | Sample | Samples) -> pa.Table:
    table = TABLES[item.table]
    if isinstance(item, Row):
        return to_arrow(table, [dict(item.values)])
    if isinstance(item, Rows):
        unknown = set(item.columns) - {column.name for column in table.columns}
        if unknown:
            raise KeyError(f"no column {unknown}")
        return columns_to_arrow(table, item.columns, item.count)
    if isinstance(item, Samples):
        for name, column in item.counters.items():
            if column.dtype != np.int64:
                raise TypeError(f"{name} is {column.dtype}")
        return columns_to_arrow(table, {"time": item.time_us, "start": item.snapshot_us, **item.counters}, len(item))
    for entry in item.sets.values():
        for name, value in entry.counters.items():
            if type(value) is not int or not 0 <= value <= LARGEST_UNSIGNED:  # raw: the store takes differences
                raise OverflowError(f"{name} = {value!r:.60}")
    start = min([item.snapshot_us, *(entry.start_us for entry in item.sets.values() if entry.start_us is not None)])
    return to_arrow(table, [{"time": item.time_us, "start": start}])


def _impossible_rows(rows: pa.Table, table: str) -> Iterator[str]:
    for column in TABLES[table].columns:
        values = rows.column(column.name)
        if column.type == "timestamp":
            values = values.cast(pa.int64())
        if column.type in ("int64", "timestamp", "float64") and len(values) > values.null_count:
            ends: dict[str, Any] = pc.min_max(values).as_py()
            largest = LATEST_US if column.type == "timestamp" else float("inf")
            least = float("-inf") if column.at_least is None else column.at_least
            if not least <= ends["min"] <= ends["max"] < largest:
                yield f"{table}.{column.name} from {ends['min']} to {ends['max']}"
        if column.name == "duration_s" and len(values) > values.null_count and not pc.min(values).as_py() > 0:
            yield f"{table}.duration_s = {pc.min(values).as_py()}"


def _plain(item: Item) -> Iterator[str]:
    """An item as text, row by row, without what depends on the files beside it."""
    if isinstance(item, Note | Problem):
        return
    if isinstance(item, Row):
        yield repr((item.table, sorted((name, value) for name, value in item.values.items() if name not in FREE)))
    elif isinstance(item, Sample):
        yield repr((item.table, item.target, item.snapshot_us, sorted(item.sets.items())))
    else:
        columns = item.columns if isinstance(item, Rows) else {"": item.snapshot_us, **item.counters}
        listed = {name: _listed(column, len(item)) for name, column in columns.items() if name not in FREE}
        target = item.target if isinstance(item, Samples) else ""
        for place in range(len(item)):
            yield repr((item.table, target, sorted((name, column[place]) for name, column in listed.items())))


def _listed(column: object, count: int) -> list[Any]:
    if isinstance(column, np.ndarray):
        return list(column.tolist())
    if isinstance(column, pa.Array):
        return list(column.to_pylist())
    return column if isinstance(column, list) else [column] * count
