"""Is it Pareto? Two Pareto fits, four rivals, and a verdict in words (SPEC S3, DEFINITIONS "Pareto").

Rivals are compared over all positive values, and again over the tail that follows Pareto best: a lognormal distribution
has a tail that looks like Pareto, and must not be called so.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import erfc, exp, sqrt
from typing import Final

import numpy as np
from numpy.typing import NDArray

from iolens.arrays import Floats
from iolens.models.bootstrap import SEED
from iolens.models.pareto import PaperFit, TailFit, fit_as_paper, fit_quantised, fit_tail
from iolens.models.tail_families import (
    EXPONENTIAL,
    FAMILIES,
    LOGNORMAL,
    PARAMETERS,
    PARETO,
    TRUNCATED_PARETO,
    WEIBULL,
    Family,
    fit,
)
from iolens.models.tail_sample import TailSample
from iolens.units import format_bytes_si

SIGNIFICANT: Final = 0.01  # below this, a difference between two families is believed
LEAST_P: Final = 0.1  # share of true Pareto samples that fit worse, below which the tail is hardly one (Clauset et al.)
FEWEST: Final = 50  # values below which families are not distinguished
LEAST_GAIN: Final = 3.32  # log-likelihood that one more parameter wins by chance in 1 of 100 cases
WORDS: Final = {
    PARETO: "Pareto",
    TRUNCATED_PARETO: "Pareto cut off at its maximum",
    EXPONENTIAL: "exponential",
    WEIBULL: "Weibull",
    LOGNORMAL: "lognormal",
}
NESTED: Final = ((PARETO, TRUNCATED_PARETO), (EXPONENTIAL, WEIBULL))


@dataclass(frozen=True, slots=True)
class FittedFamily:
    """One family against Pareto over the same values: `log_likelihood_gain` above 0 speaks for the family.

    `p_value` is of the test that the two are equally good: Vuong's, or the likelihood ratio where one is a case of the
    other.
    """

    model: str
    parameters: dict[str, float]
    log_likelihood: float
    log_likelihood_gain: float
    p_value: float | None


@dataclass(frozen=True, slots=True)
class HeavyTail:
    """What the values follow; `best_model` is of all positive values, `tail_best_model` of those above `mle.xm`.

    `quantised` is a second least-squares fit for values that measuring rounds, null for exact ones. `off_tick_samples`
    are left out: their interval is not the tick.
    """

    samples: int
    off_tick_samples: int
    zero_share_pct: float | None
    unit: str
    paper: PaperFit | None
    quantised: PaperFit | None
    mle: TailFit | None
    best_model: str | None
    tail_best_model: str | None
    verdict: str
    families: list[FittedFamily]


def heavy_tail(
    sample: TailSample, unit: str, resamples: int = 0, seed: int = SEED, off_tick_samples: int = 0
) -> HeavyTail:
    """All of it for one sample; `resamples` of the bootstrap behind the p-value of the tail, 0: none."""
    if sample.size < FEWEST or sample.counts.size < 2:
        few = f"{sample.size:,} positive value{'s' * (sample.size != 1)}"
        few += ", all alike" if sample.size > 1 and sample.counts.size == 1 else ""
        verdict = f"{few}: too few to tell what they follow"
        counted = sample.size, off_tick_samples, sample.zero_share_pct, unit
        return HeavyTail(*counted, None, None, None, None, None, verdict, [])
    mle = fit_tail(sample, resamples, seed)
    whole = Contest.over(sample)
    tail = whole if mle is None or mle.xm <= sample.smallest else Contest.over(sample.tail(mle.xm))
    verdict = _verdict(sample, unit, mle, whole, tail)
    return HeavyTail(
        samples=sample.size,
        off_tick_samples=off_tick_samples,
        zero_share_pct=sample.zero_share_pct,
        unit=unit,
        paper=fit_as_paper(sample),
        quantised=fit_quantised(sample),
        mle=mle,
        best_model=whole.best,
        tail_best_model=tail.best,
        verdict=verdict,
        families=whole.table(),
    )


def multiples(values: Floats, quantum: float, often: NDArray[np.integer] | None = None) -> TailSample:
    """Lengths seen as multiples of a sampling interval, taken as rounded in the way that suits Pareto best.

    Nobody knows how much of the first and the last interval was silent: all three ways are tried.
    """
    tried = [TailSample.of_multiples(values, quantum, "nearest", often)]
    if tried[0].counts.size > 1:
        tried.append(TailSample.of_multiples(values, quantum, "down", often))
        if tried[0].smallest > 1.5 * quantum:
            tried.append(TailSample.of_multiples(values, quantum, "up", often))
    return max(tried, key=lambda sample: fit(PARETO, sample).condensed(sample) if sample.size else 0.0)


@dataclass(frozen=True, slots=True)
class Contest:
    """Families fitted to the same values, with the log-likelihood of every value (or bin)."""

    weights: Floats
    families: dict[str, Family]
    each: dict[str, Floats]
    totals: dict[str, float]

    @classmethod
    def over(cls, sample: TailSample) -> Contest:
        """Fit all of them."""
        families = {name: fit(name, sample) for name in FAMILIES}
        weights = np.ones(sample.values.size) if sample.values is not None else sample.counts
        each = {name: family.log_likelihoods(sample) for name, family in families.items()}
        return cls(weights, families, each, {name: _weighted(weights, values) for name, values in each.items()})

    @property
    def best(self) -> str:
        """The likeliest; where others are not significantly worse, the one with the fewest parameters."""
        running = [self._of_nested(*pair) for pair in NESTED] + [LOGNORMAL]
        likeliest = max(running, key=self.total)
        equal = [name for name in running if name == likeliest or not self.is_better(likeliest, name)]
        return min(equal, key=lambda name: (PARAMETERS[name], -self.total(name)))

    def total(self, name: str) -> float:
        """Log-likelihood of all values."""
        return self.totals[name]

    def is_better(self, name: str, other: str) -> bool:
        """Whether `one` fits better by more than chance and its parameters explain."""
        free = max(PARAMETERS[name] - PARAMETERS[other], 0)
        gain = self.total(name) - self.total(other)
        return gain > free + LEAST_GAIN and self.p_value(name, other) < SIGNIFICANT

    def p_value(self, name: str, other: str) -> float:
        """Two-sided, of the hypothesis that both are equally near to the truth."""
        if (name, other) in NESTED or (other, name) in NESTED:
            return self._p_of_nested(
                min(name, other, key=PARAMETERS.__getitem__), max(name, other, key=PARAMETERS.__getitem__)
            )
        return self._vuong(name, other)

    def table(self) -> list[FittedFamily]:
        """Every family beside Pareto."""
        ground = self.total(PARETO)
        return [
            FittedFamily(
                name,
                self.families[name].parameters,
                self.total(name),
                self.total(name) - ground,
                None if name == PARETO else self.p_value(PARETO, name),
            )
            for name in FAMILIES
        ]

    def _of_nested(self, simple: str, general: str) -> str:
        return general if self._p_of_nested(simple, general) < SIGNIFICANT else simple

    def _p_of_nested(self, simple: str, general: str) -> float:
        """χ² of twice the gain: one degree of freedom; two for an end of support, which no sample exceeds."""
        gain = max(self.total(general) - self.total(simple), 0.0)
        return exp(-gain) if general == TRUNCATED_PARETO else erfc(sqrt(gain))

    def _vuong(self, name: str, other: str) -> float:
        differences = self.each[name] - self.each[other]
        count = float(self.weights.sum())
        mean = _weighted(self.weights, differences) / count
        spread = sqrt(max(_weighted(self.weights, (differences - mean) ** 2) / count, 0.0))
        if spread <= 1e-12 * abs(mean) or spread == 0.0:
            return 1.0 if mean == 0 else 0.0
        return erfc(abs(mean) * sqrt(count) / spread / sqrt(2.0))


def _weighted(weights: Floats, values: Floats) -> float:
    """A weighted sum, in one thread: those of a matrix product cost more than they save here."""
    return float((weights * values).sum())


def _verdict(sample: TailSample, unit: str, mle: TailFit | None, whole: Contest, tail: Contest) -> str:
    words = [_of_whole(sample, unit, whole)]
    share = 100.0 if mle is None else 100.0 * mle.n_tail / sample.size
    if mle is not None and whole.best not in (PARETO, TRUNCATED_PARETO) and tail is not whole:
        largest = f"the largest {share:.3g} %, above {_amount(mle.xm, unit)},"
        alpha = tail.families[tail.best].parameters.get("alpha")
        if alpha is not None:
            words.append(f"{largest} are best described as {WORDS[tail.best]} with alpha {alpha:.3g}")
        else:
            words.append(f"even {largest} where Pareto fits best, are better described as {WORDS[tail.best]}")
    if mle is not None and mle.p_value is not None:
        refused = ": by this test not even its tail is Pareto" if mle.p_value < LEAST_P else ""
        words.append(f"{100 * mle.p_value:.0f} % of true Pareto samples fit worse{refused}")
    return "; ".join(words)


def _of_whole(sample: TailSample, unit: str, whole: Contest) -> str:
    best = whole.best
    if best in (PARETO, TRUNCATED_PARETO):
        shown = whole.families[best].parameters
        return (
            f"{WORDS[best]} with alpha {shown['alpha']:.3g} from {_amount(sample.smallest, unit)} on describes all of"
            " it best"
        )
    gain = whole.total(best) - whole.total(PARETO)
    return f"not Pareto: {WORDS[best]} describes it better (log-likelihood higher by {gain:,.3g})"


def _amount(value: float, unit: str) -> str:
    return f"{format_bytes_si(value, 4)}/s" if unit == "bytes/s" else f"{value:.4g} {unit}"
