"""How full a file system is now: the last reading of each target, where it is no more than a day older than the newest.

The targets are those that `iolens capacity` adds up: data targets of the first kind there is, else sums of the whole.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from iolens.schema import DATA_KINDS
from iolens.units import DAY_US

WHOLE = "filesystem"


@dataclass(frozen=True, slots=True)
class LastReading:
    """Of one target: bytes it has and bytes used; None where it never says its total."""

    target_kind: str | None
    time_us: int
    total_bytes: int | None
    used_bytes: int


@dataclass(frozen=True, slots=True)
class LatestFullness:
    """Of a file system."""

    time_us: int
    total_bytes: int | None
    used_bytes: int


def latest_fullness(readings: Sequence[LastReading]) -> LatestFullness | None:
    """The sum over targets; its total is known where each of them tells its own."""
    by_kind = ([reading for reading in readings if reading.target_kind == kind] for kind in (*DATA_KINDS, WHOLE))
    of_kind = next(filter(None, by_kind), None)
    if of_kind is None:
        return None
    newest_us = max(reading.time_us for reading in of_kind)
    recent = [reading for reading in of_kind if reading.time_us > newest_us - DAY_US]
    if of_kind[0].target_kind == WHOLE:
        recent = [max(recent, key=lambda reading: reading.time_us)]
    totals = [reading.total_bytes for reading in recent if reading.total_bytes is not None]
    total = sum(totals) if len(totals) == len(recent) else None
    return LatestFullness(newest_us, total, sum(reading.used_bytes for reading in recent))
