"""Types of NumPy arrays, named once, and columns with NULLs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Booleans = NDArray[np.bool_]
Columns = dict[str, NDArray[Any]]  # of one length, by name


def rearranged(values: NDArray[Any], columns: Integers, fill: float = 0, axis: int = 0) -> NDArray[Any]:
    """The chosen columns of an array, along an axis; −1 is a new one, filled."""
    there = columns >= 0
    if there.all():
        return np.take(values, columns, axis)
    result = np.full((*values.shape[:axis], columns.size, *values.shape[axis + 1 :]), fill, values.dtype)
    np.moveaxis(result, axis, 0)[there] = np.moveaxis(values, axis, 0)[columns[there]]
    return result


def known_counts(values: Floats, axis: int) -> Integers:
    """How many are not NaN, along an axis of a matrix."""
    unknown = np.isnan(values)
    if unknown.any():
        return np.asarray(values.shape[axis] - np.count_nonzero(unknown, axis), np.int64)
    return np.full(values.shape[1 - axis], values.shape[axis])


def known_sums(values: Floats, axis: int) -> Floats:
    """Sums without NaN, along an axis of a matrix; where there is none, they cost no more than plain sums."""
    sums: Floats = values.sum(axis)
    return np.nansum(values, axis) if np.isnan(sums).any() else sums


class NullableArray:
    """Numbers of which some are NULL: what a column needs of a masked array, without 10 ms for importing those."""

    __slots__ = ("is_null", "values")

    def __init__(self, values: NDArray[Any], is_null: Booleans) -> None:
        self.values, self.is_null = values, is_null

    def __len__(self) -> int:
        return len(self.values)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.tolist())

    def __getitem__(self, chosen: Any) -> Any:
        """One value, None for NULL; or those that a slice, places or truth values choose."""
        if isinstance(chosen, int):
            return None if self.is_null[chosen] else self.values[chosen]
        return NullableArray(self.values[chosen], self.is_null[chosen])

    def tolist(self) -> list[Any]:
        """Plain numbers, None for NULL."""
        pairs = zip(self.values.tolist(), self.is_null.tolist(), strict=True)
        return [None if is_null else value for value, is_null in pairs]
