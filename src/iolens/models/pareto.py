"""The Pareto distribution fitted to positive values, as paper S does it and by maximum likelihood (SPEC S3).

F(x) = 1 − (x_m/x)^α for x ≥ x_m. The paper's x_m is the smallest value and its α the least-squares fit of F; the other
x_m is where the rest follows a Pareto distribution best, by the Kolmogorov–Smirnov distance. Where measuring rounds to
multiples of an interval, F is also fitted at the ends of what rounds to each of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from iolens.arrays import Floats
from iolens.models.bootstrap import SEED
from iolens.models.tail_sample import PERMILLES, TailSample

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
