"""What a live view shows of one target: its line at a tick, its I/Os by size, its past. None: not known."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from iolens.analyses.results import only_if_present
from iolens.arrays import Floats


@dataclass(frozen=True, slots=True)
class TargetLine:
    """One target at one tick; its field names are the keys of the JSON. None: not known."""

    target: str
    target_kind: str | None
    state: (
        str  # reporting; late: its next interval is overdue; silent: none holds, no number is given; waiting: none yet
    )
    fsu_pct: float | None = None
    fsu_bytes_pct: float | None = None
    util_pct: float | None = None
    read_bytes_per_s: float | None = None
    write_bytes_per_s: float | None = None
    iops: float | None = None
    small_io_pct: float | None = None
    latency_s: float | None = None
    latency_kind: str | None = None
    used_pct: float | None = None
    metadata_ops_per_s: float | None = None
    after_reset: bool = False
    age_s: float | None = None  # of its last interval
    number: int = field(default=0, metadata={"json": False})  # its row in the reading's courses
    server: str | None = only_if_present()

    @property
    def busy_pct(self) -> float | None:
        """FSU from sizes; where a device counts only operations and bytes, from those."""
        return self.fsu_pct if self.fsu_pct is not None else self.fsu_bytes_pct


class SizeRate(NamedTuple):
    """Disk I/Os per second of one direction and size (upper bound)."""

    direction: str
    size_bytes: int
    per_s: float


class Past(NamedTuple):
    """One tick of one target."""

    time_us: int
    busy_pct: float | None
    bytes_per_s: float | None


def known_values(values: Floats) -> list[float | None]:
    """The numbers, None for NaN."""
    return [None if value != value else value for value in values.tolist()]
