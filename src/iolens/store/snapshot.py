"""What a table's log says about its files: day, rows, extremes. Questions are pruned here before a file is opened."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from deltalake import DeltaTable, Transaction

from iolens.arrays import Integers
from iolens.schema import Table
from iolens.units import DAY_US, epoch_us

FAR_US = 2**61  # as early or late as can be, where the log does not say
DROPPED: Final = "dropped"  # marks days whose raw rows only the rollup stands for, with their number
_TRUNCATED_AT = 32  # longer strings are cut in the log's statistics and prove nothing


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The files of one table at one version, with the log's statistics on them."""

    files: pa.Table

    @classmethod
    def of(cls, handle: DeltaTable | None) -> Snapshot:
        """The newest snapshot; empty for a table that was never written."""
        if handle is None:
            return cls(pa.table({"path": pa.array([], pa.string()), "num_records": pa.array([], pa.int64())}))
        return cls(pa.table(handle.get_add_actions(flatten=True)))

    @property
    def paths(self) -> list[str]:
        """Paths relative to the table, in the order in which their rows begin to end, as far as the log says."""
        names = [str(path) for path in self.files.column("path").to_pylist()]
        return [name for _, name in sorted(zip(self._ends_us()[0].tolist(), names, strict=True))]

    @property
    def rows(self) -> int:
        """Rows by the log's own count."""
        return int(pc.sum(self.files.column("num_records")).as_py() or 0)

    @property
    def bytes(self) -> int:
        """Size of the files."""
        return int(pc.sum(self.files.column("size_bytes")).as_py() or 0) if self.files.num_rows else 0

    @property
    def is_cut(self) -> bool:
        """Whether a file holds rows of one `date`; a table of 0.1 may not be, until something is written to it."""
        return "partition.date" in self.files.column_names

    def is_cut_at(self, table: Table, time: datetime) -> bool:
        """Whether no file has rows from both before and after that time, by the directories alone."""
        first = table.directory_day(time.astimezone(UTC).date())
        return self.is_cut and epoch_us(time) == (first.toordinal() - date(1970, 1, 1).toordinal()) * DAY_US

    def in_window(self, table: Table, since: datetime | None, until: datetime | None) -> Snapshot:
        """Only the files that can have rows which begin in [since, until)."""
        first = table.directory_day(since.astimezone(UTC).date()) if since else date.min
        last = (until.astimezone(UTC) - timedelta(microseconds=1)).date() if until else date.max
        return self.on_days(lambda day: first <= day <= last)

    def overlapping(self, first_us: int, last_us: int) -> Snapshot:
        """Only the files with rows in that time; a row may have begun days before, so that directories do not tell."""
        names = [name if name in self.files.column_names else None for name in ("min.start", "max.time")]
        starts, ends = ([None] * self.files.num_rows if name is None else self.files.column(name).to_pylist()
                        for name in names)  # fmt: skip
        return self._where(
            (start is None or epoch_us(start) <= last_us) and (end is None or epoch_us(end) >= first_us)
            for start, end in zip(starts, ends, strict=True)
        )

    def ending(self, after_us: int, until_us: int) -> Snapshot:
        """Only the files that may have rows which end in (after, until]; statistics are cut to milliseconds."""
        low, high = self._ends_us()
        return Snapshot(self.files.filter(pa.array((high + 1_000 > after_us) & (low <= until_us))))

    def ends_within(self, after_us: int, until_us: int) -> bool:
        """Whether the statistics prove that every row ends in (after, until]."""
        low, high = self._ends_us()
        return bool(((low > after_us) & (high + 1_000 <= until_us)).all())

    def starts_within(self, since: datetime | None, until: datetime | None) -> bool:
        """Whether the statistics prove that every row begins in [since, until)."""
        first, last = self.extreme("start", "min"), self.extreme("start", "max")
        is_late = since is None or (first is not None and epoch_us(first) >= epoch_us(since))
        return is_late and (until is None or (last is not None and epoch_us(last) + 1_000 <= epoch_us(until)))

    def borders(self, after_us: int, step_us: int) -> list[tuple[int, int]]:
        """Times, in whole steps, at which no file has rows on both sides; and how many rows end before each."""
        low, high = self._ends_us()
        order = np.argsort(low, kind="stable")
        latest = np.maximum.accumulate(high[order]) + 1_000
        border = after_us - (after_us - latest) // step_us * step_us
        rows = np.cumsum(self.files.column("num_records").to_numpy()[order])
        places = np.flatnonzero(border[:-1] < low[order][1:])
        return list(zip(border[places].tolist(), rows[places].tolist(), strict=True))

    def extents_by_day(self) -> dict[date, tuple[int, int]]:
        """Earliest and latest end of the rows in the directory of each `date`, by the log."""
        extents: dict[date, tuple[int, int]] = {}
        if self.is_cut:
            ends = (values.tolist() for values in self._ends_us())
            for day, low, high in zip(self.files.column("partition.date").to_pylist(), *ends, strict=True):
                first, last = extents.get(day, (low, high))
                extents[day] = min(first, low), max(last, high)
        return extents

    def _ends_us(self) -> tuple[Integers, Integers]:
        """Earliest and latest end of each file's rows, by the log."""
        return self._times_us("min.time", -FAR_US), self._times_us("max.time", FAR_US)

    def _times_us(self, name: str, unknown: int) -> Integers:
        if name not in self.files.column_names:
            return np.full(self.files.num_rows, unknown)
        times = self.files.column(name).cast(pa.timestamp("us", "UTC")).cast(pa.int64())
        return np.asarray(times.fill_null(unknown).to_numpy(), np.int64)

    def days(self) -> dict[date, int]:
        """Rows by the `date` of their directory: the UTC day, or the first of the month."""
        counts: dict[date, int] = {}
        if self.is_cut:
            pairs = zip(self.files.column("partition.date"), self.files.column("num_records"), strict=True)
            for day, rows in pairs:
                counts[day.as_py()] = counts.get(day.as_py(), 0) + (rows.as_py() or 0)
        return dict(sorted(counts.items()))

    def written_ms_by_day(self) -> dict[date, list[int]]:
        """When the files of each `date` were written, in milliseconds since 1970, by the log."""
        times: dict[date, list[int]] = {}
        if self.is_cut:
            columns = (self.files.column(name).to_pylist() for name in ("partition.date", "modification_time"))
            for day, written_ms in zip(*columns, strict=True):
                times.setdefault(day, []).append(written_ms)
        return times

    def on_days(self, wanted: Callable[[date], bool]) -> Snapshot:
        """Only the files of some directories, by their `date`."""
        if not self.is_cut:
            return self
        return self._where(wanted(day.as_py()) for day in self.files.column("partition.date"))

    def with_value(self, column: str, value: str) -> Snapshot:
        """Only files that may hold `value` in a text column."""
        if f"min.{column}" not in self.files.column_names or len(value) >= _TRUNCATED_AT:
            return self
        extremes = zip(self.files.column(f"min.{column}"), self.files.column(f"max.{column}"), strict=True)
        return self._where(
            low.as_py() is None or len(high.as_py()) >= _TRUNCATED_AT or low.as_py() <= value <= high.as_py()
            for low, high in extremes
        )

    def only_value(self, column: str, value: str) -> Snapshot:
        """Only files that have `value` in every row of a text column, as far as the statistics prove it."""
        names = [f"{what}.{column}" for what in ("min", "max", "null_count")]
        if not set(names) <= set(self.files.column_names) or len(value) >= _TRUNCATED_AT:
            return Snapshot(self.files.slice(0, 0))
        facts = zip(*(self.files.column(name).to_pylist() for name in names), strict=True)
        return self._where(fact == (value, value, 0) for fact in facts)

    def single_value(self, column: str) -> str | None:
        """The one value that every row has in a text column, if the statistics prove it."""
        if f"min.{column}" not in self.files.column_names or not self.files.num_rows:
            return None
        low, high = (set(self.files.column(f"{end}.{column}").to_pylist()) for end in ("min", "max"))
        nulls = pc.sum(self.files.column(f"null_count.{column}")).as_py()
        value = next(iter(low))
        if low != high or len(low) != 1 or nulls != 0 or value is None or len(value) >= _TRUNCATED_AT:
            return None
        return str(value)

    def extreme(self, column: str, end: str) -> Any:
        """Smallest (`min`) or largest (`max`) value of a column over the files, by the log."""
        name = f"{end}.{column}"
        if name not in self.files.column_names or not self.files.num_rows:
            return None
        values = pc.min_max(self.files.column(name)).as_py()
        return values[end]

    def ever_positive(self, columns: Iterable[str]) -> list[str]:
        """The columns that are not zero throughout; a column without statistics may be anything."""
        result = []
        for column in columns:
            largest = self.extreme(column, "max")
            if (largest is None and not self._proves_null(column)) or (largest is not None and largest > 0):
                result.append(column)
        return result

    def ever_filled(self, columns: Sequence[str]) -> list[str] | None:
        """The columns that have a value in some row; None where the log does not count them in every file."""
        names = [f"null_count.{column}" for column in columns]
        if any(name not in self.files.column_names or self.files.column(name).null_count for name in names):
            return None
        return [column for column in columns if not self._proves_null(column)]

    def _proves_null(self, column: str) -> bool:
        name = f"null_count.{column}"
        if name not in self.files.column_names:
            return False
        return bool(pc.sum(self.files.column(name)).as_py() == self.rows)

    def _where(self, keep: Iterable[bool]) -> Snapshot:
        return Snapshot(self.files.filter(pa.array(list(keep), pa.bool_())))


class DayMarks:
    """Marks on days of a table, such as `dropped`. One on the table tells whether to look for those on its days."""

    def __init__(self, handle: DeltaTable | None, what: str) -> None:
        self.handle, self.what = handle, what
        self.times = (handle.transaction_version(what) or 0) if handle is not None else 0

    def of(self, day: date) -> int:
        """The value of a day's mark; 0 without one."""
        if self.handle is None or not self.times:
            return 0
        return self.handle.transaction_version(f"{self.what}/{day}") or 0

    def set_to(self, values: Mapping[date, int]) -> list[Transaction]:
        """What a commit must carry to mark those days; 0 is no mark."""
        days = [Transaction(f"{self.what}/{day}", value) for day, value in values.items() if value]
        return [Transaction(self.what, self.times + 1), *days] if days else []
