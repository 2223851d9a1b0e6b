"""Ticks: on the clock, without drift, late and missed ones counted, never a burst."""

from __future__ import annotations

import os
import select
import signal
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

from iolens.agent.sampling.collector import Metronome, SystemClock

S = 1_000_000
T0 = 1_700_000_000 * S


@dataclass
class VirtualClock:
    """Time passes only when someone waits or works; `on_wait` may tamper with it."""

    now: int = T0
    on_wait: list[Callable[[VirtualClock], None]] = field(default_factory=list)
    stopped: bool = False
    overshoot_us: int = 300

    def now_us(self) -> int:
        return self.now

    def wait(self, seconds: float) -> bool:
        if seconds > 0:
            self.now += round(seconds * 1e6) + self.overshoot_us
            if self.on_wait:
                self.on_wait.pop(0)(self)
        return self.stopped

    def work(self, seconds: float) -> None:
        self.now += round(seconds * 1e6)


def ticks(metronome: Metronome, clock: VirtualClock, works: list[float]) -> list[float]:
    """Ticks in seconds since T0, with that much work after each."""
    result = []
    for work in works:
        tick = metronome.next_tick()
        assert tick is not None
        result.append((tick - T0) / S)
        clock.work(work)
    return result


def test_ticks_are_multiples_of_the_interval_and_do_not_drift() -> None:
    clock = VirtualClock(T0 + 1_234_567)
    metronome = Metronome(clock, 5 * S)
    assert ticks(metronome, clock, [0.4] * 720) == [5.0 * number for number in range(1, 721)]
    assert (metronome.late, metronome.missed) == (0, 0)
    assert clock.now - (T0 + 3600 * S) < S


def test_a_long_sample_costs_ticks_that_are_counted_not_caught_up() -> None:
    clock = VirtualClock()
    metronome = Metronome(clock, 5 * S)
    #   17 s of work after tick 5: 10, 15 and 20 pass; 20 is begun 2 s late.
    assert ticks(metronome, clock, [17.0, 0.1, 0.1, 0.1]) == [5.0, 20.0, 25.0, 30.0]
    assert (metronome.late, metronome.missed) == (1, 2)


def test_more_than_half_an_interval_late_is_missed() -> None:
    clock = VirtualClock()
    metronome = Metronome(clock, 5 * S)
    assert ticks(metronome, clock, [8.0, 0.1]) == [5.0, 15.0]
    assert (metronome.late, metronome.missed) == (0, 1)


def test_always_too_slow_gives_every_second_tick() -> None:
    clock = VirtualClock()
    metronome = Metronome(clock, 1 * S)
    assert ticks(metronome, clock, [1.6] * 5) == [1.0, 3.0, 5.0, 7.0, 9.0]
    assert metronome.missed == 4


def test_a_clock_set_forward_misses_what_it_jumped_over() -> None:
    clock = VirtualClock()
    metronome = Metronome(clock, 5 * S)
    clock.on_wait = [lambda clock: None, lambda clock: clock.work(60)]
    assert ticks(metronome, clock, [0.1, 0.1, 0.1]) == [5.0, 70.0, 75.0]
    assert metronome.missed == 12


def test_a_clock_set_back_an_hour_goes_on_with_its_new_time() -> None:
    clock = VirtualClock()
    metronome = Metronome(clock, 5 * S)
    clock.on_wait = [lambda clock: None, lambda clock: clock.work(-3600)]
    assert ticks(metronome, clock, [0.1, 0.1, 0.1]) == [5.0, -3585.0, -3580.0]
    assert metronome.stepped_back == 1


def test_a_clock_set_back_a_little_repeats_no_tick() -> None:
    clock = VirtualClock()
    metronome = Metronome(clock, 5 * S)
    clock.on_wait = [lambda clock: clock.work(0), lambda clock: clock.work(-3)]
    assert ticks(metronome, clock, [0.1] * 4) == [5.0, 10.0, 15.0, 20.0]
    assert metronome.stepped_back == 0


def test_asked_to_stop() -> None:
    clock = VirtualClock()
    metronome = Metronome(clock, 5 * S)
    clock.stopped = True
    assert metronome.next_tick() is None


def test_a_wait_for_the_next_tick_ends_with_a_signal(monkeypatch: pytest.MonkeyPatch) -> None:
    """It comes when the wait of an hour has begun; without its handler and wake-up descriptor that would go on."""
    select_ = select.select

    def interrupted(*arguments: Any) -> Any:
        os.kill(os.getpid(), signal.SIGTERM)
        return select_(*arguments)

    clock, before = SystemClock(), [signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)]
    clock.listen()
    monkeypatch.setattr(select, "select", interrupted)
    try:
        assert clock.wait(3600.0)
    finally:
        signal.set_wakeup_fd(-1)
        for number, handler in zip((signal.SIGTERM, signal.SIGINT), before, strict=True):
            signal.signal(number, handler)
