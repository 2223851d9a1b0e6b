"""Runs of ticks down the columns of matrices that come one after the other: the longest of each target, and when.

A row that does not follow the one before it ends every run; whatever is not true ends the run of its column.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from iolens.arrays import Booleans, Integers, rearranged


def runs_of(true: Booleans, follows: Booleans) -> tuple[Integers, Integers, Integers]:
    """Column, first and last row of every maximal run of true values in columns × rows, by column and time.

    `follows` (the same shape, or one line for all columns) says whether a row comes right after the one before it.
    """
    joined = np.zeros(true.shape, np.bool_)
    joined[:, 1:] = true[:, 1:] & true[:, :-1] & follows[..., 1:]
    goes_on = np.zeros(true.shape, np.bool_)
    goes_on[:, :-1] = joined[:, 1:]
    column, first = np.divmod(np.flatnonzero(true & ~joined), max(true.shape[1], 1))
    last = np.flatnonzero(true & ~goes_on) - column * true.shape[1]
    return column, first, last


def _first_largest(values: Integers, starts: Integers) -> Integers:
    """Of every group, by its start, the place of the first of its largest values; they are zero or more."""
    if not values.size:
        return starts
    ranks = values * values.size + np.arange(values.size)[::-1]
    return values.size - 1 - np.maximum.reduceat(ranks, starts) % values.size


@dataclass(slots=True)
class Stretches:
    """Feed rows × columns in time order, with a number (of its tick) for each row.

    Of every column: how many rows were true, the first and last of them, and the longest run, the earliest of several;
    and the runs at both ends, which may go on in the rows before and after. −1 stands where there is none.
    """

    columns: int
    fed: int = 0  # rows
    rows: Integers = field(init=False)
    first: Integers = field(init=False)
    last: Integers = field(init=False)
    longest: Integers = field(init=False)  # in rows
    longest_first: Integers = field(init=False)
    longest_last: Integers = field(init=False)
    lead: Integers = field(init=False)  # rows of the run that begins with the first row; 0: none
    lead_last: Integers = field(init=False)
    open: Integers = field(init=False)  # rows of the run that reaches the last row; 0: none
    open_first: Integers = field(init=False)

    def __post_init__(self) -> None:
        self.rows, self.longest, self.lead, self.open = (np.zeros(self.columns, np.int64) for _ in range(4))
        self.first, self.last, self.longest_first, self.longest_last, self.lead_last, self.open_first = (
            np.full(self.columns, -1, np.int64) for _ in range(6)
        )

    @classmethod
    def of(cls, true: Booleans, numbers: Integers, follows: Booleans) -> Stretches:
        """`follows` is for each row, or for each row and column."""
        result = cls(true.shape[1], len(true))
        if not len(true):
            return result
        on = np.ascontiguousarray(true.T)
        column, first, last = runs_of(on, follows[None, :] if follows.ndim == 1 else follows.T)
        length, begun, ended = last - first + 1, numbers[first], numbers[last]
        result._keep_ends(on, numbers)
        values, starts = np.unique(column, return_index=True)
        longest = _first_largest(length, starts)
        result._keep_longest(values, *(array[longest] for array in (length, begun, ended)))
        leads, reaches = first == 0, last == len(true) - 1
        result.lead[column[leads]], result.lead_last[column[leads]] = length[leads], ended[leads]
        result.open[column[reaches]], result.open_first[column[reaches]] = length[reaches], begun[reaches]
        return result

    def add(self, true: Booleans, numbers: Integers, follows: Booleans) -> None:
        """The next rows; whether they follow those so far is in the first of `follows`."""
        if len(true):
            self.take(Stretches.of(true, numbers, follows), np.broadcast_to(follows[0], self.columns))

    def take(self, later: Stretches, follows: Booleans) -> None:
        """Of later rows; `follows` says of every column whether they come right after these."""
        if not later.fed:
            return
        both = follows & (self.open > 0) & (later.lead > 0)
        length, every = self.open + later.lead, np.arange(self.columns)
        self._keep_longest(every[both], length[both], self.open_first[both], later.lead_last[both])
        self._keep_longest(every, later.longest, later.longest_first, later.longest_last)
        is_lead, is_open = both & (self.lead == self.fed), both & (later.lead == later.fed)
        if not self.fed:
            self.lead, self.lead_last = later.lead, later.lead_last
        self.lead = np.where(is_lead, length, self.lead)
        self.lead_last = np.where(is_lead, later.lead_last, self.lead_last)
        self.open_first = np.where(is_open, self.open_first, later.open_first)
        self.open = np.where(is_open, length, later.open)
        self.first = np.where(self.first < 0, later.first, self.first)
        self.last = np.where(later.last < 0, self.last, later.last)
        self.rows = self.rows + later.rows
        self.fed += later.fed

    def rearranged(self, columns: Integers) -> Stretches:
        """Of other columns, by their places among these; −1 was never true."""
        result = Stretches(columns.size, self.fed)
        for name in ("rows", "longest", "lead", "open"):
            setattr(result, name, rearranged(getattr(self, name), columns))
        for name in ("first", "last", "longest_first", "longest_last", "lead_last", "open_first"):
            setattr(result, name, rearranged(getattr(self, name), columns, -1))
        return result

    def _keep_longest(self, columns: Integers, length: Integers, first: Integers, last: Integers) -> None:
        longer = length > self.longest[columns]
        chosen = columns[longer]
        self.longest[chosen], self.longest_first[chosen], self.longest_last[chosen] = (
            length[longer], first[longer], last[longer],
        )  # fmt: skip

    def _keep_ends(self, on: Booleans, numbers: Integers) -> None:
        some = on.any(axis=1)
        self.first = np.where(some, numbers[on.argmax(axis=1)], -1)
        self.last = np.where(some, numbers[on.shape[1] - 1 - on[:, ::-1].argmax(axis=1)], -1)
        self.rows = np.count_nonzero(on, axis=1)
