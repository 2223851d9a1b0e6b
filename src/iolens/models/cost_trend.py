"""How a cost changes with age and fullness: a line through the logarithms of monthly estimates.

Each month counts by the width of its own interval; where months differ more than their intervals say, the interval of
the change is wider for it. Age and fullness are separated where they did not move together.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from iolens.arrays import Floats

FEWEST_MONTHS: Final = 3
TOGETHER: Final = 0.9  # of the squared correlation of age and fullness: from there on they are one
LEAST_POINTS: Final = 5.0  # of fullness between the emptiest and the fullest month
LEAST_ERROR: Final = 0.002  # of a month's logarithm: no estimate is better than that
TOO_LITTLE: Final = "too little data"
_SPREADS: Final = 2 * 1.96  # of a 95 % interval


@dataclass(frozen=True, slots=True)
class Change:
    """In per cent, with 95 %."""

    pct: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class CostTrend:
    """What a year, and ten points of fullness, add to a cost; None where that is not known, and `note` says why."""

    per_year: Change | None
    per_10_points: Change | None
    note: str = ""


def cost_trend(years: Floats, fullness_pct: Floats, costs: Floats, low: Floats, high: Floats) -> CostTrend:
    """Of months with an interval; fullness NaN: not known. All at once where age and fullness are apart."""
    if years.size < FEWEST_MONTHS:
        return CostTrend(None, None, f"{TOO_LITTLE}: {years.size} of {FEWEST_MONTHS} identified months")
    logs, errors = np.log(costs), np.maximum((np.log(high) - np.log(low)) / _SPREADS, LEAST_ERROR)
    known = np.isfinite(fullness_pct)
    tens = fullness_pct / 10
    if known.sum() < FEWEST_MONTHS or np.ptp(fullness_pct[known]) < LEAST_POINTS:
        why = "fullness is not known" if known.sum() < FEWEST_MONTHS else "fullness hardly changed"
        return CostTrend(_slopes(years[:, None], logs, errors)[0], None, why)
    together = np.corrcoef(years[known], tens[known])[0, 1] ** 2 > TOGETHER
    if not together and known.sum() > FEWEST_MONTHS:
        both = _slopes(np.stack([years, tens], axis=1)[known], logs[known], errors[known])
        return CostTrend(both[0], both[1], "")
    why = "age and fullness moved together" if together else f"{FEWEST_MONTHS} months do not tell age from fullness"
    per_10 = _slopes(tens[known][:, None], logs[known], errors[known])[0]
    return CostTrend(_slopes(years[:, None], logs, errors)[0], per_10, f"{why}: each is as if the other had no effect")


def _slopes(terms: Floats, logs: Floats, errors: Floats) -> list[Change]:
    """What one more of each term adds, by weighted least squares with Student's t."""
    from scipy.special import stdtrit

    design = np.column_stack([np.ones(logs.size), terms]) / errors[:, None]
    freedom = logs.size - design.shape[1]
    fitted = np.linalg.lstsq(design, logs / errors, rcond=None)[0]
    left = logs / errors - design @ fitted
    scale = max(float(left @ left) / freedom, 1.0)
    spread = np.sqrt(np.diagonal(np.linalg.inv(design.T @ design)) * scale) * -float(stdtrit(freedom, 0.025))
    ends = np.stack([fitted, fitted - spread, fitted + spread])[:, 1:]
    return [Change(*(100 * np.expm1(np.minimum(column, 100.0))).tolist()) for column in ends.T]
