"""A synthetic workload against its original for people: a line for every quantity, flagged where it is too far off."""

from __future__ import annotations

from typing import TYPE_CHECKING

from iolens.views.render import tables as t
from iolens.visible_text import counted

if TYPE_CHECKING:
    from collections.abc import Callable

    from iolens.analyses.workload.match import MatchedQuantity, WorkloadMatch
    from iolens.views.render.figures import Figure
    from iolens.views.render.tables import Row, TableView


COLUMNS = (
    t.text("quantity", "Quantity"), t.text("direction", "Direction"), t.text("unit", "Unit"),
    t.number("original", "Original", form=".4g"), t.number("synthetic", "Synthetic", form=".4g"),
    t.number("deviation", "Deviation", form="+.2f"), t.text("deviation_unit", "in"),
    t.number("limit", "Limit", form="g"), t.text("verdict", "Verdict"),
)  # fmt: skip


def tables(result: WorkloadMatch) -> list[TableView]:
    """One table: parameters, percentiles, fits."""
    title = f"{result.filesystem}: synthetic against {result.original}"
    return [
        t.TableView(
            title,
            COLUMNS,
            [_row(quantity) for quantity in result.quantities],
            verdict(result),
            name="quantities",
            keep=("original", "synthetic", "deviation", "verdict"),
        )
    ]


def figures(result: WorkloadMatch) -> dict[str, Callable[[], Figure]]:
    """None: curves of either side are those of `workload`."""
    return {}


def verdict(result: WorkloadMatch) -> str:
    """In a sentence or two, how near it comes."""
    total = len(result.quantities)
    if not total:
        reported = "No quantity could be compared."
    elif total == 1:
        reported = f"The only quantity is {'beyond' if result.beyond else 'within'} its limit."
    elif not result.beyond:
        reported = f"All {total} quantities are within their limits."
    else:
        limits = "is beyond its limit" if result.beyond == 1 else "are beyond their limits"
        reported = f"{result.beyond} of {total} quantities {limits}."
    if result.original_targets != result.synthetic_targets:
        reported += (
            f" The original has {counted(result.original_targets, 'target')}, this one {result.synthetic_targets:,}:"
            " what all of them do together is not compared."
        )
    return reported


def _row(quantity: MatchedQuantity) -> Row:
    facts = (quantity.quantity, quantity.direction, quantity.unit, quantity.original, quantity.synthetic)
    return (
        *facts,
        quantity.deviation,
        quantity.deviation_unit,
        quantity.limit,
        "beyond" if quantity.is_beyond else "within",
    )
