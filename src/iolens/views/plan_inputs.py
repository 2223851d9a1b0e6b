"""What a plan rests on, for people: every input with its range and its origin."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from iolens.units import format_bytes_si
from iolens.views.render import tables as t

if TYPE_CHECKING:
    from collections.abc import Sequence

    from iolens.plans.cases import Input
    from iolens.plans.plausibility import PlanWarning
    from iolens.views.render.tables import TableView


def warned(tables: list[TableView], warnings: Sequence[PlanWarning]) -> list[TableView]:
    """The tables, the first of which begins with what does not fit."""
    return [replace(tables[0], warnings=tuple(map(str, warnings))), *tables[1:]]


def inputs(given: Sequence[Input]) -> TableView:
    """One line per input; amounts of bytes in powers of ten."""
    columns = (
        t.text("name", "Input"), t.text("kind", "Is a"), t.text("low", "Low"), t.text("expected", "Expected"),
        t.text("high", "High"), t.text("origin", "Origin"),
    )  # fmt: skip
    rows = [
        (
            parameter.name,
            parameter.kind,
            *(shown(parameter.name, end) for end in (parameter.low, parameter.expected, parameter.high)),
            parameter.origin,
        )
        for parameter in dict.fromkeys(given)
    ]
    return t.TableView("What this rests on", columns, list(rows), name="inputs", keep=("expected", "origin"))


def shown(name: str, amount: float) -> str:
    """`133 TB` for what is called bytes, `35 GB/s` for bytes per second, a plain number for the rest."""
    if t.is_missing(amount):
        return t.MISSING
    if name.endswith("_bytes"):
        return format_bytes_si(amount)
    if name.endswith("bytes_per_s"):
        return f"{format_bytes_si(amount)}/s"
    return f"{amount:,.0f}" if float(amount).is_integer() else f"{amount:,.4g}"


def interval(ends: tuple[float, float] | None, form: str = ".3g") -> str | None:
    """`0.22 … 0.25`."""
    return None if ends is None else f"{ends[0]:{form}} … {ends[1]:{form}}"
