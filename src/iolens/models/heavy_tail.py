"""Is it Pareto? Pareto fits as paper S makes them, four rivals, and a verdict in words."""

from __future__ import annotations

from dataclasses import dataclass
from math import erfc, exp, sqrt
from typing import Final

import numpy as np
from numpy.typing import NDArray

from iolens.arrays import Floats
from iolens.models.resampling import SEED
from iolens.models.tails import (
    EXPONENTIAL,
    FAMILIES,
    LOGNORMAL,
    PARAMETERS,
    PARETO,
    PERMILLES,
    TRUNCATED_PARETO,
    WEIBULL,
    Family,
    TailSample,
    fit,
)
from iolens.units import format_bytes_si

# The Pareto distribution fitted to positive values, as paper S does it and by maximum likelihood ----------------------
# (SPEC S3).
#
# F(x) = 1 − (x_m/x)^α for x ≥ x_m. The paper's x_m is the smallest value and its α the least-squares fit of F; the
# other x_m is where the rest follows a Pareto distribution best, by the Kolmogorov–Smirnov distance. Where measuring
# rounds to multiples of an interval, F is also fitted at the ends of what rounds to each of them.

SMALLEST_TAIL: Final = 50  # values above x_m, where there are as many
FEWEST_BINS: Final = 30  # above x_m, where only bins are known: a distance over few of them is small for nothing
MOST_STARTS: Final = 500  # candidates for x_m
BOOTSTRAP_BINS: Final = 400
BOOTSTRAP_STARTS: Final = 60
STEPS: Final = 6  # of Newton's method, from a good guess
GUESSES: Final = 500  # of α, between the smallest and the largest that any one quantile asks for
CELLS: Final = 30_000  # tails × bins that are worked on at once: as many as a processor's cache holds

Places = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class PaperFit:
    """Least squares of F: `r2` is that of F at the same places. It is below 0 where a constant would fit better."""

    alpha: float
    xm: float
    r2: float


@dataclass(frozen=True, slots=True)
class TailFit:
    """Maximum likelihood above `xm`; `p_value` is the share of Pareto samples that fit worse, None if not asked for.

    `xm` is the best of `xm_candidates`, spread evenly over the `xm_values` distinct values (or bins) it might be.
    """

    alpha: float
    xm: float
    ks: float
    n_tail: int
    p_value: float | None = None
    xm_candidates: int = 0
    xm_values: int = 0


def fit_as_paper(sample: TailSample) -> PaperFit | None:
    """Paper S, DEFINITIONS "Pareto": x_m the smallest value, least squares of F on the 999 permille quantiles.

    None where the permille quantiles are all one value.
    """
    quantiles = sample.quantiles(PERMILLES)
    return _least_squares(sample.smallest_seen, quantiles, PERMILLES, np.ones(PERMILLES.size))


def fit_quantised(sample: TailSample) -> PaperFit | None:
    """The same where measuring rounds: F at the ends of what rounds to each value, weighted by permilles in between.

    x_m is where the first of these intervals begins. None where values are exact, or fewer than two intervals end.
    """
    if sample.observed is None:
        return None
    return _least_squares(sample.smallest, *sample.bin_ends())


def _least_squares(xm: float, values: Floats, shares: Floats, weights: Floats) -> PaperFit | None:
    """α that brings F(`values`) nearest to the `shares`. The sum may have several minima: the lowest is looked for."""
    from scipy.optimize import minimize_scalar

    logs = np.log(values) - np.log(xm)
    apart = (logs > 0) & (weights > 0)
    spread = float(weights @ (shares - np.average(shares, weights=weights)) ** 2) if apart.any() else 0.0
    if not spread > 0:
        return None

    def squares(log_alpha: float) -> float:
        return float(weights @ (-np.expm1(-np.exp(log_alpha) * logs) - shares) ** 2)

    wanted = np.log(-np.log1p(-np.minimum(shares[apart], 1.0 - 1e-12)) / logs[apart])  # each place's own best α
    guesses = np.linspace(wanted.min() - 0.1, wanted.max() + 0.1, GUESSES)
    best = int(np.argmin([squares(guess) for guess in guesses.tolist()]))
    ends = guesses[max(best - 1, 0)], guesses[min(best + 1, GUESSES - 1)]
    nearest = minimize_scalar(squares, bounds=ends, method="bounded", options={"xatol": 1e-10})
    return PaperFit(float(np.exp(nearest.x)), xm, 1.0 - squares(float(nearest.x)) / spread)


