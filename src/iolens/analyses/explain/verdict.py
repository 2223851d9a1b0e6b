"""Which factors explain a slow run: unusual for it, and known to go with its performance (DEFINITIONS, Was it me)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np

from iolens.analyses.explain.results import ExplainedFactor, Verdict
from iolens.arrays import Floats
from iolens.models.rank_correlation import holm, percentile_of, spearman

LOW_PCT: Final = 10.0
HIGH_PCT: Final = 90.0
SIGNIFICANCE: Final = 0.05
COUNTS: Final = ("bytes", "opens")


@dataclass(frozen=True, slots=True, eq=False)
class FactorValues:
    """One factor: of the run, of its history, and of the runs over which it is related to performance. NaN: not known.

    `least_difference`: a run that is nearer to the median of its history is as usual. `shown` is the value in words.
    `others_rate` and `others_rates`: a second number that has to be high as well; coverage has one. A value below
    `harmful_from` harms nobody. Not `is_possible`: the run has nothing that it could slow down.
    """

    name: str
    value: float
    history: Floats
    related: Floats
    performance: Floats
    least_difference: float = 0.0
    shown: str | None = None
    harmful_from: float = -math.inf
    is_possible: bool = True
    others_rate: float = math.nan
    others_rates: Floats = field(default_factory=lambda: np.empty(0))


def judged(factors: Sequence[FactorValues], is_enough: bool, is_slow: bool) -> list[ExplainedFactor]:
    """All factors with percentile, ρ and p; those that explain a slow run are named."""
    lines = [_judged(factor, is_enough) for factor in factors]
    tested = [place for place, line in enumerate(lines) if line.p is not None]
    corrected = holm([p for line in lines if (p := line.p) is not None])
    for place, p in zip(tested, corrected, strict=True):
        line = replace(lines[place], p_holm=p)
        lines[place] = replace(line, named=is_slow and _explains(line, factors[place]))
    return lines


def verdict_of(own: Sequence[ExplainedFactor], system: Sequence[ExplainedFactor], is_slow: bool | None) -> Verdict:
    """By the named factors; None: the history is too short to say."""
    if is_slow is None:
        return "too little history"
    if not is_slow:
        return "not slow"
    by_own, by_system = (any(line.named for line in lines) for lines in (own, system))
    if by_own and by_system:
        return "both"
    return "own" if by_own else "system" if by_system else "unexplained"


def _judged(factor: FactorValues, is_enough: bool) -> ExplainedFactor:
    is_known = ~(np.isnan(factor.related) | np.isnan(factor.performance))
    related = spearman(factor.related[is_known], factor.performance[is_known]) if is_enough else None
    rho, p = related or (None, None)
    percentile = percentile_of(factor.value, factor.history) if is_enough else None
    return ExplainedFactor(factor.name, _shown(factor), percentile, rho, p, None, int(is_known.sum()), named=False)


def _shown(factor: FactorValues) -> float | str | None:
    """The value as it is given: counts are whole numbers, a strategy has a name."""
    if math.isnan(factor.value):
        return None
    return factor.shown or (int(factor.value) if factor.name in COUNTS else factor.value)


def _explains(line: ExplainedFactor, factor: FactorValues) -> bool:
    """Whether the run is beyond its history in the direction in which runs are slower."""
    if line.percentile is None or line.rho is None or line.p_holm is None or line.p_holm >= SIGNIFICANCE:
        return False
    is_beyond = line.percentile > HIGH_PCT if line.rho < 0 else line.percentile < LOW_PCT
    is_harmful = factor.is_possible and factor.value >= factor.harmful_from
    return is_beyond and is_harmful and _differs(factor) and _is_by_others(factor)


def _differs(factor: FactorValues) -> bool:
    known = factor.history[~np.isnan(factor.history)]
    return abs(factor.value - float(np.median(known))) > factor.least_difference


def _is_by_others(factor: FactorValues) -> bool:
    """A slow run lasts longer, and others move more in that time: they must have done more per second as well."""
    if not factor.others_rates.size:
        return True
    place = percentile_of(factor.others_rate, factor.others_rates)
    return place is not None and place > HIGH_PCT
