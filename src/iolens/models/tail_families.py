"""Distributions that a heavy tail may follow, each beginning where the sample does, fitted by maximum likelihood.

Every family is conditional on x ≥ the sample's start, so that likelihoods compare like with like. A value in a bin
counts with the probability of the bin, an exact one with its density.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np

from iolens.arrays import Floats
from iolens.models.tail_sample import TailSample

PARETO, TRUNCATED_PARETO, EXPONENTIAL, WEIBULL, LOGNORMAL = (
    "pareto", "truncated_pareto", "exponential", "weibull", "lognormal",
)  # fmt: skip
FAMILIES: Final = (PARETO, TRUNCATED_PARETO, EXPONENTIAL, WEIBULL, LOGNORMAL)
PARAMETERS: Final = {PARETO: 1, TRUNCATED_PARETO: 2, EXPONENTIAL: 1, WEIBULL: 2, LOGNORMAL: 2}
LEAST_LIKELY: Final = -1e6  # log-likelihood of what a family calls impossible: it loses, and sums stay finite
LARGEST_EXPONENT: Final = 700.0
ALPHAS: Final = (0.05, 1e6)  # of what is cut off: with less it has no tail worth the name
SHAPES: Final = (1e-6, 50.0)  # of a Weibull distribution
MOST_WIDE: Final = 60.0  # of a lognormal: beyond, it is a Pareto distribution in all but name


@dataclass(frozen=True, slots=True)
class Family:
    """One family with its parameters: logarithms of density and survival, both of ln x and given that x ≥ its start.

    `parameters` are named as people know them.
    """

    name: str
    parameters: dict[str, float]
    log_density: Callable[[Floats], Floats]
    log_survival: Callable[[Floats], Floats]

    def log_likelihoods(self, sample: TailSample) -> Floats:
        """Of every value; where only bins are known, of one value of every bin."""
        return _bounded(self._of_bins(sample) if sample.values is None else self.log_density(np.log(sample.values)))

    def condensed(self, sample: TailSample) -> float:
        """The log-likelihood of all values as if those of a bin were alike: near enough to find parameters by."""
        each = self._of_bins(sample) if sample.values is None else self.log_density(sample.mean_log)
        return float(sample.counts @ _bounded(each))

    def _of_bins(self, sample: TailSample) -> Floats:
        low, high = (self.log_survival(np.log(end)) for end in (sample.lower, sample.upper))
        with np.errstate(divide="ignore", invalid="ignore"):
            return low + np.log(-np.expm1(np.minimum(high - low, 0.0)))


def _bounded(each: Floats) -> Floats:
    return np.maximum(np.nan_to_num(each, nan=LEAST_LIKELY, posinf=LEAST_LIKELY, neginf=LEAST_LIKELY), LEAST_LIKELY)


def pareto(alpha: float, start: float) -> Family:
    """S(x) = (start/x)^α."""
    low = float(np.log(start))

    def log_density(logs: Floats) -> Floats:
        values: Floats = np.log(alpha) - alpha * (logs - low) - logs
        return values

    return Family(PARETO, {"alpha": alpha, "xm": start}, log_density, lambda logs: -alpha * (logs - low))


def truncated_pareto(alpha: float, start: float, end: float) -> Family:
    """A Pareto distribution of which nothing beyond `end` exists."""
    low = float(np.log(start))
    cut = min(float(np.exp(-alpha * (np.log(end) - low))), 1.0 - 1e-12)

    def log_survival(logs: Floats) -> Floats:
        with np.errstate(divide="ignore"):
            values: Floats = np.log(np.maximum(np.exp(-alpha * (logs - low)) - cut, 0.0)) - np.log1p(-cut)
        return values

    def log_density(logs: Floats) -> Floats:
        array: Floats = np.log(alpha) - alpha * (logs - low) - logs - np.log1p(-cut)
        return array

    return Family(TRUNCATED_PARETO, {"alpha": alpha, "xm": start, "maximum": end}, log_density, log_survival)


def exponential(mean: float, start: float) -> Family:
    """S(x) = exp(−(x − start)/mean)."""
    return Family(
        EXPONENTIAL,
        {"mean": mean, "start": start},
        lambda logs: -np.log(mean) - (np.exp(logs) - start) / mean,
        lambda logs: -(np.exp(logs) - start) / mean,
    )


def weibull(shape: float, hazard: float, start: float) -> Family:
    """S(x) = exp(−hazard·((x/start)^shape − 1)/shape): Weibull beyond its start, Pareto as the shape goes to 0."""
    low = np.log(start)

    def log_survival(logs: Floats) -> Floats:
        with np.errstate(over="ignore"):
            values: Floats = -hazard * np.expm1(np.minimum(shape * (logs - low), LARGEST_EXPONENT)) / shape
        return values

    def log_density(logs: Floats) -> Floats:
        array: Floats = np.log(hazard) + shape * (logs - low) - logs + log_survival(logs)
        return array

    scale = float(np.exp(np.clip(low + np.log(shape / hazard) / shape, -LARGEST_EXPONENT, LARGEST_EXPONENT)))
    return Family(WEIBULL, {"shape": shape, "scale": scale}, log_density, log_survival)


def lognormal(mu: float, sigma: float, start: float) -> Family:
    """The logarithm of x is normal with mean μ and standard deviation σ, and at least that of the start."""
    from scipy.special import log_ndtr

    below = float(log_ndtr((mu - np.log(start)) / sigma))

    def log_density(logs: Floats) -> Floats:
        values: Floats = -0.5 * ((logs - mu) / sigma) ** 2 - np.log(sigma * np.sqrt(2.0 * np.pi)) - logs - below
        return values

    def log_survival(logs: Floats) -> Floats:
        array: Floats = log_ndtr((mu - logs) / sigma) - below
        return array

    return Family(LOGNORMAL, {"mu": mu, "sigma": sigma}, log_density, log_survival)


def fit(name: str, sample: TailSample) -> Family:
    """The member of a family under which the sample is likeliest."""
    family: Family = _FITS[name](sample)
    return family


def _fit_pareto(sample: TailSample) -> Family:
    return _likeliest(sample, lambda alpha: pareto(alpha, sample.smallest), _first_alpha(sample))


def _fit_truncated(sample: TailSample) -> Family:
    end = sample.largest * (1.0 + 1e-12)
    first = _within(_first_alpha(sample), ALPHAS)
    return _likeliest(sample, lambda alpha: truncated_pareto(alpha, sample.smallest, end), first, ALPHAS)


def _fit_exponential(sample: TailSample) -> Family:
    excess = _mean(sample, np.exp(sample.mean_log)) - sample.smallest
    return _likeliest(sample, lambda mean: exponential(mean, sample.smallest), max(excess, 1e-9 * sample.smallest))


def _fit_weibull(sample: TailSample) -> Family:
    """For every shape, the hazard is known in closed form, or nearly so: only the shape is searched for by its own."""
    ratios = sample.mean_log - np.log(sample.smallest)

    def family(shape: float, factor: float = 1.0) -> Family:
        excess = _mean(sample, np.expm1(np.minimum(shape * ratios, LARGEST_EXPONENT))) / shape
        return weibull(shape, factor / max(excess, 1e-12), sample.smallest)

    if sample.values is not None:
        return _likeliest(sample, family, 0.5, SHAPES)
    return _likeliest_of_two(
        sample, lambda value, other: family(_within(np.exp(value), SHAPES), np.exp(other)), (-1.0, 0.0)
    )


def _fit_lognormal(sample: TailSample) -> Family:
    mean = _mean(sample, sample.mean_log)
    spread = np.sqrt(max(_mean(sample, (sample.mean_log - mean) ** 2), 1e-12))

    def family(mu: float, log_sigma: float) -> Family:
        return lognormal(mu, min(float(np.exp(log_sigma)), MOST_WIDE), sample.smallest)

    return _likeliest_of_two(sample, family, (mean, float(np.log(spread))))


_FITS: Final = {
    PARETO: _fit_pareto,
    TRUNCATED_PARETO: _fit_truncated,
    EXPONENTIAL: _fit_exponential,
    WEIBULL: _fit_weibull,
    LOGNORMAL: _fit_lognormal,
}


def _mean(sample: TailSample, values: Floats) -> float:
    return float(sample.counts @ values / sample.counts.sum())


def _first_alpha(sample: TailSample) -> float:
    return 1.0 / max(_mean(sample, sample.mean_log) - float(np.log(sample.smallest)), 1e-9)


def _within(value: float, limits: tuple[float, float]) -> float:
    return float(min(max(value, limits[0]), limits[1]))


def _likeliest(
    sample: TailSample,
    family: Callable[[float], Family],
    first: float,
    limits: tuple[float, float] = (1e-300, 1e300),
) -> Family:
    """Over one positive parameter, from a first guess."""
    from scipy.optimize import minimize_scalar

    def member(log_parameter: float) -> Family:
        return family(_within(float(np.exp(log_parameter)), limits))

    start = float(np.log(first))
    result = minimize_scalar(
        lambda item: -member(item).condensed(sample), bracket=(start - 0.3, start + 0.3), options={"xtol": 1e-9}
    )
    return member(float(result.x))


def _likeliest_of_two(
    sample: TailSample, family: Callable[[float, float], Family], first: tuple[float, float]
) -> Family:
    from scipy.optimize import minimize

    def unlikeliness(parameters: Floats) -> float:
        return -family(*parameters.tolist()).condensed(sample)

    options = {"xatol": 1e-6, "fatol": 1e-6, "maxiter": 600}
    return family(*minimize(unlikeliness, np.array(first), method="Nelder-Mead", options=options).x.tolist())
