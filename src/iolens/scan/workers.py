"""A scan of a directory tree by several processes that share the work; exact, resumable, and as gentle as asked.

Each process walks directories of its own (`walk`) and tells after every step what it did. One that has nothing to
do is given half of what another has left. A step counts when the journal has it, and never twice.
"""

from __future__ import annotations

import gc
import multiprocessing
import os
import signal
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, fields
from functools import partial
from multiprocessing.connection import Connection, wait
from multiprocessing.context import BaseContext
from multiprocessing.sharedctypes import RawArray, RawValue
from pathlib import Path
from typing import Any, Final, NamedTuple

from iolens.config import ProjectRule
from iolens.errors import InputError, IolensError
from iolens.scan.findings import ROOT, Findings, ScanPart, WalkRule
from iolens.scan.inodes import most_lookups
from iolens.scan.journal import Journal, Progress
from iolens.scan.mounts import Mount, mount_points_below
from iolens.scan.walk import ScanPace, Signals, TreeWalk, WalkStep
from iolens.sources.contents.inode_counts import InodeCounts

LOOK_S: Final = 0.25  # how often progress is reported
GRACE_S: Final = 5.0  # how long processes may take to end the directories they are at when the scan is broken off
ORPHAN_S: Final = 1.0  # how often a process without work looks whether anybody still wants it


class Interrupted(KeyboardInterrupt):
    """The scan was broken off; what was counted is in the journal."""


class Advance(NamedTuple):
    """How far a scan is: entries looked at, of which so many before it was resumed, and the seconds since."""

    entries: int
    entries_before: int
    passed_s: float


