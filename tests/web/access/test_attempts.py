"""Token buckets by address: paces, networks and bounded memory."""

from __future__ import annotations

import pytest

from iolens.web.access import attempts
from iolens.web.access.attempts import Attempts, Pace, network_of


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_a_burst_then_a_pace() -> None:
    clock = Clock()
    tries = Attempts(Pace(3, 0.5), Pace(100, 100), clock)
    assert [tries.wait_s("10.0.0.1") for _ in range(5)] == [0, 0, 0, 2, 2]
    assert tries.wait_s("10.0.0.2") == 0  # another address
    clock.now = 2.0
    assert [tries.wait_s("10.0.0.1") for _ in range(2)] == [0, 2]
    clock.now = 1e6
    assert [tries.wait_s("10.0.0.1") for _ in range(4)] == [0, 0, 0, 2]  # a long silence saves up no more than a burst


def test_all_addresses_together_have_a_pace_too() -> None:
    tries = Attempts(Pace(3, 1), Pace(10, 2), Clock())
    waits = [tries.wait_s(f"10.0.0.{number}") for number in range(12)]
    assert waits == [0] * 10 + [0.5, 0.5]


def test_memory_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attempts, "MOST_ADDRESSES", 100)
    tries = Attempts(Pace(1, 1), Pace(1e9, 1e9), Clock())
    for number in range(1000):
        tries.wait_s(f"10.0.{number // 250}.{number % 250}")
    assert len(tries._buckets) == 100


@pytest.mark.parametrize(
    ("address", "network"),
    [
        ("10.0.0.1", "10.0.0.1"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::"),
        ("2001:db8:1:2:ffff::1", "2001:db8:1:2::"),
        ("::ffff:10.0.0.1", "10.0.0.1"),
        ("fe80::1%eth0", "fe80::"),
        ("x" * 100, "x" * 64),
    ],
)
def test_the_network_of_an_address(address: str, network: str) -> None:
    assert network_of(address) == network
