"""How many lookups are in flight: what a made-up file system answers, with its own clock."""

from __future__ import annotations

import threading
from collections.abc import Sequence

import pytest

from iolens.scan.inodes import IN_ALL, IN_PROCESS, Lookups, most_lookups


class MadeUpServer:
    """A file system on which a lookup takes `lookup_s`, and which answers up to `capacity` at a time.

    Its clock goes on by what the slowest thread of a turn takes.
    """

    def __init__(self, lookup_s: float, capacity: int = 1000) -> None:
        self.lookup_s, self.capacity = lookup_s, capacity
        self.asked: list[int] = []
        self._time_s = 0.0
        self._shares: list[int] = []
        self._lock = threading.Lock()

    def now(self) -> float:
        if self._shares:
            self._time_s += max(self._shares) * self.lookup_s * max(1.0, len(self._shares) / self.capacity)
        self._shares = []
        return self._time_s

    def look(self, items: Sequence[int]) -> list[int]:
        with self._lock:
            self._shares.append(len(items))
            self.asked += items
        return [10 * item for item in items]


def after(lookups: Lookups, server: MadeUpServer, count: int = 100_000) -> int:
    """How many are in flight after so many more; each is asked once, and answers are in order."""
    for begin in range(0, count, 1000):
        server.asked = []
        items = list(range(begin, min(count, begin + 1000)))
        assert lookups.timed(server.look, items) == [10 * item for item in items]
        assert sorted(server.asked) == items
    return lookups.in_flight


@pytest.mark.parametrize(
    ("lookup_s", "capacity", "expected"),
    [
        (2e-6, 1000, {1}),
        (90e-6, 1000, {1}),
        (500e-6, 1000, {32}),
        (1e-3, 1000, {32}),
        (50e-3, 1000, {32}),
        (500e-6, 8, {16}),  # 8 at a time, and 8 that wait: no more, for these would only wait longer
        (500e-6, 1, {2}),
    ],
)
def test_as_many_as_pay_off(lookup_s: float, capacity: int, expected: set[int]) -> None:
    server = MadeUpServer(lookup_s, capacity)
    lookups = Lookups(32, server.now)
    assert after(lookups, server) in expected
    lookups.close()


def test_the_number_follows_the_file_system() -> None:
    server = MadeUpServer(2e-6)
    lookups = Lookups(32, server.now)
    assert after(lookups, server) == 1
    server.lookup_s = 1e-3
    assert after(lookups, server) == 32
    server.capacity = 8
    assert after(lookups, server) in (16, 8)
    server.lookup_s = 2e-6
    assert after(lookups, server, 300_000) == 1
    lookups.close()


def test_a_few_slow_turns_among_quick_ones_change_nothing() -> None:
    """A busy machine: the process waits for a processor, not for the file system."""
    server = MadeUpServer(2e-6)
    lookups = Lookups(32, server.now)
    for turn in range(1000):
        server.lookup_s = 2e-6 if turn % 5 == 4 else 400e-6
        assert after(lookups, server, 8) == 1
    lookups.close()


def test_never_more_than_may_be() -> None:
    server = MadeUpServer(1e-3)
    for most in (1, 3, 8):
        lookups = Lookups(most, server.now)
        assert after(lookups, server) == most
        lookups.close()
    assert [most_lookups(workers) for workers in (1, 2, 4, 16, 64, 500)] == [32, 32, 32, 8, 2, 1]
    assert all(workers * most_lookups(workers) <= IN_ALL for workers in range(1, IN_ALL))
    assert most_lookups(1) == IN_PROCESS


def test_calls_apart_are_in_order() -> None:
    server = MadeUpServer(1e-3)
    lookups = Lookups(8, server.now)
    assert lookups.apart(str, [1, 2, 3]) == ["1", "2", "3"]
    assert after(lookups, server) == 8
    together = threading.Barrier(3)
    assert lookups.apart(lambda item: (together.wait(60), str(item))[1], [1, 2, 3]) == ["1", "2", "3"]
    lookups.close()
    assert not any(thread.name.startswith("lookup") for thread in threading.enumerate())


def test_an_error_of_a_lookup_is_the_callers() -> None:
    server = MadeUpServer(1e-3)
    lookups = Lookups(8, server.now)
    assert after(lookups, server) == 8

    def fails(items: Sequence[int]) -> list[int]:
        raise MemoryError

    with pytest.raises(MemoryError):
        lookups.timed(fails, list(range(100)))
    lookups.close()