@dataclass(frozen=True, slots=True)
class ScanOrder:
    """What is to be scanned."""

    root: str  # absolute
    time_us: int  # ages count back from here
    cross_filesystems: bool = False
    exclude: tuple[str, ...] = ()
    projects: ProjectRule = field(default_factory=ProjectRule)
    project_ids: bool = False
    part: ScanPart = ScanPart()
    pieces: Path | None = None  # where entries with their paths are kept

    def plain(self) -> dict[str, Any]:
        """All that must be the same when an interrupted scan goes on, for the journal."""
        return {
            "root": self.root,
            "time_us": self.time_us,
            "cross_filesystems": self.cross_filesystems,
            "exclude": list(self.exclude),
            "projects": [list(self.projects.directories), dict(self.projects.ids)],
            "project_ids": self.project_ids,
            "part": list(self.part),
            "pieces": None if self.pieces is None else str(self.pieces),
        }

    def device(self) -> int:
        """`st_dev` of the root; an error where it is no directory that can be read."""
        try:
            descriptor = os.open(self.root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            device = os.fstat(descriptor).st_dev
            os.close(descriptor)
        except OSError as error:
            raise InputError(self.root, f"cannot be scanned: {error.strerror}", "a directory") from error
        return device

    def rule(self, mounts: Sequence[Mount]) -> WalkRule:
        """What a process needs to know."""
        inner = frozenset(mount_points_below(os.path.realpath(self.root), mounts))
        return WalkRule(
            device=self.device(), mount_points=inner, **{item.name: getattr(self, item.name) for item in fields(self)}
        )


def new_progress(order: ScanOrder) -> Progress:
    """Where every scan begins."""
    return Progress(Findings(InodeCounts(order.time_us)), {ROOT: None}, scan=uuid.uuid4().hex[:16])


def run_scan(
    order: ScanOrder,
    progress: Progress,
    *,
    workers: int,
    journal: Journal | None = None,
    mounts: Sequence[Mount] = (),
    max_rate: float | None = None,
    lookups: int | None = None,
    step_s: float = 5.0,
    tell: Callable[[Advance], None] = lambda advance: None,
) -> None:
    """Scan what is unfinished of `progress`, and add it there. Raises `Interrupted` on SIGINT and SIGTERM.

    `lookups` is the number that each process may have in flight.
    """
    held = [] if journal is None else journal.descriptors
    with _asked_to_stop() as is_asked:
        pool = _Workers(order.rule(mounts), workers, max_rate, lookups or most_lookups(workers), step_s, held)
        try:
            _ScanProcess(order, progress, journal, pool, tell).run(is_asked)
        finally:
            pool.stop()


@contextmanager
def _asked_to_stop() -> Iterator[Callable[[], bool]]:
    """Whether a signal asked to stop. It is only noted: nothing may break off between a step's journal and its sums."""
    asked: list[int] = []
    if threading.current_thread() is not threading.main_thread():  # signals are the main thread's
        yield lambda: False
        return
    kinds = (signal.SIGINT, signal.SIGTERM)
    before = [signal.signal(kind, lambda number, frame: asked.append(number)) for kind in kinds]
    try:
        yield lambda: bool(asked)
    finally:
        for kind, handler in zip(kinds, before, strict=True):
            signal.signal(kind, handler)


class _ScanProcess:
    """The one process that deals out directories and adds up."""

    def __init__(
        self,
        order: ScanOrder,
        progress: Progress,
        journal: Journal | None,
        pool: _Workers,
        tell: Callable[[Advance], None],
    ) -> None:
        self.order, self.progress, self.journal, self.pool, self.tell = order, progress, journal, pool, tell
        self.waiting = list(progress.unfinished)  # directories nobody has
        self.before = progress.findings.names
        self.began = time.monotonic()

    def run(self, is_asked_to_stop: Callable[[], bool]) -> None:
        """Until nothing is left, or somebody wants it to stop."""
        self._deal()
        while self.pool.busy:
            if is_asked_to_stop():
                self._break_off()
                raise Interrupted
            self._receive(LOOK_S)
        self._tell()

    def _receive(self, timeout_s: float) -> None:
        for place, step in self.pool.receive(timeout_s):
            self._take(step)
            self.waiting += step.given
            if step.is_last:
                self.pool.busy.discard(place)
        self._deal()
        self._tell()

    def _take(self, step: WalkStep) -> None:
        if self.journal is not None:
            self.journal.append(step)
        self.progress.take(step)
        if self.journal is not None and self.journal.is_long:
            self.journal.begin(self.order.plain(), self.progress)

    def _deal(self) -> None:
        """Share out what nobody has among those who have nothing."""
        idle = self.pool.idle
        if self.waiting and idle:
            shares = [self.waiting[number :: len(idle)] for number in range(len(idle))]
            for place, share in zip(idle, shares, strict=True):
                if share:
                    self.pool.send(place, share)
            self.waiting = []
        self.pool.signals.flags[0] = len(self.pool.idle)

    def _break_off(self) -> None:
        """Let everybody end the directory they are at, and write down what they did."""
        self.pool.signals.flags[1] = 1
        deadline = time.monotonic() + GRACE_S
        while self.pool.busy and (left := deadline - time.monotonic()) > 0:
            for place, step in self.pool.receive(left):
                self._take(step)
                if step.is_last:
                    self.pool.busy.discard(place)

    def _tell(self) -> None:
        here = sum(self.pool.signals.progress)
        self.tell(Advance(self.before + here, self.before, time.monotonic() - self.began))


class _Workers:
    """The processes that walk."""

    def __init__(
        self,
        rule: WalkRule,
        workers: int,
        max_rate: float | None,
        lookups: int,
        step_s: float,
        held: Sequence[int],
    ) -> None:
        is_forked = _may_fork()
        context: BaseContext = multiprocessing.get_context("fork" if is_forked else "spawn")
        self.signals = Signals(RawArray("q", 2), RawArray("q", workers))
        self.busy: set[int] = set()
        self._pipes: list[Connection] = []
        self._processes: list[Any] = []
        throttle = None if max_rate is None else (max_rate, RawValue("d", 0.0), context.Lock())
        for place in range(workers):
            ours, theirs = context.Pipe()
            inherited = [pipe.close for pipe in (*self._pipes, ours)] + [partial(os.close, value) for value in held]
            let_go = inherited if is_forked else []
            orders = (theirs, let_go, rule, self.signals, place, throttle, lookups, step_s, os.getpid())
            process = context.Process(target=_work, args=orders, daemon=True)  # type: ignore[attr-defined]
            process.start()
            theirs.close()
            self._pipes.append(ours)
            self._processes.append(process)

    @property
    def idle(self) -> list[int]:
        """Those without work."""
        return [place for place in range(len(self._pipes)) if place not in self.busy]

    def send(self, place: int, directories: list[str]) -> None:
        """Give somebody work."""
        self.busy.add(place)
        try:
            self._pipes[place].send(directories)
        except OSError as error:
            raise self._died(place) from error

    def receive(self, timeout_s: float) -> list[tuple[int, WalkStep]]:
        """Steps that were made, each with who made it."""
        ready = wait([self._pipes[place] for place in self.busy], timeout_s)
        result = []
        for pipe in ready:
            place = self._pipes.index(pipe)  # type: ignore[arg-type]
            try:
                step = self._pipes[place].recv()
            except (EOFError, OSError) as error:
                raise self._died(place) from error
            if isinstance(step, IolensError):
                raise step
            result.append((place, step))
        return result

    def _died(self, place: int) -> IolensError:
        process = self._processes[place]
        process.join(GRACE_S)
        code = process.exitcode
        return IolensError(f"a process of the scan ended unasked (exit code {code}); what was counted is kept")

    def stop(self) -> None:
        """End all of them."""
        for pipe in self._pipes:
            pipe.close()
        for process in self._processes:
            process.terminate()
        for process in self._processes:
            process.join()


def _may_fork() -> bool:
    """Forking is quick, and safe where no thread could hold a lock just then."""
    return threading.active_count() == 1


def _work(
    pipe: Connection,
    inherited: list[Callable[[], None]],
    rule: WalkRule,
    signals: Signals,
    place: int,
    throttle: tuple[float, Any, Any] | None,
    lookups: int,
    step_s: float,
    parent: int,
) -> None:
    """One worker process: walks what it is sent until nobody wants it any more."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # whoever started the scan decides
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    gc.disable()  # millions of small objects and no cycle among them
    for let_go in inherited:  # held open here, nobody would notice when the scan itself is gone
        let_go()
    pace = None if throttle is None else ScanPace(*throttle)
    walk = TreeWalk(rule, signals, place, pace=pace, lookups=lookups, step_s=step_s)
    try:
        while True:
            while not pipe.poll(ORPHAN_S):
                if os.getppid() != parent:
                    return
            for step in walk.steps(pipe.recv()):
                if os.getppid() != parent:
                    return
                pipe.send(step)
    except (EOFError, BrokenPipeError, ConnectionResetError):
        return  # the scan is over, or gone
    except OSError as error:  # no directory's fault: those are findings
        place_of = f"{error.filename}: " if error.filename else ""
        pipe.send(IolensError(f"{place_of}{error.strerror or error}; what was counted is kept"))
