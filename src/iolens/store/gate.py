"""The one gate into the store: what a column cannot hold, or what cannot be, is refused and named; the rest goes on.

An impossible value becomes NULL; in a column that names the row, the row is left out. Columns are looked at as a whole:
their extremes tell that all is well, and only a column in which it is not is searched.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from iolens.counters.ceilings import SHORTEST_S, RateCeiling, RateCeilings
from iolens.records import CounterSet, Problem, Sample, Samples
from iolens.schema import LARGEST, LATEST_US, Column, Table
from iolens.store.data_files import directory_dates
from iolens.store.rows import as_array
from iolens.store.tables import ARROW_TYPES, arrow_schema
from iolens.units import from_epoch_us, iso

LARGEST_COUNTER: Final = 2**64 - 1  # raw counters are unsigned; only what moved must fit a column
AHEAD_US: Final = 600_000_000  # how far the clock that stamped an input may be ahead of the one here
NAMED: Final = 100  # refused values of one column that are named; all are counted
SHOWN: Final = 60
EXPECTED: Final = {
    "timestamp": "a time between 1970 and 2200, in microseconds",
    "date": "a day",
    "int64": "a whole number of at most 64 bits",
    "float64": "a finite number",
    "string": "a text",
    "bool": "true or false",
}
GATE_TYPES: Final = ARROW_TYPES | {"timestamp": pa.int64()}  # at the gate times are numbers, microseconds since 1970
_WHOLE: Final[set[type]] = {int, type(None)}
_OWN_TYPES: Final[dict[str, set[type]]] = {
    "timestamp": _WHOLE, "date": _WHOLE, "int64": _WHOLE, "float64": {float, int, type(None)},
    "string": {str, type(None)}, "bool": {bool, type(None)},
}  # fmt: skip
_WRONG: Final = (pa.ArrowException, OverflowError, TypeError, ValueError, AttributeError)
_REFUSED: Final = object()
_TIME: Final = Column("time", "timestamp", "")
_COUNTER: Final = Column("counter", "int64", "", counter=True)

Mask = NDArray[np.bool_]
Refuse = Callable[[Problem, int], None]  # a problem, and how many values it stands for


@dataclass(slots=True)
class Gate:
    """The gate for what one capture brings."""

    place: str
    refuse: Refuse
    ceilings: RateCeilings = field(default_factory=RateCeilings)
    latest_us: int = LATEST_US  # by the clock here: nothing was measured later

    def rows(self, table: Table, rows: Sequence[Mapping[str, Any]]) -> pa.Table:
        """Single rows; what one does not have is NULL."""
        present = set[str]().union(*rows)
        names = [column.name for column in table.columns if column.name in present]
        columns = {name: [row.get(name) for row in rows] for name in names}
        return self._typed(table, columns, len(rows), nan_is_null=False).checked()

    def columns(self, table: Table, columns: Mapping[str, object], count: int) -> pa.Table:
        """Whole columns: sequences of `count` values, or one value for all rows; NaN is NULL."""
        return self._typed(table, columns, count, nan_is_null=True).checked()

    def _typed(self, table: Table, columns: Mapping[str, object], count: int, *, nan_is_null: bool) -> _GateRows:
        rows = _GateRows(self, table, {})
        wrong: list[tuple[Column, Mask, list[Any]]] = []
        for column in table.columns:
            values = None if column.type == "date" else columns.get(column.name)  # a day follows from the time
            try:
                rows.arrays[column.name] = _array(values, column, count, nan_is_null)
            except _WRONG:
                plain = _plain(values, count)
                kept = [_possible(value, column, nan_is_null) for value in plain]
                wrong.append((column, np.array([value is _REFUSED for value in kept], bool), plain))
                rows.arrays[column.name] = as_array(
                    [None if value is _REFUSED else value for value in kept], GATE_TYPES[column.type], count
                )
        for column, mask, plain in wrong:
            rows.drop(column, mask, plain, f"expected {EXPECTED[column.type]}")
        return rows

    def sample(self, sample: Sample) -> Sample | None:
        """A raw sample without readings that are no counters; None when it has no time."""
        for time_us, latest_us in ((sample.time_us, self.latest_us), (sample.snapshot_us, LATEST_US)):
            if type(time_us) is not int or not 0 <= time_us <= latest_us:
                self._drop_reading(sample, None, "its time", time_us, _TIME)
                return None
        starts = {type(reading.start_us) for reading in sample.sets.values()}
        values = [value for reading in sample.sets.values() for value in reading.counters.values()]
        is_whole = starts <= _WHOLE and {*map(type, values)} <= {int}
        if is_whole and min(values, default=0) >= 0 and max(values, default=0) <= LARGEST_COUNTER:
            return sample
        return replace(
            sample, sets={name: self._sound(sample, name, counters) for name, counters in sample.sets.items()}
        )

    def _sound(self, sample: Sample, name: str, reading: CounterSet) -> CounterSet:
        counters = dict(reading.counters)
        for counter, value in reading.counters.items():
            if type(value) is not int or not 0 <= value <= LARGEST_COUNTER:
                del counters[counter]
                self._drop_reading(sample, sample.time_us, f"{name} {counter}".strip(), value, _COUNTER)
        start_us = reading.start_us if type(reading.start_us) is int else None
        return reading._replace(counters=counters, start_us=start_us)

    def series(self, series: Samples) -> Samples:
        """The same of a series."""
        ticks, no_tick = _whole_numbers(series.time_us, _TIME, self.latest_us)
        clocks, no_clock = _whole_numbers(series.snapshot_us, _TIME)
        untimed = no_tick | no_clock
        self._drop_readings(
            series, "its time", _TIME, untimed, np.where(no_tick, series.time_us, series.snapshot_us), ticks
        )
        counters = {}
        for name, values in series.counters.items():
            counters[name], wrong = _whole_numbers(values, _COUNTER)
            self._drop_readings(series, name, _COUNTER, wrong & ~untimed, values, ticks)
        keep = ~untimed if untimed.any() else slice(None)
        return replace(
            series,
            time_us=np.ma.getdata(ticks)[keep],
            snapshot_us=np.ma.getdata(clocks)[keep],
            counters={name: column[keep] for name, column in counters.items()},
        )

    def _drop_readings(self, series: Samples, name: str, column: Column, wrong: Mask, values: Any, ticks: Any) -> None:
        places = np.flatnonzero(wrong)
        for place in places[:NAMED]:
            at = None if column is _TIME else int(ticks[place])
            self._drop_reading(series, at, name, values[place], column)
        if more := len(places[NAMED:]):
            reason = f"{series.table} of {series.target}: {name} of {more} more samples cannot be"
            self.refuse(Problem(self.place, None, reason), more)

    def _drop_reading(
        self, sample: Sample | Samples, at_us: int | None, name: str, value: object, column: Column
    ) -> None:
        when = "" if at_us is None else f" at {iso(from_epoch_us(at_us))}"
        what = "sample left out" if column is _TIME else "taken as not readable"
        reason = f"{sample.table} of {sample.target}{when}: {name} is {self.shown(column, value)}"
        self.refuse(Problem(self.place, None, f"{reason}, expected {self.expected(column, value)}; {what}"), 1)

    def shown(self, column: Column, value: Any) -> str:
        """A value for a message; a time of the future as a time."""
        return iso(from_epoch_us(int(value))) if self._is_future(column, value) else shown(value)

    def expected(self, column: Column, value: Any) -> str:
        """What a column takes instead of a value."""
        if not self._is_future(column, value):
            return expected_range(column)
        return f"no later than {iso(from_epoch_us(self.latest_us))}, the clock here and {AHEAD_US // 60_000_000} min"

    def _is_future(self, column: Column, value: Any) -> bool:
        return column is _TIME and isinstance(value, int | np.integer) and self.latest_us < int(value) <= LATEST_US


@dataclass(slots=True)
class _GateRows:
    """The columns of one table on their way through the gate."""

    gate: Gate
    table: Table
    arrays: dict[str, pa.Array]
    _left_out: Mask | None = None

    @property
    def left_out(self) -> Mask:
        """Rows that go no further."""
        if self._left_out is None:
            self._left_out = np.zeros(len(next(iter(self.arrays.values()))), bool)
        return self._left_out

    @left_out.setter
    def left_out(self, mask: Mask) -> None:
        self._left_out = mask

    @property
    def names(self) -> set[str]:
        """Columns without which a row is not distinguished from others, or has no place."""
        return {*self.table.key, *(("time",) if self.table.partitioned else ()),
                *(("start",) if self.table.kind == "interval" else ())}  # fmt: skip

    def checked(self) -> pa.Table:
        """The rows and values that can be, each row with the `date` of its directory; all else is reported."""
        for column in self.table.columns:
            self._check_range(column)
        for column in self.table.columns:
            if column.part_of is not None:
                self._check_part(column, column.part_of)
        self._check_clock()
        if self.table.partitioned:
            missing = _mask(pc.is_null(self.arrays["time"]))
            self.drop(_TIME, missing, self.arrays["time"], "expected the time of the row")
        if self.table.kind == "interval":
            ends_before = _mask(pc.less(self.arrays["time"], self.arrays["start"]))
            times = self.arrays["time"].cast(ARROW_TYPES["timestamp"])
            self.drop(_TIME, ends_before, times, "expected no earlier than its start")
            self.shrink()
            self._check_ceilings()
        self.shrink()
        if self.table.partitioned:
            self.arrays["date"] = directory_dates(self.table, self.arrays.get("start"), self.arrays["time"])
        schema = arrow_schema(self.table)
        return pa.table([self.arrays[field.name].cast(field.type) for field in schema], schema=schema)

    def _check_range(self, column: Column) -> None:
        if column.limits is None or column.type == "date":
            return
        lowest, highest = column.limits
        numbers = self.arrays[column.name]
        low, high = pc.min_max(numbers).as_py().values()
        if low is None or (low >= lowest and high <= highest):
            return
        mask = _mask(pc.or_(pc.less(numbers, lowest), pc.greater(numbers, highest)))
        self.drop(column, mask, numbers, f"expected {expected_range(column)}")

    def _check_part(self, column: Column, of: str) -> None:
        """A part is not more than its whole."""
        numbers, whole = self.arrays[column.name], self.arrays[of]
        mask = _mask(pc.greater(numbers, whole))
        if mask.any():
            self.drop(column, mask, numbers, f"expected at most {of}, {shown(whole[int(np.argmax(mask))])}")

    def _check_clock(self) -> None:
        """Nothing is later than the clock here allows."""
        times = self.arrays.get("time")
        if times is None or (pc.max(times).as_py() or 0) <= self.gate.latest_us:
            return
        mask = _mask(pc.greater(times, self.gate.latest_us))
        first = times[int(np.argmax(mask))].as_py()
        shown_times = times.cast(ARROW_TYPES["timestamp"])
        self.drop(_TIME, mask, shown_times, f"expected {self.gate.expected(_TIME, first)}", is_row=True)

    def _check_ceilings(self) -> None:
        """What moved in an interval, beside what could."""
        limits: tuple[NDArray[np.float64], NDArray[np.intp], list[RateCeiling]] | None = None
        for column in self.table.columns:
            numbers = self.arrays[column.name]
            if not column.counter or (pc.max(numbers).as_py() or 0) <= self.gate.ceilings.smallest:
                continue
            limits = limits or (self.seconds(), *self.ceilings(self.gate.ceilings))
            seconds, which, ceilings = limits
            most = np.array([ceiling.per_second(column.name) for ceiling in ceilings], float)[which] * seconds
            mask = np.asarray(numbers.fill_null(0)) > most
            if mask.any():
                ceiling = ceilings[which[int(np.argmax(mask))]]
                self.drop(column, mask, numbers, f"more than {ceiling.shown(column.name)} allow")

    def drop(self, column: Column, mask: Mask, values: Any, why: str, *, is_row: bool = False) -> None:
        """Refuse the values of a column where the mask says so, or their rows, and name the first of them."""
        places = np.flatnonzero(mask & ~self.left_out)
        if not len(places):
            return
        name = f"{self.table.name}.{column.name}"
        is_row = is_row or column.name in self.names
        what = "row left out" if is_row else "stored as unknown"
        for place in places[:NAMED]:
            reason = f"{name} is {shown(values[int(place)])}{self.called(int(place))}: {why}; {what}"
            self.gate.refuse(Problem(self.gate.place, None, reason), 1)
        if more := len(places[NAMED:]):
            self.gate.refuse(Problem(self.gate.place, None, f"{name} of {more} more rows: {why}; {what}"), more)
        if is_row:
            self.left_out |= mask
        self.arrays[column.name] = pc.if_else(pa.array(mask), None, self.arrays[column.name])

    def shrink(self) -> None:
        """Let go of the rows that are left out."""
        if self.left_out.any():
            keep = pa.array(~self.left_out)
            self.arrays = {name: array.filter(keep) for name, array in self.arrays.items()}
            self.left_out = np.zeros(pc.sum(keep).as_py(), bool)

    def seconds(self) -> NDArray[np.float64]:
        """How long each interval is, for what can have moved in it."""
        spans = pc.divide(pc.subtract(self.arrays["time"], self.arrays["start"]).cast(pa.float64()), 1e6)
        known = pc.fill_null(pc.coalesce(self.arrays["duration_s"], spans), SHORTEST_S)
        seconds: NDArray[np.float64] = np.maximum(np.asarray(known), SHORTEST_S)
        return seconds

    def ceilings(self, ceilings: RateCeilings) -> tuple[NDArray[np.intp], list[RateCeiling]]:
        """Which ceiling each row has."""
        kinds = self.arrays.get("target_kind", pa.nulls(len(self.arrays["filesystem"]), pa.string()))
        pairs = [column.fill_null("").dictionary_encode() for column in (self.arrays["filesystem"], kinds)]
        filesystem, kind = (np.asarray(column.indices) for column in pairs)
        known = [
            ceilings.of(name, of) for name in pairs[0].dictionary.to_pylist() for of in pairs[1].dictionary.to_pylist()
        ]
        return filesystem * len(pairs[1].dictionary) + kind, known

    def called(self, place: int) -> str:
        """What a row is about and when, for a message."""
        names = [name for name in self.table.key if name not in ("source", "filesystem", "time")]
        said = [shown(value) for name in names[:2] if (value := self.arrays[name][place].as_py()) is not None]
        time_us = self.arrays["time"][place].as_py() if "time" in self.arrays else None
        at = [iso(from_epoch_us(time_us))] if time_us is not None and 0 <= time_us <= LATEST_US else []
        return f" ({', '.join(said + at)})" if said or at else ""


def shown(value: object) -> str:
    """A value as a message quotes it, however long it is."""
    if isinstance(value, pa.Scalar | np.generic):
        value = value.as_py() if isinstance(value, pa.Scalar) else value.item()
    if isinstance(value, int) and value.bit_length() > 200:
        return f"a number of {value.bit_length()} bits"
    text = value if isinstance(value, str) and value.isprintable() else repr(value)
    return text if len(text) <= SHOWN else text[: SHOWN - 1] + "…"


def expected_range(column: Column) -> str:
    """What a column can hold, in words."""
    if column.type not in ("int64", "float64") or column.limits is None:
        return EXPECTED[column.type]
    lowest, highest = column.limits
    most = f" and at most {highest:g}" if highest < LARGEST else ""
    return EXPECTED[column.type] + (f", at least {lowest:g}" if column.at_least is not None else "") + most


def _array(values: object, column: Column, count: int, nan_is_null: bool) -> pa.Array:
    """A column as Arrow holds it at the gate, times as microseconds; fails where a value is not of its type.

    Arrow would make 1 of 1.5, and a text of bytes: single values must be of the column's own type.
    """
    if not isinstance(values, np.ndarray | pa.Array | pa.ChunkedArray):
        single = values if isinstance(values, list | tuple) else (values,)
        if not {*map(type, single)} <= _OWN_TYPES[column.type]:
            raise TypeError
    array = as_array(values, GATE_TYPES[column.type], count)
    if column.type != "float64" or not pc.any(pc.is_nan(array)).as_py():
        return array
    if not nan_is_null:
        raise ValueError("NaN")
    return pc.if_else(pc.is_nan(array), None, array)


def _mask(condition: pa.Array) -> Mask:
    return np.asarray(pc.fill_null(condition, False))


def _plain(values: object, count: int) -> list[Any]:
    """The values of a column one by one."""
    if isinstance(values, pa.Array | pa.ChunkedArray):
        return list(values.to_pylist())
    if isinstance(values, np.ndarray) and values.ndim:
        return list(values.tolist())
    if isinstance(values, list | tuple):
        return list(values)
    return [values.item() if isinstance(values, np.generic) else values] * count


def _possible(value: object, column: Column, nan_is_null: bool = False) -> object:
    """The value as the column's type holds it, or that it cannot be."""
    if value is None or (nan_is_null and isinstance(value, float) and math.isnan(value)):
        return None
    if isinstance(value, np.generic):
        value = value.item()
    if column.type == "string":
        return value.encode("utf-8", "backslashreplace").decode() if isinstance(value, str) else _REFUSED
    if isinstance(value, bool) or column.type == "bool":
        return value if isinstance(value, bool) and column.type == "bool" else _REFUSED
    if not isinstance(value, int | float):
        return _REFUSED
    if column.type == "float64":
        return _as_double(value)
    is_whole = isinstance(value, int) or value.is_integer()
    return int(value) if is_whole and -LARGEST - 1 <= value <= LARGEST else _REFUSED


def _as_double(value: float) -> object:
    try:
        number = float(value)
    except OverflowError:
        return _REFUSED
    return number if math.isfinite(number) else _REFUSED


def _whole_numbers(values: Any, column: Column, most: int = LARGEST) -> tuple[Any, Mask]:
    """A column of a series as whole numbers, and which of its values cannot be; those are masked."""
    wrong: Mask | None = None
    if values.dtype != np.int64:
        kept = [_possible(value, column, nan_is_null=True) for value in values.tolist()]
        wrong = np.array([value is _REFUSED for value in kept], bool)
        known = [value if type(value) is int else None for value in kept]
        values = np.ma.MaskedArray([value or 0 for value in known], [value is None for value in known], dtype=np.int64)
    numbers, unknown = np.ma.getdata(values), np.ma.getmaskarray(values)
    lowest, highest = column.limits or (0, LARGEST)
    highest = min(highest, most)
    if wrong is None and len(numbers) and numbers.min() >= lowest and numbers.max() <= highest:
        return values, np.zeros(len(numbers), bool)
    outside = ~unknown & ((numbers < lowest) | (numbers > highest))
    masked = np.ma.MaskedArray(numbers, unknown | outside) if outside.any() else values
    return masked, outside if wrong is None else outside | wrong