def fit_tail(sample: TailSample, resamples: int = 0, seed: int = SEED) -> TailFit | None:
    """x_m by the smallest KS distance, α in closed form; None where there is no tail to speak of."""
    starts = _starts(sample)
    if not starts.size:
        return None
    alphas, distances = _distances(sample, starts)
    best = int(np.argmin(distances))
    xm = float(sample.lower[starts[best]])
    tail = sample.tail(xm)
    p_value = _p_value(sample, resamples, np.random.default_rng(seed)) if resamples else None
    ks = _distance(tail, float(alphas[best]))
    return TailFit(float(alphas[best]), xm, ks, tail.size, p_value, starts.size, _distinct(sample))


def _distinct(sample: TailSample) -> int:
    """Values, or bins where only those are known, at which a tail may begin."""
    if sample.values is None:
        return _possible(sample).size
    return int(np.unique(sample.values[: sample.values.size - int(_needed(sample)) + 1]).size)


def _needed(sample: TailSample) -> float:
    """How many values a tail keeps."""
    return min(SMALLEST_TAIL, max(2.0, float(sample.counts.sum()) / 2.0))


def _starts(sample: TailSample) -> Places:
    """Bins where a tail may begin, or so many of them, evenly."""
    possible = _possible(sample)
    if possible.size <= MOST_STARTS:
        return possible
    return np.unique(possible[np.linspace(0, possible.size - 1, MOST_STARTS).astype(np.int64)])


