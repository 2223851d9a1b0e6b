"""Throughput minute by minute: mean, peak, how bursty it is, idle periods, and maintenance (SPEC D7, Table III of D).

Missing is not idle, and breaks a period.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

import numpy as np
from numpy.typing import NDArray

from iolens.analyses.results import not_in_json
from iolens.analyses.tick_matrix import Floats, Integers, TickMatrix
from iolens.schema import DIRECTIONS
from iolens.units import epoch_us, from_epoch_us

MINUTE_US: Final = 60_000_000
IDLE_SHARE: Final = 0.05  # of peak: below it, a minute is idle
THIRD: Final = 0.33
DURATIONS: Final = ((1, 1), (2, 5), (6, 10), (11, 20), (21, 30), (31, 40), (41, 50), (51, 60), (61, None))
MAINTENANCE_MINUTES: Final = 120  # without a byte on any target: nobody's workload


@dataclass(frozen=True, slots=True)
class IdlePeriods:
    """One line of Table III; the last has no upper end. `share_pct` is of observed, `wall_share_pct` of all minutes."""

    from_min: int
    to_min: int | None
    count: int
    minutes: int
    share_pct: float
    wall_share_pct: float


@dataclass(frozen=True, slots=True)
class Maintenance:
    """A time in which the file system was not in use; `origin` is configured or found."""

    start: datetime
    end: datetime
    name: str
    origin: str


@dataclass(frozen=True, slots=True)
class Throughput:
    """All targets together, by minutes. Idle periods by the share of the peak, and by no byte at all."""

    mean_bytes_per_s: float
    peak_bytes_per_s: float
    peak_time: datetime
    peak_read_bytes_per_s: float | None
    peak_write_bytes_per_s: float | None
    read_bytes_per_day: float | None
    write_bytes_per_day: float | None
    below_third_of_peak_pct: float
    observed_minutes: int
    wall_minutes: int
    idle_below_bytes_per_s: float
    idle_periods: list[IdlePeriods]
    longest_idle_min: int
    zero_periods: list[IdlePeriods]
    longest_zero_min: int
    minute_us: NDArray[np.int64] | None = not_in_json()  # ends of the observed minutes
    read_bytes_per_s: Floats | None = not_in_json()
    write_bytes_per_s: Floats | None = not_in_json()


@dataclass(slots=True)
class Minutes:
    """Feed matrices: bytes of all targets by minute (or by tick, where ticks are longer)."""

    tick_us: int
    parts: list[tuple[Integers, Floats, Floats]] = field(default_factory=list)

    @property
    def width_us(self) -> int:
        """A minute, or a whole tick that is longer."""
        return max(MINUTE_US, self.tick_us)

    def add(self, matrix: TickMatrix) -> None:
        """A tick belongs to the minute in which it ends."""
        minutes, where = np.unique((matrix.end_us - 1) // self.width_us, return_inverse=True)
        moved: list[Floats] = []
        for way in DIRECTIONS:
            known = matrix.measures.get(f"{way}_bytes")
            bytes_ = np.zeros(matrix.end_us.size) if known is None else np.nansum(known, axis=1)
            moved.append(np.bincount(where, weights=bytes_, minlength=minutes.size).astype(np.float64))
        self.parts.append((minutes, moved[0], moved[1]))

    def series(self) -> tuple[Integers, Floats, Floats]:
        """Numbers of the observed minutes, and bytes per second read and written in them."""
        if not self.parts:
            return np.empty(0, np.int64), np.empty(0), np.empty(0)
        minutes, where = np.unique(np.concatenate([part[0] for part in self.parts]), return_inverse=True)
        seconds = self.width_us / 1e6
        read, write = (
            np.bincount(where, np.concatenate([part[number] for part in self.parts]), minutes.size) / seconds
            for number in (1, 2)
        )
        return minutes, read, write

    def result(self, known: Sequence[str], peak_bytes_per_s: float | None = None) -> Throughput | None:
        """`known` are the directions that some target tells."""
        minutes, read, write = self.series()
        if not minutes.size:
            return None
        total = read + write
        peak = float(total.max()) if peak_bytes_per_s is None else peak_bytes_per_s
        wall = int(minutes[-1] - minutes[0]) + 1
        days = minutes.size * self.width_us / 86_400e6
        per_day = {
            way: float(one.sum() * self.width_us / 1e6 / days) for way, one in (("read", read), ("write", write))
        }
        largest = {"read": float(read.max()), "write": float(write.max())}
        idle, zero = _periods(minutes, total < IDLE_SHARE * peak), _periods(minutes, total == 0)
        scale = self.width_us // MINUTE_US
        return Throughput(
            mean_bytes_per_s=float(total.mean()),
            peak_bytes_per_s=peak,
            peak_time=from_epoch_us(int(minutes[int(total.argmax())] + 1) * self.width_us),
            peak_read_bytes_per_s=largest["read"] if "read" in known else None,
            peak_write_bytes_per_s=largest["write"] if "write" in known else None,
            read_bytes_per_day=per_day["read"] if "read" in known else None,
            write_bytes_per_day=per_day["write"] if "write" in known else None,
            below_third_of_peak_pct=100.0 * float((total < THIRD * peak).mean()),
            observed_minutes=minutes.size * scale,
            wall_minutes=wall * scale,
            idle_below_bytes_per_s=IDLE_SHARE * peak,
            idle_periods=_table(idle * scale, minutes.size * scale, wall * scale),
            longest_idle_min=int(idle.max(initial=0)) * scale,
            zero_periods=_table(zero * scale, minutes.size * scale, wall * scale),
            longest_zero_min=int(zero.max(initial=0)) * scale,
            minute_us=(minutes + 1) * self.width_us,
            read_bytes_per_s=read,
            write_bytes_per_s=write,
        )

    def maintenance(self, least_minutes: int = MAINTENANCE_MINUTES) -> list[Maintenance]:
        """Long stretches without a byte on any target."""
        minutes, read, write = self.series()
        found = []
        for first, last in _runs(minutes, read + write == 0):
            if (last - first + 1) * self.width_us >= least_minutes * MINUTE_US:
                start, end = (from_epoch_us(int(one) * self.width_us) for one in (first, last + 1))
                found.append(Maintenance(start, end, "no activity", "found"))
        return found


def outside(matrix: TickMatrix, windows: Sequence[Maintenance]) -> TickMatrix:
    """Without the ticks that end in one of the windows."""
    if not windows:
        return matrix
    keep = np.ones(matrix.end_us.size, np.bool_)
    for one in windows:
        keep &= ~((matrix.end_us > epoch_us(one.start)) & (matrix.end_us <= epoch_us(one.end)))
    if keep.all():
        return matrix
    measures = {name: values[keep] for name, values in matrix.measures.items()}
    return TickMatrix(matrix.end_us[keep], matrix.tick_us, matrix.targets, matrix.duration_s[keep], measures)


def _runs(minutes: Integers, is_idle: NDArray[np.bool_]) -> list[tuple[int, int]]:
    """First and last minute of every run of idle minutes without a hole."""
    idle = minutes[is_idle]
    if not idle.size:
        return []
    cuts = np.flatnonzero(np.diff(idle) != 1) + 1
    return [(int(part[0]), int(part[-1])) for part in np.split(idle, cuts)]


def _periods(minutes: Integers, is_idle: NDArray[np.bool_]) -> Integers:
    return np.array([last - first + 1 for first, last in _runs(minutes, is_idle)], np.int64)


def _table(lengths: Integers, observed: int, wall: int) -> list[IdlePeriods]:
    found = []
    for low, high in DURATIONS:
        mine = lengths[(lengths >= low) & (lengths <= (high or lengths.max(initial=0)))]
        total = int(mine.sum())
        found.append(IdlePeriods(low, high, int(mine.size), total, 100.0 * total / observed, 100.0 * total / wall))
    return found
