"""Who asks the store next: readers take turns, and none has more than a few questions running at once."""

from __future__ import annotations

import asyncio
import time
from collections import Counter, deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

STUCK_S: Final = 300.0  # somebody waits, and so long no question has ended
SERVER: Final = ""  # the server itself, when it begins or ends: it takes any thread


@dataclass(eq=False, slots=True)
class Turn:
    """A place in the queue: of one reader, or of several that ask the same. `reader` is the one whose turn it was."""

    since: float
    granted: asyncio.Future[str]
    readers: set[str] = field(default_factory=set)


@dataclass(frozen=True, slots=True)
class QueueState:
    """What runs and waits; `is_stuck`: it does not go on."""

    running: int
    waiting: int
    oldest_wait_s: float
    is_stuck: bool


class Turns:
    """A queue in front of some threads."""

    def __init__(self, threads: int, each: int, clock: Callable[[], float] = time.monotonic) -> None:
        self.threads, self.each, self.clock = threads, each, clock
        self._running: Counter[str] = Counter()
        self._waiting: dict[str, deque[Turn]] = {}  # in the order in which readers have their turns
        self._last_end = clock()

    def waiting(self, reader: str) -> int:
        """How much of a reader waits."""
        return sum(not turn.granted.done() for turn in self._waiting.get(reader, ()))

    def request(self, reader: str) -> Turn:
        """Stand in the queue."""
        turn = Turn(self.clock(), asyncio.get_running_loop().create_future())
        self.join(turn, reader)
        return turn

    def join(self, turn: Turn, reader: str) -> None:
        """Another reader waits for the same."""
        if reader not in turn.readers and not turn.granted.done():
            turn.readers.add(reader)
            self._waiting.setdefault(reader, deque()).append(turn)
            self._grant()

    def leave(self, turn: Turn) -> None:
        """Nobody waits for it any more; if it was granted meanwhile, the thread is free again."""
        if not turn.granted.cancel():
            self.end(turn.granted.result())
        for reader in turn.readers:
            if turn in (own := self._waiting.get(reader, deque())):
                own.remove(turn)

    def end(self, reader: str) -> None:
        """A question of a reader has ended."""
        self._running[reader] -= 1
        self._running += Counter()  # without those that have none
        self._last_end = self.clock()
        self._grant()

    def state(self) -> QueueState:
        """For whoever watches the server."""
        now = self.clock()
        open_turns = {turn for own in self._waiting.values() for turn in own if not turn.granted.done()}
        oldest = min((turn.since for turn in open_turns), default=now)
        is_stuck = bool(open_turns) and now - max(self._last_end, oldest) >= STUCK_S
        return QueueState(self._running.total(), len(open_turns), now - oldest, is_stuck)

    def _grant(self) -> None:
        """Give free threads to the readers in turn."""
        while self._running.total() < self.threads:
            self._drop_granted()
            reader = next((name for name in self._waiting if self._may(name)), None)
            if reader is None:
                return
            own = self._waiting.pop(reader)  # and to the end of the line
            turn = own.popleft()
            if own:
                self._waiting[reader] = own
            self._running[reader] += 1
            turn.granted.set_result(reader)

    def _may(self, reader: str) -> bool:
        return reader == SERVER or self._running[reader] < self.each

    def _drop_granted(self) -> None:
        """Forget what another reader's turn has answered, or what nobody waits for any more."""
        for reader, own in list(self._waiting.items()):
            while own and own[0].granted.done():
                own.popleft()
            if not own:
                del self._waiting[reader]