def _possible(sample: TailSample) -> Places:
    """Bins where a tail may begin: it keeps enough values, and more than one distinct."""
    left = np.cumsum(sample.counts[::-1])[::-1]
    possible = np.flatnonzero(left >= _needed(sample))
    apart = 2 if sample.values is not None else min(FEWEST_BINS, max(2, sample.counts.size // 2))
    return possible[possible <= sample.counts.size - apart]


def _distances(sample: TailSample, starts: Places) -> tuple[Floats, Floats]:
    """α and KS distance for every start; a distance is taken at both ends of every bin, where the counts are exact."""
    left = np.cumsum(sample.counts[::-1])[::-1]
    logs = np.cumsum((sample.counts * sample.mean_log)[::-1])[::-1]
    low = np.log(sample.lower)
    alphas = left[starts] / np.maximum(logs[starts] - left[starts] * low[starts], 1e-12 * left[starts])
    distances = np.empty(starts.size)
    at_once = max(1, CELLS // sample.counts.size)
    for begin in range(0, starts.size, at_once):
        block = slice(begin, begin + at_once)
        rest, places = sample.rest(int(starts[begin])), starts[block] - starts[begin]
        if sample.values is None:
            alphas[block] = _alphas_of_bins(rest, places, alphas[block])
        distances[block] = _farthest(rest, places, alphas[block])
    return alphas, distances


def _farthest(sample: TailSample, starts: Places, alphas: Floats) -> Floats:
    """The KS distance of every tail from its Pareto distribution."""
    low, high = np.log(sample.lower), np.log(sample.upper)
    before = np.concatenate([[0.0], np.cumsum(sample.counts)])
    from_start = low[starts][:, None]
    reached = (before[None, :] - before[starts][:, None]) / (before[-1] - before[starts])[:, None]
    slope = -alphas[:, None]
    apart = np.maximum(
        np.abs(reached[:, 1:] + np.expm1(slope * np.maximum(high - from_start, 0.0))),
        np.abs(reached[:, :-1] + np.expm1(slope * np.maximum(low - from_start, 0.0))),
    )
    apart[np.arange(low.size)[None, :] < starts[:, None]] = 0.0
    values: Floats = apart.max(axis=1)
    return values


def _distance(tail: TailSample, alpha: float) -> float:
    """The KS distance of a tail from the Pareto distribution that begins with it."""
    start = np.log(tail.lower[0])
    if tail.values is not None:
        model = -np.expm1(-alpha * (np.log(tail.values) - start))
        steps = np.arange(tail.values.size + 1) / tail.values.size
        return float(max(np.abs(steps[1:] - model).max(), np.abs(model - steps[:-1]).max()))
    reached = np.cumsum(tail.counts) / tail.counts.sum()
    return float(np.abs(reached + np.expm1(-alpha * (np.log(tail.upper) - start))).max())


def _alphas_of_bins(sample: TailSample, starts: Places, alphas: Floats) -> Floats:
    """For every start the α under which values in its bins are likeliest: that of their middles is only near it."""
    low = np.log(sample.lower)
    width = np.log(sample.upper) - low
    known = np.where(np.isfinite(width), width, 0.0)  # a bin without an end tells nothing but that it was reached
    counts = np.where(np.arange(low.size)[None, :] >= starts[:, None], sample.counts[None, :], 0.0)
    reached = counts @ low - counts.sum(axis=1) * low[starts]
    for _ in range(STEPS):
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            inside = np.fmin(known / np.expm1(alphas[:, None] * known), 1.0 / alphas[:, None])
        inside = np.where(np.isfinite(width), inside, 0.0)
        slope = np.sum(counts * inside, axis=1) - reached
        bend = np.sum(counts * inside * (known + inside), axis=1)
        alphas = np.clip(alphas + slope / np.maximum(bend, 1e-300), alphas / 2.0, alphas * 2.0)
    return alphas


def _p_value(sample: TailSample, resamples: int, random: np.random.Generator) -> float:
    """Share of samples drawn from the fit that are farther from theirs: below x_m as observed, above it Pareto.

    Observed and drawn samples are compared in the same coarse bins, so that the comparison is fair.
    """
    coarse = _coarse(sample)
    edges = np.append(coarse.lower, np.inf)
    observed, alpha, first = _nearest(coarse)
    counts = coarse.counts.astype(np.int64)
    total, in_tail = int(counts.sum()), int(counts[first:].sum())
    body = counts[:first] / max(total - in_tail, 1)
    shares = -np.diff((edges[first:] / edges[first]) ** -alpha)
    worse = 0
    for _ in range(resamples):
        tail_size = int(random.binomial(total, in_tail / total))
        low = random.multinomial(total - tail_size, body) if first else np.empty(0, np.int64)
        drawn = np.concatenate([low, random.multinomial(tail_size, shares / shares.sum())])
        some = drawn > 0
        ends = np.append(edges[:-1][some][1:], np.inf)
        parts = (edges[:-1][some], ends, drawn[some].astype(np.float64), coarse.mean_log[some])
        worse += _nearest(TailSample(*parts))[0] >= observed
    return worse / resamples


def _nearest(sample: TailSample) -> tuple[float, float, int]:
    """Smallest KS distance, its α, and the bin where its tail begins."""
    starts = _starts(sample)
    if not starts.size:
        return 0.0, 1.0, 0
    starts = np.unique(starts[np.linspace(0, starts.size - 1, BOOTSTRAP_STARTS).astype(np.int64)])
    alphas, distances = _distances(sample, starts)
    best = int(np.argmin(distances))
    return float(distances[best]), float(alphas[best]), int(starts[best])


def _coarse(sample: TailSample) -> TailSample:
    """Neighbouring bins together, the last without an end."""
    ends = np.linspace(0, sample.counts.size, min(sample.counts.size, BOOTSTRAP_BINS) + 1).astype(np.int64)[:-1]
    counts = np.add.reduceat(sample.counts, ends)
    means = np.add.reduceat(sample.counts * sample.mean_log, ends) / counts
    lower = sample.lower[ends]
    return TailSample(lower, np.append(lower[1:], np.inf), counts, means)


# Is it Pareto? Two Pareto fits, four rivals, and a verdict in words (SPEC S3, DEFINITIONS "Pareto") -------------------
# Rivals are compared over all positive values, and again over the tail that follows Pareto best: a lognormal
# distribution has a tail that looks like Pareto, and must not be called so.

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
