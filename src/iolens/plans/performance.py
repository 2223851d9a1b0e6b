"""How much bandwidth and how many operations per second the next system needs (SPEC B10): demand × SSI.

Demand is a percentile over the ticks of the reference system. A system that runs SSI times the work asks for SSI times
as much per second; how much more than that it should deliver is the buyer's choice of percentile.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Final

import numpy as np

from iolens.analyses.demand import PERCENTILES, Demand, DemandMeasure
from iolens.errors import NotKnownError, UsageError
from iolens.models.resampling import SEED, interval95
from iolens.plans.cases import Input, PerformanceCase, number, rate_or_number
from iolens.plans.plausibility import PlanWarning, performance_warnings
from iolens.units import tick_word
from iolens.visible_text import counted

EQUATION: Final = "required = SSI · demand at a percentile over ticks"
DEFAULT_PERCENTILES: Final = (95.0, 99.0, 100.0)


@dataclass(frozen=True, slots=True)
class PerformancePlan:
    """Bandwidth and operations for every speed, measure and percentile, and the demand behind them."""

    equation: str
    filesystem: str | None
    window_start: datetime | None
    window_end: datetime | None
    tick_s: float | None
    resolution: str | None
    origin: str | None
    warnings: list[PlanWarning]
    cases: list[PerformanceCase]
    demand: list[DemandMeasure]
    partial_days: list[date]
    inputs: list[Input]
    notes: list[str]


def plan_performance(
    speeds: Sequence[Input],
    demand: Demand | None = None,
    *,
    given: Sequence[Input] = (),
    percentiles: Sequence[float] = DEFAULT_PERCENTILES,
) -> PerformancePlan:
    """Cases for the store's `demand` at each percentile, and for demands that are `given` by the name of a measure."""
    wrong = [percentile for percentile in percentiles if percentile not in PERCENTILES]
    if wrong:
        known = ", ".join(f"{value:g}" for value in PERCENTILES)
        raise UsageError(f"no percentile {wrong[0]:g} here; there are {known} (100 is the largest tick)")
    if demand is None and not given:
        raise NotKnownError("no demand: give it with --demand, or a store that has bytes and operations of targets")
    for speed in speeds:
        if not (speed.low > 0 and np.isfinite(speed.high)):
            raise UsageError(f"ssi must be above 0, not {speed.low:g}")
    named = {parameter.name for parameter in given}
    measured = [measure for measure in demand.measures if measure.measure not in named] if demand is not None else []
    tick = tick_word(demand.tick_s if demand is not None else None)
    cases = [
        *(_given_case(speed, parameter) for speed in speeds for parameter in given),
        *(_case(speed, measure, share, tick) for speed in speeds for measure in measured for share in percentiles),
    ]
    return PerformancePlan(
        equation=EQUATION,
        filesystem=demand.filesystem if demand is not None else None,
        window_start=demand.window_start if demand is not None else None,
        window_end=demand.window_end if demand is not None else None,
        tick_s=demand.tick_s if demand is not None else None,
        resolution=demand.resolution if demand is not None else None,
        origin=demand.origin if demand is not None else None,
        warnings=performance_warnings(cases, given, demand),
        cases=cases,
        demand=measured,
        partial_days=demand.partial_days if demand is not None else [],
        inputs=[*speeds, *given, *(_input(measure, percentiles, demand) for measure in measured if demand is not None)],
        notes=list(demand.notes) if demand is not None else [],
    )


def unit_of(measure: str) -> str:
    """Bytes or operations per second, by the measure's name."""
    return "bytes/s" if "bytes" in measure else "1/s"


def _case(speed: Input, measure: DemandMeasure, percentile: float, tick: str) -> PerformanceCase:
    level = measure.at(percentile)
    ends = {95.0: measure.p95_ci95, 99.0: measure.p99_ci95}.get(percentile) or (level, level)
    bins = measure.days_apart
    random = np.random.default_rng(SEED)
    drawn = None
    if ends[0] != ends[1] and bins is not None:
        drawn = bins.resampled(percentile, random)
    elif speed.kind != "value":
        drawn = np.full(1, level)
    return PerformanceCase(
        ssi=speed.expected,
        measure=measure.measure,
        unit=measure.unit,
        percentile=percentile,
        demand=level,
        required=speed.expected * level,
        low_required=speed.low * min(ends[0], level),
        high_required=speed.high * max(ends[1], level),
        ci95=None if drawn is None else interval95(drawn * speed.draws(random)),
        tick=tick,
    )


def _given_case(speed: Input, demand: Input) -> PerformanceCase:
    random = np.random.default_rng(SEED)
    uncertain = speed.kind != "value" or demand.kind != "value"
    return PerformanceCase(
        ssi=speed.expected,
        measure=demand.name,
        unit=unit_of(demand.name),
        percentile=None,
        demand=demand.expected,
        required=speed.expected * demand.expected,
        low_required=speed.low * demand.low,
        high_required=speed.high * demand.high,
        ci95=interval95(demand.draws(random) * speed.draws(random)) if uncertain else None,
    )


def _input(measure: DemandMeasure, percentiles: Sequence[float], demand: Demand) -> Input:
    """The measure from the lowest to the highest percentile asked for, the middle one expected."""
    ordered = sorted(percentiles)
    low, middle, high = ordered[0], ordered[len(ordered) // 2], ordered[-1]
    words = (
        f"{low:g}, {middle:g} and {high:g} % over {counted(measure.ticks, tick_word(demand.tick_s))}; {demand.origin}"
    )
    return Input(measure.measure, "distribution", measure.at(low), measure.at(middle), measure.at(high), words)


# The inputs of a performance plan -------------------------------------------------------------------------------------
# Demand known elsewhere, and percentiles of ticks.


def percentiles(words: Sequence[str]) -> list[float]:
    """Shares of ticks in per cent."""
    if not words:
        raise UsageError("--percentile: name at least one, such as 95")
    return [number(word, "--percentile") for word in words]


def given_demand(text: str) -> Input:
    """A demand known elsewhere, from `MEASURE=VALUE`."""
    name, equals, value = (part.strip() for part in text.partition("="))
    if not equals or not name.endswith("_per_s"):
        raise UsageError(f"--demand {text!r}: write MEASURE=VALUE, such as bytes_per_s=35GB/s or ops_per_s=2e6")
    return rate_or_number(name, value, "--demand")
