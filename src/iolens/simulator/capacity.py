"""How full the simulated targets are at one time."""

from __future__ import annotations

from typing import Final, NamedTuple

from iolens.simulator.workload import SimulatedWorkload
from iolens.units import KIB

FULLEST: Final = 0.97
MDT_BYTES: Final = 1 << 40
MDT_INODES: Final = 1 << 30
RESERVED: Final = 0.05  # what ldiskfs keeps back from ordinary users


class Fullness(NamedTuple):
    """Bytes and inodes of one target."""

    total_bytes: int
    free_bytes: int
    available_bytes: int
    total_inodes: int
    free_inodes: int


def ost_fullness(workload: SimulatedWorkload, number: int, since_s: float) -> Fullness:
    """An OST `since_s` seconds after the start; some are a little fuller than others."""
    capacity = workload.capacity
    start = capacity.used_pct / 100.0 * (1.0 + 0.03 * ((number * 7) % 5 - 2))
    share = start + capacity.growth_bytes_per_day * since_s / 86400.0 / capacity.total_bytes
    return _fullness(capacity.total_bytes, capacity.inodes, min(share, FULLEST))


def mdt_fullness(number: int, since_s: float) -> Fullness:
    """An MDT, slowly filling."""
    return _fullness(MDT_BYTES, MDT_INODES, min(0.3 + 0.02 * (number % 3) + since_s / 86400.0 * 1e-4, FULLEST))


def _fullness(total_bytes: int, inodes: int, share: float) -> Fullness:
    free = int(total_bytes * (1.0 - share)) // KIB * KIB
    available = max(0, free - int(total_bytes * RESERVED)) // KIB * KIB
    return Fullness(total_bytes, free, available, inodes, inodes - int(inodes * share * 0.6))
