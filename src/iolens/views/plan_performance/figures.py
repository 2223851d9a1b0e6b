"""How the demand of ticks is distributed, and what each speed of the next system makes of it."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

import numpy as np

from iolens.units import format_bytes_si, tick_word
from iolens.views.render.figures import (
    FSU,
    READ,
    WRITE,
    WRITE_SHADES,
    Axis,
    Figure,
    LineMark,
    Mark,
    Panel,
    side_by_side,
)

if TYPE_CHECKING:
    from iolens.analyses.demand import DemandMeasure
    from iolens.plans.cases import PerformanceCase
    from iolens.plans.performance import PerformancePlan

SHADES: Final = (*WRITE_SHADES, FSU)
FAMILIES: Final = (
    ("bandwidth", ("read_bytes_per_s", "write_bytes_per_s", "bytes_per_s")),
    ("operations", ("read_ops_per_s", "write_ops_per_s", "ops_per_s")),
    ("disk I/Os", ("disk_read_ios_per_s", "disk_write_ios_per_s", "disk_ios_per_s")),
    ("metadata operations", ("metadata_ops_per_s",)),
)
COLOURS: Final = (READ, WRITE, FSU)
DECADES: Final = 6  # below the largest: less is not worth the space
RARE: Final = 0.01


FIGURES: Final = ("demand", "required")


def figures(result: PerformancePlan) -> dict[str, Callable[[], Figure]]:
    """The demand over ticks, and what it becomes."""
    by_name: dict[str, Callable[[], Figure]] = {}
    if result.demand:
        by_name["demand"] = lambda: demand(result)
    by_name["required"] = lambda: required(result)
    return by_name


def demand(result: PerformancePlan) -> Figure:
    """Share of ticks at or below a rate, one panel for each kind of demand."""
    measures = {measure.measure: measure for measure in result.demand}
    panels = []
    for word, names in FAMILIES:
        mine = [(measures[name], colour) for name, colour in zip(names, COLOURS, strict=False) if name in measures]
        if mine:
            panels.append(_distribution(result, word, mine))
    return Figure("demand", "Demand over ticks", tuple(panels))


def required(result: PerformancePlan) -> Figure:
    """What is required by measure and percentile, one panel for each kind, the speeds side by side."""
    panels = [
        _bars(word, [case for case in result.cases if case.measure in names])
        for word, names in FAMILIES
        if any(case.measure in names for case in result.cases)
    ]
    others = [case for case in result.cases if all(case.measure not in names for _, names in FAMILIES)]
    panels += [_bars("other", others)] if others else []
    return Figure("required", "Required performance", tuple(panels))


def _distribution(result: PerformancePlan, word: str, measures: list[tuple[DemandMeasure, str]]) -> Panel:
    from iolens.views.plan_performance.tables import measure_name

    top = max(measure.max for measure, _ in measures) or 1.0
    low = max(top / 10.0**DECADES, min(_rare(measure) for measure, _ in measures))
    marks: list[Mark] = []
    for demand_measure, colour in measures:
        bins = demand_measure.days_apart
        assert bins is not None
        share = 100.0 * np.cumsum(bins.counts.sum(axis=0)) / max(bins.counts.sum(), 1)
        x = np.log10(np.maximum(bins.rates, low))
        marks.append(
            LineMark(
                np.append(x, math.log10(top)), np.append(share, 100.0), measure_name(demand_measure.measure), colour
            )
        )
    is_bytes = "bytes" in measures[0][0].measure
    powers = range(math.ceil(math.log10(low)), math.floor(math.log10(top)) + 1)
    ticks = tuple((float(power), _amount(10.0**power, is_bytes)) for power in powers)
    name = tick_word(result.tick_s)
    axis = Axis(f"{word} of a {name}, log scale", low=math.log10(low), high=math.log10(top), ticks=ticks)
    tick = f", ticks of {result.tick_s:g} s" if result.tick_s is not None and name == "tick" else ""
    return Panel(
        f"{result.filesystem}, the reference system (SSI 1){tick}",
        axis,
        Axis(f"{name}s at or below (%)", low=0, high=102),
        tuple(marks),
    )


def _rare(measure: DemandMeasure) -> float:
    """The decade below which one tick in a hundred lies; 0 where ticks are idle more often."""
    bins = measure.days_apart
    assert bins is not None
    reached = np.cumsum(bins.counts.sum(axis=0))
    rate = float(bins.rates[np.argmax(reached >= RARE * reached[-1])])
    return 10.0 ** math.floor(math.log10(rate)) if rate > 0 else 0.0


def _bars(word: str, cases: list[PerformanceCase]) -> Panel:
    from iolens.views.plan_performance.tables import percentile_name

    keys = list(dict.fromkeys((case.measure, case.percentile) for case in cases))
    names = tuple(f"{_direction(measure)} {percentile_name(share)}".strip() for measure, share in keys)
    speeds = list(dict.fromkeys(case.ssi for case in cases))
    values = {(case.ssi, case.measure, case.percentile): case.required for case in cases}
    is_bytes = "bytes" in cases[0].measure
    top = max(values.values()) or 1.0
    factor, unit = _scale(top, is_bytes)
    groups = [
        (
            f"SSI {speed:g}",
            SHADES[place % len(SHADES)],
            np.array([values.get((speed, *key), 0.0) / factor for key in keys]),
        )
        for place, speed in enumerate(speeds)
    ]
    x = Axis("", low=-0.6, high=len(names) - 0.4, ticks=tuple((float(i), name) for i, name in enumerate(names)))
    return Panel(word, x, Axis(f"required ({unit})", low=0, high=1.15 * top / factor), side_by_side(groups, names))


def _direction(measure: str) -> str:
    """What tells measures of one panel apart."""
    directions = [direction for direction in ("read", "write") if direction in measure]
    return directions[0] if directions else "" if measure.startswith("metadata") else "both"


def _scale(top: float, is_bytes: bool) -> tuple[float, str]:
    if not is_bytes:
        return 1.0, "per second"
    number, unit = format_bytes_si(top).split()
    return top / float(number), f"{unit}/s"


def _amount(value: float, is_bytes: bool) -> str:
    return f"{format_bytes_si(value)}/s" if is_bytes else f"{value:,.0f}" if value >= 1 else f"{value:g}"
