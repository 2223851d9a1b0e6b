"""Turns: readers alternate, none has more than its share, what nobody waits for leaves, and a stuck queue says so."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from iolens.web.turns import SERVER, STUCK_S, QueueState, Turns


@dataclass
class Clock:
    now: float = 0.0

    def __call__(self) -> float:
        return self.now


def test_readers_take_turns_and_none_runs_more_than_its_share() -> None:
    async def work() -> None:
        turns = Turns(threads=3, each=2)
        many = [turns.request("evil") for _ in range(120)]
        assert [turn.granted.done() for turn in many[:4]] == [True, True, False, False]
        first, second = turns.request("operator"), turns.request("operator")
        assert first.granted.result() == "operator"  # at once: a thread is free for others
        assert not second.granted.done()
        turns.end("evil")
        assert second.granted.done() != many[2].granted.done()
        turns.end("operator")
        assert second.granted.done()
        assert many[2].granted.done()
        assert turns.waiting("evil") == 117

    asyncio.run(work())


def test_what_several_ask_is_answered_when_the_first_of_them_has_a_turn() -> None:
    async def work() -> None:
        turns = Turns(threads=3, each=2)
        queued = [turns.request("evil") for _ in range(9)][-1]
        turns.join(queued, "operator")
        assert queued.granted.result() == "operator"
        turns.end("operator")
        for _ in range(2):
            turns.end("evil")
        assert turns.state().running == 2

    asyncio.run(work())


def test_what_nobody_waits_for_leaves_the_queue() -> None:
    async def work() -> None:
        turns = Turns(threads=1, each=1)
        running, waiting, last = (turns.request("evil") for _ in range(3))
        turns.leave(waiting)
        assert turns.state().waiting == 1
        turns.leave(running)  # it was granted, and nobody came for it
        assert last.granted.done()
        turns.end("evil")
        assert turns.state() == QueueState(0, 0, 0.0, is_stuck=False)

    asyncio.run(work())


def test_a_queue_is_stuck_when_somebody_waits_and_nothing_ends() -> None:
    async def work() -> None:
        clock = Clock()
        turns = Turns(threads=1, each=1, clock=clock)
        turns.request(SERVER)
        clock.now = 10 * STUCK_S  # a long question that nobody waits behind
        assert not turns.state().is_stuck
        turns.request("ada")
        clock.now += STUCK_S - 1
        assert turns.state() == QueueState(1, 1, STUCK_S - 1, is_stuck=False)
        clock.now += 1
        assert turns.state() == QueueState(1, 1, STUCK_S, is_stuck=True)
        turns.end(SERVER)
        assert not turns.state().is_stuck

    asyncio.run(work())
