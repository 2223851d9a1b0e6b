"""Parts of answers: which whole days they are of, and made by worker processes, one per core."""

from __future__ import annotations

import signal
import sys
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date
from itertools import groupby
from multiprocessing import active_children, get_context
from types import ModuleType
from typing import Any, ClassVar, Final, Generic, NamedTuple, Protocol, TypeVar

import narwhals as nw
import pyarrow as pa

from iolens.errors import StoreError
from iolens.part_form import PartForm
from iolens.units import DAY_US, from_epoch_us

# What a part of an answer is made of ----------------------------------------------------------------------------------
# Whole days by the ends of ticks, and a maker that says what it depends on.

EPOCH: Final = date(1970, 1, 1).toordinal()
AROUND_US: Final = 3_600_000_000  # how far a part may look beyond its days

Part_co = TypeVar("Part_co", covariant=True)


class Chunk(Protocol):
    """A part of the window that is small enough to ask at once."""

    @property
    def end_us(self) -> int | None:
        """No later part has an interval that ends at or before this time; None: this part is all there is."""

    def frame(self, table: str) -> nw.LazyFrame[Any]:
        """The table's rows in this part."""


class Days(Chunk, Protocol):
    """Whole days by the ends of ticks."""

    @property
    def ends(self) -> Ends:
        """When intervals of these days end."""

    def around(self, table: str) -> nw.LazyFrame[Any]:
        """Rows that end in these days, or up to an hour before or after; for makers that say so."""

    def beside(self, rows: pa.Table) -> nw.LazyFrame[Any]:
        """Rows of this process as a frame of the same engine."""

    def slices(self, table: str, tick_us: int) -> Iterator[Days]:
        """In time order, with so many rows as may be in memory at once; no tick is in two of them."""

    def columns(self, table: str, names: Sequence[str], kind: str) -> pa.Table | None:
        """Columns of all rows, and `epoch_us`, where all are of this kind of target; None: ask the frame."""

    def filled_columns(self, table: str, names: Sequence[str]) -> list[str] | None:
        """Those columns that have a value in some row, where that is known without asking; None: it is not."""

    def live_columns(self, table: str, names: Sequence[str]) -> list[str]:
        """Those columns that may hold something other than zero in these days."""


class PartMaker(Protocol[Part_co]):
    """How the parts of a question are made of whole days. It passes between processes."""

    @property
    def form(self) -> PartForm:
        """The written form of what it makes."""

    @property
    def tables(self) -> Sequence[str]:
        """What it reads."""

    @property
    def tick_us(self) -> int:
        """What days are cut by, so that no tick is in two; 1: by the ends of the intervals."""

    @property
    def by_engine(self) -> bool:
        """Whether the engine does most of it, on all cores."""

    @property
    def looks_around(self) -> bool:
        """Whether a part depends on rows that end up to an hour before or after its days, too."""

    def depends_on(self, ends: Ends) -> object:
        """What a part of these days depends on beside its rows, as JSON takes it."""

    def made(self, days: Days) -> Part_co:
        """The part."""

    def for_good(self) -> PartMaker[Part_co] | None:
        """What is kept of days whose raw rows are dropped, and answers this question, too; None: nothing is."""


class WholeMaker(PartMaker[Part_co], Protocol[Part_co]):
    """One whose parts are taken into an empty one."""

    def empty(self) -> Any:
        """A part of no days."""


class MakersTogether(Protocol):
    """Several that read the same rows: what it makes of some days is a tuple of their parts."""

    @property
    def makers(self) -> Sequence[WholeMaker[Any]]:
        """Each question's own."""


@dataclass(frozen=True, slots=True)
class Ends:
    """Times at which intervals may end: later than `after_us`, not later than `until_us`."""

    after_us: int
    until_us: int

    def widened(self, by_us: int) -> Ends:
        """So much more on both sides."""
        return Ends(self.after_us - by_us, self.until_us + by_us)

    def holds(self) -> nw.Expr:
        """Whether a row ends then: by its `time`, which files have statistics on."""
        after, until = from_epoch_us(self.after_us), from_epoch_us(self.until_us)
        return (nw.col("time") > after) & (nw.col("time") <= until)


