"""The tick of a saved sample: its snapshot time rounded to the interval found (DEFINITIONS, "Time").

Ticks are counted from the first sample, so that jitter around half an interval cannot put two samples on one tick.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Final

from iolens.units import DAY_US, SECOND_US

SAMPLES_LOOKED_AT: Final = 64
LONGEST_US: Final = 11 * DAY_US // 10  # what is further apart was not sampled at an interval


def round_to(value: int, step: int) -> int:
    """The multiple of `step` nearest to `value`, halves upward; exact for any size."""
    return (2 * value + step) // (2 * step) * step


def find_interval_us(series: Iterable[Iterable[int]]) -> int:
    """Median spacing of sample times, each series (one server's) alone; whole seconds from one second on.

    One second when no series has two distinct times within a day: a rounding to years would move samples by months.
    """
    spacings = sorted(
        later - earlier
        for times in series
        for earlier, later in pairwise(sorted(set(times)))
        if later - earlier <= LONGEST_US
    )
    if not spacings:
        return SECOND_US
    spacing = (spacings[(len(spacings) - 1) // 2] + spacings[len(spacings) // 2]) // 2
    return max(round_to(spacing, SECOND_US), SECOND_US) if spacing >= SECOND_US else max(spacing, 1)


@dataclass(frozen=True, slots=True)
class Grid:
    """Ticks every `interval_us`, numbered from the sample taken at `origin_us`."""

    origin_us: int
    interval_us: int

    def tick(self, snapshot_us: int) -> int:
        """The tick of a sample taken at `snapshot_us`."""
        first = round_to(self.origin_us, self.interval_us)
        return first + round_to(snapshot_us - self.origin_us, self.interval_us)


@dataclass(slots=True)
class Ticker:
    """Gives each sample of a series its tick; a second sample on the same tick keeps its own time."""

    grid: Grid
    last: dict[str, int] = field(default_factory=dict)

    def tick(self, snapshot_us: int, series: str) -> int:
        """The tick of the next sample of `series`."""
        tick = self.grid.tick(snapshot_us)
        if self.last.get(series) == tick:
            return snapshot_us if snapshot_us != tick else snapshot_us + 1  # one microsecond apart is still apart
        self.last[series] = tick
        return tick

    def copy(self) -> Ticker:
        """A ticker that goes on from here, and leaves this one as it is."""
        return Ticker(self.grid, dict(self.last))


def grid_of(series: Mapping[str, Iterable[int]], interval_s: float | None) -> Grid:
    """The grid for the sample times seen first, with the interval given or found."""
    times = {name: list(stamps) for name, stamps in series.items()}
    interval = round(interval_s * SECOND_US) if interval_s else find_interval_us(times.values())
    return Grid(min((stamp for stamps in times.values() for stamp in stamps), default=0), max(interval, 1))
