"""A warning beside every number that was made from a rollup, or that lacks days of which only a rollup is left.

Tables get it as the first line of their main one, figures in their title, the report in the summary and every section.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from iolens.analyses.results import OverIntervals

if TYPE_CHECKING:
    from iolens.views.render.figures import Figure
    from iolens.views.render.section import Part, ReportSection
    from iolens.views.render.tables import TableView

LENGTHS: Final = {"60s": "one minute", "1h": "one hour"}


def warnings(result: Any) -> list[str]:
    """What the reader must know, of the result and of the one it is compared with."""
    return list(dict.fromkeys(filter(None, map(_warning, _over_intervals(result)))))


def _over_intervals(result: Any) -> list[Any]:
    """The result and the one it is compared with, as far as they rest on intervals."""
    return [part for part in (result, getattr(result, "compare", None)) if isinstance(part, OverIntervals)]


def _warning(result: Any) -> str:
    if result.resolution != "raw":
        return (
            f"Warning: computed from the {result.resolution} rollup of {result.filesystem}. Shares of time,"
            f" distributions, percentiles, peaks and tails are those of means over {LENGTHS[result.resolution]}, not of"
            " samples, and can be far from those; sums and means are the same."
        )
    if result.days_only_in_rollups:
        days = result.days_only_in_rollups
        return (
            f"Warning: the raw rows of {days:,} day{'s' * (days != 1)} of this window of {result.filesystem} were"
            " dropped. They are not in this answer; --resolution 60s has their sums and means."
        )
    if result.days_from_parts:
        days = result.days_from_parts
        return (
            f"The raw rows of {days:,} day{'s' * (days != 1)} of this window of {result.filesystem} were dropped. They"
            " are in this answer by the parts that were kept of them. For such days it is no longer possible to select"
            " hours, single targets or sources, another order of sources, or to leave out maintenance."
        )
    return ""


def on_tables(result: Any, tables: list[TableView]) -> list[TableView]:
    """The main table with the warning below it."""
    lines = warnings(result)
    if not lines or not tables:
        return tables
    first, *rest = tables
    return [replace(first, note="\n".join([*lines, *first.note.splitlines()])), *rest]


def on_figure(result: Any, figure: Figure) -> Figure:
    """The figure with what it was made from in its title."""
    rollups = dict.fromkeys(part.resolution for part in _over_intervals(result) if part.resolution != "raw")
    return replace(figure, title=f"{figure.title} (from the {' and '.join(rollups)} rollup)") if rollups else figure


def on_section(result: Any, section: ReportSection) -> ReportSection:
    """The section with the warning on top, and in the titles of its figures."""
    from iolens.views.render.figures import Figure

    parts: list[Part] = [on_figure(result, part) if isinstance(part, Figure) else part for part in section.parts]
    return replace(section, parts=(*warnings(result), *parts))
