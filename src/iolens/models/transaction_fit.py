"""The regression that calibrates the transaction model (paper U, Eqs. 3, 4, 6; SPEC U4), and the guard of Fig. 2.

One run is one equation (ΣN_b/T)·a0 + (ΣN_b·b/T)·a1 = 1. The sums say all there is to know of a run, whatever mix of
sizes it had, because the model is linear.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from iolens.arrays import Floats
from iolens.models.transaction_time import Coefficients

RESAMPLES: Final = 2000
SEED: Final = 20130422
INTERVAL: Final = (2.5, 97.5)  # percentiles of the resamples: 95 % lie between
SINGULAR: Final = 1e-10  # of the squared lengths: below this, sizes are too much alike to tell latency from rate
FLAT: Final = 0.25  # bandwidths within this share of one another are one level


class FitError(ValueError):
    """The runs cannot determine the coefficients, and why."""


@dataclass(frozen=True, slots=True)
class Run:
    """What one run did in one direction: `operations` I/Os of `io_bytes` together, in `duration_s`.

    `moved_bytes` is what its bandwidth is about: the benchmark's own bytes, also where the disk moved more.
    """

    duration_s: float
    operations: float
    io_bytes: float
    moved_bytes: float

    @property
    def bytes_per_s(self) -> float:
        """Measured bandwidth."""
        return self.moved_bytes / self.duration_s


@dataclass(frozen=True, slots=True)
class ResampledInterval:
    """The middle 95 % of the resamples."""

    low: float
    high: float


@dataclass(frozen=True, slots=True)
class TransactionFit:
    """Coefficients of one direction, how sure they are, and how well they tell the bandwidth of the runs."""

    coefficients: Coefficients
    latency_s_ci95: ResampledInterval | None
    s_per_byte_ci95: ResampledInterval | None
    r2: float | None
    mape_pct: float
    unconstrained: Coefficients | None  # the plain regression, where it had a negative coefficient
    predicted_bytes_per_s: tuple[float, ...]


def fit_transactions(runs: Sequence[Run], resamples: int = RESAMPLES, seed: int = SEED) -> TransactionFit:
    """Least squares of Eq. 4, not negative, with the spread of `resamples` drawings of the runs."""
    iops, rates = _equations(runs)
    plain = _solve(*_sums(iops, rates))
    latency, s_per_byte = _not_negative(plain, *_sums(iops, rates))
    if np.isnan(latency):
        raise FitError("all runs have the same size of I/O: latency and time per byte cannot be distinguished")
    fitted = Coefficients(float(latency), float(s_per_byte))
    negative = float(min(plain)) < 0
    predicted = [predicted_bytes_per_s(run, fitted) for run in runs]
    spread = _resampled(iops, rates, resamples, seed)
    return TransactionFit(
        coefficients=fitted,
        latency_s_ci95=_interval(spread[0]),
        s_per_byte_ci95=_interval(spread[1]),
        r2=r_squared([run.bytes_per_s for run in runs], predicted),
        mape_pct=mean_error_pct([run.bytes_per_s for run in runs], predicted),
        unconstrained=Coefficients(float(plain[0]), float(plain[1])) if negative else None,
        predicted_bytes_per_s=tuple(predicted),
    )


def predicted_bytes_per_s(run: Run, coefficients: Coefficients) -> float:
    """Bandwidth the run could reach at best: its bytes over the time its I/Os need (Eq. 6)."""
    return run.moved_bytes / coefficients.counted_seconds(run.operations, run.io_bytes)


def r_squared(measured: Sequence[float], predicted: Sequence[float]) -> float | None:
    """1 − Σ(B−B̂)²/Σ(B−B̄)²; None where all measurements are the same."""
    values, reported = np.asarray(measured), np.asarray(predicted)
    total = float(((values - values.mean()) ** 2).sum())
    return 1.0 - float(((values - reported) ** 2).sum()) / total if total > 0 else None


def mean_error_pct(measured: Sequence[float], predicted: Sequence[float]) -> float:
    """Mean of |B̂ − B|/B in per cent."""
    values, reported = np.asarray(measured), np.asarray(predicted)
    return 100.0 * float(np.abs(reported / values - 1.0).mean())


def _equations(runs: Sequence[Run]) -> tuple[Floats, Floats]:
    """X of Eq. 4: I/Os per second, and bytes per second at the disk."""
    if len(runs) < 2:
        raise FitError(
            f"{len(runs)} run{'s' * (len(runs) != 1)}: two unknowns need at least two runs of different size"
        )
    seconds = np.array([run.duration_s for run in runs], float)
    operations = np.array([run.operations for run in runs], float)
    io_bytes = np.array([run.io_bytes for run in runs], float)
    for name, values in (("duration", seconds), ("number of I/Os", operations), ("bytes", io_bytes)):
        if not (np.isfinite(values).all() and (values > 0).all()):
            raise FitError(f"a run without a {name} above zero says nothing of what an I/O costs")
    return operations / seconds, io_bytes / seconds


def _sums(iops: Floats, rates: Floats) -> tuple[Floats, Floats, Floats, Floats, Floats]:
    """What the normal equations need, over the last axis."""
    return (
        (iops * iops).sum(-1),
        (iops * rates).sum(-1),
        (rates * rates).sum(-1),
        iops.sum(-1),
        rates.sum(-1),
    )


def _solve(ii: Floats, ir: Floats, rr: Floats, i: Floats, r: Floats) -> tuple[Floats, Floats]:
    """The least-squares solution, NaN where the equations are all alike; works on many resamples at once."""
    determinant = ii * rr - ir * ir
    usable = determinant > SINGULAR * ii * rr
    safe = np.where(usable, determinant, 1.0)
    latency = np.where(usable, (i * rr - r * ir) / safe, np.nan)
    s_per_byte = np.where(usable, (ii * r - ir * i) / safe, np.nan)
    return latency, s_per_byte


def _not_negative(
    plain: tuple[Floats, Floats], ii: Floats, ir: Floats, rr: Floats, i: Floats, r: Floats
) -> tuple[Floats, Floats]:
    """A coefficient below zero becomes zero, and the other is fitted again alone.

    Both cannot be negative: then every prediction were negative where 1 is wanted.
    """
    latency, s_per_byte = plain
    return (
        np.where(latency < 0, 0.0, np.where(s_per_byte < 0, i / ii, latency)),
        np.where(s_per_byte < 0, 0.0, np.where(latency < 0, r / rr, s_per_byte)),
    )


def _resampled(iops: Floats, rates: Floats, resamples: int, seed: int) -> tuple[Floats, Floats]:
    """Coefficients of each drawing of as many runs, with replacement; a drawing of one size only is left out."""
    drawn = np.random.default_rng(seed).integers(0, len(iops), (resamples, len(iops)))
    sums = _sums(iops[drawn], rates[drawn])
    latency, s_per_byte = _not_negative(_solve(*sums), *sums)
    usable = np.isfinite(latency)
    return latency[usable], s_per_byte[usable]


def _interval(values: Floats) -> ResampledInterval | None:
    if not len(values):
        return None
    low, high = np.percentile(values, INTERVAL)
    return ResampledInterval(float(low), float(high))


@dataclass(frozen=True, slots=True)
class Asymptote:
    """Where bandwidth against aggregate size stops falling: the fair level, and the smallest size that has it."""

    bytes_per_s: float
    from_bytes: int


def find_asymptote(sizes: Sequence[int], bytes_per_s: Sequence[float], flat: float = FLAT) -> Asymptote | None:
    """The level of the largest sizes, if at least two of them agree on it (Fig. 2); None while it still changes.

    Several runs of one size count as their median.
    """
    levels: dict[int, list[float]] = {size: [] for size in sorted(set(sizes), reverse=True)}
    for size, rate in zip(sizes, bytes_per_s, strict=True):
        levels[size].append(rate)
    tail: list[tuple[int, float]] = []
    for size, rates in levels.items():
        rate = float(np.median(rates))
        if tail and abs(rate - (level := float(np.median([value for _, value in tail])))) > flat * level:
            break
        tail.append((size, rate))
    if len(tail) < 2:
        return None
    return Asymptote(float(np.median([rate for _, rate in tail])), tail[-1][0])
