"""The shipped classes of disks as a result: what each says an I/O costs, how exactly, and where that comes from."""

from __future__ import annotations

from dataclasses import dataclass

from iolens.models.transaction_time import CALIBRATION_CLASSES, CalibrationClass
from iolens.schema import DIRECTIONS


@dataclass(frozen=True, slots=True)
class ClassDirection:
    """One direction of a class: a0 in seconds, a1 in seconds per byte, and their ends; an end is null if not known."""

    direction: str
    latency_s: float
    latency_low_s: float | None
    latency_high_s: float | None
    s_per_byte: float
    s_per_byte_low: float | None
    s_per_byte_high: float | None


@dataclass(frozen=True, slots=True)
class ShippedClass:
    """A class: the sizes it was measured with, what it is about, its evidence, and what the evidence does not tell."""

    name: str
    about: str
    directions: list[ClassDirection]
    smallest_bytes: int
    largest_bytes: int
    queue_depth: int | None
    evidence: str
    unknown: str


@dataclass(frozen=True, slots=True)
class ShippedClasses:
    """All classes that `iolens calibrate use` knows without a store."""

    classes: list[ShippedClass]


def shipped_classes() -> ShippedClasses:
    """The classes in the order of their names."""
    return ShippedClasses([_shown(CALIBRATION_CLASSES[name]) for name in sorted(CALIBRATION_CLASSES)])


def _shown(shipped: CalibrationClass) -> ShippedClass:
    return ShippedClass(
        name=shipped.name,
        about=shipped.about,
        directions=[_direction(shipped, direction) for direction in reversed(DIRECTIONS)],
        smallest_bytes=shipped.smallest_bytes,
        largest_bytes=shipped.largest_bytes,
        queue_depth=shipped.queue_depth,
        evidence=shipped.evidence,
        unknown=shipped.unknown,
    )


def _direction(shipped: CalibrationClass, direction: str) -> ClassDirection:
    cost, band = shipped.calibration.of(direction), shipped.band(direction)
    return ClassDirection(
        direction, cost.latency_s, band.latency_low_s, band.latency_high_s,
        cost.s_per_byte, band.s_per_byte_low, band.s_per_byte_high,
    )  # fmt: skip
