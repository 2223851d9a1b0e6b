"""Capacity in the report; nothing where no reading is complete."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from iolens.views.capacity import figures as drawn
from iolens.views.capacity import tables as view
from iolens.views.render.section import Part, ReportSection

if TYPE_CHECKING:
    from collections.abc import Sequence

    from iolens.analyses.capacity.analysis import Capacity

REPORT_ORDER: Final = 40


def report_summary(result: Capacity) -> list[Part]:
    """How full it is and when it will be too full."""
    return [view.verdict(result)] if result.samples else []


def report_sections(result: Capacity) -> list[ReportSection]:
    """Figures and tables of one file system."""
    if not result.samples:
        return []
    parts: list[Part] = [drawn.usage(result), view.projections(result), view.events(result)]
    if result.fullness is not None:
        parts += [drawn.targets(result), view.spread(result)]
    if result.inodes is not None:
        parts.append(view.inodes(result.inodes))
    return [ReportSection("Capacity", (*parts, view.headline(result)))]


def report_methods(results: Sequence[Capacity]) -> list[ReportSection]:
    """What the words mean."""
    if not any(result.samples for result in results):
        return []
    return [
        ReportSection(
            "Capacity over time",
            (
                "Usage is the sum over all targets at times when each of them answered. Two lines are fitted to it:"
                " least squares, and Theil–Sen (the median slope of all pairs of readings), on which purges have little"
                " effect. Their intervals come from 2,000 resamples with noise as large and persistent as that"
                " of the readings.",
                "A purge or surge is a run of changes on one side of the usual pace that adds up to more than four"
                " times what the usual spread would, and to at least one per cent of the capacity.",
            ),
        )
    ]
