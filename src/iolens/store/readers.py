"""Captures parsed ahead by worker processes, handed on in their order.

A worker has one capture at a time: when a damaged file takes it down (a C library may abort), that file is refused by
name and the others go on. Any exception that a source raises becomes a refusal here, and nowhere else. What passes
between our own processes is pickled; nothing from outside ever is.
"""

from __future__ import annotations

import multiprocessing
import uuid
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from multiprocessing.connection import Connection
from pathlib import Path
from queue import SimpleQueue
from typing import Final

from iolens.errors import InputError, IolensError, unexpected
from iolens.open_files import OpenFile, each_file_opened_once, receive, release
from iolens.records import Capture, Item, Problem

FEWEST: Final = 24  # with fewer captures than this, starting workers costs more than they save
GATHERED_AHEAD: Final = 3  # captures, each of many small ones, that a worker may be ahead of what is stored
GATHERED_PER_CAPTURE: Final = 40  # small captures read together that take as long as another one alone
LARGEST_BYTES: Final = 16 << 20  # a larger file is parsed here, piece by piece, so that memory stays flat
LONGEST_REASON: Final = 1000  # characters: what a damaged file holds may be quoted, but not all of it


@dataclass(frozen=True, slots=True)
class CaptureItems:
    """A capture and its items; None: not wanted."""

    capture: Capture
    items: Iterable[Item] | None


def read_ahead(
    captures: Iterable[Capture], is_wanted: Callable[[Capture], bool], workers: int
) -> Iterator[CaptureItems]:
    """Every capture in order; the items of those that are wanted."""
    stream = listed(captures)
    first = list(_first(stream)) if workers > 1 else []
    every = chain(first, stream)
    if sum(map(_effort, first)) < FEWEST:
        for capture in every:
            yield _read_here(capture, is_wanted(capture))
        return
    processes = [_Worker() for _ in range(workers)]
    try:
        yield from _in_order(every, is_wanted, processes)
    finally:
        for worker in processes:
            worker.stop()


def _first(captures: Iterator[Capture]) -> Iterator[Capture]:
    """As many as are worth starting workers for."""
    effort = 0
    while effort < FEWEST and (capture := next(captures, None)) is not None:
        effort += _effort(capture)
        yield capture


