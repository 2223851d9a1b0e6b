"""Bandwidth and operations of the next system for people, and the demand they follow from."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

import numpy as np

from iolens.units import format_bytes_si, tick_word
from iolens.views.plan_inputs import inputs, warned
from iolens.views.render import tables as t
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
    from iolens.views.render.tables import Row, TableColumn, TableView


NAMES: Final = {
    "read_bytes_per_s": "read bandwidth",
    "write_bytes_per_s": "write bandwidth",
    "bytes_per_s": "bandwidth",
    "read_ops_per_s": "reads",
    "write_ops_per_s": "writes",
    "ops_per_s": "reads and writes",
    "disk_read_ios_per_s": "disk reads",
    "disk_write_ios_per_s": "disk writes",
    "disk_ios_per_s": "disk I/Os",
    "metadata_ops_per_s": "metadata operations",
}


def tables(result: PerformancePlan) -> list[TableView]:
    """Cases first."""
    views = [cases(result), *([demand(result)] if result.demand else []), inputs(result.inputs)]
    return warned(views, result.warnings)


def measure_name(measure: str) -> str:
    """`write bandwidth`."""
    return NAMES.get(measure, measure.removesuffix("_per_s").replace("_", " "))


class Rate(float):
    """A rate that knows whether it counts bytes, so that one column can show bandwidth and operations alike."""

    is_bytes: bool

    @classmethod
    def of(cls, measure: str, value: float | None) -> Rate | None:
        """The rate of a measure; None where it is missing."""
        if value is None or t.is_missing(value):
            return None
        rate = cls(value)
        rate.is_bytes = "bytes" in measure
        return rate

    def __str__(self) -> str:
        if self.is_bytes:
            return f"{format_bytes_si(float(self))}/s"
        return f"{float(self):,.0f} /s" if self >= 10 else f"{float(self):.2g} /s"


def rate(name: str, heading: str) -> TableColumn:
    """`35 GB/s` or `120,000 /s`."""
    return t.TableColumn(name, heading, "number", str)


def percentile_name(percentile: float | None) -> str:
    """`95%`, `largest`, `given`."""
    return "given" if percentile is None else "largest" if percentile == 100 else f"{percentile:g}%"


MEASURE: Final = t.TableColumn("measure", "Measure", "text", measure_name)


def cases(result: PerformancePlan) -> TableView:
    """What every speed asks for."""
    columns = (
        t.number("ssi", "SSI", form="g"), MEASURE,
        t.TableColumn("percentile", f"Of {tick_word(result.tick_s)}s", "number", percentile_name, ""),
        rate("demand", "Demand"), rate("required", "Required"), rate("low_required", "… low"),
        rate("high_required", "… high"), rate("ci95_low", "95 % interval from"), rate("ci95_high", "… to"),
    )  # fmt: skip
    rows: list[Row] = []
    for case in result.cases:
        amounts = (case.demand, case.required, case.low_required, case.high_required, *(case.ci95 or (None, None)))
        shown = [Rate.of(case.measure, amount) for amount in amounts]
        rows.append((case.ssi, case.measure, case.percentile, *shown))
    note = "\n".join(map(t.sentence, result.notes))
    return t.TableView(f"Performance: {result.equation}", columns, rows, note, name="cases")


def demand(result: PerformancePlan) -> TableView:
    """The reference system's ticks."""
    word = tick_word(result.tick_s)
    columns = (
        MEASURE, t.count("ticks", f"{word.capitalize()}s"), t.count("days", "Days"),
        t.count("complete_days", "… complete"), rate("mean", "Mean"),
        rate("p50", "50 %"), rate("p95", "95 %"), rate("p99", "99 %"), rate("max", "Largest"),
        t.time("max_time", "Largest at"),
    )  # fmt: skip
    rows: list[Row] = [
        (
            entry.measure, entry.ticks, entry.days, entry.complete_days,
            *(Rate.of(entry.measure, value) for value in (entry.mean, entry.p50, entry.p95, entry.p99, entry.max)),
            entry.max_time,
        )
        for entry in result.demand
    ]  # fmt: skip
    lasts = f"A tick lasts {result.tick_s:g} s; " if word == "tick" else ""
    notes = [] if result.tick_s is None else [t.sentence(f"{lasts}days are UTC days")]
    if result.partial_days:
        days = ", ".join(map(str, result.partial_days[:5])) + (", …" if len(result.partial_days) > 5 else "")
        notes.append(f"Days with less than 95 % of their {word}s: {days}.")
    return t.TableView(
        f"Demand on {result.filesystem}", columns, rows, "\n".join(notes), name="demand", keep=("p99", "max")
    )


# How the demand of ticks is distributed, and what each speed of the next system makes of it ---------------------------

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
        by_name["demand"] = lambda: demand_figure(result)
    by_name["required"] = lambda: required(result)
    return by_name


def demand_figure(result: PerformancePlan) -> Figure:
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
