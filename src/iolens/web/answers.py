"""Answers to inquiries: asked in a few threads, each inquiry once at a time, remembered while the store is unchanged.

Readers take turns. What nobody waits for any more leaves the queue, or ends at its next statement.

While a store changes all the time, an answer that is a little old for its window is given at once and asked anew behind
it, so that many readers wait for nobody; then they hear of it. Every answer says when it was made.
"""

from __future__ import annotations

import asyncio
import math
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, TypeVar

from iolens.errors import IolensError
from iolens.questions.asking import Ask
from iolens.views.render.shown_times import shown_in
from iolens.web.inquiry import Inquiry, rollup_note
from iolens.web.turns import SERVER, Turn, Turns

if TYPE_CHECKING:
    from iolens.api import OpenStore
    from iolens.store.scope import Scope

THREADS: Final = 3
MOST_ANSWERS: Final = 96
MOST_FORMS: Final = 24  # of an answer
MOST_WAITING: Final = 256  # inquiries; more are refused
MOST_WAITING_EACH: Final = 128  # of one reader
RUNNING_EACH: Final = 2  # questions of one reader at a time
RENEWALS: Final = "the server, anew"  # as a reader
STALE_S: Final = (30.0, 600.0)  # how old an answer may be that is given while a new one is made, at least and at most …
STALE_SHARE: Final = 1 / 1000  # … and in between this share of its window
RENEWED_AFTER: Final = 1 / 3  # of that time: an answer is not made anew more often
LOOK_EVERY_S: Final = 2.0
LONGEST_WARM_UP_S: Final = 10.0
WARM: Final = (  # what the first pages need
    "iolens.analyses.utilization.analysis",
    "iolens.analyses.capacity.analysis",
    "iolens.views.utilization.report",
    "iolens.views.render.bokeh_figure",
    "iolens.views.dashboard.shell",
)

Made = TypeVar("Made")
StoreVersion = tuple[int, int]  # of the table `batches`, and how often something else has changed


class TooManyInquiriesError(IolensError):
    """More is asked than can be answered soon: ask again later."""


class NobodyWaitsError(IolensError):
    """Whoever asked has gone."""


@dataclass(slots=True, eq=False)
class StoredAnswer:
    """A result, of which rows and when; what was made of it for readers is kept beside it."""

    inquiry: Inquiry
    scope: Scope
    result: Any
    version: StoreVersion
    made: datetime
    as_of: datetime  # when the store was asked
    asked_at: float  # the same, by the clock that ages are measured with
    note: str = ""  # what readers must know of it
    _forms: dict[str, Any] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def age_s(self) -> float:
        """Seconds since it was asked for."""
        return time.monotonic() - self.asked_at

    @property
    def stale_s(self) -> float:
        """How old it may be while the store changes."""
        if math.isfinite(self.inquiry.question.lasts_s):
            return self.inquiry.question.lasts_s
        since, until = self.scope.since, self.scope.until
        length_s = (until - since).total_seconds() if since is not None and until is not None else math.inf
        return min(max(STALE_S[0], STALE_SHARE * length_s), STALE_S[1])

    def known_form(self, name: str) -> Any:
        """The form of that name, if it was made."""
        return self._forms.get(name)

    def form(self, name: str, make: Callable[[StoredAnswer], Made]) -> Made:
        """The answer as a page, a table or JSON: made once."""
        with self._lock:
            if name not in self._forms:
                if len(self._forms) >= MOST_FORMS:
                    self._forms.clear()
                self._forms[name] = make(self)
            form: Made = self._forms[name]
            return form


@dataclass(slots=True, eq=False)
class _Asking:
    """An answer that is being made, and how many wait for it; `is_ahead`: somebody will."""

    turn: Turn
    task: asyncio.Task[StoredAnswer]
    waiters: int = 0
    is_ahead: bool = True


