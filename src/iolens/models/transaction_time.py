"""The transaction model t = a0 + a1·b and what follows from it; steady load as a full disk; the classes of disks that
ship.
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
from iolens.units import KIB, MIB

# The I/O transaction model t = a0 + a1·b and what follows from it (paper U, Eqs. 1–7) ---------------------------------
# A disk I/O of b bytes takes a fixed latency and a time in proportion to its size; reads and writes apart. This is the
# only place that spells the model: numbers, arrays and expressions of an engine all take it from here.

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


# When a steady load is a full disk (paper U, Fig. 8; U10) -------------------------------------------------------------
# And when an FSU is more than any disk can do (U4).

DEFAULT_CEILING_PCT: Final = 100.0
SATURATED_SHARE: Final = 0.9  # of the ceiling: a steady load from there on is saturated
REFUTED_ABOVE_PCT: Final = 120.0  # a mean over ten minutes above it is no load: the calibration is wrong
REFUTED_OVER_S: Final = 600.0
COVERED_SHARE: Final = 0.9  # of those ten minutes has to be reported


@dataclass(frozen=True, slots=True)
class FsuCeiling:
    """The FSU of a full disk in per cent; `origin`: `calibration NAME`, `configured`, `telemetry NAME` or `default`."""

    pct: float
    origin: str

    def is_reached(self, fsu_pct: float, share: float = SATURATED_SHARE) -> bool:
        """Whether a steady load of that FSU leaves nothing to give."""
        return fsu_pct >= share * self.pct


def ceiling_of(
    measured_pct: float | None, calibration: str, configured_pct: float | None, is_estimated: bool = False
) -> FsuCeiling:
    """Measured while a saturating test ran, else configured, else seen at the limit by an estimate, else 100."""
    if measured_pct is not None and not is_estimated:
        return FsuCeiling(measured_pct, f"calibration {calibration}")
    if configured_pct is not None:
        return FsuCeiling(configured_pct, "configured")
    if measured_pct is not None:
        return FsuCeiling(measured_pct, f"telemetry {calibration}")
    return FsuCeiling(DEFAULT_CEILING_PCT, "default")


def mean_ceiling(ceilings: Iterable[tuple[FsuCeiling, int]]) -> FsuCeiling:
    """Of a file system whose targets differ: the mean over its targets, as its FSU is. Pairs of ceiling and targets."""
    counted = [(ceiling, targets) for ceiling, targets in ceilings if targets > 0]
    total = sum(targets for _, targets in counted)
    if not total:
        return FsuCeiling(DEFAULT_CEILING_PCT, "default")
    origins = dict.fromkeys(ceiling.origin for ceiling, _ in counted)
    return FsuCeiling(sum(ceiling.pct * targets for ceiling, targets in counted) / total, " and ".join(origins))


# The classes of disks that iolens ships -------------------------------------------------------------------------------
# Coefficients with their evidence and their band, for a person to choose.
#
# A class is here only where its numbers can be traced: printed in a study, or fitted by `iolens calibrate fit` to runs
# that are published. An end of a band that the evidence does not tell is None, never a guess.


@dataclass(frozen=True, slots=True)
class CoefficientBand:
    """Lowest and highest value that the evidence allows: a0 in seconds, a1 in seconds per byte; null: not known."""

    latency_low_s: float | None = None
    latency_high_s: float | None = None
    s_per_byte_low: float | None = None
    s_per_byte_high: float | None = None


@dataclass(frozen=True, slots=True)
class CalibrationClass:
    """Coefficients of a kind of disk. `about`: what one set of them describes. `unknown`: what the evidence lacks."""

    calibration: Calibration
    write: CoefficientBand
    read: CoefficientBand
    about: str
    evidence: str
    unknown: str
    smallest_bytes: int
    largest_bytes: int
    queue_depth: int | None = None

    @property
    def name(self) -> str:
        """How to ask for it."""
        return self.calibration.name

    def band(self, direction: str) -> CoefficientBand:
        """The band of `read` or `write`."""
        return self.write if direction == "write" else self.read


# Fig. 8: writes of 4 KiB that kept the OST full showed an FSU near 70, not 100: an I/O took 0.7 of what the
# coefficients say. Section V: on Hopper's OSTs, almost full, the rate of writes 1/w1 was closer to 220 MB/s and the
# other coefficients similar, without figures.
_SATURATED_SHARE: Final = 0.7
_HOPPER_WRITE_BYTES_PER_S: Final = 220e6

GRACE: Final = CalibrationClass(
    GRACE_2012,
    write=CoefficientBand(
        latency_low_s=GRACE_2012.write.latency_s - (1 - _SATURATED_SHARE) * GRACE_2012.write.seconds(4 * KIB),
        latency_high_s=GRACE_2012.write.latency_s,
        s_per_byte_low=GRACE_2012.write.s_per_byte,
        s_per_byte_high=1 / _HOPPER_WRITE_BYTES_PER_S,
    ),
    read=CoefficientBand(),
    about="one OST on a RAID array of hard disks, 2012",
    evidence="study U, Table I: IOR at eleven transfer sizes on one OST of the test system Grace, fitted to brw_stats;"
    " low end of the write latency: Fig. 8 (4 KiB writes at FSU 70); high end of the writes' time per byte: Hopper's"
    " nearly full OSTs (220 MB/s)",
    unknown="the study gives no spread of the reads, nor how OSTs differ from one another",
    smallest_bytes=4 * KIB,
    largest_bytes=MIB,
)

VIRTUAL_DISK: Final = CalibrationClass(
    Calibration(
        "virtual-disk-2026", Coefficients(9.084212e-05, 5.382047e-10), Coefficients(4.337953e-05, 3.868112e-10)
    ),
    write=CoefficientBand(2.63829e-05, 9.68361e-05, 7.03402e-11, 6.41453e-10),
    read=CoefficientBand(1.41154e-05, 6.30785e-05, 2.73050e-10, 5.97971e-10),
    about="one virtual disk (virtio) of a small virtual machine, 2026",
    evidence="16 runs of fio 3.33, random offsets, O_DIRECT, one second each, fitted on observed sizes (R² 0.973 and"
    " 0.966): docs/examples/virtual-disk-2026.json; ends: lowest and highest of the 95 % intervals of these and of two"
    " sweeps of another day (virtual-disk-2026-b.json, -c.json)",
    unknown="three sweeps: other virtual disks can be outside the band; files of 256 MiB can be answered by a cache of"
    " the host, as the writes of up to 10 GB/s of the other day suggest",
    smallest_bytes=4 * KIB,
    largest_bytes=4 * MIB,
    queue_depth=8,
)

CALIBRATION_CLASSES: Final = {shipped.name: shipped for shipped in (GRACE, VIRTUAL_DISK)}
