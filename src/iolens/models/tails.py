"""Values with a heavy tail: samples as the models see them, and the distributions that a tail may follow (S4, S5)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

from iolens.arrays import Floats

# Positive values as the tail models see them --------------------------------------------------------------------------
# Exact, quantised by a sampling interval, or counted in bins.
#
# However many there are, they end up in at most `MOST_BINS` bins in rising order, so that a year of samples is compared
# with a model in milliseconds. What a bin knows of its values decides which likelihood is right.

MOST_BINS: Final = 2000
PERMILLES: Final = np.arange(1, 1000) / 1000.0

Rounding = Literal["down", "nearest", "up"]
ROUNDINGS: Final[dict[Rounding, float]] = {"nearest": 0.5, "down": 0.0, "up": 1.0}  # how much below it was


@dataclass(frozen=True, slots=True, eq=False)
class TailSample:
    """Bins in rising order: ends, counts, and the mean logarithm of what is in them.

    `values` are the values themselves, rising, where they are known exactly: then a bin's ends are the smallest and the
    largest value in it. Otherwise a value lies anywhere between its bin's ends (the last may be infinite); `observed`
    is what was seen in each bin where measuring rounds to it, and `least` the smallest value seen.
    """

    lower: Floats
    upper: Floats
    counts: Floats
    mean_log: Floats
    zeros: int = 0
    values: Floats | None = None
    observed: Floats | None = None
    least: float | None = None

    @classmethod
    def of_values(cls, values: NDArray[np.floating]) -> TailSample:
        """Values known exactly, zeros among them."""
        array = _checked(values)
        ordered = np.sort(array[array > 0])
        logs = np.log(ordered)
        starts = _starts(logs)
        ends = np.append(starts[1:], ordered.size)[: starts.size]
        counts = (ends - starts).astype(np.float64)
        means = np.add.reduceat(logs, starts) / counts if ordered.size else logs
        return cls(ordered[starts], ordered[ends - 1], counts, means, array.size - ordered.size, ordered)

    @classmethod
    def of_multiples(
        cls,
        values: NDArray[np.floating],
        quantum: float,
        rounded: Rounding = "nearest",
        often: NDArray[np.integer] | None = None,
    ) -> TailSample:
        """Lengths seen as whole multiples of a sampling interval, which stand for anything that rounds to them.

        The smallest is where the distribution begins (DEFINITIONS "Pareto"), unless it was rounded up to it. `often`
        tells how often each value was seen, if not once.
        """
        array = _checked(values)
        steps, where = np.unique(np.rint(array / quantum), return_inverse=True)
        counts = np.bincount(where, weights=often, minlength=steps.size)
        below = ROUNDINGS[rounded]
        zeros = int(counts[steps == 0].sum())
        steps, counts = steps[steps > 0], counts[steps > 0]
        lower = steps - below if rounded == "up" else np.maximum(steps - below, steps[:1])
        observed = steps * quantum
        return cls.of_bins(lower * quantum, (steps + 1.0 - below) * quantum, counts, zeros, observed, observed[:1])

    @classmethod
    def of_spacings(
        cls,
        interval_s: float,
        requests: NDArray[np.integer] | NDArray[np.floating],
        samples: NDArray[np.integer],
        most: float | None = None,
    ) -> TailSample:
        """Inter-arrival times Δt/N, given how many samples had N requests: each N is known to half a request.

        Where N stands for several numbers near it, `most` is the largest of all.
        """
        order = np.argsort(-requests)
        number = requests[order].astype(np.float64)
        number, counts = number[number > 0], samples[order][number > 0]
        upper = np.where(number > 1, interval_s / np.maximum(number - 0.5, 0.5), np.inf)
        least = interval_s / np.maximum(number[:1], most or 0.0)
        lower = np.maximum(interval_s / (number + 0.5), least)
        return cls.of_bins(lower, upper, counts, int(samples.sum() - counts.sum()), interval_s / number, least)

    @classmethod
    def of_bins(
        cls,
        lower: NDArray[np.floating],
        upper: NDArray[np.floating],
        counts: NDArray[np.integer] | NDArray[np.floating],
        zeros: int = 0,
        observed: NDArray[np.floating] | None = None,
        least: NDArray[np.floating] | None = None,
    ) -> TailSample:
        """A histogram or a sketch; where measuring rounds, `observed` is what was seen in each bin."""
        some = np.asarray(counts) > 0
        low, high = (np.asarray(end, np.float64)[some] for end in (lower, upper))
        number = np.asarray(counts, np.float64)[some]
        if np.any(low <= 0) or np.any(high < low):
            raise ValueError("bins of positive values have ends above zero, in order")
        seen = None if observed is None else np.asarray(observed, np.float64)[some]
        middle = np.sqrt(low * np.where(np.isfinite(high), high, low)) if seen is None else seen
        smallest = None if least is None or not least.size else float(least[0])
        return cls(low, high, number, np.log(middle), zeros, observed=seen, least=smallest)

    @property
    def size(self) -> int:
        """How many positive values."""
        return int(self.counts.sum())

    @property
    def smallest(self) -> float:
        """The smallest positive value, or where the first bin begins."""
        return float(self.lower[0])

    @property
    def smallest_seen(self) -> float:
        """The smallest positive value as it was measured: x_m by DEFINITIONS "Pareto"."""
        return self.smallest if self.least is None else self.least

    @property
    def largest(self) -> float:
        """The largest value, or where the last bin ends (begins, if it has no end)."""
        return float(self.upper[-1] if np.isfinite(self.upper[-1]) else self.lower[-1])

    @property
    def zero_share_pct(self) -> float | None:
        """Share of zeros among all values; None when there are none at all."""
        everything = self.size + self.zeros
        return 100.0 * self.zeros / everything if everything else None

    def quantiles(self, shares: Floats) -> Floats:
        """Of the positive values as measured, by interpolation at (n − 1)·p; of bins, what was seen or the middle."""
        if self.values is not None:
            exact: Floats = np.quantile(self.values, shares)
            return exact
        each = np.exp(self.mean_log) if self.observed is None else self.observed
        rank = shares * (self.counts.sum() - 1.0)
        reached, below = np.cumsum(self.counts), np.floor(rank)
        low, high = (
            each[np.minimum(np.searchsorted(reached, place, side="right"), each.size - 1)]
            for place in (below, below + 1.0)
        )
        between: Floats = low + (rank - below) * (high - low)
        return between

    def bin_ends(self) -> tuple[Floats, Floats, Floats]:
        """Ends of the bins that have one, the share of values up to each, and how many permilles lie in the bin."""
        reached = np.cumsum(self.counts) / self.counts.sum()
        places = np.minimum(np.searchsorted(reached, PERMILLES, side="left"), self.counts.size - 1)
        number = np.bincount(places, minlength=self.counts.size)[np.isfinite(self.upper)].astype(np.float64)
        return self.upper[np.isfinite(self.upper)], reached[np.isfinite(self.upper)], number

    def rest(self, place: int) -> TailSample:
        """The bins from that one on, without the values themselves."""
        return TailSample(self.lower[place:], self.upper[place:], self.counts[place:], self.mean_log[place:])

    def tail(self, start: float) -> TailSample:
        """The part from `start` on, which is the beginning of a bin (or a value)."""
        keep = self.lower >= start
        values = None if self.values is None else self.values[np.searchsorted(self.values, start) :]
        return TailSample(self.lower[keep], self.upper[keep], self.counts[keep], self.mean_log[keep], 0, values)


def _checked(values: NDArray[np.floating]) -> Floats:
    array = np.asarray(values, np.float64)
    if array.ndim != 1 or not np.all(np.isfinite(array)) or np.any(array < 0):
        raise ValueError("a sample is one row of finite numbers, zero or more")
    return array


def _starts(logs: Floats) -> NDArray[np.int64]:
    """Where bins begin: one per distinct value while those are few, else of equal width on a logarithmic scale."""
    if not logs.size:
        return np.empty(0, np.int64)
    changes = np.flatnonzero(np.diff(logs, prepend=-np.inf))
    if changes.size <= MOST_BINS:
        return changes
    number = ((logs - logs[0]) * (MOST_BINS / (logs[-1] - logs[0]))).astype(np.int64)
    return np.flatnonzero(np.diff(np.minimum(number, MOST_BINS - 1), prepend=-1))


# Distributions that a heavy tail may follow, each beginning where the sample does -------------------------------------
# Fitted by maximum likelihood.
#
# Every family is conditional on x ≥ the sample's start, so that likelihoods compare like with like. A value in a bin
# counts with the probability of the bin, an exact one with its density.

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