class Answers:
    """The one place where pages and the API ask the store."""

    def __init__(
        self, open_store: Callable[[], OpenStore], threads: int = THREADS, running_each: int = RUNNING_EACH
    ) -> None:
        self._open_store = open_store
        self.threads = threads
        self.turns = Turns(threads, running_each)
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="ask")
        self._watcher = ThreadPoolExecutor(1, thread_name_prefix="watch")
        self._beside = ThreadPoolExecutor(1, thread_name_prefix="alerts")
        self._of_thread = threading.local()
        self._answers: OrderedDict[Inquiry, StoredAnswer] = OrderedDict()
        self._asking: dict[Inquiry, _Asking] = {}
        self._filesystems: list[str] | None = None
        self._renewals: dict[Inquiry, asyncio.Task[None]] = {}
        self.version = (-1, 0)
        self.news = 0  # how often readers should ask again
        self.changed = asyncio.Event()
        self.ending = asyncio.Event()  # nobody waits for news any more

    async def watch(self) -> None:
        """Look every few seconds whether the store has changed; runs until it is cancelled."""
        while True:
            with suppress(IolensError, OSError):  # who asks for something hears what is wrong with the store
                version = await self._look(_version)
                if version < self.version[0]:  # there is no store any more, or another one
                    self._answers.clear()
                if version != self.version[0]:
                    self._filesystems = await self._look(_filesystems)
                    self._renew((version, self.version[1]))
            await asyncio.sleep(LOOK_EVERY_S)

    async def _look(self, question: Callable[[OpenStore], Made]) -> Made:
        """Something small, in a thread of its own: it does not wait for what is asked."""
        return await asyncio.get_running_loop().run_in_executor(self._watcher, lambda: question(self._opened()))

    def touch(self) -> None:
        """Something beside the store has changed: answers are asked anew."""
        self._renew((self.version[0], self.version[1] + 1))

    def _renew(self, version: StoreVersion) -> None:
        self.version = version
        self._tell()

    def _tell(self) -> None:
        """Readers should ask again."""
        self.news += 1
        self.changed.set()
        self.changed = asyncio.Event()

    async def ask(self, inquiry: Inquiry, reader: str = SERVER) -> StoredAnswer:
        """The answer: the remembered one while it holds, else a new one, when it is the reader's turn."""
        known = self._answers.get(inquiry)
        if known is None:
            return await self._asked(inquiry, reader)
        self._answers.move_to_end(inquiry)
        if known.version == self.version and known.age_s < inquiry.question.lasts_s:
            return known
        is_state = math.isfinite(inquiry.question.lasts_s)  # who has changed it wants to see that
        if known.age_s >= known.stale_s or (is_state and known.version[1] != self.version[1]):
            return await self._asked(inquiry, reader)
        if inquiry not in self._renewals:
            task = self._renewals[inquiry] = asyncio.create_task(self._renewed(known))
            task.add_done_callback(lambda _: self._renewals.pop(inquiry, None))
        return known

    async def _renewed(self, known: StoredAnswer) -> None:
        """Make an answer anew when it is old enough, and tell readers who were given the old one."""
        await asyncio.sleep(max(RENEWED_AFTER * known.stale_s - known.age_s, 0.0))
        with suppress(IolensError):
            await self._asked(known.inquiry, RENEWALS)
            self._tell()

    async def warm_up(self) -> None:
        """Open the store in every thread and load what pages are made with, before the first reader waits for it."""
        all_there = threading.Barrier(self.threads)  # so that each of the threads does it
        with suppress(IolensError, threading.BrokenBarrierError):
            await asyncio.gather(*(self.run(lambda opened: _warm(opened, all_there)) for _ in range(self.threads)))

    async def filesystems(self) -> list[str]:
        """Names of all file systems; kept by `watch`, so that no page waits for a long answer."""
        if self._filesystems is None:
            self._filesystems = await self._look(_filesystems)
        return self._filesystems

    async def run(self, question: Callable[[OpenStore], Made], reader: str = SERVER) -> Made:
        """Anything asked of the store in one of the threads, when it is the reader's turn."""
        return await self._run(self.turns.request(reader), question)

    async def run_beside(self, question: Callable[[OpenStore], Made]) -> Made:
        """The same in a thread that readers do not share."""
        return await asyncio.get_running_loop().run_in_executor(self._beside, lambda: question(self._opened()))

    async def _run(self, turn: Turn, question: Callable[[OpenStore], Made]) -> Made:
        reader = await self._granted(turn)
        loop, unwanted = asyncio.get_running_loop(), threading.Event()
        future = self._pool.submit(self._in_thread, question, unwanted)

        def end(_: object) -> None:
            with suppress(RuntimeError):  # the server has ended
                loop.call_soon_threadsafe(self.turns.end, reader)

        future.add_done_callback(end)
        try:
            return await asyncio.wrap_future(future)
        except asyncio.CancelledError:
            unwanted.set()
            raise

    def _in_thread(self, question: Callable[[OpenStore], Made], unwanted: threading.Event) -> Made:
        from iolens.store.duckdb_engine import wanted_while

        with wanted_while(lambda: not unwanted.is_set()):
            return question(self._opened())

    async def _granted(self, turn: Turn) -> str:
        try:
            return await asyncio.shield(turn.granted)
        except asyncio.CancelledError:
            self.turns.leave(turn)
            raise

    def end_news(self) -> None:
        """Let live pages go: the server is about to end."""
        self.ending.set()
        self._tell()

    def close(self) -> None:
        """Ask no more."""
        for task in self._renewals.values():
            task.cancel()
        for pool in (self._pool, self._watcher, self._beside):
            pool.shutdown(wait=False, cancel_futures=True)

    def prepare(self, inquiry: Inquiry, reader: str = SERVER) -> None:
        """Begin to make an answer that somebody will ask for."""
        if inquiry not in self._answers:
            self._begun(inquiry, reader)

    async def _asked(self, inquiry: Inquiry, reader: str) -> StoredAnswer:
        """The answer that is being made; whoever waits for it may go away, and the last one ends it."""
        asking = self._begun(inquiry, reader)
        asking.waiters, asking.is_ahead = asking.waiters + 1, False
        try:
            return await asyncio.shield(asking.task)
        finally:
            asking.waiters -= 1
            if not asking.waiters and not asking.is_ahead and not asking.task.done():
                self._forget(inquiry, asking)
                asking.task.cancel()

    def _begun(self, inquiry: Inquiry, reader: str) -> _Asking:
        """What several ask at the same time is made once, when the first of them has a turn."""
        asking = self._asking.get(inquiry)
        if asking is not None:
            self.turns.join(asking.turn, reader)
            return asking
        if len(self._asking) >= MOST_WAITING or (reader and self.turns.waiting(reader) >= MOST_WAITING_EACH):
            raise TooManyInquiriesError("too much is asked at the same time: ask again in a while")
        turn = self.turns.request(reader)
        asking = self._asking[inquiry] = _Asking(turn, asyncio.create_task(self._made(inquiry, turn)))

        def forget(done: asyncio.Task[StoredAnswer]) -> None:
            self._forget(inquiry, asking)
            _ = done.cancelled() or done.exception()  # whoever waits hears of it

        asking.task.add_done_callback(forget)
        return asking

    def _forget(self, inquiry: Inquiry, asking: _Asking) -> None:
        if self._asking.get(inquiry) is asking:
            del self._asking[inquiry]

    async def _made(self, inquiry: Inquiry, turn: Turn) -> StoredAnswer:
        await self._granted(turn)
        version, asked_at, as_of = self.version, time.monotonic(), datetime.now(UTC)
        scope, result, note = await self._run(turn, lambda opened: _answered(opened, inquiry))
        answer = StoredAnswer(inquiry, scope, result, version, datetime.now(UTC), as_of, asked_at, note)
        self._answers[inquiry] = answer
        self._answers.move_to_end(inquiry)
        while len(self._answers) > MOST_ANSWERS:
            self._answers.popitem(last=False)
        return answer

    def _opened(self) -> OpenStore:
        if not hasattr(self._of_thread, "opened"):
            self._of_thread.opened = self._open_store()
        opened: OpenStore = self._of_thread.opened
        return opened


def _warm(opened: OpenStore, all_there: threading.Barrier) -> None:
    all_there.wait(LONGEST_WARM_UP_S)
    for name in WARM:
        import_module(name)
    opened.store.targets_by_filesystem()


def _answered(opened: OpenStore, inquiry: Inquiry) -> tuple[Scope, Any, str]:
    with opened.store.tables.held(), shown_in(inquiry.value("timezone")):
        scope = inquiry.scope(opened)
        options = inquiry.options()
        asking = Ask(
            lambda: opened, scope, options.pop("timezone", None), given=frozenset(options),
            command=inquiry.command(scope),
        )  # fmt: skip
        result = inquiry.question.ask(asking, options)
        return scope, result, rollup_note(opened, scope)


def _version(opened: OpenStore) -> int:
    """Every ingest ends with a row in `batches`."""
    handle = opened.store.tables.load("batches")
    return -1 if handle is None else int(handle.version())


def _filesystems(opened: OpenStore) -> list[str]:
    return sorted(opened.store.targets_by_filesystem())
