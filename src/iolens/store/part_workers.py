"""Parts of days made by worker processes, one per core, in time order.

What passes between our own processes is pickled; nothing from outside ever is.
"""

from __future__ import annotations

import os
import signal
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from multiprocessing import active_children, get_context
from typing import Any, Final, Protocol

from iolens.errors import StoreError

AHEAD: Final = 2  # parts per worker that may wait to be taken
FEWEST_ROWS: Final = 4_000_000  # with fewer, starting worker processes costs more than they save
CORES_OF_A_DAY: Final = 8  # that an engine keeps busy with the sums of one day

Make = Callable[[Any], Any]


class DaysElsewhere(Protocol):
    """Days of a selection whose part can be made by another process."""

    rows: int

    def portable(self) -> DaysElsewhere:
        """Without what belongs to this process."""

    def made(self, make: Make) -> tuple[Any, int]:
        """The part, on one core, and how many rows a preferred source has in other words."""

    def count_overlapping(self, rows: int) -> None:
        """What was found of such rows elsewhere counts for this selection."""


def pays(days: Sequence[DaysElsewhere], summed: bool) -> bool:
    """Whether worker processes are worth their start; where the engine sums, they are if it leaves cores idle."""
    idle_cores = len(os.sched_getaffinity(0)) - (CORES_OF_A_DAY if summed else 1)
    return idle_cores > 0 and len(days) > 1 and sum(item.rows for item in days) >= FEWEST_ROWS


def made_by_workers(make: Make, days: Sequence[DaysElsewhere]) -> Iterator[Any]:
    """What `make` gives of all days, in their order; a worker has the files of this process's snapshot."""
    workers, others = min(len(os.sched_getaffinity(0)), len(days)), active_children()
    pool = ProcessPoolExecutor(workers, mp_context=get_context("spawn"), initializer=_begin)
    try:
        waiting: deque[Future[tuple[Any, int]]] = deque()
        for item in days:
            waiting.append(pool.submit(_made, make, item.portable()))
            if len(waiting) >= AHEAD * workers:
                yield _counted(waiting.popleft(), item)
        while waiting:
            yield _counted(waiting.popleft(), days[-1])
    except BrokenProcessPool:
        raise StoreError("a worker process was ended from outside, perhaps for want of memory; ask again") from None
    except BaseException:  # Ctrl-C, too: nobody waits for parts that are still being made
        for process in active_children():
            if process not in others:
                process.terminate()
        raise
    finally:
        pool.shutdown(cancel_futures=True)


def _counted(future: Future[tuple[Any, int]], days: DaysElsewhere) -> Any:
    part, overlapping = future.result()
    days.count_overlapping(overlapping)
    return part


def _begin() -> None:
    """A worker leaves Ctrl-C to the process that started it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _made(make: Make, days: DaysElsewhere) -> tuple[Any, int]:
    return days.made(make)
