"""The I/O transaction model t = a0 + a1·b and what follows from it (paper U, Eqs. 1–7).

A disk I/O of b bytes takes a fixed latency and a time in proportion to its size; reads and writes apart.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

from iolens.units import MIB


@dataclass(frozen=True, slots=True)
class Coefficients:
    """Latency a0 in seconds and a1 in seconds per byte, for one direction."""

    latency_s: float
    s_per_byte: float

    def seconds(self, size_bytes: float) -> float:
        """Time of one I/O (Eq. 1)."""
        return self.latency_s + self.s_per_byte * size_bytes

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


def busy_seconds(ios: dict[tuple[str, int], int], calibration: Calibration) -> float:
    """Time to completion of a pattern of I/Os, counted by (direction, size) (Eq. 5)."""
    return sum(count * calibration.of(direction).seconds(size) for (direction, size), count in ios.items())


def achievable_bytes_per_s(ios: dict[tuple[str, int], int], calibration: Calibration) -> float:
    """Bandwidth a pattern of I/Os can reach at best (Eq. 6)."""
    return sum(count * size for (_, size), count in ios.items()) / busy_seconds(ios, calibration)


def fsu_pct(ios: dict[tuple[str, int], int], duration_s: float, calibration: Calibration) -> float:
    """File System Utilization of one interval (Eq. 7)."""
    return 100.0 / duration_s * busy_seconds(ios, calibration)


def counted_seconds(
    read_ops: float, read_bytes: float, write_ops: float, write_bytes: float, calibration: Calibration
) -> float:
    """The same time from counts of operations and bytes, which is all the linear model needs (U9)."""
    read, write = calibration.read, calibration.write
    reads = read.latency_s * read_ops + read.s_per_byte * read_bytes
    return reads + write.latency_s * write_ops + write.s_per_byte * write_bytes


def fsu_bytes_pct(
    read_ops: float,
    read_bytes: float,
    write_ops: float,
    write_bytes: float,
    duration_s: float,
    calibration: Calibration,
) -> float:
    """File System Utilization of any device that counts operations and bytes (U9)."""
    return 100.0 / duration_s * counted_seconds(read_ops, read_bytes, write_ops, write_bytes, calibration)
