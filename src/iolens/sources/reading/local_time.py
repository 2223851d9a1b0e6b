"""Times written down without a zone, and the zone they were written in, to UTC: whole columns at once.

When clocks go back an hour is written twice; which of the two is meant follows from the order of the stamps. When
they go forward an hour is never written; a stamp in it means that the zone is not the right one.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, tzinfo
from typing import Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import numpy as np
from numpy.typing import NDArray

from iolens.arrays import Integers
from iolens.errors import InputError

QUARTER_S: Final = 900  # zones change their offset at quarters of an hour
CORRECTION_S: Final = 60  # a clock that goes back by less was put right, not set to winter time
_EPOCH: Final = datetime(1970, 1, 1)  # without a zone, like the times it is for


def find_zone(name: str, place: str) -> tzinfo:
    """The zone of that name."""
    if name.upper() in ("UTC", "Z"):
        return UTC
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise InputError(place, f"no time zone is called {name!r}", "a name such as America/Los_Angeles") from None


def local_text(seconds: int) -> str:
    """`2018-03-11 02:00:00` from seconds since 1970 on the local clock."""
    return (_EPOCH + timedelta(seconds=seconds)).isoformat(sep=" ")


class LocalClock:
    """Turns local stamps into UTC, piece by piece, in the order in which they were taken."""

    def __init__(self, zone: tzinfo) -> None:
        self.zone = zone
        self.once: list[int] = []  # last stamps in hours the clock gave twice, of which only one passage was seen
        self._last: int | None = None  # the last stamp, while in an hour that is given twice
        self._second = False  # whether this is its second passage

    def offsets(self, local_s: Integers) -> np.ma.MaskedArray[tuple[int], np.dtype[np.int64]]:
        """Seconds that local time is ahead of UTC at each stamp; masked where no such local time exists."""
        quarters, where = np.unique(local_s // QUARTER_S, return_inverse=True)
        pairs = np.array([self._both(int(quarter)) for quarter in quarters], np.int64).reshape(-1, 2)
        first, second = pairs[where, 0], pairs[where, 1]
        chosen, repeated = first.copy(), first > second
        if len(local_s) and not repeated[0]:
            self._leave()
        for begin, end in _runs(repeated):
            here = slice(begin, end)
            is_second = self._passages(local_s[here])
            chosen[here] = np.where(is_second, second[here], first[here])
            if end < len(local_s):
                self._leave()
        return np.ma.MaskedArray(chosen, first < second)

    def finish(self) -> None:
        """No stamp follows."""
        self._leave()

    def _both(self, quarter: int) -> tuple[int, int]:
        """The offsets in a quarter of an hour at its first and its second passage."""
        time = _EPOCH + timedelta(seconds=quarter * QUARTER_S)
        offsets = (self.zone.utcoffset(time.replace(fold=fold)) for fold in (0, 1))
        first, second = (round(offset.total_seconds()) if offset is not None else 0 for offset in offsets)
        return first, second

    def _passages(self, local_s: Integers) -> NDArray[np.bool_]:
        """Which stamps of an hour given twice are of its second passage: those after the clock was set back."""
        before = np.concatenate(([local_s[0] if self._last is None else self._last], local_s[:-1]))
        set_back = before - local_s > CORRECTION_S  # after a gap the stamps may go back by little
        is_second: NDArray[np.bool_] = np.logical_or.accumulate(set_back) | self._second
        self._second, self._last = bool(is_second[-1]), int(local_s[-1])
        return is_second

    def _leave(self) -> None:
        if self._last is not None and not self._second:
            self.once.append(self._last)
        self._last, self._second = None, False


def _runs(flags: NDArray[np.bool_]) -> list[tuple[int, int]]:
    """Beginnings and ends of the stretches that are set."""
    edges = np.flatnonzero(np.diff(np.concatenate(([False], flags, [False])).astype(np.int8)))
    return [(int(begin), int(end)) for begin, end in zip(edges[::2], edges[1::2], strict=True)]
