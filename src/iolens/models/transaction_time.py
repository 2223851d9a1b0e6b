"""The I/O transaction model t = a0 + a1·b and what follows from it (paper U, Eqs. 1–7).

A disk I/O of b bytes takes a fixed latency and a time in proportion to its size; reads and writes apart. This is the
only place that spells the model: numbers, arrays and expressions of an engine all take it from here.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from functools import reduce
from typing import Any, Final, Protocol, TypeVar

from iolens.schema import DIRECTIONS, SIZE_BINS, size_column
from iolens.units import MIB

IDLE_BELOW_PCT: Final = 2.0  # FSU
BUSY_ABOVE_PCT: Final = 30.0
SIZE_COLUMNS: Final = {
    size_column(direction, size): (direction, size) for direction in DIRECTIONS for size in SIZE_BINS
}


class CalibrationState(StrEnum):
    """Where coefficients are from, the strongest first (DEFINITIONS, State of a calibration)."""

    MEASURED = "measured"  # fitted to a sweep on this class of targets
    ESTIMATED = "estimated"  # from the centre's own telemetry
    CLASS = "class"  # a shipped or configured one that a person chose
    ASSUMED = "assumed"  # the shipped default, which nobody chose


def weakest(states: Iterable[CalibrationState]) -> CalibrationState:
    """What a mixture is called."""
    order = list(CalibrationState)
    return max(states, key=order.index)


class FsuCategory(StrEnum):
    """How busy a file system or target is by its FSU (DEFINITIONS, FSU)."""

    IDLE = "idle"
    MODERATE = "moderate"
    BUSY = "busy"

    @classmethod
    def of(cls, fsu_pct: float | None) -> FsuCategory | None:
        """Its category; None where FSU is not known."""
        if fsu_pct is None:
            return None
        if fsu_pct < IDLE_BELOW_PCT:
            return cls.IDLE
        return cls.MODERATE if fsu_pct <= BUSY_ABOVE_PCT else cls.BUSY


class Quantity(Protocol):
    """A number, an array of numbers, or an engine's expression of a column."""

    def __add__(self, other: Any, /) -> Any: ...

    def __mul__(self, other: Any, /) -> Any: ...


Amount = TypeVar("Amount", bound=Quantity)


def time_terms(ios: Amount, moved_bytes: Amount, latency_s: Any, s_per_byte: Any) -> tuple[Amount, Amount]:
    """Disk time of I/Os of one direction, by number and by bytes: a0·N and a1·B (the terms of Eq. 5, and of U9)."""
    return ios * latency_s, moved_bytes * s_per_byte


def added(terms: Iterable[Amount]) -> Amount:
    """The sum in the order given, which `sum` does not promise: floats keep their last digit."""
    return reduce(operator.add, terms)


@dataclass(frozen=True, slots=True)
class Coefficients:
    """Latency a0 in seconds and a1 in seconds per byte, for one direction."""

    latency_s: float
    s_per_byte: float

    def seconds(self, size_bytes: float) -> float:
        """Time of one I/O (Eq. 1)."""
        return self.counted_seconds(1, size_bytes)

    def counted_seconds(self, ios: float, moved_bytes: float) -> float:
        """Time of so many I/Os that move so many bytes."""
        return added(time_terms(ios, moved_bytes, self.latency_s, self.s_per_byte))

    def seconds_as_optimal(self, size_bytes: float) -> float:
        """Time the same bytes would need as 1 MiB I/Os; larger I/Os stay as they are (U8)."""
        if size_bytes > MIB:
            return self.seconds(size_bytes)
        return size_bytes * (self.latency_s / MIB + self.s_per_byte)

    @property
    def bytes_per_s_limit(self) -> float:
        """Bandwidth for very large I/Os, 1/a1 (Eq. 2)."""
        return 1.0 / self.s_per_byte if self.s_per_byte else math.inf

    @property
    def iops_limit(self) -> float:
        """Operations per second for very small I/Os, 1/a0 (Eq. 2)."""
        return 1.0 / self.latency_s if self.latency_s else math.inf


@dataclass(frozen=True, slots=True)
class Calibration:
    """Coefficients of both directions under a name."""

    name: str
    write: Coefficients
    read: Coefficients

    def of(self, direction: str) -> Coefficients:
        """Coefficients of `read` or `write`."""
        return self.write if direction == "write" else self.read


GRACE_2012: Final = Calibration("grace-2012", Coefficients(1.04e-3, 1.73e-9), Coefficients(8.02e-4, 1.23e-9))


def histogram_costs(calibration: Calibration) -> dict[str, float]:
    """Seconds that one count stands for, by column of `target_sizes`: each I/O at its bin's upper bound."""
    return {name: calibration.of(direction).seconds(size) for name, (direction, size) in SIZE_COLUMNS.items()}


def counter_costs(calibration: Calibration) -> dict[str, float]:
    """Likewise by counter of a block device: operations and bytes (U9)."""
    latencies = {f"{direction}_ops": calibration.of(direction).latency_s for direction in DIRECTIONS}
    return latencies | {f"{direction}_bytes": calibration.of(direction).s_per_byte for direction in DIRECTIONS}


def busy_seconds(ios: dict[tuple[str, int], int], calibration: Calibration) -> float:
    """Time to completion of a pattern of I/Os, counted by (direction, size) (Eq. 5)."""
    return sum(count * calibration.of(direction).seconds(size) for (direction, size), count in ios.items())


def achievable_bytes_per_s(ios: dict[tuple[str, int], int], calibration: Calibration) -> float:
    """Bandwidth a pattern of I/Os can reach at best (Eq. 6)."""
    return sum(count * size for (_, size), count in ios.items()) / busy_seconds(ios, calibration)


def fsu_pct(ios: dict[tuple[str, int], int], duration_s: float, calibration: Calibration) -> float:
    """File System Utilization of one interval (Eq. 7)."""
    return utilization_pct(busy_seconds(ios, calibration), duration_s)


def utilization_pct(busy_s: float, duration_s: float) -> float:
    """Disk time as a share of the interval, which may pass 100 (Eq. 7)."""
    return 100.0 / duration_s * busy_s


def counted_seconds(
    read_ops: float, read_bytes: float, write_ops: float, write_bytes: float, calibration: Calibration
) -> float:
    """The same time from counts of operations and bytes, which is all the linear model needs (U9)."""
    read, write = calibration.read, calibration.write
    reads = time_terms(read_ops, read_bytes, read.latency_s, read.s_per_byte)
    return added((*reads, *time_terms(write_ops, write_bytes, write.latency_s, write.s_per_byte)))


def fsu_bytes_pct(
    read_ops: float,
    read_bytes: float,
    write_ops: float,
    write_bytes: float,
    duration_s: float,
    calibration: Calibration,
) -> float:
    """File System Utilization of any device that counts operations and bytes (U9)."""
    return utilization_pct(counted_seconds(read_ops, read_bytes, write_ops, write_bytes, calibration), duration_s)
