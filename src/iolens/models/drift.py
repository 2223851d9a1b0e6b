"""What changes over time: targets against others of their class, the trend of a cost, one lasting change of a level."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final, NamedTuple

import numpy as np

from iolens.arrays import Booleans, Floats, Integers
from iolens.models.cost_estimate import TelemetryTicks, draws, interval, not_negative, size_group, weighted_quantile
from iolens.models.frontier import DEEP, FEWEST_QUEUED, SPREAD, at_one_size, queued_ticks
from iolens.models.growth import MAD_TO_SIGMA
from iolens.models.resampling import SEED, portions

# One lasting change of the level of a series --------------------------------------------------------------------------
# Where it is, and how likely chance is to make one as clear (B9).

LEAST_RUNS: Final = 3  # on both sides: fewer do not last
ARRANGEMENTS: Final = 4999
_NOTHING: Final = 1e-12  # of the largest value: what doubles lose is no spread


class ChangePoint(NamedTuple):
    """The level before and after as medians; `place` is that of the first value after the change."""

    place: int
    before: float
    after: float
    p: float


def change_point(values: Floats, seed: int = SEED) -> ChangePoint | None:
    """Where the means of what is before and after differ most for their numbers; None: too few values, or all equal.

    The statistic is the largest |sum of the first k, centred| ÷ √(k·(n − k)); p is the share of `ARRANGEMENTS` random
    orders, and the one there is, in which it is as large.
    """
    count = len(values)
    centred = values - values.mean() if count else values
    if count < 2 * LEAST_RUNS or np.abs(centred).max() <= _NOTHING * np.abs(values).max():
        return None
    clear = _clearness(centred[np.newaxis])[0]
    random = np.random.default_rng(seed)
    as_clear = 0
    for some in portions(ARRANGEMENTS, count):
        orders = random.permuted(np.tile(centred, (some, 1)), axis=1)
        as_clear += int((_clearness(orders).max(axis=1) >= clear.max() * (1 - 1e-9)).sum())
    place = LEAST_RUNS + int(clear.argmax())
    before, after = float(np.median(values[:place])), float(np.median(values[place:]))
    return ChangePoint(place, before, after, (1 + as_clear) / (1 + ARRANGEMENTS))


def clearest_place(values: Floats) -> int | None:
    """Where `change_point` would have a change, be it chance or not; None: too few values."""
    if len(values) < 2 * LEAST_RUNS:
        return None
    return LEAST_RUNS + int(_clearness((values - values.mean())[np.newaxis])[0].argmax())


def relative_clearness(values: Floats, place: int) -> float:
    """How clear a change at that place is, as a share of the clearest; 0 where too few values are on a side of it."""
    if not LEAST_RUNS <= place <= len(values) - LEAST_RUNS:
        return 0.0
    clear = _clearness((values - values.mean())[np.newaxis])[0]
    return float(clear[place - LEAST_RUNS] / clear.max()) if clear.max() > 0 else 0.0


def _clearness(series: Floats) -> Floats:
    """Of each series (row) at each place that has enough values on both sides."""
    count = series.shape[1]
    first = np.arange(LEAST_RUNS, count - LEAST_RUNS + 1)
    clear: Floats = np.abs(series.cumsum(axis=1)[:, first - 1]) / np.sqrt(first * (count - first))
    return clear


# How much longer an I/O takes at a target than at the others of its class, by day -------------------------------------
# DEFINITIONS, "Slow target".
#
# Two kinds of evidence: queued ticks at like sizes, where the rate is the target's limit, and busy seconds for the I/Os
# of ticks that are not full. A target differs if its factor is at least `LEAST_FACTOR` and an interval as wide as the
# number of targets asks for (Bonferroni, with Student's t over days) excludes 1.

LEAST_FACTOR: Final = SPREAD[1]  # rates at one limit differ as much between jobs: less may be a job
FEWEST_TARGETS: Final = 3  # with evidence: of two nobody can say which one is slow
FEWEST_DAYS: Final = 5  # with evidence of a target
FEWEST_DAYS_SINCE: Final = LEAST_RUNS  # after a step
FEWEST_TICKS: Final = 3  # of a day
FULL_DAY: Final = 30.0  # ticks from which on a day counts whole: they come from several jobs
STRETCH_DAYS: Final = 30  # of which the others have a level of their own: they age, and fill
MEDIAN_ERROR: Final = 1.2533  # of a median, relative to that of a mean
STEP_P: Final = 0.01
FAMILY: Final = 0.05  # chance that any target of a class and direction is called different though none is
_POLISH: Final = 4  # rounds in which levels of sizes and of targets are separated
_NEAR: Final = 1 - 1e-9


@dataclass(frozen=True, slots=True)
class DailyFactors:
    """Of one target: the logarithm of its factor on each day with enough ticks, and how many ticks that rests on.

    `reference_error` is the standard error of what it is compared with, as a logarithm.
    """

    target: int
    days: Integers
    logs: Floats
    ticks: Floats
    reference_error: float = 0.0


@dataclass(frozen=True, slots=True)
class TargetFactor:
    """How many times as long as at the median of the other targets of its class an I/O takes, at the window's end.

    `low` and `high` are 95 %, `sure_low` and `sure_high` the ends that hold for all targets together. After a lasting
    step all are of the days since; `since` is its day where the factor was near 1 before, `before` the factor until
    then. None: too few days.
    """

    target: int
    days: int
    ticks: int
    factor: float | None = None
    low: float | None = None
    high: float | None = None
    sure_low: float | None = None
    sure_high: float | None = None
    step: int | None = None
    before: float | None = None

    @property
    def differs(self) -> bool:
        """Whether it is slower than its class beyond chance, and by enough."""
        return self.factor is not None and self.factor >= LEAST_FACTOR and (self.sure_low or 0.0) > 1.0

    @property
    def since(self) -> int | None:
        """The first day of what is now, where the target was like its class before."""
        near = self.before is not None and 1 / LEAST_FACTOR < self.before < LEAST_FACTOR
        return self.step if near else None


def queued_factors(ticks: TelemetryTicks) -> list[DailyFactors]:
    """Of each target, from its queued ticks; blocks are days.

    How deep a queue is at the limit is learnt from the targets that have a steady one, and holds for all: a target
    that became slower has two levels, and none of its own.
    """
    chosen = _deep_enough(ticks)
    if not chosen.any():
        return []
    kept = ticks.where(chosen)
    sizes = size_group(kept.size_bytes)
    logs = np.zeros(sizes.size)
    for size in np.unique(sizes):
        same = sizes == size
        logs[same] = -np.log(at_one_size(kept.where(same))[0])
    compared, relative = _without_sizes(logs, sizes, kept)
    return _against_others(
        _daily(kept.target[compared], kept.block[compared], relative[compared], kept.count[compared])
    )


def busy_factors(
    target: Integers, block: Integers, ticks: Floats, squares: Floats, products: Floats
) -> list[DailyFactors]:
    """Of each target, from busy seconds: rows of sums by target and day, as in `BusySums`.

    What its I/Os should take is by the coefficients of all targets together, so that only the ratio to the others
    means something.
    """
    if not target.size:
        return []
    used = np.flatnonzero(np.diagonal(squares.sum(axis=0)) > 0)
    pair = not_negative(squares.sum(axis=0)[np.ix_(used, used)][None], products.sum(axis=0)[used][None])[0]
    expected = np.einsum("i,rij,j->r", pair, squares[:, used][:, :, used], pair)
    busy = products[:, used] @ pair
    known = (expected > 0) & (busy > 0) & (ticks >= FEWEST_TICKS)
    logs = np.log(busy[known] / expected[known])
    target, block, ticks = target[known], block[known], ticks[known]
    return _against_others(_daily(target, block, logs, ticks))


def target_factors(daily: list[DailyFactors]) -> list[TargetFactor]:
    """Each target with its interval, and the step where there is one."""
    return [_factor(target, len(daily)) for target in daily]


def _deep_enough(ticks: TelemetryTicks) -> Booleans:
    """Ticks at a limit: as deep as those of most targets that have a steady limit at that size."""
    depth = np.nan_to_num(ticks.in_flight)
    own = np.zeros(depth.size, bool)
    for mine in _alike(ticks.target):
        own[mine] = queued_ticks(ticks.where(mine))
        stretches = _alike(ticks.block[mine] // STRETCH_DAYS)
        for part in stretches if len(stretches) > 1 else []:  # a limit that moves over months is steady in each
            own[mine[part]] |= queued_ticks(ticks.where(mine[part]))
    order = np.where(ticks.is_full & ~(depth > 0), np.inf, depth)
    chosen = np.zeros(depth.size, bool)
    for same in _alike(size_group(ticks.size_bytes)):
        steady = same[own[same]]
        least = [order[steady[mine]].min() for mine in _alike(ticks.target[steady])]
        if len(least) > 1:
            chosen[same] = (order[same] >= np.median(least) * _NEAR) & ((depth[same] >= DEEP) | ticks.is_full[same])
    return chosen


def _without_sizes(logs: Floats, sizes: Integers, ticks: TelemetryTicks) -> tuple[Booleans, Floats]:
    """Logarithms of time relative to that of each size that enough targets have, and which they are."""
    targets, rows = np.unique(ticks.target, return_inverse=True)
    groups, columns = np.unique(sizes, return_inverse=True)
    levels = np.full((targets.size, groups.size), np.nan)
    for same in _alike(rows * groups.size + columns):
        if ticks.count[same].sum() >= FEWEST_QUEUED:
            levels[rows[same[0]], columns[same[0]]] = weighted_quantile(logs[same], ticks.count[same], 0.5)
    enough = np.isfinite(levels).sum(axis=0) >= FEWEST_TARGETS
    if not enough.any():
        return np.zeros(logs.size, bool), logs
    levels = levels[:, enough]
    of_size, of_target = np.zeros(int(enough.sum())), np.zeros(targets.size)
    there = np.isfinite(levels).any(axis=1)
    for _ in range(_POLISH):
        of_size = np.nanmedian(levels - of_target[:, None], axis=0)
        of_target[there] = np.nanmedian(levels[there] - of_size, axis=1)
    every = np.full(groups.size, np.nan)
    every[enough] = of_size
    return enough[columns] & there[rows], logs - every[columns]


def _daily(target: Integers, block: Integers, logs: Floats, count: Floats) -> list[DailyFactors]:
    """Medians of each target and day with enough ticks."""
    result = []
    for mine in _alike(target):
        parts = [mine[part] for part in _alike(block[mine])]
        ticks = np.array([count[part].sum() for part in parts])
        medians = np.array([weighted_quantile(logs[part], count[part], 0.5) for part in parts])
        days = np.array([block[part[0]] for part in parts])
        kept = ticks >= FEWEST_TICKS
        result.append(DailyFactors(int(target[mine[0]]), days[kept], medians[kept], ticks[kept]))
    return result


def _alike(keys: Integers) -> list[Integers]:
    """Places of each key, in the order of keys."""
    if not keys.size:
        return []
    order = np.argsort(keys, kind="stable")
    return np.split(order, np.flatnonzero(np.diff(keys[order])) + 1)


def _against_others(daily: list[DailyFactors]) -> list[DailyFactors]:
    """Relative to the median of the others, by month: all age and fill, and some have ticks only now and then."""
    some = [target for target in daily if target.days.size]
    if len(some) < FEWEST_TARGETS:
        return []
    first, last = min(int(item.days[0]) for item in some), max(int(item.days[-1]) for item in some)
    edges = np.linspace(first, last + 1, max(round((last + 1 - first) / STRETCH_DAYS), 1) + 1)
    levels = np.full((len(some), edges.size - 1), np.nan)
    for row, target in enumerate(some):
        stretch = np.searchsorted(edges, target.days, side="right") - 1
        for column in np.unique(stretch):
            levels[row, column] = np.median(target.logs[stretch == column])
    return [_against(target, np.delete(levels, row, axis=0), edges) for row, target in enumerate(some)]


def _against(target: DailyFactors, others: Floats, edges: Floats) -> DailyFactors:
    known = np.isfinite(others).sum(axis=0) >= FEWEST_TARGETS - 1
    if not known.any():
        return replace(target, days=target.days[:0], logs=target.logs[:0], ticks=target.ticks[:0])
    middles = 0.5 * (edges[1:] + edges[:-1])[known]
    usual = np.nanmedian(others[:, known], axis=0)
    apart = np.nanmedian(others[:, known] - usual, axis=1)
    apart = apart[np.isfinite(apart)]
    spread = MAD_TO_SIGMA * float(np.median(np.abs(apart - np.median(apart))))
    error = MEDIAN_ERROR * spread / np.sqrt(apart.size)
    return replace(target, logs=target.logs - np.interp(target.days, middles, usual), reference_error=error)


def _factor(daily: DailyFactors, targets: int) -> TargetFactor:
    """What holds at the end of the window; a target that has too few days is one that might be named, too."""
    whole = TargetFactor(daily.target, len(daily.days), round(float(daily.ticks.sum())))
    if len(daily.days) < FEWEST_DAYS:
        return whole
    step = _step(daily.logs)
    first = step or 0
    factor = _level(daily, slice(first, None), targets, whole)
    if step is None:
        return factor
    before = _level(daily, slice(0, first), targets, whole).factor
    return replace(factor, step=int(daily.days[first]), before=before)


def _step(logs: Floats) -> int | None:
    """Place of a lasting change that is large enough to matter, and not by chance."""
    place = clearest_place(logs)
    if place is None or abs(np.median(logs[place:]) - np.median(logs[:place])) < np.log(LEAST_FACTOR):
        return None
    change = change_point(logs)
    return change.place if change is not None and change.p < STEP_P else None


def _level(daily: DailyFactors, part: slice, targets: int, whole: TargetFactor) -> TargetFactor:
    """The median over some days, and its intervals from resampled days."""
    from scipy.special import stdtrit

    logs, weights = daily.logs[part], np.minimum(daily.ticks[part], FULL_DAY)
    level = weighted_quantile(logs, weights, 0.5)
    again = resampled_medians(logs, weights)
    low, high = interval(again, level) or (level, level)
    error = daily.reference_error
    quantile = float(-stdtrit(logs.size - 1, FAMILY / 2 / targets)) if logs.size > 1 else np.inf
    wide = quantile * np.hypot(max(float(again.std()), (high - low) / 4), error)
    low, high = level - np.hypot(level - low, 1.96 * error), level + np.hypot(high - level, 1.96 * error)
    ends = np.exp([level, low, high, level - wide, level + wide]).tolist()
    return replace(
        whole, days=logs.size, ticks=round(float(daily.ticks[part].sum())),
        factor=ends[0], low=ends[1], high=ends[2], sure_low=ends[3], sure_high=ends[4],
    )  # fmt: skip


def resampled_medians(values: Floats, weights: Floats) -> Floats:
    """The weighted median of each resample of days."""
    order = np.argsort(values, kind="stable")
    cumulative = np.cumsum(draws(values.size)[:, order] * weights[order], axis=1)
    places = (cumulative < 0.5 * cumulative[:, -1:] * _NEAR).sum(axis=1)
    return np.asarray(values[order][places])


# How a cost changes with age and fullness -----------------------------------------------------------------------------
# A line through the logarithms of monthly estimates.
#
# Each month counts by the width of its own interval; where months differ more than their intervals say, the interval of
# the change is wider for it. Age and fullness are separated where they did not move together.

FEWEST_MONTHS: Final = 3
TOGETHER: Final = 0.9  # of the squared correlation of age and fullness: from there on they are one
LEAST_POINTS: Final = 5.0  # of fullness between the emptiest and the fullest month
LEAST_ERROR: Final = 0.002  # of a month's logarithm: no estimate is better than that
TOO_LITTLE: Final = "too little data"
_SPREADS: Final = 2 * 1.96  # of a 95 % interval


@dataclass(frozen=True, slots=True)
class Change:
    """In per cent, with 95 %."""

    pct: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class CostTrend:
    """What a year, and ten points of fullness, add to a cost; None where that is not known, and `note` says why."""

    per_year: Change | None
    per_10_points: Change | None
    note: str = ""


def cost_trend(years: Floats, fullness_pct: Floats, costs: Floats, low: Floats, high: Floats) -> CostTrend:
    """Of months with an interval; fullness NaN: not known. All at once where age and fullness are apart."""
    if years.size < FEWEST_MONTHS:
        return CostTrend(None, None, f"{TOO_LITTLE}: {years.size} of {FEWEST_MONTHS} identified months")
    logs, errors = np.log(costs), np.maximum((np.log(high) - np.log(low)) / _SPREADS, LEAST_ERROR)
    known = np.isfinite(fullness_pct)
    tens = fullness_pct / 10
    if known.sum() < FEWEST_MONTHS or np.ptp(fullness_pct[known]) < LEAST_POINTS:
        why = "fullness is not known" if known.sum() < FEWEST_MONTHS else "fullness hardly changed"
        return CostTrend(_slopes(years[:, None], logs, errors)[0], None, why)
    together = np.corrcoef(years[known], tens[known])[0, 1] ** 2 > TOGETHER
    if not together and known.sum() > FEWEST_MONTHS:
        both = _slopes(np.stack([years, tens], axis=1)[known], logs[known], errors[known])
        return CostTrend(both[0], both[1], "")
    why = "age and fullness moved together" if together else f"{FEWEST_MONTHS} months do not tell age from fullness"
    per_10 = _slopes(tens[known][:, None], logs[known], errors[known])[0]
    return CostTrend(_slopes(years[:, None], logs, errors)[0], per_10, f"{why}: each is as if the other had no effect")


def _slopes(terms: Floats, logs: Floats, errors: Floats) -> list[Change]:
    """What one more of each term adds, by weighted least squares with Student's t."""
    from scipy.special import stdtrit

    design = np.column_stack([np.ones(logs.size), terms]) / errors[:, None]
    freedom = logs.size - design.shape[1]
    fitted = np.linalg.lstsq(design, logs / errors, rcond=None)[0]
    left = logs / errors - design @ fitted
    scale = max(float(left @ left) / freedom, 1.0)
    spread = np.sqrt(np.diagonal(np.linalg.inv(design.T @ design)) * scale) * -float(stdtrit(freedom, 0.025))
    ends = np.stack([fitted, fitted - spread, fitted + spread])[:, 1:]
    return [Change(*(100 * np.expm1(np.minimum(column, 100.0))).tolist()) for column in ends.T]
