"""Contents in the report; nothing where there is no scan."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from iolens.views.contents import figures as drawn
from iolens.views.contents import tables as view
from iolens.views.render.section import Answer, Part, ReportSection

if TYPE_CHECKING:
    from collections.abc import Sequence

    from iolens.analyses.contents.analysis import Contents

REPORT_ORDER: Final = 50


def report_answers(result: Contents) -> list[Answer]:
    """How many files, how large, how old."""
    figure = drawn.sizes(result) if result.size_cdf else None
    return [Answer("capacity", (view.verdict(result),), figure)] if result.samples else []


def report_sections(result: Contents) -> list[ReportSection]:
    """Figures and tables of one file system."""
    if not result.samples:
        return []
    first: list[Part] = [drawn.sizes(result), view.at_most(result)] if result.size_cdf else []
    if result.atime_cdf or result.mtime_cdf:
        first += [drawn.ages(result), view.used_within(result)]
    parts = (*first, view.headline(result), view.by_type(result), *_directories(result))
    sections = [ReportSection("Contents", parts, "capacity")]
    holders = _holders(result)
    sections += [ReportSection("Who holds what", tuple(holders), "capacity")] if holders else []
    changes = _changes(result)
    return [*sections, ReportSection("Contents over time", tuple(changes), "capacity")] if changes else sections


def _directories(result: Contents) -> list[Part]:
    return [drawn.widths(result), view.widths(result)] if result.widths is not None else []


def _holders(result: Contents) -> list[Part]:
    names: list[Part] = []
    if any(contents.project is not None for contents in result.by_project):
        names.append(view.by_project(result))
    if any(contents.owner is not None for contents in result.by_owner):
        names.append(view.by_owner(result))
    return [drawn.projects(result), *names] if names else []


def _changes(result: Contents) -> list[Part]:
    names: list[Part] = [view.comparison(result, result.comparison)] if result.comparison is not None else []
    if result.projections:
        names += [drawn.history(result), view.projections(result)]
    return names


def report_methods(results: Sequence[Contents]) -> list[ReportSection]:
    """What the words mean."""
    if not any(result.samples for result in results):
        return []
    return [
        ReportSection(
            "Contents",
            (
                "A scan counts inodes in bins of size and age, by owner and project; no path is kept, and a file with"
                " several names counts once. Percentiles are the upper end of the first bin whose cumulative share"
                " reaches them. Where a source does not tell the bytes of its bins, their ends bound every share.",
                "The number of files is projected by two lines through the scans: least squares and Theil–Sen. Fewer"
                " than eight scans have no interval, and a line through two scans cannot be checked.",
            ),
        )
    ]
