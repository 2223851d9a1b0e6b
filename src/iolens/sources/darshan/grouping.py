"""Sums, largest values and counts of consecutive rows: what many logs, files or ranks have in common."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from iolens.columns import LARGEST

Whole = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Groups:
    """Rows that agree in some keys, brought together: `order` sorts them, `starts` are the first of each group."""

    order: Whole
    starts: Whole

    def __len__(self) -> int:
        return len(self.starts)

    def first(self, values: NDArray[Any]) -> NDArray[Any]:
        """The value of one row of each group."""
        return values[self.order[self.starts]]

    def total(self, values: NDArray[Any]) -> NDArray[Any]:
        """Sum of each group; −1 where it is more than a whole number holds."""
        total = self._reduced(np.add, values)
        if values.dtype.kind == "i" and len(values) and int(np.abs(values).max()) * len(values) > LARGEST:
            total = np.where(np.abs(self._reduced(np.add, values.astype(float))) < LARGEST, total, -1)
        return total

    def largest(self, values: NDArray[Any]) -> NDArray[Any]:
        """Largest value of each group; NaN only where all are."""
        return self._reduced(np.fmax if values.dtype.kind == "f" else np.maximum, values)

    def smallest(self, values: NDArray[Any]) -> NDArray[Any]:
        """Smallest value of each group; NaN only where all are."""
        return self._reduced(np.fmin if values.dtype.kind == "f" else np.minimum, values)

    def number(self) -> Whole:
        """Which group each row is of, in the rows' own order."""
        numbers = np.zeros(len(self.order), np.int64)
        marks = np.zeros(len(self.order), np.int64)
        marks[self.starts[1:]] = 1
        numbers[self.order] = np.cumsum(marks)
        return numbers

    def _reduced(self, function: Any, values: NDArray[Any]) -> NDArray[Any]:
        kind = np.int64 if values.dtype.kind == "b" else values.dtype
        if not len(self.starts):
            return np.zeros(0, kind)
        return np.asarray(function.reduceat(values.astype(kind, copy=False)[self.order], self.starts))


def grouped(*keys: NDArray[Any]) -> Groups:
    """Rows with equal keys, sorted by the first key, then the second, …"""
    order = np.lexsort(keys[::-1]) if len(keys[0]) else np.zeros(0, np.int64)
    if not len(order):
        return Groups(order, order)
    is_new = np.zeros(len(order), bool)
    is_new[0] = True
    for key in keys:
        in_order = key[order]
        is_new[1:] |= in_order[1:] != in_order[:-1]
    return Groups(order, np.flatnonzero(is_new))


def spread(places: Whole, values: NDArray[Any], count: int, absent: Any = 0) -> NDArray[Any]:
    """An array of `count` with the values at their places, and `absent` elsewhere."""
    full = np.full(count, absent, values.dtype)
    full[places] = values
    return full


class PlaceTotals:
    """Sums by place of any number of columns, whose rows are brought together once."""

    def __init__(self, places: Whole, count: int) -> None:
        self.groups, self.count = grouped(places), count
        self.present = self.groups.first(places)

    def total(self, values: NDArray[Any]) -> NDArray[Any]:
        """Sum of the values of each place; 0 where there is none."""
        return spread(self.present, self.groups.total(values), self.count)


def total_by(places: Whole, values: NDArray[Any], count: int) -> NDArray[Any]:
    """Sum of the values of each place."""
    return PlaceTotals(places, count).total(values)


def joined(parts: Sequence[NDArray[Any]], dtype: Any = np.int64) -> NDArray[Any]:
    """The parts one after the other, also where there is none."""
    return np.concatenate((np.zeros(0, dtype), *parts))
