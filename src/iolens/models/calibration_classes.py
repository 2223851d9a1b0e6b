"""The classes of disks that iolens ships: coefficients with their evidence and their band, for a person to choose.

A class is here only where its numbers can be traced: printed in a study, or fitted by `iolens calibrate fit` to runs
that are published. An end of a band that the evidence does not tell is None, never a guess.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from iolens.models.transaction_time import GRACE_2012, Calibration, Coefficients
from iolens.units import KIB, MIB


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
