"""Runs of ticks down the columns of matrices that come one after the other: the longest of each target, and when.

A row that does not follow the one before it ends every run; whatever is not true ends the run of its column.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from iolens.arrays import Booleans, Integers


def runs_of(true: Booleans, follows: Booleans) -> tuple[Integers, Integers, Integers]:
    """Column, first and last row of every maximal run of true values in columns × rows, by column and time.

    `follows` (the same shape, or one line for all columns) says whether a row comes right after the one before it.
    """
    joined = np.zeros(true.shape, np.bool_)
    joined[:, 1:] = true[:, 1:] & true[:, :-1] & follows[..., 1:]
    goes_on = np.zeros(true.shape, np.bool_)
    goes_on[:, :-1] = joined[:, 1:]
    column, first = np.nonzero(true & ~joined)
    _, last = np.nonzero(true & ~goes_on)
    return column, first, last


@dataclass(slots=True)
class Stretches:
    """Feed rows × columns in time order, with a number (of its tick) for each row.

    Of every column: how many rows were true, the first and last of them, and the longest run, the earliest of several.
    −1 stands where there is none.
    """

    columns: int
    rows: Integers = field(init=False)
    first: Integers = field(init=False)
    last: Integers = field(init=False)
    longest: Integers = field(init=False)  # in rows
    longest_first: Integers = field(init=False)
    longest_last: Integers = field(init=False)
    open: Integers = field(init=False)  # rows of the run that reaches the end so far; 0: none
    _open_first: Integers = field(init=False)

    def __post_init__(self) -> None:
        self.rows, self.longest, self.open = (np.zeros(self.columns, np.int64) for _ in range(3))
        self.first, self.last, self.longest_first, self.longest_last, self._open_first = (
            np.full(self.columns, -1, np.int64) for _ in range(5)
        )

    def add(self, true: Booleans, numbers: Integers, follows: Booleans) -> None:
        """`follows` is for each row, or for each row and column."""
        if not len(true):
            return
        on = np.ascontiguousarray(true.T)
        after = follows[None, :] if follows.ndim == 1 else follows.T
        column, first, last = runs_of(on, after)
        goes_on = (self.open > 0) & after[:, 0]
        carried = (first == 0) & goes_on[column]
        length = last - first + 1 + np.where(carried, self.open[column], 0)
        begun = np.where(carried, self._open_first[column], numbers[first])
        self._keep_longest(column, length, begun, numbers[last])
        self._keep_ends(on, numbers)
        reaches = last == len(true) - 1
        self.open[:] = 0
        self.open[column[reaches]] = length[reaches]
        self._open_first[column[reaches]] = begun[reaches]

    def _keep_longest(self, column: Integers, length: Integers, first: Integers, last: Integers) -> None:
        order = np.lexsort((first, -length, column))
        values, places = np.unique(column[order], return_index=True)
        best = order[places]
        longer = length[best] > self.longest[values]
        values, best = values[longer], best[longer]
        self.longest[values], self.longest_first[values], self.longest_last[values] = (
            length[best],
            first[best],
            last[best],
        )

    def _keep_ends(self, on: Booleans, numbers: Integers) -> None:
        some = on.any(axis=1)
        firsts = numbers[on.argmax(axis=1)]
        lasts = numbers[on.shape[1] - 1 - on[:, ::-1].argmax(axis=1)]
        self.first = np.where(some & (self.first < 0), firsts, self.first)
        self.last = np.where(some, lasts, self.last)
        self.rows += on.sum(axis=1)
