"""Types of NumPy arrays, named once."""

from __future__ import annotations

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
