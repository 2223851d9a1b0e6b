"""Figures of a capacity plan: growth (Fig. 1 of paper P), the cases, usage under purge policies, ages of bytes."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

import numpy as np

from iolens.units import format_bytes_si
from iolens.views.growth import figures as growth_figures
from iolens.views.growth.figures import byte_unit
from iolens.views.plan_capacity.tables import labels
from iolens.views.render.figures import (
    FSU,
    KINDS,
    METADATA,
    READ,
    WRITE,
    Axis,
    Bars,
    Figure,
    LineMark,
    Panel,
)

if TYPE_CHECKING:
    from iolens.plans.capacity import CapacityPlan

# Paul Tol's vibrant colours.
COLOURS: Final = (WRITE, READ, METADATA, KINDS[1], KINDS[4], KINDS[5], FSU)
NO_SCAN: Final = "the ages of files are not known"


FIGURES: Final = ("growth", "cases", "purges", "ages")


def figures(result: CapacityPlan) -> dict[str, Callable[[], Figure]]:
    """Fig. 1 of paper P, the cases, usage under purge policies, ages."""
    return {
        "growth": lambda: growth(result),
        "cases": lambda: cases(result),
        "purges": lambda: purges(result),
        "ages": lambda: ages(result),
    }


def growth(result: CapacityPlan) -> Figure:
    """How the days of growth are distributed."""
    if result.growth is not None:
        return growth_figures.distribution(result.growth)
    panel = Panel("", Axis("daily growth"), Axis("days"), message="the daily growth was given, not measured")
    return Figure("growth", "Distribution of daily growth", (panel,))


def cases(result: CapacityPlan) -> Figure:
    """Capacity of every case; the low and high answers as thinner bars beside it."""
    names = tuple(labels(result))
    expected, low, high = (
        np.array([float(getattr(case, f"{end}_bytes")) for case in result.cases]) for end in ("capacity", "low", "high")
    )
    factor, unit = byte_unit(float(high.max()))
    places = np.arange(len(names), dtype=float)
    shown = tuple(f"{name}: {format_bytes_si(size)}" for name, size in zip(names, expected, strict=True))
    marks = [Bars(places - 0.35, places + 0.2, expected / factor, "expected", WRITE, shown)]
    if (high > low).any():
        spans = tuple(f"{format_bytes_si(a)} to {format_bytes_si(b)}" for a, b in zip(low, high, strict=True))
        marks.append(Bars(places + 0.24, places + 0.36, (high - low) / factor, "low to high", FSU, spans, low / factor))
    x = Axis("case", low=-0.6, high=len(names) - 0.4, ticks=tuple(zip(places.tolist(), names, strict=True)))
    y = Axis(f"capacity ({unit})", low=0, high=1.1 * float(high.max()) / factor)
    return Figure("cases", "Capacity of the new system", (Panel(result.equation, x, y, tuple(marks)),))


def purges(result: CapacityPlan) -> Figure:
    """Usage of the reference system itself under each policy, from its present bytes on."""
    heading = "Usage of the reference system (SSI 1) under purge policies"
    x = Axis("days from the scan", low=0)
    if not result.courses:
        return Figure("purges", heading, (Panel("", x, Axis("used"), message=NO_SCAN),))
    top = max(float(course.course.before.max()) for course in result.courses)
    factor, unit = byte_unit(top)
    lines = []
    several = len({course.daily_growth_bytes for course in result.courses}) > 1
    for place, policy in enumerate(result.courses):
        days = np.repeat(np.arange(len(policy.course.before), dtype=float), 2)
        used = np.column_stack([policy.course.before, policy.course.after]).ravel() / factor
        label = f"SSI 1, kept {policy.policy.keep_days} d, purged every {policy.policy.every_days} d"
        label += f", {format_bytes_si(policy.daily_growth_bytes)}/day" if several else ""
        lines.append(LineMark(days, used, label, COLOURS[place % len(COLOURS)]))
    y = Axis(f"used ({unit})", low=0, high=1.08 * top / factor)
    return Figure("purges", heading, (Panel(result.filesystem or "", x, y, tuple(lines)),))


def ages(result: CapacityPlan) -> Figure:
    """Share of bytes used within so many days."""
    heading, y = "Ages of bytes", Axis("bytes (%)", low=0, high=105)
    curves = [curve for curve in result.ages if any(point.age_days for point in curve.points)]
    if not curves:
        return Figure("ages", heading, (Panel("", Axis("age (days)"), y, message=NO_SCAN),))
    lines = []
    for curve, colour in zip(curves, COLOURS, strict=False):
        points = [(point.age_days, point.pct) for point in curve.points if point.age_days and point.pct is not None]
        x, shares = (np.array(values, dtype=float) for values in zip(*points, strict=True))
        lines.append(LineMark(x, shares, f"since last {'access' if curve.clock == 'atime' else 'change'}", colour))
    low, high = min(float(line.x.min()) for line in lines), max(float(line.x.max()) for line in lines)
    axis = Axis("age (days), log scale", "log", low / 1.2, high * 1.2)
    return Figure("ages", heading, (Panel(result.filesystem or "", axis, y, tuple(lines)),))
