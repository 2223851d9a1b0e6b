"""Shipped classes for people: coefficients with their ends, then where the numbers come from."""

from __future__ import annotations

from typing import TYPE_CHECKING

from iolens.views.render import tables as t

if TYPE_CHECKING:
    from collections.abc import Callable

    from iolens.analyses.calibration.classes import ShippedClasses
    from iolens.views.render.figures import Figure
    from iolens.views.render.tables import TableView


_COSTS = (
    t.text("direction", "Direction"), t.number("latency_s", "Latency", "s", ".3e"),
    t.number("latency_low_s", "Low", "s", ".3e"), t.number("latency_high_s", "High", "s", ".3e"),
    t.number("s_per_byte", "Time per byte", "s/B", ".3e"), t.number("s_per_byte_low", "Low", "s/B", ".3e"),
    t.number("s_per_byte_high", "High", "s/B", ".3e"),
)  # fmt: skip
_EVIDENCE = (
    t.text("name", "Class"), t.text("about", "About"), t.size("smallest_bytes", "I/Os from"),
    t.size("largest_bytes", "To"), t.count("queue_depth", "Queue depth"), t.text("evidence", "Evidence"),
    t.text("unknown", "Not known"),
)  # fmt: skip


def tables(result: ShippedClasses) -> list[TableView]:
    """The coefficients of each direction, and the evidence of each class."""
    costs = [
        (shipped.name, *t.row_of(direction, _COSTS)) for shipped in result.classes for direction in shipped.directions
    ]
    return [
        t.TableView(
            "Classes of disks",
            (t.text("name", "Class"), *_COSTS),
            costs,
            "An end that is missing is not known. Choose a class: iolens calibrate use CLASS -f FILESYSTEM",
            name="classes",
        ),
        t.TableView("Evidence", _EVIDENCE, t.rows_of(result.classes, _EVIDENCE), sideways=True, name="evidence"),
    ]


def figures(result: ShippedClasses) -> dict[str, Callable[[], Figure]]:
    """None: tables say it."""
    return {}