def _effort(capture: Capture) -> int:
    """How much there is to parse, in captures; small ones that were gathered take little each."""
    return max(1, len(capture.members) // GATHERED_PER_CAPTURE)


def _read_here(capture: Capture, wanted: bool) -> CaptureItems:
    if not wanted:
        release(capture.origin)
    return CaptureItems(capture, guarded(capture) if wanted else None)


def listed(captures: Iterable[Capture]) -> Iterator[Capture]:
    """The captures a source lists; where that fails, a capture that says so in place of the rest."""
    try:
        yield from captures
    except InputError as error:
        yield _refused(error.place, _problem_of(error))
    except IolensError:
        raise  # the question itself was wrong
    except Exception as error:
        yield _refused("list of captures", Problem("list of captures", None, f"not read on; {unexpected(error)}"))


def guarded(capture: Capture) -> Iterator[Item]:
    """The capture's items; where the input breaks off, or its source fails, a problem in place of the rest."""
    try:
        for item in capture.items():
            yield _shortened(item) if isinstance(item, Problem) else item
    except InputError as error:
        yield _problem_of(error)
    except (OSError, EOFError, UnicodeError) as error:
        yield Problem(capture.origin, None, f"{type(error).__name__}: {error}")
    except Exception as error:
        yield Problem(capture.origin, None, f"not read on; {unexpected(error)}")
    finally:
        release(capture.origin)


def _problem_of(error: InputError) -> Problem:
    reason = error.problem + (f"; expected {error.expected}" if error.expected else "")
    return _shortened(Problem(error.place, error.line, reason))


def _shortened(problem: Problem) -> Problem:
    if len(problem.reason) <= LONGEST_REASON:
        return problem
    return replace(problem, reason=f"{problem.reason[: LONGEST_REASON - 1]}…")


def _refused(origin: str, problem: Problem) -> Capture:
    return Capture(origin, f"refused/{uuid.uuid4()}", partial(iter, (problem,)))


_Waiting = tuple[Capture, "Future[list[Item]] | None", bool]  # what is parsed elsewhere, if it is; whether it is wanted


def _in_order(
    captures: Iterable[Capture], is_wanted: Callable[[Capture], bool], processes: list[_Worker]
) -> Iterator[CaptureItems]:
    """A thread waits for each worker, so that workers go on while what they have done is stored."""
    free: SimpleQueue[_Worker] = SimpleQueue()
    for worker in processes:
        free.put(worker)
    threads = ThreadPoolExecutor(len(processes))
    under_way: deque[_Waiting] = deque()
    try:
        for capture in captures:
            wanted = is_wanted(capture)
            is_elsewhere = wanted and _is_small(capture)
            most = len(processes) * (GATHERED_AHEAD if capture.members else 1)
            while is_elsewhere and sum(future is not None for _, future, _ in under_way) >= most:
                yield _next(under_way)
            file = release(capture.origin) if is_elsewhere else None
            under_way.append((capture, threads.submit(_parsed, free, capture, file) if is_elsewhere else None, wanted))
            while under_way and under_way[0][1] is None:
                yield _next(under_way)
        while under_way:
            yield _next(under_way)
    finally:
        for worker in processes:
            worker.terminate()  # ends what a thread still waits for
        threads.shutdown(cancel_futures=True)


def _parsed(free: SimpleQueue[_Worker], capture: Capture, file: OpenFile | None) -> list[Item]:
    if capture.members:
        return list(guarded(capture))  # which has processes of its own: this thread only waits for them
    worker = free.get()
    try:
        worker.start(capture, file)
        return worker.finish(capture)
    finally:
        free.put(worker)


def _next(under_way: deque[_Waiting]) -> CaptureItems:
    capture, future, wanted = under_way.popleft()
    return _read_here(capture, wanted) if future is None else CaptureItems(capture, future.result())


def _is_small(capture: Capture) -> bool:
    if capture.members:
        return True  # only small ones are gathered
    try:
        return Path(capture.origin).stat().st_size <= LARGEST_BYTES
    except OSError:
        return False


class _Worker:
    """One process that parses one capture at a time; a new one takes its place when it dies."""

    def __init__(self) -> None:
        self.pipe: Connection | None = None
        self.process: multiprocessing.process.BaseProcess | None = None

    def start(self, capture: Capture, file: OpenFile | None) -> None:
        """Hand over a capture, and its file where that is held."""
        if self.pipe is None:
            context = multiprocessing.get_context("spawn")  # the engine's threads do not survive a fork
            self.pipe, theirs = context.Pipe()
            self.process = context.Process(target=_work, args=(theirs,), daemon=True)
            self.process.start()
            theirs.close()
        with suppress(OSError):  # of a process that was ended; `finish` says so
            self.pipe.send((capture, file))

    def finish(self, capture: Capture) -> list[Item]:
        """Wait for its items."""
        assert self.pipe is not None
        try:
            items: list[Item] = self.pipe.recv()
        except (EOFError, OSError):
            self.stop()
            return [Problem(capture.origin, None, "the process that read this file died: damaged beyond reading")]
        return items

    def terminate(self) -> None:
        """End the process, whatever it does."""
        if self.process is not None:
            self.process.terminate()

    def stop(self) -> None:
        """End the process and let go of its pipe."""
        if self.pipe is not None and self.process is not None:
            self.pipe.close()
            self.process.terminate()
            self.process.join()
        self.pipe = self.process = None


def _work(pipe: Connection) -> None:
    while True:
        try:
            capture, file = pipe.recv()
        except EOFError:
            return
        with each_file_opened_once():
            receive(capture.origin, file)
            pipe.send(list(guarded(capture)))
