"""Parts that are made of every matrix of some days: of one question, or of several in one reading."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from iolens.analyses.intervals.tick_matrix import MEASURES, TABLE, TickMatrix, Ticks
from iolens.part_form import PartForm
from iolens.store.parts import Days, Ends


@dataclass(frozen=True, slots=True)
class TickParts:
    """What makers of such parts have in common; a part takes matrices by `add`, in time order."""

    ticks: Ticks
    tables: ClassVar = (TABLE,)
    by_engine: ClassVar = False
    looks_around: ClassVar = False
    measures: ClassVar[Sequence[str]] = MEASURES
    form: ClassVar[PartForm]

    @property
    def tick_us(self) -> int:
        """What days are cut by."""
        return self.ticks.tick_us

    def depends_on(self, ends: Ends) -> object:
        """What a part of these days depends on beside its rows."""
        raise NotImplementedError

    def for_good(self) -> Any:
        """What is kept of days whose raw rows are dropped; None: nothing is."""

    def empty(self) -> Any:
        """No ticks yet."""
        raise NotImplementedError

    def taken(self, matrix: TickMatrix) -> TickMatrix:
        """The ticks that count."""
        return matrix

    def finished(self, part: Any) -> Any:
        """When all matrices were added."""
        return part

    def made(self, days: Days) -> Any:
        """Of some days."""
        return PartsTogether((self,)).made(days)[0]


@dataclass(frozen=True, slots=True)
class PartsTogether:
    """Parts of several questions about the same ticks, from one reading."""

    makers: tuple[TickParts, ...]
    tables: ClassVar = (TABLE,)
    by_engine: ClassVar = False
    looks_around: ClassVar = False

    @property
    def form(self) -> PartForm:
        """A tuple of the parts."""
        classes = dict.fromkeys(kind for maker in self.makers for kind in maker.form.classes)
        return PartForm("together", 1, tuple(classes))

    @property
    def tick_us(self) -> int:
        """What days are cut by."""
        return self.makers[0].tick_us

    def made(self, days: Days) -> tuple[Any, ...]:
        """Of some days."""
        measures = [name for name in MEASURES if any(name in maker.measures for maker in self.makers)]
        parts = [maker.empty() for maker in self.makers]
        for matrix in self.makers[0].ticks.matrices_of(days, measures):
            for maker, part in zip(self.makers, parts, strict=True):
                part.add(maker.taken(matrix))
        return tuple(maker.finished(part) for maker, part in zip(self.makers, parts, strict=True))
