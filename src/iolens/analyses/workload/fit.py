"""From what `workload` found to a model that can be drawn from, targets and hours that go together among it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import date
from math import inf
from typing import Final

import numpy as np

from iolens.analyses.intervals.tick_matrix import TickMatrix, ticks_of
from iolens.analyses.workload.analysis import SECTIONS, Workload
from iolens.analyses.workload.bandwidth import outside
from iolens.arrays import Booleans, Floats, Integers
from iolens.errors import UsageError
from iolens.models.heavy_tail import HeavyTail
from iolens.models.tails import PARETO, TRUNCATED_PARETO, TailSample
from iolens.models.workload_model import (
    FIRST_WEEKDAY,
    SHARES,
    DirectionModel,
    Marginal,
    WorkloadModel,
    hour_of_week,
    local_hours,
    standard_normal_cdf,
)
from iolens.schema import DIRECTIONS
from iolens.store.selection import Selection
from iolens.units import KIB

# How targets and hours go together ------------------------------------------------------------------------------------
# Normal scores of the bandwidth, hour by hour in local time (SPEC S12).
#
# Scores have no heavy tail. So means of hours and the correlation of targets are found from days of samples, where
# means of bytes would be the luck of a few bursts. What is left of luck in the factors of hours and weekdays is taken
# out, too.

LEAST: Final = 1e-7  # share at which scores end
ROUNDS: Final = 60
STEPS: Final = 501
HIGH: Final = 0.9  # the upper tenth is where targets have to agree for their sum to be right
MEASURES: Final = 8  # what is summed up for every hour
LEAST_TICKS: Final = 200  # of an hour, to tell its level from what its targets have in common
MOST_CORRELATED: Final = 0.999


@dataclass(slots=True)
class BusyScores:
    """One direction, fed by matrices: sums by local hour (`local_hours`).

    They are: samples, those with traffic, their scores, squares of scores, high scores; ticks, pairs of targets with
    traffic at the same tick, and pairs of high scores.
    """

    direction: str
    marginal: Marginal
    sums: dict[int, Floats] = field(default_factory=dict)

    def add(self, matrix: TickMatrix, hours: Integers) -> None:
        """Take the next ticks; `hours` are theirs."""
        from scipy.special import ndtri

        rates = matrix.rate(f"{self.direction}_bytes")
        with np.errstate(invalid="ignore"):
            busy = rates > 0
        scores = np.zeros(rates.shape)
        scores[busy] = ndtri(np.clip(self.marginal.cdf(rates[busy]), LEAST, 1.0 - LEAST))
        number, total, squares = busy.sum(axis=1), scores.sum(axis=1), (scores**2).sum(axis=1)
        high = (scores > ndtri(HIGH)).sum(axis=1)
        together = np.ones(number.size), number * (number - 1.0), high * (high - 1.0)
        each = ((~np.isnan(rates)).sum(axis=1), number, total, squares, high, *together)
        distinct, where = np.unique(hours, return_inverse=True)
        columns = np.array([np.bincount(where, weights=item, minlength=distinct.size) for item in each])
        for place, hour in enumerate(distinct.tolist()):
            self.sums[hour] = self.sums.get(hour, np.zeros(MEASURES)) + columns[:, place]

    def correlation(self) -> tuple[float, float]:
        """Of the normal scores of two targets at the same tick of the same hour of the week, and of how many pairs.

        It is the one under which both are in the upper tenth as often as they are: bursts that come to all targets at
        once count for what they do to the sum. What hours have in common is no correlation; where hours have too few
        ticks to tell, all of them are one.
        """
        hours, sums = self._hours()
        for group in (hour_of_week(hours), hours % 24, np.zeros_like(hours)):
            grouped = (np.bincount(group, weights=item).astype(np.float64) for item in sums)
            _, busy, _, _, high, ticks, pairs, both = grouped
            if ticks[ticks > 0].min(initial=np.inf) >= LEAST_TICKS:
                break
        some = (pairs > 0) & (high > 0)
        if not some.any():
            return 0.0, float(pairs.sum())
        return _shared(high[some] / busy[some], pairs[some], float(both.sum())), float(pairs.sum())

    def presence(self) -> dict[int, float]:
        """How often there is traffic in every local hour, 1 being usual."""
        hours, (samples, busy, *_) = self._hours()
        return _relative(hours, busy / np.maximum(samples, 1.0), samples)

    def speeds(self) -> dict[int, float]:
        """How fast traffic is in every local hour that has some, 1 being usual."""
        hours, (_, busy, scores, squares, *_) = self._hours()
        means = scores / np.maximum(busy, 1.0)
        within = float((squares - busy * means**2).sum() / max(busy.sum(), 1.0))
        return _relative(hours, self._speeds(means, max(within, 0.0) ** 0.5), busy)

    def _hours(self) -> tuple[Integers, Floats]:
        hours = sorted(self.sums)
        return np.array(hours, np.int64), np.array([self.sums[hour] for hour in hours]).reshape(-1, MEASURES).T

    def _speeds(self, means: Floats, spread: float) -> Floats:
        """The mean bandwidth of scores around these means."""
        grid = np.linspace(-6.0, 6.0, STEPS)
        weights = np.exp(-0.5 * grid**2)
        weights /= weights.sum()
        shares = (standard_normal_cdf(mean + spread * grid) for mean in means.tolist())
        return np.array([float(weights @ self.marginal.quantile(share)) for share in shares])


def _relative(hours: Integers, values: Floats, weights: Floats) -> dict[int, float]:
    """Values by hour relative to their weighted mean, of hours that have a weight."""
    usual = float(values @ weights) / max(float(weights.sum()), 1e-300)
    some = weights > 0
    return dict(zip(hours[some].tolist(), (values[some] / max(usual, 1e-300)).tolist(), strict=True))


def _shared(high: Floats, pairs: Floats, both: float) -> float:
    """The correlation under which so many pairs are high at once, given the share of high scores in every group."""
    from scipy.special import ndtri

    thresholds = ndtri(1.0 - np.minimum(high, 1.0 - 1e-9))[:, None]
    common = np.linspace(-8.0, 8.0, STEPS)
    weights = np.exp(-0.5 * common**2)
    weights /= weights.sum()
    low, upper = 0.0, MOST_CORRELATED
    for _ in range(40):
        middle = (low + upper) / 2.0
        above = standard_normal_cdf((np.sqrt(middle) * common - thresholds) / np.sqrt(1.0 - middle))
        low, upper = (middle, upper) if float(pairs @ (above**2 @ weights)) < both else (low, middle)
    return (low + upper) / 2.0


def day_and_week(
    factors: Mapping[str, Mapping[int, float]], weights: Mapping[str, float]
) -> tuple[list[float], list[float]]:
    """Factors of the hours of a day and of weekdays whose products come nearest; what was never observed is usual.

    Directions are averaged with their weights. Both are drawn towards 1 by as much of their spread as chance explains.
    """
    table = _table(factors, weights)
    known = ~np.isnan(table)
    values = np.where(known, table, 0.0)
    weekday = np.arange(len(table)) % 7
    days, hours = np.ones(7), np.ones(24)
    for _ in range(ROUNDS):
        each = days[weekday][:, None]
        hours = _ratio((values * each).sum(axis=0), (known * each**2).sum(axis=0))
        days = _ratio(
            _by_weekday((values * hours).sum(axis=1), weekday), _by_weekday((known * hours**2).sum(axis=1), weekday)
        )
    chance = _chance(values - days[weekday][:, None] * hours, known)
    by_day = _by_weekday(known.sum(axis=1).astype(np.float64), weekday)
    return _drawn_in(hours, known.sum(axis=0).astype(np.float64), chance), _drawn_in(days, by_day, chance)


def _by_weekday(values: Floats, weekday: Integers) -> Floats:
    return np.bincount(weekday, weights=values, minlength=7).astype(np.float64)


def _table(factors: Mapping[str, Mapping[int, float]], weights: Mapping[str, float]) -> Floats:
    """Local days × hours, the first day a Monday; NaN: not observed."""
    hours = sorted(set().union(*factors.values()))
    if not hours:
        return np.full((7, 24), np.nan)
    first = hours[0] // 24
    first -= (first + FIRST_WEEKDAY) % 7
    table = np.full((hours[-1] // 24 - first + 1, 24), np.nan)
    total = sum(weights.values())
    for hour in hours:
        pairs = [(direction, factor[hour]) for direction, factor in factors.items() if hour in factor]
        if len(pairs) == len(factors):
            table[hour // 24 - first, hour % 24] = sum(weights[direction] * value for direction, value in pairs) / total
    return table


def _ratio(above: Floats, below: Floats) -> Floats:
    values: Floats = np.divide(above, below, out=np.ones(below.size), where=below > 0)
    return values


def _chance(rest: Floats, known: Booleans) -> float:
    """Variance of what hours and weekdays do not explain; 0 where there is too little to tell."""
    free = int(known.sum()) - int(np.any(known, axis=0).sum()) - min(int(np.any(known, axis=1).sum()), 7) + 1
    return float((rest[known] ** 2).sum()) / free if free > 0 else 0.0


def _drawn_in(factors: Floats, seen: Floats, chance: float) -> list[float]:
    """With mean 1 over those observed, and nearer to it the more of their spread is chance (James and Stein)."""
    some = seen > 0
    mean = float(factors[some].mean()) if some.any() else 1.0
    level = factors / mean if mean > 0 else np.ones(factors.size)
    spread = float(level[some].var()) if some.any() else 0.0
    noise = float((chance / np.maximum(seen[some], 1)).mean()) if some.any() else 0.0
    kept = max(0.0, 1.0 - noise / spread) if spread > 0 else 0.0
    return [float(item) for item in np.where(some, 1.0 + kept * (level - 1.0), 1.0)]


# From what `workload` found to a model that can be drawn from (SPEC S12) ----------------------------------------------
# The other half of a synthesis.
#
# A distribution is Pareto where that describes it best and well, else its own quantiles. The rows are read once more,
# for what samples of different targets and hours have to do with each other.

NEAR: Final = 0.05  # how far quantiles of a Pareto distribution may be off before the quantiles themselves are taken
LEAST_SHARE: Final = 0.005  # of the values above; beyond, chance decides
CHANCE: Final = 3.0  # standard deviations of a share that are forgiven
FEWEST_SILENCES: Final = 10
LEAST_MIX: Final = 0.01  # per cent
LEAST_QUIET: Final = 0.01  # share of samples
SIZE_STEP: Final = 16 * KIB
UNKNOWN: Final = {"bandwidth": "bytes are not reported", "interarrival": "requests are not counted"}


@dataclass(frozen=True, slots=True)
class FittedWorkload:
    """The model, and what it rests on in words: one note for every choice."""

    model: WorkloadModel
    notes: tuple[str, ...]


def fit_workload(
    selection: Selection, workload: Workload, progress: Callable[[date], None] | None = None
) -> FittedWorkload:
    """The model of a window that `workload` has characterised, all sections of it."""
    _require(workload)
    notes: list[str] = []
    timezone = workload.rhythm.timezone if workload.rhythm is not None else "UTC"
    directions = {direction: _direction(workload, direction, notes) for direction in DIRECTIONS}
    scores = _scores(selection, workload, directions, timezone, progress)
    hours, days = _rhythm(scores, {direction: float(_total(workload, direction)) for direction in DIRECTIONS})
    written_pct = workload.aggregate.write_requests_pct if workload.aggregate else None
    model = WorkloadModel(
        filesystem=workload.filesystem,
        targets=len(workload.targets),
        tick_s=workload.tick_s,
        timezone=timezone,
        read=directions["read"],
        write=directions["write"],
        read_requests_pct=_mix(100.0 - (written_pct if written_pct is not None else 50.0)),
        correlation=_correlation(scores, notes),
        hours=tuple(hours),
        days=tuple(days),
    )
    return FittedWorkload(_within_reach(model, notes), tuple(notes))


def _within_reach(model: WorkloadModel, notes: list[str]) -> WorkloadModel:
    """A mix that few samples do not explain is replaced by the one that comes of the rest."""
    try:
        model.balanced()
    except ValueError as error:
        notes.append(f"{error}: this is taken")
        return replace(model, read_requests_pct=_mix(100.0 * model.read_share()))
    return model


def _mix(read_pct: float) -> float:
    """Both directions have some."""
    return min(max(read_pct, LEAST_MIX), 100.0 - LEAST_MIX)


def _require(workload: Workload) -> None:
    """Both directions have traffic whose requests are counted."""
    if set(workload.sections) != set(SECTIONS):
        raise UsageError(f"a model needs all sections: {', '.join(SECTIONS)}")
    for direction in DIRECTIONS:
        for what in ("bandwidth", "interarrival"):
            tail = workload.models.get(f"{direction}_{what}")
            if tail is None:
                raise UsageError(f"{workload.filesystem}: {direction} {UNKNOWN[what]}, so they cannot be modelled")
            if not tail.samples:
                raise UsageError(
                    f"{workload.filesystem}: no {direction}s in this window, and a model needs both directions"
                )


def _direction(workload: Workload, direction: str, notes: list[str]) -> DirectionModel:
    samples, tick_s = workload.distributions or {}, workload.tick_s
    fast, spaced = samples[f"{direction}_bandwidth"], _bounded(samples[f"{direction}_interarrival"], tick_s)
    bandwidth = _marginal(
        f"{direction} bandwidth", workload.models[f"{direction}_bandwidth"], fast, fast.largest, notes
    )
    interarrival = _marginal(
        f"{direction} interarrival", workload.models[f"{direction}_interarrival"], spaced, inf, notes
    )
    quiet = (workload.models[f"{direction}_interarrival"].zero_share_pct or 0.0) / 100.0
    idle = _idle(workload, direction, quiet, notes)
    model = DirectionModel(bandwidth, interarrival, idle, tick_s, ())
    model = replace(model, busy_run_s=_busy_run_s(model, 1.0 - quiet, tick_s))
    return replace(model, sizes=_sizes(workload, direction, model, notes))


def _busy_run_s(model: DirectionModel, busy_share: float, tick_s: float) -> float:
    """As long as the share of samples with traffic asks for, given the silences."""
    if model.idle is None:
        return tick_s
    lengths, likely = model.idle_lengths(tick_s)
    return max(float(lengths @ likely) * tick_s * busy_share / max(1.0 - busy_share, 1e-12), tick_s)


def _idle(workload: Workload, direction: str, quiet: float, notes: list[str]) -> Marginal | None:
    """None where silences hardly matter; where none of them both begins and ends, all are as long as the longest."""
    lengths, tick_s = (workload.silences or {}).get(direction, Counter()), workload.tick_s
    number = sum(lengths.values())
    if quiet < LEAST_QUIET and number < FEWEST_SILENCES:
        notes.append(f"{direction} idle: {number} silences, too few to model")
        return None
    if not lengths:
        censored = [censored for censored in workload.censored_idle if censored.direction == direction]
        longest_s = max((max(item.longest_s, item.longest_at_gaps_s) for item in censored), default=tick_s)
        notes.append(
            f"{direction} idle: no silence both begins and ends in the window; all are taken to last {longest_s:g} s"
        )
        return Marginal.of_quantiles((max(longest_s, tick_s),) * len(SHARES))
    keys = np.array(sorted(lengths), np.float64)
    often = np.array([lengths[int(key)] for key in keys], np.int64)
    sample = TailSample.of_multiples(keys * tick_s, tick_s, "nearest", often)
    return _marginal(f"{direction} idle", workload.models[f"{direction}_idle"], sample, float(keys[-1]) * tick_s, notes)


def _marginal(name: str, tail: HeavyTail, sample: TailSample, maximum: float, notes: list[str]) -> Marginal:
    """Pareto where `tail` says so and it comes near the sample; its end is the family's, else `maximum`."""
    for family in tail.families:
        if family.model != tail.best_model or family.model not in (PARETO, TRUNCATED_PARETO):
            continue
        end = family.parameters.get("maximum", maximum)
        xm = family.parameters["xm"]
        if end > xm and _comes_near(marginal := Marginal.pareto(family.parameters["alpha"], xm, end), sample):
            notes.append(f"{name}: Pareto, alpha {family.parameters['alpha']:.4g}")
            return marginal
    reason = "few values" if tail.best_model is None else f"of the five families {tail.best_model} is best"
    if tail.best_model in (PARETO, TRUNCATED_PARETO):
        reason = "Pareto is the best of five families, but not near"
    notes.append(f"{name}: as observed, by quantiles ({reason})")
    return Marginal.of_quantiles(tuple(quantiles_of(sample).tolist()))


