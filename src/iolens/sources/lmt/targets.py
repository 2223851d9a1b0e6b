"""What one day of LMT's tables says of each target and server: raw counters, fullness and load.

Tables are read target by target through their primary key, whole columns at once. A row that is not there is a sample
that was not taken; a value that is NULL is not known; neither is ever zero.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from iolens.arrays import Integers
from iolens.records import Item, Note, Problem, Row, Rows, Samples
from iolens.sources.lmt import brw_stats as lmt_brw_stats
from iolens.sources.lmt.brw_stats import BrwStats
from iolens.sources.lmt.days import METADATA_COLUMN, UNUSED_OPERATIONS, SampleTimes
from iolens.sources.lustre.stats import MICROSECONDS
from iolens.sources.reading.served_targets import served_row
from iolens.sources.reading.sql_database import NOT_A_NUMBER, Database, SqlSelection, Table, TableSchema
from iolens.units import KIB

OST_DATA, OST_NAMES = "OST_DATA", "OST_INFO"
OST_OPS_DATA, OSS_DATA, MDS_DATA, MDS_OPS_DATA = "OST_OPS_DATA", "OSS_DATA", "MDS_DATA", "MDS_OPS_DATA"
# The tables that are read, and what a row of each is of.
TABLES: Final = {
    OST_DATA: "OST_ID",
    OST_OPS_DATA: "OST_ID",
    OSS_DATA: "OSS_ID",
    MDS_DATA: "MDS_ID",
    MDS_OPS_DATA: "MDS_ID",
}
# What they are called, by number.
NAMED: Final = {OST_NAMES: "OST_ID", "OSS_INFO": "OSS_ID", "MDS_INFO": "MDS_ID"}
MOST_KIB: Final = 2**53 - 1  # what a column of bytes can hold
ZEROS_UNDECIDED: Final = 60  # five minutes of zeros at the very end may yet turn out to be failed readings
NEIGHBOURHOOD: Final = 20_000  # TS_IDs, a day and some: how far to look for the counters on the other side of zeros

TARGET_COLUMN: Final = {
    "read": "read_ops", "read_bytes": "read_ops", "write": "write_ops", "write_bytes": "write_ops",
}  # fmt: skip

_CAPACITY: Final = ("KBYTES_FREE", "KBYTES_USED", "INODES_FREE", "INODES_USED")
_UUID_ENDING: Final = "_UUID"

Masked = np.ma.MaskedArray[tuple[int], np.dtype[np.int64]]
Schema = Mapping[str, TableSchema]


class DatabasePart(NamedTuple):
    """An OST, MDT or server by its number in the database."""

    number: int
    name: str
    host: str
    offline: bool = False


class Operation(NamedTuple):
    """A kind of operation by its number in the database."""

    name: str
    unit: str


@dataclass(frozen=True, slots=True)
class DaySeries:
    """Columns of one target over the day's times, in time order."""

    time_us: Integers
    columns: Mapping[str, NDArray[np.generic]]
    problems: tuple[Problem, ...] = ()

    def __len__(self) -> int:
        return len(self.time_us)

    def known(self, name: str) -> Masked:
        """A column of numbers, masked where there is none."""
        values = self.columns[name].astype(np.int64, copy=False)
        return np.ma.MaskedArray(values, values < 0)

    def where(self, keep: NDArray[np.bool_]) -> DaySeries:
        """Only those times."""
        return DaySeries(
            self.time_us[keep], {name: column[keep] for name, column in self.columns.items()}, self.problems
        )