ALL_TIME: Final = Ends(-(1 << 62), 1 << 62)


def tick_day(day: date, tick_us: int) -> Ends:
    """Ends of the intervals whose nearest tick ends within a UTC day: every tick is in one day, whoever is off it.

    The tick that ends at midnight is the last of the day before.
    """
    first, last = (
        border_us // tick_us * tick_us + tick_us // 2 for border_us in (midnight_us(day), midnight_us(day) + DAY_US)
    )
    return Ends(first, last)


def midnight_us(day: date) -> int:
    """Its beginning in UTC."""
    return (day.toordinal() - EPOCH) * DAY_US


@dataclass(frozen=True, slots=True)
class EngineParts(Generic[Part_co]):
    """Parts that a function makes of the engine's sums, and that depend on its arguments alone."""

    function: Callable[..., Part_co]
    form: PartForm
    tables: tuple[str, ...]
    arguments: tuple[Any, ...] = ()
    is_kept: bool = False  # of days whose raw rows are dropped; else their rollups are what is left
    looks_around: bool = False
    tick_us: ClassVar = 1_000_000  # an interval that ends up to half a second after midnight is of the day before
    by_engine: ClassVar = True

    def depends_on(self, ends: Ends) -> object:
        """On the arguments."""
        return repr(self.arguments)

    def made(self, days: Days) -> Part_co:
        """By the function."""
        return self.function(days, *self.arguments)

    def for_good(self) -> EngineParts[Part_co] | None:
        """The same, or nothing."""
        return self if self.is_kept else None


# Which days of a table are one part of an answer ----------------------------------------------------------------------
# As many as have few rows, and the same ones in any window.

BLOCKS: Final = (64, 16, 4)  # days that may be one part, counted from 1970
MOST_TOGETHER: Final = 500_000  # rows of parts too small to be remembered that are made as one


class DayBlock(NamedTuple):
    """Days that are one part."""

    first: date
    last: date
    rows: int
    is_of_small: bool = False


def day_blocks(
    rows: Mapping[date, int], most_rows: int, fewest_remembered: int, apart: Collection[date] = ()
) -> Iterator[DayBlock]:
    """Of the rows of each day; a part of fewer rows than `fewest_remembered` is not remembered.

    Between the days of a block is none of those that are to be `apart`.
    """
    blocks = _blocks(rows, most_rows, apart)
    return _together(blocks, rows, min(most_rows, MOST_TOGETHER), fewest_remembered, apart)


