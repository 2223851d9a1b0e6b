"""What better runs of the same application reached: the measured part of an estimated gain."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from iolens.findings.rule import LIKE_RUNS, Finding

FEWEST: Final = 5  # like runs that a gain is estimated from
LEAST_GAIN: Final = 1.05  # a run that is nearly as fast as the best quartile has nothing to gain from being like them


@dataclass(frozen=True, slots=True)
class LikeRates:
    """Runs of the same user, program and number of processes, and the rate that a quarter of them reaches."""

    runs: int
    best_quartile_mib_per_s: float


def like_rates(rates_mib_per_s: Sequence[float]) -> LikeRates | None:
    """Of the rates of other runs; None: too few to say."""
    known = [rate for rate in rates_mib_per_s if rate is not None and np.isfinite(rate)]
    return LikeRates(len(known), float(np.percentile(known, 75))) if len(known) >= FEWEST else None


def with_gain(findings: Sequence[Finding], like: LikeRates | None, rate_mib_per_s: float | None) -> tuple[Finding, ...]:
    """Findings with the gain that like runs show; where they show none, with that of the study, if any."""
    if like is None or not rate_mib_per_s:
        return tuple(findings)
    gain = like.best_quartile_mib_per_s / rate_mib_per_s
    if gain < LEAST_GAIN:
        return tuple(findings)
    return tuple(replace(finding, estimated_gain=gain, gain_from=LIKE_RUNS) for finding in findings)
