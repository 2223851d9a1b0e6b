"""A synthetic workload against what it was made from: every parameter and percentile, side by side (SPEC S12).

Both sides are models; where the original was characterised too, its percentiles and fits stand beside those of the
synthetic one. Limits are those a synthesis is meant to keep: beyond them a line is flagged, nothing more.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from statistics import median
from typing import Final

import numpy as np

from iolens.analyses.workload.analysis import TargetWorkload, Workload
from iolens.analyses.workload.bandwidth import WEEKDAYS
from iolens.models.heavy_tail import HeavyTail
from iolens.models.tails import PARETO, TRUNCATED_PARETO
from iolens.models.workload_model import (
    QUARTER_US,
    DirectionModel,
    Marginal,
    WorkloadModel,
    factors_of_week,
    hour_of_week,
    local_hours,
)
from iolens.schema import DIRECTIONS
from iolens.units import epoch_us

PARAMETER_PCT: Final = 5.0
PERCENTILE_PCT: Final = 10.0
MIX_POINTS: Final = 0.5
SHARE_POINTS: Final = 2.0  # of samples, bytes or requests
CORRELATION_POINTS: Final = 5.0
LEAST_DAYS: Final = 2  # of a rhythm
PERCENT, POINTS = "%", "points"
UNITS: Final = {"bandwidth": "bytes/s", "interarrival": "s", "idle": "s"}
PERCENTILES: Final = (95, 99)


@dataclass(frozen=True, slots=True)
class MatchedQuantity:
    """One line; `deviation` is relative to the original in %, or the difference in points where it is a share.

    None: one side does not have it. `is_beyond` is whether that, or more than `limit`, is off.
    """

    quantity: str
    direction: str | None
    unit: str
    original: float | None
    synthetic: float | None
    deviation: float | None
    deviation_unit: str
    limit: float
    is_beyond: bool


@dataclass(frozen=True, slots=True)
class WorkloadMatch:
    """All lines, and how many of them are beyond their limit."""

    filesystem: str
    original: str
    window_start: datetime | None
    window_end: datetime | None
    original_targets: int
    synthetic_targets: int
    beyond: int
    quantities: list[MatchedQuantity]


def match_workloads(
    model: WorkloadModel,
    again: WorkloadModel,
    synthetic: Workload,
    original: Workload | None = None,
    origin: str = "model",
) -> WorkloadMatch:
    """`model` is what the synthetic workload was made from, `again` what was found in it; `origin` names the former."""
    aim = model if original is not None else model.balanced()
    quantities = [*_parameters(aim, again), *_rhythm(model, again, synthetic), *_percentiles(aim, original, synthetic)]
    if original is not None:
        quantities += _characterised(original, synthetic)
    return WorkloadMatch(
        filesystem=synthetic.filesystem,
        original=origin,
        window_start=synthetic.window_start,
        window_end=synthetic.window_end,
        original_targets=model.targets if original is None else len(original.targets),
        synthetic_targets=len(synthetic.targets),
        beyond=sum(quantity.is_beyond for quantity in quantities),
        quantities=quantities,
    )


def _parameters(model: WorkloadModel, again: WorkloadModel) -> Iterator[MatchedQuantity]:
    for direction in DIRECTIONS:
        mine, other = model.of(direction), again.of(direction)
        for name, unit in UNITS.items():
            yield from _marginals(name, direction, unit, getattr(mine, name), getattr(other, name))
        busy = 100.0 * mine.busy_share(model.tick_s), 100.0 * other.busy_share(again.tick_s)
        yield _line("samples with traffic", direction, "%", *busy, SHARE_POINTS, POINTS)
        yield _line("size CDF, largest difference", direction, "%", 0.0, _size_gap(mine, other), SHARE_POINTS, POINTS)
    mix = model.read_requests_pct, again.read_requests_pct
    yield _line("reads among requests", None, "%", *mix, MIX_POINTS, POINTS)
    together = 100.0 * model.correlation, 100.0 * again.correlation
    if min(model.targets, again.targets) > 1:
        yield _line("correlation of targets", None, "%", *together, CORRELATION_POINTS, POINTS)


def _marginals(
    name: str, direction: str, unit: str, mine: Marginal | None, other: Marginal | None
) -> Iterator[MatchedQuantity]:
    if mine is None and other is None:
        return
    if mine is None or other is None:
        means = [None if marginal is None else marginal.mean() for marginal in (mine, other)]
        yield _line(f"{name} mean", direction, unit, means[0], means[1], PARAMETER_PCT)
        return
    if mine.alpha is not None and other.alpha is not None:
        yield _line(f"{name} alpha", direction, "", mine.alpha, other.alpha, PARAMETER_PCT)
        yield _line(f"{name} xm", direction, unit, mine.xm, other.xm, PARAMETER_PCT)
        return
    for share in (0.5, 0.9, 0.99):
        values = [float(marginal.quantile(np.array([share]))[0]) for marginal in (mine, other)]
        yield _line(f"{name} p{100 * share:g}", direction, unit, values[0], values[1], PARAMETER_PCT)


def _size_gap(mine: DirectionModel, other: DirectionModel) -> float:
    """The largest difference between two cumulative shares, in points."""
    ends = sorted({size for size, _ in (*mine.sizes, *other.sizes)})
    reached = [[sum(share for size, share in model.sizes if size <= end) for end in ends] for model in (mine, other)]
    return float(100.0 * np.abs(np.diff(reached, axis=0)).max())


def _rhythm(model: WorkloadModel, again: WorkloadModel, synthetic: Workload) -> Iterator[MatchedQuantity]:
    """The hour of the week whose factor is farthest off, of those that were made; less than two days tell nothing."""
    start, end = synthetic.window_start, synthetic.window_end
    if start is None or end is None or (end - start).days < LEAST_DAYS:
        return
    ends = np.arange(epoch_us(start) + QUARTER_US, epoch_us(end) + 1, QUARTER_US, dtype=np.int64)
    hours = hour_of_week(local_hours(ends, model.timezone))
    factors = [factors_of_week(workload_model.hours, workload_model.days)[hours] for workload_model in (model, again)]
    if min(factor.mean() for factor in factors) <= 0:
        return
    mine, other = (factor / factor.mean() for factor in factors)
    worst = int(np.argmax(np.abs(other - mine)))
    day, hour = divmod(int(hours[worst]), 24)
    label = f"rhythm, {WEEKDAYS[day]} {hour} h (farthest off)"
    yield _line(label, None, "× usual", float(mine[worst]), float(other[worst]), PARAMETER_PCT)


def _percentiles(model: WorkloadModel, original: Workload | None, synthetic: Workload) -> Iterator[MatchedQuantity]:
    for direction in DIRECTIONS:
        for percentile in PERCENTILES:
            name = f"{direction}_p{percentile}_bytes_per_s"
            mine = (
                _model_percentile(model, direction, percentile) if original is None else _median(original.targets, name)
            )
            values = mine, _median(synthetic.targets, name)
            yield _line(f"target p{percentile}, median", direction, "bytes/s", *values, PERCENTILE_PCT)
            if original is not None and len(original.targets) == len(synthetic.targets):
                together = _of_all(original, name), _of_all(synthetic, name)
                yield _line(f"all targets p{percentile}", direction, "bytes/s", *together, PERCENTILE_PCT)


def _model_percentile(model: WorkloadModel, direction: str, percentile: int) -> float:
    """Over all samples, those without traffic among them."""
    busy = model.of(direction).busy_share(model.tick_s)
    share = (percentile / 100.0 - (1.0 - busy)) / busy
    return float(model.of(direction).bandwidth.quantile(np.array([share]))[0]) if share > 0 else 0.0


def _median(targets: Sequence[TargetWorkload], name: str) -> float | None:
    known = [value for target in targets if (value := getattr(target, name)) is not None]
    return median(known) if known else None


def _of_all(workload: Workload, name: str) -> float | None:
    value: float | None = getattr(workload.aggregate, name, None)
    return value


def _alpha(tail: HeavyTail | None, fit: str) -> float | None:
    result = getattr(tail, fit, None)
    return None if result is None else float(result.alpha)


def _characterised(original: Workload, synthetic: Workload) -> Iterator[MatchedQuantity]:
    """Shares, and both fits of what is Pareto in the original: elsewhere, alpha only tells of the smallest value."""
    for name, mine in original.models.items():
        direction, _, what = name.partition("_")
        if mine.best_model not in (PARETO, TRUNCATED_PARETO):
            continue
        for label, fit in (("as paper S", "paper"), ("quantised", "quantised"), ("likeliest tail", "mle")):
            alphas = _alpha(mine, fit), _alpha(synthetic.models.get(name), fit)
            if alphas == (None, None):
                continue
            yield _line(f"{what} alpha, {label}", direction, "", *alphas, PARAMETER_PCT)
    for label, name in (("writes among bytes", "write_bytes_pct"), ("samples without traffic", "idle_pct")):
        shares = _of_all(original, name), _of_all(synthetic, name)
        yield _line(label, None, "%", *shares, SHARE_POINTS, POINTS)


def _line(
    quantity: str,
    direction: str | None,
    unit: str,
    original: float | None,
    synthetic: float | None,
    limit: float,
    measured_in: str = PERCENT,
) -> MatchedQuantity:
    deviation = None
    if original is not None and synthetic is not None:
        difference = synthetic - original
        if measured_in == POINTS:
            deviation = difference
        elif original:
            deviation = 100.0 * difference / original
        elif not difference:
            deviation = 0.0
    beyond = abs(deviation) > limit if deviation is not None else original is not None or synthetic is not None
    return MatchedQuantity(quantity, direction, unit, original, synthetic, deviation, measured_in, limit, beyond)