def _comes_near(marginal: Marginal, sample: TailSample) -> bool:
    """Whether the shares above every value agree as well as quantiles within `NEAR` would, chance aside."""
    above = 1.0 - np.cumsum(sample.counts) / sample.counts.sum()
    some = (above >= LEAST_SHARE) & np.isfinite(sample.upper)
    if not some.any():
        return True
    modelled = 1.0 - marginal.cdf(sample.upper[some])
    forgiven = CHANCE / np.sqrt(sample.counts.sum() * above[some])
    off = np.abs(np.log(np.maximum(modelled, 1e-12) / above[some]))
    return bool(np.all(off <= NEAR * (marginal.alpha or 1.0) + forgiven))


def quantiles_of(sample: TailSample) -> Floats:
    """Values at `SHARES`: by interpolation where values are known, else evenly within bins on a logarithmic scale."""
    shares = np.array(SHARES)
    if sample.values is not None:
        values: Floats = np.quantile(sample.values, shares)
        return values
    reached = np.cumsum(sample.counts) / sample.counts.sum()
    place = np.minimum(np.searchsorted(reached, shares, side="left"), sample.counts.size - 1)
    before = reached[place] - sample.counts[place] / sample.counts.sum()
    part = np.clip((shares - before) / (reached[place] - before), 0.0, 1.0)
    low, high = np.log(sample.lower[place]), np.log(sample.upper[place])
    array: Floats = np.maximum.accumulate(np.exp(low + part * (high - low)))
    return array


