"""The metadata operations that LMT knows, and which of our columns each is."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from iolens.arrays import Integers
from iolens.errors import InputError
from iolens.records import Note, Problem
from iolens.schema import METADATA_OPERATIONS
from iolens.sources.lustre.stats import OTHER_COUNTERS
from iolens.sources.reading.local_time import LocalClock, local_text
from iolens.sources.reading.sql_database import Database, SqlSelection, Table, TableSchema
from iolens.units import DAY_S, epoch_us

METADATA_COLUMN: Final = {operation: operation for operation in METADATA_OPERATIONS} | {"set_info_async": "set_info"}

# Operations of LMT's list that no table has a column for, besides those that Lustre's own files have.
UNUSED_OPERATIONS: Final = OTHER_COUNTERS | {
    "reget_short_lock", "release_short_lock", "queue_async_io", "queue_group_io", "trigger_group_io",
    "set_async_flags", "teardown_async_page", "quota_adjust_quint",
}  # fmt: skip

# What LMT's agent sends for every MDT at every time; of all others on its list a zero may mean "never looked at".
SAMPLED_OPERATIONS: Final = frozenset({
    "open", "close", "mknod", "link", "unlink", "mkdir", "rmdir", "rename", "getxattr", "statfs", "setattr", "getattr",
})  # fmt: skip


# LMT's times by UTC day -----------------------------------------------------------------------------------------------
# `TIMESTAMP_INFO` has local times without a zone, in the order of `TS_ID`.
#
# A day is remembered as the few stretches of `TS_ID` that make it up, each with its offset from UTC, so that a database
# of years is listed in little memory and any one day can be read alone, later and in another process.

TIMES: Final = "TIMESTAMP_INFO"
LATEST_S: Final = 4_102_444_800  # the year 2100
NO_TIME: Final = -(2**62)
_DTYPE: Final = np.dtype([("ts_id", np.int64), ("local_s", np.int64)])


class OffsetStretch(NamedTuple):
    """Consecutive times of one day with one offset from UTC."""

    first: int  # TS_ID
    last: int
    offset_s: int
    times: int


@dataclass(frozen=True, slots=True)
class Day:
    """The times of one UTC day."""

    number: int  # days since 1970
    stretches: tuple[OffsetStretch, ...]
    problems: tuple[Problem, ...] = ()

    @property
    def first(self) -> int:
        """Its smallest TS_ID."""
        return min(stretch.first for stretch in self.stretches)

    @property
    def last(self) -> int:
        """Its largest TS_ID."""
        return max(stretch.last for stretch in self.stretches)

    @property
    def count(self) -> int:
        """How many times it has."""
        return sum(stretch.times for stretch in self.stretches)


@dataclass(frozen=True, slots=True)
class SampleTimes:
    """The times of a day, ready to be looked up."""

    ts_ids: Integers
    time_us: Integers

    def times(self, ts_ids: Integers) -> tuple[Integers, NDArray[np.bool_]]:
        """The time of each TS_ID, and whether it is one of this day."""
        if not len(self.ts_ids):
            return np.zeros(len(ts_ids), np.int64), np.zeros(len(ts_ids), bool)
        where = np.minimum(np.searchsorted(self.ts_ids, ts_ids), len(self.ts_ids) - 1)
        return self.time_us[where], self.ts_ids[where] == ts_ids


class Window(NamedTuple):
    """The part of time that is wanted; None is open."""

    since: datetime | None = None
    until: datetime | None = None

    def holds(self, utc_s: Integers) -> NDArray[np.bool_]:
        """Whether each time is in it."""
        wanted = np.ones(len(utc_s), bool)
        if self.since is not None:
            wanted &= utc_s * 1_000_000 >= epoch_us(self.since)
        if self.until is not None:
            wanted &= utc_s * 1_000_000 < epoch_us(self.until)
        return wanted

    def __str__(self) -> str:
        begin, end = (time.isoformat() if time is not None else "…" for time in self)
        return f"{begin} to {end}"


def days_of(database: Database, schema: Mapping[str, TableSchema], zone: tzinfo, window: Window) -> list[Day]:
    """Every day that has times in the window, the earliest first."""
    listing = _Listing(database.place, LocalClock(zone), window)
    for piece in _stamps(database, schema[TIMES], window):
        listing.take(piece)
    listing.finish()
    if not listing.stretches:
        if listing.problems:
            return [Day(0, (OffsetStretch(0, -1, 0, 0),), tuple(listing.problems))]
        wanted = f" from {window}" if window != Window() else ""
        raise InputError(database.place, f"{TIMES} has no times{wanted}")
    days = [Day(number, tuple(parts)) for number, parts in sorted(listing.stretches.items())]
    days[0] = Day(days[0].number, days[0].stretches, tuple(listing.problems))
    return days


def times_of(database: Database, schema: Mapping[str, TableSchema], day: Day) -> SampleTimes:
    """The times of a day, each with its time in UTC."""
    table = schema[TIMES]
    columns = dict(zip(_DTYPE.names or (), _columns(database, table), strict=True))
    where = f"{table.column('TS_ID')} BETWEEN ? AND ?"
    values = database.table(SqlSelection(table, columns, where, (day.first, day.last)))
    time_s = np.full(len(values), NO_TIME, np.int64)
    for first, last, offset_s, _ in day.stretches:
        inside = (values["ts_id"] >= first) & (values["ts_id"] <= last) & (values["local_s"] != NO_TIME)
        time_s[inside] = values["local_s"][inside] - offset_s
    known = time_s != NO_TIME
    return SampleTimes(values["ts_id"][known], time_s[known] * 1_000_000)


def _stamps(database: Database, table: TableSchema, window: Window) -> Iterator[Table]:
    stamp, ts_id = table.column("TIMESTAMP"), table.column("TS_ID")
    conditions, bounds = [], []
    margin = timedelta(days=2)  # no zone is further from UTC; what is too much falls to the window
    if window.since is not None:
        conditions.append(f"{stamp} >= ?")
        bounds.append(_naive_text(window.since - margin))
    if window.until is not None:
        conditions.append(f"{stamp} < ?")
        bounds.append(_naive_text(window.until + margin))
    where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
    columns = ", ".join(_columns(database, table))
    sql = f"SELECT {columns} FROM {table.quoted}{where} ORDER BY {ts_id}"  # noqa: S608 (names from the schema)
    return database.pieces(sql, bounds, _DTYPE)


def _columns(database: Database, table: TableSchema) -> tuple[str, str]:
    stamp = database.local_seconds(table.column("TIMESTAMP"))
    return database.key(table, "TS_ID"), f"COALESCE({stamp}, {NO_TIME})"


def _naive_text(time: datetime) -> str:
    return time.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S")


@dataclass(slots=True)
class _Listing:
    place: str
    clock: LocalClock
    window: Window
    stretches: dict[int, list[OffsetStretch]] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)

    def take(self, piece: Table) -> None:
        """Note which days a piece of the times belongs to."""
        stamped = (piece["local_s"] > 0) & (piece["local_s"] < LATEST_S) & (piece["ts_id"] >= 0)
        for first, last in _ends(~stamped, piece["ts_id"]):
            self._refuse(f"TS_ID {first} to {last}: TIMESTAMP is not a time such as 2018-01-28 00:00:00")
        piece = piece[stamped]
        offsets = self.clock.offsets(piece["local_s"])
        skipped = np.ma.getmaskarray(offsets)
        for first, last in _ends(skipped, piece["local_s"]):
            self._refuse(
                f"{local_text(first)} to {local_text(last)} does not exist in {self.clock.zone}: clocks went forward;"
                " is this the database's time zone?"
            )
        offset_s = np.ma.getdata(offsets)
        utc_s = piece["local_s"] - offset_s
        wanted = ~skipped & self.window.holds(utc_s)
        self._note(piece["ts_id"], utc_s // DAY_S, offset_s, wanted)

    def finish(self) -> None:
        """All pieces were taken."""
        self.clock.finish()
        for stamp in self.clock.once:
            reason = f"the hour of {local_text(stamp)} came twice in {self.clock.zone} but is here once"
            self.problems.append(Note(self.place, None, f"{reason}: taken for the first"))

    def _note(self, ts_ids: Integers, days: Integers, offset_s: Integers, wanted: NDArray[np.bool_]) -> None:
        if not len(ts_ids):
            return
        changes = (np.diff(days) != 0) | (np.diff(offset_s) != 0) | (np.diff(wanted.astype(np.int8)) != 0)
        begins = np.concatenate(([0], np.flatnonzero(changes) + 1))
        ends = np.concatenate((begins[1:], [len(ts_ids)]))
        for begin, end in zip(begins.tolist(), ends.tolist(), strict=True):
            if wanted[begin]:
                stretch = OffsetStretch(int(ts_ids[begin]), int(ts_ids[end - 1]), int(offset_s[begin]), end - begin)
                self.stretches.setdefault(int(days[begin]), []).append(stretch)

    def _refuse(self, reason: str) -> None:
        self.problems.append(Problem(self.place, None, reason))


def _ends(flags: NDArray[np.bool_], values: Integers) -> list[tuple[int, int]]:
    """First and last value of each stretch that is flagged."""
    edges = np.flatnonzero(np.diff(np.concatenate(([False], flags, [False])).astype(np.int8)))
    return [(int(values[begin]), int(values[end - 1])) for begin, end in zip(edges[::2], edges[1::2], strict=True)]
