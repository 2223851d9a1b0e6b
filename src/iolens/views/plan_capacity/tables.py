"""A capacity plan for people: the cases of Eq. 1, the inputs with their origins, growth, and purge policies."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from iolens.units import format_bytes_si
from iolens.views.growth import tables as growth_view
from iolens.views.plan_inputs import warned
from iolens.views.render import tables as t
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
