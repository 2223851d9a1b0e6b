"""One run against its history: the verdict in words, then every factor in a line."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from iolens.views.explain.words import LABELS, notes, share_words, shown_percentile, verdict_words, who_words
from iolens.views.render import tables as t
from iolens.views.runs.words import number
from iolens.visible_text import visible

if TYPE_CHECKING:
    from iolens.analyses.explain.analysis import RunExplanation
    from iolens.views.render.tables import Row, TableView


PERCENTILE: Final = t.TableColumn("percentile", "Percentile", "number", lambda value: str(shown_percentile(value)))


def tables(result: RunExplanation) -> list[TableView]:
    """The factors; with neighbours, these as well."""
    columns = (
        t.text("kind", "Whose"), t.text("factor", "Factor"), number("value", "Value"),
        PERCENTILE, t.number("rho", "ρ", form="+.2f"),
        t.number("p_holm", "p (Holm)", form=".2g"), t.text("named", "Explains"),
    )  # fmt: skip
    title = f"{who_words(result)}: {verdict_words(result)}"
    factors = t.TableView(
        title,
        columns,
        [*_rows(result)],
        "\n".join(notes(result)),
        name="factors",
        keep=("factor", "value", "percentile", "named"),
    )
    if not result.neighbours:
        return [factors]
    others = (t.text("name", "Job"), t.percent("share_pct", "Share"), t.text("share_of", "Of the"))
    lines = [t.row_of(line, others, {"share_of": share_words(line)}) for line in result.neighbours]
    return [factors, t.TableView("Others in its time", others, lines, name="neighbours")]


def _rows(result: RunExplanation) -> Iterator[Row]:
    for kind, lines in (("own", result.own), ("system", result.system)):
        for line in lines:
            label, value = LABELS[line.factor], line.value
            if isinstance(value, str):
                label, value = f"{label}: {value}", None
            elif line.target is not None:
                label = f"{label}: {visible(line.target)}"
            yield kind, label, value, line.percentile, line.rho, line.p_holm, "yes" if line.named else ""
