"""Disk time of one interval as engine expressions: the transaction model on counts by size, or on plain counters.

Eq. 7 takes each I/O at its bin's label (U7). Because the model is linear, true counts of operations and bytes do as
well (U9): T = w0·N_w + w1·B_w + r0·N_r + r1·B_r. The two never mix: they are different numbers with different names.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol

import narwhals as nw

from iolens.models.transaction_time import SIZE_COLUMNS, Calibration, added, time_terms
from iolens.schema import DIRECTIONS
from iolens.units import MIB

OUTSIDE_COLUMNS: Final = tuple(f"{direction}_ios_outside" for direction in DIRECTIONS)


class DiskTime(Protocol):
    """What a model asks of the rows of its table."""

    @property
    def table(self) -> str:
        """The table the rows come from."""

    @property
    def counted(self) -> Sequence[str]:
        """Columns that are summed beside the model's own numbers."""

    def rows(self, frame: nw.LazyFrame[Any]) -> nw.LazyFrame[Any]:
        """The rows the model can be computed of."""

    def outside(self) -> nw.Expr:
        """I/Os of the row that the model knows nothing of."""

    def busy(self, calibration: Calibration) -> nw.Expr:
        """FSU times duration of the row: 100 × seconds of disk time (Eq. 5)."""

    def busy_if_optimal(self, calibration: Calibration) -> nw.Expr:
        """The same if the bytes of all smaller I/Os had come in 1 MiB I/Os (U8)."""


@dataclass(frozen=True, slots=True)
class HistogramTime:
    """Every I/O at the upper bound of its size bin, over the bins that ever counted (Eq. 7)."""

    live: Sequence[str]
    live_outside: Sequence[str]
    table: str = "target_sizes"

    @property
    def counted(self) -> Sequence[str]:
        """The size bins."""
        return self.live

    def rows(self, frame: nw.LazyFrame[Any]) -> nw.LazyFrame[Any]:
        """All of them: a bin that is not there counted nothing."""
        return frame

    def outside(self) -> nw.Expr:
        """I/Os in bins no column exists for."""
        return total([nw.col(name).cast(nw.Float64) for name in self.live_outside])

    def busy(self, calibration: Calibration) -> nw.Expr:
        """Every bin's I/Os times the time of one, in which each column is used once: engines are quick at that."""
        return self._weighted(lambda direction, size: calibration.of(direction).seconds(size))

    def busy_if_optimal(self, calibration: Calibration) -> nw.Expr:
        """Bins above 1 MiB stay as they are."""
        return self._weighted(lambda direction, size: calibration.of(direction).seconds_as_optimal(size))

    def _weighted(self, seconds: Callable[[str, int], float]) -> nw.Expr:
        return total(
            [nw.col(name).cast(nw.Float64) * number(100.0 * seconds(*SIZE_COLUMNS[name])) for name in self.live]
        )


@dataclass(frozen=True, slots=True)
class CounterTime:
    """Operations and bytes as a disk counted them (U9)."""

    table: str = "target_io"
    counted: Sequence[str] = ()

    def rows(self, frame: nw.LazyFrame[Any]) -> nw.LazyFrame[Any]:
        """Those of disks that counted both operations and bytes in both directions."""
        for direction in DIRECTIONS:
            frame = frame.filter(~nw.col(f"{direction}_ops").is_null() & ~nw.col(f"{direction}_bytes").is_null())
        return frame

    def outside(self) -> nw.Expr:
        """None: there are no bins."""
        return number(0.0)

    def busy(self, calibration: Calibration) -> nw.Expr:
        """Over both directions."""
        return total([_as_observed(direction, calibration) for direction in DIRECTIONS])

    def busy_if_optimal(self, calibration: Calibration) -> nw.Expr:
        """By direction and interval: as observed where the mean I/O is larger than 1 MiB."""
        terms = []
        for direction in DIRECTIONS:
            ops, moved = _counters(direction)
            optimal = moved * number(100.0 * calibration.of(direction).seconds_as_optimal(MIB) / MIB)
            observed = _as_observed(direction, calibration)
            terms.append(nw.when(moved > ops * number(MIB)).then(observed).otherwise(optimal))
        return total(terms)


def _counters(direction: str) -> list[nw.Expr]:
    """Operations and bytes."""
    return [nw.col(f"{direction}_{what}").cast(nw.Float64) for what in ("ops", "bytes")]


def _as_observed(direction: str, calibration: Calibration) -> nw.Expr:
    cost = calibration.of(direction)
    per_cent = (number(100.0 * coefficient) for coefficient in (cost.latency_s, cost.s_per_byte))
    return added(time_terms(*_counters(direction), *per_cent))


def number(value: float) -> nw.Expr:
    """A double, so that no engine makes it a decimal."""
    return nw.lit(float(value), nw.Float64)


def total(terms: Sequence[nw.Expr]) -> nw.Expr:
    """The sum of the terms, zero of none; in pairs, as engines refuse expressions that are a hundred calls deep."""
    if len(terms) > 2:
        middle = len(terms) // 2
        return total(terms[:middle]) + total(terms[middle:])
    return added(terms) if terms else number(0.0)
