"""Columns with NULLs."""

from __future__ import annotations

import pickle

import numpy as np

from iolens.arrays import NullableArray


def test_nulls_stay_null_whatever_is_chosen() -> None:
    column = NullableArray(np.array([5, -1, 7]), np.array([False, True, False]))
    assert column.tolist() == [*column] == [5, None, 7]
    assert (len(column), column[0], column[1]) == (3, 5, None)
    assert column[1:].tolist() == [None, 7]
    assert column[np.array([2, 1])].tolist() == [7, None]
    assert column[np.array([False, True, True])].tolist() == [None, 7]
    assert pickle.loads(pickle.dumps(column)).tolist() == [5, None, 7]
