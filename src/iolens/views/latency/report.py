"""Latency in the report; nothing where no target counts times."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from iolens.views.latency import figures as drawn
from iolens.views.latency import tables as view
from iolens.views.render.section import Answer, Notice, ReportSection

if TYPE_CHECKING:
    from collections.abc import Sequence

    from iolens.analyses.latency.analysis import Latency
    from iolens.views.render.tables import TableView

REPORT_ORDER: Final = 30


def report_answers(result: Latency) -> list[Answer]:
    """How long I/Os took, and who was slow."""
    return [Answer("targets", (view.verdict(result),), drawn.over_time(result))] if result.has_times else []


def report_notices(result: Latency) -> list[Notice]:
    """Targets that are far slower than their peers."""
    slow = view.slow_words(result)
    step = "Check the drives and the RAID state of that target."
    return [Notice("warn", "targets", slow, step, ("latency",))] if slow else []


def report_sections(result: Latency) -> list[ReportSection]:
    """Figures and tables of one file system."""
    if not result.has_times:
        return []
    sizes: tuple[TableView, ...] = (view.by_size(result),) if result.by_size else ()
    drawings = (drawn.over_time(result), drawn.heat_map(result))
    return [
        ReportSection(
            "Latency of disk I/Os", (view.headline(result), *sizes, *drawings, view.worst(result)), "targets"
        ),
        ReportSection("What latency rests on", (view.coverage(result),), "appendix"),
    ]


def report_methods(results: Sequence[Latency]) -> list[ReportSection]:
    """What the words mean."""
    if not any(result.has_times for result in results):
        return []
    words = (
        "Servers count their disk I/Os by the time they took, in bins that double from one to the next. A percentile is"
        " the upper edge of the first bin at which that share of the I/Os is reached: it is right to a factor of two."
        " Where there is no such histogram, the mean wait stands in: summed waiting time divided by operations. A mean"
        " says nothing about the slowest. Servers of Lustre 2.17 and later also time each bulk I/O by its size, from"
        " its start to its end, with all its disk I/Os and its waiting.",
        "Peers are the targets of the same kind. A target is called far slower when more of its I/Os take longer than"
        " twice a time than of its peers' take longer than that time (their 95th or 99th percentile), with a"
        " confidence that lets equal targets be called so in at most one of a hundred windows, and when it is above"
        " most of its peers in most parts of the window. It takes a thousand I/Os; below that nothing is said. Where"
        " there are no percentiles, its mean wait must be more than twice theirs, and above it in most parts.",
    )
    return [ReportSection("Latency", words)]
