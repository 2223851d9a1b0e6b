"""What changed against another period of the same length: load, volumes, metadata operations and usage."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final, Literal

from iolens.analyses.calibration.state import RestsOnCalibration
from iolens.analyses.capacity.analysis import Capacity
from iolens.analyses.metadata import Metadata
from iolens.analyses.results import ratio
from iolens.analyses.utilization.analysis import Utilization

Unit = Literal["%", "B/day", "B", "1/s"]
COMPARED: Final = ("utilization", "metadata", "capacity")  # analyses whose results are set side by side
HOURS: Final = 24.0


@dataclass(frozen=True, slots=True)
class QuantityChange:
    """One quantity in both periods; None is not known."""

    quantity: str
    unit: Unit
    before: float | None
    now: float | None

    @property
    def change_pct(self) -> float | None:
        """Relative to before."""
        if self.before is None or self.now is None or not self.before:
            return None
        return 100.0 * (self.now - self.before) / self.before


@dataclass(frozen=True, slots=True, kw_only=True)
class PeriodChange(RestsOnCalibration):
    """The window of a report against `against_start` … `against_end`; a `reason` where they are not compared.

    The calibration is the weaker one of both.
    """

    filesystem: str
    window_start: datetime | None
    window_end: datetime | None
    against_start: datetime | None = None
    against_end: datetime | None = None
    against_complete_pct: float | None = None
    reason: str = ""
    changes: list[QuantityChange] = field(default_factory=list)


def quantity_changes(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[QuantityChange]:
    """Of results by the name of their analysis; a quantity that both periods lack is left out."""
    earlier, later = _quantities(before), _quantities(now)
    changes = [QuantityChange(name, unit, earlier[name, unit], later[name, unit]) for name, unit in later]
    return [change for change in changes if change.before is not None or change.now is not None]


def _quantities(results: Mapping[str, Any]) -> dict[tuple[str, Unit], float | None]:
    load: Utilization | None = results.get("utilization")
    metadata: Metadata | None = results.get("metadata")
    capacity: Capacity | None = results.get("capacity")
    return {
        ("mean FSU", "%"): load.mean_pct if load else None,
        ("time busy by FSU", "%"): load.busy_time_pct if load else None,
        ("read", "B/day"): _per_day(load, "read_bytes"),
        ("written", "B/day"): _per_day(load, "write_bytes"),
        ("metadata operations", "1/s"): metadata.mean_ops_per_s if metadata else None,
        ("used", "B"): capacity.used_bytes if capacity else None,
    }


def _per_day(load: Utilization | None, column: str) -> float | None:
    """Bytes by the days that targets reported, so that a gap is not less work."""
    if load is None or not load.coverage.hours_median:
        return None
    volumes = [value for day in load.daily if (value := getattr(day, column)) is not None]
    return ratio(sum(volumes), load.coverage.hours_median / HOURS) if volumes else None
