"""A workload in numbers that can be written down and drawn from: what `workload` found, ready to be made again (S12).

Bandwidth, time between requests and silences each have a distribution; sizes have shares; hours and weekdays have
factors. Nothing here knows where a model came from or what is made of it: telemetry, fio jobs or IOR scripts.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import exp, inf, isfinite, log
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

from iolens.arrays import Floats

_ENDS: Final = (0.0, 0.0001, 0.0005, *(number / 1000 for number in range(1, 10)))
SHARES: Final = (  # where the quantiles of a marginal are: finer towards both ends
    *_ENDS,
    *(number / 100 for number in range(1, 100)),
    *(round(1.0 - share, 4) for share in reversed(_ENDS)),
)
STEPS: Final = 20_000  # of a numerical mean over a distribution
LONGEST_S: Final = 7 * 86400.0  # a silence without a maximum ends within a week
BALANCE: Final = 12.0  # busy runs may become so much longer or shorter, as a logarithm
OFF_BALANCE: Final = 0.01  # how far the share of reads may stay from what was asked for


@dataclass(frozen=True, slots=True)
class Marginal:
    """A distribution of positive values, never above `maximum`: with α < 2 nothing else would bound its spread.

    "pareto": F(x) = (1 − (xm/x)^α) ÷ (1 − (xm/maximum)^α) for xm ≤ x ≤ maximum, which may be infinite. "quantiles":
    the values at `SHARES`, in between on a straight line of their logarithms; it has no α, and `xm` is its smallest.
    """

    model: Literal["pareto", "quantiles"]
    alpha: float | None
    xm: float
    maximum: float
    quantiles: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        if not 0.0 < self.xm < inf or not self.xm <= self.maximum:
            raise ValueError("values are above zero, and the maximum is not below the smallest")
        if self.model == "pareto" and (self.alpha is None or not 0.0 < self.alpha < inf or self.xm == self.maximum):
            raise ValueError("a Pareto distribution has an alpha above zero and a maximum above xm")
        if self.model == "quantiles":
            falls = any(quantile > other for quantile, other in zip(self.quantiles, self.quantiles[1:], strict=False))
            if len(self.quantiles) != len(SHARES) or falls or not isfinite(self.maximum):
                raise ValueError(f"quantiles are {len(SHARES)} rising finite numbers")

    @classmethod
    def pareto(cls, alpha: float, xm: float, maximum: float = inf) -> Marginal:
        """A Pareto distribution cut off at a maximum."""
        return cls("pareto", alpha, xm, maximum)

    @classmethod
    def of_quantiles(cls, quantiles: tuple[float, ...]) -> Marginal:
        """Whatever has these values at `SHARES`."""
        return cls("quantiles", None, quantiles[0], quantiles[-1], tuple(quantiles))

    def quantile(self, share: Floats) -> Floats:
        """The value below which that share of the values lies."""
        if self.alpha is None:
            return np.clip(np.exp(np.interp(share, SHARES, np.log(self.quantiles))), self.xm, self.maximum)
        return np.minimum(self.xm * (1.0 - share * (1.0 - self._beyond)) ** (-1.0 / self.alpha), self.maximum)

    def upper_quantile(self, share: Floats) -> Floats:
        """The value above which that share of the values lies: exact where the share is very small."""
        if self.alpha is None:
            return self.quantile(1.0 - share)
        within = self._beyond + share * (1.0 - self._beyond)
        with np.errstate(divide="ignore", over="ignore"):
            return np.minimum(self.xm * within ** (-1.0 / self.alpha), self.maximum)

    def cdf(self, value: Floats) -> Floats:
        """The share of the values at or below."""
        inside = np.clip(value, self.xm, self.maximum)
        if self.alpha is None:
            logs, first = np.unique(np.log(self.quantiles)[::-1], return_index=True)  # the last of equal ones
            reached = np.interp(np.log(inside), logs, np.array(SHARES)[::-1][first])
            return np.where(value < self.xm, 0.0, reached)
        values: Floats = -np.expm1(-self.alpha * np.log(inside / self.xm)) / (1.0 - self._beyond)
        return np.minimum(values, 1.0)

    def mean(self) -> float:
        """Infinite for a Pareto distribution without an end whose α is 1 or less."""
        if self.alpha is None:
            return self._mean_of_quantiles()
        ratio, alpha = self.xm / self.maximum, self.alpha
        if alpha == 1.0:
            return inf if ratio == 0.0 else -self.xm * log(ratio) / (1.0 - ratio)
        if ratio == 0.0:
            return inf if alpha < 1.0 else self.xm * alpha / (alpha - 1.0)
        return float(self.xm * alpha / (alpha - 1.0) * (1.0 - ratio ** (alpha - 1.0)) / (1.0 - ratio**alpha))

    @property
    def _beyond(self) -> float:
        """What share would be above the maximum if there were none."""
        return 0.0 if self.alpha is None or self.maximum == inf else (self.xm / self.maximum) ** self.alpha

    def _mean_of_quantiles(self) -> float:
        values = np.array(self.quantiles)
        low, high = values[:-1], values[1:]
        logs = np.log(high / low)
        means = np.where(logs > 1e-9, (high - low) / np.maximum(logs, 1e-9), low)
        return float(np.diff(SHARES) @ means)


@dataclass(frozen=True, slots=True)
class DirectionModel:
    """Reads or writes of one target, in samples of one tick.

    `bandwidth` [bytes/s] is that of samples with traffic; `interarrival` [s] is the tick divided by the requests in
    such a sample. Samples without a request come in runs of `idle` [s], None where there are none; between them,
    samples with requests come in runs of `busy_run_s` on average. `sizes` are pairs of a bin's upper end [bytes] and
    its share of the requests, rising; shares add up to one.
    """

    bandwidth: Marginal
    interarrival: Marginal
    idle: Marginal | None
    busy_run_s: float
    sizes: tuple[tuple[int, float], ...]

    def requests(self, interarrival_s: Floats, tick_s: float) -> Floats:
        """How many requests a sample has whose time between requests is this: at least one, whole."""
        return np.maximum(np.rint(tick_s / interarrival_s), 1.0)

    def mean_requests(self, tick_s: float) -> float:
        """Of samples with traffic."""
        return float(self.requests(self.interarrival.quantile(_middles()), tick_s).mean())

    def mean_size(self) -> float:
        """Bytes of a request, each taken as the upper end of its bin."""
        return sum(size * share for size, share in self.sizes)

    def idle_lengths(self, tick_s: float) -> tuple[NDArray[np.int64], Floats]:
        """Lengths of silences in ticks, each rounded to the nearest but at least one, and how likely each is."""
        if self.idle is None:
            return np.empty(0, np.int64), np.empty(0)
        longest = max(round(min(self.idle.maximum, LONGEST_S) / tick_s), 1)
        first = max(round(self.idle.xm / tick_s), 1)
        lengths = np.arange(min(first, longest), longest + 1, dtype=np.int64)
        reached = self.idle.cdf((lengths.astype(np.float64) + 0.5) * tick_s)
        reached[-1] = 1.0
        return lengths, np.diff(reached, prepend=0.0)

    def mean_idle_s(self, tick_s: float) -> float:
        """Of silences in whole ticks; 0 where there are none."""
        lengths, likely = self.idle_lengths(tick_s)
        return float(lengths @ likely) * tick_s

    def busy_share(self, tick_s: float) -> float:
        """Share of the samples that have traffic."""
        return self.busy_run_s / (self.busy_run_s + self.mean_idle_s(tick_s))


@dataclass(frozen=True, slots=True)
class WorkloadModel:
    """A file system of `targets` that are alike, sampled every `tick_s`.

    `correlation` is that of the normal scores of two targets' bandwidth, where both have traffic. `hours` and `days`
    (Monday first) are factors of the bandwidth in the local time of `timezone`, 1 being usual.
    """

    filesystem: str
    targets: int
    tick_s: float
    timezone: str
    read: DirectionModel
    write: DirectionModel
    read_requests_pct: float
    correlation: float
    hours: tuple[float, ...]
    days: tuple[float, ...]

    def of(self, direction: str) -> DirectionModel:
        """By the direction's name."""
        return self.read if direction == "read" else self.write

    def balanced(self) -> WorkloadModel:
        """With busy runs stretched for one direction and shortened for the other until the mix comes out."""
        wanted = self.read_requests_pct / 100.0
        share = self._read_share_by_power()
        low, high = -BALANCE, BALANCE
        for _ in range(80):
            middle = (low + high) / 2.0
            low, high = (middle, high) if share(middle) < wanted else (low, middle)
        power = (low + high) / 2.0
        if abs(share(power) - wanted) > OFF_BALANCE:
            raise ValueError(
                f"{self.read_requests_pct:g} % reads cannot come of these arrivals and silences,"
                f" only {100.0 * share(power):.1f} %"
            )
        read, write = (
            replace(model, busy_run_s=_stretched(model, sign * power, self.tick_s))
            for model, sign in ((self.read, 1.0), (self.write, -1.0))
        )
        return replace(self, read=read, write=write)

    def read_share(self) -> float:
        """Share of reads among the requests that would come of the model as it stands."""
        return self._read_share_by_power()(0.0)

    def _read_share_by_power(self) -> Callable[[float], float]:
        """The share of reads if their busy runs were longer by e^power, and those of writes shorter."""
        both = [
            (model, sign, model.mean_requests(self.tick_s), model.mean_idle_s(self.tick_s))
            for model, sign in ((self.read, 1.0), (self.write, -1.0))
        ]

        def share(power: float) -> float:
            runs = [_stretched(model, sign * power, self.tick_s) for model, sign, _, _ in both]
            read, write = (
                number * run / (run + silence) for run, (_, _, number, silence) in zip(runs, both, strict=True)
            )
            return read / (read + write)

        return share


def _stretched(model: DirectionModel, power: float, tick_s: float) -> float:
    """A busy run longer by e^power, but no shorter than a tick; where there are no silences, it does not matter."""
    return model.busy_run_s if model.idle is None else max(model.busy_run_s * exp(power), tick_s)


def _middles() -> Floats:
    return (np.arange(STEPS) + 0.5) / STEPS