def _bounded(sample: TailSample, tick_s: float) -> TailSample:
    """One request in a sample: the next may be any time away, but twice the sample says as much."""
    upper = np.where(np.isfinite(sample.upper), sample.upper, 2.0 * tick_s)
    return TailSample(sample.lower, upper, sample.counts, sample.mean_log, sample.zeros, sample.values)


def _sizes(
    workload: Workload, direction: str, model: DirectionModel, notes: list[str]
) -> tuple[tuple[int, float], ...]:
    """Shares by size; where none are known, every request is as large as the mean."""
    known = [(size.size_bytes, size.pdf) for size in workload.sizes if size.direction == direction]
    if known:
        return tuple(known)
    requests = workload.models[f"{direction}_interarrival"].samples * model.mean_requests(workload.tick_s)
    size = max(1, -(-round(_total(workload, direction) / requests) // SIZE_STEP)) * SIZE_STEP
    notes.append(f"{direction} sizes are not known: all are taken to be the mean, {size // KIB} KiB")
    return ((size, 1.0),)


def _total(workload: Workload, direction: str) -> int:
    moved = getattr(workload.aggregate, f"{direction}_bytes") if workload.aggregate is not None else None
    return int(moved or 0)


def _scores(
    selection: Selection,
    workload: Workload,
    directions: dict[str, DirectionModel],
    timezone: str,
    progress: Callable[[date], None] | None,
) -> dict[str, BusyScores]:
    scores = {direction: BusyScores(direction, model.bandwidth) for direction, model in directions.items()}
    ticks = ticks_of(selection)
    left_out = workload.maintenance if workload.maintenance_left_out else ()
    for matrix in (
        ticks.matrices(selection, [f"{direction}_bytes" for direction in DIRECTIONS], progress) if ticks else ()
    ):
        kept = outside(matrix, left_out)
        hours = local_hours(kept.end_us, timezone)
        for score in scores.values():
            score.add(kept, hours)
    return scores


def _rhythm(scores: dict[str, BusyScores], weights: dict[str, float]) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Of the bytes: how often there is traffic, times how fast it is; each is cleared of chance on its own."""
    often = day_and_week({direction: score.presence() for direction, score in scores.items()}, weights)
    fast = day_and_week({direction: score.speeds() for direction, score in scores.items()}, weights)
    hours, days = (
        tuple(value * other for value, other in zip(*pair, strict=True)) for pair in zip(often, fast, strict=True)
    )
    return hours, days


def _correlation(scores: dict[str, BusyScores], notes: list[str]) -> float:
    """Both directions together, by the pairs of samples each rests on."""
    by_name = {direction: score.correlation() for direction, score in scores.items()}
    pairs = sum(count for _, count in by_name.values())
    if not pairs:
        return 0.0
    reported = ", ".join(f"{direction}s {value:.3g}" for direction, (value, _) in by_name.items())
    notes.append(f"correlation of two targets: {reported}")
    return sum(value * count for value, count in by_name.values()) / pairs
