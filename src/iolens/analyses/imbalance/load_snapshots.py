"""What every target moved at single times: those asked for, or the most unbalanced ones (Fig. 1 of paper S)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

import numpy as np

from iolens.analyses.imbalance.spreads import BACKGROUND, TickSpread
from iolens.analyses.intervals.tick_matrix import TickMatrix
from iolens.analyses.quotients import not_nan
from iolens.schema import DIRECTIONS
from iolens.units import DAY_US, from_epoch_us

HOUR_US: Final = 3_600_000_000
SHOWN: Final = 2


@dataclass(frozen=True, slots=True)
class TargetLoad:
    """Bytes per second of one target in a tick; None: not reported."""

    target: str
    read_bytes_per_s: float | None
    write_bytes_per_s: float | None
    background_bytes_per_s: float | None


@dataclass(frozen=True, slots=True)
class LoadSnapshot:
    """One tick by its end, over the targets that reported in it."""

    time: datetime
    min_bytes_per_s: float
    mean_bytes_per_s: float
    max_bytes_per_s: float
    std_bytes_per_s: float
    targets: list[TargetLoad]


def apart_us(extent_us: tuple[int, int]) -> int:
    """How far apart the worst ticks of a window are: they are of different days, or hours in a window of one day."""
    first, last = extent_us
    return DAY_US if (last - 1) // DAY_US > first // DAY_US else HOUR_US


@dataclass(slots=True)
class LoadSnapshots:
    """Feed matrices with their spreads, in time order.

    Of every day (of every hour, in a window of one day) the worst tick is kept, and the ticks that hold the times
    given, which then are the result.
    """

    apart_us: int  # of different days, or hours
    at_us: Sequence[int] = ()
    worst: dict[int, LoadSnapshot] = field(default_factory=dict)  # by number of the day or hour
    asked: dict[int, LoadSnapshot] = field(default_factory=dict)  # by time

    def add(self, matrix: TickMatrix, spread: TickSpread) -> None:
        """The next ticks."""
        ends = matrix.end_us[spread.rows]
        for time in self.at_us:
            place = int(np.searchsorted(ends, time, side="right"))
            if place < ends.size and ends[place] - matrix.tick_us <= time:
                self.asked[time] = _snapshot(matrix, spread, place)
        part = (ends - matrix.tick_us) // self.apart_us
        for number in np.unique(part).tolist():
            mine = np.flatnonzero(part == number)
            place = int(mine[spread.std[mine].argmax()])
            if number not in self.worst or spread.std[place] > self.worst[number].std_bytes_per_s:
                self.worst[number] = _snapshot(matrix, spread, place)

    def take(self, later: LoadSnapshots) -> None:
        """Of later ticks."""
        self.asked |= later.asked
        for number, snapshot in later.worst.items():
            mine = self.worst.get(number)
            if mine is None or snapshot.std_bytes_per_s > mine.std_bytes_per_s:
                self.worst[number] = snapshot

    def result(self) -> list[LoadSnapshot]:
        """In time order."""
        chosen = self.asked.values() or sorted(
            self.worst.values(), key=lambda snapshot: (-snapshot.std_bytes_per_s, snapshot.time)
        )
        return sorted(list(chosen)[: None if self.at_us else SHOWN], key=lambda load_snapshot: load_snapshot.time)


def _snapshot(matrix: TickMatrix, spread: TickSpread, place: int) -> LoadSnapshot:
    row = int(spread.rows[place])
    seconds = matrix.duration_s[row]
    names = [*(f"{direction}_bytes" for direction in DIRECTIONS), BACKGROUND]
    rates = [matrix.measures[name][row] / seconds if name in matrix.measures else np.nan * seconds for name in names]
    reporting = np.flatnonzero(~np.isnan(spread.load[place]))
    return LoadSnapshot(
        from_epoch_us(int(matrix.end_us[row])),
        float(spread.minimum[place]),
        float(spread.mean[place]),
        float(spread.maximum[place]),
        float(spread.std[place]),
        [TargetLoad(matrix.targets[value], *(not_nan(rate[value]) for rate in rates)) for value in reporting.tolist()],
    )
