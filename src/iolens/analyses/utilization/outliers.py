"""Targets that are far from their peers (B2, B7): robust z-scores of mean FSU by median and median absolute deviation.

FSU counts what the disks were asked to do, so a target that stands out got more I/Os, or smaller ones, than its peers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

import numpy as np

if TYPE_CHECKING:
    from iolens.analyses.results import TargetCoverage
    from iolens.analyses.utilization.per_target import TargetUtilization

FEWEST_PEERS: Final = 5  # fewer have no middle to be far from
FAR: Final = 3.5  # the customary limit for this score (Iglewicz and Hoaglin, 1993)
MATTERS_PCT: Final = 1.0  # FSU: closer to the median than this is far only in theory
ENOUGH_TIME: Final = 0.5  # of the longest-reporting peer's hours: a mean over less is of another time
MAD_TO_SIGMA: Final = 1.4826
MEAN_DEVIATION_TO_SIGMA: Final = 1.2533
SAME_FACTOR: Final = 1.5  # bytes and FSU within this factor of each other tell the same story

Reason = Literal["more bytes", "smaller I/Os", "fewer bytes", "larger I/Os", "unknown"]


@dataclass(frozen=True, slots=True)
class TargetOutlier:
    """One target against its peers; ratios are to the peers' median, null where that is zero or unknown."""

    target: str
    mean_pct: float  # FSU by the model of the result
    robust_z: float
    fsu_ratio: float | None
    bytes_ratio: float | None
    reason: Reason


@dataclass(frozen=True, slots=True)
class TargetOutliers:
    """All targets that are far from their peers, the farthest first; `too_short` reported too little to be judged.

    Numbers in per cent are FSU by the model of the result.
    """

    judged: int
    median_pct: float | None
    spread_pct: float | None  # robust standard deviation
    outliers: list[TargetOutlier]
    too_short: list[str]


def target_outliers(targets: Sequence[TargetUtilization], coverage: Sequence[TargetCoverage] = ()) -> TargetOutliers:
    """Targets whose mean FSU is far from that of their peers over the same window."""
    hours = {line.target: line.hours for line in coverage}
    enough = ENOUGH_TIME * max(hours.values(), default=0.0)
    measured = [target for target in targets if target.mean_pct is not None]
    too_short = [target.target for target in measured if hours.get(target.target, enough) < enough]
    peers = [target for target in measured if target.target not in set(too_short)]
    if len(peers) < FEWEST_PEERS:
        return TargetOutliers(0, None, None, [], too_short)
    fsu = np.array([target.mean_pct for target in peers], dtype=float)
    moved = np.array([_moved(target) for target in peers])
    middle, spread = float(np.median(fsu)), robust_spread(fsu)
    usual = float(np.nanmedian(moved)) if np.isfinite(moved).any() else 0.0
    outliers = [
        _outlier(target, (value - middle) / spread, _ratio(value, middle), _ratio(float(bytes_), usual))
        for target, value, bytes_ in zip(peers, fsu.tolist(), moved, strict=True)
        if spread and abs(value - middle) > FAR * spread and abs(value - middle) >= MATTERS_PCT
    ]
    return TargetOutliers(
        len(peers), middle, spread, sorted(outliers, key=lambda outlier: -abs(outlier.robust_z)), too_short
    )


def robust_spread(values: np.ndarray[tuple[int], np.dtype[np.float64]]) -> float:
    """A standard deviation that a few strangers do not widen; where most are equal, from the mean deviation."""
    deviations = np.abs(values - np.median(values))
    return MAD_TO_SIGMA * float(np.median(deviations)) or MEAN_DEVIATION_TO_SIGMA * float(np.mean(deviations))


def _moved(target: TargetUtilization) -> float:
    known = [bytes_ for bytes_ in (target.read_bytes, target.write_bytes) if bytes_ is not None]
    return float(sum(known)) if known else float("nan")


def _ratio(value: float, usual: float) -> float | None:
    return value / usual if usual > 0 and np.isfinite(value) else None


def _outlier(target: TargetUtilization, score: float, fsu: float | None, moved: float | None) -> TargetOutlier:
    assert target.mean_pct is not None
    return TargetOutlier(target.target, target.mean_pct, score, fsu, moved, _reason(score > 0, fsu, moved))


def _reason(busier: bool, fsu: float | None, moved: float | None) -> Reason:
    """Whether the bytes moved explain the difference, or only their size can."""
    if fsu is None or moved is None:
        return "unknown"
    if busier:
        return "smaller I/Os" if fsu > SAME_FACTOR * moved else "more bytes"
    return "larger I/Os" if moved > SAME_FACTOR * fsu else "fewer bytes"
