"""What a part of an answer is made of: whole days by the ends of ticks, and a maker that says what it depends on."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any, ClassVar, Final, Generic, Protocol, TypeVar

import narwhals as nw
import pyarrow as pa

from iolens.part_form import PartForm
from iolens.units import DAY_US, from_epoch_us

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
