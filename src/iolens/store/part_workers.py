"""Parts of days made by worker processes, one per core, in time order.

What passes between our own processes is pickled; nothing from outside ever is.
"""

from __future__ import annotations

import os
import signal
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from dataclasses import replace
from multiprocessing import get_context
from typing import Final

from iolens.store.selection import Days, Part, TickDays
from iolens.store.tables import Tables

AHEAD: Final = 2  # parts per worker that may wait to be taken


def made_by_workers(make: Callable[[Days], Part], days: Sequence[TickDays]) -> Iterator[Part]:
    """What `make` gives of all days, in their order; a worker has the files of this process's snapshot."""
    workers = min(len(os.sched_getaffinity(0)), len(days))
    pool = ProcessPoolExecutor(workers, mp_context=get_context("spawn"), initializer=_begin)
    try:
        waiting: deque[Future[tuple[Part, int]]] = deque()
        for item in days:
            waiting.append(pool.submit(_made, make, _portable(item)))
            if len(waiting) >= AHEAD * workers:
                yield _counted(waiting.popleft(), item)
        while waiting:
            yield _counted(waiting.popleft(), days[-1])
    finally:
        pool.shutdown(cancel_futures=True)


def _counted(future: Future[tuple[Part, int]], days: TickDays) -> Part:
    """The part; what a worker's selection has counted counts here."""
    part, overlapping = future.result()
    days.selection.overlapping_rows += overlapping
    return part


def _portable(days: TickDays) -> TickDays:
    """Without what belongs to this process."""
    selection = replace(days.selection, tables=Tables(days.selection.tables.url), overlapping_rows=0)
    return replace(days, selection=selection)


def _begin() -> None:
    """A worker has one core, and leaves Ctrl-C to the process that started it."""
    from iolens.store.duckdb_engine import connection

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    connection().execute("SET threads = 1")


def _made(make: Callable[[Days], Part], days: TickDays) -> tuple[Part, int]:
    return make(days), days.selection.overlapping_rows