@dataclass(frozen=True, slots=True)
class DayTables:
    """The tables of an open database over the times of one day."""

    database: Database
    schema: Schema
    filesystem: str
    times: SampleTimes
    brw_stats: BrwStats | None
    is_last: bool  # the database has no later day

    def items(self) -> Iterator[Item]:
        """Everything, target by target."""
        if not len(self.times.ts_ids):
            return
        for table_name, key in NAMED.items():
            yield from self._unnumbered(table_name, key)
        osts = self.parts(OST_NAMES, "OST_ID", "OST_NAME")
        for ost in osts:
            yield from self._ost(ost)
        yield from self._servers(osts)
        for mdt in self.parts("MDS_INFO", "MDS_ID", "MDS_NAME"):
            yield from self._mdt(mdt)
        if self.is_last:
            yield from self._offline(osts)

    def _unnumbered(self, table_name: str, key: str) -> Iterator[Problem]:
        """Names whose number is none: nothing of theirs can be found."""
        table = self.schema.get(table_name)
        if table is not None and table.has(key):
            sql = f"SELECT COUNT(*) FROM {table.quoted} WHERE {self.database.key(table, key)} < 0"  # noqa: S608
            if count := self.database.rows(sql)[0][0]:
                yield Problem(self.database.place, None, f"{table.name}.{key}: {count} are no numbers: left out")

    def parts(self, table_name: str, key: str, name: str) -> list[DatabasePart]:
        """The targets or servers that a table names."""
        table = self.schema.get(table_name)
        if table is None or not table.has(key, name):
            return []
        columns = [column if table.has(column) else "" for column in (key, name, "HOSTNAME", "OFFLINE")]
        selected = ", ".join(table.column(column) if column else "NULL" for column in columns[1:])
        selected = f"{self.database.key(table, key)}, {selected}"
        sql = f"SELECT {selected} FROM {table.quoted} ORDER BY {table.column(key)}"  # noqa: S608 (the schema's names)
        return [
            DatabasePart(number, str(called).removesuffix(_UUID_ENDING), str(host or ""), offline in (1, "1"))
            for number, called, host, offline in self.database.rows(sql)
            if called and number >= 0
        ]

    def _ost(self, ost: DatabasePart) -> Iterator[Item]:
        series = self._series(OST_DATA, ost, ("READ_BYTES", "WRITE_BYTES", *_CAPACITY))
        yield from series.problems
        failed = self._failed_readings(ost, series)
        if failed.any():
            reason = f"{ost.name}: {failed.sum()} readings of zero, after which the former counts went on, left out"
            yield Note(self.database.place, None, reason)
            series = series.where(~failed)
        operations = self._operations(OST_OPS_DATA, ost, TARGET_COLUMN)
        counters = {"read_bytes": series.known("READ_BYTES"), "write_bytes": series.known("WRITE_BYTES")}
        yield from self._server(ost, series)
        yield from self._samples("target_io", ost, "ost", _joined(series.time_us, counters, operations))
        yield from self._capacity(ost, "ost", series)
        if self.brw_stats is not None:
            yield from self._sizes(ost, self.brw_stats)

    def _server(self, part: DatabasePart, series: DaySeries) -> Iterator[Row]:
        """Who serves a target, as the database says when it is read: it keeps no history of that."""
        if part.host and len(series):
            yield served_row(int(series.time_us[0]), self.filesystem, part.name, part.host)

    def _sizes(self, ost: DatabasePart, brw_stats: BrwStats) -> Iterator[Item]:
        table = lmt_brw_stats.check(brw_stats, self.schema, self.database.place)
        first, last = self._extent
        size_counts = lmt_brw_stats.read_sizes(self.database, table, brw_stats, ost.number, first, last)
        if size_counts.refused:
            reason = f"{table.name}: {size_counts.refused} times of {ost.name} with values that are no numbers left out"
            yield Problem(self.database.place, None, reason)
        time_us, is_known = self.times.times(size_counts.ts_ids)
        counters = {name: column[is_known] for name, column in size_counts.counters.items()}
        yield from self._samples("target_sizes", ost, "ost", _in_order(time_us[is_known], counters))

    def _servers(self, osts: list[DatabasePart]) -> Iterator[Item]:
        """Load of the OSSs; old schemas have the processor's share with the OSTs instead."""
        servers = self.parts("OSS_INFO", "OSS_ID", "HOSTNAME")
        seen = False
        for server in servers:
            load = self._series(OSS_DATA, server, (), ("PCT_CPU", "PCT_MEMORY"))
            seen |= len(load) > 0
            yield from self._load(server.name, load)
        if seen:
            return
        for host in sorted({ost.host for ost in osts if ost.host}):
            ost = next(ost for ost in osts if ost.host == host)
            load = self._series(OST_DATA, ost, (), ("PCT_CPU",))
            if np.nan_to_num(load.columns["PCT_CPU"]).any():  # later versions leave the column empty
                yield from self._load(host, load)

    def _mdt(self, mdt: DatabasePart) -> Iterator[Item]:
        series = self._series(MDS_DATA, mdt, _CAPACITY, ("PCT_CPU",))
        yield from series.problems
        yield from self._capacity(mdt, "mdt", series)
        if mdt.host:
            yield from self._load(mdt.host, series)
        operations = self._operations(MDS_OPS_DATA, mdt, METADATA_COLUMN)
        yield from self._server(mdt, operations)
        yield from operations.problems
        counters = {name: operations.known(name) for name in operations.columns}
        yield from self._samples("metadata_ops", mdt, None, DaySeries(operations.time_us, counters))

    def _offline(self, osts: list[DatabasePart]) -> Iterator[Item]:
        """`OFFLINE` says how an OST is now: at the database's last sample."""
        for ost in osts:
            if ost.offline:
                head = {"time": int(self.times.time_us.max()), "filesystem": self.filesystem, "target": ost.name}
                yield Row("target_state", head | {"target_kind": "ost", "recovery_status": "OFFLINE"})

    def _samples(self, table: str, part: DatabasePart, kind: str | None, series: DaySeries) -> Iterator[Samples]:
        """Raw counters; times at which none is known are left out."""
        counters = {name: np.ma.MaskedArray(column) for name, column in series.columns.items()}
        if not counters:
            return
        unknown = np.logical_and.reduce([np.ma.getmaskarray(column) for column in counters.values()])
        time_us = series.time_us[~unknown]
        if len(time_us):
            labels = {"target_kind": kind} if kind else {}
            kept = {name: column[~unknown] for name, column in counters.items()}
            yield Samples(table, self.filesystem, part.name, time_us, time_us, kept, labels)

    def _capacity(self, part: DatabasePart, kind: str, series: DaySeries) -> Iterator[Item]:
        if not all(name in series.columns for name in _CAPACITY):
            return
        free_kib, used_kib, free_inodes, used_inodes = (series.known(name) for name in _CAPACITY)
        too_much = np.ma.getdata(free_kib) + np.ma.getdata(used_kib) > MOST_KIB
        too_much |= (np.ma.getdata(free_kib) > MOST_KIB) | (np.ma.getdata(used_kib) > MOST_KIB)
        if too_much.any():
            reason = f"{part.name}: {too_much.sum()} times with more than 8 EiB left out"
            yield Problem(self.database.place, None, reason)
        known = ~too_much & ~(free_kib.mask & used_kib.mask & free_inodes.mask & used_inodes.mask)
        if not known.any():
            return
        columns = {
            "time": series.time_us,
            "used_bytes": used_kib * KIB,
            "free_bytes": free_kib * KIB,
            "total_bytes": (free_kib + used_kib) * KIB,
            "used_inodes": used_inodes,
            "free_inodes": free_inodes,
            "total_inodes": free_inodes + used_inodes,
        }
        common = {"filesystem": self.filesystem, "target": part.name, "target_kind": kind}
        yield Rows("target_capacity", common | {name: of[known] for name, of in columns.items()}, int(known.sum()))

    def _load(self, host: str, series: DaySeries) -> Iterator[Rows]:
        nothing = np.full(len(series), np.nan)
        cpu, memory = (series.columns.get(name, nothing) for name in ("PCT_CPU", "PCT_MEMORY"))
        known = ~(np.isnan(cpu.astype(float)) & np.isnan(memory.astype(float)))
        if known.any():
            columns = {"time": series.time_us[known], "cpu_pct": cpu[known], "memory_pct": memory[known]}
            yield Rows("host_load", {"filesystem": self.filesystem, "host": host} | columns, int(known.sum()))

    @property
    def _extent(self) -> tuple[int, int]:
        return int(self.times.ts_ids[0]), int(self.times.ts_ids[-1])

    def _series(
        self, table_name: str, part: DatabasePart, numbers: tuple[str, ...], reals: tuple[str, ...] = ()
    ) -> DaySeries:
        """Columns of one part over the day; those that this version of the schema lacks are left out."""
        table = self.schema.get(table_name)
        if table is None or not table.has(TABLES[table_name], "TS_ID"):
            return DaySeries(np.zeros(0, np.int64), {name: np.zeros(0, float) for name in reals})
        numbers = tuple(name for name in numbers if table.has(name))
        found_reals = tuple(name for name in reals if table.has(name))
        columns = {name: self.database.number(table.column(name)) for name in numbers}
        columns |= {name: self.database.real(table.column(name)) for name in found_reals}
        array = self._read(table, TABLES[table_name], part, columns, frozenset(found_reals))
        time_us, is_known = self.times.times(array["ts_id"])
        values = {name: array[name][is_known] for name in (*numbers, *found_reals)}
        values |= {name: np.full(int(is_known.sum()), np.nan) for name in reals if name not in found_reals}
        ordered = _in_order(time_us[is_known], values)
        return replace(ordered, problems=tuple(self._not_numbers(table, part, array, numbers)))

    def _read(
        self,
        table: TableSchema,
        key: str,
        part: DatabasePart,
        columns: Mapping[str, str],
        reals: frozenset[str] = frozenset(),
    ) -> Table:
        ts_id = table.column("TS_ID")
        where = f"{table.column(key)} = ? AND {ts_id} BETWEEN ? AND ?"
        parameters = (part.number, *self._extent)
        ids = self.database.key(table, "TS_ID")
        return self.database.table(SqlSelection(table, {"ts_id": ids, **columns}, where, parameters, reals))

    def _not_numbers(
        self, table: TableSchema, part: DatabasePart, values: Table, numbers: tuple[str, ...]
    ) -> Iterator[Problem]:
        for name in numbers:
            if count := int((values[name] == NOT_A_NUMBER).sum()):
                reason = f"{table.name}.{name} of {part.name}: {count} values are no whole numbers of zero or more"
                yield Problem(self.database.place, None, reason)

    def _operations(self, table_name: str, part: DatabasePart, column_of: Mapping[str, str]) -> DaySeries:
        """Operations by kind, one column each: in the table every kind is a row of its own."""
        table, names = self.schema.get(table_name), self.schema.get("OPERATION_INFO")
        nothing = DaySeries(np.zeros(0, np.int64), {})
        if table is None or names is None or not table.has(TABLES[table_name], "TS_ID", "OPERATION_ID", "SAMPLES"):
            return nothing
        timed = table.has("SUM")
        wanted = ("OPERATION_ID", "SAMPLES", *(("SUM",) if timed else ()))
        numbers = {name: self.database.number(table.column(name)) for name in wanted}
        values = self._read(table, TABLES[table_name], part, numbers)
        if not len(values):
            return nothing
        kinds = self._kinds(names)
        time_us, is_known = self.times.times(values["ts_id"])
        values, time_us = values[is_known], time_us[is_known]
        ticks, where = np.unique(time_us, return_inverse=True)
        columns: dict[str, Integers] = {}
        problems = list(self._not_numbers(table, part, values, ("SAMPLES",)))
        for number in np.unique(values["OPERATION_ID"]).tolist():
            mine = values["OPERATION_ID"] == number
            kind = kinds.get(number, Operation(f"number {number}", ""))
            column = column_of.get(kind.name)
            if column is not None:
                _add(columns, column, _one_per_tick(len(ticks), where[mine], values["SAMPLES"][mine]))
                if timed and kind.unit in MICROSECONDS:
                    _add(columns, f"{column}_us", _one_per_tick(len(ticks), where[mine], values["SUM"][mine]))
            elif column_of is METADATA_COLUMN and kind.name not in UNUSED_OPERATIONS and values["SAMPLES"][mine].any():
                reason = f"{table.name}: operation {kind.name!r} is of no known version of Lustre"
                problems.append(Problem(self.database.place, None, reason))
        return DaySeries(ticks, columns, tuple(problems))

    def _kinds(self, names: TableSchema) -> dict[int, Operation]:
        if not names.has("OPERATION_ID", "OPERATION_NAME"):
            return {}
        unit = names.column("UNITS") if names.has("UNITS") else "NULL"
        columns = f"{self.database.key(names, 'OPERATION_ID')}, {names.column('OPERATION_NAME')}, {unit}"
        rows = self.database.rows(f"SELECT {columns} FROM {names.quoted}")  # noqa: S608 (names from the schema)
        return {int(number): Operation(str(name), str(unit or "").lower()) for number, name, unit in rows}

    def _failed_readings(self, ost: DatabasePart, series: DaySeries) -> NDArray[np.bool_]:
        """Zeros in both counters after which the former counts go on: a failed reading, while a reset begins anew.

        Zeros at the very end are not decided yet; they are left for the next time, when it shows what followed.
        """
        read, write = (series.columns[name].astype(np.int64, copy=False) for name in ("READ_BYTES", "WRITE_BYTES"))
        zero = (read == 0) & (write == 0)
        failed = np.zeros(len(zero), bool)
        edges = np.flatnonzero(np.diff(np.concatenate(([False], zero, [False])).astype(np.int8)))
        for begin, end in zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True):
            before = (int(read[begin - 1]), int(write[begin - 1])) if begin else self._beyond(ost, -1)
            if before is None or min(before) < 0:
                continue
            after = (int(read[end]), int(write[end])) if end < len(zero) else self._beyond(ost, 1)
            if after is None:
                failed[begin:end] = self.is_last and end - begin <= ZEROS_UNDECIDED
            else:
                failed[begin:end] = after[0] >= before[0] and after[1] >= before[1]
        return failed

    def _beyond(self, ost: DatabasePart, direction: int) -> tuple[int, int] | None:
        """The nearest counters that are not both zero before (−1) or after (1) the day."""
        table = self.schema[OST_DATA]
        ts_id, read, write = (table.column(name) for name in ("TS_ID", "READ_BYTES", "WRITE_BYTES"))
        first, last = self._extent
        bounds = (first - NEIGHBOURHOOD, first - 1) if direction < 0 else (last + 1, last + NEIGHBOURHOOD)
        sql = (
            f"SELECT {self.database.number(read)}, {self.database.number(write)} FROM {table.quoted}"  # noqa: S608
            f" WHERE {table.column('OST_ID')} = ? AND {ts_id} BETWEEN ? AND ? AND ({read} > 0 OR {write} > 0)"
            f" ORDER BY {ts_id} {'DESC' if direction < 0 else 'ASC'} LIMIT 1"
        )
        results = self.database.rows(sql, (ost.number, *bounds))
        return (int(results[0][0]), int(results[0][1])) if results else None


