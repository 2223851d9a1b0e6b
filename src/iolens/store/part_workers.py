"""Parts of days made by worker processes, one per core, in time order.

What passes between our own processes is pickled; nothing from outside ever is.
"""

from __future__ import annotations

import signal
import sys
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from multiprocessing import active_children, get_context
from types import ModuleType
from typing import Any, Final, Protocol

from iolens.errors import StoreError

AHEAD: Final = 2  # parts per worker that may wait to be taken
FEWEST_ROWS: Final = 4_000_000  # with fewer, starting worker processes costs more than they save
CORES_OF_A_DAY: Final = 8  # that an engine keeps busy with the sums of one day


class DaysElsewhere(Protocol):
    """Days of a selection whose part can be made by another process."""

    rows: int

    def portable(self) -> DaysElsewhere:
        """Without what belongs to this process."""

    def made_on_one_core(self, maker: Any) -> Any:
        """The part."""


def pays(days: Sequence[DaysElsewhere], workers: int, by_engine: bool) -> bool:
    """Whether worker processes are worth their start; where the engine sums, they are if it leaves cores idle."""
    idle_cores = workers - (CORES_OF_A_DAY if by_engine else 1)
    return idle_cores > 0 and len(days) > 1 and sum(item.rows for item in days) >= FEWEST_ROWS


def made_by_workers(maker: Any, days: Sequence[DaysElsewhere], most_workers: int) -> Iterator[Any]:
    """The parts of all days, in their order; a worker has the files of this process's snapshot."""
    workers, others = min(most_workers, len(days)), active_children()
    pool = ProcessPoolExecutor(workers, mp_context=get_context("spawn"), initializer=_begin)
    try:
        waiting: deque[Future[Any]] = deque()
        for item in days:
            with _main_hidden():
                waiting.append(pool.submit(_made, maker, item.portable()))
            if len(waiting) >= AHEAD * workers:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    except BrokenProcessPool:
        raise StoreError("a worker process was ended from outside, perhaps for want of memory; ask again") from None
    except BaseException:  # Ctrl-C, too: nobody waits for parts that are still being made
        for process in active_children():
            if process not in others:
                process.terminate()
        raise
    finally:
        pool.shutdown(cancel_futures=True)


@contextmanager
def _main_hidden() -> Iterator[None]:
    """A worker that starts meanwhile does not run the user's script again, as it otherwise would on importing it."""
    main = sys.modules["__main__"]
    sys.modules["__main__"] = ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = main


def _begin() -> None:
    """A worker leaves Ctrl-C to the process that started it."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _made(maker: Any, days: DaysElsewhere) -> Any:
    return days.made_on_one_core(maker)
