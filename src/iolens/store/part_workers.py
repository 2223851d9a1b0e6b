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
from dataclasses import replace
from multiprocessing import active_children, get_context
from typing import Final

from iolens.errors import StoreError
from iolens.store.duckdb_engine import DuckDBEngine, connection
from iolens.store.selection import Days, Part, TickDays
from iolens.store.tables import Tables

AHEAD: Final = 2  # parts per worker that may wait to be taken
FEWEST_ROWS: Final = 4_000_000  # with fewer, starting worker processes costs more than they save


def pays(days: Sequence[TickDays]) -> bool:
    """Whether worker processes are worth their start."""
    cores = len(os.sched_getaffinity(0))
    return cores > 1 and len(days) > 1 and sum(item.rows for item in days) >= FEWEST_ROWS


def made_by_workers(make: Callable[[Days], Part], days: Sequence[TickDays]) -> Iterator[Part]:
    """What `make` gives of all days, in their order; a worker has the files of this process's snapshot."""
    workers, others = min(len(os.sched_getaffinity(0)), len(days)), active_children()
    pool = ProcessPoolExecutor(workers, mp_context=get_context("spawn"), initializer=_begin)
    try:
        waiting: deque[Future[tuple[Part, int]]] = deque()
        for item in days:
            waiting.append(pool.submit(made, make, portable(item)))
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


def _counted(future: Future[tuple[Part, int]], days: TickDays) -> Part:
    """The part; what a worker's selection has counted counts here."""
    part, overlapping = future.result()
    days.selection.overlapping_rows += overlapping
    return part


def portable(days: TickDays) -> TickDays:
    """Without what belongs to this process; files are read by DuckDB, wherever that is."""
    here = days.selection
    url = str(here.tables.folder.resolve()) if here.tables.is_local else here.tables.url
    there = replace(here, tables=Tables(url), engine=DuckDBEngine(), overlapping_rows=0)
    return replace(days, selection=there)


def _begin() -> None:
    """A worker leaves Ctrl-C to the process that started it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    use_one_core()


def use_one_core() -> None:
    """There is a process for every core."""
    connection().execute("SET threads = 1")


def made(make: Callable[[Days], Part], days: TickDays) -> tuple[Part, int]:
    """The part, and the rows that a preferred source has in other words."""
    return make(days), days.selection.overlapping_rows
