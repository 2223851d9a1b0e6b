"""When a steady load is a full disk (paper U, Fig. 8; U10), and when an FSU is more than any disk can do (U4)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

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
