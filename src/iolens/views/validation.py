"""Published studies against what iolens makes of their data, for people: one line per number, and the sum of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from iolens.views.render import tables as t
from iolens.visible_text import counted

if TYPE_CHECKING:
    from collections.abc import Callable

    from iolens.validation import Validation
    from iolens.views.render.figures import Figure
    from iolens.views.render.tables import Row, TableView


def tables(result: Validation) -> list[TableView]:
    """The numbers first, then the files they come from."""
    return [checks(result), inputs(result)] if result.inputs else [checks(result)]


def figures(result: Validation) -> dict[str, Callable[[], Figure]]:
    """None: the studies' figures are drawn by the verbs that make them."""
    return {}


def checks(result: Validation) -> TableView:
    """One line per number of a study, in the order of the paper."""
    columns = (
        t.text("study", "Study"), t.text("where", "Where"), t.text("quantity", "Quantity"), t.text("basis", "Basis"),
        t.text("published", "Published"), t.TableColumn("recomputed", "Recomputed", "number", shown),
        t.text("unit", "Unit"), t.TableColumn("deviation_pct", "Deviation", "number", shown_deviation, "%"),
        t.text("verdict", "Verdict"), t.text("reason", "Reason"),
    )  # fmt: skip
    rows = [
        t.row_of(check, columns, {"published": check.published_text, "unit": check.unit or None})
        for check in result.checks
    ]
    return t.TableView(
        "Published studies, recomputed from their own data (not from yours)",
        columns,
        rows,
        "\n".join(notes(result)),
        name="checks",
        keep=("quantity", "published", "recomputed", "verdict"),
    )


def notes(result: Validation) -> list[str]:
    """The sum of it, and what the tags stand for."""
    verdicts = "; ".join(f"{count} {verdict}" for verdict, count in result.verdicts.items() if count)
    lines = [
        f"{counted(len(result.checks), 'number')}: {verdicts}." if verdicts else "No number was checked.",
        "Basis: printed in the study, implied by what it prints, or a reference: calculated independently where the"
        " study has an equation or a picture only.",
    ]
    if result.data is None and result.inputs:
        lines.append("No data were given: only what needs none is recomputed.")
    return [*lines, *(f"{study.tag}: {study.title}. {study.address}" for study in result.studies)]


def inputs(result: Validation) -> TableView:
    """The public files behind the numbers."""
    columns = (
        t.text("path", "File"), t.text("present", "Here"), t.count("refused_lines", "Lines refused"),
        t.text("origin", "Published at"),
    )  # fmt: skip
    rows: list[Row] = [
        (file.path, "yes" if file.present else "no", file.refused_lines, file.origin) for file in result.inputs
    ]
    return t.TableView("Data", columns, rows, name="data")


def shown(value: Any) -> str:
    """Whole numbers with thousands apart, others to four digits."""
    return f"{value:,.0f}" if float(value).is_integer() else f"{value:,.4g}"


def shown_deviation(value: Any) -> str:
    """With its sign, unless it is nothing."""
    text = f"{value:+.1f}"
    return "0.0" if float(text) == 0 else text
