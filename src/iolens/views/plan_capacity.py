"""A capacity plan for people: the cases of Eq. 1, the inputs with their origins, growth, and purge policies."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from iolens.units import format_bytes_si
from iolens.views import growth as growth_figures
from iolens.views import growth as growth_view
from iolens.views.growth import byte_unit
from iolens.views.plan_inputs import warned
from iolens.views.render import tables as t
from iolens.views.render.figures import FSU, KINDS, METADATA, READ, WRITE, Axis, Bars, Figure, LineMark, Panel
from iolens.views.render.shown_times import time_with_zone

if TYPE_CHECKING:
    from iolens.plans.capacity import CapacityPlan
    from iolens.plans.cases import Input
    from iolens.views.render.tables import Row, TableView


IN_BYTES: Final = "_bytes"


def tables(result: CapacityPlan) -> list[TableView]:
    """The cases first."""
    views = [cases(result), inputs(result), purges(result)]
    if result.growth is not None:
        views.append(growth_view.headline(result.growth))
    return warned([*views, ages(result)] if result.ages else views, result.warnings)


def cases(result: CapacityPlan) -> TableView:
    """One line per combination of the inputs."""
    columns = (
        t.number("ssi", "SSI", "", "g"), t.number("purge_days", "Purge", "days", "g"),
        t.number("purge_fraction", "Purge fraction", "", "g"), t.volume("daily_growth_bytes", "Daily growth"),
        t.volume("capacity_bytes", "Capacity"), t.volume("low_bytes", "Low"), t.volume("high_bytes", "High"),
        t.volume("ci95_low_bytes", "95 % from"), t.volume("ci95_high_bytes", "to"),
    )  # fmt: skip
    rows: list[Row] = [
        (
            case.ssi, case.purge_days, case.purge_fraction, case.daily_growth_bytes, case.capacity_bytes,
            case.low_bytes, case.high_bytes, *(case.ci95 if case.ci95 is not None else (None, None)),
        )
        for case in result.cases
    ]  # fmt: skip
    notes = [
        f"{result.equation}. Low and high: every input at the end that asks for least or most.",
        *map(t.sentence, result.notes),
    ]
    return t.TableView("Capacity of the new system", columns, rows, "\n".join(notes), name="cases")


def inputs(result: CapacityPlan) -> TableView:
    """Every number that went in, and where it comes from."""
    columns = (
        t.text("name", "Input"), t.text("kind", "is a"), t.text("expected", "Expected"), t.text("low", "Low"),
        t.text("high", "High"), t.text("origin", "Origin"),
    )  # fmt: skip
    rows: list[Row] = [
        (
            parameter.name.removesuffix(IN_BYTES),
            parameter.kind,
            *(_shown(parameter, end) for end in ("expected", "low", "high")),
            parameter.origin,
        )
        for parameter in result.inputs
    ]
    return t.TableView("Inputs", columns, rows, name="inputs", keep=("expected", "origin"))


def _shown(parameter: Input, end: str) -> str | None:
    value: float = getattr(parameter, end)
    if end != "expected" and parameter.kind == "value":
        return None
    return format_bytes_si(value) if parameter.name.endswith(IN_BYTES) else f"{value:g}"


def purges(result: CapacityPlan) -> TableView:
    """What each purge policy leaves now, and where the new system settles."""
    columns = [
        t.number("ssi", "SSI", "", "g"), t.count("keep_days", "Kept (days)"), t.count("every_days", "Every (days)"),
        t.volume("steady_trough_bytes", "Settles between"), t.volume("steady_peak_bytes", "and"),
        t.number("freed_fraction", "Freed each time", "", ".2f"),
    ]  # fmt: skip
    note = "Only daily growth adds bytes here, and only purges remove them."
    if result.ages:
        columns += [
            t.volume("survive_bytes", "Survives now"), t.percent("survive_pct", "of all"),
            t.volume("survive_low_bytes", "at least"), t.volume("survive_high_bytes", "at most"),
            t.volume("freed_bytes", "Freed now"), t.volume("peak_from_ages_bytes", "Peak by ages"),
        ]  # fmt: skip
        first = result.ages[0]
        note += (
            f" Ages by {first.clock} of the scan of {time_with_zone(first.time)}; what survives now is of the reference"
            " system. Peak by ages: SSI times the sum of what survives and what grows until the next purge."
        )
    return t.TableView("Purge policies", tuple(columns), t.rows_of(result.purges, columns), note, name="purges")


def ages(result: CapacityPlan) -> TableView:
    """Bytes used within so many days: what a fast tier of that reach holds."""
    columns = (
        t.text("clock", "Age by"), t.text("age", "At most"), t.volume("bytes", "Bytes"), t.percent("pct", "of all"),
    )  # fmt: skip
    rows: list[Row] = [
        (curve.clock, _age(point.age_days), point.bytes, point.pct) for curve in result.ages for point in curve.points
    ]
    note = "A fast tier that holds what was used within so many days needs as many bytes."
    return t.TableView("Ages of bytes", columns, rows, note, name="ages")


def _age(days: float | None) -> str:
    if days is None:
        return "any age"
    return f"{days * 24:g} h" if 0 < days < 1 else f"{days:g} d"


def labels(result: CapacityPlan) -> list[str]:
    """What tells the cases apart."""
    names = ("ssi", "purge_days", "purge_fraction", "daily_growth_bytes")
    various = [name for name in names if len({getattr(case, name) for case in result.cases}) > 1] or ["ssi"]
    return [", ".join(_label(name, getattr(case, name)) for name in various) for case in result.cases]


def _label(name: str, value: Any) -> str:
    forms = {
        "ssi": f"SSI {value:g}",
        "purge_days": f"{value:g} days",
        "purge_fraction": f"fraction {value:g}",
        "daily_growth_bytes": f"{format_bytes_si(value)}/day",
    }
    return forms[name]


# Figures of a capacity plan -------------------------------------------------------------------------------------------
# Growth (Fig. 1 of paper P), the cases, usage under purge policies, ages of bytes.

# Paul Tol's vibrant colours.
COLOURS: Final = (WRITE, READ, METADATA, KINDS[1], KINDS[4], KINDS[5], FSU)
NO_SCAN: Final = "the ages of files are not known"


FIGURES: Final = ("growth", "cases", "purges", "ages")


def figures(result: CapacityPlan) -> dict[str, Callable[[], Figure]]:
    """Fig. 1 of paper P, the cases, usage under purge policies, ages."""
    return {
        "growth": lambda: growth(result),
        "cases": lambda: cases_figure(result),
        "purges": lambda: purges_figure(result),
        "ages": lambda: ages_figure(result),
    }


def growth(result: CapacityPlan) -> Figure:
    """How the days of growth are distributed."""
    if result.growth is not None:
        return growth_figures.distribution(result.growth)
    panel = Panel("", Axis("daily growth"), Axis("days"), message="the daily growth was given, not measured")
    return Figure("growth", "Distribution of daily growth", (panel,))


def cases_figure(result: CapacityPlan) -> Figure:
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


def purges_figure(result: CapacityPlan) -> Figure:
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


def ages_figure(result: CapacityPlan) -> Figure:
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
