"""What a plan answers case by case, and the measurements behind it; shared by the plans and what checks them."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import date

import numpy as np
from numpy.typing import NDArray

from iolens.analyses.results import not_in_json, only_if_present
from iolens.models.dom import Method
from iolens.units import format_bytes

Interval = tuple[float, float]


@dataclass(frozen=True, slots=True)
class CapacityCase:
    """One capacity: `low_bytes` and `high_bytes` with every input at the end that asks for least or most.

    `ci95` is the middle 95 % of 2,000 draws of the inputs; null where every input is a single value.
    """

    ssi: float
    purge_days: float
    purge_fraction: float
    daily_growth_bytes: int
    capacity_bytes: int
    low_bytes: int
    high_bytes: int
    ci95: tuple[int, int] | None
    name: str


@dataclass(frozen=True, slots=True)
class ClassVerdict:
    """One class of drives against one case; lifetimes in years, null where nothing is written.

    It suffices when its rating is at least the high end of what is needed.
    """

    class_dwpd: float
    suffices: bool
    strict_suffices: bool
    lifetime_years: float | None
    headroom_years: float | None
    strict_lifetime_years: float | None
    strict_headroom_years: float | None


@dataclass(frozen=True, slots=True)
class LargerDrive:
    """The same case on as many drives of another size (Eq. 4)."""

    drive_bytes: int
    dwpd: float
    strict_host_dwpd: float
    class_dwpd: float | None
    strict_class_dwpd: float | None


@dataclass(frozen=True, slots=True)
class EnduranceCase:
    """Drive writes per day that one case needs; `low_…` and `high_…` with inputs at the ends that ask least or most.

    Intervals are the middle 95 % of 2,000 draws of the inputs; null where every input is a single value. `needed_…` is
    the class that suffices by the published equation and by host writes strictly counted; null: none on offer does.
    """

    ssi: float
    fswpd: float
    data: int
    parity: int
    waf: float
    dwpd: float
    strict_host_dwpd: float
    strict_nand_dwpd: float
    rmw: float
    capacity_ratio: float
    low_dwpd: float
    high_dwpd: float
    ci95: Interval | None
    strict_host_low_dwpd: float
    strict_host_high_dwpd: float
    strict_host_ci95: Interval | None
    strict_nand_low_dwpd: float
    strict_nand_high_dwpd: float
    strict_nand_ci95: Interval | None
    class_dwpd: float | None
    strict_class_dwpd: float | None
    needed_class_dwpd: float | None
    classes: list[ClassVerdict]
    larger_drives: list[LargerDrive]
    name: str

    @property
    def published_need_dwpd(self) -> float:
        """What a drive must stand by the published equation."""
        return worst(self.high_dwpd, self.ci95)

    @property
    def strict_need_dwpd(self) -> float:
        """What a drive must stand in host writes."""
        return worst(self.strict_host_high_dwpd, self.strict_host_ci95)


@dataclass(frozen=True, slots=True)
class FileSystemWrites:
    """File-system writes per day: bytes written on a UTC day ÷ capacity. Null without a store that knows them.

    Days that are not complete are `left_out`; where less coverage was asked for, they are scaled to a whole day.
    """

    mean: float | None = None
    median: float | None = None
    p95: float | None = None
    max: float | None = None
    days: int = 0
    mean_ci95: Interval | None = None
    days_left_out: int = 0
    left_out: list[date] = field(default_factory=list)
    days_scaled: int = 0
    days_without_writes: int = 0
    first_day: date | None = None
    last_day: date | None = None
    capacity_bytes: int | None = None
    origin: str | None = None
    capacity_origin: str | None = None
    daily: NDArray[np.float64] | None = not_in_json()


@dataclass(frozen=True, slots=True)
class WriteAmplification:
    """WAF over the drives of the store; `fleet` is all their flash bytes ÷ all their host bytes.

    `drives_read_later` had no reading before the window's end: the first after it counts.
    """

    drives: int = 0
    drives_read_later: int = 0
    min: float | None = None
    median: float | None = None
    p95: float | None = None
    max: float | None = None
    mean: float | None = None
    fleet: float | None = None
    origin: str | None = None


def worst(high: float, ends: Interval | None) -> float:
    """The high end, or that of the interval where it reaches further."""
    return max(high, ends[1] if ends is not None else 0.0)


@dataclass(frozen=True, slots=True)
class DomThreshold:
    """What one DOM threshold needs, by one method. Costs are those of MDTs and OSTs together.

    `files_whole_pct` is the share of files that surely fit below the threshold, `capacity_pct` the average total as a
    share of the new capacity, `total_ci95` the middle 95 % of 2,000 resamples of the inodes, all in the average case.
    """

    dom_bytes: int
    method: Method
    dom_min_bytes: int | None
    dom_avg_bytes: int | None
    dom_max_bytes: int | None
    inode_min_bytes: int | None
    inode_avg_bytes: int | None
    inode_max_bytes: int | None
    total_min_bytes: int | None
    total_avg_bytes: int | None
    total_max_bytes: int | None
    total_ci95: tuple[float, float] | None
    files_whole_pct: float
    capacity_pct: float | None
    cost_min: float | None = only_if_present()
    cost_avg: float | None = only_if_present()
    cost_max: float | None = only_if_present()
    cost_over_inodes_only: float | None = only_if_present()

    @property
    def name(self) -> str:
        """`DOM up to 1 MiB`."""
        return f"DOM up to {format_bytes(self.dom_bytes)}"


@dataclass(frozen=True, slots=True)
class PerformanceCase:
    """What one speed asks for at one percentile (100: the largest tick; null: demand was given).

    `low_required` and `high_required` take SSI and demand at their ends; `ci95` is the middle 95 % of 2,000 draws of
    days and of SSI, null where neither is uncertain. The largest tick has no interval of its own: a longer window may
    hold a larger one.
    """

    ssi: float
    measure: str
    unit: str
    percentile: float | None
    demand: float
    required: float
    low_required: float
    high_required: float
    ci95: tuple[float, float] | None
    tick: str = field(default="tick", metadata={"json": False})

    @property
    def name(self) -> str:
        """`SSI 3, 99 % of ticks`, or of days where a tick is a day."""
        share = self.percentile
        measured = f"largest {self.tick}" if share == 100 else f"{share or 0.0:g} % of {self.tick}s"
        words = "as given" if share is None else measured
        return f"SSI {self.ssi:g}, {words}"
