"""A workload in numbers that can be written down and drawn from: what `workload` found, ready to be made again (S12).

Bandwidth, time between requests and silences each have a distribution; sizes have shares; hours and weekdays have
factors. Nothing here knows where a model came from or what is made of it: telemetry, fio jobs or IOR scripts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import date
from math import erfc, exp, inf, isfinite, log, sqrt
from typing import Final, Literal
from zoneinfo import ZoneInfo

import numpy as np
from numpy.typing import NDArray

from iolens.arrays import Floats, Integers
from iolens.units import from_epoch_us

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


# How much a workload model asks for at once ---------------------------------------------------------------------------
# Bytes and requests per second of targets together (SPEC S12, B10).
#
# Times are drawn from the model's own distributions: which targets are busy, and how fast, with their correlation. The
# rhythm of the week is left out: its hours are already in the distributions, only their coincidence is not.

DIRECTIONS: Final = ("read", "write")
SEED: Final = 20100
MOST_TIMES: Final = 20_000
FEWEST_TIMES: Final = 2_000
MOST_TARGETS: Final = 2_000  # drawn; more than these are as even as these
DRAWS: Final = MOST_TARGETS * FEWEST_TIMES  # targets × times
AT_ONCE: Final = 1_000_000
_GRID: Final = np.linspace(-6.0, 6.0, 1201)  # normal scores


@dataclass(frozen=True, slots=True, eq=False)
class DrawnDemand:
    """Times of all targets together, in no order: [bytes/s] and [requests/s] by direction."""

    bytes_per_s: dict[str, Floats]
    requests_per_s: dict[str, Floats]

    def percentile(self, measure: Literal["bytes", "requests"], direction: str | None, percent: float) -> float:
        """Of bytes or requests per second over all times, silent ones too; of both directions together for None."""
        arrays = self.bytes_per_s if measure == "bytes" else self.requests_per_s
        values = arrays["read"] + arrays["write"] if direction is None else arrays[direction]
        return float(np.percentile(values, percent))

    @property
    def silent_share(self) -> float:
        """Share of the times without any request."""
        return float((self.requests_per_s["read"] + self.requests_per_s["write"] == 0).mean())


def drawn_demand(model: WorkloadModel, targets: float, seed: int = SEED) -> DrawnDemand:
    """What so many targets ask for; less than one is a part of one target's load, as bursty as the whole.

    Busy runs are stretched, as for telemetry, until the share of reads is the model's; what that cannot reach, requests
    are scaled for.
    """
    with suppress(ValueError):
        model = model.balanced()
    whole = min(max(1, round(targets)), MOST_TARGETS)
    times = min(MOST_TIMES, DRAWS // whole)
    drawn = {
        direction: _direction(model, direction, whole, times, seed + number)
        for number, direction in enumerate(DIRECTIONS)
    }
    part = targets / whole
    reads, writes = (float(drawn[direction][1].mean()) for direction in DIRECTIONS)
    wanted = model.read_requests_pct / 100.0
    mixed = {"read": 1.0, "write": 1.0}
    if reads and writes:  # a direction may be so rare that no time has it
        mixed = {"read": wanted * (reads + writes) / reads, "write": (1.0 - wanted) * (reads + writes) / writes}
    return DrawnDemand(
        {direction: part * drawn[direction][0] for direction in DIRECTIONS},
        {direction: part * mixed[direction] * drawn[direction][1] for direction in DIRECTIONS},
    )


def _direction(model: WorkloadModel, direction: str, targets: int, times: int, seed: int) -> tuple[Floats, Floats]:
    """Bytes and requests per second, added up over targets, tick by tick."""
    direction_model = model.of(direction)
    below = normal_cdf(_GRID)
    speed = direction_model.bandwidth.quantile(below)
    # Fast samples have many requests: the same score, from the other end of the times between them.
    requests = direction_model.requests(direction_model.interarrival.quantile(1.0 - below), model.tick_s) / model.tick_s
    busy_share = direction_model.busy_share(model.tick_s)
    random = np.random.default_rng(seed)
    common = np.sqrt(model.correlation) * random.standard_normal(times)
    own = np.sqrt(1.0 - model.correlation)
    pair = np.zeros(times), np.zeros(times)
    step = max(1, AT_ONCE // targets)
    for first in range(0, times, step):
        shape = (min(step, times - first), targets)
        scores = common[first : first + step, None] + own * random.standard_normal(shape)
        busy = random.random(shape) < busy_share
        for total, level in zip(pair, (speed, requests), strict=True):
            total[first : first + step] = (np.interp(scores, _GRID, level) * busy).sum(axis=1)
    return pair


def normal_cdf(scores: Floats) -> Floats:
    """Share of a normal distribution below each score."""
    return np.array([0.5 * erfc(-score / sqrt(2.0)) for score in scores])


# The rhythm of a week without a change in what is drawn from ----------------------------------------------------------
# Hours differ, all of them together do not.
#
# Every hour of the week shifts the normal scores that values are drawn by. The mixture of the shifted scores over the
# window has a distribution function of its own, and it is through that one that scores become shares: so the marginal
# is kept exactly, and the mean of every hour is what its factor says.

QUARTER_US: Final = 900_000_000  # every zone's hours are made of these
HOURS: Final = 168
EPOCH: Final = date(1970, 1, 1).toordinal()
FIRST_WEEKDAY: Final = date(1970, 1, 1).weekday()
REACH: Final = 9.0  # scores beyond this do not occur
FURTHEST: Final = 3.0  # a shift; an hour whose factor is out of the marginal's reach comes as near as this
STEP: Final = 0.005
ROUNDS: Final = 200
TOLERANCE: Final = 1e-5  # of a shift
GRID: Final = np.arange(-2 * REACH, 2 * REACH + STEP / 2, STEP)  # scores with their shifts


def local_hours(end_us: Integers, timezone: str) -> Integers:
    """For every tick, by its end, the number of the local hour: 24 × days since 1970 + hour of the day."""
    zone = ZoneInfo(timezone)
    quarters, where = np.unique((end_us - 1) // QUARTER_US, return_inverse=True)
    local = [from_epoch_us(quarter * QUARTER_US).astimezone(zone) for quarter in quarters.tolist()]
    hours = np.array([(time.toordinal() - EPOCH) * 24 + time.hour for time in local], np.int64)
    values: Integers = hours[where]
    return values


def hour_of_week(local_hour: Integers) -> Integers:
    """0 is Monday's first."""
    return (local_hour // 24 + FIRST_WEEKDAY) % 7 * 24 + local_hour % 24


def factors_of_week(hours: Sequence[float], days: Sequence[float]) -> Floats:
    """One factor for every hour of the week."""
    return np.outer(days, hours).reshape(-1).astype(np.float64)


def standard_normal_cdf(score: Floats) -> Floats:
    """The share of a normal distribution below, to full precision in both tails."""
    from scipy.special import ndtr

    values: Floats = ndtr(score)
    return values


def mixture_cdf(shifts: Floats, weights: Floats) -> Floats:
    """On the grid, the distribution function of scores that are shifted so with these weights."""
    distinct, where = np.unique(np.round(shifts, 9), return_inverse=True)
    share = np.bincount(where, weights=weights) / weights.sum()
    return sum(
        (part * standard_normal_cdf(GRID - item) for item, part in zip(distinct, share, strict=True)),
        np.zeros(GRID.size),
    )


def mixture_survival(shifts: Floats, weights: Floats) -> Floats:
    """One less the distribution function, without loss in the upper tail."""
    return mixture_cdf(-shifts, weights)[::-1]


def week_shifts(marginal: Marginal, factors: Floats, weights: Floats) -> Floats:
    """For every hour of the week the shift that gives it its factor times the mean.

    `weights` say how much of the window each hour is; factors are taken relative to their mean over the window.
    """
    present = weights > 0
    usual = float(factors[present] @ weights[present] / weights.sum())
    wanted = np.where(present & (usual > 0), factors / max(usual, 1e-300), 1.0)
    shifts = np.zeros(factors.size)
    if np.ptp(wanted[present]) == 0.0:
        return shifts
    mean = marginal.mean()
    trial = np.arange(-2 * FURTHEST, 2 * FURTHEST + 1e-9, 0.02)
    kernel = np.exp(-0.5 * np.arange(-REACH, REACH + STEP / 2, STEP) ** 2)
    kernel /= kernel.sum()
    inner = GRID[kernel.size // 2 : GRID.size - kernel.size // 2]
    for _ in range(ROUNDS):
        values = marginal.quantile(mixture_cdf(shifts[present], weights[present]))
        means = np.interp(trial, inner, np.convolve(values, kernel, mode="valid"))
        result = np.interp(wanted * mean, means, trial)
        result -= float(result[present] @ weights[present] / weights.sum())  # only differences matter
        before, shifts = shifts, np.where(present, np.clip(result, -FURTHEST, FURTHEST), 0.0)
        if np.abs(shifts - before).max() < TOLERANCE:
            break
    return shifts
