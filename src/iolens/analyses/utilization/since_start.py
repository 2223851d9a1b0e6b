"""What raw counters say of the time before the first interval: they count since a mount, or since they were cleared."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from iolens.analyses.quotients import ratio
from iolens.models.transaction_time import SIZE_COLUMNS
from iolens.store.selection import Selection
from iolens.units import MIB, from_epoch_us


@dataclass(frozen=True, slots=True)
class SizeCount:
    """Disk I/Os of one size bin (its upper bound)."""

    direction: str
    size_bytes: int
    count: int


@dataclass(frozen=True, slots=True)
class CountersSinceStart:
    """Disk I/Os since the counters of each target began, where no interval is known.

    `first_start` and `last_start` are when counting began, of the targets; null where a version does not say it.
    """

    targets: int
    first_start: datetime | None
    last_start: datetime | None
    first_sample: datetime
    last_sample: datetime
    ios: int
    suboptimal_pct: float | None
    io_sizes: list[SizeCount]

    @classmethod
    def of(cls, selection: Selection) -> CountersSinceStart | None:
        """By the newest sample of each target; None: there is none with sizes of disk I/Os."""
        newest = selection.last_counters("target_sizes")
        if not newest:
            return None
        counters = [last.counters.counters for last in newest]
        sizes = [
            SizeCount(direction, size, sum(counted.get(name, 0) for counted in counters))
            for name, (direction, size) in SIZE_COLUMNS.items()
        ]
        total = sum(size.count for size in sizes)
        smaller = sum(size.count for size in sizes if size.size_bytes < MIB)
        starts = [last.counters.start_us for last in newest]
        known = [start_us for start_us in starts if start_us is not None]
        says = len(known) == len(starts)
        return cls(
            targets=len(newest),
            first_start=from_epoch_us(min(known)) if says else None,
            last_start=from_epoch_us(max(known)) if says else None,
            first_sample=from_epoch_us(min(last.time_us for last in newest)),
            last_sample=from_epoch_us(max(last.time_us for last in newest)),
            ios=total,
            suboptimal_pct=ratio(100.0 * smaller, total),
            io_sizes=sizes,
        )