def _one_per_tick(ticks: int, where: Integers, values: Integers) -> Integers:
    """One value per tick, −1 where there is none; MDS_OPS_DATA has no key, and of a repeated row the larger counts."""
    column = np.full(ticks, -1, np.int64)
    order = np.argsort(values, kind="stable")
    column[where[order]] = np.where(values[order] < 0, -1, values[order])
    return column


def _add(columns: dict[str, Integers], name: str, values: Integers) -> None:
    """Two kinds of operation that are one of ours are counted together."""
    if name in columns:
        both = (columns[name] >= 0) & (values >= 0)
        values = np.where(both, columns[name] + values, np.maximum(columns[name], values))
    columns[name] = values


def _joined(time_us: Integers, counters: Mapping[str, Masked], other: DaySeries) -> DaySeries:
    """The counters, and those of another series at the same times."""
    columns: dict[str, NDArray[np.generic]] = dict(counters)
    if len(other) and len(time_us):
        where = np.minimum(np.searchsorted(other.time_us, time_us), len(other) - 1)
        absent = other.time_us[where] != time_us
        for name in other.columns:
            column = other.known(name)[where]
            columns[name] = np.ma.MaskedArray(column, np.ma.getmaskarray(column) | absent)
    return DaySeries(time_us, columns)


def _in_order(time_us: Integers, columns: Mapping[str, NDArray[np.generic]]) -> DaySeries:
    """By time: TS_IDs rise with it, except where a clock was set back."""
    if len(time_us) < 2 or (np.diff(time_us) >= 0).all():
        return DaySeries(time_us, columns)
    order = np.argsort(time_us, kind="stable")
    return DaySeries(time_us[order], {name: column[order] for name, column in columns.items()})
