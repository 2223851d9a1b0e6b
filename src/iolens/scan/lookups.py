"""How many lookups a process has in flight: one where the file system answers at once, several where it takes its time.

A lookup that asks a metadata server takes 0.5 to 1 ms, nearly all of it waiting. Threads wait side by side. Lookups are
timed in turns: if one alone takes longer than `SLOW_S`, the number doubles as long as each takes hardly longer than one
alone, and halves where they only queue. A few are made alone now and then, so that the number follows a file system
that answers faster or slower than before.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import chain, pairwise
from typing import Any, Final, TypeVar

SLOW_S: Final = 100e-6  # a lookup in a local file system takes some microseconds
FREE_RATIO: Final = 1.5  # lookups that take up to so many times as long as one alone: more may be made
CROWDED_RATIO: Final = 3.0  # from here on they wait for each other
IN_PROCESS: Final = 32  # more threads than this wait for the interpreter
IN_ALL: Final = 128  # of all processes of a scan together
TURN_S: Final = 0.010  # about how long the lookups of a turn take
FIRST, FEWEST = 16, 4  # lookups of the first turn, and of each thread in any other
REVIEW_TURNS: Final = 64  # how often lookups are made alone while several are in flight
_ALONE, _TOGETHER = 5, 3  # turns of which the median counts

Item = TypeVar("Item")
Answer = TypeVar("Answer")


def most_lookups(workers: int) -> int:
    """How many each of so many processes may have in flight."""
    return max(1, min(IN_PROCESS, IN_ALL // workers))


class Lookups:
    """The lookups of one process."""

    def __init__(self, most: int, now: Callable[[], float] = time.perf_counter) -> None:
        self.most, self.in_flight, self._now = most, 1, now
        self._alone: deque[float] = deque(maxlen=_ALONE)  # seconds of a lookup, by turn
        self._together: deque[float] = deque(maxlen=_TOGETHER)  # the same with as many in flight as now
        self._latest_s = TURN_S / FIRST
        self._turns = 0
        self._pool: ThreadPoolExecutor | None = None

    def close(self) -> None:
        """End the threads."""
        if self._pool is not None:
            self._pool.shutdown()

    def apart(self, function: Callable[[Item], Answer], items: Sequence[Item]) -> list[Answer]:
        """Call a function for each item, as many at once as may be in flight."""
        if self.in_flight == 1 or len(items) == 1:
            return [function(item) for item in items]
        return list(self._threads().map(function, items))

    def timed(self, function: Callable[..., Sequence[Answer]], *columns: Sequence[Any]) -> list[Answer]:
        """The answers of a function that looks up one entry after another, for columns of what it needs of each."""
        answers: list[Answer] = []
        count, begin = len(columns[0]), 0
        while begin < count:
            self._turns += 1
            threads = 1 if self._turns % REVIEW_TURNS == 0 else self.in_flight
            end = min(count, begin + threads * max(FEWEST, int(TURN_S / self._latest_s)))
            threads = min(threads, end - begin)
            began = self._now()
            if threads == 1:
                answers += function(*[column[begin:end] for column in columns])
            else:
                answers += chain.from_iterable(self._threads().map(function, *_shares(columns, begin, end, threads)))
            self._note(threads, (self._now() - began) * threads / (end - begin))
            begin = end
        return answers

    def _note(self, threads: int, lookup_s: float) -> None:
        """How long each lookup of a turn took: what follows for the next."""
        self._latest_s = max(lookup_s, 1e-9)
        if self.in_flight == 1 and lookup_s <= SLOW_S:
            self._alone.clear()  # slow ones between such were turns in which this process waited for a processor
            return
        (self._alone if threads == 1 else self._together).append(lookup_s)
        if len(self._alone) < _ALONE:
            return
        alone_s = _median(self._alone)
        if alone_s <= SLOW_S:
            self._alone.clear()
            self._set(1)
        elif self.in_flight == 1:
            self._set(2)
        elif len(self._together) == _TOGETHER:
            ratio = _median(self._together) / alone_s
            if ratio <= FREE_RATIO:
                self._set(2 * self.in_flight)
            elif ratio >= CROWDED_RATIO:
                self._set(self.in_flight // 2)

    def _set(self, in_flight: int) -> None:
        in_flight = min(in_flight, self.most)
        if in_flight != self.in_flight:
            self.in_flight = in_flight
            self._together.clear()

    def _threads(self) -> ThreadPoolExecutor:
        if self._pool is None:
            self._pool = ThreadPoolExecutor(self.most, "lookup")
        return self._pool


def _shares(columns: Sequence[Sequence[Any]], begin: int, end: int, count: int) -> Iterator[list[Sequence[Any]]]:
    """A range of each column in so many pieces of nearly the same length."""
    ends = [begin + (end - begin) * number // count for number in range(count + 1)]
    for column in columns:
        yield [column[first:last] for first, last in pairwise(ends)]


def _median(values: deque[float]) -> float:
    return sorted(values)[len(values) // 2]
