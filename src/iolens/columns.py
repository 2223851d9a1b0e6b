"""What a table of the store is made of: columns with units and limits, keys, and how raw counters become rows."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from typing import Final, Literal

_FINITE: Final = 1.7976931348623157e308

ColumnType = Literal["timestamp", "date", "int64", "float64", "string", "bool"]

DIRECTIONS: Final = ("read", "write")
LARGEST: Final = 2**63 - 1  # what an int64 column holds
LATEST_US: Final = 7_258_118_400_000_000  # the year 2200: a later time is a broken clock, or no time at all
# The most that can be of what states no limit of its own. What counters moved is held against the speed of targets.
MOST_BYTES: Final = 1 << 62  # four exbibytes
MOST_COUNT: Final = 10**15  # a million a second for thirty years
MOST_SECONDS: Final = 10**14  # a million processes for three years
MOST_PROCESSES: Final = 2**31 - 1  # MPI numbers them with an int
_PROCESSES: Final = ("rank", "ranks", "processes", "nodes", "cores", "tasks", "writer")


@dataclass(frozen=True, slots=True)
class Column:
    """One column. A `counter` is differenced from raw counters on load and summed by rollups.

    A number outside `at_least` … `at_most` cannot be: the store refuses it. None: no limit but the type's.
    """

    name: str
    type: ColumnType
    doc: str
    counter: bool = False
    at_least: int | None = 0
    at_most: int | None = None
    part_of: str | None = None  # a column of the same row that is never less

    @property
    def limits(self) -> tuple[float, float] | None:
        """The smallest and the largest value that can be, times in microseconds since 1970; None for texts."""
        if self.type in ("timestamp", "date"):
            return 0, LATEST_US
        if self.type == "int64":
            lowest = -LARGEST - 1 if self.at_least is None else self.at_least
            return lowest, self._most_whole() if self.at_most is None else self.at_most
        if self.type == "float64":
            most = MOST_SECONDS if self.name.endswith("_s") else _FINITE
            return -_FINITE if self.at_least is None else self.at_least, self.at_most or most
        return None

    def _most_whole(self) -> int:
        """By what the name counts; an identifier may be any number."""
        if self.counter or self.at_least is None:
            return LARGEST
        if self.name.rpartition("_")[2] in _PROCESSES:
            return MOST_PROCESSES
        return MOST_BYTES if self.name.endswith(("bytes", "_us")) or self.name.startswith("bin") else MOST_COUNT


@dataclass(frozen=True, slots=True)
class CounterForm:
    """What the raw counters of a table look like, and which rows become of what they moved.

    By default a target has one set of counters, and one row for each interval with a column per counter.
    """

    moved_only: bool = False  # rows only for what moved
    set_column: str | None = None  # tells the sets of a target apart; None: each counter is in one set only
    name_columns: tuple[str, ...] = ()  # name a row's counter, with colons between them; none: a column per counter
    value_columns: tuple[tuple[str, str], ...] = (("", "count"),)  # what a counter's name ends with, and its column
    sets_come_and_go: bool = False  # one per job: it begins at zero, and is gone some time after the job has ended
    sets_show_all: bool = False  # a set always shows all its counters: one that is new was not read before
    sets_add_up: bool = False  # Lustre 2.0 counts an MDT's operations per client, a named set each
    # Kinds of targets, and a counter in their set that something else counts, such as the kernel: what the others began
    # anew it did not, its first value is only a baseline, and where it falls what moved is not known.
    rides_along: tuple[tuple[str, str], ...] = ()
    sets_by_mount: bool = False  # a set's name ends in `@` and its mount: mounts add up, a new one begins at zero


@dataclass(frozen=True, slots=True)
class Table:
    """One table. `key` names a row; an `interval` table has `time`, `start`, `duration_s` and is cut by `date`.

    What is cut by month has the first day of the month as its `date`: for few rows a day, whose files would be tiny.
    """

    name: str
    doc: str
    columns: tuple[Column, ...]
    key: tuple[str, ...]
    kind: Literal["interval", "reading", "record"]
    form: CounterForm = CounterForm()
    cut_by: Literal["day", "month"] = "day"  # what a directory holds, of a table with a `date`
    newest_by: str | None = None  # of several rows with one key the one with the largest value here counts, NULL least
    loaded_by: str | None = None  # and of those, by this time of the ingest, the last

    @property
    def partitioned(self) -> bool:
        """Tables that grow for years live in one directory per UTC day or month."""
        return any(column.name == "date" for column in self.columns)

    def directory_day(self, day: date) -> date:
        """The `date` of the directory that holds the rows of a day."""
        return day.replace(day=1) if self.cut_by == "month" else day

    @property
    def placed_by(self) -> str:
        """The column with the time that decides on a row's day, and whether it is in a window."""
        has_start = any(column.name == "start" for column in self.columns)
        return "start" if has_start and self.partitioned else "time"

    @property
    def counters(self) -> tuple[str, ...]:
        """Names of the columns that add up over time."""
        return tuple(column.name for column in self.columns if column.counter)

    @property
    def subject(self) -> str:
        """The column that holds whose counters a sample has: of a client it is the node, else the target."""
        return "node" if "node" in self.key else "target"

    @property
    def dimensions(self) -> tuple[str, ...]:
        """Key columns that divide one target's or node's interval further (job, histogram, bin, …)."""
        return tuple(name for name in self.key if name not in ("source", "filesystem", self.subject, "time"))

    def column(self, name: str) -> Column:
        """The column of that name."""
        return next(column for column in self.columns if column.name == name)


def counter(name: str, doc: str) -> Column:
    """A count that adds up over time."""
    return Column(name, "int64", doc, counter=True)


def text(name: str, doc: str) -> Column:
    """A text."""
    return Column(name, "string", doc)