def _blocks(rows: Mapping[date, int], most_rows: int, apart: Collection[date] = ()) -> Iterator[tuple[date, date]]:
    """First and last of the days that are taken together: as many as have few rows, and the same ones in any window.

    Between them is none of those that are to be `apart`.
    """
    if not rows:
        return
    numbers = {day.toordinal() - EPOCH: count for day, count in sorted(rows.items())}
    first, last = min(numbers), max(numbers)
    not_in = {day.toordinal() - EPOCH for day in apart}

    def cut(numbers: dict[int, int], widths: Sequence[int]) -> Iterator[tuple[int, int]]:
        for width, *narrower in (widths,) if widths else ():
            for _, some in groupby(numbers.items(), key=lambda item: item[0] // width):
                block = dict(some)
                begin = next(iter(block)) // width * width
                is_whole = (
                    first <= begin and begin + width - 1 <= last and not_in.isdisjoint(range(begin, begin + width))
                )
                if is_whole and sum(block.values()) <= most_rows:
                    yield begin, begin + width - 1
                else:
                    yield from cut(block, narrower)
        if not widths:
            yield from ((number, number) for number in numbers)

    for begin, end in cut(numbers, BLOCKS):
        yield date.fromordinal(begin + EPOCH), date.fromordinal(end + EPOCH)


def _together(
    blocks: Iterable[tuple[date, date]],
    rows: Mapping[date, int],
    most_rows: int,
    fewest_remembered: int,
    apart: Collection[date],
) -> Iterator[DayBlock]:
    """Neighbours that are too small to be remembered are one, up to so many rows."""
    before: DayBlock | None = None
    for first, last in blocks:
        block = DayBlock(first, last, sum(count for day, count in rows.items() if first <= day <= last))
        if before is not None:
            if _may_join(before, block, most_rows, fewest_remembered) and not any(
                before.last < day < first for day in apart
            ):
                before = DayBlock(before.first, last, before.rows + block.rows, is_of_small=True)
                continue
            yield before
        before = block
    if before is not None:
        yield before


def _may_join(before: DayBlock, block: DayBlock, most_rows: int, fewest_remembered: int) -> bool:
    is_small = before.is_of_small or before.rows < fewest_remembered
    return is_small and block.rows < fewest_remembered and before.rows + block.rows < most_rows


# Parts of days made by worker processes, one per core, in time order --------------------------------------------------
# What passes between our own processes is pickled; nothing from outside ever is.

AHEAD: Final = 2  # parts per worker that may wait to be taken
FEWEST_ROWS: Final = 4_000_000  # with fewer, starting worker processes costs more than they save
CORES_OF_A_DAY: Final = 8  # that an engine keeps busy with the sums of one day


class DaysElsewhere(Protocol):
    """Days of a selection whose part can be made by another process."""

    rows: int

    def portable(self) -> DaysElsewhere:
        """Without what belongs to this process."""

    def made_on_one_core(self, maker: Any) -> Any:
        """The part."""


def pays(days: Sequence[DaysElsewhere], workers: int, by_engine: bool) -> bool:
    """Whether worker processes are worth their start; where the engine sums, they are if it leaves cores idle."""
    idle_cores = workers - (CORES_OF_A_DAY if by_engine else 1)
    return idle_cores > 0 and len(days) > 1 and sum(item.rows for item in days) >= FEWEST_ROWS


def made_by_workers(maker: Any, days: Sequence[DaysElsewhere], most_workers: int) -> Iterator[Any]:
    """The parts of all days, in their order; a worker has the files of this process's snapshot."""
    workers, others = min(most_workers, len(days)), active_children()
    pool = ProcessPoolExecutor(workers, mp_context=get_context("spawn"), initializer=_begin)
    try:
        waiting: deque[Future[Any]] = deque()
        for item in days:
            with _main_hidden():
                waiting.append(pool.submit(_made, maker, item.portable()))
            if len(waiting) >= AHEAD * workers:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    except BrokenProcessPool:
        raise StoreError("a worker process was ended from outside, perhaps for want of memory; ask again") from None
    except BaseException:  # Ctrl-C, too: nobody waits for parts that are still being made
        for process in active_children():
            if process not in others:
                process.terminate()
        raise
    finally:
        pool.shutdown(cancel_futures=True)


@contextmanager
def _main_hidden() -> Iterator[None]:
    """A worker that starts meanwhile does not run the user's script again, as it otherwise would on importing it."""
    main = sys.modules["__main__"]
    sys.modules["__main__"] = ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = main


def _begin() -> None:
    """A worker leaves Ctrl-C to the process that started it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _made(maker: Any, days: DaysElsewhere) -> Any:
    return days.made_on_one_core(maker)


# Parts that were made of one reading for several questions ------------------------------------------------------------
# Each question's own stream, and what came of it.


@dataclass(frozen=True, slots=True)
class GatheredWhole:
    """All parts of a question together, and what is said of them."""

    whole: Any
    days_from_parts: dict[str, set[date]]


def streams_of(made: Iterator[Any], count: int) -> list[Iterator[Any]]:
    """Each question's parts, of those that were made together; nothing is held that all have taken, as `tee` does."""
    waiting: list[deque[Any]] = [deque() for _ in range(count)]

    def stream(place: int) -> Iterator[Any]:
        while True:
            if not waiting[place]:
                parts = next(made, None)
                if parts is None:
                    return
                for queue, part in zip(waiting, parts, strict=True):
                    queue.append(part)
                del parts, part  # no part outlives its turn
            yield waiting[place].popleft()

    return [stream(place) for place in range(count)]
