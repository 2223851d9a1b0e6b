"""Columns of one table of a run, whether they come from a log or from a store: numbers with NaN for NULL, texts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from iolens.arrays import NullableArray
from iolens.records import Rows

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class RunColumns:
    """Rows of one table, column by column; a column that is absent is all NULL."""

    count: int = 0
    values: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, rows: Rows | None) -> RunColumns:
        """Of what a source read."""
        return cls() if rows is None else cls(rows.count, rows.columns)

    def __len__(self) -> int:
        return self.count

    def numbers(self, name: str) -> Floats:
        """A column of numbers; NaN is NULL."""
        return float_column(self.values.get(name), self.count)

    def sums(self, *names: str) -> Floats:
        """Several columns added, NULL as 0."""
        total: Floats = np.sum([np.nan_to_num(self.numbers(name)) for name in names], axis=0)
        return total

    def identifiers(self, name: str) -> NDArray[np.int64]:
        """A column of identifiers, which 53 bits do not hold; it has no NULL."""
        column = self.values[name]
        numbers = np.asarray(column.values if isinstance(column, NullableArray) else column, dtype=np.int64)
        return np.broadcast_to(numbers, (self.count,))

    def texts(self, name: str) -> NDArray[np.object_]:
        """A column of texts; None is NULL."""
        column = self.values.get(name)
        if column is None or isinstance(column, str):
            return np.full(self.count, column, dtype=object)
        return np.asarray(column, dtype=object)

    def where(self, chosen: NDArray[np.bool_]) -> RunColumns:
        """Only those rows."""
        kept = {name: _chosen(column, chosen) for name, column in self.values.items()}
        return RunColumns(int(chosen.sum()), kept)


def float_column(values: Any, count: int) -> Floats:
    """Numbers as they come (an array, masked or not, a list with None, one value for all, nothing); NaN is NULL."""
    if values is None:
        return np.full(count, np.nan)
    if isinstance(values, NullableArray):
        return np.where(values.is_null, np.nan, values.values.astype(np.float64))
    if isinstance(values, np.ndarray) and hasattr(values, "mask"):  # not by its class, which takes 10 ms to import
        return np.where(np.ma.getmaskarray(values), np.nan, np.ma.getdata(values).astype(np.float64))
    array = np.asarray(values, dtype=np.float64)  # None becomes NaN
    return array if array.ndim else np.full(count, float(array))


def _chosen(column: Any, chosen: NDArray[np.bool_]) -> Any:
    if isinstance(column, np.ndarray | NullableArray):
        return column[chosen]
    if isinstance(column, list | tuple):
        return [value for value, keep in zip(column, chosen, strict=True) if keep]
    return column
